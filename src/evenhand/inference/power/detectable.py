"""What a comparison can show: the smallest detectable difference, and the rows needed.

The questions are put to a design (`evenhand.inference.power.designs`). They serve `evenhand.power` before an audit and
the sentences of inconclusive findings after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from evenhand.inference.limits import crossing
from evenhand.inference.power.designs import Design, Pair

MOST_ROWS = 1e12  # more rows than this are called out of reach


def detectable(design: Design, rows: Pair, value: float, alpha: float, power: float) -> Pair:
    """Return the smallest differences below and above the reference's value that are shown often enough.

    Parameters
    ----------
    design : Design
        How the value is known.
    rows : tuple of float
        Rows of the group and of the reference.
    value : float
        The reference's value.
    alpha, power : float
        Level of the test, and how often a difference is to be shown.

    Returns
    -------
    below, above : float
        Negative and positive; NaN where no possible value is shown so often.

    Examples
    --------
    >>> from evenhand.inference.power.designs import Means
    >>> below, above = detectable(Means((1.0, 1.0)), (100, 100), 0.0, 0.05, 0.8)
    >>> round(above, 3)
    0.398
    """

    def one(sign: float, room: float) -> float:
        def enough(size: float) -> bool:
            return design.power(rows, (value + sign * size, value), alpha) >= power

        # From small to large: power may fall again near the end of the range, where little is known of a value.
        size = last = room / 1024 if math.isfinite(room) else 1e-6 * max(abs(value), 1e-6)
        while not enough(min(size, room)):
            if not 0 < size < min(room, 1e15):
                return math.nan
            last, size = size, 1.5 * size
        return sign * crossing(enough, min(size, room), last if last < size else 0.0, tolerance=1e-4)

    low, high = design.range
    return one(-1.0, value - low), one(1.0, high - value)


def rows_for(
    chance: Callable[[Pair], float],
    rows: Pair,
    power: float,
    *,
    only: int | None = None,
    rough: Callable[[Pair], float] | None = None,
) -> Pair:
    """Return the rows at which something is shown often enough.

    Parameters
    ----------
    chance : callable
        Rows of both groups to the chance.
    rows : tuple of float
        The present rows; their ratio is kept unless only one group grows.
    power : float
        The chance that is asked for.
    only : int, optional
        The one group that grows; never below its present rows.
    rough : callable, optional
        A fast approximation of `chance`, to look near its answer first.

    Returns
    -------
    rows : tuple of float
        Whole numbers; NaN where more than 1e12 rows would not suffice.

    Examples
    --------
    >>> from evenhand.inference.power.designs import Means
    >>> rows_for(lambda n: Means((1.0, 1.0)).power(n, (0.5, 0.0), 0.05), (10, 10), 0.8)
    (64.0, 64.0)
    """

    def at(scale: float) -> Pair:
        grown = [max(math.ceil(n * scale - 1e-9), 2.0) if only in (None, k) else n for k, n in enumerate(rows)]
        return float(grown[0]), float(grown[1])

    def enough(scale: float) -> bool:
        return chance(at(scale)) >= power

    growing = list(rows) if only is None else [rows[only]]
    least = 1.0 if only is not None else 2.0 / max(max(rows), 2.0)
    most, factor = MOST_ROWS / max(growing), 4.0
    small = top = least
    if rough is not None:
        first = rows_for(rough, rows, power, only=only)
        if math.isnan(first[0]):
            return first
        k = int(rows[1] < rows[0]) if only is None else only
        top = max(first[k] / rows[k], least)
        small, factor = max(top / 1.1, least), 1.1
        while small > least and enough(small):
            small, top = max(small / factor, least), small
    if enough(least) if small <= least else False:
        return at(least)
    while not enough(top):
        small, top = top, top * factor
        if top > most:
            return math.nan, math.nan
    return at(crossing(enough, top, small, tolerance=max(0.2 / max(min(growing) * top, 1.0), 1e-5)))
