"""Inference on a value that the data only bracket: Imbens and Manski's interval, and the tests that it inverts.

Where groups are unknown, the data determine the lowest and the highest value that a difference can have, and not the
difference. The two ends are estimated, each with its own error. An interval from the lower limit of the low end to the
upper limit of the high end covers the true value, wherever it lies between them, with probability ``1 - alpha`` when
each limit is wrong with probability ``tail``, where ``c = -ndtri(tail)`` solves

    Phi(c + width) - Phi(-c) = 1 - alpha,

``width`` being the distance of the ends in standard errors of the less certain one ([imbens2004]). With
equal ends the tail is alpha / 2, as in an ordinary interval; far apart only one end can be wrong, and it is alpha. The
interval covers the true value, not the whole range of possible values, which would take alpha / 2 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import optimize, special

# From a level to low and high of a two-sided interval; from a value to a two-sided p-value against it.
IntervalOf = Callable[[float], tuple[float, float]]
PvalueAt = Callable[[float], float]

_USUAL = 0.95  # the level from which a standard error is read off


def critical_value(width: float, level: float) -> float:
    """Return how many standard errors the interval reaches beyond each end.

    Parameters
    ----------
    width : float
        Distance of the ends in standard errors, at least 0.
    level : float
        Coverage of the true value.

    Returns
    -------
    float
        Between the one-sided and the two-sided normal quantile.

    Examples
    --------
    >>> [round(critical_value(width, 0.95), 3) for width in (0.0, 1.0, 10.0)]
    [1.96, 1.681, 1.645]
    """
    one, two = float(-special.ndtri(1 - level)), float(-special.ndtri((1 - level) / 2))
    if width <= 0:
        return two
    if not math.isfinite(width):
        return one

    def excess(c: float) -> float:
        return float(special.ndtr(c + width) - special.ndtr(-c)) - level

    if excess(one) >= 0:  # by rounding: the ends are far apart
        return one
    return float(optimize.brentq(excess, one, two, xtol=1e-12))


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of the range of possible values: its estimate, intervals and p-values, all two-sided."""

    estimate: float
    interval: IntervalOf
    pvalue: PvalueAt


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifiedSet:
    """The values that the data allow, from a low end to a high end that are both estimated.

    Examples
    --------
    >>> from scipy import stats
    >>> def end(estimate, error):
    ...     law = stats.norm(estimate, error)
    ...     return End(estimate=estimate, interval=law.interval, pvalue=lambda v: 2 * law.cdf(min(v, 2 * estimate - v)))
    >>> values = IdentifiedSet(low=end(0.10, 0.02), high=end(0.30, 0.03))
    >>> [round(float(limit), 3) for limit in values.interval(0.95)]
    [0.067, 0.349]
    >>> values.nearest(0.0), values.nearest(0.2)
    (0.1, 0.2)
    >>> round(values.beyond(0.0, 0.0), 8), values.beyond(0.2, 0.25)
    (2.9e-07, 1.0)
    """

    low: End
    high: End
    log: bool = False  # whether distances are those of logarithms, as for a ratio

    @property
    def width(self) -> float:
        """The distance of the ends in standard errors of the less certain one, as their 95 % limits give it."""
        low, high = self._scaled(self.low.estimate), self._scaled(self.high.estimate)
        if not high > low or math.isinf(high - low):
            return 0.0  # equal ends; or one without limit, where the wider interval is the safe one
        z = critical_value(0.0, _USUAL)
        below = low - self._scaled(self.low.interval(_USUAL)[0])
        above = self._scaled(self.high.interval(_USUAL)[1]) - high
        error = max(below, above) / z
        return (high - low) / error if error > 0 else math.inf

    def _scaled(self, value: float) -> float:
        if not self.log:
            return value
        return math.log(value) if value > 0 else -math.inf

    def interval(self, level: float, alternative: str = "two-sided") -> tuple[float, float]:
        """Return the interval that covers the true value, wherever it lies between the ends.

        Of a one-sided question it is the limit that the question asks about, and no limit on the other side.
        """
        tail = 1 - level
        if alternative == "two-sided":
            tail = float(special.ndtr(-critical_value(self.width, level)))
        wide = max(1 - 2 * tail, 1e-9)
        low, high = self.low.interval(wide)[0], self.high.interval(wide)[1]
        if alternative == "greater":
            return low, math.inf
        return (0.0 if self.log else -math.inf, high) if alternative == "less" else (low, high)

    def nearest(self, value: float) -> float:
        """Return the possible value that lies nearest to one: itself where it is possible."""
        return min(max(value, self.low.estimate), self.high.estimate)

    def beyond(self, low: float, high: float, alternative: str = "two-sided") -> float:
        """Return the p-value against "the true value lies in [low, high]"; 1 where a possible value does.

        It is one minus the level at which `interval` begins to miss [low, high].
        """
        if self.low.estimate > high and alternative != "less":
            two_sided = self.low.pvalue(high)
        elif self.high.estimate < low and alternative != "greater":
            two_sided = self.high.pvalue(low)
        else:
            return 1.0
        one_sided = float(two_sided) / 2
        if alternative != "two-sided":
            return one_sided
        # The critical value that just reaches [low, high], put into the equation of the level.
        return min(1.0, one_sided + float(special.ndtr(-(-special.ndtri(one_sided) + self.width))))
