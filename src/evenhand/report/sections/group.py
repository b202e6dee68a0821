"""The group audit's figures: differences with intervals, and differences over decision thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.audits.group.evidence import GroupEvidence, StrataEvidence
from evenhand.audits.margin import is_ratio, margin_ends, metric_of
from evenhand.metrics import METRICS
from evenhand.report.document import Block, Cell, Table, Text, compared, shown
from evenhand.report.evidence import known
from evenhand.report.figures import Frame, forest, lines, number
from evenhand.results import AuditResult, Finding, Interval, shown_p

_HOW = {
    "_conditional": " (within strata)",
    "_bounds": " (whatever the groups of people whose group is not known)",
    "_em": " (if it depends on the proxy through the group alone)",
}
_MOST_SERIES = 4
_MOST_LINES = 40
_WITH = {"highest": "the highest", "rest": "the rest", "overall": "everybody"}
_MOST_STRATA = 10  # in the table of strata


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures of a group audit.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> [b.title for b in blocks(run.results[0])][1:]
    ['fnr over decision thresholds', 'fnr: test at each threshold']
    """
    drawn: list[Block] = [*highest_tables(result)]
    for measure in dict.fromkeys(f.measure for f in result.findings):
        pairs = zip(result.findings, result.evidence, strict=True)
        rows = [(f, e) for f, e in pairs if f.measure == measure and f.interval is not None]
        if rows:
            drawn.append(_forest(measure, [f for f, _ in rows], [e.verdict_interval for _, e in rows]))
            if len(rows) > _MOST_LINES:
                drawn.append(Text(text=f"The first {_MOST_LINES} of {len(rows)} comparisons are drawn.", kind="note"))
    for finding, evidence in zip(result.findings, result.evidence, strict=True):
        if isinstance(evidence, GroupEvidence) and evidence.strata is not None:
            drawn += _strata(finding, evidence.strata)
    for measure in dict.fromkeys(f.measure for f in result.findings):
        drawn += _thresholds(measure, result)
    return drawn


def highest_tables(result: AuditResult) -> list[Block]:
    """Return a table for each attribute whose groups are compared with the highest, that one among them."""
    tables: dict[tuple[str, str], list[tuple[Finding, GroupEvidence]]] = {}
    for f, e in zip(result.findings, result.evidence, strict=True):
        if isinstance(e, GroupEvidence) and e.reference == "highest":
            tables.setdefault((f.measure, f.groups[0].partition("=")[0]), []).append((f, e))
    return [_highest_table(*key, rows) for key, rows in tables.items()]


def _highest_table(measure: str, attribute: str, compared_: Sequence[tuple[Finding, GroupEvidence]]) -> Table:
    ratio, (first, of_first) = is_ratio(measure), compared_[0]
    short = any(e.shortfall is not None for _, e in compared_)
    top = of_first.highest_group or ""
    rows: list[tuple[Cell, ...]] = [
        _highest_row(top, first, of_first, (1.0 if ratio else 0.0, None, None), (None,) * short, "highest")
    ]
    for f, e in compared_:
        ends = (None, None) if f.interval is None else (f.interval.low, f.interval.high)
        missing = (e.shortfall,) if short else ()
        rows.append(_highest_row(f.groups[0], f, e, (f.estimate, *ends), missing, f.verdict))
    rows.sort(key=lambda row: -row[4] if isinstance(row[4], float) and known(row[4]) else 2.0)
    level = f"{100 * first.interval.level:.4g}%" if first.interval else ""
    value = "Ratio to the highest" if ratio else "Difference from the highest"
    missing_head = ("People short of the margin",) if short else ()
    return Table(
        title=f"{_title(measure)}: {attribute}",
        head=("Group", "People", "Counted", "Rate", value, f"{level} low", f"{level} high", *missing_head, "Verdict"),
        rows=tuple(rows),
        folded=len(rows) > _MOST_LINES,
    )


def _highest_row(
    name: str, finding: Finding, evidence: GroupEvidence, value: Sequence[Cell], missing: Sequence[Cell], said: Cell
) -> tuple[Cell, ...]:
    counts = finding.counts.get(name, {})
    rate = evidence.values.get(name) if isinstance(evidence.values, Mapping) else None
    people, counted = counts.get("denominator", counts.get("rows")), counts.get("numerator")
    return (name.partition("=")[2], people, counted, rate, *value, *missing, said)


def _forest(measure: str, findings: Sequence[Finding], adjusted: Sequence[Interval | None]) -> Block:
    ratio = is_ratio(measure)
    margins = sorted({f.margin for f in findings if f.margin is not None})
    ends = [end for m in margins for end in margin_ends(measure, m)]
    with_what = {f.groups[-1].rpartition("=")[2] for f in findings}
    word = _WITH.get(with_what.pop(), "the reference") if len(with_what) == 1 else "the reference"
    if word == _WITH["highest"]:
        ends = [end for end in ends if end < (1.0 if ratio else 0.0)]  # nothing is higher
    firsts = [f.groups[0] for f in findings]
    short = len(set(firsts)) == len(firsts)  # one comparison per group: its name is enough
    rows = [
        {
            "label": f.groups[0] if short else compared(f.groups),
            "estimate": number(f.estimate),
            "low": number(f.interval.low),
            "high": number(f.interval.high),
            "low_adjusted": number(wide.low) if wide else None,
            "high_adjusted": number(wide.high) if wide else None,
            "verdict": shown(f.verdict),
        }
        for f, wide in list(zip(findings, adjusted, strict=True))[:_MOST_LINES]
        if f.interval is not None
    ]
    level = findings[0].interval.level if findings[0].interval else 0.95
    point = "the possible value nearest to no disparity" if measure.endswith("_bounds") else "estimate"
    caption = f"Point: {point}. Thick line: {100 * level:.4g}% interval, of this comparison alone. "
    if any(adjusted):
        caption += "Thin line: the interval at the level at which the verdict was reached. "
    caption += "At 1 the groups are alike." if ratio else "At 0 the groups are alike."
    if ends:
        caption += " Dashed: the margin that counts as negligible."
    if short:
        caption += f" Compared with {', '.join(dict.fromkeys(f.groups[-1] for f in findings))}."
    return forest(
        f"{_title(measure)}: {'ratio to' if ratio else 'difference from'} {word}",
        caption,
        rows,
        value="ratio" if ratio else "difference",
        none=1.0 if ratio else 0.0,
        margin=ends,
    )


