"""The tail audit in words: what a return level means, what a difference means, what could have been seen."""

from __future__ import annotations

import math

from scipy import special

from evenhand.audits.tail_group import GroupTail

_POWER = 0.8


def level_sentence(group: GroupTail, horizon: float, level: float, *, high_is_good: bool) -> str:
    """Say what the worst-treated person of so many decisions goes through.

    Parameters
    ----------
    group : GroupTail
        With a fit.
    horizon : float
        Decisions.
    level : float
        Coverage of the interval.
    high_is_good : bool
        Whether a higher score is the better one.

    Returns
    -------
    str
    """
    assert group.tail is not None
    assert group.intervals is not None
    value, low, high = group.tail.level(horizon), float(group.intervals.low[-1]), float(group.intervals.high[-1])
    better, worse = ("rise", "fall") if high_is_good else ("fall", "rise")
    if group.tail.scale == 0:
        return (
            f"None of {group.cd.size:,} members of `{group.name}` would be better off as `{group.other}`: with 95 % "
            f"confidence fewer than one in {group.cd.size / 3:,.0f} would."
        )
    digits = digits_for(high - low)
    interval = f"{level:.0%} interval {low:.{digits}f} to {high:.{digits}f}"
    if value > 0:
        return (
            f"In {horizon:,.0f} decisions about `{group.name}`, expect one person whose score would {better} by "
            f"{value:.{digits}f} had they been recorded as `{group.other}` ({interval}); {beside(group)}."
        )
    return (
        f"In {horizon:,.0f} decisions about `{group.name}`, all but one would see their score {worse} by at least "
        f"{-value:.{digits}f} had they been recorded as `{group.other}` (change {value:.{digits}f}, {interval}); "
        f"{beside(group)}."
    )


def digits_for(width: float) -> int:
    """Return the decimals that show an interval's ends apart, between 2 and 8."""
    if not (math.isfinite(width) and width > 0):
        return 3
    return min(max(2, math.ceil(-math.log10(width)) + 1), 8)


def beside(group: GroupTail) -> str:
    """Say what was seen, beside every number that was fitted."""
    n = group.cd.size
    # Rule of three: none of n rows lies above the largest.
    return (
        f"the largest change among {n:,} rows is {_short(group.cd[0])}, and with 95 % confidence at most "
        f"{min(1.0, -math.log(0.05) / n):.2g} of such people lie above it"
    )


def generated_sentence(group: GroupTail) -> str:
    """Say what generated rows suggest, and that they prove nothing; empty without a suggestion."""
    made = group.synthetic
    if made.get("level") is None:
        return ""
    return (
        f" With {made['rows']:,} generated rows of `{group.name}` the worst change in {made['horizon']:,.0f} decisions "
        f"would be {_short(made['level'])} ({beside(group)}); generated rows are not observations, so this is neither "
        "an estimate nor a test."
    )


def difference_sentence(a: GroupTail, b: GroupTail, horizon: float) -> str:
    """Say how the worst cases of two groups differ at one horizon."""
    assert a.tail is not None
    assert b.tail is not None
    one, two = a.tail.level(horizon), b.tail.level(horizon)
    return (
        f"In {horizon:,.0f} decisions the worst change by being recorded as the other group is {_short(one)} for "
        f"`{a.name}` and {_short(two)} for `{b.name}`: a difference of {one - two:+.3g}. On average the changes are "
        f"{_short(a.acd)} and {_short(b.acd)}. Seen, for `{a.name}`: {beside(a)}; for `{b.name}`: {beside(b)}."
    )


def detectable(side: float, level: float, alpha: float) -> float:
    """Return the difference that would have been shown four times in five.

    Parameters
    ----------
    side : float
        From the estimate to the farther end of its interval: the interval decides, and its sides differ.
    level : float
        Of the interval.
    alpha : float
        Error rate.

    Returns
    -------
    float
    """
    wanted = special.ndtri(1 - alpha / 2) + special.ndtri(_POWER)
    return float(wanted / special.ndtri((1 + level) / 2) * side)


def planning_sentence(least: float, estimate: float, a: GroupTail, b: GroupTail) -> str:
    """Say what could have been detected, and how many rows would show what was seen."""
    if not (math.isfinite(least) and least > 0):
        return ""
    said = f"A difference of {least:.2g} would have been shown 4 times in 5 (before correction for multiplicity)."
    if 0 < abs(estimate) < least:
        factor = (least / abs(estimate)) ** 2
        rows = [math.ceil(g.cd.size * factor) for g in (a, b)]
        if max(rows) < 1e9:
            said += f" To show one as large as that seen, about {rows[0]:,} and {rows[1]:,} rows are needed."
    return said


def _short(value: float) -> str:
    """Write a change of score with three digits; rounding errors of the model are no change."""
    return f"{0.0 if abs(value) < 1e-9 else value:.3g}"
