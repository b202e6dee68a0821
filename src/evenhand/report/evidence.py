"""The evidence behind one finding, the same for all audits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenhand.inference.rates.conditional import exact_null
from evenhand.report.document import Block, Cell, Table, Text, p_value
from evenhand.report.figures import histogram
from evenhand.results import Finding, Interval

_MOST_GROUPS = 40
_SAID = (
    "fact", "planning", "warnings", "reason", "statistic", "test", "equivalence_pvalue", "adjusted_pvalue",
    "difference_pvalue", "equivalence_pvalue_adjusted", "difference_pvalue_adjusted", "verdict_interval",
)  # fmt: skip
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


def evidence_blocks(finding: Finding, evidence: Mapping[str, Any], *, drawn: bool) -> tuple[Block, ...]:
    """Lay out what is behind a finding: the counts, the test, what chance alone gives, warnings.

    Parameters
    ----------
    finding : Finding
        What was found.
    evidence : mapping
        As plain data.
    drawn : bool
        Whether the null distribution is drawn, where there is one.

    Returns
    -------
    tuple of block

    Examples
    --------
    >>> row = Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.1, reason="Because.")
    >>> [type(b).__name__ for b in evidence_blocks(row, {}, drawn=True)]
    ['Text', 'Table']
    """
    blocks: list[Block] = [Text(text=finding.reason)]
    blocks += [Text(text=str(w), kind="warning") for w in evidence.get("warnings") or ()]
    if finding.counts:
        blocks.append(_counts(finding, evidence))
    blocks.append(_test(finding, evidence))
    if drawn and has_null(finding, evidence):
        blocks.append(_null(finding, evidence))
    return tuple(blocks)


def verdict_interval(evidence: Mapping[str, Any]) -> Interval | None:
    """Return the interval at the level at which a verdict was reached.

    Parameters
    ----------
    evidence : mapping
        As plain data.

    Returns
    -------
    Interval or None

    Examples
    --------
    >>> verdict_interval({}) is None
    True
    """
    made = evidence.get("verdict_interval")
    if not isinstance(made, Mapping):
        return None
    low, high = made.get("low"), made.get("high")
    return Interval(
        low=-math.inf if low is None else float(low),
        high=math.inf if high is None else float(high),
        level=float(made["level"]),
        kind=str(made["kind"]),
    )


def has_null(finding: Finding, evidence: Mapping[str, Any]) -> bool:
    """Say whether what chance alone gives can be drawn: it was drawn at random, or it is known exactly.

    Parameters
    ----------
    finding : Finding
        What was found.
    evidence : mapping
        As plain data.

    Returns
    -------
    bool

    Examples
    --------
    >>> has_null(Finding(audit="group", measure="fnr", groups=(), estimate=0.1), {})
    False
    """
    if evidence.get("null"):
        return isinstance(evidence.get("statistic"), int | float)
    return bool(evidence.get("exact")) and _trials(finding) is not None


def _trials(finding: Finding) -> tuple[list[int], list[int]] | None:
    counts = [finding.counts.get(name, {}) for name in finding.groups]
    if len(counts) != 2 or any(not c.get("denominator") for c in counts):
        return None
    return [int(c["numerator"]) for c in counts], [int(c["denominator"]) for c in counts]


def _null(finding: Finding, evidence: Mapping[str, Any]) -> Block:
    title = f"What chance alone gives: {finding.measure}"
    null, trials = evidence.get("null"), _trials(finding)
    if not null and trials is not None:
        (x0, x1), (n0, n1) = trials
        edges, shares = exact_null(*trials)
        caption = "Bars: the difference of rates when group labels are shuffled. Line: the difference of these data."
        return histogram(
            title, caption, edges, shares, observed=x0 / n0 - x1 / n1, x="difference of rates", y="share of shuffles"
        )
    return histogram(
        title,
        "Bars: the statistic when group labels are shuffled. Line: the statistic of these data.",
        evidence["null"]["edges"],
        evidence["null"]["counts"],
        observed=abs(float(evidence["statistic"])),
        x="size of the statistic",
        y="shuffles",
    )


def _counts(finding: Finding, evidence: Mapping[str, Any]) -> Table:
    values = evidence.get("values")
    values = values if isinstance(values, Mapping) else {}
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


def _test(finding: Finding, evidence: Mapping[str, Any]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    if evidence.get("test"):
        rows.append(("Test", str(evidence["test"])))
    if isinstance(evidence.get("statistic"), int | float):
        rows.append(("Statistic", evidence["statistic"]))
    asked = "p-value" if finding.margin is None else "p-value for lying inside the margin"
    rows += [(asked, p_value(finding.pvalue)), (f"{asked}, adjusted", p_value(finding.pvalue_adjusted))]
    others = {
        "equivalence_pvalue": "p-value for lying outside the margin",
        "difference_pvalue": "p-value for no difference",
    }
    for key, name in others.items():
        if evidence.get(key) is not None:
            adjusted = evidence.get(f"{key}_adjusted")
            rows += [
                (name, p_value(evidence[key])),
                (f"{name}, adjusted", p_value(math.nan if adjusted is None else adjusted)),
            ]
    drawn_at_random = bool(evidence.get("n_resamples"))
    for key, name in _FACTS.items():
        if evidence.get(key) is not None and (drawn_at_random or key in ("exact", "pvalue_floor")):
            value = evidence[key]
            of = " (of no difference)" if key.startswith("pvalue") and "difference_pvalue" in evidence else ""
            rows.append((name + of, ("yes" if value else "no") if isinstance(value, bool) else value))
    if finding.margin is not None:
        rows.append(("Margin", finding.margin))
    for of, i in (("", finding.interval), (", as the verdict was reached", verdict_interval(evidence))):
        if i is not None:
            level = f"{100 * i.level:.6g} % interval{of}"
            rows += [(f"{level}, low", i.low), (f"{level}, high", i.high)]
    if finding.interval is not None:
        rows.append(("Interval made by", finding.interval.kind))
    for key, value in evidence.items():
        if key not in (*_SAID, *_FACTS) and isinstance(value, int | float | str) and value != "":
            told: Cell = ("yes" if value else "no") if isinstance(value, bool) else value
            rows.append((key.replace("_", " ").capitalize(), told))
    return Table(title="The test", head=("What", "Value"), rows=tuple(rows))


def _whole(value: float | None) -> Cell:
    return int(value) if value is not None and float(value).is_integer() else value
