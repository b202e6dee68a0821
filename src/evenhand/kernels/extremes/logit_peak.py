"""A logistic model's change of score, in closed form.

Where flipping a record moves the log-odds of everybody by one and the same amount d, as in a logistic regression, the
change of a score with log-odds eta is ``expit(eta + d) - expit(eta)``. It is largest, ``tanh(d / 4)``, for a person
with log-odds -d/2, and falls on both sides; for d below 0 nobody gains, and the least loss comes near 0. So the
largest possible change is known, and beyond the sample only one number is unknown: how many people lie near the peak.
Their distances from it are uniform near 0 when the density of the log-odds is smooth there, which is tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.kernels.extremes.pareto_checks import DOUBT, anderson_darling

_TRIED = (200, 100, 50)
_SHARE = 0.1  # of the rows, at most
_MOST_DISTANCE = 1.0  # in log-odds: farther away nobody is near the peak


class LogitShift:
    """The amount by which the log-odds of the same people's scores move, found over any division of the people.

    Examples
    --------
    >>> eta, moved = np.linspace(-3, 3, 50), LogitShift()
    >>> moved.add(special.expit(eta), special.expit(eta + 0.5))
    >>> round(moved.value, 6)
    0.5
    """

    def __init__(self) -> None:
        self._good, self._sum = 0, 0.0  # people whose log-odds have all their digits, and the sum of their shifts
        # Shifts that fit everybody within rounding lie between these two.
        self._low, self._high = -math.inf, math.inf

    def add(self, before: FloatArray, after: FloatArray) -> None:
        """Take scores of some people before and after."""
        if not before.size:
            return
        if min(before.min(), after.min()) < 0 or max(before.max(), after.max()) > 1:
            self._low = math.inf
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            start = special.logit(before)
            shift = special.logit(after) - start
            # Far from 1/2 the log-odds lose digits.
            good = np.minimum(before * (1 - before), after * (1 - after)) > 0.01
            room = 2e-7 + 1e-4 / 4 * np.where(np.isfinite(shift), np.abs(shift), 0.0)
            low = special.logit(np.maximum(after - room, 0.0)) - start
            high = special.logit(np.minimum(after + room, 1.0)) - start
        ends = np.isinf(start)  # a score of 0 or 1 stays
        fits = np.abs(after - before)[ends] <= room[ends]
        self._good += int(good.sum())
        self._sum += float(shift[good].sum())
        self._low = max(self._low, float(low[~ends].max(initial=-math.inf)), -math.inf if fits.all() else math.inf)
        self._high = min(self._high, float(high[~ends].min(initial=math.inf)))

    def merge(self, other: LogitShift) -> None:
        """Take the people of another part."""
        self._good, self._sum = self._good + other._good, self._sum + other._sum
        self._low, self._high = max(self._low, other._low), min(self._high, other._high)

    @property
    def value(self) -> float:
        """The shift; NaN when people do not move alike, or too few have log-odds with all their digits."""
        if self._good < 20:
            return math.nan
        shift = float(f"{self._sum / self._good:.12g}")  # the last digits depend on the division
        return shift if self._low <= shift <= self._high and shift != 0 else math.nan


def logit_shift(before: FloatArray, after: FloatArray) -> float:
    """Return the amount by which the log-odds of the same people's scores move, or NaN when they do not move alike.

    Examples
    --------
    >>> eta = np.linspace(-3, 3, 50)
    >>> round(logit_shift(special.expit(eta), special.expit(eta + 0.5)), 6)
    0.5
    >>> logit_shift(special.expit(eta), special.expit(1.1 * eta))
    nan
    """
    shift = LogitShift()
    shift.add(before, after)
    return shift.value


def largest_change(shift: float) -> float:
    """Return the largest change of a score that a shift of the log-odds can make.

    Examples
    --------
    >>> round(largest_change(0.8), 4), largest_change(-0.8)
    (0.1974, 0.0)
    """
    return math.tanh(max(shift, 0.0) / 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """How people lie around the log-odds at which the change of score is largest."""

    shift: float  # of the log-odds
    # k, n: people near the peak that were used, and all.
    k: int
    n: int
    distance: float  # of the next farther person, in log-odds
    pvalue: float  # against "the k distances are uniform"

    @property
    def believed(self) -> bool:
        """Whether the distances pass as uniform."""
        return self.pvalue >= DOUBT

    def level(self, horizon: float) -> float:
        """Return the change that one person in `horizon` exceeds; the horizon lies beyond n / k."""
        return self._change(self.distance * self.n / (self.k * horizon))

    def upper(self, horizon: float, side: float) -> float:
        """Return the upper limit of the level that is too low with probability `side`."""
        # The share of people nearer than the (k+1)-th is a Beta variable, whatever the law.
        most = float(special.betaincinv(self.k + 1, self.n - self.k, 1 - side))
        return self._change(self.distance / (horizon * most))

    def _change(self, distance: float) -> float:
        # expit(w + d/2) - expit(w - d/2), without cancellation
        return math.sinh(self.shift / 2) / (math.cosh(distance) + math.cosh(self.shift / 2))


def find_peak(
    before: FloatArray, shift: float, rng: np.random.Generator, draws: int = 999, *, rows: int | None = None
) -> Peak | None:
    """Look at the people nearest to the peak of a logistic model's change of score.

    Parameters
    ----------
    before : ndarray
        Scores as they are, of all rows or of those nearest to the peak.
    shift : float
        Of the log-odds, above 0.
    rng : Generator
        For the p-value.
    draws : int
        How many uniform samples it takes.
    rows : int, optional
        All rows; by default those given.

    Returns
    -------
    Peak or None
        The largest number of people whose distances pass as uniform, or the smallest that was tried; None when there
        are too few people near the peak.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> peak = find_peak(special.expit(rng.normal(size=2000)), 0.8, rng)
    >>> peak.believed, round(peak.level(10_000), 4), round(largest_change(0.8), 4)
    (True, 0.1974, 0.1974)
    """
    with np.errstate(divide="ignore"):
        distance = np.sort(np.abs(special.logit(before) + shift / 2))
    peak, n = None, distance.size if rows is None else rows
    for k in _TRIED:
        if k > _SHARE * n or not 0 < distance[k] <= _MOST_DISTANCE:
            continue
        value = anderson_darling(distance[:k] / distance[k])
        drawn = anderson_darling(np.sort(rng.random((draws, k)), axis=1))
        pvalue = float((1 + (drawn >= value).sum()) / (draws + 1))
        peak = Peak(shift=shift, k=k, n=n, distance=float(distance[k]), pvalue=pvalue)
        if peak.believed:
            break
    return peak
