"""Size of the tests of means, AUC and calibration with a small group beside large ones, two groups and nine.

    python calibration/small_groups.py --minutes 20   # goes on from what is stored in small_groups.json
    python calibration/small_groups.py --short        # a few data sets of each design; prints only

All groups have one value of the metric. "equal", "seldom" and "rare": all have one distribution, with outcome 1 in
30 %, 7 % or 2 % of the rows; with 7 % a group of 1,500 is just calm enough for the normal limit of its mean loss.
"wide small" and "wide large": the first group's scores, or those of the others, have a wider spread.
"rare small" and "rare large": the first group, or the others, have outcome 1 in 5 % of the rows and the rest in 30 %.
"tail small" and "tail large": the first group's scores, or those of the others, are too low: rare outcomes cost much.
"off" and "off rare": scores of calibration that are too high by as much in every group, whose scores differ otherwise.
"apart": the first group's AUC is .85 and that of the others .75; counted is how often intervals miss that.
Tested are the first group beside the last, and all groups at once where there are more than two.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

from evenhand.inference.auc import AucSamples
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.means import MeanSamples
from evenhand.inference.samples import Draws, Samples

OUT = Path(__file__).parent / "small_groups.json"
ALPHAS = (0.05, 0.01, 0.001)
COUNTS = [f"rejected_{a:g}" for a in ALPHAS]
SIZES = ((200, 20_000), (2_000, 2_000), (200, *[1_500] * 8))
COMMON, RARE = 0.3, 0.05  # base rates
SHARES = {"equal": COMMON, "seldom": 0.07, "rare": 0.02}  # where all groups have one distribution
AUCS = (0.85, 0.75)
LOSSES, TAIL_LOSS = {"brier": 0.25, "log_loss": 0.7}, 0.3  # expected losses that groups of different kinds share
SLOW = 5  # a design in which every row of nine groups is dealt gets this many times fewer data sets
PIECE = 20  # data sets between two writes of the file
RESAMPLES = 199
NODES, MASSES = np.polynomial.hermite_e.hermegauss(81)  # of means over a normal law


@dataclass(frozen=True)
class Design:
    """One metric, the rows of each group, and what differs between the first group and the others."""

    metric: str
    world: str
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name the design in one line."""
        return f"{self.metric}, {self.world}, {len(self.sizes)} groups of {self.sizes[0]:,} and {self.sizes[-1]:,}"

    @property
    def deals_all(self) -> bool:
        """Whether no group of nine is calm enough for a normal limit of its mean."""
        return (
            len(self.sizes) > 2
            and self.metric in ("log_loss", "brier")
            and self.world in ("rare", "tail small", "tail large")
        )


def grid() -> Iterator[Design]:
    """Yield all designs."""
    for sizes in SIZES:
        for metric in ("calibration_error", "log_loss", "brier", "auc"):
            for world in ("equal", "rare", "wide small", "wide large", "rare small", "rare large"):
                if sizes[0] < sizes[1] or world not in ("wide large", "rare large"):
                    yield Design(metric, world, sizes)
        yield Design("auc", "apart", sizes)
        for world in ("off", "off rare"):
            yield Design("calibration_error", world, sizes)
        for metric in ("log_loss", "brier"):
            yield Design(metric, "seldom", sizes)
        for world in ("tail small", "tail large") if sizes[0] < sizes[1] else ("tail small",):
            yield Design("log_loss", world, sizes)


def loss(metric: str, outcome: np.ndarray, logit: np.ndarray) -> np.ndarray:
    """Return each row's loss for a score with this logit."""
    if metric == "brier":
        return np.asarray((outcome - special.expit(logit)) ** 2)
    return np.asarray(np.logaddexp(0, logit) - outcome * logit)


@cache
def centre_for(base: float, spread: float) -> float:
    """Return the centre of a normal law of logits whose mean probability is the base rate."""
    return float(optimize.brentq(lambda m: _mean(special.expit(m + spread * NODES)) - base, -12, 12))


@cache
def shift_for(metric: str, base: float, spread: float, target: float, end: float) -> float:
    """Return what must be added to every logit of a calibrated score for this expected loss, between 0 and the end."""
    true = centre_for(base, spread) + spread * NODES
    share = special.expit(true)

    def expected(shift: float) -> float:
        one, none = (loss(metric, np.array(float(y)), true + shift) for y in (1, 0))
        return _mean(share * one + (1 - share) * none)

    return float(optimize.brentq(lambda shift: expected(shift) - target, 0.0, end))


def draw(design: Design, rng: np.random.Generator) -> Samples:
    """Draw one data set."""
    parts = [_group(design, k, n, rng) for k, n in enumerate(design.sizes)]
    first, second = (np.concatenate(column) for column in zip(*parts, strict=True))
    codes = np.repeat(np.arange(len(design.sizes)), design.sizes)
    if design.metric == "auc":
        return AucSamples(score=second, outcome=first, codes=codes, n_groups=len(design.sizes))
    if design.metric == "calibration_error":
        return CalibrationSamples(score=second, outcome=first, codes=codes, n_groups=len(design.sizes))
    return MeanSamples(value=loss(design.metric, first, second), codes=codes, n_groups=len(design.sizes))


