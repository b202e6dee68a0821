"""The individual audit's figures: the ratio against flow time, by group, and the most different pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.audits.individual import evidence as kinds
from evenhand.report.document import Block, Cell, PValue, Table, shown
from evenhand.report.figures import Frame, forest, lines, number
from evenhand.results import AuditResult


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of an individual audit."""
    drawn: list[Block] = []
    tolerance = result.options.get("tolerance")
    dashed = [] if tolerance is None else [float(tolerance)]
    for finding, evidence in zip(result.findings, result.evidence, strict=True):
        if finding.measure == "loss_ratio" and isinstance(evidence, kinds.IndividualEvidence):
            drawn += _predicted(evidence.predicted or (evidence.metric.predicted if evidence.metric else ()))
            drawn += _curve(evidence.curve or (), dashed)
            drawn += _parts(evidence.by_part or (), dashed)
            if evidence.movement is not None and evidence.movement.columns:
                title = "Which columns moved, on average over the people with the largest ratios"
                drawn.append(_table(title, [column.to_dict() for column in evidence.movement.columns]))
            drawn += [_pair(j, pair) for j, pair in enumerate(evidence.pairs or (), start=1)]
    return drawn


def _predicted(tested: Sequence[kinds.GroupPredicted]) -> list[Block]:
    if not tested:
        return []
    return [
        Table(
            title="Do the model's inputs predict the groups, on rows apart?",
            head=("Group", "Chance to rank a member above others", "p"),
            rows=tuple((row.label, number(row.auc), PValue(row.pvalue)) for row in tested),
        )
    ]


def _curve(curve: Sequence[kinds.CurvePoint], dashed: Sequence[float]) -> list[Block]:
    shown = (
        ("loss ratio, mean", [point.loss_ratio for point in curve]),
        ("loss ratio, lower limit", [point.low for point in curve]),
        ("error ratio", [point.error_ratio for point in curve]),
        ("error ratio, lower limit", [point.error_low for point in curve]),
    )
    rows = [
        {"x": number(point.time), "y": number(value), "series": name}
        for name, values in shown
        for point, value in zip(curve, values, strict=True)
        if value is not None
    ]
    if not rows:
        return []
    return [
        lines(
            "Ratio against flow time",
            "How many times larger the loss (or the error rate) becomes when people are moved to comparable people who "
            "are treated worst, the longer the search goes on. Dashed: the tolerance.",
            rows,
            Frame(x="flow time", y="ratio", dashed=dashed),
        )
    ]


def _parts(parts: Sequence[kinds.PartRatios], dashed: Sequence[float]) -> list[Block]:
    rows = [
        {
            "label": f"{part.part} {part.name}" if part.part == "class" else part.name,
            "estimate": number(part.loss_ratio),
            "low": number(part.low),
            "high": number(part.high),
        }
        for part in parts
        if part.low is not None
    ]
    if not rows:
        return []
    return [
        forest(
            "Loss ratio by class and group",
            "Point: mean ratio. Line: from its lower to its upper limit. Shown to compare; only the ratio over "
            "everybody is tested. "
            "Dashed: the tolerance.",
            rows,
            value="loss ratio",
            none=1.0,
            margin=dashed,
            label="Part",
        )
    ]


def _pair(number_of: int, pair: kinds.ExamplePair) -> Table:
    """Row-level data: there only when the user asked for examples."""
    facts = f"loss {shown(pair.loss_before)} to {shown(pair.loss_after)}, outcome {pair.outcome}"
    return _table(f"Pair {number_of}, ratio {shown(pair.ratio)}: {facts}", pair.moved)


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out rows whose keys may differ."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return Table(
        title=title,
        head=tuple(key.replace("_", " ").capitalize() for key in keys),
        rows=tuple(tuple(_cell(row.get(key)) for key in keys) for row in rows),
    )


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, int | float | str) else str(value)
