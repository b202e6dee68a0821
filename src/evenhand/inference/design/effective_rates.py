"""Rates of clustered rows as plain rates on the trials that the clusters leave.

With few successes the variance between clusters is itself hardly known, and smallest just when a rate is extreme. So
the tests of clustered rates ask a second opinion: each group counts as a whole number of independent trials with the
variance that the clusters show (Rao and Scott 1992), never more than it has rows, and the tests of plain rates are
made. How well a variance is known from so many clusters enters as in Student's law: a p-value with the normal deviate z
becomes the tail of t beyond z (Korn and Graubard 1998 did the same for one proportion).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws

MOST_TRIALS = 10**7


def trials_of(rate: FloatArray, variance: FloatArray, rows: FloatArray, cluster_size: FloatArray) -> FloatArray:
    """Return how many independent trials each rate is worth.

    Parameters
    ----------
    rate, variance : ndarray, shape (K,)
        The rates, and their variances between clusters.
    rows : ndarray, shape (K,)
        Rows behind each rate (their effective number, where they are weighted).
    cluster_size : ndarray, shape (K,)
        Rows of the cluster that a row drawn at random belongs to, on average.

    Returns
    -------
    ndarray, shape (K,)
        At most the rows. A rate of 0 or 1 shows no variance: there the largest dependence within clusters that another
        group shows is assumed, and where none shows any, that all rows of a cluster are alike.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> trials_of(half, np.array([0.005, 0.0001]), np.array([100.0, 100.0]), np.array([5.0, 5.0])).round(6).tolist()
    [50.0, 100.0]
    >>> trials_of(np.array([0.0]), np.array([0.0]), np.array([100.0]), np.array([5.0])).tolist()
    [20.0]
    """
    inside = (rate > 0) & (rate < 1) & (variance > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(inside, rate * (1 - rate) / variance, np.nan)
        alike = (rows / own - 1) / (cluster_size - 1)  # the correlation that explains the variance
    seen = alike[inside & (cluster_size > 1)]
    most = float(np.clip(seen.max(), 0.0, 1.0)) if seen.size else 1.0
    trials = np.where(inside, own, rows / (1 + np.maximum(cluster_size - 1, 0.0) * most))
    return np.asarray(np.minimum(trials, rows))


@dataclass(frozen=True, slots=True)
class EffectiveRates:
    """Two rates of so many trials, and the degrees of freedom with which these are known.

    Examples
    --------
    >>> pair = EffectiveRates.of((0.3, 0.1), (40.0, 40.0), 9.0)
    >>> plain = RateSamples.from_counts([12, 4], [40, 40]).test(0, 1, Draws()).pvalue
    >>> round(plain, 3), round(pair.pvalue(Draws()), 3)
    (0.033, 0.062)
    """

    samples: RateSamples
    df: float

    @classmethod
    def of(cls, rates: tuple[float, float], trials: tuple[float, float], df: float) -> EffectiveRates:
        """Round trials down, and successes to the nearest rate."""
        n = np.clip(np.floor(np.array(trials) + 1e-9), 1, MOST_TRIALS).astype(np.int64)
        x = np.rint(np.array(rates) * n).astype(np.int64)
        return cls(RateSamples.from_counts(x, n), df)

    def _student(self, p: float) -> float:
        """Turn a one-sided p-value of the normal law into one of Student's; above .5 nothing is gained or lost."""
        return p if math.isnan(p) or p >= 0.5 else float(special.stdtr(self.df, special.ndtri(max(p, 1e-300))))

    def pvalue(self, draws: Draws) -> float:
        """Return the p-value against equal rates."""
        plain = self.samples.test(0, 1, Draws(alternative=draws.alternative)).pvalue
        return 2 * self._student(plain / 2) if draws.alternative == "two-sided" else self._student(plain)

    def interval(self, level: float, *, ratio: bool) -> tuple[float, float]:
        """Return the limits of the difference, or ratio."""
        reach = -float(special.stdtrit(self.df, (1 - level) / 2))
        normal = 1 - 2 * float(special.ndtr(-reach))
        return self.samples.interval(0, 1, level=min(normal, 1 - 1e-15), ratio=ratio, draws=Draws())[:2]

    def beyond(self, low: float, high: float, *, ratio: bool) -> float:
        """Return the p-value against "it lies in [low, high]"."""
        return 2 * self._student(self.samples.beyond(0, 1, low=low, high=high, ratio=ratio, draws=Draws()) / 2)

    def equivalence(self, low: float, high: float, *, ratio: bool) -> float:
        """Return the p-value against "it lies outside (low, high)"."""
        return self._student(self.samples.equivalence(0, 1, low=low, high=high, ratio=ratio, draws=Draws()))
