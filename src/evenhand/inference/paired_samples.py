"""Two models judge the same people: how a group's value changes from one to the other, compared between groups.

A change is a value of its own: each person gains, loses or keeps a decision, so that what both models do alike drops
out of the estimate and of its variance. Differences between groups of such changes are compared as any other value is.

Rates whose denominator does not depend on the decision
    In each group people gain (0 to 1) or lose (1 to 0) the counted result. Tango's (1998) score limits of the change,
    which hold with few or no changes too, are joined for two groups by MOVER; tests invert them. In one group the test
    of no change is McNemar's.
Values with a known influence function
    The change's variance is the sum of squared differences of influence values; its law is normal. For the AUC this is
    DeLong's paired test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.mover import MOST, Known, mover
from evenhand.inference.pvalues import TestResult
from evenhand.inference.samples import Draws, MarginSamples

_NO_GLOBAL = "changes are compared two groups at a time"
_SCORE = "score test of paired changes (Tango's limits, joined by MOVER)"
_NORMAL = "normal law of the paired influence values"


def tango_statistic(gained: float, lost: float, trials: float, change: float) -> float:
    """Return the score statistic of a change of a rate, [tango1998].

    Parameters
    ----------
    gained, lost, trials : float
        People who have the counted result under the second model only, under the first only, and all people.
    change : float
        The change under the null hypothesis, between -1 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> round(tango_statistic(7, 1, 34, 0.0), 4)  # McNemar: (7 - 1) / sqrt(7 + 1)
    2.1213
    """
    b = -gained - lost + (2 * trials - gained + lost) * change
    rest = lost * change * (1 - change)
    root = math.sqrt(max(b * b + 8 * trials * rest, 0.0))
    # Of the two forms of the root the one without cancellation.
    both = (root - b) / (4 * trials) if b <= 0 else 2 * rest / (root + b) if root + b > 0 else 0.0
    variance = trials * (2 * both + change * (1 - change))
    distance = gained - lost - trials * change
    if variance <= 0:
        return 0.0 if distance == 0 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)


def tango_limits(gained: float, lost: float, trials: float, z: float) -> tuple[float, float]:
    """Return the limits of a change of a rate, at so many standard errors.

    Examples
    --------
    >>> [round(end, 4) for end in tango_limits(0, 0, 30, 1.96)]
    [-0.1135, 0.1135]
    """
    seen = (gained - lost) / trials
    if z <= 0:
        return seen, seen
    return _limit(gained, lost, trials, seen, z, -1.0), _limit(gained, lost, trials, seen, -z, 1.0)


def _limit(gained: float, lost: float, trials: float, seen: float, z: float, end: float) -> float:
    """Return where the falling statistic has a value, between what is seen and the end of all changes."""

    def beyond(change: float) -> float:
        return min(max(tango_statistic(gained, lost, trials, change), -2 * MOST), 2 * MOST) - z

    if beyond(end) * end >= 0:  # the statistic does not reach so far: every change is inside
        return end
    return float(optimize.brentq(beyond, *sorted((seen, end)), xtol=1e-13, rtol=1e-12))


class _ChangeSamples(MarginSamples):
    """Changes of K groups, two of which are compared by how far limits of so many standard errors reach."""

    def _reach(self, a: int, b: int, value: float, *, above: bool) -> float:
        raise NotImplementedError

    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        point = self.difference(a, b)
        z = self._reach(a, b, margin, above=point > margin)
        signed = z if point > margin else -z
        if draws.alternative == "two-sided":
            return 2 * float(special.ndtr(-z))
        return float(special.ndtr(-signed if draws.alternative == "greater" else signed))

    @property
    def method(self) -> str:
        """How changes are tested."""
        raise NotImplementedError

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        point = self.difference(a, b)
        z = math.copysign(self._reach(a, b, 0.0, above=point > 0), point)
        return TestResult(
            statistic=z, pvalue=min(1.0, self._at(a, b, 0.0, False, draws)), method=self.method, exact=False
        )

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        raise NotImplementedError(_NO_GLOBAL)


class PairedRates(_ChangeSamples):
    """Changes of a rate in K groups, from counts of people who gained or lost the counted result.

    Parameters
    ----------
    gained, lost, trials : array_like of int, shape (K,)
        People with the result under the second model only, under the first only, and all people of the denominator.
    empty_reason : str
        Why a group without people has no value.

    Examples
    --------
    >>> changes = PairedRates([12, 3], [2, 4], [100, 80])
    >>> round(changes.test(0, 1, Draws()).pvalue, 4)
    0.034
    """

    def __init__(
        self, gained: ArrayLike, lost: ArrayLike, trials: ArrayLike, empty_reason: str = "has no rows"
    ) -> None:
        self._gained, self._lost, self._trials = (np.asarray(x, dtype=np.float64) for x in (gained, lost, trials))
        with np.errstate(invalid="ignore", divide="ignore"):
            self.estimate = (self._gained - self._lost) / self._trials
        self.reason = tuple("" if n > 0 else empty_reason for n in self._trials)
        self.counts = tuple(
            {"rows": int(n), "gained": int(g), "lost": int(x)}
            for n, g, x in zip(self._trials, self._gained, self._lost, strict=True)
        )

    @property
    def method(self) -> str:
        """How changes are tested."""
        return _SCORE

    def known(self, k: int, z: float) -> Known:
        """Return a group's change with its limits at so many standard errors."""
        low, high = tango_limits(float(self._gained[k]), float(self._lost[k]), float(self._trials[k]), z)
        return float(self.estimate[k]), low, high

    def _reach(self, a: int, b: int, value: float, *, above: bool) -> float:
        point = self.difference(a, b)
        if point == value:
            return 0.0
        end = 0 if above else 1

        def room(z: float) -> float:
            return (mover(self.known(a, z), self.known(b, z), ratio=False)[end] - value) * (1 if above else -1)

        far = 4.0  # few limits lie farther away
        while far < MOST and room(far) > 0:
            far = min(2 * far, MOST)
        return far if room(far) > 0 else float(optimize.brentq(room, 0.0, far, xtol=1e-12, rtol=1e-12))

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        z = float(special.ndtri((1 + level) / 2))
        low, high = mover(self.known(a, z), self.known(b, z), ratio=False)
        return max(low, -2.0), min(high, 2.0), "paired score (Tango, MOVER)"

    def _standard_error(self, a: int, b: int) -> float:
        moved = self._gained + self._lost
        square = (moved - (self._gained - self._lost) ** 2 / self._trials) / self._trials**2
        return math.sqrt(float(square[a] + square[b]))


