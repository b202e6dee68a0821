"""From a mitigation to a document: the certificate, the trade-off, what changed and who pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evenhand.audits.margin import is_ratio, margin_ends
from evenhand.metrics import METRICS
from evenhand.repair.changes import PairedChange
from evenhand.repair.result import MitigationResult
from evenhand.report.bibliography import SOURCES
from evenhand.report.document import Block, Cell, Chapter, Document, Figure, Table, Text, compared, p_value
from evenhand.report.figures import axis, dumbbells, figure, number, rule
from evenhand.report.theme import SERIES
from evenhand.results import Verdict

_FATES = ("chosen", "certified", "not certified", "not tested")
_COLOURS = ("var(--equivalent)", SERIES[0], "var(--disparity)", "var(--inconclusive)")
_SHAPES = ("square", "circle", "diamond", "cross")
_SOURCES = ("angelopoulos2021", "laufer2023", "schuirmann1987", "holm1979")


def compose_mitigation(result: MitigationResult, *, title: str = "Mitigation report") -> Document:
    """Decide what a report on a mitigation says.

    Parameters
    ----------
    result : MitigationResult
        From `evenhand.mitigate`.
    title : str
        Of the report.

    Returns
    -------
    Document
    """
    certified = result.verdict is Verdict.EQUIVALENT
    chapters = [_certificate(result), _trade_off(result)]
    if certified:
        chapters += [_changed(result), _paid(result)]
    if result.compared:
        chapters.append(_audits(result))
    chapters.append(_tried(result))
    return Document(
        title=title,
        headline="A repaired model is certified." if certified else "No model is certified.",
        summary=(
            Text(text=result.certificate.reason),
            Text(
                text="The certificate holds for people like those in the file, for the metrics and groups it names, "
                "and for nothing else. It does not say whether a law is kept.",
                kind="note",
            ),
        ),
        tally={},
        sections=(),
        data=_data(result),
        tested=_hypotheses(result),
        facts=_facts(result),
        references=tuple((key, str(SOURCES[key]), SOURCES[key].address) for key in _SOURCES),
        glossary=_glossary(result),
        chapters=tuple(chapters),
    )


def _certificate(result: MitigationResult) -> Chapter:
    certificate = result.certificate
    rows: list[tuple[Cell, ...]] = []
    for j, step in enumerate(certificate.steps, 1):
        for comparison in step.comparisons:
            finding = comparison.finding
            low, high = (None, None) if finding.interval is None else (finding.interval.low, finding.interval.high)
            rows.append(
                (
                    j,
                    step.candidate,
                    finding.measure,
                    compared(finding.groups),
                    finding.estimate,
                    low,
                    high,
                    p_value(comparison.outside),
                    Verdict.EQUIVALENT if step.certified else Verdict.INCONCLUSIVE,
                )
            )
    blocks: list[Block] = [
        Text(
            text=f"The people were divided at random: {_divided(result)}. On the last part nothing was learned and "
            "nothing was chosen. Candidates were tested there in an order fixed beforehand, from the one that looked "
            "safest to the one that performed best, and testing stopped at the first that was not shown to be inside "
            "the margin."
        ),
        Text(
            text=f"In this way the chance of certifying a model whose true disparity exceeds the margin is at most "
            f"{certificate.alpha:g}, whatever the number of candidates."
        ),
    ]
    if rows:
        head = ("Test", "Candidate", "Metric", "Groups", "Estimate", "Low", "High", "p outside", "Verdict")
        blocks.append(Table(title="Tests on the people to certify on", head=head, rows=tuple(rows)))
    return Chapter(
        key="certificate",
        title="Certificate",
        question="Does the repair hold on people it has not seen?",
        blocks=tuple(blocks),
    )


def _divided(result: MitigationResult) -> str:
    return ", ".join(f"{n:,} to {name} on" for name, n in result.rows.items())


def _trade_off(result: MitigationResult) -> Chapter:
    blocks: list[Block] = [
        _scatter(result, measure)
        for measure in dict.fromkeys(c.finding.measure for k in result.candidates for c in k.comparisons)
    ]
    return Chapter(
        key="trade-off",
        title="Trade-off",
        question="What does each repair cost, and what does it reach?",
        blocks=tuple(blocks) or (Text(text="No candidate could be compared."),),
    )


def _points(result: MitigationResult, measure: str) -> list[dict[str, Any]]:
    """Return each candidate with the groups that are farthest apart in a measure, on the part to choose on."""
    none = 1.0 if is_ratio(measure) else 0.0
    rows = []
    for candidate in result.candidates:
        seen = [c.finding for c in candidate.comparisons if c.finding.measure == measure]
        seen = [f for f in seen if f.interval is not None and math.isfinite(f.estimate)]
        if not seen:
            continue
        finding = max(seen, key=lambda f: abs(f.estimate - none))
        low, high = (finding.interval.low, finding.interval.high) if finding.interval else (math.nan, math.nan)
        rows.append(
            {
                "label": candidate.label,
                "fate": result.fate(candidate),
                "disparity": number(finding.estimate),
                "low": number(low),
                "high": number(high),
                "groups": compared(finding.groups),
                "performance": number(candidate.performance),
                "performance_low": number(candidate.performance_low),
                "performance_high": number(candidate.performance_high),
            }
        )
    return rows


def _margin_lines(result: MitigationResult, measure: str) -> list[dict[str, Any]]:
    """Return a solid line where groups are alike and dashed ones at the ends of the margin."""
    margins = {c.finding.margin for k in result.candidates for c in k.comparisons if c.finding.measure == measure}
    ends = [end for margin in margins if margin is not None for end in margin_ends(measure, margin)]
    return [rule(1.0 if is_ratio(measure) else 0.0), *(rule(end, dashed=True) for end in ends)]


def _scatter(result: MitigationResult, measure: str) -> Figure:
    """Draw performance against the largest disparity of each candidate on the part to choose on."""
    rows = _points(result, measure)
    performance = str(result.settings["performance"]).replace("_", " ")
    fates = [f for f in _FATES if any(row["fate"] == f for row in rows)]
    channel = {"field": "fate", "type": "nominal"}
    colours = [_COLOURS[_FATES.index(f)] for f in fates]
    colour = {"color": {**channel, "scale": {"domain": fates, "range": colours}}}
    shape = {"shape": {**channel, "scale": {"domain": fates, "range": [_SHAPES[_FATES.index(f)] for f in fates]}}}
    x, y = (
        axis("disparity", f"{measure}: largest difference between groups", scale={"zero": True}, axis={"tickCount": 6}),
        performance,
    )
    tip = [{"field": "label", "type": "nominal", "title": "candidate"}, {**channel, "title": "result"}]
    tip += [{"field": "disparity", "type": "quantitative", "title": measure, "format": ".4f"}]
    tip += [{"field": "performance", "type": "quantitative", "title": performance, "format": ".4f"}]
    up = {"zero": False}
    layers = _margin_lines(result, measure)
    layers += [
        {
            "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.45},
            "encoding": {
                "x": axis("low", str(x["title"])),
                "x2": {"field": "high"},
                "y": axis("performance", y, scale=up),
                **colour,
            },
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.45},
            "encoding": {
                "x": x,
                "y": axis("performance_low", y, scale=up),
                "y2": {"field": "performance_high"},
                **colour,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 85, "opacity": 1},
            "encoding": {"x": x, "y": axis("performance", y, scale=up), "tooltip": tip, **colour, **shape},
        },
    ]
    return figure(
        f"{performance.capitalize()} against {measure}",
        "Each point is a candidate, on the people to choose on. Right or left of the solid line one group fares worse "
        f"in {measure}; between the dashed lines the difference is negligible. Lines: 95% intervals of each candidate "
        "alone. Higher is better.",
        rows,
        layers,
        columns={
            "label": "Candidate",
            "fate": "Result",
            "groups": "Groups farthest apart",
            "disparity": measure,
            "low": "Low",
            "high": "High",
            "performance": performance.capitalize(),
            "performance_low": "Low",
            "performance_high": "High",
        },
        height=300,
        legend=list(zip(fates, colours, strict=True)),
    )


def _changed(result: MitigationResult) -> Chapter:
    alpha = result.certificate.alpha
    rows: list[tuple[Cell, ...]] = [
        (c.measure, compared(c.groups), *_numbers(c), _gap_word(c, alpha)) for c in result.disparities
    ]
    head = ("Metric", "Groups", "Before", "After", "Change", "Low", "High", "p adjusted", "In words")
    blocks: tuple[Block, ...] = (
        Text(
            text="Both models judge the same people, so what they do alike drops out. Differences between groups "
            "before and after the repair; p-values are adjusted over the whole table."
        ),
        _dumbbells(result.disparities),
        Table(title="Differences between groups, before and after", head=head, rows=tuple(rows)),
    )
    return Chapter(key="changed", title="What changed", question="What got better, what got worse?", blocks=blocks)


def _dumbbells(changes: Sequence[PairedChange]) -> Figure:
    alone = len({c.groups for c in changes}) == 1  # one comparison: the metric's name is enough
    rows = [
        {
            "label": c.measure if alone else f"{c.measure}: {compared(c.groups)}",
            "before": number(c.change.before),
            "after": number(c.change.after),
        }
        for c in changes
        if math.isfinite(c.change.before) and math.isfinite(c.change.after)
    ]
    caption = "Open: the plain learner. Filled: the certified model. At 0 the groups are alike." + (
        f" {compared(changes[0].groups)}." if alone else ""
    )
    return dumbbells("Differences between groups before and after", caption, rows)


def _paid(result: MitigationResult) -> Chapter:
    alpha = result.certificate.alpha
    head = ("Metric", "People", "Before", "After", "Change", "Low", "High", "p adjusted", "In words")
    rows: list[tuple[Cell, ...]] = []
    for c in result.performance:
        word = _moved(c, alpha)
        rows.append((c.measure, c.groups[0] if c.groups else "everybody", *_numbers(c), word))
    text = (
        "A repair can help one group at the cost of another. These are each group's own rates under both models, on "
        "the same people; p-values are adjusted over the whole table."
    )
    return Chapter(
        key="pays",
        title="Who pays",
        question="Whose decisions got better, and whose got worse?",
        blocks=(Text(text=text), Table(title="Each group before and after", head=head, rows=tuple(rows))),
    )


def _numbers(c: PairedChange) -> tuple[Cell, ...]:
    low, high = c.change.interval()
    return (c.change.before, c.change.after, c.change.estimate, low, high, p_value(c.pvalue_adjusted))


def _gap_word(c: PairedChange, alpha: float) -> str:
    if c.change.estimate == 0 and c.change.differ == 0:
        return "nothing changed"
    if c.change.error != c.change.error:
        return f"too few people are decided otherwise ({c.change.differ})"
    if not c.shown(alpha):
        return "no change shown"
    before, after = c.change.before, c.change.after
    if before * after < 0:
        return "turned over: now " + ("smaller" if abs(after) < abs(before) else "larger")
    return "smaller gap" if abs(after) < abs(before) else "larger gap"


def _moved(c: PairedChange, alpha: float) -> str:
    if c.change.estimate == 0 and c.change.differ == 0:
        return "nothing changed"
    if c.change.error != c.change.error:
        return f"too few people are decided otherwise ({c.change.differ})"
    if not c.shown(alpha):
        return "no change shown"
    better = METRICS[c.measure].better
    rose = c.change.estimate > 0
    if better == "neither":
        return "rose" if rose else "fell"
    return "better" if rose == (better == "higher") else "worse"


def _audits(result: MitigationResult) -> Chapter:
    rows: list[tuple[Cell, ...]] = [
        (s.audit, s.measure, compared(s.groups), s.before, s.after, Verdict(s.verdict_before), Verdict(s.verdict_after))
        for s in result.compared
    ]
    other = [r for r in rows if r[5] != r[6]]
    head = ("Audit", "Measure", "Groups", "Before", "After", "Verdict before", "Verdict after")
    text = (
        f"The same audits were run on both models and the people to certify on. Of {len(rows)} findings that both "
        f"have, {len(other)} changed their verdict. The verdicts are those of each run on its own; a changed verdict "
        "alone does not show that a value changed. What the scan lists for one model only stands in that model's own "
        "report. The whole reports lie beside this page, in `before` and `after`."
    )
    blocks: list[Block] = [Text(text=text)]
    tail = [r for r in rows if r[0] == "tail"]
    if tail:
        blocks.append(Table(title="The worst-treated people: findings of the tail audit", head=head, rows=tuple(tail)))
    if other:
        blocks.append(Table(title="Findings with another verdict", head=head, rows=tuple(other)))
    blocks.append(Table(title="All findings that both runs have", head=head, rows=tuple(rows), folded=len(rows) > 12))
    return Chapter(
        key="audits",
        title="All audits",
        question="What do the other audits, the tail among them, say before and after?",
        blocks=tuple(blocks),
    )


def _tried(result: MitigationResult) -> Chapter:
    rows: list[tuple[Cell, ...]] = []
    for c in sorted(result.candidates, key=lambda c: (c.place is None, c.place)):
        worst = c.worst
        rows.append(
            (
                c.label,
                None if math.isnan(c.performance) else c.performance,
                None if worst is None else worst.finding.measure,
                None if worst is None else worst.finding.estimate,
                f"{c.seconds:.1f}",
                result.why(c),
            )
        )
    performance = str(result.settings["performance"]).replace("_", " ").capitalize()
    head = ("Candidate", performance, "Metric", "Largest difference", "Seconds", "Result")
    return Chapter(
        key="tried",
        title="Everything that was tried",
        question="Which repairs were fitted, and why was each taken or left?",
        blocks=(Table(title="Candidates, on the people to choose on", head=head, rows=tuple(rows)),),
    )


def _data(result: MitigationResult) -> tuple[Block, ...]:
    rows: list[tuple[Cell, ...]] = [(f"People to {name} on", n) for name, n in result.rows.items()]
    rows += [("Outcome", str(result.settings["outcome"])), ("Groups of", ", ".join(result.certificate.attributes))]
    rows.append(("Features", ", ".join(result.settings["features"])))
    table = Table(title="Rows and columns", head=("What", "Value"), rows=tuple(rows))
    return (table, *(Text(text=note, kind="note") for note in result.notes))


def _hypotheses(result: MitigationResult) -> Table:
    return Table(
        title="What is assumed until the data show otherwise",
        head=("Metric", "Margin", "Assumed of each candidate"),
        rows=tuple(
            (metric, str(margin), "Some two groups differ by more than the margin.")
            for metric, margin in result.certificate.margins.items()
        ),
    )


def _facts(result: MitigationResult) -> Table:
    rows: list[tuple[Cell, ...]] = [(name, _said(value)) for name, value in result.settings.items()]
    rows += [(f"Version of {name}", text) for name, text in result.versions.items()]
    return Table(title="To repeat this run", head=("What", "Value"), rows=tuple(rows))


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {v}" for k, v in value.items())
    return ", ".join(str(v) for v in value) if isinstance(value, list) else str(value)


def _glossary(result: MitigationResult) -> tuple[tuple[str, str], ...]:
    words = {
        "certified": "Shown, at the stated error rate and on people whom the model has not seen, to lie inside the "
        "margin.",
        "margin": "The largest difference the user calls negligible, set before looking.",
        "p outside": "How often chance alone would give a value so well inside the margin, if the truth lay outside.",
        "plain learner": "The learner without any repair, fitted on the same people.",
        "paired": "Both models judge the same people, so that only what they do differently counts.",
    }
    for change in (*result.disparities, *result.performance):
        words[change.measure] = METRICS[change.measure].says
    return tuple(words.items())
