"""Tests on rates: successes over trials inside a denominator. Exact in small samples, without random draws.

Two rates are compared by one family of tests (`rates.curves`): it gives the p-value of equality, of any
difference or ratio, and the interval. Given which rows are in the denominator, it holds for the *weak* null, whatever
the groups' base rates. On request labels are permuted inside the denominator instead: the count of successes in one
group is then hypergeometric, and its tails are summed (`rates.conditional`). Three groups and more are always
tested so.

F1 is 2 J / (1 + J), where J = true positives / rows with outcome 1 or decision 1 is such a rate: equal F1 is
equal J, and the same tests apply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.inference.count_functions import Rate, f1_limits
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.mover import mover_equivalence
from evenhand.inference.permutations import not_computable, permutation_test
from evenhand.inference.pvalues import TestResult
from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.inference.rates.curves import Curve, curve_of
from evenhand.inference.rates.equality import equality_pvalue, exact_sizes, smallest_pvalue
from evenhand.inference.rates.equivalence import EXACT_TRIALS, exact_equivalence
from evenhand.inference.samples import Draws

# K x 2 tables are cheap: list more of them than of general tables.
_GLOBAL_LIMIT = 20_000

_TAILS = {
    "two-sided": "tables with an absolute difference of rates at least the observed one",
    "greater": "tables with a difference of rates at least the observed one",
    "less": "tables with a difference of rates at most the observed one",
}

_UNCONDITIONAL = (
    "exact unconditional test: all tables at least as extreme, ordered by their conditional mid-p value, at the common "
    "rate where they are most probable"
)
_LARGE = "conditional mid-p value (hypergeometric sum, ties counted half)"


class RateSamples:
    """K groups and a rate: cells of a numerator over cells of a denominator.

    Parameters
    ----------
    table : array_like of int, shape (K, C)
        Counts, groups by cells; see `TableSamples`.
    numerator, denominator : sequence of int
        The cells counted; the numerator's are among the denominator's.
    transform : {"identity", "f1"} or None
        "f1" reports 2 J / (1 + J) of the rate J.
    outcome : array_like of int, shape (C,), optional
        The outcome of each cell, for permutations within outcome.
    empty_reason : str
        Why a group with an empty denominator has no value, as the end of a sentence.

    Examples
    --------
    >>> samples = RateSamples([[90, 10, 12, 28], [50, 5, 4, 36]], numerator=[2], denominator=[2, 3])
    >>> samples.estimate.tolist()
    [0.3, 0.1]
    >>> result = samples.test(0, 1, Draws())
    >>> round(result.pvalue, 4), result.exact
    (0.033, True)
    """

    def __init__(
        self,
        table: ArrayLike,
        *,
        numerator: Sequence[int],
        denominator: Sequence[int],
        transform: str | None = None,
        outcome: ArrayLike | None = None,
        empty_reason: str = "has no rows in the denominator",
    ) -> None:
        if transform not in (None, "identity", "f1"):
            raise UsageError(f"`transform` must be identity or f1; got `{transform}`.")
        if not set(numerator) <= set(denominator):
            raise UsageError(f"The numerator's cells {list(numerator)} must be among the denominator's.")
        self._f1 = transform == "f1"
        self._form = Rate(tuple(numerator), tuple(denominator))
        self._tables = TableSamples(table, self._form, outcome=outcome, empty_reason=empty_reason)
        whole = self._tables.table
        self.successes: IntArray = whole[:, list(numerator)].sum(1)  # (K,)
        self.trials: IntArray = whole[:, list(denominator)].sum(1)  # (K,)
        self.rows: IntArray = whole.sum(1)  # (K,)
        self.empty_reason = empty_reason
        self._estimate = self._shown(self._tables.estimate)

    @classmethod
    def from_counts(
        cls,
        numerator: ArrayLike,
        denominator: ArrayLike,
        rows: ArrayLike | None = None,
        *,
        transform: str | None = None,
        empty_reason: str = "has no rows in the denominator",
    ) -> RateSamples:
        """Make samples from counts of successes, trials and rows instead of a table of cells.

        Parameters
        ----------
        numerator, denominator, rows : array_like of int, shape (K,)
            Successes, trials, and all rows (by default the trials). Without cells the outcome is not
            known: permuting within outcome is then permuting within the denominator.
        transform, empty_reason
            As in the class.

        Returns
        -------
        RateSamples

        Examples
        --------
        >>> RateSamples.from_counts([12, 4], [40, 40]).estimate.tolist()
        [0.3, 0.1]
        """
        x, n = np.asarray(numerator, dtype=np.int64), np.asarray(denominator, dtype=np.int64)
        everyone = n if rows is None else np.asarray(rows, dtype=np.int64)
        return cls(
            np.stack([x, n - x, everyone - n], 1),
            numerator=(0,),
            denominator=(0, 1),
            transform=transform,
            outcome=(0, 0, 1),
            empty_reason=empty_reason,
        )

    def _shown(self, rate: FloatArray) -> FloatArray:
        return 2 * rate / (1 + rate) if self._f1 else rate

    @property
    def estimate(self) -> FloatArray:
        """The value of each group; NaN where the denominator is empty."""
        return self._estimate

    @property
    def reason(self) -> tuple[str, ...]:
        """Empty, or why a group has no value."""
        return tuple("" if n else self.empty_reason for n in self.trials)

    @property
    def counts(self) -> tuple[Mapping[str, float], ...]:
        """Rows, denominator and numerator of each group."""
        return tuple(
            {"rows": int(r), "denominator": int(n), "numerator": int(x)}
            for r, n, x in zip(self.rows, self.trials, self.successes, strict=True)
        )

    @property
    def transformed(self) -> bool:
        """Whether the value shown is F1 and not the rate itself."""
        return self._f1

    def _by_tables(self, draws: Draws) -> bool:
        """Whether the request is for the permutations of the paper and not for the exact test."""
        if draws.variance in ("unpooled", "none") or draws.method == "limit":
            return True
        inside = self._tables.outcome[list(self._form.denominator)]
        apart = {
            "all": len(set(self._form.denominator)) < self._tables.table.shape[1],
            "outcome": len(set(inside.tolist())) > 1
            or bool(np.isin(self._tables.outcome, inside).sum() > len(set(self._form.denominator))),
        }
        return bool(apart.get(draws.permute, False))

    def test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Test that groups `a` and `b` have one rate.

        Parameters
        ----------
        a, b : int
            Groups.
        draws : Draws
            "auto" is the unconditional test that the interval inverts. "exact", `midp`, or a choice of what to permute
            asks for permutations instead; inside the denominator their hypergeometric tails are summed.

        Returns
        -------
        TestResult

        Examples
        --------
        >>> tea = RateSamples.from_counts([3, 1], [4, 4])
        >>> round(tea.test(0, 1, Draws(alternative="greater")).pvalue, 4)
        0.1445
        """
        if not (self.trials[a] and self.trials[b]):
            return not_computable(self.empty_reason)
        if self._by_tables(draws):
            return self._tables.test(a, b, draws)
        x, n = self.successes[[a, b]], self.trials[[a, b]]
        pair = np.stack([x, n - x], 1)
        if draws.method == "permutation":
            return permutation_test(
                pair,
                np.zeros(2, dtype=np.int64),
                lambda tables: Rate((0,), (0, 1)).statistic(tables, "null"),
                draws,
                words=f"labels permuted within the denominator; {_TAILS[draws.alternative]}",
                alternative=draws.alternative,
            )
        conditional = draws.method == "exact" or draws.midp or draws.permute != "auto"
        counts, trials = (int(x[0]), int(x[1])), (int(n[0]), int(n[1]))
        if conditional:
            p, floor = exact_pvalue(counts, trials, draws.alternative, midp=draws.midp)
            exact, words = True, "exact permutation within the denominator (hypergeometric sum); "
            words += _TAILS[draws.alternative] + (", ties counted half (mid-p)" if draws.midp else "")
        else:
            p, exact = equality_pvalue(counts, trials, draws.alternative)
            floor = smallest_pvalue(min(trials), max(trials))
            words = _UNCONDITIONAL if exact else _LARGE
        warnings: tuple[str, ...] = ()
        if floor > 0.05:
            whose = "counts" if conditional else "sizes"
            warnings = (f"With these {whose} no result could give a p-value below {floor:.3g}.",)
        return TestResult(
            statistic=float(Rate((0,), (0, 1)).statistic(pair.astype(np.float64), "null")),
            pvalue=p,
            method=words,
            exact=exact,
            floor=floor,
            pvalue_low=p,
            pvalue_high=p,
            warnings=warnings,
        )

    def test_global(self, members: Sequence[int], draws: Draws) -> TestResult:
        """Test that all these groups have one rate, by Pearson's chi-square within the denominator.

        Parameters
        ----------
        members : sequence of int
            Groups.
        draws : Draws
            "auto" lists all tables when they are few and draws them at random otherwise.

        Returns
        -------
        TestResult

        Examples
        --------
        >>> RateSamples.from_counts([3, 1, 1], [4, 4, 4]).test_global([0, 1, 2], Draws()).exact
        True
        """
        chosen = list(members)
        if len(chosen) < 2:
            return not_computable("fewer than two groups")
        if not self.trials[chosen].all():
            return not_computable(self.empty_reason)
        if self._by_tables(draws):
            return self._tables.test_global(chosen, draws)
        if len(chosen) == 2 and draws.method != "permutation":
            pair = self.test(chosen[0], chosen[1], replace(draws, alternative="two-sided"))
            return replace(pair, statistic=pair.statistic**2)
        x, n = self.successes[chosen], self.trials[chosen]
        share = x.sum() / n.sum()
        scale = n * share * (1 - share)

        def chi_square(tables: FloatArray) -> FloatArray:
            gap = tables[..., 0] - n * share
            return np.asarray((gap * gap / np.where(scale > 0, scale, 1.0)).sum(-1))

        return permutation_test(
            np.stack([x, n - x], 1),
            np.zeros(2, dtype=np.int64),
            chi_square,
            draws,
            words="labels permuted within the denominator, Pearson chi-square at least the observed",
            alternative="greater",
            limit=_GLOBAL_LIMIT,
        )

    def _pair(self, a: int, b: int) -> FloatArray:
        return self._tables.table[[a, b]].astype(np.float64)

    def interval(self, a: int, b: int, *, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Return low, high and kind of the interval for value a minus b (or a over b).

        Parameters
        ----------
        a, b : int
            Groups.
        level : float
            Nominal coverage.
        ratio : bool
            Whether the ratio is wanted.
        draws : Draws
            Not used.

        Returns
        -------
        low, high : float
        kind : str
            "exact", or "likelihood-root" where the samples are too large for it.

        Examples
        --------
        >>> low, high, kind = RateSamples.from_counts([56, 48], [70, 80]).interval(
        ...     0, 1, level=0.95, ratio=False, draws=Draws())
        >>> round(low, 3), round(high, 3), kind
        (0.051, 0.341, 'exact')
        """
        if not (self.trials[a] and self.trials[b]):
            return math.nan, math.nan, "none"
        kind = "exact" if exact_sizes(int(self.trials[a]), int(self.trials[b])) else "likelihood-root"
        return *self._curve(a, b, ratio=ratio).interval(level), kind

    def _curve(self, a: int, b: int, *, ratio: bool) -> Curve:
        x, n = self.successes[[a, b]].tolist(), self.trials[[a, b]].tolist()
        return curve_of((x[0], x[1]), (n[0], n[1]), ratio=ratio, f1=self._f1)

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "the difference (or ratio) lies between low and high".

        Parameters
        ----------
        a, b : int
            Groups.
        low, high : float
            Margins.
        ratio : bool
            Whether they bound the ratio.
        draws : Draws
            Not used.

        Returns
        -------
        float
            1 inside, outside the two-sided p-value of the nearest end.

        Examples
        --------
        >>> samples = RateSamples.from_counts([60, 20], [100, 100])
        >>> round(samples.beyond(0, 1, low=-0.2, high=0.2, ratio=False, draws=Draws()), 4)
        0.0032
        """
        if not (self.trials[a] and self.trials[b]):
            return math.nan
        curve = self._curve(a, b, ratio=ratio)
        estimate = curve.estimate
        if math.isnan(estimate) or low <= estimate <= high:
            return 1.0
        return curve.pvalue(low if estimate < low else high)

    def equivalence(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "the difference (or ratio) lies outside (low, high)".

        Parameters
        ----------
        a, b : int
            Groups.
        low, high : float
            Margins.
        ratio : bool
            Whether they bound the ratio.
        draws : Draws
            Not used.

        Returns
        -------
        float
            The larger of two one-sided p-values: exact up to 500 trials in the smaller group, by the score test
            (for F1 by the interval) beyond.

        Examples
        --------
        >>> samples = RateSamples.from_counts([500, 500], [1000, 1000])
        >>> round(samples.equivalence(0, 1, low=-0.05, high=0.05, ratio=False, draws=Draws()), 4)
        0.0126
        """
        if not (self.trials[a] and self.trials[b]):
            return math.nan
        x, n = self.successes[[a, b]].tolist(), self.trials[[a, b]].tolist()
        if min(n) <= EXACT_TRIALS:
            return exact_equivalence((x[0], x[1]), (n[0], n[1]), low, high, ratio=ratio, f1=self._f1)
        if not self._f1:
            return self._form.equivalence(self._pair(a, b), low, high, ratio=ratio)
        limits = f1_limits(self.successes[[a, b]].astype(float), self.trials[[a, b]].astype(float))
        first, second = float(self._estimate[a]), float(self._estimate[b])
        return mover_equivalence(first, second, limits, low, high, ratio=ratio)

    def standard_error(self, a: int, b: int) -> float:
        """Return the pooled standard error of the difference.

        Parameters
        ----------
        a, b : int
            Groups.

        Returns
        -------
        float

        Examples
        --------
        >>> round(RateSamples.from_counts([50, 50], [100, 100]).standard_error(0, 1), 4)
        0.0707
        """
        if not (self.trials[a] and self.trials[b]):
            return math.nan
        error = self._form.standard_error(self._pair(a, b))
        if not self._f1:
            return error
        share = float(self.successes[[a, b]].sum() / self.trials[[a, b]].sum())
        return error * 2 / (1 + share) ** 2
