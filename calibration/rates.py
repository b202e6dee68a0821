"""Size and power of the tests of two equal rates, added up over all tables: no simulation.

python calibration/rates.py          # two minutes on one core; writes calibration/rates.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from evenhand.inference.power.listed import pvalues
from evenhand.inference.rates.curves import curve_of
from evenhand.inference.rates.equality import conditional_law

HERE = Path(__file__).parent
ALPHAS = (0.05, 0.01, 0.001)
SIZES = ((10, 10), (15, 15), (20, 20), (30, 30), (50, 50), (80, 80), (100, 100), (150, 150), (200, 200), (10, 15),
         (10, 20), (10, 30), (10, 50), (10, 100), (10, 200), (20, 30), (20, 50), (20, 100), (20, 200), (37, 61),
         (30, 100), (50, 60), (50, 100), (50, 200), (100, 200), (25, 175))  # fmt: skip
COVERED = ((10, 10), (8, 24), (15, 15), (20, 20))
LARGE = ((500, 500), (1000, 1000), (500, 1500), (300, 3000))  # beyond the exact test
RATES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99])
# Common rates at which the size is added up; the mean is taken between .1 and .9.
COMMON = np.sin(np.linspace(0, np.pi / 2, 402)[1:-1]) ** 2


def tests(n: int, m: int) -> dict[str, np.ndarray]:
    """Return the p-values of all tables by four tests, (n + 1, m + 1) each."""
    chance, half = conditional_law(np.arange(n + m + 1), n, m, "two-sided")
    found = {name: np.ones((n + 1, m + 1)) for name in ("conditional", "mid-p", "Fisher")}
    for total in range(n + m + 1):
        x = np.arange(max(0, total - m), min(n, total) + 1)
        law = chance[total, x]
        lean = np.abs((n + m) * x - total * n)
        found["conditional"][x, total - x] = [law[lean >= k].sum() for k in lean]
        found["Fisher"][x, total - x] = [law[law <= k * (1 + 1e-7)].sum() for k in law]
        found["mid-p"][x, total - x] = half[total, x]
    return {"unconditional": pvalues(n, m), **found}


def law(n: int, rates: np.ndarray) -> np.ndarray:
    """Return binomial probabilities, counts by rates."""
    return stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)


def measure(n: int, m: int) -> list[dict[str, Any]]:
    """Return size and power at each level."""
    found = tests(n, m)
    middle = (COMMON > 0.1) & (COMMON < 0.9)
    rows = []
    for alpha in ALPHAS:
        shown = {name: (p <= alpha * (1 + 1e-9)).astype(float) for name, p in found.items()}
        size = {name: np.einsum("ig,ij,jg->g", law(n, COMMON), r, law(m, COMMON)) for name, r in shown.items()}
        power = {name: law(n, RATES).T @ r @ law(m, RATES) for name, r in shown.items()}
        ours = power["unconditional"]
        rows.append({
            "sizes": (n, m), "alpha": alpha,
            "largest": {name: float(s.max()) for name, s in size.items()},
            "mean": {name: float(s[middle].mean()) for name, s in size.items()},
            "power": {name: float(p.mean()) for name, p in power.items()},
            "least_gain": {name: float((ours - p).min()) for name, p in power.items() if name != "unconditional"},
        })  # fmt: skip
    return rows


def cover(n: int, m: int, ratio: bool) -> dict[str, Any]:
    """Return the coverage of the intervals over pairs of true rates: least, mean, and how often at least nominal."""
    rates, out = np.linspace(0.025, 0.975, 39), {"sizes": (n, m), "ratio": ratio}
    one, two = law(n, rates), law(m, rates)
    truth = rates[:, None] / rates if ratio else rates[:, None] - rates
    curves = [[curve_of((x, y), (n, m), ratio=ratio) for y in range(m + 1)] for x in range(n + 1)]
    for level in (0.95, 0.99):
        low, high = np.moveaxis(np.array([[c.interval(level) for c in row] for row in curves]), -1, 0)
        covered = np.zeros_like(truth)
        for i, j in np.ndindex(*truth.shape):
            inside = (low <= truth[i, j] + 1e-12) & (truth[i, j] - 1e-12 <= high)
            covered[i, j] = one[:, i] @ inside @ two[:, j]
        out[str(level)] = [float(covered.min()), float(covered.mean()), float((covered >= level).mean())]
    return out


def large(n: int, m: int) -> dict[str, Any]:
    """Return the size of the mid-p value where it is the p-value: its largest and mean over common rates."""
    totals = np.arange(n + m + 1)
    chance, half = conditional_law(totals, n, m, "two-sided")
    weights = stats.binom.pmf(totals[:, None], n + m, COMMON)
    middle, out = (COMMON > 0.1) & (COMMON < 0.9), {"sizes": (n, m)}
    for alpha in ALPHAS:
        size = np.where(half <= alpha, chance, 0.0).sum(1) @ weights
        out[str(alpha)] = [float(size.max()), float(size[middle].mean())]
    return out


def main() -> None:
    """Add up the grid and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "rates.json")
    words = parser.parse_args()
    rows = []
    for n, m in SIZES:
        rows += measure(n, m)
        print(n, m, {k: round(v, 4) for k, v in rows[-3]["mean"].items()}, flush=True)
    coverage = [cover(n, m, ratio) for n, m in COVERED for ratio in (False, True)]
    beyond = [large(n, m) for n, m in LARGE]
    stored = {"rates": RATES.tolist(), "rows": rows, "coverage": coverage, "large": beyond}
    words.out.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
