"""The proxy audit's figures: what each feature carries, the counterfactual group, the path of the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.report.document import Block, Table, compared, p_value, shown
from evenhand.report.figures import forest, lines, number
from evenhand.results import AuditResult, Finding

_MOST_LINES = 30
Pair = tuple[Finding, Mapping[str, Any]]


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of a proxy audit.

    Parameters
    ----------
    result : AuditResult
        As plain data.

    Returns
    -------
    list of block

    Examples
    --------
    >>> blocks(AuditResult(audit="proxy", findings=(), evidence=()))
    []
    """
    pairs = list(zip(result.findings, result.evidence, strict=True))
    found: list[Block] = []
    for groups in dict.fromkeys(f.groups for f in result.findings):
        here = [(f, e) for f, e in pairs if f.groups == groups]
        made = _features([(f, e) for f, e in here if ":" in f.measure], compared(groups))
        for _, evidence in here:
            made += _counterfactual(evidence.get("counterfactual") or {}, groups)
        found += sorted(made, key=lambda block: isinstance(block, Table))  # figures side by side, then tables
    return found


def _features(pairs: Sequence[Pair], name: str) -> list[Block]:
    pairs = sorted((p for p in pairs if p[0].estimate == p[0].estimate), key=lambda p: -abs(p[0].estimate))
    if not pairs:
        return []
    rows = [
        {
            "label": f.measure.partition(":")[2],
            "estimate": number(f.estimate),
            "low": number(f.interval.low if f.interval else None),
            "high": number(f.interval.high if f.interval else None),
            "verdict": shown(f.verdict),
        }
        for f, _ in pairs[:_MOST_LINES]
    ]
    table = Table(
        title=f"Features, the largest part of the gap first: {name}",
        head=(
            "Feature",
            "Part of the gap",
            "Share of the gap",
            "p adjusted",
            "Association with the group",
            "Proxy score",
            "Rank by score",
        ),
        rows=tuple(
            (
                f.measure.partition(":")[2],
                f.estimate,
                e.get("carried_share"),
                p_value(f.pvalue_adjusted),
                e.get("association"),
                e.get("score"),
                _rank(e.get("ranking") or {}),
            )
            for f, e in pairs
        ),
        folded=True,
    )
    margin = pairs[0][0].margin
    more = "more than nothing" if margin is None else f"more than {shown(margin)} (the margin)"
    chart = forest(
        f"Part of the gap that goes through each feature: {name}",
        "By how much the gap would change if this feature alone were distributed in the group as in the reference. "
        f"Line: interval. A feature shows `disparity` when it is shown to carry {more} of a gap that is itself shown.",
        rows,
        value="part of the gap",
        none=0.0,
        margin=() if margin is None else (-margin, margin),
        label="Feature",
    )
    return [chart, table]


def _rank(ranking: Mapping[str, Any]) -> str:
    if not ranking:
        return ""
    low, high = ranking.get("rank_low"), ranking.get("rank_high")
    between = f" ({low} to {high})" if low != high else ""
    return f"{ranking.get('rank')}{between}"


def _counterfactual(found: Mapping[str, Any], groups: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    path = found.get("path") or {}
    if path.get("gap"):
        names = {"gap": "rows it was fitted on", "held_out": "held-out rows"}
        rows = [
            {"x": j, "y": number(value), "series": name}
            for key, name in names.items()
            for j, value in enumerate(path.get(key) or ())
            if value is not None
        ]
        blocks.append(
            lines(
                f"Path of the gap: {compared(groups)}",
                f"The gap as the group is reweighted step by step. It stopped because {found.get('stopped', '')}. "
                f"{shown(found.get('effective_rows'))} effective rows of {shown(found.get('rows'))} are left.",
                rows,
                x="step",
                y="gap",
                none=0.0,
            )
        )
    means = found.get("means") or ()
    if means:
        blocks.append(
            Table(
                title=f"The population that would show no gap: means for {compared(groups)}",
                head=("Feature", "Level", "Group", "Counterfactual", "Reference"),
                rows=tuple(
                    (m["feature"], m.get("level") or "", m["group"], m["counterfactual"], m["reference"]) for m in means
                ),
                folded=len(means) > 12,
            )
        )
    return blocks
