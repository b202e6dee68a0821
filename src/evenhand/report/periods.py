"""From the audits of all periods to one overview: what was found when, and each question over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version

from evenhand.audits.margin import is_ratio
from evenhand.change.periods import PeriodRuns
from evenhand.metrics import METRICS
from evenhand.report.bibliography import SOURCES
from evenhand.report.document import Block, Cell, Chapter, Document, Figure, Table, Text, compared, p_value
from evenhand.report.figures import axis, figure, layer, number, rule, word
from evenhand.report.theme import SERIES
from evenhand.results import Finding, Verdict, printable

_MOST_DRAWN = 12  # questions that are drawn, those with a disparity first
_MOST_ROWS = 1000  # findings in the table; the others are in the reports of the periods

Series = list[tuple[str, Finding]]  # a question's findings, period by period


def compose_periods(result: PeriodRuns, folders: Sequence[str], *, title: str = "Audits of all periods") -> Document:
    """Decide what the overview of all periods says.

    Parameters
    ----------
    result : PeriodRuns
        With at least one period that could be audited.
    folders : sequence of str
        Where each period's report is, below the overview.
    title : str
        Of the overview.

    Returns
    -------
    Document
    """
    shown = [one for one in result.runs if result.tally(one)[Verdict.DISPARITY]]
    absent = [one for one in result.runs if one.run is None]
    headline = f"A disparity is shown in {len(shown)} of {len(result.runs)} periods."
    tally: Counter[Verdict] = Counter()
    for one in result.runs:
        tally.update(result.tally(one))
    questions = _questions(result)
    measures = dict.fromkeys(measure for _, measure, _ in questions)
    return Document(
        title=title,
        headline=headline,
        summary=(
            Text(text=result.budget),
            Text(
                text="A verdict that differs from one period to the next does not show that something changed: the "
                "periods are not compared with each other here.",
                kind="note",
            ),
            *(Text(text=printable(f"{one.name} was not audited. {one.problem}"), kind="warning") for one in absent),
        ),
        tally={verdict: n for verdict, n in tally.items() if n},
        sections=(),
        data=_data(result),
        tested=Table(
            title="What is assumed until the data show otherwise",
            head=("Measure", "Assumed"),
            rows=tuple((measure, "In this period the groups do not differ.") for measure in measures),
        ),
        facts=Table(
            title="To repeat this",
            head=("What", "Value"),
            rows=(
                ("Column of the periods", printable(result.column)),
                ("Error rate over all", result.alpha),
                ("Error rate of each period", result.share),
                ("Version of evenhand", version("evenhand")),
            ),
        ),
        references=tuple((key, str(SOURCES[key]), SOURCES[key].address) for key in ("holm1979",)),
        glossary=tuple((m, METRICS[m].says) for m in measures if m in METRICS),
        chapters=(_periods(result, folders), _over_time(questions), _findings(questions)),
    )


def _data(result: PeriodRuns) -> tuple[Block, ...]:
    used = sum(int(one.run.data["rows_used"]) for one in result.runs if one.run is not None)
    rows = (("Periods", len(result.runs)), ("Rows used", used))
    return (
        Table(title="Rows", head=("What", "Value"), rows=rows),
        *(Text(text=printable(note), kind="note") for note in result.notes),
    )


def _questions(result: PeriodRuns) -> dict[tuple[str, str, tuple[str, ...]], Series]:
    """Gather the findings of each question over the periods."""
    questions: dict[tuple[str, str, tuple[str, ...]], Series] = {}
    for one in result.runs:
        for finding in () if one.run is None else one.run.findings:
            key = (finding.audit, finding.measure, finding.groups)
            questions.setdefault(key, []).append((one.name, finding))
    return questions


def _periods(result: PeriodRuns, folders: Sequence[str]) -> Chapter:
    rows: list[tuple[Cell, ...]] = []
    links = []
    for one, folder in zip(result.runs, folders, strict=True):
        used = None if one.run is None else int(one.run.data["rows_used"])
        counts: list[Cell] = [None if one.run is None else n for n in result.tally(one).values()]
        rows.append((printable(one.name), used, *counts))
        links.append("" if one.run is None else f"{folder}/report.html")
    head = ("Period", "Rows", *(str(v).replace("_", " ").capitalize() for v in Verdict))
    table = Table(title="Verdicts of each period", head=head, rows=tuple(rows), links=tuple(links))
    return Chapter(key="periods", title="Periods", question="What was found when?", blocks=(table,))


def _over_time(questions: dict[tuple[str, str, tuple[str, ...]], Series]) -> Chapter:
    drawn = [series for series in questions.values() if any(f.interval is not None for _, f in series)]
    drawn.sort(key=lambda series: not any(f.verdict is Verdict.DISPARITY for _, f in series))
    blocks: list[Block] = [_figure(series) for series in drawn[:_MOST_DRAWN]]
    if len(drawn) > _MOST_DRAWN:
        blocks.append(Text(text=f"Drawn are {_MOST_DRAWN} of {len(drawn)} questions; all are in the table below."))
    return Chapter(
        key="over-time", title="Over time", question="How large is each difference, period by period?",
        blocks=tuple(blocks),
    )  # fmt: skip


def _figure(series: Series) -> Figure:
    first = series[0][1]
    ratio = is_ratio(first.measure)
    rows = [
        {
            "period": printable(name),
            "estimate": number(f.estimate),
            "low": None if f.interval is None else number(f.interval.low),
            "high": None if f.interval is None else number(f.interval.high),
            "verdict": str(f.verdict).replace("_", " "),
        }
        for name, f in series
    ]
    x = {"field": "period", "type": "ordinal", "sort": None, "title": "period", "axis": {"labelOverlap": True}}
    what, free = "ratio" if ratio else "estimate", {"zero": False}
    tip = [word("period", "period"), *(axis(k, k, format=".4f") for k in ("estimate", "low", "high"))]
    bar = {"type": "rule", "strokeWidth": 2, "color": SERIES[0]}
    dot = {"type": "point", "filled": True, "size": 45, "color": SERIES[0], "opacity": 1}
    layers = [
        rule(1.0 if ratio else 0.0, "y"),
        layer(bar, x=x, y=axis("low", what, scale=free), y2={"field": "high"}),
        layer(dot, x=x, y=axis("estimate", what, scale=free), tooltip=[*tip, word("verdict", "verdict")]),
    ]
    names = {"period": "Period", "estimate": "Estimate", "low": "Low", "high": "High", "verdict": "Verdict"}
    return figure(
        printable(f"{first.measure}: {compared(first.groups)}"),
        "Each period alone, with the interval of its own audit.",
        rows,
        layers,
        columns=names,
    )


def _findings(questions: dict[tuple[str, str, tuple[str, ...]], Series]) -> Chapter:
    rows: list[tuple[Cell, ...]] = []
    for (audit, measure, groups), series in questions.items():
        for name, f in series:
            low, high = (None, None) if f.interval is None else (f.interval.low, f.interval.high)
            rows.append(
                (audit, measure, printable(compared(groups)), printable(name), f.estimate, low, high,
                 p_value(f.pvalue_adjusted), f.verdict)
            )  # fmt: skip
    head = ("Audit", "Measure", "Groups", "Period", "Estimate", "Low", "High", "p adjusted", "Verdict")
    table = Table(title="All findings", head=head, rows=tuple(rows[:_MOST_ROWS]), folded=True)
    blocks: list[Block] = [table]
    if len(rows) > _MOST_ROWS:
        blocks.append(Text(text=f"Shown are {_MOST_ROWS:,} of {len(rows):,}; all are in the reports of the periods."))
    return Chapter(key="findings", title="All findings", question="What does each audit say?", blocks=tuple(blocks))
