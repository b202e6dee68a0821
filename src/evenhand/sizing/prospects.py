"""What the rows of a file can show, said in people before any difference is looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evenhand.audits.margin import parse_margin
from evenhand.inference.limits import Margin
from evenhand.intake import AuditData
from evenhand.metrics import METRICS, Metric, default_metrics, resolve
from evenhand.results import plain, printable
from evenhand.results.table import html_rows, text_rows
from evenhand.sizing.power import power
from evenhand.sizing.result import Goal, PowerRow

_LIKELY = 0.8  # the chance from which something is called probable
_TENTHS = 10  # points below this are shown with one decimal place


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What the comparison of one group with its reference can show.

    Parameters
    ----------
    measure : str
        The metric.
    says : str
        What it is, in words.
    group, reference : str
        Who is compared with whom.
    people, reference_people : int
        Their rows.
    least : float
        The smallest difference that would probably be found, in either direction; NaN where none would.
    enough : float
        With a margin: the chance of showing that the difference lies inside it, if there is none; NaN without one.
    sentence : str
        The same in words.
    """

    measure: str
    says: str
    group: str
    reference: str
    people: int
    reference_people: int
    least: float
    enough: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prospects:
    """What the rows can show, one entry for each comparison.

    Parameters
    ----------
    comparisons : tuple of Prospect
        In the order of the audit.
    sentences : tuple of str
        What a person should know before the audit runs, of all comparisons together.
    """

    comparisons: tuple[Prospect, ...]
    sentences: tuple[str, ...]

    def cells(self) -> list[tuple[str, ...]]:
        """Return the head and the rows of a small table for people."""
        margin = any(not math.isnan(one.enough) for one in self.comparisons)
        head = ("measure", "group", "people", "compared with", "people there", "would probably be found from")
        rows = [
            (
                one.measure,
                one.group,
                f"{one.people:,}",
                one.reference,
                f"{one.reference_people:,}",
                "–" if math.isnan(one.least) else _size(one.measure, one.least),
                *((_hundred(one.enough),) if margin else ()),
            )
            for one in self.comparisons
        ]
        last = ("would show “no more than the margin”",) if margin else ()
        return [(*head, *last), *(tuple(map(printable, row)) for row in rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, NaN as None."""
        said: dict[str, Any] = plain(
            {"comparisons": [asdict(one) for one in self.comparisons], "sentences": list(self.sentences)}
        )
        return said

    def __str__(self) -> str:
        each = [one.sentence for one in self.comparisons]
        return "\n".join([text_rows(self.cells()), "", *self.sentences, *map(printable, each)])

    def _repr_html_(self) -> str:
        return html_rows(self.cells())


def prospects(
    data: AuditData,
    metrics: Sequence[str | Metric] | str | Metric | None = None,
    *,
    margin: float | str | None = None,
    alpha: float = 0.05,
    reference: Mapping[str, str] | str | None = None,
) -> Prospects:
    """Say what the rows can show before they are audited.

    The sizes of the groups and the reference's value enter, and never the difference between groups: it is said what
    would be found if it were there, and not whether it is.

    Parameters
    ----------
    data : AuditData
        What is to be audited.
    metrics : sequence of str or Metric, optional
        By default those of the audit. Metrics that no one difference describes (`aod_abs`) are left out.
    margin : float or str, optional
        As in `evenhand.audit`: also say whether the rows are enough to show that a difference is within it.
    alpha : float
        Error rate of the audit, shared by all comparisons.
    reference : mapping of str to str, optional
        As in `evenhand.audit`.

    Returns
    -------
    Prospects

    Examples
    --------
    >>> import evenhand as eh
    >>> data = eh.datasets.planted(rows=4000, rng=0)
    >>> prospects(data, "selection_rate", margin=0.05).comparisons[0].sentence[:104]
    'selection_rate of group=B (1,991 people) against group=A (2,009): a difference of 4.3 points or more wou'
    """
    asked = _asked(data, metrics)
    margin_ = parse_margin(margin)
    answers = power(asked, data, margin=margin, alpha=alpha, power=_LIKELY, reference=reference) if asked else ()
    comparisons = tuple(_prospect(row, margin_) for row in answers if len(row.groups) == 2)
    return Prospects(comparisons=comparisons, sentences=tuple(_whole(data, comparisons, margin_)))


def margin_in_people(margin: float | str | None) -> str:
    """Say what a margin means for people, as one sentence.

    Parameters
    ----------
    margin : float, str or None
        As in `evenhand.audit`.

    Returns
    -------
    str

    Examples
    --------
    >>> margin_in_people(0.05)
    '5 points: up to 5 more, or 5 fewer, of every 100 people count as negligible.'
    >>> margin_in_people(0.005)
    '0.5 points: up to 5 more, or 5 fewer, of every 1,000 people count as negligible.'
    >>> margin_in_people("four-fifths")[:72]
    'Four fifths: where 50 of 100 people of one group are chosen, from 40 to '
    """
    read = parse_margin(margin)
    if read is None:
        return "No margin: every difference counts, however small, and none can be shown to be negligible."
    if read.ratio:
        name = "Four fifths" if math.isclose(read.value, 0.8) else f"A ratio of {read.value:g}"
        low, high = (_number(min(50 * end, 100)) for end in (read.low, read.high))
        return (
            f"{name}: where 50 of 100 people of one group are chosen, from {low} to {high} of 100 in the other count "
            "as negligible."
        )
    of = next((n for n in (100, 1000, 10_000) if math.isclose(read.value * n, round(read.value * n))), 10_000)
    people = _number(read.value * of)
    return f"{_points(read.value)}: up to {people} more, or {people} fewer, of every {of:,} people count as negligible."


def _asked(data: AuditData, metrics: Sequence[str | Metric] | str | Metric | None) -> list[Metric]:
    """Return the metrics that can be sized."""
    if metrics is None:
        has_decision, has_score = data.decision is not None, data.score is not None
        metrics = default_metrics(outcome_kind=data.outcome_kind, has_decision=has_decision, has_score=has_score)
    return [metric for metric in resolve(metrics) if metric.kind != "gaps"]


def _prospect(row: PowerRow, margin: Margin | None) -> Prospect:
    sides = [abs(side) for side in (row.below, row.above) if not math.isnan(side)]
    least = max(sides, default=math.nan)
    goal = row.to_show_equivalence
    group, reference = row.groups
    people, others = (round(n) for n in row.rows)
    said = f"{row.measure} of {group} ({people:,} people) against {reference} ({others:,}): "
    if math.isnan(least):
        said += "no difference would probably be found. " + row.reason
    else:
        said += f"a difference of {_size(row.measure, least)} or more would probably be found (4 times in 5)"
        said += f"{_example(row, least)}. A smaller one may be missed."
    if goal is not None and margin is not None:
        said += _within(goal, "the margin" if margin.ratio else _size(row.measure, margin.value))
    return Prospect(
        measure=row.measure,
        says=METRICS[row.measure].says if row.measure in METRICS else "",
        group=group,
        reference=reference,
        people=people,
        reference_people=others,
        least=least,
        enough=math.nan if goal is None else goal.power,
        sentence=said.strip(),
    )


def _within(goal: Goal, what: str) -> str:
    """Say whether the rows are enough to show that there is no difference beyond the margin."""
    if goal.power >= _LIKELY:
        return f" If there is none, the rows are enough to show that it is within {what}."
    said = f" If there is none, the rows show that it is within {what} {_times(goal.power)}"
    if math.isnan(goal.rows[0]):
        return f"{said}."
    return f"{said}; about {_about(sum(goal.rows))} people of both groups together would be needed."


def _whole(data: AuditData, comparisons: Sequence[Prospect], margin: Margin | None) -> list[str]:
    """Say what holds for all comparisons."""
    if not comparisons:
        return ["There is nothing to compare here that could be sized beforehand."]
    used = f"{data.rows.rows_used:,} rows are used, and the audit makes {len(comparisons):,} comparisons"
    said = [f"{used[:-1] if len(comparisons) == 1 else used} with them."]
    hopeless = [one for one in comparisons if math.isnan(one.least)]
    if hopeless:
        said.append(
            f"In {len(hopeless):,} of them the groups are too small to find any difference. Expect the answer "
            "“inconclusive” there, and do not read it as good news."
        )
    if margin is not None:
        short = [one for one in comparisons if not one.enough >= _LIKELY]
        said.append(
            "In all of them the rows are probably enough to show that groups do not differ by more than the margin, if "
            "they do not differ."
            if not short
            else f"In {len(short):,} of them the rows are probably not enough to show that groups differ by no more "
            "than the margin, even if they do not differ at all. More rows help, or a wider margin that you can defend."
        )
    return said


def _example(row: PowerRow, least: float) -> str:
    """Show a difference of a rate in people: so many of 100 in place of so many."""
    if not _in_points(row.measure):
        return ""
    other = row.value + least if row.value + least <= 1 else row.value - least
    return f", such as {_number(100 * other)} of 100 in place of {_number(100 * row.value)}"


def _in_points(measure: str) -> bool:
    return measure in METRICS and METRICS[measure].kind in ("rate", "scoring", "table")


def _size(measure: str, value: float) -> str:
    return _points(value) if _in_points(measure) else f"{value:.2g}"


def _points(value: float) -> str:
    return f"{_number(100 * value)} point{'' if math.isclose(100 * value, 1) else 's'}"


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if value < _TENTHS else f"{value:.0f}"


def _hundred(chance: float) -> str:
    return "–" if math.isnan(chance) else f"{100 * chance:.0f} times in 100"


def _times(chance: float) -> str:
    return "less than once in 100 audits" if chance < 0.01 else f"only {100 * chance:.0f} times in 100"


def _about(number: float) -> str:
    step = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return f"{math.ceil(number / step) * step:,}"
