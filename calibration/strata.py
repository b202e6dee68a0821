"""Level and coverage of comparisons within strata, simulated.

    python calibration/strata.py            # the full grid, ten minutes on one core; writes calibration/strata.json
    python calibration/strata.py --short    # one design of each kind; prints only

In every design the strata have different rates and the second group is more often in strata with high rates, so that
the crude rates differ although within strata they do not. Beside each test stands how often the crude one rejects.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.strata.aucs import StratifiedAucs
from evenhand.inference.strata.means import StratifiedMeans
from evenhand.inference.strata.rates import StratifiedRates

HERE = Path(__file__).parent
ALPHAS = (0.05, 0.01, 0.001)
INTERVALS, CRUDE = 200, 40  # runs whose intervals are made, and that are tested without strata too


@dataclass(frozen=True)
class Design:
    """A world to draw from."""

    kind: str  # "rate", "mean", "auc", "global"
    strata: int
    rows: tuple[int, int]  # fewest and most rows of a stratum
    rates: tuple[float, float]  # lowest and highest rate of a stratum; of means the shift between strata
    truth: str = "null"  # "null", "difference", "ratio", "opposite", "skewed", "unequal"
    runs: int = 2000

    @property
    def name(self) -> str:
        """A name for tables."""
        low, high = self.rows
        rates = f"{self.rates[0]} to {self.rates[1]}"
        return f"{self.kind} {self.truth}, {self.strata} strata of {low} to {high} rows, {rates}"


def world(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the strata's rows, their rates, and the share of the second group in each."""
    rows = rng.integers(design.rows[0], design.rows[1] + 1, design.strata)
    rate = rng.uniform(*design.rates, design.strata)
    place = (rate - design.rates[0]) / (design.rates[1] - design.rates[0])
    return rows, rate, 0.2 + 0.6 * place


def rates_of(design: Design, rate: np.ndarray) -> np.ndarray:
    """Return both groups' rates in each stratum, (2, S)."""
    if design.truth == "difference":
        return np.stack([np.clip(rate + 0.1, 0, 1), np.clip(rate, 0, 0.9)])
    if design.truth == "ratio":
        return np.stack([np.minimum(1.6 * rate, 1.0), np.minimum(rate, 1 / 1.6)])
    if design.truth == "opposite":
        lean = np.where(np.arange(rate.size) % 2, 0.3, -0.3) * np.minimum(rate, 1 - rate) / 0.5
        return np.stack([rate + lean, rate - lean])
    return np.stack([rate, rate])


def draw(design: Design, rng: np.random.Generator) -> tuple[Samples, Samples | None, dict[str, float]]:
    """Draw one sample; return it stratified, as a crude one where there is one, and the truths its intervals cover."""
    rows, rate, share = world(design, rng)
    s = np.repeat(np.arange(design.strata), rows)
    groups = 3 if design.kind == "global" else 2
    g = (rng.random(s.size) < share[s]).astype(int) if groups == 2 else rng.integers(0, 3, s.size)
    shape = (groups, design.strata)
    cell = g * design.strata + s
    n = np.bincount(cell, minlength=groups * design.strata).reshape(shape)
    if design.kind in ("rate", "global"):
        p = np.concatenate([rates_of(design, rate), rate[None]])[:groups]
        x = rng.binomial(n, p)
        both = (n[0] > 0) & (n[1] > 0)
        w = (n[0] * n[1])[both] / (n[0] + n[1])[both]
        means = [float(w @ part[both]) for part in p[:2]]
        truth = {}
        if w.size:
            truth = {"difference": (means[0] - means[1]) / w.sum(), "ratio": means[0] / means[1]}
        if design.truth == "opposite":  # the same truth, moved to no difference
            truth = {"difference": truth.get("difference", 0.0)}
        return StratifiedRates(x, n), RateSamples.from_counts(x.sum(1), np.maximum(n.sum(1), 1)), truth
    noise = rng.exponential(size=s.size) - 1 if design.truth == "skewed" else rng.normal(size=s.size)
    if design.truth == "unequal":
        noise = noise * np.where(g == 1, 3.0, 1.0)
    if design.kind == "mean":
        samples: Samples = StratifiedMeans(value=5 * rate[s] + noise, codes=g, strata=s, shape=shape)
        return samples, None, {"difference": 0.0}
    y = rng.random(s.size) < 0.4
    samples = StratifiedAucs(score=5 * rate[s] + noise + 1.2 * y, outcome=y, codes=g, strata=s, shape=shape)
    return samples, None, {"difference": 0.0}


