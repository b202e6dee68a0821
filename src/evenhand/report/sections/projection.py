"""The projection audit's figures: who would have to change, and how near the boundary they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.report.document import Block, Table, compared
from evenhand.report.figures import bars, lines, number
from evenhand.results import AuditResult, Finding

_MOST_BINS = 15


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of a projection audit.

    Parameters
    ----------
    result : AuditResult
        As plain data.

    Returns
    -------
    list of block

    Examples
    --------
    >>> blocks(AuditResult(audit="projection", findings=(), evidence=()))
    []
    """
    found: list[Block] = []
    for finding, evidence in zip(result.findings, result.evidence, strict=True):
        found += _one(finding, evidence)
    return found


def _one(finding: Finding, evidence: Mapping[str, Any]) -> list[Block]:
    found: list[Block] = []
    changes = evidence.get("changes") or {}
    movers = [part for part in changes.get("by_group", ()) if part.get("people")]
    if movers:
        rows = [
            {
                "label": _part(part),
                "value": number(part["people"]),
                "series": f"from {part['from']} to {part['to']}",
            }
            for part in movers
        ]
        found.append(
            bars(
                f"Who would have to change: {compared(finding.groups)}",
                "The smallest change of people that would make the rates equal: how many of each group would have to "
                "cross the decision boundary, and in which direction.",
                rows,
                value="people",
                label="Group",
            )
        )
    figure = evidence.get("figure") or {}
    if figure.get("series"):
        edges = figure["edges"]
        width = max(1, (len(edges) - 1) // _MOST_BINS)
        starts = range(0, len(edges) - width, width)
        points = [
            {
                "x": number((edges[j] + edges[j + width]) / 2),
                "y": number(sum(series["mass"][j : j + width]) / (sum(series["mass"]) or 1)),
                "series": _part(series),
            }
            for series in figure["series"]
            for j in starts
        ]
        found.append(
            lines(
                f"How near the boundary people stand: {compared(finding.groups)}",
                "Each group's people near the boundary by their distance to it: below 0 decided 0, above 0 decided 1. "
                "Those closest are the cheapest to move.",
                points,
                x="signed distance to the boundary",
                y="share",
                at=0.0,
            )
        )
    projected = evidence.get("projected") or ()
    if projected:
        found.append(
            Table(
                title=f"Rates of decision 1, before and after the change: {compared(finding.groups)}",
                head=("Group", "Reference", "Before", "After"),
                rows=tuple((_part(p), "yes" if p.get("reference") else "", p["before"], p["after"]) for p in projected),
            )
        )
    return found


def _part(part: Mapping[str, Any]) -> str:
    outcome = part.get("outcome")
    return str(part["group"]) + ("" if outcome is None else f", outcome {outcome}")
