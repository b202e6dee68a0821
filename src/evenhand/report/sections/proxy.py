"""The proxy audit's figures: what each feature carries, the counterfactual group, the path of the gap."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.audits.proxy.evidence import Counterfactual, FeatureEvidence, GapEvidence, Rank
from evenhand.report.document import Block, Table, compared, p_value, shown
from evenhand.report.evidence import known
from evenhand.report.figures import Frame, forest, lines, number
from evenhand.results import AuditResult, Finding

_MOST_LINES = 30
Pair = tuple[Finding, FeatureEvidence]


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of a proxy audit."""
    pairs = list(zip(result.findings, result.evidence, strict=True))
    drawn: list[Block] = []
    for groups in dict.fromkeys(f.groups for f in result.findings):
        here = [(f, e) for f, e in pairs if f.groups == groups]
        made = _features([(f, e) for f, e in here if isinstance(e, FeatureEvidence)], compared(groups))
        for _, evidence in here:
            if isinstance(evidence, GapEvidence) and evidence.counterfactual is not None:
                made += _counterfactual(evidence.counterfactual, compared(groups))
        drawn += sorted(made, key=lambda block: isinstance(block, Table))  # figures side by side, then tables
    return drawn


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
                e.carried_share,
                p_value(f.pvalue_adjusted),
                e.association,
                e.score,
                _rank(e.ranking),
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


def _rank(ranking: Rank) -> str:
    low, high = ranking.rank_low, ranking.rank_high
    between = f" ({low} to {high})" if low != high else ""
    return f"{ranking.rank}{between}"


def _counterfactual(shift: Counterfactual, name: str) -> list[Block]:
    blocks: list[Block] = []
    if shift.path.gap:
        series = {"rows it was fitted on": shift.path.gap, "held-out rows": shift.path.held_out}
        rows = [
            {"x": j, "y": number(value), "series": of}
            for of, values in series.items()
            for j, value in enumerate(values)
            if known(value)
        ]
        blocks.append(
            lines(
                f"Path of the gap: {name}",
                f"The gap as the group is reweighted step by step. It stopped because {shift.stopped}. "
                f"{shown(shift.effective_rows)} effective rows of {shown(shift.rows)} are left.",
                rows,
                Frame(x="step", y="gap", none=0.0),
            )
        )
    if shift.means:
        blocks.append(
            Table(
                title=f"The population that would show no gap: means for {name}",
                head=("Feature", "Level", "Group", "Counterfactual", "Reference"),
                rows=tuple((m.feature, m.level, m.group, m.counterfactual, m.reference) for m in shift.means),
                folded=len(shift.means) > 12,
            )
        )
    return blocks
