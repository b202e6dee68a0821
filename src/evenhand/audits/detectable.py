"""What an inconclusive finding could have shown, and how many more rows of which group would decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from scipy import special

from evenhand.inference.limits import Margin
from evenhand.inference.power.designs import Binomials, Correlation, Design, Pair
from evenhand.inference.power.detectable import detectable, rows_for
from evenhand.inference.power.pilot import design_of
from evenhand.inference.rates.gaps import RateGaps
from evenhand.inference.samples import Samples
from evenhand.results import Interval
from evenhand.results.evidence import Part

# Rows of one group alone are named unless they are this many times those of both groups together.
_TOO_MANY = 3
# Nobody gathers this many times the present rows: beyond, what the data rule out already is said instead.
_HOPELESS = 100
POWER = 0.8  # the chance of showing a difference that planning sentences speak of


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How many rows would show something."""

    both: Pair  # rows of both groups at their present ratio; NaN where no number suffices
    # The one group whose rows alone would do with the fewest more; None where one group is not enough.
    limiting: int | None
    alone: float  # that group's rows, all together; NaN where one group is not enough


class RowsNeeded(Part):
    """How many rows of each group would show something: at their present ratio, and of one group alone."""

    at_this_ratio: Mapping[str, float]
    one_group: Mapping[str, float] | None


class SampleSize(Part):
    """What could have been detected, and how many rows would decide; of a correlation, rows by attribute."""

    power: float | None = None
    detectable: float | None = None
    rows_to_show_difference: RowsNeeded | Mapping[str, float] | None = None
    rows_to_show_equivalence: RowsNeeded | None = None


Planning = tuple[str, SampleSize]  # a sentence or two, and the numbers in it


def least_by_normal(error: float, alpha: float, *, two_sided: bool) -> float:
    """Return the value that a normal test with this standard error shows with probability `POWER`.

    Examples
    --------
    >>> round(least_by_normal(0.1, 0.05, two_sided=True), 3)
    0.28
    """
    return float(special.ndtri(1 - (alpha / 2 if two_sided else alpha)) + special.ndtri(POWER)) * error


def rows_to_show(design: Design, rows: Pair, values: Pair, alpha: float, power: float, margin: Margin | None) -> Rows:
    """Return the rows that show a difference or, with a margin, equivalence.

    Parameters
    ----------
    design : Design
        How the value is known.
    rows, values : tuple of float
        The present rows and the true values of the group and its reference.
    alpha, power : float
        Level of the test, and how often it is to succeed.
    margin : Margin or None
        With one, what is to be shown is that the truth lies inside it.

    Returns
    -------
    Rows
    """

    def chance_of(asked: Design) -> Callable[[Pair], float]:
        if margin is None:
            return lambda n: asked.power(n, values, alpha)
        return lambda n: asked.equivalence(n, values, margin, alpha)

    chance = chance_of(design)
    rough = chance_of(replace(design, exact=False)) if isinstance(design, Binomials) and design.exact else None
    both = rows_for(chance, rows, power, rough=rough)
    if isinstance(design, Correlation):
        return Rows(both=both, limiting=0, alone=both[0])
    alone = [rows_for(chance, rows, power, only=k, rough=rough)[k] for k in (0, 1)]
    more = [n - r for n, r in zip(alone, rows, strict=True)]
    possible = [k for k in (0, 1) if not math.isnan(more[k])]
    best = min(possible, key=lambda k: more[k]) if possible else None
    return Rows(both=both, limiting=best, alone=math.nan if best is None else alone[best])


