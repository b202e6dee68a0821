"""Tests on values that are functions of a count table, by permuting the rows' group labels.

A permutation of labels is a draw of the table with fixed margins (`kernels.counts.permuted_tables`), so it costs
what the cells cost. Small problems are enumerated and their p-values exact for exchangeable rows.
[diciccio2020] sec. 3: the statistic is studentised, so that the test also holds, for large samples, when
only the *values* are equal. Which variance is used, and what is pooled in it: `evenhand.inference.count_functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.inference.count_functions import Average, Form, Rate
from evenhand.inference.delta_method import Function
from evenhand.inference.permutations import permutation_test
from evenhand.inference.pvalues import TestResult
from evenhand.inference.samples import Draws, Samples

_SIDES = {
    "two-sided": "absolute value at least the observed",
    "greater": "value at least the observed",
    "less": "value at most the observed",
}
_STUDENTISED = {
    "null": "studentised under the null",
    "unpooled": "studentised by the unpooled variance",
    "none": "not studentised",
}


class TableSamples(Samples):
    """K groups of rows counted in C cells, and a value that is a function of the counts.

    Parameters
    ----------
    table : array_like of int, shape (K, C)
        Counts, groups by cells. With four cells the order is decision + 2 outcome: true negatives, false
        positives, false negatives, true positives.
    value : callable or Form
        Tables (..., C) of floats to values (...). It may divide by zero: what is not finite is undefined.
        Or one of `evenhand.inference.count_functions`, which know a better variance than the delta method.
    outcome : array_like of int, shape (C,), optional
        The outcome of each cell, for permutations within outcome. By default 0, 0, 1, 1.
    empty_reason : str
        Why a group has no value, as the end of a sentence.

    Examples
    --------
    >>> table = [[40, 10, 5, 45], [70, 10, 10, 10]]
    >>> youden = lambda t: t[..., 3] / (t[..., 2] + t[..., 3]) - t[..., 1] / (t[..., 0] + t[..., 1])
    >>> samples = TableSamples(table, youden)
    >>> samples.estimate.round(3).tolist()
    [0.7, 0.375]
    >>> bool(samples.test(0, 1, Draws(n_resamples=999)).pvalue < 0.05)
    True
    """

    def __init__(
        self,
        table: ArrayLike,
        value: Callable[[FloatArray], FloatArray] | Form,
        *,
        outcome: ArrayLike | None = None,
        empty_reason: str = "lacks the rows its value needs",
    ) -> None:
        self.table: IntArray = np.array(table, dtype=np.int64)
        if self.table.ndim != 2 or (self.table.size and self.table.min() < 0):
            raise ValueError(f"`table` must be (K, C) counts of at least 0; got shape {self.table.shape}.")
        cells = self.table.shape[1]
        if outcome is None:
            outcome = np.arange(4) // 2 if cells == 4 else np.zeros(cells, dtype=np.int64)
        self.outcome: IntArray = np.asarray(outcome, dtype=np.int64)
        self.form: Form = value if isinstance(value, Form) else Function(value, self.outcome)
        self.estimate = self.form.value(self.table.astype(np.float64))
        self.reason = tuple(empty_reason if math.isnan(v) else "" for v in self.estimate)
        names = ("tn", "fp", "fn", "tp") if cells == 4 else ()
        self.counts = tuple({"rows": sum(row), **dict(zip(names, row, strict=False))} for row in self.table.tolist())

    def _strata(self, permute: str) -> tuple[IntArray, str]:
        """Return the strata of a choice and its words."""
        choice = self.form.permute if permute == "auto" else permute
        if choice == "outcome":
            return self.outcome, "labels permuted within outcome"
        if choice == "denominator" and isinstance(self.form, Rate):
            strata = np.full(self.table.shape[1], -1, dtype=np.int64)
            strata[list(self.form.denominator)] = 0
            return strata, "labels permuted within the denominator"
        if choice in ("all", "denominator"):
            return np.zeros(self.table.shape[1], dtype=np.int64), "labels permuted over all rows"
        raise UsageError(f"`permute` must be auto, denominator, outcome or all; got `{permute}`.")

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        variance = "null" if draws.variance == "auto" else draws.variance
        pair = self.table[[a, b]]
        strata, where = self._strata(draws.permute)
        if draws.method == "limit":
            z = float(self.form.statistic(pair.astype(np.float64), variance))
            tails = {"greater": special.ndtr(-z), "less": special.ndtr(z)}
            p = float(tails.get(draws.alternative, min(2 * special.ndtr(-abs(z)), 1.0)))
            return TestResult(statistic=z, pvalue=p, method="normal limit", exact=False)
        result = permutation_test(
            pair,
            strata,
            lambda tables: self.form.statistic(tables, variance),
            draws,
            words=f"{where}, {_STUDENTISED[variance]}; {_SIDES[draws.alternative]}",
            alternative=draws.alternative,
        )
        drift = float(np.median(result.null)) if result.null.size and draws.permute == "outcome" else 0.0
        warnings = list(result.warnings)
        if abs(drift) > 0.25 and not isinstance(self.form, Average):
            warnings.append(
                "Permuting within outcome does not centre this value because the groups' base rates differ: "
                "the test is one of equal decisions given the outcome, not of equal values."
            )
        if not isinstance(self.form, Rate) and self._fewest(pair) < 20:
            warnings.append(
                "A group has fewer than 20 rows with one of the outcomes. When the groups differ in more than this "
                "value, the test may reject too often: three times as often as stated was seen with 6 rows."
            )
        return replace(result, warnings=tuple(warnings))

    def _fewest(self, table: IntArray) -> int:
        """Return the smallest number of rows of one group with one outcome."""
        return min(int(table[:, self.outcome == level].sum(1).min()) for level in np.unique(self.outcome))

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        variance = "null" if draws.variance == "auto" else draws.variance
        some = self.table[members]
        strata, where = self._strata(draws.permute)
        if draws.method == "limit":
            q = float(self.form.spread(some.astype(np.float64), variance))
            p = float(special.chdtrc(len(members) - 1, q))
            return TestResult(statistic=q, pvalue=p, method="chi-square limit", exact=False)
        return permutation_test(
            some,
            strata,
            lambda tables: self.form.spread(tables, variance),
            draws,
            words=f"{where}, spread of the values {_STUDENTISED[variance]}",
            alternative="greater",
        )

    def _pair(self, a: int, b: int) -> FloatArray:
        return self.table[[a, b]].astype(np.float64)

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        return self.form.interval(self._pair(a, b), level, ratio=ratio)

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        return self.form.equivalence(self._pair(a, b), low, high, ratio=ratio)

    def _standard_error(self, a: int, b: int) -> float:
        return self.form.standard_error(self._pair(a, b))
