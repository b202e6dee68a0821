"""The scan's figure and tables: who differs, by how much, how many people that is, and what was searched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evenhand.audits.scan.evidence import MOST_NAMED, ScanEvidence
from evenhand.metrics import METRICS
from evenhand.report.document import Block, Cell, Figure, Table, Text, p_value, shown
from evenhand.report.figures import number
from evenhand.report.ranked_chart import ranked_chart
from evenhand.results import AuditResult, Finding, Verdict, shown_p

Pair = tuple[Finding, ScanEvidence]

_MOST_DRAWN = 12
_MOST_ROWS = 10  # a longer table is opened by hand
_MOST_IN_MATRIX = 8
_NOBODY = ""  # a subgroup and itself
_WHOM = {"rest": "everybody else", "overall": "everybody"}


def blocks(result: AuditResult) -> list[Block]:
    """Return the figures and tables of a scan.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> rng = np.random.default_rng(1)
    >>> groups = {name: rng.choice(list("ab"), 2000) for name in ("sex", "race")}
    >>> decision = rng.random(2000) < np.where((groups["sex"] == "a") & (groups["race"] == "b"), 0.2, 0.5)
    >>> data = eh.AuditData.from_arrays(decision=decision, groups=groups)
    >>> [type(block).__name__ for block in blocks(eh.audit_scan(data, rng=0))][:2]
    ['Figure', 'Text']
    """
    pairs = zip(result.findings, result.evidence, strict=True)
    known = [(f, e) for f, e in pairs if isinstance(e, ScanEvidence)]
    figures: list[Block] = []
    others: list[Block] = []
    for measure in dict.fromkeys(f.measure for f, _ in known):
        ranked = by_evidence([pair for pair in known if pair[0].measure == measure])
        figures.append(_chart(measure, ranked))
        others += [_searched(measure, ranked, result.options), _subgroups(measure, ranked), *_folded(measure, ranked)]
    return [*figures, *others]


def by_evidence(pairs: Sequence[Pair]) -> list[Pair]:
    """Order the subgroups of one metric: those that are shown first, the strongest evidence first.

    Very strong evidence has p-values that are no longer told apart; there the distance in standard errors decides.
    """

    def key(pair: Pair) -> tuple[bool, float, float]:
        finding, evidence = pair
        distance = abs(evidence.statistic or 0.0)
        return finding.verdict is not Verdict.DISPARITY, finding.pvalue, 0.0 if math.isnan(distance) else -distance

    return sorted(pairs, key=key)


def _chart(measure: str, pairs: Sequence[Pair]) -> Figure:
    rows = [
        {
            "name": f.groups[0],
            "people": e.people,
            "estimate": number(f.estimate),
            "low": number(f.interval.low if f.interval else None),
            "high": number(f.interval.high if f.interval else None),
            "verdict": shown(f.verdict),
        }
        for f, e in pairs[:_MOST_DRAWN]
    ]
    whom = _WHOM.get(pairs[0][0].groups[-1], "everybody else")
    interval = next((f.interval for f, _ in pairs if f.interval), None)
    caption = f"Point: by how much {measure} differs from that of {whom}; at 0 it does not. "
    if interval is not None:
        together = "of all subgroups together" if pairs[0][1].control == "family-wise" else "of those that are shown"
        caption += f"Line: {100 * interval.level:.4g}% interval {together}. "
    caption += "Those that are shown to differ come first, the strongest evidence above; the others are greyed."
    if len(pairs) > _MOST_DRAWN:
        caption += f" The first {_MOST_DRAWN} of {len(pairs):,} are drawn."
    return ranked_chart(f"{_title(measure)}: difference from {whom}", caption, rows, value="difference")


def _title(measure: str) -> str:
    return f"{measure}, {METRICS[measure].says}" if measure in METRICS else measure


def _searched(measure: str, pairs: Sequence[Pair], options: Mapping[str, object]) -> Text:
    """Say in plain words what was searched, what a subgroup had to reach, and what would have been found."""
    e = pairs[0][1]
    said = [
        f"{measure}: {e.described:,} subgroups can be described with at most {options.get('depth', 3)} conditions.",
        f"{e.considered:,} of them have at least {options.get('smallest', 20)} people whom {measure} is about, and are "
        "not another name for the same people.",
        _tested(e),
        _bar(e),
        _shown_number([evidence for f, evidence in pairs if f.verdict is Verdict.DISPARITY]),
    ]
    if e.detectable:
        ends = list(dict.fromkeys([e.detectable[0], e.detectable[-1]]))
        told = " and ".join(f"{d.difference:.3f} in a subgroup of {d.size:,} people" for d in ends)
        said.append(f"In 8 of 10 cases a difference of {told} would have been found.")
    return Text(text=" ".join(sentence for sentence in said if sentence))


def _tested(e: ScanEvidence) -> str:
    if e.confirmed_on is not None:
        return f"{e.tested:,} were picked on one part of the people and tested on the {e.confirmed_on:,} others."
    if e.tested == e.considered:
        return "All of these were tested."
    return (
        f"{e.tested:,} of these are large enough to be shown at all and were tested; leaving out the others makes "
        "these easier to show."
    )


def _bar(e: ScanEvidence) -> str:
    """Say what a single subgroup had to reach."""
    bar = e.critical_pvalue or 0.0
    if not bar > 0:
        return ""
    if e.control == "fdr":
        return f"A small share of those that are shown may be false; each has a p-value of at most {shown_p(bar)}."
    return f"Because so many were looked at, a single one had to reach a p-value of {shown_p(bar)} of its own."


def _shown_number(disparities: Sequence[ScanEvidence]) -> str:
    number, stand = len(disparities), sum(e.stands_for_number for e in disparities)
    if not number:
        return "None is shown to differ, which does not show that none does."
    one = number == 1
    said = f"{number:,} {'is' if one else 'are'} shown to differ beyond the others."
    if stand:
        said += f" {stand:,} more differ only through people of {'this one' if one else 'these'}."
    return said


def _subgroups(measure: str, pairs: Sequence[Pair]) -> Table:
    """List the subgroups by evidence, with their place by the number of people affected beside it."""
    affected = sorted(range(len(pairs)), key=lambda j: (-abs(_more(pairs[j][1])), j))
    place = {j: k + 1 for k, j in enumerate(affected)}
    counted = any(e.more_people is not None for _, e in pairs)
    standing = any(e.stands_for_number for _, e in pairs)
    whom = "Everybody" if pairs[0][0].groups[-1] == "overall" else "The rest"
    rows = []
    for j, (f, e) in enumerate(pairs):
        ends = (None, None) if f.interval is None else (f.interval.low, f.interval.high)
        people: tuple[Cell, ...] = (_whole(e.more_people), place[j]) if counted else ()
        cells: tuple[Cell, ...] = (j + 1, f.groups[0], e.people, *_values(f, e), f.estimate, *ends)
        others = (e.stands_for_number,) if standing else ()
        rows.append((*cells, *people, p_value(f.pvalue_adjusted), *others, f.verdict))
    more = ("People more or fewer", "Rank by people") if counted else ()
    head = ("Rank by evidence", "Subgroup", "People", "Its value", whom, "Difference", "Low", "High", *more)
    return Table(
        title=f"Subgroups by evidence: {measure}",
        head=(*head, "p adjusted", *(("Stands for others",) if standing else ()), "Verdict"),
        rows=tuple(rows),
        folded=len(rows) > _MOST_ROWS,
    )


def _more(evidence: ScanEvidence) -> float:
    more = evidence.more_people
    return 0.0 if more is None or math.isnan(more) else more


def _whole(value: float | None) -> Cell:
    return None if value is None or math.isnan(value) else round(value)


def _values(finding: Finding, evidence: ScanEvidence) -> tuple[Cell, Cell]:
    values = evidence.values if isinstance(evidence.values, Mapping) else {}
    return values.get(finding.groups[0]), values.get(finding.groups[-1])


def _folded(measure: str, pairs: Sequence[Pair]) -> list[Block]:
    """Return what is opened by hand: shorter descriptions, what stands for what, overlaps, what could be found."""
    own = [(f, e) for f, e in pairs if f.verdict is Verdict.DISPARITY]
    made = [_beyond(measure, own), _stands_for(measure, own), _overlaps(measure, own), _rounded(measure, pairs)]
    made.append(_detectable(measure, pairs))
    return [table for table in made if table.rows]


def _beyond(measure: str, pairs: Sequence[Pair]) -> Table:
    rows = [
        (f.groups[0], part.parent, part.difference, part.low, part.high, p_value(part.pvalue))
        for f, e in pairs
        for part in e.beyond_parents
    ]
    level = next((part.level for _, e in pairs for part in e.beyond_parents), 0.95)
    return Table(
        title=f"What remains beyond shorter descriptions: {measure} ({100 * level:.4g}% intervals, each alone)",
        head=("Subgroup", "Against the others of", "Difference", "Low", "High", "p"),
        rows=tuple(rows),
        folded=True,
    )


def _stands_for(measure: str, pairs: Sequence[Pair]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for f, e in pairs:
        more = e.stands_for_number - len(e.stands_for)
        rest = f"; and {more:,} more" if more else ""
        if e.stands_for_number:
            rows.append((f.groups[0], e.stands_for_number, "; ".join(e.stands_for) + rest))
    head = ("Subgroup", "Number", "Also shown, but differing only through its people")
    return Table(title=f"What each subgroup stands for: {measure}", head=head, rows=tuple(rows), folded=True)


def _overlaps(measure: str, pairs: Sequence[Pair]) -> Table:
    """Show which share of each subgroup's people belongs to each other one, for those with the most evidence."""
    listed = pairs[:_MOST_IN_MATRIX] if len(pairs) > 1 else []
    names = [f.groups[0] for f, _ in listed]
    rows: list[tuple[Cell, ...]] = []
    for j, (f, e) in enumerate(listed):
        share = {overlap.group: overlap.share for overlap in e.overlaps}
        least = f"below {min(share.values()):.0%}" if len(share) >= MOST_NAMED else "0%"
        cells = [_NOBODY if name == f.groups[0] else f"{share[name]:.0%}" if name in share else least for name in names]
        rows.append((f"{j + 1}: {f.groups[0]}", e.people, *cells))
    first = f", the first {len(listed)}" if len(listed) < len(pairs) else ""
    return Table(
        title=f"How the shown subgroups overlap: {measure}{first}",
        head=("Of the people of", "People", *(f"are also in {j + 1}" for j in range(len(listed)))),
        rows=tuple(rows),
        folded=True,
    )


def _rounded(measure: str, pairs: Sequence[Pair]) -> Table:
    """Give the conditions with all digits where the name of a subgroup rounds a number."""
    tested = [(f.groups[0], " & ".join(e.conditions)) for f, e in pairs]
    return Table(
        title=f"Numbers in the names of subgroups, with all digits: {measure}",
        head=("Subgroup", "Tested as"),
        rows=tuple(pair for pair in tested if pair[0] != pair[1]),
        folded=True,
    )


def _detectable(measure: str, pairs: Sequence[Pair]) -> Table:
    return Table(
        title=f"What would have been found: {measure}",
        head=("People in the subgroup", "Difference found in 8 of 10 cases"),
        rows=tuple((d.size, d.difference) for d in pairs[0][1].detectable),
        folded=True,
    )
