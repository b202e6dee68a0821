"""A weighted mean of rates with disjoint denominators, such as balanced accuracy, compared within strata.

Each rate has its own conditional difference, with its own weights, and a normal deviate for every value of it
(`strata.rates`). The deviates are squared and added at the split of the value between the rates that suits the
hypothesis best: in the limit the smallest sum is chi-square of one degree, as that of a profile likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.samples import Draws
from evenhand.inference.strata.rates import StratifiedRates
from evenhand.inference.strata.samples import Coverage, Homogeneity, Pair, StratifiedSamples, tail_of

_NO_GLOBAL = (
    "All groups at once are not compared within strata for a mean of rates. Ask for its rates one by one, such as "
    "`tpr` and `fpr`."
)


class StratifiedAverage(StratifiedSamples):
    """K groups and the mean of two rates, compared within strata.

    Parameters
    ----------
    rates : sequence of two StratifiedRates
        Of the same groups and strata; their denominators share no rows.
    weights : sequence of two float
        Above 0.

    Examples
    --------
    >>> tpr = StratifiedRates([[30, 8], [20, 5]], [[40, 20], [40, 20]])
    >>> tnr = StratifiedRates([[50, 9], [45, 9]], [[60, 20], [60, 20]])
    >>> samples = StratifiedAverage([tpr, tnr], (0.5, 0.5))
    >>> round(samples.difference(0, 1), 4)
    0.1396
    """

    def __init__(self, rates: Sequence[StratifiedRates], weights: Sequence[float]) -> None:
        self.rates, self.weights = tuple(rates), tuple(weights)
        self.estimate = np.asarray(sum(w * r.estimate for w, r in zip(weights, rates, strict=True)))
        self.reason = tuple(
            next((why for why in both if why), "") for both in zip(*(r.reason for r in rates), strict=True)
        )
        self.counts = tuple({"rows": one["rows"]} for one in rates[0].counts)

    def pair(self, a: int, b: int) -> Pair:
        """Return the strata and weights of the first rate; both rates' values count in `values`."""
        pairs = [rate.pair(a, b) for rate in self.rates]
        return min(pairs, key=lambda pair: pair.strata.size)

    def values(self, a: int, b: int) -> tuple[float, float]:
        """Return the weighted means of both groups' rates, each averaged over the strata they share."""
        both = np.array([rate.values(a, b) for rate in self.rates])
        one, two = (np.asarray(self.weights) @ both).tolist()
        return one, two

    def coverage(self, a: int, b: int) -> Coverage:
        """Count the strata and rows of the rate that is known in fewer of them."""
        return min((rate.coverage(a, b) for rate in self.rates), key=lambda known: known.compared)

    def homogeneity(self, a: int, b: int, *, ratio: bool) -> Homogeneity | None:
        """Return none: each rate has its own test."""
        return None

    def stratum_limits(
        self, a: int, b: int, strata: IntArray, level: float, *, ratio: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return none: a stratum may lack the rows of one rate."""
        return np.full(strata.size, np.nan), np.full(strata.size, np.nan)

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        deviate = self._deviate(a, b, 0.0, False, draws)
        words = "permutation tests within strata of both rates as normal deviates, added in squares at the most "
        words += "favourable differences; chi-square limit of the sum"
        return TestResult(statistic=deviate, pvalue=tail_of(deviate, draws.alternative), method=words, exact=False)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        return undefined(_NO_GLOBAL)

    def _deviate(self, a: int, b: int, value: float, ratio: bool, draws: Draws) -> float:
        if ratio:
            return math.nan
        gap = value - self.difference(a, b)
        if abs(gap) < 1e-12:
            return 0.0
        seen = [rate.difference(a, b) for rate in self.rates]

        def square(share: float) -> float:
            total = 0.0
            for rate, at, weight, part in zip(self.rates, seen, self.weights, (share, 1 - share), strict=True):
                place = at + part * gap / weight
                total += rate._deviate(a, b, place, False, draws) ** 2 if abs(place) < 1 else 1e6
            return min(total, 1e6)

        # Both deviates grow away from what was seen, so the best share of the gap lies between none and all of it.
        best = optimize.minimize_scalar(square, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-4})
        return math.copysign(math.sqrt(min(float(best.fun), square(0.0), square(1.0))), -gap)

    def _kind(self, draws: Draws) -> str:
        return "profile of stratified scores"

    def _standard_error(self, a: int, b: int) -> float:
        errors = [w * rate.standard_error(a, b) for w, rate in zip(self.weights, self.rates, strict=True)]
        return math.hypot(*errors)
