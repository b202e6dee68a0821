"""From a comparison of two models, two runs or a folder of runs to a document."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from evenhand.change.history import History
from evenhand.change.result import Change, ChangeVerdict, Comparison
from evenhand.change.runs import RunComparison
from evenhand.metrics import METRICS
from evenhand.report.bibliography import SOURCES
from evenhand.report.document import Block, Cell, Chapter, Document, Table, Text, compared, p_value
from evenhand.report.figures import axis, dumbbells, figure, layer, number, word
from evenhand.report.theme import VERDICT_COLOURS, VERDICTS
from evenhand.results import Verdict

_SOURCES = ("tango1998", "holm1979", "schuirmann1987")
_WORDS = {
    "worse": "The difference between two groups is shown to be larger under the new model.",
    "better": "It is shown to be smaller under the new model.",
    "alike": "It is shown to have changed by less than the margin.",
    "not worse": "It is shown not to be larger by more than the margin.",
    "inconclusive": "Neither is shown with these people. That does not show that nothing changed.",
    "margin": "The change the user calls negligible, set before looking.",
    "paired": "Both models judge the same people, so that only those whom they treat differently count.",
}


def compose_comparison(result: Comparison, *, title: str = "Comparison of two models") -> Document:
    """Decide what a report on two models says.

    Parameters
    ----------
    result : Comparison
        From `evenhand.compare`.
    title : str
        Of the report.

    Returns
    -------
    Document
    """
    tally = Counter(str(c.verdict).replace("_", " ") for c in result.changes)
    chapters = [_changes(result), _own(result)]
    if result.headlines:
        chapters.append(_headlines(result))
    first, second = result.names
    return Document(
        title=title,
        headline=_headline([c.verdict for c in result.changes]),
        summary=(
            Text(text=f"`{first}` is the old side, `{second}` the new one. {_counted(tally)}"),
            *(Text(text=c.reason) for c in result.changes if c.verdict in (ChangeVerdict.WORSE, ChangeVerdict.BETTER)),
            Text(
                text="A difference is larger or smaller by its size, whichever group it favours. The comparison holds "
                "for people like those in the file.",
                kind="note",
            ),
        ),
        tally={},
        sections=(),
        data=_data(result),
        tested=_tested(result),
        facts=_facts({**result.settings, "alpha": result.alpha}, result.versions),
        references=tuple((key, str(SOURCES[key]), SOURCES[key].address) for key in _SOURCES),
        glossary=(*_WORDS.items(), *((m, METRICS[m].says) for m in result.settings["metrics"] if m in METRICS)),
        chapters=tuple(chapters),
    )


def _headline(verdicts: list[ChangeVerdict]) -> str:
    worse, better = verdicts.count(ChangeVerdict.WORSE), verdicts.count(ChangeVerdict.BETTER)
    if worse and better:
        return f"{worse} of {len(verdicts)} differences are shown to be larger, {better} smaller."
    if worse or better:
        return f"{worse or better} of {len(verdicts)} differences are shown to be {'larger' if worse else 'smaller'}."
    return "No difference between groups is shown to be larger or smaller."


def _counted(tally: Counter[str]) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in tally.items()).capitalize() + "."


def _changes(result: Comparison) -> Chapter:
    seen = [c for c in result.changes if math.isfinite(c.before) and math.isfinite(c.after)]
    alone = len({c.groups for c in seen}) == 1
    points = [
        {
            "label": c.metric if alone else f"{c.metric}: {compared(c.groups)}",
            "before": number(c.before),
            "after": number(c.after),
        }
        for c in seen
    ]
    head = ("Metric", "Groups", "Before", "After", "Change", "Low", "High", "p adjusted", "Verdict")
    rows: list[tuple[Cell, ...]] = [(c.metric, compared(c.groups), *_numbers(c), _said(c)) for c in result.changes]
    text = (
        "Both models judge the same people, so what they do alike drops out. The interval is that of the change; p is "
        "for a difference as large as before, adjusted over the whole table."
    )
    blocks: list[Block] = [Text(text=text)]
    if points:
        caption = f"Open: {result.names[0]}. Filled: {result.names[1]}. At 0 the groups are alike."
        blocks.append(dumbbells("Differences between groups before and after", caption, points[:60]))
    blocks.append(Table(title="Differences between groups", head=head, rows=tuple(rows)))
    blocks += [Text(text=c.reason) for c in result.changes if c.verdict is ChangeVerdict.NOT_COMPUTABLE][:10]
    return Chapter(
        key="changes", title="What changed", question="Did the groups move closer or apart?", blocks=tuple(blocks)
    )


def _numbers(c: Change) -> tuple[Cell, ...]:
    low, high = (None, None) if c.interval is None else (c.interval.low, c.interval.high)
    return (c.before, c.after, c.estimate, low, high, p_value(c.pvalue_adjusted))


def _said(c: Change) -> str:
    return str(c.verdict).replace("_", " ")


def _own(result: Comparison) -> Chapter:
    lines: dict[tuple[str, str], tuple[Cell, ...]] = {}
    for c in result.changes:
        for group, v in c.values.items():
            cells = (v["before"], v["after"], v["after"] - v["before"], v["low"], v["high"], int(v["differ"]))
            lines[c.metric, group] = (c.metric, group, *cells, int(v["rows"]))
    text = (
        "Each group's own value under both models, with the interval of its change, not adjusted. People treated "
        "differently are those whose result, or score, is not the same under both models."
    )
    head = ("Metric", "Group", "Before", "After", "Change", "Low", "High", "Treated differently", "Rows")
    table = Table(title="Each group under both models", head=head, rows=tuple(lines.values()))
    return Chapter(key="groups", title="Each group", question="Whose results changed?", blocks=(Text(text=text), table))


def _headlines(result: Comparison) -> Chapter:
    head = ("Audit", "Measure", "Groups", "Before", "After", "Change", "Verdict before", "Verdict after")
    rows: list[tuple[Cell, ...]] = []
    for h in result.headlines:
        words = (h["verdict_before"].replace("_", " "), h["verdict_after"].replace("_", " "))
        rows.append((h["audit"], h["measure"], compared(h["groups"]), h["before"], h["after"], h["change"], *words))
    notes = [Text(text=note) for note in dict.fromkeys(h["note"] for h in result.headlines)]
    table = Table(title="Main numbers of other audits", head=head, rows=tuple(rows))
    return Chapter(key="audits", title="Other audits", question="What do the other audits say?", blocks=(table, *notes))


def _data(result: Comparison) -> tuple[Block, ...]:
    rows: list[tuple[Cell, ...]] = [
        (name, label, int(n)) for name, sizes in result.data["groups"].items() for label, n in sizes.items()
    ]
    return (
        Text(text=f"{result.data['rows']:,} people, each judged by both models."),
        Table(title="Groups", head=("Attribute", "Group", "Rows"), rows=tuple(rows)),
        *(Text(text=note, kind="note") for note in result.notes),
    )


def _tested(result: Comparison) -> Table:
    margin = result.settings["margin"]
    null = "the difference is as large as before" if margin is None else f"its size changes by at most {margin:g}"
    rows: list[tuple[Cell, ...]] = [("worse, better", null)]
    if margin is not None:
        rows += [
            ("alike", f"the difference changes by more than {margin:g}"),
            ("not worse", f"its size grows by more than {margin:g}"),
        ]
    return Table(title="What is assumed until the people show otherwise", head=("Verdict", "Null"), rows=tuple(rows))


def _facts(settings: dict[str, Any], versions: Any) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, ", ".join(map(str, v)) if isinstance(v, list) else str(v)) for name, v in settings.items()
    ]
    rows += [(f"Version of {name}", text) for name, text in versions.items()]
    return Table(title="To repeat this comparison", head=("What", "Value"), rows=tuple(rows))


def compose_run_comparison(result: RunComparison, *, title: str = "Comparison of two runs") -> Document:
    """Decide what a report on two finished runs says.

    Parameters
    ----------
    result : RunComparison
        From `evenhand.change.runs.compare_runs`.
    title : str
        Of the report.

    Returns
    -------
    Document
    """
    head = ("Audit", "Measure", "Groups", "Before", "After", "p adjusted", "Verdict before", "Verdict after", "Shown")
    states = Counter(line.state for line in result.lines)
    blocks: list[Block] = [Text(text=note, kind="note") for note in result.notes]
    for state in ("changed verdict", "appeared", "vanished", "same verdict"):
        rows: list[tuple[Cell, ...]] = [
            (
                line.audit,
                line.measure,
                compared(line.groups),
                line.before,
                line.after,
                p_value(line.pvalue_adjusted),
                line.verdict_before.replace("_", " "),
                line.verdict_after.replace("_", " "),
                "" if line.verdict is ChangeVerdict.NOT_COMPUTABLE else str(line.verdict),
            )
            for line in result.lines
            if line.state == state
        ]
        if rows:
            blocks.append(Table(title=f"{state.capitalize()}: {len(rows)}", head=head, rows=tuple(rows)))
    blocks += [Text(text=text, kind="warning") for text in result.plan_changes]
    counted = ", ".join(f"{n} {state}" for state, n in states.items())
    return Document(
        title=title,
        headline=_headline([line.verdict for line in result.lines]),
        summary=(Text(text=f"{len(result.lines)} findings: {counted}."),),
        tally={},
        sections=(),
        data=(Text(text="The rows themselves are not part of a run."),),
        tested=Table(
            title="What is assumed until the runs show otherwise",
            head=("Verdict", "Null"),
            rows=(("worse, better", "the disparity is as large as before"),),
        ),
        facts=_facts({"alpha": result.alpha, "runs": list(result.names)}, result.versions),
        references=(("holm1979", str(SOURCES["holm1979"]), SOURCES["holm1979"].address),),
        glossary=tuple((k, v) for k, v in _WORDS.items() if k in ("worse", "better", "inconclusive")),
        chapters=(Chapter(key="findings", title="Findings", question="What is different?", blocks=tuple(blocks)),),
    )


def compose_history(history: History) -> Document:
    """Decide what a page on a folder of runs says.

    Parameters
    ----------
    history : History
        From `evenhand.change.history.read_history`.

    Returns
    -------
    Document
    """
    head = (
        "Written (UTC)",
        "Run",
        "Rows",
        "Data",
        "Plan",
        *(str(v).replace("_", " ") for v in Verdict),
        "Since before",
    )
    rows: list[tuple[Cell, ...]] = [
        (
            e.date,
            e.folder,
            e.rows,
            e.fingerprint[:8],
            e.plan[:8],
            *(int(e.tally.get(str(v), 0)) for v in Verdict),
            " ".join(e.changed),
        )
        for e in history.entries
    ]
    blocks: list[Block] = [_tallies(history), Table(title="Runs", head=head, rows=tuple(rows))]
    blocks += [Text(text=text, kind="warning") for text in history.problems]
    return Document(
        title="History of runs",
        headline=f"{len(history.entries)} runs.",
        summary=(Text(text="Every run found below the folder, in the order in which it was written."),),
        tally={},
        sections=(),
        data=(Text(text="Data with the same mark are the same rows; a plan with the same mark asks the same."),),
        tested=Table(title="What is tested", head=("Question",), rows=(("See each run.",),)),
        facts=Table(title="To repeat this page", head=("What", "Value"), rows=(("folder", history.folder),)),
        references=(),
        chapters=(Chapter(key="runs", title="Runs", question="What was found, and when?", blocks=tuple(blocks)),),
    )


def _tallies(history: History) -> Block:
    """Draw how many findings of each verdict the runs have."""
    rows = [
        {
            "run": f"{j + 1}",
            "verdict": str(v).replace("_", " "),
            "findings": int(e.tally.get(str(v), 0)),
            "date": e.date,
        }
        for j, e in enumerate(history.entries)
        for v in Verdict
    ]
    names = [v.replace("_", " ") for v in VERDICTS]
    colour = {"field": "verdict", "type": "nominal", "scale": {"domain": names, "range": list(VERDICT_COLOURS)}}
    x = {"field": "run", "type": "ordinal", "title": "run, oldest first", "sort": None, "axis": {"labelAngle": 0}}
    tip = [word("date", "written"), word("verdict", "verdict"), axis("findings", "findings")]
    bars = layer(
        {"type": "bar"},
        x=x,
        y=axis("findings", "findings", stack=True, axis={"tickMinStep": 1, "format": "d"}),
        color=colour,
        tooltip=tip,
    )
    return figure(
        "Findings by verdict",
        "One bar for each run.",
        rows,
        [bars],
        columns={"run": "Run", "date": "Written", "verdict": "Verdict", "findings": "Findings"},
        height=200,
        legend=list(zip(names, VERDICT_COLOURS, strict=True)),
    )
