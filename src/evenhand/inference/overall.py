"""One sample against everybody, itself included: the comparison with the rest, written in other units.

The value of everybody is m = s p + (1 - s) q, where p is the group's, q that of the rest and s the group's share. So
p - m = (1 - s)(p - q), and p / m = r / (s r + 1 - s) with r = p / q: both are rising functions of the comparison with
the rest, which is independent of the group. Limits, margins and p-values are those of the rest at the value that
corresponds. The shares are taken as given.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand.inference.pvalues import TestResult
from evenhand.inference.samples import Draws, Samples

_FAR = 1e9  # a ratio to the rest that nothing reaches, where everybody's value could not be so low


class OverallSamples(Samples):
    """Two samples, a group and everybody.

    Parameters
    ----------
    pair : Samples
        The group and the rest, each with a value that is an average over its rows.
    share : float
        The group's part of everybody.

    Examples
    --------
    >>> from evenhand.inference.rates.samples import RateSamples
    >>> samples = OverallSamples(RateSamples.from_counts([12, 70], [60, 140]), share=0.3)
    >>> samples.estimate.round(2).tolist()
    [0.2, 0.41]
    >>> [round(end, 2) for end in samples.interval(0, 1, level=0.95, ratio=True, draws=Draws())[:2]]
    [0.3, 0.73]
    """

    def __init__(self, pair: Samples, *, share: float) -> None:
        self.pair, self.share = pair, share
        own, rest = (float(v) for v in pair.estimate[:2])
        self.estimate = np.array([own, share * own + (1 - share) * rest])
        self.reason = pair.reason[:2]
        one, two = pair.counts[:2]
        self.counts = (one, {key: one[key] + two[key] for key in one if key in two})

    def _out(self, value: float, ratio: bool) -> float:
        """Return the comparison with everybody that goes with one with the rest."""
        if not ratio:
            return (1 - self.share) * value
        return 1 / self.share if value == math.inf else value / (self.share * value + 1 - self.share)

    def _back(self, value: float, ratio: bool) -> float:
        """Return the comparison with the rest that goes with one with everybody."""
        if not ratio:
            return value / (1 - self.share)
        left = 1 - self.share * value
        return min(value * (1 - self.share) / left, _FAR) if left > 0 else _FAR

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        return self.pair.test(0, 1, draws)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        return self.pair.test_global([0, 1], draws)

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        low, high, kind = self.pair.interval(0, 1, level=level, ratio=ratio, draws=draws)
        return self._out(low, ratio), self._out(high, ratio), f"{kind}, from the comparison with the rest"

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        ends = {"low": self._back(low, ratio), "high": self._back(high, ratio)}
        return self.pair.equivalence(0, 1, **ends, ratio=ratio, draws=draws)

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "it lies in [low, high]"."""
        pvalue: float = self.pair.beyond(  # type: ignore[attr-defined]  # rates and means have it
            0, 1, low=self._back(low, ratio), high=self._back(high, ratio), ratio=ratio, draws=draws
        )
        return pvalue

    def _standard_error(self, a: int, b: int) -> float:
        return math.nan  # everybody is not independent of the group: what could be detected is said of the rest
