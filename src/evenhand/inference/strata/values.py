"""Values with a variance of their own (means, AUCs) compared within strata.

Hypothesis: the conditional difference of two groups' values is 0; their distributions may differ otherwise.
Statistic: the weighted difference over its standard error. A stratum's variance is that of its two values, each around
itself. Where a group has one row in a stratum its variance is not known; there the square of how far the stratum's
difference lies from the mean of all of them stands for it, which many such strata average out.
Reference: Student's t with Satterthwaite's degrees of freedom and, where the rows are few or skewed, permutations of
the labels within strata (for the AUC within stratum and outcome); the larger p-value counts. Interval, equivalence and
margins ask the same laws.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.reference import Drawn, Reference
from evenhand.inference.resampling import NO_GLOBAL, refuse_exact, welch_law
from evenhand.inference.samples import Draws
from evenhand.inference.skewed_student import Lean
from evenhand.inference.strata.samples import Coverage, Homogeneity, Pair, StratifiedSamples, spread_test

# Rows above which permutations within strata are not drawn unless asked for.
MOST_PERMUTED = 20_000
_HOMOGENEITY_ROWS = 5.0
_T = "t test of the weighted difference within strata"
_PERMUTED = "studentised permutation test within strata"


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What is known of each group in each stratum; the last axis is that of the strata."""

    value: FloatArray  # NaN without rows
    variance: FloatArray  # of the value; NaN where it is not known
    size: FloatArray  # n of the weights: rows, or the sum of their weights
    freedom: FloatArray  # degrees of freedom of the variance


def studentised(first: Cells, second: Cells, shift: float = 0.0, factor: float = 1.0) -> FloatArray:
    """Return the weighted mean of ``first - factor second - shift`` over strata, over its standard error.

    Parameters
    ----------
    first, second : Cells
        Two groups, with any leading axes.
    shift, factor : float
        The hypothesis.

    Examples
    --------
    >>> one = Cells(np.array([1.0, 3.0]), np.array([0.5, 0.5]), np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    >>> two = Cells(np.array([0.0, 2.0]), np.array([0.5, 0.5]), np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    >>> round(float(studentised(one, two)), 4)
    1.4142
    """
    weight, gap, variance = _parts(first, second, factor)
    total = weight.sum(-1)
    mean = np.asarray((weight * gap).sum(-1) / total - shift)
    spread = (weight**2 * variance).sum(-1) / total**2
    # A variance of exactly zero would make the statistic infinite; a relative floor keeps its order.
    square = np.maximum(spread, 1e-14 * mean * mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean == 0, np.where(np.isnan(square), np.nan, 0.0), mean / np.sqrt(square))


