"""The tail audit in words: what a return level means, what a difference means, what is already ruled out."""

from __future__ import annotations

import math

from evenhand.audits.tail.group_tail import GroupTail, Level
from evenhand.results import Interval


def level_sentence(
    group: GroupTail, at: Level, horizon: float, level: float, margin: float, *, high_is_good: bool
) -> str:
    """Say what the worst-treated person of so many decisions goes through.

    Parameters
    ----------
    group : GroupTail
        The group.
    at : Level
        Its level at the horizon.
    horizon : float
        Decisions.
    level : float
        Coverage of the interval.
    margin : float
        A level up to this is no disadvantage.
    high_is_good : bool
        Whether a higher score is the better one.

    Returns
    -------
    str
    """
    better, worse = ("rise", "fall") if high_is_good else ("fall", "rise")
    people, other = f"In {horizon:,.0f} decisions about `{group.name}`", f"had they been recorded as `{group.other}`"
    interval = f"{level:.0%} interval {_ends(at.low, at.high)}"
    digits = digits_for(at.high - at.low)
    if abs(at.value) < 1e-9:
        said = f"{people}, expect nobody whose score would {better} {other} (level 0, {interval})"
    elif at.value > 0:
        said = (
            f"{people}, expect one person whose score would {better} by {at.value:.{digits}f} or more {other} "
            f"({interval})"
        )
    else:
        said = (
            f"{people}, all but one would see their score {worse} by at least {abs(at.value):.{digits}f} {other} "
            f"(level {at.value:.{digits}f}, {interval}); a level of at most {margin:g} is no disadvantage, however "
            "low"
        )
    return f"{said}; {beside(group)}{_possible(group)}."


def _ends(low: float, high: float) -> str:
    digits = digits_for(high - low)
    return f"{low:.{digits}f} to {high:.{digits}f}" if math.isfinite(high) else f"{low:.{digits}f} or more"


def _possible(group: GroupTail) -> str:
    """Say where a logistic model's largest possible change is known."""
    if math.isnan(group.shift):
        return ""
    return f"; the model is logistic in this attribute, so no change can exceed {_short(group.ceiling)}"


def digits_for(width: float) -> int:
    """Return the decimals that show an interval's ends apart, between 2 and 8."""
    if not (math.isfinite(width) and width > 0):
        return 3
    return min(max(2, math.ceil(-math.log10(width)) + 1), 8)


def beside(group: GroupTail) -> str:
    """Say what was seen, beside every number."""
    n = group.cd.size
    # Rule of three: none of n rows lies above the largest.
    return (
        f"the largest change among {n:,} rows is {_short(group.cd.values[0])}, and with 95 % confidence at most "
        f"{min(1.0, -math.log(0.05) / n):.2g} of such people lie above it"
    )


def unreached_sentence(group: GroupTail, horizon: float) -> str:
    """Say why a group has no level at a horizon beyond its rows; empty when it has one."""
    n = group.cd.size
    if horizon <= n or (not group.doubt and group.tail is not None):
        return ""
    doubt = group.doubt[:1].upper() + group.doubt[1:]
    return (
        f"{doubt}; {n:,} rows alone do not reach one decision in {horizon:,.0f}. "
        + (f"Counting answers for horizons of up to {n // 4:,}. " if n >= 40 else "")
    ).rstrip()


def generated_sentence(group: GroupTail) -> str:
    """Say what generated rows suggest, and that they prove nothing; empty when none were asked for."""
    made = group.synthetic
    if not made.get("rows"):
        return ""
    if made["level"] is None:
        time = " in the time allowed" if made["stopped"] else ""
        return f" {made['rows']:,} generated rows of `{group.name}` did not show a tail{time} either."
    return (
        f" With {made['rows']:,} generated rows of `{group.name}` the worst change in {made['horizon']:,.0f} decisions "
        f"would be {_short(made['level'])} ({beside(group)}); generated rows are not observations, so this is neither "
        "an estimate nor a test."
    )


