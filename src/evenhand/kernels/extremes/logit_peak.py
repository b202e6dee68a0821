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
    if not before.size or min(before.min(), after.min()) < 0 or max(before.max(), after.max()) > 1:
        return math.nan
    # Far from 1/2 the log-odds lose digits.
    good = np.minimum(before * (1 - before), after * (1 - after)) > 0.01
    if good.sum() < 20:
        return math.nan
    shift = float(np.median(special.logit(after[good]) - special.logit(before[good])))
    with np.errstate(divide="ignore"):
        expected = special.expit(special.logit(before) + shift)
    alike = np.abs(after - expected).max() <= 2e-7 + 1e-4 * abs(shift) / 4
    return shift if alike and shift != 0 else math.nan


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


def find_peak(before: FloatArray, shift: float, rng: np.random.Generator, draws: int = 999) -> Peak | None:
    """Look at the people nearest to the peak of a logistic model's change of score.

    Parameters
    ----------
    before : ndarray, shape (rows,)
        Scores as they are.
    shift : float
        Of the log-odds, above 0.
    rng : Generator
        For the p-value.
    draws : int
        How many uniform samples it takes.

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
    peak = None
    for k in _TRIED:
        if k > _SHARE * distance.size or not 0 < distance[k] <= _MOST_DISTANCE:
            continue
        value = anderson_darling(distance[:k] / distance[k])
        drawn = anderson_darling(np.sort(rng.random((draws, k)), axis=1))
        pvalue = float((1 + (drawn >= value).sum()) / (draws + 1))
        peak = Peak(shift=shift, k=k, n=distance.size, distance=float(distance[k]), pvalue=pvalue)
        if peak.believed:
            break
    return peak
