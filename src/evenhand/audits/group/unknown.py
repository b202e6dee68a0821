"""Comparison of two groups where some people's group is unknown: what holds wherever these people belong.

The finding is about the true difference (or ratio), of which the data say only that it lies between two ends: the
values under the assignments of the unknown people that make it smallest and largest (`inference.unknown.completions`).
Its estimate is the possible value nearest to no disparity: 0 (or 1) where the ends lie on both sides of it, otherwise
the nearer end. Its interval covers the true value wherever it lies between the ends (Imbens and Manski). Its p-value is
against "some possible value is no disparity", or lies inside the margin, so a verdict means that every possible value
agrees. The value among the people whose group is known is in the evidence: it would be the answer if groups were
missing at random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.group.completed import Question, completed, refusal, tolerated
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.group.options import GroupSetting
from evenhand.audits.group.samples import samples_of
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.unknown.identified import IdentifiedSet
from evenhand.intake import Attribute
from evenhand.metrics import Metric
from evenhand.results import Finding, Interval
from evenhand.summaries import Sums

_ASSUMPTION = "none: people of unknown group may belong to any group"


def compare_unknown(
    metric: Metric, sums: Sums, attribute: Attribute, pair: tuple[int, int], options: GroupSetting, draws: Draws
) -> Raw:
    """Compare two groups whatever groups the people of unknown group belong to.

    Parameters
    ----------
    metric : Metric
        What is compared.
    sums : Sums
        Of the data.
    attribute : Attribute
        Whose groups; it is unknown for some people.
    pair : tuple of int
        Codes of the group and its reference.
    options : GroupSetting
        Ratio or difference, margin, alpha, level.
    draws : Draws
        How the reference distributions are made.

    Returns
    -------
    Raw
    """
    assert attribute.unknown is not None
    asked = Question(
        metric=metric,
        sums=sums,
        attribute=attribute,
        unknown=attribute.unknown,
        pair=pair,
        options=options,
        draws=draws,
    )
    reason = refusal(metric, sums.data, ratio=options.ratio)
    if reason:
        return not_computable("group", asked.measure, asked.names, reason, evidence=GroupEvidence())
    known = samples_of(metric, sums, attribute)
    names = (*asked.names, attribute.group_name(attribute.unknown))
    counts = {name: dict(known.counts[k]) for name, k in zip(names, (*pair, attribute.unknown), strict=True)}
    empty = [name for name, k in zip(asked.names, pair, strict=True) if known.reason[k]]
    if empty:
        reason = (
            f"{metric.name} cannot be bounded. Among the people known to be in `{empty[0]}` there is nobody whom it is "
            "about, so the people of unknown group could give it any value."
        )
        return not_computable("group", asked.measure, asked.names, reason, counts=counts, evidence=GroupEvidence())
    ends = completed(asked, largest=False), completed(asked, largest=True)
    values = IdentifiedSet(low=asked.end(ends[0]), high=asked.end(ends[1]), log=options.ratio)
    if math.isnan(values.low.estimate + values.high.estimate):
        reason = f"The ratio is undefined: {metric.per_group or metric.name} of `{asked.names[1]}` is 0."
        return not_computable("group", asked.measure, asked.names, reason, counts=counts, evidence=GroupEvidence())
    return _raw(asked, values, known, ends, counts)


def _raw(
    asked: Question,
    values: IdentifiedSet,
    known: Samples,
    ends: tuple[Samples, Samples],
    counts: Mapping[str, Mapping[str, float]],
) -> Raw:
    options, margin, sides, (a, b) = asked.options, asked.options.margin, asked.draws.alternative, asked.pair
    none = 1.0 if options.ratio else 0.0
    kind = ends[0].interval(a, b, level=options.level, ratio=options.ratio, draws=asked.both_sides)[2]

    def interval_at(level: float) -> Interval:
        low, high = values.interval(level, sides)
        return Interval(low=low, high=high, level=level, kind=f"Imbens-Manski, {kind} limits")

    nearer = ends[0] if values.low.estimate > none else ends[1]
    test = nearer.test(a, b, asked.both_sides)
    rows = int(known.counts[asked.unknown]["rows"])
    hidden = tolerated(asked, known)
    finding = Finding(
        audit="group",
        measure=asked.measure,
        groups=asked.names,
        estimate=values.nearest(none),
        interval=interval_at(options.level),
        pvalue=values.beyond(none, none, sides),
        counts=counts,
    )
    evidence = GroupEvidence(
        fact=_fact(asked, values, known, rows),
        planning=_planning(asked, values, int(known.counts[asked.unknown].get("denominator", rows)), hidden),
        values={name: float(known.estimate[k]) for name, k in zip(asked.names, asked.pair, strict=True)},
        test=f"of the possible value nearest to no disparity: {test.method}",
        n_resamples=test.n_resamples,
        pvalue_floor=test.floor / 2,
        warnings=tuple(test.warnings),
        assumption=_ASSUMPTION,
        lowest_possible=values.low.estimate,
        highest_possible=values.high.estimate,
        among_known=asked.value(known),
        unknown_rows=rows,
        unknown_tolerated=hidden,
    )
    raw = Raw(finding=finding, evidence=evidence, interval_at=interval_at)
    if margin is None:
        return raw
    inside = 1.0
    if margin.low < values.low.estimate and values.high.estimate < margin.high:
        limits = {"low": margin.low, "high": margin.high}
        inside = max(end.equivalence(a, b, **limits, ratio=margin.ratio, draws=asked.draws) for end in ends)
    return replace(
        raw,
        finding=replace(finding, pvalue=values.beyond(margin.low, margin.high, sides), margin=margin.value),
        evidence=replace(evidence, difference_pvalue=finding.pvalue, equivalence_pvalue=inside),
    )


def _fact(asked: Question, values: IdentifiedSet, known: Samples, rows: int) -> str:
    """Say the values of those known, and how far people of unknown group can move the comparison."""
    word, sign = ("ratio", "") if asked.options.ratio else ("difference", "+")
    (a, b), (first, second), name = asked.pair, asked.names, asked.metric.per_group or asked.metric.name
    seen, low, high = (f"{v:{sign}.3f}" for v in (asked.value(known), values.low.estimate, values.high.estimate))
    return (
        f"Among people whose {asked.attribute.name} is known, {name} is {float(known.estimate[a]):.3f} for {first} and "
        f"{float(known.estimate[b]):.3f} for {second}: a {word} of {seen}. Depending on the groups of the {rows:,} "
        f"people whose {asked.attribute.name} is unknown, the {word} lies anywhere between {low} and {high}."
    )


def _planning(asked: Question, values: IdentifiedSet, concerned: int, hidden: int | None) -> str:
    """Say what would help; of the unknown people so many are in the metric's denominator."""
    none = 1.0 if asked.options.ratio else 0.0
    said = ""
    if values.low.estimate <= none <= values.high.estimate:
        said = "More people do not narrow these limits; knowing more of the groups does. "
    if hidden is None or hidden >= concerned:
        return said.strip()
    margin = "" if asked.options.margin is None else " beyond the margin"
    return (
        f"{said}Among the known a disparity{margin} is shown (before correction for multiplicity). It would still be "
        f"shown if up to {hidden:,} of the {concerned:,} unknown people whom {asked.metric.name} is about were placed "
        "so as to hide it and the others were like the known."
    )