def printed_sentence(group: GroupTail) -> str:
    """Say what Algorithm 1 as printed gives, and what it rests on."""
    said = []
    for fit in group.as_printed:
        rows = f"{fit.generated:,} made-up rows beside {fit.rows:,} people" if fit.generated else "no made-up rows"
        answer = f"a level of {_short(fit.location)} (type {fit.type})" if fit.passed else "no level: its test fails"
        said.append(f"{answer} with {rows} (variation of the {fit.reading})")
    return (
        f"Algorithm 1 of [monjezi2025] as printed gives `{group.name}` {'; '.join(said)}. The algorithm counts made-up "
        "rows as people: this is neither an estimate nor a test, and no verdict rests on it."
    )


def difference_sentence(a: GroupTail, b: GroupTail, one: float, two: float, horizon: float) -> str:
    """Say how the worst cases of two groups differ at one horizon.

    Parameters
    ----------
    a, b : GroupTail
        The group and its reference.
    one, two : float
        Their levels.
    horizon : float
        Decisions.

    Returns
    -------
    str
    """
    return (
        f"In {horizon:,.0f} decisions the worst change by being recorded as the other group is {_short(one)} for "
        f"`{a.name}` and {_short(two)} for `{b.name}`: a difference of {one - two:+.3g}. On average the changes are "
        f"{_short(a.acd)} and {_short(b.acd)}. Seen, for `{a.name}`: {beside(a)}; for `{b.name}`: {beside(b)}."
    )


def planning_sentence(interval: Interval) -> str:
    """Say which values the rows already rule out."""
    low, high = interval.low, interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"With {interval.level:.0%} confidence it is at least {low:.3g}." if math.isfinite(low) else ""
    return f"Values outside {_ends(low, high)} are ruled out at {interval.level:.0%} (before correction)."


def _short(value: float) -> str:
    """Write a change of score with three digits; rounding errors of the model are no change."""
    return f"{0.0 if abs(value) < 1e-9 else value:.3g}"


def mean_sentence(
    group: GroupTail, value: float, share: float, interval: Interval, margin: float, *, high_is_good: bool
) -> str:
    """Say by how much scores would change on average, or among the worst share.

    Parameters
    ----------
    group : GroupTail
        The group.
    value : float
        The mean.
    share : float
        Of the people; 1 for all.
    interval : Interval
        Of the mean.
    margin : float
        A mean of the worst share up to this is no disadvantage.
    high_is_good : bool
        Whether a higher score is the better one.

    Returns
    -------
    str
    """
    better, worse = ("rise", "fall") if high_is_good else ("fall", "rise")
    whose = f"the scores of `{group.name}`"
    if share < 1:
        whose = f"the scores of the {100 * share:.3g} % of `{group.name}` with the largest change"
    ends = f"{interval.level:.0%} interval {_ends(interval.low, interval.high)}"
    digits = digits_for(interval.high - interval.low)
    how = f"{better if value >= 0 else worse} by {abs(value):.{digits}f} on average"
    sign = "" if value >= 0 else f"mean {value:.{digits}f}, "
    low = f"; a mean of at most {margin:g} is no disadvantage, however low" if share < 1 and value < 0 else ""
    return f"Had they been recorded as `{group.other}`, {whose} would {how} ({sign}{ends}){low}."


def means_sentence(a: GroupTail, b: GroupTail, values: tuple[float, float], share: float) -> str:
    """Say how the mean changes of two groups differ.

    Parameters
    ----------
    a, b : GroupTail
        The group and its reference.
    values : tuple of float
        Their means.
    share : float
        Of the people; 1 for all.

    Returns
    -------
    str
    """
    whose = "The mean change" if share == 1 else f"Among the {100 * share:.3g} % with the largest change, the mean"
    one, two = values
    return (
        f"{whose} by being recorded as the other group is {_short(one)} for `{a.name}` and {_short(two)} for "
        f"`{b.name}`: a difference of {one - two:+.3g}."
    )
