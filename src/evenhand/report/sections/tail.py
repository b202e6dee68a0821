"""The tail audit's figures: quantiles against the fitted tail, and return levels by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.audits.tail.evidence import DifferenceEvidence, LevelEvidence, ReturnLevel, TailShown
from evenhand.report.document import Block, Cell, Table, Text
from evenhand.report.evidence import known
from evenhand.report.figures import Frame, lines, number
from evenhand.report.quantile_chart import quantile_chart
from evenhand.results import AuditResult, Evidence

_CLOSE = 0.05  # of score: an interval this short says something, whatever limits it


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of a tail audit."""
    groups: dict[str, TailShown] = {}
    for evidence in result.evidence:
        for part in _parts(evidence):
            groups.setdefault(f"{part.group} recorded as {part.recorded_as}", part)
    if not groups:
        return []
    return [*_levels(groups), *_quantiles(groups), _table(groups), *_printed(groups)]


def _parts(evidence: Evidence) -> Iterable[TailShown]:
    if isinstance(evidence, LevelEvidence):
        return (evidence,)
    return (evidence.groups or {}).values() if isinstance(evidence, DifferenceEvidence) else ()


def _levels(groups: Mapping[str, TailShown]) -> list[Block]:
    rows = [
        {
            "x": number(point.interactions),
            "y": number(point.level),
            "low": number(point.low),
            "high": number(point.high),
            "series": name,
        }
        for name, part in groups.items()
        for point in part.return_levels
        if known(point.level) and not _unlimited(point)
    ]
    if not rows:
        return []
    return [
        lines(
            "Return levels",
            "The change of score that one person in so many decisions exceeds, had they been recorded as the other "
            "group. Band: interval. Counted where the rows reach; beyond them "
            "shown only where a fit is believed. Horizons at which nothing but the score's range limits the level are "
            "left out.",
            rows,
            Frame(
                x="decisions",
                y="change of score",
                none=0.0,
                x_log=True,
                x_values=[10.0**j for j in range(1, 7)],
                points=True,
            ),
        )
    ]


def _unlimited(point: ReturnLevel) -> bool:
    """Say whether an interval ends where the score does, far from the level."""
    low, high = number(point.low), number(point.high)
    open_end = point.kind.endswith("largest possible change above")
    return open_end and (low is None or high is None or high - low > _CLOSE)


def _quantiles(groups: Mapping[str, TailShown]) -> list[Block]:
    rows: list[dict[str, Any]] = []
    for name, part in groups.items():
        plot = part.quantile_plot
        both = [] if plot is None else list(zip(plot.fitted, plot.observed, strict=True))
        step = max(1, len(both) // 80)
        kept = [*both[::step], *(both[-3:] if step > 1 else ())]
        rows += [{"x": number(a), "y": number(b), "series": name} for a, b in dict.fromkeys(kept)]
    rows = [row for row in rows if row["x"] is not None and row["y"] is not None]
    if not rows:
        return []
    caption = "Observed against fitted quantiles of the tail. Points on the line: the fit describes the tail."
    return [quantile_chart("Does the fitted tail fit?", caption, rows)]


def _table(groups: Mapping[str, TailShown]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, part in groups.items():
        worst, fit = part.observed_maximum, part.fit
        rows.append(
            (
                name,
                part.rows,
                part.acd,
                part.cvar.value,
                worst.value,
                worst.share_above_at_most,
                *((None, None, None) if fit is None else (fit.k, fit.shape, fit.type)),
                "nobody better off" if part.nobody_better_off else part.doubt or "yes",
            )
        )
    return Table(
        title="Average, tail and largest change of score by group",
        head=(
            "Group",
            "Rows",
            "Mean (ACD)",
            "CVaR",
            "Largest seen",
            "Share above it, at most",
            "Tail points",
            "Shape",
            "Type",
            "Believed beyond the rows",
        ),
        rows=tuple(rows),
    )


def _printed(groups: Mapping[str, TailShown]) -> list[Block]:
    """Show what Algorithm 1 as printed gives, where it was asked for, apart from what was found."""
    rows: list[tuple[Cell, ...]] = [
        (name, fit.reading, fit.rows, fit.generated, fit.type or "its test fails", fit.shape, fit.location)
        for name, part in groups.items()
        for fit in part.printed_algorithm or ()
    ]
    if not rows:
        return []
    warning = (
        'The next table is Algorithm 1 of [monjezi2025] as printed, asked for with generate="printed". Its generated '
        "rows are made up and counted as people. Nothing else on this page rests on it."
    )
    head = ("Group", "Variation of the", "People", "Made-up rows", "Type", "Shape", "Level at the horizon")
    return [
        Text(text=warning, kind="warning"),
        Table(title="Algorithm 1 as printed: made-up rows count as people", head=head, rows=tuple(rows)),
    ]
