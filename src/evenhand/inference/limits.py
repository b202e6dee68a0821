"""Confidence limits of differences and ratios from what is known of the two values."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special


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


def mover_difference(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float]:
    """Combine two estimates' limits into limits of their difference (Newcombe's squares).

    Parameters
    ----------
    first, second : tuple of three floats
        Estimate, lower limit, upper limit.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> mover_difference((0.5, 0.2, 0.8), (0.0, -0.4, 0.4))
    (0.0, 1.0)
    """
    (x, xl, xu), (y, yl, yu) = first, second
    return x - y - math.hypot(x - xl, yu - y), x - y + math.hypot(xu - x, y - yl)


def mover_ratio(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float]:
    """Combine two positive estimates' limits into limits of their ratio, on the logarithmic scale.

    Parameters
    ----------
    first, second : tuple of three floats
        Estimate, lower limit, upper limit; none negative.

    Returns
    -------
    low, high : float
        0 and infinity where a limit of 0 leaves the ratio unbounded.

    Examples
    --------
    >>> low, high = mover_ratio((0.5, 0.4, 0.6), (0.5, 0.5, 0.5))
    >>> round(low, 3), round(high, 3)
    (0.8, 1.2)
    """
    if first[0] == 0 or second[0] == 0:
        high = math.inf if second[1] <= 0 else first[2] / second[1]
        return (0.0, high) if first[0] == 0 else (first[1] / second[2] if second[2] > 0 else 0.0, math.inf)

    def log(v: float) -> float:
        return math.log(v) if v > 0 else -math.inf

    logs = [tuple(log(v) for v in side) for side in (first, second)]
    (x, xl, xu), (y, yl, yu) = logs
    low, high = x - y - math.hypot(x - xl, yu - y), x - y + math.hypot(xu - x, y - yl)
    return math.exp(low), math.exp(high) if high < 700 else math.inf


def onesided_from_limits(
    bounds: Callable[[float], tuple[float, float]], point: float, margin: float, *, lower: bool
) -> float:
    """Return the one-sided p-value at a margin by inverting confidence limits.

    Parameters
    ----------
    bounds : callable
        ``bounds(z)`` are the limits made with the normal quantile `z`.
    point : float
        The estimate.
    margin : float
        The value under the null.
    lower : bool
        Whether the alternative is above the margin (the lower limit is inverted) or below it.

    Returns
    -------
    float
        1 when the estimate lies on the wrong side of the margin.

    Examples
    --------
    >>> round(onesided_from_limits(lambda z: (1 - z, 1 + z), 1.0, -0.644854, lower=True), 4)
    0.05
    """
    if math.isnan(point):
        return math.nan
    if (point <= margin) if lower else (point >= margin):
        return 1.0
    low, high = 0.0, 40.0
    for _ in range(60):
        z = (low + high) / 2
        bound = bounds(z)[0 if lower else 1]
        if (bound > margin) if lower else (bound < margin):
            low = z
        else:
            high = z
    return float(special.ndtr(-low))


def crossing(keeps: Callable[[float], bool], inside: float, outside: float, probe: float | None = None) -> float:
    """Return where a null value stops being kept between one that is and one that is not.

    Parameters
    ----------
    keeps : callable
        Whether a test keeps this null value.
    inside, outside : float
        A value that is kept (the estimate) and one that lies beyond the end; either side of each other.
    probe : float, optional
        Asked first when it lies between them, so that the end and the test there agree.

    Returns
    -------
    float
        `outside` when that is kept as well.

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
        if abs(outside - inside) <= 1e-12 * max(abs(inside), abs(outside)) or middle in (inside, outside):
            break
        inside, outside = (middle, outside) if keeps(middle) else (inside, middle)
    return inside
