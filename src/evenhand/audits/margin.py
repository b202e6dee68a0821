"""What the user calls negligible: a difference, a ratio, or the four-fifths rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The range of differences or ratios that count as no disparity.

    Parameters
    ----------
    value : float
        As the user said it: the largest difference, or the smallest ratio.
    low, high : float
        The ends of the range.
    ratio : bool
        Whether it bounds a ratio.
    """

    value: float
    low: float
    high: float
    ratio: bool


def parse_margin(margin: float | str | Margin | None) -> Margin | None:
    """Read a margin.

    Parameters
    ----------
    margin : float, str or None
        ``0.05`` allows differences between -0.05 and 0.05; ``"ratio:0.9"`` allows ratios between 0.9 and
        1/0.9; ``"four-fifths"`` is ``"ratio:0.8"``.

    Returns
    -------
    Margin or None

    Examples
    --------
    >>> parse_margin("four-fifths")
    Margin(value=0.8, low=0.8, high=1.25, ratio=True)
    >>> parse_margin(0.05).low
    -0.05
    """
    if margin is None or isinstance(margin, Margin):
        return margin
    text = str(margin).strip().lower()
    ratio = text == "four-fifths" or text.startswith("ratio:")
    number = "0.8" if text == "four-fifths" else text.removeprefix("ratio:")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if ratio and 0 < value < 1:
        return Margin(value=value, low=value, high=1 / value, ratio=True)
    if not ratio and 0 < value < math.inf:
        return Margin(value=value, low=-value, high=value, ratio=False)
    raise UsageError(
        f"Margin `{margin}` is not understood. Allowed: a difference above 0 such as 0.05, a ratio between 0 and 1 "
        "such as `ratio:0.9`, or `four-fifths`."
    )
