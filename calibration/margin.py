"""Size of the equivalence tests: how often a difference that lies exactly on the margin is called equivalent.

python calibration/margin.py [--replications 400] [--workers 2] [--part 1/8]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import special, stats

sys.path.insert(0, str(Path(__file__).parent))

from designs import cells

from evenhand import METRICS
from evenhand.audits.margin import parse_margin
from evenhand.inference.auc import AucSamples
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.count_functions import balanced_accuracy
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.equivalence import claimed_tables
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.kernels.counts.binomial import ratio_statistic, score_statistic

HERE = Path(__file__).parent
ALPHA = 0.05
MEANS = {"mean_score": "normal", "brier": "beta", "log_loss": "gamma"}


@dataclass(frozen=True)
class OnMargin:
    """Two groups whose true difference or ratio is an end of the margin.

    Parameters
    ----------
    metric : str
        A name of the catalogue.
    sizes : tuple of int
        Rows of the two groups.
    margin : str
        As a user says it.
    value : float
        The second group's true value; the first group's lies on the margin.
    end : str
        "low" or "high".
    base : tuple of float
        Base rates, or the share of each group in the denominator.
    """

    metric: str
    sizes: tuple[int, int]
    margin: str
    value: float
    end: str = "low"
    base: tuple[float, float] = (0.5, 0.5)

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        (n, m), (p, q) = self.sizes, self.base
        return f"{self.metric} n={n}/{m} base={p}/{q} value={self.value} margin={self.margin} {self.end}"

    @property
    def values(self) -> tuple[float, float]:
        """Return the true values of both groups."""
        margin = parse_margin(self.margin)
        at = getattr(margin, self.end)
        return (self.value * at if margin.ratio else self.value + at), self.value


def draw(design: OnMargin, rng: np.random.Generator) -> Samples:
    """Draw the two samples of a design."""
    metric = METRICS[design.metric]
    if metric.kind in ("rate", "table"):
        parts = zip(design.sizes, design.base, design.values, strict=True)
        table = np.stack([rng.multinomial(n, cells(metric.name, b, p, g)) for g, (n, b, p) in enumerate(parts)])
        if metric.kind == "table":
            return TableSamples(table, balanced_accuracy())
        return RateSamples(
            table, numerator=metric.numerator, denominator=metric.denominator, transform=metric.transform
        )
    codes = np.repeat([0, 1], design.sizes)
    value = np.repeat(design.values, design.sizes)
    y = rng.random(codes.size) < np.repeat(design.base, design.sizes)
    if metric.kind == "auc":
        score = rng.normal(size=codes.size) + y * np.sqrt(2) * special.ndtri(value)
        return AucSamples(score=np.where(codes == 1, 3 * score, score), outcome=y, codes=codes, n_groups=2)
    if metric.kind == "calibration":  # every score is too high by the calibration error
        raw = rng.beta(2, 2, size=codes.size) * (1 - value)
        outcome = rng.random(codes.size) < raw
        return CalibrationSamples(score=raw + value, outcome=outcome, codes=codes, n_groups=2)
    shape = MEANS[metric.name]
    wide = np.where(codes == 1, 1.0, 0.5)
    if shape == "normal":
        row = value + wide * rng.normal(size=codes.size)
    elif shape == "gamma":
        row = rng.gamma(1 / wide, value * wide)
    else:
        row = rng.beta(value / wide, (1 - value) / wide)
    return MeanSamples(value=row, codes=codes, n_groups=2)


def simulate(design: OnMargin, replications: int, n_resamples: int = 199, first: int = 0) -> dict[str, Any]:
    """Count claims of equivalence."""
    margin = parse_margin(design.margin)
    tested = claimed = 0
    seen: dict[tuple[int, ...], float] = {}
    for i in range(first, first + replications):
        rng = np.random.default_rng([i, *design.sizes, round(1000 * design.value)])
        s = draw(design, rng)
        if any(s.reason) or (margin.ratio and not s.estimate[1] > 0):
            continue
        draws = Draws(n_resamples=n_resamples, seed=i, name="margin")

        def p(s: Samples = s, draws: Draws = draws) -> float:
            return s.equivalence(0, 1, low=margin.low, high=margin.high, ratio=margin.ratio, draws=draws)

        if isinstance(s, RateSamples):  # the p-value is a function of four counts
            key = (*s.successes.tolist(), *s.trials.tolist())
            found = seen[key] if key in seen else seen.setdefault(key, p())
        else:
            found = p()
        tested += not np.isnan(found)
        claimed += found <= ALPHA
    return {"design": design.name, "metric": design.metric, "margin": design.margin, "sizes": design.sizes,
            "tested": tested, "claimed": int(claimed)}  # fmt: skip


def worst(sizes: tuple[int, int], margin: str) -> dict[str, Any]:
    """Add up the chance of a false claim for rates, and take its largest value over both ends of the margin."""
    bounds, (n, m) = parse_margin(margin), sizes
    x, y = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
    counts, trials = np.stack([x, y], -1), np.array([n, m])
    if bounds.ratio:
        score = [ratio_statistic(counts, trials, end) for end in (bounds.low, bounds.high)]
    else:
        score = [score_statistic(counts, trials, [1, -1], np.full(x.shape, end)) for end in (bounds.low, bounds.high)]
    bar = stats.norm.isf(ALPHA)
    exact = claimed_tables(sizes, bounds.low, bounds.high, ALPHA, ratio=bounds.ratio)
    found = {"exact": 0.0, "score": 0.0}
    for end in (bounds.low, bounds.high):
        for q in np.linspace(0.0025, 0.9975, 399):
            p = q * end if bounds.ratio else q + end
            if 0 <= p <= 1:
                law = np.outer(stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(np.arange(m + 1), m, q))
                for name, claimed in (("exact", exact), ("score", (score[0] >= bar) & (score[1] <= -bar))):
                    found[name] = max(found[name], float(law[claimed].sum()))
    return {"sizes": sizes, "margin": margin, **found}


SIZES = ((20, 20), (50, 20), (50, 50), (200, 200), (1000, 600))
MARGINS = ("0.05", "0.1", "0.2", "0.3", "ratio:0.9", "four-fifths", "ratio:0.5")
WORST = ((20, 20), (50, 20), (50, 50), (20, 200), (200, 200))


def grid() -> Iterator[OnMargin]:
    """Yield every design; rates of fixed denominators are in `worst`."""
    for sizes in SIZES:
        if sizes != (200, 200):  # between, the exact test of each of thousands of tables takes long
            yield OnMargin("fnr", sizes, "0.2", 0.1, "high", (0.5, 0.3))
            yield OnMargin("fpr", sizes, "ratio:0.5", 0.2, "high", (0.8, 0.5))
            yield OnMargin("selection_rate", sizes, "four-fifths", 0.8, "high")
            yield OnMargin("f1", sizes, "0.2", 0.5, base=(0.6, 0.6))
            yield OnMargin("f1", sizes, "four-fifths", 0.9, base=(0.6, 0.6))
        for margin, value in (("0.1", 0.8), ("0.2", 0.5), ("four-fifths", 0.9)):
            yield OnMargin("balanced_accuracy", sizes, margin, min(value + 0.2, 0.84), base=(0.5, 0.3))
            yield OnMargin("auc", sizes, margin, min(value + 0.2, 0.95), base=(0.5, 0.3))
        for margin, value in (("0.1", 0.3), ("ratio:0.5", 0.4)):
            yield OnMargin("brier", sizes, margin, value)
            yield OnMargin("log_loss", sizes, margin, value, "high")
            yield OnMargin("mean_score", sizes, "0.3" if margin == "0.1" else margin, value)
        for margin, value in (("0.1", 0.15), ("ratio:0.5", 0.2)):
            if min(sizes) > 20:
                yield OnMargin("calibration_error", sizes, margin, value)


def short() -> Iterator[OnMargin]:
    """Yield a few hard designs."""
    yield OnMargin("selection_rate", (20, 20), "0.2", 0.2)
    yield OnMargin("selection_rate", (20, 20), "four-fifths", 0.8, "high")
    yield OnMargin("selection_rate", (50, 20), "ratio:0.5", 0.99)
    yield OnMargin("fnr", (50, 50), "0.3", 0.65)
    yield OnMargin("f1", (50, 50), "0.2", 0.8, base=(0.6, 0.6))
    yield OnMargin("balanced_accuracy", (50, 50), "0.2", 0.75, base=(0.5, 0.3))
    yield OnMargin("auc", (50, 50), "four-fifths", 0.9, base=(0.5, 0.3))
    yield OnMargin("mean_score", (20, 50), "0.3", 0.3)
    yield OnMargin("brier", (50, 50), "0.1", 0.3)
    yield OnMargin("calibration_error", (300, 200), "0.1", 0.15)


def main() -> None:
    """Run the grid and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", default="1/1", help="such as 2/8: every eighth design; stored beside the others")
    words = parser.parse_args()
    place, parts = (int(word) for word in words.part.split("/"))
    designs = list(grid())[place - 1 :: parts]
    summed = [(sizes, margin) for sizes in WORST for margin in MARGINS]
    with ProcessPoolExecutor(words.workers) as pool:
        exact = [pool.submit(worst, *asked) for asked in summed[place - 1 :: parts]]
        jobs = [pool.submit(simulate, d, words.replications) for d in designs]
        rows = []
        for job in jobs:
            rows.append(job.result())
            row = rows[-1]
            print(f"{row['design']}: {row['claimed'] / max(row['tested'], 1):.4f} of {row['tested']}", flush=True)
        added = [job.result() for job in exact]
        for row in added:
            print(row, flush=True)
    path = HERE / "margin.json"
    kept = json.loads(path.read_text()) if parts > 1 and path.exists() else {"rows": [], "worst": []}
    found = {row["design"]: row for row in (*kept["rows"], *rows)}
    sums = {(tuple(row["sizes"]), row["margin"]): row for row in (*kept["worst"], *added)}
    stored = {"alpha": ALPHA, "worst": [sums[key] for key in summed if key in sums],
              "rows": [found[d.name] for d in grid() if d.name in found]}  # fmt: skip
    path.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
