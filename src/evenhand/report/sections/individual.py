"""The individual audit's figures: the ratio against flow time, by group, and the most different pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.report.document import Block, Cell, Table, shown
from evenhand.report.figures import forest, lines, number
from evenhand.results import AuditResult


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of an individual audit.

    Parameters
    ----------
    result : AuditResult
        As plain data.

    Returns
    -------
    list of block

    Examples
    --------
    >>> blocks(AuditResult(audit="individual", findings=(), evidence=()))
    []
    """
    found: list[Block] = []
    tolerance = result.options.get("tolerance")
    for finding, evidence in zip(result.findings, result.evidence, strict=True):
        if finding.measure == "loss_ratio":
            found += _predicted(evidence.get("predicted") or (evidence.get("metric") or {}).get("predicted") or ())
            found += _curve(evidence.get("curve") or (), tolerance)
            found += _parts(evidence.get("by_part") or (), tolerance)
            found += _movement(evidence.get("movement") or {})
            found += _pairs(evidence.get("pairs") or ())
    return found


def _predicted(tested: Sequence[Mapping[str, Any]]) -> list[Block]:
    if not tested:
        return []
    return [
        Table(
            title="Do the model's inputs predict the groups, on rows apart?",
            head=("Group", "Chance to rank a member above others", "p"),
            rows=tuple((str(row["label"]), number(row["auc"]), number(row["pvalue"])) for row in tested),
        )
    ]


def _curve(curve: Sequence[Mapping[str, Any]], tolerance: float | None) -> list[Block]:
    names = {
        "loss_ratio": "loss ratio, mean",
        "low": "loss ratio, lower limit",
        "error_ratio": "error ratio",
        "error_low": "error ratio, lower limit",
    }
    rows = [
        {"x": number(point["time"]), "y": number(point.get(key)), "series": name}
        for key, name in names.items()
        for point in curve
        if point.get(key) is not None
    ]
    if not rows:
        return []
    return [
        lines(
            "Ratio against flow time",
            "How many times larger the loss (or the error rate) becomes when people are moved to comparable people who "
            "are treated worst, the longer the search goes on. Dashed: the tolerance.",
            rows,
            x="flow time",
            y="ratio",
            dashed=[] if tolerance is None else [float(tolerance)],
        )
    ]


def _parts(parts: Sequence[Mapping[str, Any]], tolerance: float | None) -> list[Block]:
    rows = [
        {
            "label": f"{part['part']} {part['name']}" if part.get("part") == "class" else str(part["name"]),
            "estimate": number(part.get("loss_ratio")),
            "low": number(part.get("low")),
            "high": number(part.get("high")),
        }
        for part in parts
        if part.get("low") is not None
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
            margin=[] if tolerance is None else [float(tolerance)],
            label="Part",
        )
    ]


def _movement(movement: Mapping[str, Any]) -> list[Block]:
    columns = movement.get("columns") or ()
    if not columns:
        return []
    keys = list(dict.fromkeys(key for row in columns for key in row))
    return [
        Table(
            title="Which columns moved, on average over the people with the largest ratios",
            head=tuple(key.replace("_", " ").capitalize() for key in keys),
            rows=tuple(tuple(_cell(row.get(key)) for key in keys) for row in columns),
        )
    ]


def _pairs(pairs: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Row-level data: there only when the user asked for examples."""
    found: list[Block] = []
    for j, pair in enumerate(pairs, start=1):
        keys = list(dict.fromkeys(key for row in pair["moved"] for key in row))
        facts = f"loss {shown(pair['loss_before'])} to {shown(pair['loss_after'])}, outcome {pair['outcome']}"
        found.append(
            Table(
                title=f"Pair {j}, ratio {shown(pair['ratio'])}: {facts}",
                head=tuple(key.replace("_", " ").capitalize() for key in keys),
                rows=tuple(tuple(_cell(row.get(key)) for key in keys) for row in pair["moved"]),
            )
        )
    return found


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, int | float | str) else str(value)
