"""Limits for a difference or a ratio from separate limits for each of two values (MOVER), and tests by inverting them.

Zou and Donner (2008) for the difference, Donner and Zou (2012) for the ratio: the variance of each value
is recovered near the limit that matters, so skewed limits such as Wilson's keep their merit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from evenhand.inference.limits import crossing

# A value with its lower and upper limit.
Known = tuple[float, float, float]
# Both values with their limits at a normal quantile.
Limits = Callable[[float], tuple[Known, Known]]

# Standard errors beyond which a p-value is no longer a number above 0.
MOST = 38.0


def mover(first: Known, second: Known, *, ratio: bool) -> tuple[float, float]:
    """Return limits for the first value minus (or, none being negative, over) the second.

    Examples
    --------
    >>> mover((0.5, 0.2, 0.8), (0.0, -0.4, 0.4), ratio=False)
    (0.0, 1.0)
    >>> [round(end, 3) for end in mover((0.5, 0.4, 0.6), (0.5, 0.5, 0.5), ratio=True)]
    [0.8, 1.2]
    """
    (a, low_a, high_a), (b, low_b, high_b) = first, second
    if not ratio:
        # A limit on the wrong side of its value (possible with shrunken limits) has no distance.
        low = a - b - math.hypot(max(a - low_a, 0.0), max(high_b - b, 0.0))
        return low, a - b + math.hypot(max(high_a - a, 0.0), max(b - low_b, 0.0))
    inverse = _ratio_low(b, low_b, a, high_a)
    return _ratio_low(a, low_a, b, high_b), math.inf if inverse == 0.0 else 1 / inverse


def _ratio_low(a: float, low_a: float, b: float, high_b: float) -> float:
    low_a, high_b = min(max(low_a, 0.0), a), max(high_b, b)
    if low_a == 0.0 or a == 0.0:
        return 0.0
    root = math.sqrt(max((a * b) ** 2 - low_a * high_b * (2 * a - low_a) * (2 * b - high_b), 0.0))
    # The rationalised form: no 0/0 when high_b = 2 b.
    return low_a * (2 * a - low_a) / (a * b + root) if a * b + root > 0 else math.inf


def reach(limits: Limits, value: float, *, above: bool, ratio: bool) -> float:
    """Return how many standard errors wide the limits may be until they reach a value below (or above) what is seen.

    Examples
    --------
    >>> fixed = lambda z: ((1.0, 1.0 - z, 1.0 + z), (0.0, 0.0, 0.0))
    >>> round(reach(fixed, -0.5, above=True, ratio=False), 6), reach(fixed, 2.0, above=True, ratio=False)
    (1.5, 0.0)
    """
    (a, *_), (b, *_) = limits(0.0)
    sign, end = (1.0, 0) if above else (-1.0, 1)
    if not sign * ((a / b if b > 0 else math.inf) if ratio else a - b) > sign * value:
        return 0.0
    return crossing(lambda z: sign * mover(*limits(z), ratio=ratio)[end] > sign * value, 0.0, MOST, tolerance=0.0)


def mover_equivalence(limits: Limits, low: float, high: float, *, ratio: bool) -> float:
    """Return the p-value of two one-sided tests, by finding the level at which the interval fits between the margins.

    Examples
    --------
    >>> fixed = lambda z: ((0.4, 0.4 - 0.05 * z, 0.4 + 0.05 * z), (0.4, 0.4 - 0.05 * z, 0.4 + 0.05 * z))
    >>> round(mover_equivalence(fixed, -0.2, 0.2, ratio=False), 5)  # z = 0.2 / hypot(.05, .05)
    0.00234
    """
    if math.isclose(low, high):
        return math.nan
    z = min(reach(limits, low, above=True, ratio=ratio), reach(limits, high, above=False, ratio=ratio))
    return float(special.ndtr(-z)) if z > 0 else 1.0
