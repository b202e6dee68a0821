"""What it costs a mean over rows that part of it was itself estimated from rows.

A statistic T(theta) is a mean over rows in which theta was estimated from rows too. Drawing the rows again changes it
twice: by the rows in the mean (`part`), and by the new estimate of theta (`change`). The variance of the second over
draws, and how it goes with the first, is what the plain standard error lacks; its mean is the bias.

=============  =====================================================================
code           meaning
=============  =====================================================================
change         T(theta of draw b) - T(theta), one value per draw
part           (mean over draw b) - (mean), one value per draw and mean
=============  =====================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import optimize, special

from evenhand.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class MapError:
    """What an estimated map adds to the error of a statistic.

    Examples
    --------
    >>> MapError().extra(1.0)
    0.0
    """

    bias: float = 0.0  # by how much the estimate lies too high because the map was estimated
    variance: float = 0.0  # of the change that the estimated map makes
    covariance: tuple[float, ...] = ()  # of that change with each mean in the statistic
    freedom: float = math.inf  # degrees of freedom behind these

    def extra(self, *weight: float) -> float:
        """Return the variance to add to that of a weighted sum of the means; at least 0."""
        return max(self.variance + 2 * sum(w * c for w, c in zip(weight, self.covariance, strict=False)), 0.0)


EXACT = MapError()


def redrawn(change: FloatArray, part: FloatArray) -> MapError:
    """Estimate what an estimated map adds.

    Parameters
    ----------
    change : ndarray, shape (draws,)
        See above.
    part : ndarray, shape (draws, means)
        See above.

    Returns
    -------
    MapError

    Examples
    --------
    >>> import numpy as np
    >>> error = redrawn(np.array([1.0, 2.0, 3.0]), np.array([[0.0], [1.0], [2.0]]))
    >>> error.bias, error.variance, error.covariance, error.extra(1.0)
    (2.0, 1.0, (1.0,), 3.0)
    """
    draws = change.size
    gap = change - change.mean()
    together = gap @ (part - part.mean(axis=0)) / (draws - 1)
    return MapError(
        bias=float(change.mean()),
        variance=float(gap @ gap) / (draws - 1),
        covariance=tuple(float(c) for c in together),
        freedom=float(draws - 1),
    )


def combined_freedom(sampling: float, rows: float, extra: float, freedom: float) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of two estimated variances.

    Examples
    --------
    >>> combined_freedom(1.0, 101.0, 0.0, 18.0), combined_freedom(0.0, 101.0, 1.0, 18.0)
    (inf, 18.0)
    """
    if not extra > 0:
        return math.inf
    share = extra / (sampling + extra)  # squares of huge variances have no place in a float
    return 1.0 / ((1 - share) ** 2 / max(rows - 1, 1.0) + share**2 / freedom)


def folded(excess: float, deviation: float) -> float:
    """Return the mean of the size of a normal value around `excess`, and the same slope below 0.

    People are moved to where the model does worst, so a direction that is wrong by chance raises the loss whichever way
    it is wrong: an effect of 0 seen with an error looks like one of 0.8 errors.

    Examples
    --------
    >>> round(folded(0.0, 1.0), 4), round(folded(3.0, 1.0), 4), folded(0.5, 0.0)
    (0.7979, 3.0008, 0.5)
    """
    if not deviation > 0:
        return excess
    z = max(excess, 0.0) / deviation
    centre = z * (2 * float(special.ndtr(z)) - 1) + math.sqrt(2 / math.pi) * math.exp(-0.5 * z * z)
    return deviation * centre + min(excess, 0.0)


def unfolded(seen: float, deviation: float) -> float:
    """Return the excess whose `folded` value is `seen`.

    Examples
    --------
    >>> round(unfolded(folded(0.4, 0.5), 0.5), 9), round(unfolded(0.0, 1.0), 4), unfolded(0.3, 0.01)
    (0.4, -0.7979, 0.3)
    """
    least = folded(0.0, deviation)
    if seen <= least or not deviation > 0:
        return seen - least
    if folded(seen, deviation) <= seen:  # so many errors away that the fold is below rounding
        return seen
    return float(optimize.brentq(lambda e: folded(e, deviation) - seen, 0.0, seen, xtol=1e-13))


def widening(error: float, excess: float) -> float:
    """Return the factor by which a map's standard error grows on the way up.

    How far people are moved is itself estimated, and the excess of a ratio over 1 is about proportional to it: a sample
    in which the groups seem close gives a small ratio and a small error of it. On the logarithm of the excess the error
    is even; two errors upwards are then (exp(2 c) - 1) / (2 c) times as far, c being the error relative to the excess.

    Examples
    --------
    >>> widening(0.0, 0.5), round(widening(0.1, 0.4), 4), round(widening(1.0, 0.0), 4)
    (1.0, 1.2974, 2.3211)
    """
    relative = min(error / excess, 0.75) if excess > 0 else 0.75
    return math.expm1(2 * relative) / (2 * relative) if error > 0 and relative > 1e-9 else 1.0


def beyond(t: float, freedom: float) -> float:
    """Return the chance that Student's t exceeds a value; of the normal for infinite degrees of freedom.

    Examples
    --------
    >>> round(beyond(1.6448536, float("inf")), 6), round(beyond(2.0, 10.0), 6)
    (0.05, 0.036694)
    """
    return float(special.ndtr(-t)) if math.isinf(freedom) else float(special.stdtr(freedom, -t))


def quantile(share: float, freedom: float) -> float:
    """Return the quantile of Student's t; of the normal for infinite degrees of freedom.

    Examples
    --------
    >>> round(quantile(0.95, float("inf")), 6), round(quantile(0.95, 10.0), 6)
    (1.644854, 1.812461)
    """
    return float(special.ndtri(share)) if math.isinf(freedom) else float(special.stdtrit(freedom, share))
