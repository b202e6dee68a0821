"""Means of a value in K samples: Brier score, log loss, mean score, absolute error, weighted rates.

Hypothesis: two (or all) samples have one mean; their distributions may differ otherwise.
Statistic: difference of means over its standard error, each sample's variance around its own mean (Welch). With
sampling weights w a mean is sum(w v) / sum(w) and its variance is linearised, sum(w^2 (v - m)^2) / sum(w)^2.
Reference: two laws, of which the larger p-value counts. Student's t corrected for skewness and for not knowing it
well (`evenhand.inference.skewed_student`) holds when the samples' distributions differ; random permutations of the rows
(v, w), [diciccio2020] sec. 2.3, hold when they are equal, also when a small sample missed a rare large value. They
are left out when the moments of all rows together, which do not depend on who belongs to which sample, say that
the first law is enough. Intervals, equivalence and margins ask the same two laws. In the test of all samples only the
rows of those for which it is not are drawn one by one; the sums of the others come from their own normal limit.

When it fails: a long tail that a small sample missed and that the other sample does not have. The result carries a
warning, with the size that was measured, when the rows are so skewed that this matters. The test of all samples takes
the worst of three: no lean, each sample's own, one shape for all. With six exponential, lognormal or gamma samples of
25 to 150 rows it was measured to reject at .020 to .029 (.05) and at most .005 (.01); with one lognormal sample of 30
rows beside three normal ones of 80 at .045 (.05), .011 (.01) and .002 (.001).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.limits import crossing
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.reference import Drawn, Listed, Reference
from evenhand.inference.resampling import ENUMERATE, NO_GLOBAL, dealt_sums, refuse_exact, welch_law
from evenhand.inference.samples import Draws, MarginSamples, coded_rows, laws_to_keep
from evenhand.inference.skewed_student import Lean, Shape, laws_of, lean_of, straight_spread, tail_missed
from evenhand.kernels.counts import row_sums
from evenhand.kernels.counts.deals import all_subsets, subset_sums

_Statistic = Callable[[FloatArray], FloatArray]

# Permutations are left out when, with the moments of all rows together, skewness / sqrt(n) and kurtosis / n of the
# smallest sample are at most these: the smallest sample then holds a hundred or more rows of the longest tail.
CALM_SKEWNESS, CALM_KURTOSIS = 0.1, 0.02
# Largest possible lean of two groups' statistic above which a warning is given, and a stronger one. Exponential rows,
# 30 in each group, one group three times as wide (lean .37): .0017 at .001; lognormal rows (lean 1.1): .0024 to .004.
SKEWED, VERY_SKEWED = 0.3, 0.6
BOTH = "skewness-corrected t test and studentised permutation test, the larger p-value"
PERMUTED = "studentised permutation test"


class MeanSamples(MarginSamples):
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
    >>> samples.test(0, 1, Draws(method="exact")).pvalue
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
        g, c, w, keep = coded_rows(codes, n_groups, count, weight)
        # One line per distinct (value, weight), in a fixed order: neither the order of the rows nor the
        # way repeated rows are written down can change a result.
        self._values, self._weights, self._table = row_sums.distinct(v[keep], w[keep], c[keep], g[keep], n_groups)
        self._rows_known = True
        self._shapes: dict[int, Shape] = {}
        self._most_laws = laws_to_keep(self._values.size)
        self._summarise(np.stack([self._group(k, 0.0) for k in range(n_groups)]), weight is not None, empty_reason)

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

        Examples
        --------
        >>> MeanSamples.from_moments([2, 4], [2, 4], [2, 4], [3, 8], [3, 8], [5, 20]).estimate.tolist()
        [1.5, 2.0]
        """
        sums = np.stack([np.asarray(m, dtype=np.float64) for m in (n, w, ww, wv, wwv, wwvv)], axis=-1)
        new = cls(value=[], codes=[], n_groups=len(sums))
        new._rows_known = False
        new._summarise(sums, not np.array_equal(sums[:, 0], sums[:, 2]), empty_reason)
        return new

    def _summarise(self, sums: FloatArray, weighted: bool, empty_reason: str) -> None:
        """Keep the sums (K, 6) and what they say of each sample."""
        self._sums, self._weighted = sums, weighted
        self.estimate = row_sums.mean(sums)
        self.reason = tuple("" if s[0] > 0 else empty_reason for s in sums)
        worth = [{"effective_rows": float(s[1] ** 2 / s[2]) if s[2] > 0 else 0.0} if weighted else {} for s in sums]
        self.counts = tuple({"rows": int(s[0]), **more} for s, more in zip(sums, worth, strict=True))

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        reference = self._reference(a, b, draws)
        statistic = self._statistic(a, b)
        if math.isnan(statistic) and self._rows_known:
            # A sample of one row: permuted with the variance around the common mean.
            statistic, null = self._single(a, b, draws)
            reference = Reference(None, null)
        if reference.law is None and reference.null is None:
            return undefined("Student's t law needs two rows in each group, and values that vary.")
        warnings = self._warning(reference.law, [a, b])
        return reference.result(statistic, draws.alternative, method=self._words(reference, draws), warnings=warnings)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        """By the weighted spread of the means."""
        # Groups are dealt in an order that their labels cannot change.
        order = sorted(members, key=lambda k: (*self._sums[k, :2], self.estimate[k]))
        own = self._own(order)
        plain = self._plain(draws)
        varied = bool((own > 0).all())
        if plain and not varied:
            return undefined("Welch's F law needs two rows in each group, and values that vary.")
        known, warnings, words = 0.0, self._warning(None, order), "Welch's F test"
        q = math.nan
        if varied and draws.method in ("auto", "limit"):
            q = float(row_sums.weighted_spread(self.estimate[order], own))
            known = welch_law(q, own, self._effective(order))
            if not plain:
                for laws in laws_of([self._shape(k) for k in order]):
                    bent = straight_spread(self.estimate[order], own, laws)
                    known = max(known, welch_law(bent, own, self._effective(order)))
                warnings, words = self._missed(order), "skewness-corrected Welch F test"
        if plain or (draws.method == "auto" and varied and self._is_calm(order)):
            return TestResult(statistic=q, pvalue=known, method=words, exact=False, warnings=warnings)
        refuse_exact(draws, NO_GLOBAL)
        lines, total, table = self._centred(order)
        observed = np.stack([table[:, k] @ lines for k in range(len(order))])  # (K, 6)
        spread = float(row_sums.spread(observed, null=True))
        statistic = partial(row_sums.spread, null=True)
        # Sums of samples that are calm by themselves have their normal limit.
        wild = np.flatnonzero(self._effective(order) < self._calm_from(order))
        small = min(int(wild[-1]) + 1 if wild.size else 0, len(order) - 1) if draws.method == "auto" else None
        null = self._permuted(lines, total, table.sum(axis=0), draws, statistic, "global", small)
        result = Reference(None, null).result(spread, "greater", method=PERMUTED, warnings=warnings)
        if draws.method != "auto" or not varied:
            return result
        p, low, high = (max(known, x) for x in (result.pvalue, result.pvalue_low, result.pvalue_high))
        words = f"{words} and {PERMUTED}, the larger p-value"
        return replace(result, pvalue=p, pvalue_low=low, pvalue_high=high, method=words)

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """All differences, or ratios, that the test at 1 - level keeps."""
        statistic = self._statistic(a, b)
        if math.isnan(statistic):
            return -math.inf, math.inf, "none"
        reference = self._reference(a, b, draws)
        if reference.law is None and reference.null is None:
            return -math.inf, math.inf, "none"
        kind = "permutation-t" if reference.null is not None else "t" if self._plain(draws) else "skew-t"
        if not ratio:
            low, high = reference.critical(level)
            error, gap = self.standard_error(a, b), self._point(a, b, False)
            return gap - high * error, gap - low * error, "welch-t" if kind == "t" else kind
        return *self._ratio_limits(a, b, level, draws, reference), f"fieller-{kind}"

    def _standard_error(self, a: int, b: int) -> float:
        return float(np.sqrt(self._own([a, b]).sum()))

    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        shift, factor = (0.0, margin) if ratio else (margin, 1.0)
        reference = self._reference(a, b, draws, factor)
        if reference.law is None and reference.null is None:
            return math.nan
        statistic = self._statistic(a, b, shift, factor)
        return 1.0 if math.isnan(statistic) else reference.pvalue(statistic, draws.alternative)

    def _ratio_limits(self, a: int, b: int, level: float, draws: Draws, reference: Reference) -> tuple[float, float]:
        """All ratios that the test keeps; open where the denominator is not shown to differ from 0."""
        first, second = (float(v) for v in self.estimate[[a, b]])
        positive = self._rows_known and not (self._table[:, [a, b]].sum(axis=1) * (self._values < 0)).any()
        open_low = 0.0 if positive else -math.inf
        if second <= 0 or first < 0:
            return open_low, math.inf
        share = (1 - level) / 2
        fixed = (-math.inf, math.inf) if reference.null is None else reference.null.critical(share)

        def keeps(ratio: float, side: str) -> bool:
            statistic = self._statistic(a, b, 0.0, ratio)
            law = self._law(a, b, ratio, draws)
            if reference.null is not None and (statistic <= fixed[1] if side == "greater" else statistic >= fixed[0]):
                return True
            return law is not None and law.tail(statistic, side) > share

        point, far = first / second, 1e9 * max(first / second, 1.0)
        low = 0.0 if point == 0 else crossing(lambda r: keeps(r, "greater"), point, 0.0, 1.0)
        high = crossing(lambda r: keeps(r, "less"), point, far, 1.0)
        return low if low > 0 else open_low, math.inf if high >= far else high

    def _statistic(self, a: int, b: int, shift: float = 0.0, factor: float = 1.0) -> float:
        """Welch's statistic of mean(a) = shift + factor * mean(b)."""
        (first, second), (va, vb) = self.estimate[[a, b]], self._own([a, b])
        gap, spread = float(first - shift - factor * second), float(va + factor**2 * vb)
        if math.isnan(spread) or gap == 0:
            return math.nan if math.isnan(spread) else 0.0
        # A variance of exactly zero would make the statistic infinite; a relative floor keeps its order. The square of
        # a gap near the smallest number is zero itself.
        square = max(spread, 1e-14 * gap * gap)
        return gap / math.sqrt(square) if square > 0 else math.copysign(1e7, gap)

    def _plain(self, draws: Draws) -> bool:
        return not self._rows_known or draws.method == "limit"

    def _law(self, a: int, b: int, factor: float, draws: Draws) -> Lean | None:
        """Student's law of the difference between a and factor times b; None where there is no variance."""
        va, vb = self._own([a, b]) * (1.0, factor**2)
        if draws.method not in ("auto", "limit") or not va + vb > 0:
            return None
        na, nb = self._effective([a, b])
        df = float((va + vb) ** 2 / (va**2 / max(na - 1, 1e-9) + vb**2 / max(nb - 1, 1e-9)))
        if self._plain(draws):
            return Lean(0.0, 0.0, df)
        return lean_of([(self._shape(a), 1.0), (self._shape(b), -factor)], df)

    def _reference(self, a: int, b: int, draws: Draws, factor: float = 1.0) -> Reference:
        """Return the laws of the statistic; the permutation law is that of equal distributions, whatever the factor."""
        law = self._law(a, b, factor, draws)
        if self._plain(draws) or math.isnan(self._statistic(a, b)):
            return Reference(law, None)
        return Reference(law, self._law_once(a, b, draws, lambda: self._null(a, b, draws, single=False)))

    def _single(self, a: int, b: int, draws: Draws) -> tuple[float, Drawn | Listed | None]:
        null = None if self._plain(draws) else self._null(a, b, draws, single=True)
        lines, _, table = self._centred([a, b])
        observed = row_sums.studentised(np.stack([table[:, k] @ lines for k in (0, 1)]), null=True)
        return float(observed), null

    def _null(self, a: int, b: int, draws: Draws, *, single: bool) -> Drawn | Listed | None:
        """Permutation law of the statistic, or None where the rows together are calm."""
        sizes = self._table[:, [a, b]].sum(axis=0)  # (2,)
        rows = int(sizes.sum())
        small = int(sizes[1] < sizes[0])  # the group that is drawn; the first when they are equal
        listed = rows < 20_000 and math.comb(rows, int(sizes[small])) * rows <= ENUMERATE
        if draws.method == "auto" and not listed and not single and self._is_calm([a, b]):
            return None
        lines, total, _ = self._centred([a, b])

        def statistic(sums: FloatArray) -> FloatArray:
            return (-1.0 if small else 1.0) * row_sums.studentised(sums, null=single)

        if listed and draws.method in ("auto", "exact"):
            first = subset_sums(all_subsets(rows, int(sizes[small])), np.repeat(lines, total, axis=0))
            return Listed(statistic(np.stack([first, total @ lines - first], axis=1)))
        refuse_exact(draws)
        return self._permuted(lines, total, sizes[[small, 1 - small]], draws, statistic, "pair")

    def _permuted(
        self,
        lines: FloatArray,
        total: IntArray,
        sizes: IntArray,
        draws: Draws,
        statistic: _Statistic,
        name: str,
        small: int | None = None,
    ) -> Drawn:
        """Law of the statistic over permutations; without weights four of the six sums are known beforehand."""

        def filled(sums: FloatArray) -> FloatArray:
            n = np.broadcast_to(sizes.astype(np.float64), sums.shape[:-1])
            return statistic(np.stack([n, n, n, sums[..., 0], sums[..., 0], sums[..., 1]], axis=-1))

        if self._weighted:
            return dealt_sums(lines, total, sizes.tolist(), draws, statistic, name, small)
        return dealt_sums(lines[:, [3, 5]], total, sizes.tolist(), draws, filled, name, small)

    def _centred(self, members: Sequence[int]) -> tuple[FloatArray, IntArray, IntArray]:
        """Features of the samples' rows around their pooled mean, and their counts in all and per sample."""
        table = self._table[:, list(members)]
        used = table.sum(axis=1) > 0
        v, w, table = self._values[used], self._weights[used], table[used]
        total = table.sum(axis=1)
        return row_sums.features(v, w, float(np.dot(w * total, v) / np.dot(w, total))), total, table

    def _words(self, reference: Reference, draws: Draws) -> str:
        if reference.null is None:
            return "Welch's t test" if self._plain(draws) else "skewness-corrected t test"
        words = PERMUTED if reference.law is None else BOTH
        return words + (", all permutations" if isinstance(reference.null, Listed) else "")

    def _own(self, members: Sequence[int]) -> FloatArray:
        """Linearised variance of each mean around itself, NaN with fewer than two rows."""
        if not self._rows_known:
            return row_sums.variance(self._sums[list(members)])
        return np.array([self._shape(k).variance for k in members])

    def _group(self, k: int, centre: float) -> FloatArray:
        return row_sums.group_sums(self._values, self._weights, self._table[:, k], centre)

    def _effective(self, members: Sequence[int]) -> FloatArray:
        sums = self._sums[list(members)]
        return np.asarray(sums[:, 1] ** 2 / sums[:, 2])

    def _shape(self, k: int) -> Shape:
        """Moments of one row's share of the mean, and the variance of the mean."""
        if k not in self._shapes:
            used = self._table[:, k] > 0
            c, w = self._table[used, k], self._weights[used]
            centre = float(self.estimate[k])
            residual = w * (self._values[used] - centre) / (np.dot(c, w) / max(c.sum(), 1))
            variance = float(row_sums.variance(self._group(k, centre)))
            self._shapes[k] = Shape.of(residual, c, float(self._effective([k])[0]), variance)
        return self._shapes[k]

    def _is_calm(self, members: Sequence[int]) -> bool:
        """Whether all rows together are so little skewed, for the smallest sample, that one law is enough."""
        return bool(self._effective(members).min() >= self._calm_from(members))

    def _calm_from(self, members: Sequence[int]) -> float:
        """Return the rows from which a sample of all these rows together is calm."""
        total = self._table[:, list(members)].sum(axis=1)
        centre = float(np.dot(self._weights * total, self._values) / np.dot(self._weights, total))
        residual = self._weights * (self._values - centre)
        square = residual**2
        m2, m3, m4 = (float(np.dot(total, part) / total.sum()) for part in (square, square * residual, square**2))
        if m2 <= 0:
            return math.inf
        return max(float(abs(m3) / m2**1.5 / CALM_SKEWNESS) ** 2, m4 / m2**2 / CALM_KURTOSIS)

    def _missed(self, members: Sequence[int]) -> tuple[str, ...]:
        """Warn where a group may have missed the long tail of the others."""
        if not tail_missed([self._shape(k) for k in members], SKEWED):
            return ()
        return (
            "The values are so skewed, for so few rows, that a group which hardly varies may have missed rare large "
            "values: where the groups' distributions differ, this test was measured to reject a true null as often as "
            "a group misses them, .05 of the time with 3 of them in 100 rows, at .01 and .001 too.",
        )

    def _warning(self, law: object, members: Sequence[int]) -> tuple[str, ...]:
        if not self._rows_known:
            if self._effective(members).min() < 1000:
                return ("Only sums were available, so the normal limit was used on a group of fewer than 1000 rows.",)
            return ()
        if not isinstance(law, Lean) or law.most <= SKEWED:
            return ()
        times = "twice" if law.most <= VERY_SKEWED else "four times"
        return (
            "The values are so skewed, for so few rows, that a long tail may have been missed: where the groups' "
            f"distributions differ, this test was measured to reject a true null at .001 up to {times} as often as "
            "stated, at .05 up to 1.2 times.",
        )
