"""The evidence behind one finding, the same for all audits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from evenhand.inference.rates.conditional import exact_null
from evenhand.report.document import Block, Cell, Table, Text, p_value
from evenhand.report.figures import histogram
from evenhand.results import Evidence, Finding

_MOST_GROUPS = 40
_OTHER_TESTS = {
    "equivalence_pvalue": "p-value for lying outside the margin",
    "difference_pvalue": "p-value for no difference",
}
_FACTS = {
    "exact": "Exact",
    "n_resamples": "Random permutations",
    "pvalue_low": "p-value, Monte-Carlo low",
    "pvalue_high": "p-value, Monte-Carlo high",
    "pvalue_floor": "Smallest possible p-value",
}
_SHARED = tuple(field.name for field in fields(Evidence))


def evidence_blocks(finding: Finding, evidence: Evidence, *, drawn: bool) -> tuple[Block, ...]:
    """Lay out what is behind a finding: the counts, the test, what chance alone gives, warnings.

    Parameters
    ----------
    finding : Finding
        What was found.
    evidence : Evidence
        What stands behind it.
    drawn : bool
        Whether the null distribution is drawn, where there is one.

    Returns
    -------
    tuple of block

    Examples
    --------
    >>> row = Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.1, reason="Because.")
    >>> [type(b).__name__ for b in evidence_blocks(row, Evidence(), drawn=True)]
    ['Text', 'Table']
    """
    blocks: list[Block] = [Text(text=finding.reason)]
    blocks += [Text(text=w, kind="warning") for w in evidence.warnings or ()]
    if finding.counts:
        blocks.append(_counts(finding, evidence))
    blocks.append(_test(finding, evidence))
    if drawn and has_null(finding, evidence):
        blocks.append(_null(finding, evidence))
    return tuple(blocks)


def has_null(finding: Finding, evidence: Evidence) -> bool:
    """Say whether what chance alone gives can be drawn: it was drawn at random, or it is known exactly."""
    if evidence.null is not None:
        return known(evidence.statistic)
    within = finding.measure.endswith("_conditional")  # the counts of everybody say nothing about shuffles in strata
    return bool(evidence.exact) and not within and _trials(finding) is not None


def _trials(finding: Finding) -> tuple[list[int], list[int]] | None:
    counts = [finding.counts.get(name, {}) for name in finding.groups]
    if len(counts) != 2 or any(not c.get("denominator") for c in counts):
        return None
    return [int(c["numerator"]) for c in counts], [int(c["denominator"]) for c in counts]


def _null(finding: Finding, evidence: Evidence) -> Block:
    title = f"What chance alone gives: {finding.measure}"
    null, trials = evidence.null, _trials(finding)
    if null is None and trials is not None:
        (x0, x1), (n0, n1) = trials
        caption = "Bars: the difference of rates when group labels are shuffled. Line: the difference of these data."
        x, y, observed = "difference of rates", "share of shuffles", x0 / n0 - x1 / n1
        return histogram(title, caption, *exact_null(*trials), observed=observed, x=x, y=y)
    assert null is not None
    caption = "Bars: the statistic when group labels are shuffled. Line: the statistic of these data."
    x, y, observed = "size of the statistic", "shuffles", abs(evidence.statistic or 0.0)
    return histogram(title, caption, null.edges, null.counts, observed=observed, x=x, y=y)


def _counts(finding: Finding, evidence: Evidence) -> Table:
    values = evidence.values if isinstance(evidence.values, Mapping) else {}
    keys = list(dict.fromkeys(key for counts in finding.counts.values() for key in counts))
    head = ("Group", *(key.replace("_", " ").capitalize() for key in keys), *(("Value",) if values else ()))
    rows = []
    for name, counts in list(finding.counts.items())[:_MOST_GROUPS]:
        row: list[Cell] = [name, *(_whole(counts.get(key)) for key in keys)]
        if values:
            row.append(values.get(name))
        rows.append(tuple(row))
    more = len(finding.counts) - len(rows)
    title = "Counts behind it" + (
        f", the first {_MOST_GROUPS} groups; {more} more in findings.json" if more > 0 else ""
    )
    return Table(title=title, head=head, rows=tuple(rows))


def _test(finding: Finding, evidence: Evidence) -> Table:
    rows: list[tuple[Cell, ...]] = []
    if evidence.test:
        rows.append(("Test", evidence.test))
    if known(evidence.statistic):
        rows.append(("Statistic", evidence.statistic))
    asked = "p-value" if finding.margin is None else "p-value for lying inside the margin"
    rows += [(asked, p_value(finding.pvalue)), (f"{asked}, adjusted", p_value(finding.pvalue_adjusted))]
    for key, name in _OTHER_TESTS.items():
        if known(getattr(evidence, key)):
            adjusted = getattr(evidence, f"{key}_adjusted")
            rows += [
                (name, p_value(getattr(evidence, key))),
                (f"{name}, adjusted", p_value(math.nan if adjusted is None else adjusted)),
            ]
    for key, name in _FACTS.items():
        value = getattr(evidence, key)
        if known(value) and (evidence.n_resamples or key in ("exact", "pvalue_floor")):
            of = " (of no difference)" if key.startswith("pvalue") and evidence.difference_pvalue is not None else ""
            rows.append((name + of, _yes(value)))
    if finding.margin is not None:
        rows.append(("Margin", finding.margin))
    for of, i in (("", finding.interval), (", as the verdict was reached", evidence.verdict_interval)):
        if i is not None:
            level = f"{100 * i.level:.6g} % interval{of}"
            rows += [(f"{level}, low", i.low), (f"{level}, high", i.high)]
    if finding.interval is not None:
        rows.append(("Interval made by", finding.interval.kind))
    for field in fields(evidence):
        value = getattr(evidence, field.name)
        if field.name not in _SHARED and isinstance(value, int | float | str) and value != "" and known(value):
            rows.append((field.name.replace("_", " ").capitalize(), _yes(value)))
    return Table(title="The test", head=("What", "Value"), rows=tuple(rows))


def known(value: object) -> bool:
    """Say whether a value is there and, if it is a number, one."""
    return value is not None and value == value


def _yes(value: Cell) -> Cell:
    return ("yes" if value else "no") if isinstance(value, bool) else value


def _whole(value: float | None) -> Cell:
    return int(value) if value is not None and float(value).is_integer() else value
