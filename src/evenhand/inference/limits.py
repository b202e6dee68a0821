"""What counts as negligible; where a test stops keeping a value; least values; the limits of a ratio in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The range of differences or ratios that count as no disparity."""

    value: float  # as the user said it: the largest difference, or the smallest ratio
    # low, high: the ends of the range.
    low: float
    high: float
    ratio: bool  # whether it bounds a ratio


def fieller(
    first: float, second: float, var_first: float, var_second: float, q_low: float, q_high: float
) -> tuple[float, float]:
    """Return the limits of first / second from quantiles of the studentised ``first - r second``.

    Parameters
    ----------
    first, second : float
        Independent estimates.
    var_first, var_second : float
        Their variances.
    q_low, q_high : float
        Lower (negative) and upper (positive) quantile of the studentised value.

    Returns
    -------
    low, high : float
        Infinite where the denominator is not shown to differ from 0.

    Examples
    --------
    >>> low, high = fieller(2.0, 1.0, 0.01, 0.0, -1.96, 1.96)
    >>> round(low, 3), round(high, 3)
    (1.804, 2.196)
    """
    if second == 0:
        return -math.inf, math.inf
    if second < 0:
        return fieller(-first, -second, var_first, var_second, -q_high, -q_low)

    def end(q: float, open_end: float) -> float:
        lead = second**2 - q * q * var_second
        if lead <= 0:
            return open_end
        root = math.sqrt(max((first * second) ** 2 - lead * (first**2 - q * q * var_first), 0.0))
        return float((first * second - math.copysign(root, q)) / lead)

    return end(q_high, -math.inf), end(q_low, math.inf)


def crossing(
    keeps: Callable[[float], bool],
    inside: float,
    outside: float,
    probe: float | None = None,
    *,
    tolerance: float = 1e-12,
) -> float:
    """Return where a null value stops being kept between one that is and one that is not.

    Parameters
    ----------
    keeps : callable
        Whether a test keeps this null value.
    inside, outside : float
        A value that is kept (the estimate) and one that lies beyond the end; either side of each other.
    probe : float, optional
        Asked first when it lies between them, so that the end and the test there agree.
    tolerance : float
        Relative; with 0 the search ends when no number is left between.

    Returns
    -------
    float
        The farthest value known to be kept; `outside` when that is kept as well.

    Examples
    --------
    >>> round(crossing(lambda value: value < 0.25, 0.0, 1.0), 6)
    0.25
    """
    if keeps(outside):
        return outside
    if probe is not None and min(inside, outside) < probe < max(inside, outside):
        inside, outside = (probe, outside) if keeps(probe) else (inside, probe)
    for _ in range(200):
        middle = (inside + outside) / 2
        if abs(outside - inside) <= tolerance * max(abs(inside), abs(outside)) or middle in (inside, outside):
            break
        inside, outside = (middle, outside) if keeps(middle) else (inside, middle)
    return inside


def least(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the least value of a function with one valley between two ends, by a grid and golden section.

    Examples
    --------
    >>> round(least(lambda x: (x - 0.3) ** 2 + 1, 0.0, 1.0), 12)
    1.0
    """
    step = (high - low) / 50
    best = min(range(51), key=lambda place: function(low + place * step))
    low, high = low + max(best - 1, 0) * step, low + min(best + 1, 50) * step
    golden = (math.sqrt(5) - 1) / 2
    one, two = high - golden * (high - low), low + golden * (high - low)
    first, second = function(one), function(two)
    # Near the bottom a function is flat: after 40 steps what is left to gain is below its rounding.
    for _ in range(40):
        if first < second:
            high, two, second = two, one, first
            one = high - golden * (high - low)
            first = function(one)
        else:
            low, one, first = one, two, second
            two = low + golden * (high - low)
            second = function(two)
    return min(first, second)


def lowest(function: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    """Return the least value of a function of many places at once, by grids that close in on the best place.

    Examples
    --------
    >>> round(lowest(lambda x: (x - 0.3) ** 2 + 1, 0.0, 1.0), 12)
    1.0
    """
    for _ in range(7):
        places = np.linspace(low, high, 65)
        values = function(places)
        best = int(np.argmin(values))
        low, high = float(places[max(best - 1, 0)]), float(places[min(best + 1, 64)])
    return float(values[best])