def plan_pair(
    samples: Samples,
    pair: tuple[int, int],
    names: tuple[str, str],
    alpha: float,
    margin: Margin | None,
    interval: Interval | None = None,
    *,
    ratio: bool,
) -> Planning:
    """Say what a comparison of two groups could have shown.

    Parameters
    ----------
    samples : Samples
        The groups' values.
    pair : tuple of int
        The group and its reference.
    names : tuple of str
        Theirs.
    alpha : float
        Error rate.
    margin : Margin, optional
        What counts as negligible.
    interval : Interval, optional
        What the data rule out already, said where more rows would be too many.
    ratio : bool
        Whether ratios are compared.

    Returns
    -------
    Planning
        Empty where the variance is not known.
    """
    if isinstance(samples, RateGaps):
        return _plan_gaps(samples, pair, names, alpha, interval)
    a, b = pair
    design = design_of(samples, a, b, exact=False)
    if design is None:
        return "", SampleSize()
    rows = (float(samples.counts[a]["rows"]), float(samples.counts[b]["rows"]))
    values = samples.values(a, b)
    below, above = detectable(design, rows, values[1], alpha, POWER)
    # In the direction of what was seen; in the other one where no possible value there would have been shown.
    first, second = (above, below) if values[0] >= values[1] else (below, above)
    least = second if math.isnan(first) else first
    if math.isnan(least):
        said = "No difference that is possible here would have been shown 4 times in 5."
    else:
        size = f"ratio of {(values[1] + least) / values[1]:.2g}" if ratio else f"difference of {abs(least):.2g}"
        purpose = "" if margin is None else " to differ from none"
        said = f"A {size} would have been shown{purpose} 4 times in 5 (before correction for multiplicity)."
    numbers = SampleSize(power=POWER, detectable=least)
    asked: list[tuple[str, Rows]] = []
    if values[0] != values[1]:
        seen = rows_to_show(design, rows, values, alpha, POWER, None)
        numbers = replace(numbers, rows_to_show_difference=_numbers(seen, names))
        if margin is None:
            asked.append(("To show a difference as large as the one seen", seen))
    if margin is not None:
        inside = rows_to_show(design, rows, (values[1], values[1]), alpha, POWER, margin)
        numbers = replace(numbers, rows_to_show_equivalence=_numbers(inside, names))
        asked.append(("To show equivalence if the groups do not differ", inside))
    for purpose, needed in asked:
        hopeless = sum(needed.both) > _HOPELESS * sum(rows)
        kind = "ratios" if ratio else "differences"
        said += ruled_out(purpose, interval, kind) if hopeless else _rows_words(purpose, needed, rows, names)
    return said, numbers


def _plan_gaps(
    samples: RateGaps, pair: tuple[int, int], names: tuple[str, str], alpha: float, interval: Interval | None
) -> tuple[str, SampleSize]:
    """Say which difference of one rate alone could have been shown, and the rows that show one of those seen."""
    alone = 1 - samples.share(1 - alpha)  # the level of each rate's test
    least: dict[str, float] = {}
    needed: list[Rows] = []
    rows = (float(samples.counts[pair[0]]["rows"]), float(samples.counts[pair[1]]["rows"]))
    for name, part in samples.parts.items():
        design = design_of(part, *pair, exact=False)
        if design is None:
            return "", SampleSize()
        one, two = (float(part.estimate[k]) for k in pair)
        ends = [abs(d) for d in detectable(design, rows, two, alone, POWER) if not math.isnan(d)]
        least |= {name: min(ends)} if ends else {}
        if one != two:
            needed.append(rows_to_show(design, rows, (one, two), alone, POWER, None))
    words = "No difference that is possible here would have been shown 4 times in 5."
    numbers = SampleSize(power=POWER)
    if least:
        said = " or ".join(f"of {value:.2g} in {name}" for name, value in least.items())
        words = f"A difference {said} alone would have been shown 4 times in 5 (before correction for multiplicity)."
        numbers = replace(numbers, detectable=min(least.values()) / len(samples.parts))
    known = [found for found in needed if not math.isnan(found.both[0])]
    if known:
        fewest = min(known, key=lambda found: sum(found.both))
        numbers = replace(numbers, rows_to_show_difference=_numbers(fewest, names))
        purpose = "To show a difference as large as the one seen"
        hopeless = sum(fewest.both) > _HOPELESS * sum(rows)
        words += ruled_out(purpose, interval, "means") if hopeless else _rows_words(purpose, fewest, rows, names)
    return words, numbers