def _group(design: Design, place: int, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw outcomes, and scores (logits for losses), of one group."""
    world, apart = design.world, (place == 0) == design.world.endswith("small")
    wide = world.startswith("wide") and apart
    base = (
        SHARES[world]
        if world in SHARES
        else RARE
        if world.startswith("tail") or (world.startswith("rare") and apart)
        else COMMON
    )
    if design.metric == "auc":  # one AUC, with scores of positives three times as wide as those of negatives
        outcome = rng.random(rows) < base
        scale = np.where(outcome, 3.0 if wide else 1.0, 1.0)
        auc = AUCS[0] if world == "apart" and place == 0 else AUCS[1]
        distance = special.ndtri(auc) * math.sqrt(1 + (9.0 if wide else 1.0))
        return outcome.astype(float), scale * rng.standard_normal(rows) + distance * outcome
    if world.startswith("off"):
        high = 0.05 if world == "off rare" else 0.1
        shape = ((2, 2) if world == "off" else (1, 9)) if place == 0 else (1, 3) if world == "off" else (1, 30)
        share = rng.beta(*shape, rows) * (1 - high)
        return (rng.random(rows) < share).astype(float), share + high
    spread = 2.0 if wide else 0.7
    true = centre_for(base, spread) + spread * rng.standard_normal(rows)
    outcome = (rng.random(rows) < special.expit(true)).astype(float)
    if design.metric == "calibration_error":
        return outcome, special.expit(true)
    if world in SHARES:
        return outcome, true
    if world.startswith("tail"):
        return outcome, true + shift_for(design.metric, base, spread, TAIL_LOSS, -12.0 if apart else 12.0)
    # The common loss lies above that of any of these groups with calibrated scores.
    return outcome, true + shift_for(design.metric, base, spread, LOSSES[design.metric], 12.0)


def simulate(design: Design, runs: int, first: int) -> dict[str, int]:
    """Count, from data set `first` on, tests, warnings and rejections of two groups and of all."""
    out: dict[str, int] = {}
    for i in range(first, first + runs):
        samples = draw(design, np.random.default_rng([i, zlib.crc32(design.name.encode())]))
        draws = Draws(n_resamples=RESAMPLES, seed=i, name="calibration")
        members = range(len(design.sizes))
        results = {}
        if design.world == "apart":
            missed = {name: _missed(samples, members[-1], name == "ratio", draws) for name in ("difference", "ratio")}
        else:
            results["pair"] = samples.test(0, members[-1], draws)
            if len(members) > 2:
                results["global"] = samples.test_global(members, draws)
            tests = {name: result for name, result in results.items() if not math.isnan(result.pvalue)}
            missed = {name: [result.pvalue <= a for a in ALPHAS] for name, result in tests.items()}
        for name, errors in missed.items():
            warned = name in results and bool(results[name].warnings)
            counts = {"tested": True, "warned": warned} | dict(zip(COUNTS, errors, strict=True))
            for what, happened in counts.items():
                out[f"{name}_{what}"] = out.get(f"{name}_{what}", 0) + int(happened)
    return out


def _missed(samples: Samples, last: int, ratio: bool, draws: Draws) -> list[bool]:
    """Say for each level whether the interval of two AUCs misses their true difference or ratio."""
    truth = AUCS[0] / AUCS[1] if ratio else AUCS[0] - AUCS[1]
    ends = [samples.interval(0, last, level=1 - a, ratio=ratio, draws=draws)[:2] for a in ALPHAS]
    return [not low <= truth <= high for low, high in ends]


def _mean(values: np.ndarray) -> float:
    """Average over the normal law."""
    return float(MASSES @ values / MASSES.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--metrics", default="", help="only these, separated by commas")
    parser.add_argument("--out", type=Path, default=OUT)
    words = parser.parse_args()
    designs = [d for d in grid() if not words.metrics or d.metric in words.metrics.split(",")]
    if words.short:
        for design in designs:
            began = time.process_time()
            counts = simulate(design, 5, 0)
            print(f"{design.name}: {(time.process_time() - began) / 5:.3f} s each, {counts}", flush=True)
        return
    stored: dict[str, Any] = json.loads(words.out.read_text()) if words.out.exists() else {"designs": []}
    kept = {r["design"]: r for r in stored["designs"]}
    ends = time.monotonic() + 60 * words.minutes
    while time.monotonic() < ends:
        # The design with the fewest data sets is next.
        design = min(designs, key=lambda d: kept.get(d.name, {}).get("runs", 0) * (SLOW if d.deals_all else 1))
        row = kept.setdefault(
            design.name,
            {"design": design.name, "metric": design.metric, "world": design.world, "sizes": design.sizes, "runs": 0},
        )
        for name, number in simulate(design, PIECE, row["runs"]).items():
            row[name] = row.get(name, 0) + number
        row["runs"] += PIECE
        words.out.write_text(json.dumps({"resamples": RESAMPLES, "designs": list(kept.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
