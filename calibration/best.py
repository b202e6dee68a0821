"""Ratios to the highest rate: how often a group is wrongly said to be worse, and how often intervals hold together.

The tables have the sizes of published bias audits: 5 to 14 groups of 20 to 100,000 people, rates of .01 to .6.

python calibration/best.py [--replications 400]     # ten minutes on one core; writes calibration/best.json

Designs that are stored with at least as many replications are not simulated again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from evenhand.inference.multiplicity import adjust
from evenhand.inference.rates.best import Best, largest_pvalue
from evenhand.inference.rates.samples import RateSamples
from evenhand.kernels.counts.rate_lines import Edge

HERE = Path(__file__).parent
ALPHAS = (0.05, 0.01, 0.001)
# Where an approximate p-value is this many times the level, the p-value itself is not computed.
FAR = 6.0

TABLES = {
    "5 small": (20, 35, 60, 90, 150),
    "5 mixed": (25, 110, 400, 2500, 30000),
    "5 large": (2000, 5000, 12000, 40000, 100000),
    "7 mixed": (22, 70, 180, 600, 1500, 6000, 20000),
    "10 large": (1000, 1300, 1800, 2500, 4000, 7000, 12000, 25000, 60000, 100000),
    "14 mixed": (20, 40, 75, 120, 200, 350, 600, 1000, 1800, 3500, 7000, 15000, 40000, 100000),
}
RATES = (0.01, 0.05, 0.2, 0.6)


@dataclass(frozen=True)
class Design:
    """A table of true rates.

    Parameters
    ----------
    table : str
        One of `TABLES`.
    rate : float
        The highest rate.
    kind : str
        "equal": all rates are the highest; "tied": every second one is, the others are nine tenths of it; "edge": every
        second one is, the others lie on the margin of four fifths; "small high", "large high": only the smallest, or
        the largest, group has the highest rate, and all others lie on the margin.
    margin : float
        1 without a margin, or .8.
    """

    table: str
    rate: float
    kind: str
    margin: float

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        return f"{self.table}, highest {self.rate:g}, {self.kind}, margin {self.margin:g}"

    @property
    def ratios(self) -> np.ndarray:
        """Return each group's true ratio to the highest rate."""
        k = len(TABLES[self.table])
        if self.kind == "equal":
            return np.ones(k)
        if self.kind in ("tied", "edge"):
            return np.where(np.arange(k) % 2 == 0, 1.0, 0.9 if self.kind == "tied" else 0.8)
        return np.where(np.arange(k) == (0 if self.kind == "small high" else k - 1), 1.0, 0.8)


