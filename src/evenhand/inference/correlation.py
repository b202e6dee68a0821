"""Correlation of a value with a continuous attribute.

Hypothesis: Pearson's correlation is rho, by default 0; the two need not be independent.
Statistic: the mean of d = u v - rho (u^2 + v^2) / 2 over its standard error, where u and v are the standardised
columns: its mean is r - rho, and dependence without correlation (unequal spread along the attribute) widens its
spread and does not count as evidence ([diciccio2020] sec. 4.1, where the permutation test without it rejects a true
null at .75).
Reference: two laws, of which the larger p-value counts: Student's t corrected for the skewness of d
(`inference.skewed_student`), and permutations of one column against the other, the statistic recomputed each time.
Where one column spreads more where the other is far out, the permuted law does not apply and a few rows make the
standard error: the t law then has the degrees of freedom that the kurtosis of d leaves, 2 n / (kurtosis - 1).
Permutations are left out when each column by itself is calm, which pairing them cannot change. The interval is all
rho that the test keeps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.limits import crossing
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.reference import Drawn, Reference
from evenhand.inference.resampling import drawn, refuse_exact
from evenhand.inference.samples import Draws
from evenhand.inference.skewed_student import Lean, Shape, lean_of
from evenhand.kernels.counts.deals import block_size

# Permutations are left out when the product of the columns' skewnesses over sqrt(n), and of their kurtoses over n, are
# at most these ...
CALM_SKEWNESS, CALM_KURTOSIS = 0.1, 0.05
# ... or when there are more rows than this.
MANY = 200_000
# Standard errors of the estimated lean on either side: more than for means, because the large products are fewer.
DOUBT = 2.5
# The product of the columns' kurtoses over n above which a warning is given. Measured at .05, .01, .001 in 10,000 runs:
# an attribute with gamma(2) law, values sqrt(attribute) times centred gamma(1/2): .077, .025, .005 with 50 rows, .062,
# .019, .005 with 100; exponential attribute, values attribute times centred exponential: .036, .0065, .001 with 100.
RARE = 0.2


def correlation_test(
    x: ArrayLike, y: ArrayLike, count: ArrayLike | None = None, draws: Draws | None = None
) -> tuple[float, TestResult]:
    """Test that two columns are uncorrelated.

    Parameters
    ----------
    x, y : array_like, shape (R,)
        The columns.
    count : array_like of int, shape (R,), optional
        Rows each record stands for; 1 by default.
    draws : Draws, optional
        How the reference distribution is made.

    Returns
    -------
    correlation : float
        NaN when a column is constant.
    result : TestResult

    Examples
    --------
    >>> x = np.arange(40.0)
    >>> r, result = correlation_test(x, x % 7 + x / 9)
    >>> round(r, 3), result.pvalue < 0.001
    (0.586, True)
    """
    draws = Draws() if draws is None else draws
    refuse_exact(draws, "a correlation has no exact test")
    pairs = _Pairs(*_standardised(x, y, count), draws)
    if pairs.n == 0:
        return math.nan, undefined("A column is constant, so it has no correlation.")
    law = pairs.law(0.0)
    words = {
        (False, True): "skewness-corrected t test" if draws.method == "auto" else "t limit",
        (True, False): "studentised permutation test",
        (True, True): "skewness-corrected t test and studentised permutation test, the larger p-value",
    }[pairs.null is not None, law is not None]
    warnings = []
    if draws.method == "auto" and pairs.peak > RARE:
        warnings = [
            "The columns have such large values, for so few rows, that rarer ones may have been missed: where skewed "
            "values spread more along the attribute, this test was measured to reject a true null at .05 up to 1.5 "
            "times as often as stated, at .01 up to 2.5 times, at .001 up to six times."
        ]
    result = Reference(law, pairs.null).result(pairs.statistic(0.0), draws.alternative, method=words, warnings=warnings)
    return pairs.r, result


def correlation_interval(
    x: ArrayLike, y: ArrayLike, count: ArrayLike | None = None, *, level: float = 0.95, draws: Draws | None = None
) -> tuple[float, float, str]:
    """Return a confidence interval of the correlation that allows for dependence of any form.

    Parameters
    ----------
    x, y, count
        As in the test.
    level : float
        Nominal coverage.
    draws : Draws, optional
        As in the test; with the same draws both agree.

    Returns
    -------
    low, high : float
        All correlations that the test at 1 - level keeps.
    kind : str

    Examples
    --------
    >>> x = np.arange(40.0)
    >>> low, high, kind = correlation_interval(x, x % 7 + x / 9)
    >>> 0.2 < low < 0.586 < high < 0.9
    True
    """
    pairs = _Pairs(*_standardised(x, y, count), Draws() if draws is None else draws)
    kind = "t" if pairs.null is None else "permutation-t"
    if pairs.n == 0:
        return math.nan, math.nan, kind
    if 1 - pairs.r**2 < 1e-12:
        return pairs.r, pairs.r, kind
    share = (1 - level) / 2
    fixed = (math.inf, -math.inf) if pairs.null is None else pairs.null.critical(share)

    def keeps(rho: float, side: str) -> bool:
        statistic, law = pairs.statistic(rho), pairs.law(rho)
        if statistic <= fixed[1] if side == "greater" else statistic >= fixed[0]:
            return True
        return law is not None and law.tail(statistic, side) > share

    low = crossing(lambda rho: keeps(rho, "greater"), pairs.r, -1.0, 0.0)
    high = crossing(lambda rho: keeps(rho, "less"), pairs.r, 1.0, 0.0)
    return low, high, kind


class _Pairs:
    """Standardised pairs, their statistic at any correlation and its laws."""

    def __init__(self, u: FloatArray, v: FloatArray, c: IntArray, draws: Draws) -> None:
        self._u, self._v, self._c, self._draws = u, v, c, draws
        self.n = int(c.sum())
        self.r = float(np.dot(c, u * v) / self.n) if self.n else math.nan
        self.peak = self._product(4) / max(self.n, 1)
        self._uneven = self._unevenness()
        permute = draws.method == "permutation" or (draws.method == "auto" and self.n <= MANY and not self._calm())
        self.null = self._permuted() if self.n and permute else None

    def statistic(self, rho: float) -> float:
        """Return the mean of d over its standard error."""
        d = self._parts(rho)
        mean = self.r - rho
        return float(studentised_mean(np.asarray(mean), np.asarray(np.dot(self._c, d * d) / self.n), self.n))

    def law(self, rho: float) -> Lean | None:
        """Return Student's law of the statistic, or None where only permutations are asked for."""
        if self._draws.method == "limit":
            return Lean(0.0, 0.0, max(self.n - 1.0, 1.0))
        if self._draws.method != "auto":
            return None
        residual = self._parts(rho) - (self.r - rho)
        second = float(np.dot(self._c, residual**2) / self.n)
        shape = Shape.of(residual, self._c, self.n, second / max(self.n - 1, 1))
        return lean_of([(shape, 1.0)], self._freedom(shape), doubt=DOUBT)

    def _parts(self, rho: float) -> FloatArray:
        return np.asarray(self._u * self._v - rho * (self._u**2 + self._v**2) / 2)

    def _freedom(self, shape: Shape) -> float:
        """Return the degrees of freedom: n - 1 where spreads are even, what the kurtosis leaves where they are not."""
        most = max(self.n - 1.0, 1.0)
        excess = shape.moments[2] / shape.moments[0] ** 2 - 1 if shape.moments[0] > 0 else 0.0
        least = min(max(2 * self.n / max(excess, 1e-9), 1.0), most)
        return 1 / ((1 - self._uneven) / most + self._uneven / least)

    def _unevenness(self) -> float:
        """Return 0 where no column spreads more with the other, 1 where the mean square of d is half as much more."""
        left = 1 - self.r**2
        if self.n == 0 or left < 1e-12:
            return 0.0
        u, v = self._u, self._v
        ratios = (float(np.dot(self._c, (z * (y - self.r * z)) ** 2)) / self.n / left for z, y in ((u, v), (v, u)))
        return min(max(2 * (min(ratios) - 1), 0.0), 1.0)

    def _calm(self) -> bool:
        """Whether the columns, each by itself, leave no room for a rare large product."""
        return self._product(3) / math.sqrt(max(self.n, 1)) <= CALM_SKEWNESS and self.peak <= CALM_KURTOSIS

    def _product(self, power: int) -> float:
        """Return the product of the columns' own moments, without its sign."""
        return abs(math.prod(float(np.dot(self._c, z**power)) / max(self.n, 1) for z in (self._u, self._v)))

    def _permuted(self) -> Drawn:
        n, a, b = self.n, np.repeat(self._u, self._c), np.repeat(self._v, self._c)

        def work(rng: np.random.Generator, size: int) -> FloatArray:
            moved = rng.permuted(np.broadcast_to(b, (size, n)), axis=1)  # (size, n)
            cross = moved @ a / n
            np.square(moved, out=moved)
            return np.asarray(studentised_mean(cross, moved @ (a * a) / n, n))

        return drawn(work, self._draws, n, block_size(n, 500_000), "correlation")


