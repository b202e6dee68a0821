"""The projection audit's figures: who would have to change, and how near the boundary they are."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.audits.projection import evidence as kinds
from evenhand.report.document import Block, Table, compared
from evenhand.report.figures import Frame, bars, lines, number
from evenhand.results import AuditResult

_MOST_BINS = 15


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of a projection audit."""
    drawn: list[Block] = []
    for finding, evidence in zip(result.findings, result.evidence, strict=True):
        if not isinstance(evidence, kinds.ProjectionEvidence):
            continue
        name = compared(finding.groups)
        if evidence.changes is not None:
            drawn += _movers(evidence.changes, name)
        if evidence.figure is not None and evidence.figure.series:
            drawn.append(_near_boundary(evidence.figure, name))
        if evidence.projected:
            drawn.append(_rates(evidence.projected, name))
    return drawn


def _movers(changes: kinds.Changes, name: str) -> list[Block]:
    rows = [
        {"label": _part(part), "value": number(part.people), "series": f"from {part.from_} to {part.to}"}
        for part in changes.by_group
        if part.people
    ]
    if not rows:
        return []
    return [
        bars(
            f"Who would have to change: {name}",
            "The smallest change of people that would make the rates equal: how many of each group would have to "
            "cross the decision boundary, and in which direction.",
            rows,
            value="people",
            label="Group",
        )
    ]


def _near_boundary(figure: kinds.DistanceHistogram, name: str) -> Block:
    edges = figure.edges
    width = max(1, (len(edges) - 1) // _MOST_BINS)
    points = [
        {
            "x": number((edges[j] + edges[j + width]) / 2),
            "y": number(sum(series.mass[j : j + width]) / (sum(series.mass) or 1)),
            "series": _part(series),
        }
        for series in figure.series
        for j in range(0, len(edges) - width, width)
    ]
    return lines(
        f"How near the boundary people stand: {name}",
        "Each group's people near the boundary by their distance to it: below 0 decided 0, above 0 decided 1. "
        "Those closest are the cheapest to move.",
        points,
        Frame(x="signed distance to the boundary", y="share", at=0.0),
    )


def _rates(projected: Sequence[kinds.ProjectedRate], name: str) -> Table:
    return Table(
        title=f"Rates of decision 1, before and after the change: {name}",
        head=("Group", "Reference", "Before", "After"),
        rows=tuple((_part(p), "yes" if p.reference else "", p.before, p.after) for p in projected),
    )


def _part(part: kinds.GroupChanges | kinds.NearBoundary | kinds.ProjectedRate) -> str:
    return part.group + ("" if part.outcome is None else f", outcome {part.outcome}")