def tails(x: np.ndarray, n: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the approximate two-sided p-value of each ordered pair's ratio `at` (K, 1), shape (K, K)."""
    one, two = np.broadcast_arrays(x[:, None].astype(float), x[None, :].astype(float))
    sizes = np.broadcast_arrays(n[:, None].astype(float), n[None, :].astype(float))
    with np.errstate(all="ignore"):
        found = Edge(np.broadcast_to(at, one.shape), ratio=True).tails(one, two, *sizes)
    return np.where(np.isnan(found), 1.0, found)


def pvalues(best: Best, at: np.ndarray, most: float) -> np.ndarray:
    """Return each group's p-value against "its ratio is at least `at`"; approximate where that is far above `most`."""
    x, n = best.samples.successes, best.samples.trials
    with np.errstate(all="ignore"):
        below = (x / n)[:, None] < at[:, None] * (x / n)[None, :]
    rough = np.where(below, tails(x, n, at[:, None]), 1.0)
    out = np.ones(len(x))
    for a in range(len(x)):
        least = float(rough[a].min())
        out[a] = 1.0 if least >= 1 else largest_pvalue(max(least, 1e-300), best._shared(a, float(at[a])))
        if out[a] <= FAR * most and a != best.highest:
            out[a] = best.pvalue(a, float(at[a]))
    out[best.highest] = 1.0
    return out


def too_high(best: Best, at: np.ndarray, most: float) -> np.ndarray:
    """Return for each group the p-value of the lower limit at its true ratio; approximate far above `most`."""
    x, n = best.samples.successes, best.samples.trials
    above = (x / n)[:, None] > at[:, None] * (x / n)[None, :]
    rough = np.where(above, tails(x, n, at[:, None]), 1.0)
    np.fill_diagonal(rough, 0.0)
    out = rough.max(1)
    for a in np.flatnonzero(out <= FAR * most):
        out[a] = 2 * best.inside(int(a), float(at[a]))
    return np.where(at >= 1, 1.0, out)  # no lower limit lies above 1


def simulate(design: Design, replications: int, *, coverage: bool = True) -> dict[str, Any]:
    """Count audits with a false finding, with an interval that misses, and those that the bare rule flags."""
    n, ratios = np.array(TABLES[design.table]), design.ratios
    rng = np.random.default_rng([zlib.crc32(design.name.encode()), replications])
    k, true = len(n), ratios >= design.margin - 1e-12
    wrong, claimed, missed = np.zeros(3, dtype=int), np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    used = flagged = 0
    for _ in range(replications):
        x = rng.binomial(n, design.rate * ratios)
        if x.max() == 0:
            continue
        used += 1
        best = Best(RateSamples.from_counts(x, n), ratio=True)
        rates = x / n
        flagged += bool(rates.min() < 0.8 * rates.max())
        most = ALPHAS[0] / (k - 1)
        p = pvalues(best, np.full(k, design.margin), most)
        others = np.arange(k) != best.highest
        adjusted = adjust(p[others])
        wrong += [int((adjusted[true[others]] <= alpha).any()) for alpha in ALPHAS]
        if design.margin < 1:
            inside = too_high(best, np.full(k, design.margin), 2 * most)[others] / 2
            known = adjust(np.minimum(inside, 1.0))
            worse = ratios[others] <= design.margin + 1e-12
            claimed += [int((known[worse] <= alpha).any()) for alpha in ALPHAS]
        if coverage:
            low, high = pvalues(best, ratios, most), too_high(best, ratios, most)
            missed += [int((np.minimum(low, high) <= alpha / (k - 1)).any()) for alpha in ALPHAS]
    row = {"design": design.name, "table": design.table, "rate": design.rate, "kind": design.kind,
           "margin": design.margin, "groups": k, "replications": replications, "used": used, "flagged": flagged,
           "wrong": wrong.tolist()}  # fmt: skip
    row |= {"claimed": claimed.tolist()} if design.margin < 1 else {}
    return row | ({"missed": missed.tolist()} if coverage else {})


def many_tables(design: Design, replications: int) -> dict[str, Any]:
    """Count false findings in many tables, with the approximate p-values of pairs, which need large groups."""
    n, ratios = np.array(TABLES[design.table]), design.ratios
    k, rng = len(n), np.random.default_rng([zlib.crc32(design.name.encode()), 1])
    # How much each pair shares depends on the sizes, and next to nothing on the rates.
    model = Best(RateSamples.from_counts(np.rint(n * design.rate * ratios).astype(int), n), ratio=True)
    shared = [model._shared(a, design.margin) for a in range(k)]
    levels = np.array([[_level(alpha / (k - 1), part) for part in shared] for alpha in ALPHAS])  # (levels, groups)
    x = rng.binomial(n, design.rate * ratios, (replications, k)).astype(float)
    wrong = np.zeros((len(ALPHAS), replications), dtype=bool)
    for a, b in itertools.permutations(range(k), 2):
        if ratios[a] >= design.margin - 1e-12:
            below = np.flatnonzero(x[:, a] / n[a] < design.margin * x[:, b] / n[b])
            one, two = x[below, a], x[below, b]
            tail = Edge(design.margin, ratio=True).tails(one, two, int(n[a]), int(n[b]))
            wrong[:, below] |= tail <= levels[:, a, None]
    return {"design": design.name, "tables": replications, "wrong": wrong.sum(1).tolist()}


def _level(level: float, shared: np.ndarray) -> float:
    """Return the two-sided p-value of one pair that is enough for a group's p-value of `level`."""
    low, high = level / (1 + len(shared)), level
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if largest_pvalue(middle, shared) <= level else (low, middle)
    return low


def exact_tables(sizes: tuple[int, ...], rates: np.ndarray) -> dict[str, Any]:
    """Add up over all tables the chance of a false finding, and take its largest value over common rates."""
    k, n = len(sizes), np.array(sizes)
    chance = np.zeros((len(ALPHAS), len(rates)))
    for x in np.ndindex(*(size + 1 for size in sizes)):
        if max(x) == 0:
            continue
        best = Best(RateSamples.from_counts(x, n), ratio=True)
        p = min(best.pvalue(a, 1.0) for a in range(k) if a != best.highest)
        law = math.prod(math.comb(size, s) for size, s in zip(sizes, x, strict=True)) * rates ** sum(x)
        law *= (1 - rates) ** (sum(sizes) - sum(x))
        for i, alpha in enumerate(ALPHAS):
            chance[i] += law * (p * (k - 1) <= alpha)
    return {"sizes": sizes, "largest": dict(zip(map(str, ALPHAS), chance.max(1).tolist(), strict=True))}


def grid() -> Iterator[Design]:
    """Yield every design."""
    for rate in RATES:
        yield from (Design(table, rate, "equal", 1.0) for table in TABLES)
    for kind, margin in (("edge", 0.8), ("tied", 1.0), ("small high", 0.8), ("large high", 0.8)):
        yield from (Design(table, 0.2, kind, margin) for table in TABLES)
    for rate in (0.05, 0.6):
        yield from (Design(table, rate, "edge", 0.8) for table in TABLES)


def short() -> Iterator[Design]:
    """Yield a few designs that take little time."""
    yield Design("5 small", 0.2, "equal", 1.0)
    yield Design("10 large", 0.05, "equal", 1.0)
    yield Design("5 large", 0.2, "edge", 0.8)


def main() -> None:
    """Run the grid and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    words = parser.parse_args()
    path = HERE / "best.json"
    stored = json.loads(path.read_text()) if path.exists() else {"rows": []}
    kept = {row["design"]: row for row in stored["rows"] if row["replications"] >= words.replications}
    large = [Design(table, rate, *kind) for table in TABLES if "large" in table for rate in RATES
             for kind in (("equal", 1.0), ("edge", 0.8))]  # fmt: skip
    many = stored.get("many") or [many_tables(design, 100_000) for design in large]
    exact = [exact_tables(sizes, np.linspace(0.02, 0.98, 49)) for sizes in ((4, 5, 6), (3, 3, 3, 4), (2, 9, 9))]
    for design in grid():
        if design.name not in kept:
            kept[design.name] = simulate(design, words.replications)
            print(kept[design.name], flush=True)
        rows = [kept[d.name] for d in grid() if d.name in kept]
        stored = {"alphas": ALPHAS, "tables": TABLES, "rows": rows, "many": many, "exact": exact}
        path.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