def ruled_out(purpose: str, interval: Interval | None, kind: str) -> str:
    """Say which values the data rule out already, where what was asked for is out of reach.

    Parameters
    ----------
    purpose : str
        What was asked for, as the beginning of a sentence.
    interval : Interval or None
        Of the value.
    kind : str
        What the values are, in the plural.

    Returns
    -------
    str
        After a space.

    Examples
    --------
    >>> ruled_out("To show it", Interval(low=-0.002, high=0.003, level=0.95, kind="score"), "differences")[-76:]
    ' Already ruled out: differences below -0.002 or above 0.003 (95 % interval).'
    """
    said = f" {purpose} would take more than {_HOPELESS} times the rows."
    if interval is None or not (math.isfinite(interval.low) or math.isfinite(interval.high)):
        return said
    ends = (("below", interval.low), ("above", interval.high))
    values = " or ".join(f"{side} {end:.2g}" for side, end in ends if math.isfinite(end))
    return f"{said} Already ruled out: {kind} {values} ({100 * interval.level:g} % interval)."


def plan_correlation(
    name: str, rows: int, correlation: float, statistic: float, alpha: float, interval: Interval | None = None
) -> Planning:
    """Say what a test of correlation could have shown.

    Parameters
    ----------
    name : str
        The attribute.
    rows : int
        Rows used.
    correlation, statistic : float
        As found.
    alpha : float
        Error rate.
    interval : Interval, optional
        Of the correlation.

    Returns
    -------
    Planning
    """
    tau = math.sqrt(rows) * correlation / statistic if statistic else None
    design, pair = Correlation(tau), (float(rows), float(rows))
    least = detectable(design, pair, 0.0, alpha, POWER)[1]
    if math.isnan(least):
        return f"With {rows:,} rows no correlation would have been shown 4 times in 5.", SampleSize()
    said = f"With {rows:,} rows a correlation of about {least:.2g} would have been shown 4 times in 5."
    numbers = SampleSize(power=POWER, detectable=least)
    if correlation:
        seen = rows_to_show(design, pair, (correlation, 0.0), alpha, POWER, None)
        numbers = replace(numbers, rows_to_show_difference={name: seen.alone})
        if seen.alone > _HOPELESS * rows:
            said += ruled_out("To show a correlation as large as the one seen", interval, "correlations")
        elif seen.alone > rows:
            said += f" To show a correlation as large as the one seen, about {_about(seen.alone)} rows are needed."
    return said, numbers


def _numbers(rows: Rows, names: tuple[str, str]) -> RowsNeeded:
    return RowsNeeded(
        at_this_ratio=dict(zip(names, rows.both, strict=True)),
        one_group=None if rows.limiting is None else {names[rows.limiting]: rows.alone},
    )


def _rows_words(purpose: str, needed: Rows, present: Pair, names: tuple[str, str]) -> str:
    """Say the rows as a sentence; nothing where the present rows would have sufficed."""
    if math.isnan(needed.both[0]):
        return f" {purpose}, no number of rows suffices."
    if needed.both[0] <= present[0]:
        return ""
    at_ratio = f"{_about(needed.both[0])} of {names[0]} and {_about(needed.both[1])} of {names[1]} in all"
    k, extra = needed.limiting, sum(needed.both) - sum(present)
    if k is None or needed.alone - present[k] > _TOO_MANY * extra:
        return f" {purpose}, more rows of both groups are needed: about {at_ratio}, at the present ratio."
    more = f"{_about(needed.alone - present[k])} more rows of {names[k]}"
    return f" {purpose}, about {more} are needed; or, at the present ratio, {at_ratio}."


def _about(number: float) -> str:
    """Write a number of rows with three digits that count."""
    step = 10 ** max(math.floor(math.log10(max(number, 1))) - 2, 0)
    return f"{math.ceil(number / step) * step:,}"