def _parts(first: Cells, second: Cells, factor: float = 1.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weights, the gaps and their variances; strata without both groups have the weight 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = first.size * second.size / (first.size + second.size)
        gap = first.value - factor * second.value
        able = np.isfinite(gap) & (weight > 0)
        weight, gap = np.where(able, weight, 0.0), np.where(able, gap, 0.0)
        variance = first.variance + factor**2 * second.variance
        total = weight.sum(-1, keepdims=True)
        apart = gap - (weight * gap).sum(-1, keepdims=True) / total
        share = weight / total
        between = np.where(share < 1 - 1e-9, apart**2 / np.maximum(1 - share, 1e-9), np.nan)
        return weight, gap, np.where(able, np.where(np.isnan(variance), between, variance), 0.0)


class StratifiedValues(StratifiedSamples):
    """K groups whose values and variances in each stratum are known; see `StratifiedMeans` and `StratifiedAucs`."""

    def __init__(self, cells: Cells, *, reason: tuple[str, ...], counts: tuple[dict[str, float], ...]) -> None:
        self.cells, self.reason, self.counts = cells, reason, counts
        value, size = np.nan_to_num(cells.value), np.where(np.isfinite(cells.value), cells.size, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            common = np.nan_to_num((size * value).sum(0) / size.sum(0))
            own = (size * (value - common)).sum(1) / size.sum(1)
            self.estimate = own + (size * value).sum() / size.sum()
        self.estimate = np.where([bool(why) for why in reason], np.nan, self.estimate)

    @abstractmethod
    def _null(self, a: int, b: int, draws: Draws) -> Drawn | None:
        """Return the permutation law of the statistic, or None where the t law is enough or rows are not known."""

    @abstractmethod
    def _warning(self, a: int, b: int, null: Drawn | None) -> tuple[str, ...]:
        """Say where the test is known to be less reliable and the data are there."""

    def _group(self, k: int) -> Cells:
        return Cells(*(part[k] for part in self._columns()))

    def pair(self, a: int, b: int) -> Pair:
        """Return two groups' values in the strata that have both."""
        one, two = self._group(a), self._group(b)
        weight, _, _ = _parts(one, two)
        use = np.flatnonzero(weight > 0)
        return Pair(use, weight[use], one.value[use], two.value[use], one.size[use], two.size[use])

    def coverage(self, a: int, b: int) -> Coverage:
        """Count strata and rows with and without both groups."""
        n = self._rows()[[a, b]]
        both = np.isin(np.arange(n.shape[1]), self.pair(a, b).strata)
        return Coverage(
            strata=int((n > 0).any(0).sum()),
            compared=int(both.sum()),
            rows=int(n.sum()),
            rows_compared=int(n[:, both].sum()),
        )

    @abstractmethod
    def _rows(self) -> FloatArray:
        """Return the rows by group and stratum, (K, S)."""

    def _freedom(self, a: int, b: int, factor: float = 1.0) -> float:
        """Return Satterthwaite's degrees of freedom; a stratum whose variance is not known has one."""
        one, two = self._group(a), self._group(b)
        weight, _, variance = _parts(one, two, factor)
        known = np.isfinite(one.variance + two.variance)
        parts = [(one.variance, one.freedom), (factor**2 * two.variance, two.freedom)]
        lost = np.where(known, sum(np.nan_to_num(v) ** 2 / np.maximum(f, 1e-9) for v, f in parts), variance**2)
        square = float((weight**4 * lost).sum())
        return float((weight**2 * variance).sum() ** 2 / square) if square > 0 else math.inf

    def _reference(self, a: int, b: int, draws: Draws, factor: float = 1.0) -> Reference:
        law = Lean(0.0, 0.0, self._freedom(a, b, factor)) if draws.method in ("auto", "limit") else None
        refuse_exact(draws)
        null = None if draws.method == "limit" else self._law_once(a, b, draws, lambda: self._null(a, b, draws))
        return Reference(law, null)

    def _statistic(self, a: int, b: int, shift: float = 0.0, factor: float = 1.0) -> float:
        return float(studentised(self._group(a), self._group(b), shift, factor))

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        statistic = self._statistic(a, b)
        if math.isnan(statistic):
            return undefined("A group with one row in the only stratum shared leaves the variance unknown.")
        reference = self._reference(a, b, draws)
        if reference.law is None and reference.null is None:
            return undefined("Only sums were available, so no permutations can be drawn; use `method='auto'`.")
        words = " and ".join(w for w, law in ((_T, reference.law), (_PERMUTED, reference.null)) if law is not None)
        words += ", the larger p-value" if reference.law is not None and reference.null is not None else ""
        warnings = self._warning(a, b, reference.null if isinstance(reference.null, Drawn) else None)
        return reference.result(statistic, draws.alternative, method=words, warnings=warnings)

    def _deviate(self, a: int, b: int, value: float, ratio: bool, draws: Draws) -> float:
        shift, factor = (0.0, value) if ratio else (value, 1.0)
        statistic = self._statistic(a, b, shift, factor)
        reference = self._reference(a, b, draws, factor)
        if math.isnan(statistic) or (reference.law is None and reference.null is None):
            return math.nan
        side = "greater" if statistic >= 0 else "less"
        far = float(-special.ndtri(min(reference.tail(statistic, side), 0.5)))
        return far if statistic >= 0 else -far

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """All differences, or ratios, whose p-value is above 1 - level."""
        if math.isnan(self._statistic(a, b)):
            return -math.inf, math.inf, "none"
        if ratio:
            if min(self.values(a, b)) <= 0:  # a ratio of values that are not above 0 has no bounds
                return -math.inf, math.inf, self._kind(draws)
            return super()._interval(a, b, level, True, draws)
        reference = self._reference(a, b, draws)
        if reference.law is None and reference.null is None:
            return -math.inf, math.inf, "none"
        low, high = reference.critical(level)
        error, gap = self._standard_error(a, b), self.difference(a, b)
        return gap - high * error, gap - low * error, self._kind(draws)

    def _kind(self, draws: Draws) -> str:
        return "stratified t"

    def _standard_error(self, a: int, b: int) -> float:
        weight, _, variance = _parts(self._group(a), self._group(b))
        return math.sqrt(float((weight**2 * variance).sum())) / float(weight.sum())

    def homogeneity(self, a: int, b: int, *, ratio: bool) -> Homogeneity | None:
        """Test that strata with at least five rows of each group have one difference, by Welch's F law."""
        one, two = self._group(a), self._group(b)
        _, gap, variance = _parts(one, two)
        rows = self._rows()[[a, b]].min(0)
        known = np.isfinite(one.variance + two.variance) & (variance > 0) & (rows >= _HOMOGENEITY_ROWS)
        if ratio or known.sum() < 2:
            return None
        gap, variance = gap[known], variance[known]
        lost = one.variance[known] ** 2 / one.freedom[known] + two.variance[known] ** 2 / two.freedom[known]
        precision = 1 / variance
        q = float((precision * (gap - precision @ gap / precision.sum()) ** 2).sum())
        p = welch_law(q, variance, variance**2 / np.maximum(lost, 1e-300) + 1)
        return Homogeneity(statistic=q, df=int(known.sum()) - 1, pvalue=p)

    def stratum_limits(
        self, a: int, b: int, strata: IntArray, level: float, *, ratio: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return limits of each stratum by Student's t; NaN for ratios and where a variance is not known."""
        one, two = (Cells(*(part[k, strata] for part in self._columns())) for k in (a, b))
        variance = one.variance + two.variance
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = one.variance**2 / one.freedom + two.variance**2 / two.freedom
            reach = -special.stdtrit(np.maximum(variance**2 / lost, 1.0), (1 - level) / 2) * np.sqrt(variance)
        gap = np.full(variance.shape, np.nan) if ratio else one.value - two.value
        return gap - reach, gap + reach

    def _columns(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        c = self.cells
        return c.value, c.variance, c.size, c.freedom

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        """By the weighted gaps of all groups from their strata's common values, in their covariance."""
        refuse_exact(draws, NO_GLOBAL)
        c = self.cells
        size = np.where(np.isfinite(c.value[members]), c.size[members], 0.0)  # (K, S)
        use = (size > 0).sum(0) > 1
        size, value = size[:, use], np.nan_to_num(c.value[members][:, use])
        variance, freedom = c.variance[members][:, use], c.freedom[members][:, use]
        # A single row's variance is taken to be that of the rows of all groups in strata where it is known.
        known = np.isfinite(variance) & (size > 0)
        if not known.any():
            return undefined("No group has two rows in a stratum that it shares, so the variance is not known.")
        spread = float((freedom * variance * size)[known].sum() / freedom[known].sum())
        variance = np.where(known, variance, np.where(size > 0, spread / np.maximum(size, 1e-300), 0.0))
        share = size / size.sum(0)
        gaps = (size * (value - (share * value).sum(0))).sum(1)
        # Each stratum's gaps are A v with A = diag(size) - size share', so their covariance is A diag(variance) A'.
        own = size**2 * variance  # (K, S)
        middle = (share**2 * variance).sum(0)
        covariance = np.diag(own.sum(1)) - (own / size.sum(0)) @ size.T - ((own / size.sum(0)) @ size.T).T
        covariance += (size * middle) @ size.T
        q, df = spread_test(gaps, covariance)
        if df < 1:
            return undefined("The values do not vary within strata.")
        lost = ((own**2 / np.maximum(freedom, 1.0)).sum(1) / own.sum(1) ** 2).max()
        p = float(special.fdtrc(df, min(1 / lost, 1e12), q / df)) if lost > 0 else float(special.chdtrc(df, q))
        return TestResult(statistic=q, pvalue=p, method="F test of all groups within strata", exact=False)