def _title(measure: str) -> str:
    """Name a metric with what it is, where the catalogue knows it."""
    name = metric_of(measure)
    how = next((said for kind, said in _HOW.items() if measure.endswith(kind)), "")
    return (f"{name}, {METRICS[name].says}" if name in METRICS else name) + how


def _strata(finding: Finding, strata: StrataEvidence) -> list[Block]:
    """Show a comparison stratum by stratum, the conditional one and the crude one below."""
    ratio, interval = is_ratio(finding.measure), finding.interval
    if not strata.largest or interval is None:
        return []
    value = "ratio" if ratio else "difference"
    lines = [
        *((part.label, part.estimate, part.low, part.high) for part in strata.largest),
        ("within strata", finding.estimate, interval.low, interval.high),
        ("without strata", strata.crude, strata.crude_interval.low, strata.crude_interval.high),
    ]
    rows = [
        {"label": label, "estimate": number(at), "low": number(low), "high": number(high)}
        for label, at, low, high in lines
    ]
    name = f"{finding.measure.removesuffix('_conditional')}, {compared(finding.groups)}"
    caption = f"Point: the {value} in each stratum. Line: {interval.level:.0%} interval, of this stratum alone. "
    if strata.compared > len(strata.largest):
        caption += f"The {len(strata.largest)} of {strata.compared:,} strata that count most. "
    caption += "Below: the weighted mean of all strata with both groups, and the value of everybody without strata."
    said = f"All {strata.strata:,} strata have rows of both groups."
    if strata.compared < strata.strata:
        said = (
            f"{strata.compared:,} of {strata.strata:,} strata have rows of both groups and {strata.rows_compared:,} of "
            f"{strata.rows:,} rows are in them; the others carry no information."
        )
    if strata.homogeneity is not None:
        same = strata.homogeneity
        said += f" Is the {value} the same in all strata? Q = {same.statistic:.2f} on {same.df} degrees of freedom, "
        said += f"p {shown_p(same.pvalue)}."
    head = ("Stratum", "First value", "Second value", "First rows", "Second rows", value.capitalize(), "Weight")
    cells = tuple(
        (s.label, s.first, s.second, s.first_rows, s.second_rows, s.estimate, s.share)
        for s in strata.largest[:_MOST_STRATA]
    )
    return [
        forest(f"{name}: stratum by stratum", caption, rows, value=value, none=1.0 if ratio else 0.0, label="Stratum"),
        Text(text=said, kind="note"),
        Table(title=f"The strata of {strata.name} that count most: {name}", head=head, rows=cells, folded=True),
    ]


def _thresholds(measure: str, result: AuditResult) -> list[Block]:
    pairs = zip(result.findings, result.evidence, strict=True)
    curves = [
        (f, e.thresholds) for f, e in pairs if f.measure == measure and isinstance(e, GroupEvidence) and e.thresholds
    ]
    # The largest groups: the curves of small ones are all band.
    curves.sort(key=lambda pair: -min((c.get("rows", 0) for c in pair[0].counts.values()), default=0))
    curves = curves[:_MOST_SERIES]
    if not curves:
        return []
    rows: list[dict[str, Any]] = []
    tests: list[dict[str, Any]] = []
    for finding, curve in curves:
        series = compared(finding.groups)
        for t, d, low, high, p in zip(
            curve.threshold, curve.difference, curve.low, curve.high, curve.pvalue, strict=True
        ):
            if not known(d):
                continue
            rows.append({"x": number(t), "y": number(d), "low": number(low), "high": number(high), "series": series})
            # 1e-12 is the floor of the chart, not of the test.
            tests.append({"x": number(t), "y": number(max(p, 1e-12)), "series": series})
    used = curves[0][1].used if known(curves[0][1].used) else None
    threshold_note = " Dashed: the threshold that was used." if used is not None else ""
    name, x = measure.removesuffix("_ratio"), "threshold of the score"
    return [
        lines(
            f"{name} over decision thresholds",
            "Difference from the reference if everybody at or above the threshold were decided 1, with a 95% interval "
            f"at each threshold alone.{threshold_note}",
            rows,
            Frame(x=x, y="difference", none=0.0, at=used),
        ),
        lines(
            f"{name}: test at each threshold",
            "p-value of the test at each threshold alone, on a log scale; below the dashed line it is under 0.05, and "
            "what is below 1e-12 stands there. "
            "Looking at many thresholds finds small p-values by chance: this chart explores, the verdicts decide.",
            tests,
            Frame(x=x, y="p-value", dashed=[0.05], y_log=True),
        ),
    ]