def simulate(design: Design, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Count rejections of a true null, and intervals that cover the truth."""
    out: dict[str, Any] = dict.fromkeys(("tested", "crude", "crude_tested", "intervals", "contradictions"), 0)
    out |= {f"rejected_{a}": 0 for a in ALPHAS} | {f"midp_{a}": 0 for a in ALPHAS}
    out |= {f"covered_{what}": 0 for what in ("difference", "ratio")} | {"intervals_ratio": 0}
    for i in range(runs or design.runs):
        samples, crude, truth = draw(design, np.random.default_rng([seed, i, design.strata]))
        draws = Draws(n_resamples=1999, seed=i)
        if design.kind == "global":
            p = samples.test_global([0, 1, 2], draws).pvalue
        else:
            p = samples.test(0, 1, draws).pvalue
        if math.isnan(p):
            continue
        out["tested"] += 1
        for a in ALPHAS:
            out[f"rejected_{a}"] += int(p <= a)
        if design.kind == "rate":
            half = samples.test(0, 1, Draws(midp=True)).pvalue
            for a in ALPHAS:
                out[f"midp_{a}"] += int(half <= a)
        if crude is not None and design.kind == "rate" and i < CRUDE:
            out["crude_tested"] += 1
            out["crude"] += int(crude.test(0, 1, draws).pvalue <= 0.05)
        if design.kind == "global" or i >= INTERVALS:
            continue
        out["intervals"] += 1
        for what, value in truth.items():
            low, high, _ = samples.interval(0, 1, level=0.95, ratio=what == "ratio", draws=draws)
            if math.isnan(low):
                continue
            out[f"covered_{what}"] += int(low <= value <= high)
            out["intervals_ratio"] += int(what == "ratio")
            none = 1.0 if what == "ratio" else 0.0
            out["contradictions"] += int((low <= none <= high) != (p > 0.05))
    return out


def grid() -> Iterator[Design]:
    """Yield the designs of the full run."""
    for strata, rows in ((2, (10, 50)), (5, (1, 50)), (20, (2, 20)), (50, (1, 50)), (300, (1, 8)), (2000, (1, 5))):
        runs = {50: 1000, 300: 600, 2000: 150}.get(strata, 1500)
        for rates in ((0.1, 0.9), (0.01, 0.1)):
            for truth in ("null", "difference", "ratio") if strata < 2000 else ("null",):
                yield Design("rate", strata, rows, rates, truth, runs if truth == "null" else runs // 4)
    for strata, rows in ((5, (40, 100)), (20, (10, 50)), (300, (4, 12))):
        yield Design("rate", strata, rows, (0.1, 0.9), "opposite", 200)
    yield Design("rate", 2000, (1, 5), (0.1, 0.9), "difference", 50)
    yield Design("rate", 2000, (50, 50), (0.1, 0.9), "null", 100)
    for strata, rows in ((2, (15, 40)), (10, (6, 20)), (50, (2, 12))):
        for truth in ("null", "skewed", "unequal"):
            yield Design("mean", strata, rows, (0.1, 0.9), truth, 250)
        yield Design("auc", strata, (2 * rows[0], 2 * rows[1]), (0.1, 0.9), "null", 40 if strata < 50 else 15)
    for strata, rows in ((3, (20, 60)), (30, (2, 20)), (300, (2, 6))):
        yield Design("global", strata, rows, (0.05, 0.5), "null", 6000)


def short() -> Iterator[Design]:
    """Yield one design of each kind, for the tests."""
    yield Design("rate", 20, (2, 20), (0.1, 0.9), "null", 300)
    yield Design("rate", 2, (10, 50), (0.01, 0.1), "ratio", 200)
    yield Design("rate", 300, (1, 8), (0.1, 0.9), "difference", 100)
    yield Design("mean", 10, (6, 20), (0.1, 0.9), "skewed", 60)
    yield Design("auc", 5, (20, 40), (0.1, 0.9), "null", 40)
    yield Design("global", 30, (2, 20), (0.05, 0.5), "null", 100)


def main() -> None:
    """Simulate the designs and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "strata.json")
    words = parser.parse_args()
    found = []
    for design in short() if words.short else grid():
        result = simulate(design)
        found.append({"design": asdict(design), **result})
        n = max(result["tested"], 1)
        levels = " ".join(f"{result[f'rejected_{a}'] / n:.4f}" for a in ALPHAS)
        halves = " ".join(f"{result[f'midp_{a}'] / n:.4f}" for a in ALPHAS)
        made = [max(result[name], 1) for name in ("intervals", "intervals_ratio")]
        cover = f"{result['covered_difference'] / made[0]:.3f} {result['covered_ratio'] / made[1]:.3f}"
        more = f"crude {result['crude'] / max(result['crude_tested'], 1):.3f} contradict {result['contradictions']}"
        print(f"{design.name}: n {n}: {levels} | mid-p {halves} | cover {cover} | {more}", flush=True)
        if not words.short:
            words.out.write_text(json.dumps({"designs": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
