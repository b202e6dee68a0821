"""A weighted mean of rates with disjoint denominators, such as the mean of tpr and fpr, compared between two groups.

Hypothesis: the difference of the means is a given value. How the single rates differ is left open.
Test: each rate has a two-sided p-value for every difference of its own (`rates.curves`), exact in small samples and
whatever the groups' base rates. It is turned into a normal deviate. The deviates are squared and added, at the
differences of the rates that suit the hypothesis best: in the limit the smallest sum is chi-square of one degree, as
that of a profile likelihood. Where a denominator holds a few rows only and the other many, the sum is the exact test
of the rate with few rows. So the level holds there too (calibration/group.py).
Interval, equivalence and margins ask the same p-values, so none of them contradicts another.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.inference.count_functions import Average
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.limits import crossing
from evenhand.inference.pvalues import TestResult
from evenhand.inference.rates.curves import Curve, curve_of
from evenhand.inference.samples import Draws, MarginSamples

_PLACES = 65  # differences of the first rate that are tried; twice more between the best and its neighbours
_PLAIN = Draws()


class RateAverage(MarginSamples):
    """K groups and the weighted mean of two rates.

    Parameters
    ----------
    table : array_like of int, shape (K, 4)
        Counts of true negatives, false positives, false negatives, true positives.
    form : Average
        Two rates whose denominators share no cell, and their weights, both above 0.
    empty_reason : str
        Why a group without one of the rates has no value, as the end of a sentence.

    Examples
    --------
    >>> from evenhand.inference.count_functions import average_odds
    >>> samples = RateAverage([[40, 10, 5, 45], [70, 10, 10, 10]], average_odds())
    >>> samples.estimate.round(4).tolist()
    [0.55, 0.3125]
    >>> low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=Draws())
    >>> low > 0, samples.test(0, 1, Draws()).pvalue <= 0.05
    (True, True)
    """

    def __init__(self, table: ArrayLike, form: Average, *, empty_reason: str = "lacks the rows of a rate") -> None:
        self.form = form
        self.tables = TableSamples(table, form, empty_reason=empty_reason)
        self.estimate, self.reason, self.counts = self.tables.estimate, self.tables.reason, self.tables.counts

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Ask the profile, or, where permutations are asked for, permute within outcome."""
        if self._permuted(draws):
            return self.tables.test(a, b, draws)
        root = self._root(a, b, 0.0)
        return TestResult(
            statistic=root,
            pvalue=_tail(root, draws.alternative),
            method="exact p-values of both rates as normal deviates, added in squares at the most favourable "
            "differences; chi-square limit of the sum",
            exact=False,
        )

    def _permuted(self, draws: Draws) -> bool:
        asked = (draws.method, draws.permute, draws.variance, draws.midp)
        return asked != (_PLAIN.method, _PLAIN.permute, _PLAIN.variance, _PLAIN.midp)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        return self.tables.test_global(members, draws)

    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        return math.nan if ratio else _tail(self._root(a, b, margin), draws.alternative)

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        if ratio:
            return math.nan, math.nan, "none"

        def keeps(value: float) -> bool:
            return _tail(self._root(a, b, value), "two-sided") > 1 - level

        seen, far = self.difference(a, b), sum(self.form.weights)
        low, high = (crossing(keeps, seen, end, 0.0, tolerance=1e-9) for end in (-far, far))
        return low, high, "profile of exact rates"

    def _standard_error(self, a: int, b: int) -> float:
        return self.tables.standard_error(a, b)

    def _root(self, a: int, b: int, value: float) -> float:
        """Return the signed root of the smallest sum of squared deviates at a difference of the means."""
        first, second = self._curves(a, b)
        w, v = self.form.weights
        gap = value - self.difference(a, b)
        if abs(gap) < 1e-12:
            return 0.0
        # Both deviates grow away from what was seen, so the best share of the gap lies between none and all of it.
        start, stop = first.estimate, first.estimate + gap / w
        best = math.inf
        for _ in range(3):
            place = np.linspace(start, stop, _PLACES)
            rest = second.estimate + (gap - w * (place - first.estimate)) / v
            total = _squares(first, place) + _squares(second, rest)
            k = int(np.argmin(total))
            best = min(best, float(total[k]))
            start, stop = float(place[max(k - 1, 0)]), float(place[min(k + 1, _PLACES - 1)])
        return math.copysign(math.sqrt(best), -gap)

    def _curves(self, a: int, b: int) -> tuple[Curve, Curve]:
        pair = self.tables.table[[a, b]]
        curves = []
        for rate in self.form.rates:
            (x, z), (n, m) = (pair[:, list(cells)].sum(1).tolist() for cells in (rate.numerator, rate.denominator))
            curves.append(curve_of((x, z), (n, m)))
        return curves[0], curves[1]


def _squares(curve: Curve, differences: FloatArray) -> FloatArray:
    """Return the squared normal deviates of a rate's differences; infinite where they are not possible."""
    possible = np.abs(differences) <= 1 + 1e-12
    logs = curve.log_pvalues(np.clip(differences, -1.0, 1.0))
    return np.where(possible, special.ndtri_exp(np.minimum(logs, 0.0) - math.log(2)) ** 2, np.inf)


def _tail(root: float, alternative: str) -> float:
    if alternative == "two-sided":
        return min(1.0, 2 * float(special.ndtr(-abs(root))))
    return float(special.ndtr(-root if alternative == "greater" else root))
