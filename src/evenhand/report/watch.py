"""From a watch to a document: alarms, evidence against time, estimates with their confidence sequence, batches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from evenhand.audits.margin import is_ratio, margin_ends
from evenhand.metrics import METRICS
from evenhand.report.bibliography import SOURCES
from evenhand.report.document import Block, Cell, Chapter, Document, Figure, Table, Text, compared, p_value
from evenhand.report.figures import axis, figure, layer, number, rule, word
from evenhand.report.theme import SERIES, colour_of, legend_of
from evenhand.results import Verdict, printable
from evenhand.watch import Answer, Watch

_SOURCES = ("turner2021", "waudbysmith2024", "vovk2021", "herbster1998", "fan2015")
_MOST_DRAWN = 12  # estimates that are drawn, those with an alarm first
_MOST_LINES = 6  # questions in one chart of evidence
_LEAST, _MOST = -3.0, 12.0  # evidence is drawn between 10 to these powers


def compose_watch(watch: Watch, *, title: str = "Watch report") -> Document:
    """Decide what a report on a watch says.

    Parameters
    ----------
    watch : Watch
        With at least one batch.
    title : str
        Of the report.

    Returns
    -------
    Document
    """
    answers, alarms = watch.answers, watch.alarms
    many = f"{len(watch.batches)} batch{'es' if len(watch.batches) != 1 else ''}"
    headline = f"No alarm after {many}."
    if alarms:
        questions = "1 question" if len(answers) == 1 else f"{len(answers)} questions"
        headline = f"A disparity is shown in {len(alarms)} of {questions} after {many}."
    return Document(
        title=title,
        headline=headline,
        summary=_summary(watch),
        tally=Counter(a.finding.verdict for a in answers),
        sections=(),
        data=_data(watch),
        tested=_hypotheses(watch),
        facts=_facts(watch),
        references=tuple((key, str(SOURCES[key]), SOURCES[key].address) for key in _SOURCES),
        glossary=_glossary(watch),
        chapters=(_answers(watch), _evidence(watch), _estimates(watch), _batches(watch)),
    )


def _summary(watch: Watch) -> tuple[Text, ...]:
    alpha = watch.plan.alpha
    said = [Text(text=printable(f"{_name(a)}: {a.finding.reason}")) for a in watch.alarms]
    said.append(
        Text(
            text=f"If no groups differ{_beyond(watch)}, the chance that this watch ever gives an alarm is at most "
            f"{alpha:g}, over all questions and however often one looks. That nothing was shown does not mean that "
            "nothing is there.",
            kind="note",
        )
    )
    said += [Text(text=printable(note), kind="warning") for note in watch.notes if not note.startswith("Batch ")]
    return tuple(said)


def _beyond(watch: Watch) -> str:
    return "" if watch.plan.margin is None else f" by more than the margin ({watch.plan.margin})"


def _alike(watch: Watch) -> str:
    return f"no difference{_beyond(watch)}"


def _name(answer: Answer) -> str:
    return f"{answer.question.measure}, {compared(answer.question.groups)}"


def _answers(watch: Watch) -> Chapter:
    rows: list[tuple[Cell, ...]] = []
    for a in watch.answers:
        f = a.finding
        low, high = (None, None) if f.interval is None else (f.interval.low, f.interval.high)
        when = None if a.alarm is None else watch.batches[a.alarm].name
        tens = float(a.log_adjusted.max()) / math.log(10)
        evidence = f"> 1e{_MOST:.0f}" if tens > _MOST else f"{10**tens:.3g}"
        rows.append(
            (f.measure, printable(compared(f.groups)), f.estimate, low, high, evidence, p_value(f.pvalue_adjusted),
             None if when is None else printable(when), f.verdict)
        )  # fmt: skip
    head = ("Measure", "Groups", "Estimate", "Low", "High", "Most evidence", "p adjusted", "Alarm at", "Verdict")
    others = [a for a in watch.answers if a.finding.verdict is not Verdict.DISPARITY]
    reasons = [Text(text=printable(f"{_name(a)}: {a.finding.reason}")) for a in others[:_MOST_DRAWN]]
    return Chapter(
        key="answers",
        title="Answers",
        question="Which groups are shown to differ, and since when?",
        blocks=(Table(title="All questions", head=head, rows=tuple(rows)), *reasons),
    )


def _evidence(watch: Watch) -> Chapter:
    measures = list(dict.fromkeys(a.question.measure for a in watch.answers))
    figures: list[Block] = []
    for measure in measures:
        asked = sorted((a for a in watch.answers if a.question.measure == measure), key=lambda a: -a.log_adjusted.max())
        figures.append(_evidence_figure(watch, measure, asked[:_MOST_LINES]))
    return Chapter(
        key="evidence",
        title="Evidence over time",
        question="How much speaks for a disparity, batch by batch?",
        blocks=tuple(figures),
    )


def _batch_axis() -> dict[str, Any]:
    return {"field": "batch", "type": "ordinal", "sort": None, "title": "batch", "axis": {"labelAngle": 0}}


def _evidence_figure(watch: Watch, measure: str, answers: Sequence[Answer]) -> Figure:
    rows = [
        {
            "batch": printable(batch.name),
            "series": printable(compared(a.question.groups)),
            "evidence": number(10 ** min(max(a.log_adjusted[t] / math.log(10), _LEAST), _MOST)),
        }
        for a in answers
        for t, batch in enumerate(watch.batches)
    ]
    bar = 1 / watch.plan.alpha
    powers = [10.0**k for k in range(int(_LEAST), int(_MOST) + 1)]
    y = axis("evidence", "evidence", scale={"type": "log"}, axis={"format": ".1~g", "values": powers})
    colour = colour_of("series", [str(row["series"]) for row in rows])
    tip = [word("batch", "batch"), word("series", "groups"), axis("evidence", "evidence", format=".3~g")]
    alarm = {**rule(bar, "y", dashed=True)}
    alarm["encoding"] = {"y": axis("at", "evidence", scale={"type": "log"})}
    line = {"type": "line", "strokeWidth": 2, "point": {"size": 36, "filled": True}}
    denied = f"no change since the baseline{_beyond(watch)}" if answers[0].question.change else _alike(watch)
    return figure(
        f"Evidence about {measure}",
        f"The capital of a sceptic who bets against “{denied}”, adjusted for the number of "
        f"questions, on a logarithmic scale. The dashed line is the alarm at {bar:g}. Drawn from 0.001 to a million "
        "million.",
        rows,
        [alarm, layer(line, x=_batch_axis(), y=y, color=colour, tooltip=tip)],
        columns={"batch": "Batch", "series": "Groups", "evidence": "Evidence"},
        legend=legend_of([str(row["series"]) for row in rows]),
    )


def _estimates(watch: Watch) -> Chapter:
    asked = [a for a in watch.answers if not a.question.change]
    asked.sort(key=lambda a: a.alarm is None)
    figures: list[Block] = [_estimate_figure(watch, a) for a in asked[:_MOST_DRAWN]]
    if len(asked) > _MOST_DRAWN:
        figures.append(Text(text=f"Drawn are {_MOST_DRAWN} of {len(asked)} questions; all are in `history.csv`."))
    return Chapter(
        key="estimates",
        title="Estimates over time",
        question="How large is each difference, and how sure is that?",
        blocks=tuple(figures),
    )


def _estimate_figure(watch: Watch, a: Answer) -> Figure:
    ratio = is_ratio(a.question.measure) or a.question.metric.compare == "ratio"
    rows = []
    for t, batch in enumerate(watch.batches):
        first, second = a.values[t]
        own = (first / second if second else math.nan) if ratio else first - second
        rows.append(
            {
                "batch": printable(batch.name),
                "own": number(own),
                "estimate": number(a.estimate[t]),
                "low": number(a.ends[t, 0]),
                "high": number(a.ends[t, 1]) if math.isfinite(a.ends[t, 1]) else None,
            }
        )
    what = "ratio" if ratio else "difference"
    ends = [] if watch.plan.tolerated is None else margin_ends(a.question.measure, watch.plan.tolerated.value)
    x, up = _batch_axis(), {"zero": False}
    tip = [word("batch", "batch"), *(axis(k, k, format=".4f") for k in ("own", "estimate", "low", "high"))]
    layers = [rule(1.0 if ratio else 0.0, "y"), *(rule(end, "y", dashed=True) for end in ends)]
    band = {"type": "area", "opacity": 0.16, "color": SERIES[0]}
    layers.append(layer(band, x=x, y=axis("low", what, scale=up), y2={"field": "high"}))
    point = {"type": "point", "filled": False, "size": 45, "color": "var(--soft)"}
    layers.append(layer(point, x=x, y=axis("own", what, scale=up), tooltip=tip))
    dots = {"size": 30, "filled": True, "color": SERIES[0]}
    line = {"type": "line", "strokeWidth": 2, "color": SERIES[0], "point": dots}
    layers.append(layer(line, x=x, y=axis("estimate", what, scale=up), tooltip=tip))
    if a.alarm is not None:
        place = [{"at": printable(watch.batches[a.alarm].name)}]
        mark = {"type": "rule", "color": "var(--disparity)", "strokeWidth": 2}
        layers.append(layer(mark, place, x={"field": "at", "type": "ordinal", "sort": None}))
    alarm = " The upright line is the alarm." if a.alarm is not None else ""
    margin = " The dashed lines are the ends of the margin." if ends else ""
    torn = "" if a.torn is None else " The band ends where no single value fits all batches: it has changed."
    return figure(
        printable(f"{a.question.measure}: {compared(a.question.groups)}"),
        f"The {what} over all batches so far, with its confidence sequence: at {1 - watch.plan.alpha:.0%} confidence "
        f"it holds the truth at all times at once. Circles: each batch alone.{margin}{alarm}{torn}",
        rows,
        layers,
        columns={"batch": "Batch", "own": "Batch alone", "estimate": "So far", "low": "Low", "high": "High"},
    )


def _batches(watch: Watch) -> Chapter:
    alarmed: dict[int, list[str]] = {}
    for a in watch.alarms:
        alarmed.setdefault(a.alarm or 0, []).append(_name(a))
    rows: list[tuple[Cell, ...]] = [
        (j + 1, printable(b.name), b.rows, b.used, b.fingerprint[:12], printable("; ".join(alarmed.get(j, []))) or None,
         printable(" ".join(b.notes)) or None)
        for j, b in enumerate(watch.batches)
    ]  # fmt: skip
    head = ("Number", "Batch", "Rows", "Used", "Fingerprint", "Alarms", "Notes")
    return Chapter(
        key="batches",
        title="Batches",
        question="What was counted, and when did the alarms come?",
        blocks=(Table(title="Batches in the order in which they came", head=head, rows=tuple(rows)),),
    )


def _data(watch: Watch) -> tuple[Block, ...]:
    rows: list[tuple[Cell, ...]] = [
        ("Batches", len(watch.batches)),
        ("Rows", sum(b.rows for b in watch.batches)),
        ("Rows used", sum(b.used for b in watch.batches)),
    ]
    for name, labels in (watch.state["groups"] or {}).items():
        rows.append((printable(f"Groups of {name}"), printable(", ".join(labels[:-1]) + f"; reference {labels[-1]}")))
    return (
        Table(title="Rows and groups", head=("What", "Value"), rows=tuple(rows)),
        Text(
            text="Rows must not depend on each other, within a batch and between batches. A person who comes back "
            "every month, or families decided together, make the evidence look stronger than it is. Batches that "
            "differ too much are warned about; that is a sign and no proof.",
            kind="note",
        ),
    )


def _hypotheses(watch: Watch) -> Table:
    beyond = _beyond(watch)
    seen = dict.fromkeys((a.question.measure, a.question.change) for a in watch.answers)
    rows = [
        (measure, f"Since the baseline the difference has not changed{beyond}." if change
         else f"In no batch do the groups differ{beyond}.")
        for measure, change in seen
    ]  # fmt: skip
    return Table(title="What is assumed until the data show otherwise", head=("Measure", "Assumed"), rows=tuple(rows))


def _facts(watch: Watch) -> Table:
    plan = watch.plan.to_dict() | {"plan hash": watch.plan.hash, "evenhand": version("evenhand")}
    return Table(
        title="To repeat this watch",
        head=("What", "Value"),
        rows=tuple((name, printable(str(value))) for name, value in plan.items()),
    )


def _glossary(watch: Watch) -> tuple[tuple[str, str], ...]:
    words = {
        "evidence": "The capital of a sceptic who began with 1 and bet against “no difference” in every batch. While "
        "that is true, capital of 20 is ever reached with probability 1/20 at most.",
        "confidence sequence": "Intervals that hold the truth at all times at once, so that one may look at any time.",
        "p adjusted": "1 divided by the most evidence there ever was, adjusted for the number of questions.",
        "batch": "Rows that came together, such as those of a month.",
    }
    for a in watch.answers:
        words[a.question.metric.name] = METRICS[a.question.metric.name].says
    return tuple(words.items())
