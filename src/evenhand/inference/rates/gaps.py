"""Several rates at once: the mean of their absolute differences between two groups, such as average absolute odds.

Hypothesis: all differences are 0, which is where the mean of their absolute values is 0. That value lies at the edge
of what is possible, so no limit law of the mean itself holds there.
Test: each rate has its own test (`rates.samples`), exact given how many rows its denominator has. The denominators
share no rows, so the tests are independent, and the smallest p-value of m is turned into ``1 - (1 - smallest) ** m``.
Interval: a box, the product of the rates' intervals at the level ``level ** (1 / m)``, holds all true differences
together with the stated probability; the interval is the range of the mean of absolute values over the box. It leaves
out 0 exactly when the p-value is at most one minus its level, and it never goes below 0. Away from 0 it is wider than
it needs to be, because the box also holds its corners. Tests at a margin read the same intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from evenhand.inference.limits import crossing
from evenhand.inference.pvalues import TestResult
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws, Samples

_LEAST = math.log(1e-15)  # logarithm of the smallest p-value read off intervals


class RateGaps(Samples):
    """K groups and several rates whose denominators share no rows, compared by the mean absolute difference.

    Parameters
    ----------
    parts : mapping of str to RateSamples
        The rates by their names; of the same groups.
    empty_reason : str
        Why a group without one of the rates has no value, as the end of a sentence.

    Examples
    --------
    >>> tpr = RateSamples.from_counts([30, 20], [40, 40], [100, 100])
    >>> fpr = RateSamples.from_counts([6, 12], [60, 60], [100, 100])
    >>> samples = RateGaps({"tpr": tpr, "fpr": fpr})
    >>> round(samples.difference(0, 1), 4)  # (.25 + .1) / 2
    0.175
    >>> low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=Draws())
    >>> low > 0, samples.test(0, 1, Draws()).pvalue <= 0.05
    (True, True)
    """

    def __init__(self, parts: Mapping[str, RateSamples], *, empty_reason: str = "lacks the rows of a rate") -> None:
        self.parts = dict(parts)
        self.estimate = np.mean([part.estimate for part in self.parts.values()], axis=0)
        self.reason = tuple(empty_reason if math.isnan(value) else "" for value in self.estimate)
        self.counts = tuple(
            {"rows": one[0]["rows"]}
            | {
                f"{name}_{word}": own[word]
                for name, own in zip(self.parts, one, strict=True)
                for word in ("denominator", "numerator")
            }
            for one in zip(*(part.counts for part in self.parts.values()), strict=True)
        )

    def difference(self, a: int, b: int) -> float:
        """Return the mean of the rates' absolute differences."""
        return float(np.mean([abs(part.difference(a, b)) for part in self.parts.values()]))

    def farthest(self, members: list[int]) -> tuple[int, int]:
        """Return the two of these groups that differ most."""
        return max(combinations(members, 2), key=lambda pair: self.difference(*pair))

    def share(self, level: float) -> float:
        """Return the level of each rate's interval at which all of them together hold with this one."""
        return float(level ** (1 / len(self.parts)))

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        return self._smallest([part.test(a, b, _apart(draws, name)) for name, part in self.parts.items()])

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        return self._smallest([part.test_global(members, _apart(draws, name)) for name, part in self.parts.items()])

    def _smallest(self, tests: list[TestResult]) -> TestResult:
        """Return the smallest of independent p-values, corrected for being the smallest."""
        best = min(tests, key=lambda test: test.pvalue)

        def together(p: float) -> float:
            return float(-math.expm1(len(tests) * math.log1p(-p))) if p < 1 else 1.0

        names = " and ".join(f"`{name}`" for name in self.parts)
        return replace(
            best,
            pvalue=together(best.pvalue),
            pvalue_low=together(best.pvalue_low),
            pvalue_high=together(best.pvalue_high),
            floor=together(min(test.floor for test in tests)),
            exact=all(test.exact for test in tests),
            method=f"smallest p-value of independent tests of {names}, corrected for being the smallest; {best.method}",
            warnings=tuple(dict.fromkeys(text for test in tests for text in test.warnings)),
        )

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        if ratio:
            return math.nan, math.nan, "none"
        boxes = [part.interval(a, b, level=self.share(level), ratio=False, draws=draws) for part in self.parts.values()]
        low = float(np.mean([max(0.0, start, -end) for start, end, _ in boxes]))
        high = float(np.mean([max(abs(start), abs(end)) for start, end, _ in boxes]))
        kinds = " and ".join(dict.fromkeys(kind for *_, kind in boxes))
        return low, high, f"box of {kinds} intervals"

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value at which the interval, both of whose sides err so often, lies below the margin."""

        def reaches(log_p: float) -> bool:
            level = -math.expm1(log_p + math.log(2))
            return bool(self._interval(a, b, level, ratio, draws)[1] >= high)

        if ratio or math.isclose(low, high):
            return math.nan
        most = math.log(0.5) - 1e-9
        if reaches(most):
            return 1.0
        return math.exp(crossing(lambda log_p: not reaches(log_p), most, _LEAST, tolerance=1e-9))

    def _standard_error(self, a: int, b: int) -> float:
        """Return none: the error where nothing differs is not that of a normal value."""
        return math.nan


def _apart(draws: Draws, name: str) -> Draws:
    """Give each rate its own random numbers, so that drawn p-values are independent."""
    return replace(draws, name=f"{draws.name}/{name}")