def studentised_mean(mean: FloatArray, square: FloatArray, n: int) -> FloatArray:
    """Mean over its standard error from the mean square; 0 when the mean is 0."""
    spread = np.maximum(square - mean**2, 1e-14 * np.maximum(square, 1e-300)) / max(n - 1, 1)
    return np.where(mean == 0, 0.0, mean / np.sqrt(spread))


def _standardised(x: ArrayLike, y: ArrayLike, count: ArrayLike | None) -> tuple[FloatArray, FloatArray, IntArray]:
    """Both columns with mean 0 and mean square 1 in a fixed row order; empty when one is constant."""
    u, v = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    c = np.ones(u.shape, dtype=np.int64) if count is None else np.asarray(count, dtype=np.int64)
    keep = c > 0
    order = np.lexsort((v[keep], u[keep]))
    u, v, c = u[keep][order], v[keep][order], c[keep][order]
    none = (np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
    if u.size == 0 or u.min() == u.max() or v.min() == v.max():
        return none
    # Equal records become one, so that repeated rows and counts give the same bytes.
    new = np.concatenate([[True], (u[1:] != u[:-1]) | (v[1:] != v[:-1])])
    c = np.add.reduceat(c, np.flatnonzero(new))
    u, v = u[new], v[new]
    out = []
    for z in (u, v):
        centred = z - np.dot(c, z) / c.sum()
        scale = math.sqrt(float(np.dot(c, centred**2)) / float(c.sum()))
        if scale == 0:
            return none
        out.append(centred / scale)
    return out[0], out[1], c
