"""Limits for a difference or a ratio from separate limits for each of two values (MOVER).

Zou and Donner (2008) for the difference, Donner and Zou (2012) for the ratio: the variance of each value
is recovered near the limit that matters, so skewed limits such as Wilson's keep their merit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

# Limits of both values at a normal quantile: low a, high a, low b, high b.
Limits = Callable[[float], tuple[float, float, float, float]]


def mover_interval(a: float, b: float, limits: Limits, z: float, *, ratio: bool) -> tuple[float, float]:
    """Return limits for a - b (or a / b, both at least 0).

    Parameters
    ----------
    a, b : float
        The two values.
    limits : callable
        Normal quantile to low a, high a, low b, high b.
    z : float
        Normal quantile of the wanted level.
    ratio : bool
        Whether the ratio is wanted.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> fixed = lambda z: (0.4 - 0.05 * z, 0.4 + 0.05 * z, 0.3 - 0.05 * z, 0.3 + 0.05 * z)
    >>> low, high = mover_interval(0.4, 0.3, fixed, 2.0, ratio=False)
    >>> round(low, 4), round(high, 4)
    (-0.0414, 0.2414)
    """
    low_a, high_a, low_b, high_b = limits(z)
    if not ratio:
        # A limit on the wrong side of its value (possible with shrunken limits) has no distance.
        low = a - b - math.hypot(max(a - low_a, 0.0), max(high_b - b, 0.0))
        return low, a - b + math.hypot(max(high_a - a, 0.0), max(b - low_b, 0.0))
    return _ratio_low(a, low_a, b, high_b), _ratio_high(a, high_a, b, low_b)


def _ratio_low(a: float, low_a: float, b: float, high_b: float) -> float:
    low_a, high_b = min(max(low_a, 0.0), a), max(high_b, b)
    if low_a == 0.0 or a == 0.0:
        return 0.0
    root = math.sqrt(max((a * b) ** 2 - low_a * high_b * (2 * a - low_a) * (2 * b - high_b), 0.0))
    # The rationalised form: no 0/0 when high_b = 2 b.
    return low_a * (2 * a - low_a) / (a * b + root) if a * b + root > 0 else math.inf


def _ratio_high(a: float, high_a: float, b: float, low_b: float) -> float:
    low = _ratio_low(b, low_b, a, high_a)
    return math.inf if low == 0.0 else 1 / low


def mover_equivalence(a: float, b: float, limits: Limits, low: float, high: float, *, ratio: bool) -> float:
    """Return the p-value of two one-sided tests, by finding the level at which the interval fits inside.

    Parameters
    ----------
    a, b : float
        The two values.
    limits : callable
        As in `mover_interval`.
    low, high : float
        The margins.
    ratio : bool
        Whether they bound the ratio.

    Returns
    -------
    float

    Examples
    --------
    >>> fixed = lambda z: (0.4 - 0.05 * z, 0.4 + 0.05 * z, 0.4 - 0.05 * z, 0.4 + 0.05 * z)
    >>> round(mover_equivalence(0.4, 0.4, fixed, -0.2, 0.2, ratio=False), 5)  # z = 0.2 / hypot(.05, .05)
    0.00234
    """

    def fits(z: float) -> bool:
        inside = mover_interval(a, b, limits, z, ratio=ratio)
        return inside[0] > low and inside[1] < high

    value = (a / b if b > 0 else math.inf) if ratio else a - b
    if not low < value < high:
        return 1.0 if not math.isclose(low, high) else math.nan
    inner, outer = 0.0, 38.0
    if fits(outer):
        return float(special.ndtr(-outer))
    for _ in range(60):
        middle = 0.5 * (inner + outer)
        inner, outer = (middle, outer) if fits(middle) else (inner, middle)
    return float(special.ndtr(-inner))
