"""What the user calls negligible: a difference, a ratio, or the four-fifths rule."""

from __future__ import annotations

import math
from collections.abc import Callable

from evenhand.errors import UsageError
from evenhand.inference.limits import Margin
from evenhand.results import Interval
from evenhand.results.finding import without_form

_LEAST = math.log(1e-15)  # levels closer to 1 than this are not told from 1
_HALVINGS = 32


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


def check_reach(margin: Margin | None, name: str, span: float) -> None:
    """Refuse a margin that no value can exceed: with it everything would be negligible before any data are seen.

    Parameters
    ----------
    margin : Margin or None
        What was asked.
    name : str
        The metric.
    span : float
        The largest difference that is possible; infinite where there is none.

    Examples
    --------
    >>> check_reach(parse_margin(0.05), "fnr", 1.0)
    """
    if margin is not None and not margin.ratio and margin.value >= span:
        raise UsageError(
            f"Margin {margin.value:g} can never be exceeded: values of `{name}` differ by at most {span:g}. "
            f"Give a margin below {span:g}, such as {span / 20:g}."
        )


def pvalue_beyond(interval_at: Callable[[float], Interval], margin: Margin) -> float:
    """Return the p-value against "it lies inside the margin", read off the intervals at all levels.

    Parameters
    ----------
    interval_at : callable
        From a level to the interval at that level; intervals grow with it.
    margin : Margin
        What counts as negligible.

    Returns
    -------
    float
        The interval at level ``1 - alpha`` misses the margin just when this is at most alpha; at least 1e-15.

    Examples
    --------
    >>> from scipy import stats
    >>> def at(level):
    ...     half = 0.1 * float(stats.norm.isf((1 - level) / 2))
    ...     return Interval(low=0.3 - half, high=0.3 + half, level=level, kind="normal")
    >>> round(pvalue_beyond(at, parse_margin(0.05)), 6), round(2 * float(stats.norm.sf(2.5)), 6)
    (0.012419, 0.012419)
    """

    def misses(log_alpha: float) -> bool:
        interval = interval_at(-math.expm1(log_alpha))
        return interval.low > margin.high or interval.high < margin.low

    low, high = _LEAST, -1e-9
    if not misses(high):
        return 1.0
    if misses(low):
        return math.exp(low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if misses(middle) else (middle, high)
    return min(math.exp(high), 1.0)


def is_ratio(measure: str) -> bool:
    """Say whether the null value of a finding's measure is 1 and not 0.

    Examples
    --------
    >>> is_ratio("fnr"), is_ratio("fnr_ratio"), is_ratio("fnr_ratio_global"), is_ratio("fnr_ratio_conditional_global")
    (False, True, True, True)
    """
    return without_form(measure).endswith("_ratio")


def metric_of(measure: str) -> str:
    """Return the metric that a finding of the group audit is about.

    Examples
    --------
    >>> metric_of("fnr_ratio_global"), metric_of("fnr_bounds"), metric_of("fnr")
    ('fnr', 'fnr', 'fnr')
    """
    return without_form(measure).removesuffix("_ratio")


def margin_ends(measure: str, value: float) -> tuple[float, float]:
    """Return the range that a finding's margin allows.

    Parameters
    ----------
    measure : str
        Of the finding.
    value : float
        Its margin: the largest difference, or the smallest or largest ratio.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> margin_ends("fnr", 0.05), margin_ends("fnr_ratio", 0.8), margin_ends("loss_ratio", 1.25)
    ((-0.05, 0.05), (0.8, 1.25), (0.8, 1.25))
    """
    if not is_ratio(measure):
        return -value, value
    return min(value, 1 / value), max(value, 1 / value)
