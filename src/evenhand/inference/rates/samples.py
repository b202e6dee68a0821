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
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.inference.count_functions import Rate, f1_limits
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.mover import mover_equivalence
from evenhand.inference.permutations import permutation_test
from evenhand.inference.pvalues import TestResult
from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.inference.rates.curves import Curve, curve_of
from evenhand.inference.rates.equality import equality_pvalue, exact_sizes, smallest_pvalue
from evenhand.inference.rates.equivalence import EXACT_TRIALS, exact_equivalence
from evenhand.inference.samples import Draws, Samples

# K x 2 tables are cheap: list more of them than of general tables.
_GLOBAL_LIMIT = 20_000

_TAILS = {
    "two-sided": "tables with an absolute difference of rates at least the observed one",
    "greater": "tables with a difference of rates at least the observed one",
    "less": "tables with a difference of rates at most the observed one",
}

_ONE_STRATUM = np.zeros(2, dtype=np.int64)

_UNCONDITIONAL = (
    "exact unconditional test: all tables at least as extreme, ordered by their conditional mid-p value, at the common "
    "rate where they are most probable"
)
_LARGE = "conditional mid-p value (hypergeometric sum, ties counted half)"


class RateSamples(Samples):
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
    given_total : bool
        Whether the number of all successes is fixed beforehand, as that of scores above the median: tests of equality
        are then conditional on it.

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
        given_total: bool = False,
    ) -> None:
        if transform not in (None, "identity", "f1"):
            raise UsageError(f"`transform` must be identity or f1; got `{transform}`.")
        if not set(numerator) <= set(denominator):
            raise UsageError(f"The numerator's cells {list(numerator)} must be among the denominator's.")
        self.given_total = given_total
        self.transformed = transform == "f1"  # whether the value shown is F1 and not the rate itself
        self._form = Rate(tuple(numerator), tuple(denominator))
        self._tables = TableSamples(table, self._form, outcome=outcome, empty_reason=empty_reason)
        whole = self._tables.table
        self.successes: IntArray = whole[:, list(numerator)].sum(1)  # (K,)
        self.trials: IntArray = whole[:, list(denominator)].sum(1)  # (K,)
        rate = self._tables.estimate
        self.estimate = 2 * rate / (1 + rate) if self.transformed else rate
        self.reason = tuple("" if n else empty_reason for n in self.trials)
        sizes = zip(whole.sum(1).tolist(), self.trials.tolist(), self.successes.tolist(), strict=True)
        self.counts = tuple({"rows": r, "denominator": n, "numerator": x} for r, n, x in sizes)

    @classmethod
    def from_counts(
        cls, numerator: ArrayLike, denominator: ArrayLike, rows: ArrayLike | None = None, *, given_total: bool = False
    ) -> RateSamples:
        """Make samples from counts of successes, trials and rows instead of a table of cells.

        Parameters
        ----------
        numerator, denominator, rows : array_like of int, shape (K,)
            Successes, trials, and all rows (by default the trials). Without cells the outcome is not
            known: permuting within outcome is then permuting within the denominator.
        given_total
            As in the class.

        Examples
        --------
        >>> RateSamples.from_counts([12, 4], [40, 40]).estimate.tolist()
        [0.3, 0.1]
        """
        x, n = np.asarray(numerator, dtype=np.int64), np.asarray(denominator, dtype=np.int64)
        everyone = n if rows is None else np.asarray(rows, dtype=np.int64)
        table = np.stack([x, n - x, everyone - n], 1)
        return cls(table, numerator=(0,), denominator=(0, 1), outcome=(0, 0, 1), given_total=given_total)

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

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Make the unconditional test that the interval inverts, or on request a permutation test.

        "exact", `midp`, or a choice of what to permute asks for permutations; inside the denominator their
        hypergeometric tails are summed.
        """
        if self._by_tables(draws):
            return self._tables.test(a, b, draws)
        x, n = self.successes[[a, b]], self.trials[[a, b]]
        pair = np.stack([x, n - x], 1)
        if draws.method == "permutation":
            return permutation_test(
                pair,
                _ONE_STRATUM,
                lambda tables: Rate((0,), (0, 1)).statistic(tables, "null"),
                draws,
                words=f"labels permuted within the denominator; {_TAILS[draws.alternative]}",
                alternative=draws.alternative,
            )
        conditional = self.given_total or draws.method == "exact" or draws.midp or draws.permute != "auto"
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
            warnings=warnings,
        )

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        """By Pearson's chi-square within the denominator."""
        if self._by_tables(draws):
            return self._tables.test_global(members, draws)
        if len(members) == 2 and draws.method != "permutation":
            pair = self.test(members[0], members[1], replace(draws, alternative="two-sided"))
            return replace(pair, statistic=pair.statistic**2)
        x, n = self.successes[members], self.trials[members]
        share = x.sum() / n.sum()
        scale = n * share * (1 - share)

        def chi_square(tables: FloatArray) -> FloatArray:
            gap = tables[..., 0] - n * share
            return np.asarray((gap * gap / np.where(scale > 0, scale, 1.0)).sum(-1))

        return permutation_test(
            np.stack([x, n - x], 1),
            _ONE_STRATUM,
            chi_square,
            draws,
            words="labels permuted within the denominator, Pearson chi-square at least the observed",
            alternative="greater",
            limit=_GLOBAL_LIMIT,
        )

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        kind = "exact" if exact_sizes(int(self.trials[a]), int(self.trials[b])) else "likelihood-root"
        return *self._curve(a, b, ratio=ratio).interval(level), kind

    def _curve(self, a: int, b: int, *, ratio: bool) -> Curve:
        x, n = self.successes[[a, b]].tolist(), self.trials[[a, b]].tolist()
        form = {"ratio": ratio, "f1": self.transformed, "given_total": self.given_total}
        return curve_of((x[0], x[1]), (n[0], n[1]), **form)

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "it lies in [low, high]": two-sided at the nearest end, 1 inside."""
        if self._missing(a, b):
            return math.nan
        curve = self._curve(a, b, ratio=ratio)
        estimate = curve.estimate
        if math.isnan(estimate) or low <= estimate <= high:
            return 1.0
        return curve.pvalue(low if estimate < low else high)

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Exact up to 500 trials in the smaller group, by the score test (for F1 by the interval) beyond."""
        x, n = self.successes[[a, b]].tolist(), self.trials[[a, b]].tolist()
        if min(n) <= EXACT_TRIALS:
            return exact_equivalence((x[0], x[1]), (n[0], n[1]), low, high, ratio=ratio, f1=self.transformed)
        if not self.transformed:
            return self._tables.equivalence(a, b, low=low, high=high, ratio=ratio, draws=draws)
        limits = f1_limits(self.successes[[a, b]].astype(float), self.trials[[a, b]].astype(float))
        return mover_equivalence(limits, low, high, ratio=ratio)

    def _standard_error(self, a: int, b: int) -> float:
        error = self._tables.standard_error(a, b)
        if not self.transformed:
            return error
        share = float(self.successes[[a, b]].sum() / self.trials[[a, b]].sum())
        return error * 2 / (1 + share) ** 2