class InfluenceSamples(_ChangeSamples):
    """Values of K independent groups whose errors are known from influence values; their law is normal.

    Parameters
    ----------
    estimate : array_like, shape (K,)
        The values; NaN where a group has none.
    influence : array_like, shape (R,)
        How much one row of each record moves the value of its own group.
    codes, count : array_like of int, shape (R,)
        Each record's group, and the rows it stands for.
    reason : sequence of str
        Why a group has no value; empty where it has one.

    Examples
    --------
    >>> samples = InfluenceSamples([0.5, 0.2], [0.1, -0.1, 0.05, -0.05], [0, 0, 1, 1], [1, 1, 1, 1], ["", ""])
    >>> round(samples.standard_error(0, 1), 4)
    0.2236
    """

    def __init__(
        self, estimate: ArrayLike, influence: ArrayLike, codes: ArrayLike, count: ArrayLike, reason: Sequence[str]
    ) -> None:
        self.estimate = np.asarray(estimate, dtype=np.float64)
        psi, g = np.asarray(influence, dtype=np.float64), np.asarray(codes, dtype=np.int64)
        c: IntArray = np.asarray(count, dtype=np.int64)
        rows = np.bincount(g, weights=c, minlength=self.estimate.size)
        square = np.bincount(g, weights=c * psi**2, minlength=self.estimate.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._variance: FloatArray = square * rows / (rows - 1)
        self.reason = tuple(reason)
        self.counts: tuple[Mapping[str, float], ...] = tuple({"rows": int(n)} for n in rows)

    @property
    def method(self) -> str:
        """How changes are tested."""
        return _NORMAL

    def _standard_error(self, a: int, b: int) -> float:
        return math.sqrt(float(self._variance[a] + self._variance[b]))

    def own_error(self, k: int) -> float:
        """Return the standard error of one group's value."""
        return math.sqrt(float(self._variance[k]))

    def _reach(self, a: int, b: int, value: float, *, above: bool) -> float:
        error, distance = self._standard_error(a, b), abs(self.difference(a, b) - value)
        return 0.0 if distance == 0 else min(distance / error, MOST) if error > 0 else MOST

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        far = float(special.ndtri((1 + level) / 2)) * self._standard_error(a, b)
        point = self.difference(a, b)
        return point - far, point + far, "normal, paired influence values"
