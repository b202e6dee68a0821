"""Means of a value in K samples: Brier score, log loss, mean score, absolute error, weighted rates.

Hypothesis: two (or all) samples have one mean; their distributions may differ otherwise.
Statistic: difference of means over its standard error. With sampling weights w a mean is
sum(w v) / sum(w) and its variance is linearised, sum(w^2 (v - c)^2) / sum(w)^2, where c is the common
mean under the null ("null", the default) or the sample's own ("unpooled", Welch's form).
Reference: random permutations of the rows (v, w), [diciccio2020] sec. 2.3; all of them where there are
few; Student's t with Welch's degrees of freedom where the first Edgeworth term is negligible.

When it fails: strongly skewed values in a small sample with the larger variance. Then the statistic's
skewness differs from that of the permuted statistic and the test rejects up to twice too often; the
result carries a warning when the data show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand.inference.limits import fieller, tail_quantiles
from evenhand.inference.pvalues import TestResult, far_from_rejecting, monte_carlo
from evenhand.inference.resampling import (
    ENUMERATE,
    NO_GLOBAL,
    at_margins,
    enumerated,
    limit_result,
    permuted_sums,
    refuse_exact,
    undefined,
    welch_f,
)
from evenhand.inference.samples import Draws
from evenhand.kernels import moments
from evenhand.kernels.subsets import all_subsets, subset_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_Statistic = Callable[[FloatArray], FloatArray]

# Permutations for the quantiles of an interval: 50 lie beyond each end at 95 %.
QUANTILE_DRAWS = 1999
# Below this value of |skewness| / (6 sqrt(n)) in every sample the t law is used. The error of a one-sided
# p-value near .05 is then below .0015; in a two-sided one the two sides' errors cancel to first order, so more is
# allowed (measured for exponential values at .01: size .049).
EDGEWORTH = {"two-sided": 0.01, "greater": 0.002, "less": 0.002}
# Difference in skewness between the statistic and its permutation law above which a warning is given.
SKEW_GAP = 0.15
# |skewness| / sqrt(n) of one sample above which a warning is given whatever the spreads look like: a small sample
# that misses its long tail shows too small a spread.
SKEW_ALONE = 0.2


class MeanSamples:
    """K samples of a value, compared by their means.

    Parameters
    ----------
    value : array_like, shape (R,)
        Value of each record.
    codes : array_like of int, shape (R,)
        Sample of each record, 0 to n_groups - 1; records with other codes are left out.
    n_groups : int
        K.
    count : array_like of int, shape (R,), optional
        Rows each record stands for; 1 by default.
    weight : array_like, shape (R,), optional
        Sampling weight of each row.
    empty_reason : str
        Why a sample without rows has no value.

    Examples
    --------
    >>> samples = MeanSamples(value=[1, 2, 3, 6, 7, 8], codes=[0, 0, 0, 1, 1, 1], n_groups=2)
    >>> samples.estimate.tolist()
    [2.0, 7.0]
    >>> samples.test(0, 1, Draws()).pvalue
    0.1
    """

    def __init__(
        self,
        *,
        value: ArrayLike,
        codes: ArrayLike,
        n_groups: int,
        count: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        empty_reason: str = "has no rows",
    ) -> None:
        v = np.asarray(value, dtype=np.float64)
        g = np.asarray(codes, dtype=np.int64)
        c = np.ones(v.shape, dtype=np.int64) if count is None else np.asarray(count, dtype=np.int64)
        w = np.ones(v.shape) if weight is None else np.asarray(weight, dtype=np.float64)
        keep = (c > 0) & (g >= 0) & (g < n_groups) & (w > 0)
        self._weighted = weight is not None
        self._n_groups = n_groups
        self._empty_reason = empty_reason
        # One line per distinct (value, weight), in a fixed order: neither the order of the rows nor the
        # way repeated rows are written down can change a result.
        self._values, self._weights, self._table = moments.distinct(v[keep], w[keep], c[keep], g[keep], n_groups)
        self._sums = np.stack([self._group(k, 0.0) for k in range(n_groups)])  # (K, 6)
        self._rows_known = True

    @classmethod
    def from_moments(
        cls,
        n: ArrayLike,
        w: ArrayLike,
        ww: ArrayLike,
        wv: ArrayLike,
        wwv: ArrayLike,
        wwvv: ArrayLike,
        *,
        empty_reason: str = "has no rows",
    ) -> MeanSamples:
        """Make samples from sums over rows that stayed on an engine; only the limit law is possible.

        Parameters
        ----------
        n, w, ww, wv, wwv, wwvv : array_like, shape (K,)
            Number of rows and sums of w, w^2, w v, w^2 v, w^2 v^2 in each sample.
        empty_reason : str
            Why a sample without rows has no value.

        Returns
        -------
        MeanSamples

        Examples
        --------
        >>> MeanSamples.from_moments([2, 4], [2, 4], [2, 4], [3, 8], [3, 8], [5, 20]).estimate.tolist()
        [1.5, 2.0]
        """
        new = cls(value=[], codes=[], n_groups=len(np.asarray(n)), empty_reason=empty_reason)
        new._sums = np.stack([np.asarray(m, dtype=np.float64) for m in (n, w, ww, wv, wwv, wwvv)], axis=-1)
        new._weighted = not np.array_equal(new._sums[:, 0], new._sums[:, 2])
        new._rows_known = False
        return new

    @property
    def estimate(self) -> FloatArray:
        """Mean of each sample, NaN where it is empty."""
        return moments.mean(self._sums)

    @property
    def reason(self) -> tuple[str, ...]:
        """Why a sample has no mean."""
        return tuple("" if s[0] > 0 else self._empty_reason for s in self._sums)

    @property
    def counts(self) -> tuple[Mapping[str, float], ...]:
        """Rows of each sample, and the effective number of rows where rows are weighted."""
        out: list[Mapping[str, float]] = []
        for s in self._sums:
            row: dict[str, float] = {"rows": int(s[0])}
            if self._weighted:
                row["effective_rows"] = float(s[1] ** 2 / s[2]) if s[2] > 0 else 0.0
            out.append(row)
        return tuple(out)

    def test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Test that samples `a` and `b` have one mean."""
        return self._test(a, b, draws, 0.0, 1.0)

    def test_global(self, members: Sequence[int], draws: Draws) -> TestResult:
        """Test that all these samples have one mean, by the weighted spread of their means."""
        if any(self._sums[k, 0] == 0 for k in members):
            return undefined()
        # Groups are dealt in an order that their labels cannot change.
        order = sorted(members, key=lambda k: (*self._sums[k, :2], self.estimate[k]))
        if (
            not self._rows_known
            or draws.method == "limit"
            or (draws.method == "auto" and self._negligible(order, "two-sided"))
        ):
            return self._limit_global(order)
        refuse_exact(draws, NO_GLOBAL)
        null = draws.variance != "unpooled"
        lines, total, table = self._centred(self._values, self._weights, self._table[:, order])
        observed = np.stack([table[:, k] @ lines for k in range(len(order))])  # (K, 6)
        spread = float(moments.spread(observed, null=null))
        permuted = self._permuted(
            lines,
            total,
            table.sum(axis=0),
            draws,
            lambda sums: moments.spread(sums, null=null),
            "global",
            far_from_rejecting(spread, "greater"),
        )
        return monte_carlo(
            permuted,
            spread,
            "greater",
            method="studentised permutation test",
        )

    def interval(self, a: int, b: int, *, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Return the permutation-t interval for the difference, or Fieller's for the ratio.

        The quantiles are those of the studentised difference over permutations of the residuals, or of
        Student's t where the limit law is used.
        """
        means, (va, vb) = self.estimate[[a, b]], self._own([a, b])
        if np.isnan(means.sum() + va + vb):  # an empty sample has no value, a single row no variance
            return (math.nan, math.nan, "none") if np.isnan(means).any() else (-math.inf, math.inf, "none")
        factor = float(means[0] / means[1]) if ratio and means[1] != 0 else 1.0
        if not self._rows_known or draws.method == "limit" or self._negligible([a, b], "two-sided"):
            t = float(special.stdtrit(self._degrees(a, b, factor), 1 - (1 - level) / 2))
            ends, kind = (-t, t), "t"
        else:
            ends, kind = tail_quantiles(self._residual_null(a, b, factor, draws), level), "permutation-t"
        if not ratio:
            se, gap = math.sqrt(va + vb), float(means[0] - means[1])
            return gap - ends[1] * se, gap - ends[0] * se, kind if kind != "t" else "welch-t"
        bounds = fieller(float(means[0]), float(means[1]), float(va), float(vb), *ends)
        if self._rows_known and not (self._table[:, [a, b]].sum(axis=1) * (self._values < 0)).any():
            bounds = (max(bounds[0], 0.0), bounds[1])
        return *bounds, f"fieller-{kind}"

    def equivalence(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the larger p-value of the two one-sided tests at the margins."""

        def one(margin: float, side: Draws) -> float:
            shift, factor = (0.0, margin) if ratio else (margin, 1.0)
            return self._test(a, b, side, shift, factor).pvalue

        return at_margins(one, low, high, draws)

    def standard_error(self, a: int, b: int) -> float:
        """Return the standard error of the difference of the two means."""
        return float(np.sqrt(self._own([a, b]).sum()))

    def _test(self, a: int, b: int, draws: Draws, shift: float, factor: float) -> TestResult:
        """Test mean(a) = shift + factor * mean(b), by changing the values of b accordingly."""
        if self._sums[a, 0] == 0 or self._sums[b, 0] == 0:
            return undefined()
        if not self._rows_known or draws.method == "limit":
            return self._limit(a, b, draws, shift, factor)
        sizes = self._table[:, [a, b]].sum(axis=0)  # (2,)
        rows = int(sizes.sum())
        small = int(sizes[1] < sizes[0])  # the group that is drawn; the first when they are equal
        listed = rows < 20_000 and math.comb(rows, int(sizes[small])) * rows <= ENUMERATE
        if draws.method == "auto" and not listed and self._negligible([a, b], draws.alternative):
            return self._limit(a, b, draws, shift, factor)
        values, weights, table = self._moved(a, b, (0.0, 1.0), (shift, factor))
        lines, total, table = self._centred(values, weights, table)
        drawn = [small, 1 - small]
        sign, null = (-1.0 if small else 1.0), draws.variance != "unpooled"

        def statistic(sums: FloatArray) -> FloatArray:
            return sign * moments.studentised(sums, null=null)

        observed = float(statistic(np.stack([table[:, k] @ lines for k in drawn])))
        warnings = self._skew_warning(a, b, factor)
        if listed and draws.method in ("auto", "exact"):
            first = subset_sums(all_subsets(rows, int(sizes[small])), np.repeat(lines, total, axis=0))
            every = np.stack([first, total @ lines - first], axis=1)
            return enumerated(statistic(every), observed, draws.alternative)
        refuse_exact(draws)
        enough = far_from_rejecting(observed, draws.alternative)
        permuted = self._permuted(lines, total, sizes[drawn], draws, statistic, "pair", enough)
        return monte_carlo(
            permuted, observed, draws.alternative, method="studentised permutation test", warnings=warnings
        )

    def _permuted(
        self,
        lines: FloatArray,
        total: IntArray,
        sizes: IntArray,
        draws: Draws,
        statistic: _Statistic,
        name: str,
        enough: Callable[[FloatArray], bool] | None = None,
    ) -> FloatArray:
        """Statistic on permutations; without weights four of the six sums are known beforehand."""
        if self._weighted:
            return permuted_sums(lines, total, sizes.tolist(), draws, statistic, name, enough)

        def filled(sums: FloatArray) -> FloatArray:
            n = np.broadcast_to(sizes.astype(np.float64), sums.shape[:-1])
            return statistic(np.stack([n, n, n, sums[..., 0], sums[..., 0], sums[..., 1]], axis=-1))

        return permuted_sums(lines[:, [3, 5]], total, sizes.tolist(), draws, filled, name, enough)

    def _residual_null(self, a: int, b: int, factor: float, draws: Draws) -> FloatArray:
        """Welch's statistic over permutations of residuals around each sample's own mean."""
        means = self.estimate
        moved = self._moved(a, b, (-means[a], 1.0), (-factor * means[b], factor))
        lines, total, table = self._centred(*moved)
        sizes = table.sum(axis=0)
        small = int(sizes[1] < sizes[0])
        dealt = sizes[[small, 1 - small]]
        few = replace(draws, n_resamples=min(draws.n_resamples, QUANTILE_DRAWS))
        null = self._permuted(lines, total, dealt, few, lambda sums: moments.studentised(sums, null=False), "interval")
        return -null if small else null

    def _moved(
        self, a: int, b: int, change_a: tuple[float, float], change_b: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Rows of two samples, each with its values changed to shift + factor * value."""
        if change_a == change_b == (0.0, 1.0):
            return self._values, self._weights, self._table[:, [a, b]]
        parts = []
        for place, (k, (shift, factor)) in enumerate(((a, change_a), (b, change_b))):
            used = self._table[:, k] > 0
            changed = shift + factor * self._values[used]
            parts.append((changed, self._weights[used], self._table[used, k], np.full(changed.size, place)))
        v, w, c, g = (np.concatenate(column) for column in zip(*parts, strict=True))
        return moments.distinct(v, w, c, g, 2)

    @staticmethod
    def _centred(values: FloatArray, weights: FloatArray, table: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
        """Features of the rows in use around their pooled mean, and their counts in all and per group."""
        used = table.sum(axis=1) > 0
        v, w, table = values[used], weights[used], table[used]
        total = table.sum(axis=1)
        return moments.features(v, w, float(np.dot(w * total, v) / np.dot(w, total))), total, table

    def _degrees(self, a: int, b: int, factor: float) -> float:
        """Welch's degrees of freedom of the difference between a and factor times b."""
        va, vb = self._own([a, b]) * (1.0, factor**2)
        na, nb = self._effective([a, b])
        lost = va**2 / max(na - 1, 1e-9) + vb**2 / max(nb - 1, 1e-9)
        return float((va + vb) ** 2 / lost) if lost > 0 else 1.0

    def _limit(self, a: int, b: int, draws: Draws, shift: float, factor: float) -> TestResult:
        means, (va, vb) = self.estimate[[a, b]], self._own([a, b])
        vb = vb * factor**2
        gap = float(means[0] - shift - factor * means[1])
        if not va + vb > 0:
            return undefined("Student's t law needs two rows in each group, and values that vary.")
        return limit_result(
            gap / math.sqrt(va + vb),
            draws.alternative,
            method="Welch's t test",
            df=self._degrees(a, b, factor),
            warnings=self._limit_warning([a, b]),
        )

    def _limit_global(self, members: Sequence[int]) -> TestResult:
        own = self._own(members)
        if not (own > 0).all():
            return undefined("Welch's F law needs two rows in each group, and values that vary.")
        q, p = welch_f(self.estimate[list(members)], own, self._effective(members))
        return TestResult(
            statistic=q,
            pvalue=p,
            method="Welch's F test",
            exact=False,
            pvalue_low=p,
            pvalue_high=p,
            warnings=self._limit_warning(members),
        )

    def _own(self, members: Sequence[int]) -> FloatArray:
        """Linearised variance of each mean around itself, NaN with fewer than two rows."""
        if not self._rows_known:
            return moments.variance(self._sums[list(members)])
        return np.array([moments.variance(self._group(k, float(self.estimate[k]))) for k in members])

    def _group(self, k: int, centre: float) -> FloatArray:
        return moments.group_sums(self._values, self._weights, self._table[:, k], centre)

    def _effective(self, members: Sequence[int]) -> FloatArray:
        sums = self._sums[list(members)]
        return np.asarray(sums[:, 1] ** 2 / sums[:, 2])

    def _third(self, k: int) -> tuple[float, float, float]:
        """Variance and third central moment of one row's share of the mean, and the effective rows."""
        c, w = self._table[:, k], self._weights
        n = float(self._effective([k])[0])
        residual = w * (self._values - self.estimate[k])
        mean_weight = np.dot(c, w) / c.sum()
        residual = residual / mean_weight
        return float(np.dot(c, residual**2) / c.sum()), float(np.dot(c, residual**3) / c.sum()), n

    def _negligible(self, members: Sequence[int], alternative: str) -> bool:
        """Whether the first Edgeworth term of every sample is too small to matter."""
        for k in members:
            second, third, n = self._third(k)
            if n < 30 or second <= 0 or abs(third) / second**1.5 / (6 * math.sqrt(n)) > EDGEWORTH[alternative]:
                return False
        return True

    def _skew_warning(self, a: int, b: int, factor: float) -> tuple[str, ...]:
        """Warn when the statistic is much more skewed, or skewed otherwise, than permuted statistics."""
        one, two = self._third(a), self._third(b)
        lean = max(
            (abs(third) / second**1.5 / math.sqrt(n) for second, third, n in (one, two) if second > 0), default=0.0
        )
        if moments.skew_gap(one, two, factor) <= SKEW_GAP and lean <= SKEW_ALONE:
            return ()
        return (
            "The values are strongly skewed in a small group: when the groups' spreads differ, this test may reject "
            "more than twice as often as stated.",
        )

    def _limit_warning(self, members: Sequence[int]) -> tuple[str, ...]:
        if self._rows_known:
            return ()
        if self._effective(members).min() < 1000:
            return ("Only sums were available, so the normal limit was used on a group of fewer than 1000 rows.",)
        return ()
