"""The tail audit's rows: a difference between two groups, one group's worst case, or why there is none.

Verdicts are counted, never fitted: the p-values are exact binomial tests of the rows (`evenhand.inference.quantiles`),
at every horizon. A fit that is believed gives a level beyond the rows and its upper limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.tail.evidence import DifferenceEvidence, LevelEvidence, summary
from evenhand.audits.tail.group_tail import GroupTail
from evenhand.audits.tail.options import TailSetting
from evenhand.audits.tail.words import (
    difference_sentence,
    generated_sentence,
    level_sentence,
    planning_sentence,
    printed_sentence,
    unreached_sentence,
)
from evenhand.inference.quantiles import difference_interval, difference_pvalue, level_pvalues
from evenhand.intake import Attribute, AuditData
from evenhand.results import Evidence, Finding, Interval
from evenhand.summaries import group_sizes

# A horizon is chosen so that the smaller group has so many rows for each decision of it.
ROWS_PER_DECISION = 10
CHOSEN = (1000.0, 500.0, 200.0, 100.0, 50.0, 20.0, 10.0)


def chosen_horizon(rows: int) -> float:
    """Return the longest horizon at which so many rows decide by counting.

    Parameters
    ----------
    rows : int
        Of the smaller group.

    Returns
    -------
    float
        The shortest of all when there are too few rows for any.

    Examples
    --------
    >>> chosen_horizon(12_000), chosen_horizon(1_000), chosen_horizon(30)
    (1000.0, 100.0, 10.0)
    """
    return next((m for m in CHOSEN if rows >= ROWS_PER_DECISION * m), CHOSEN[-1])


def difference_finding(a: GroupTail, b: GroupTail, horizon: float, options: TailSetting) -> Raw:
    """Compare two groups at the common horizon."""
    shown = DifferenceEvidence(groups={g.name: summary(g, horizon, options.level, options.span) for g in (a, b)})
    levels = [g.level_at(horizon, options.level) for g in (a, b)]
    if any(math.isnan(x.value) for x in levels):
        return _unreached("ecd", (a.name, b.name), horizon, [a, b], shown)
    share, margin = 1 / horizon, options.margin or 0.0

    def interval(level: float) -> Interval:
        low, high = difference_interval(a.cd, b.cd, share, level, highest=(a.ceiling, b.ceiling))
        return Interval(low=low, high=high, level=level, kind="order statistics of both groups")

    def above(value: float) -> float:
        return difference_pvalue(a.cd, b.cd, share, value, highest_b=b.ceiling)

    def below(value: float) -> float:
        return difference_pvalue(b.cd, a.cd, share, -value, highest_b=a.ceiling)

    plain = interval(options.level)
    estimate = min(max(levels[0].value - levels[1].value, plain.low), plain.high)
    evidence = replace(
        shown,
        fact=difference_sentence(a, b, levels[0].value, levels[1].value, horizon),
        planning=planning_sentence(plain),
        values={a.name: levels[0].value, b.name: levels[1].value},
        horizon=horizon,
        acd=a.acd - b.acd,
        cvar=a.cvar - b.cvar,
        warnings=_as_printed(a, b),
        test="counts above the two levels, exact in each group, at every level the reference may have",
    )
    if options.margin is not None:
        evidence = replace(
            evidence,
            equivalence_pvalue=max(below(margin), above(-margin)),
            difference_pvalue=min(1.0, 2 * min(above(0.0), below(0.0))),
        )
    finding = Finding(
        audit="tail",
        measure="ecd",
        groups=(a.name, b.name),
        estimate=estimate,
        interval=plain,
        pvalue=min(1.0, 2 * min(above(margin), below(-margin))),
        margin=options.margin,
        counts=_counts(a, b),
    )
    return Raw(finding=finding, evidence=evidence, interval_at=interval)


def level_finding(group: GroupTail, horizon: float, options: TailSetting) -> Raw:
    """State one group's worst case at the common horizon, and test whether it lies above the margin."""
    shown = LevelEvidence(**vars(summary(group, horizon, options.level, options.span)))
    names = (group.name, group.other)
    known = group.level_at(horizon, options.level)
    if math.isnan(known.value):
        return _unreached("return_level", names, horizon, [group], shown)

    def interval(level: float) -> Interval:
        at = group.level_at(horizon, level)
        return Interval(low=at.low, high=at.high, level=level, kind=at.kind)

    margin = options.margin or 0.0
    larger, smaller = level_pvalues(group.cd, 1 / horizon, margin)
    evidence = replace(
        shown,
        fact=level_sentence(group, known, horizon, options.level, margin, high_is_good=options.favourable == "high"),
        planning=planning_sentence(interval(options.level)),
        warnings=_as_printed(group),
        test="binomial: more than one in the horizon would gain more than the margin",
        above_margin=int(group.cd.above(margin)),
    )
    if options.margin is not None:
        evidence = replace(
            evidence,
            # What cannot be larger than the margin needs no rows to show it.
            equivalence_pvalue=0.0 if group.ceiling <= margin else smaller,
            difference_pvalue=min(1.0, 2 * level_pvalues(group.cd, 1 / horizon, 0.0)[0]),
        )
    finding = Finding(
        audit="tail",
        measure="return_level",
        groups=names,
        estimate=known.value,
        interval=interval(options.level),
        pvalue=min(1.0, 2 * larger),
        margin=options.margin,
        counts=_counts(group),
    )
    return Raw(finding=finding, evidence=evidence, interval_at=interval)


def _as_printed(*groups: GroupTail) -> tuple[str, ...] | None:
    """Return what Algorithm 1 as printed says of groups as warnings; None where it was not asked for."""
    return tuple(printed_sentence(group) for group in groups if group.as_printed) or None


def _counts(*groups: GroupTail) -> dict[str, dict[str, float]]:
    return {
        g.name: {
            "rows": g.cd.size,
            "tail": 0 if g.tail is None else g.tail.k,
            "better_off": int(g.cd.above(0.0)),
            "generated": int(g.synthetic.get("rows", 0)),
        }
        for g in groups
    }


def _unreached(measure: str, names: tuple[str, ...], horizon: float, groups: list[GroupTail], shown: Evidence) -> Raw:
    """Say why there is no level at a horizon beyond the rows."""
    reasons = [unreached_sentence(g, horizon) for g in groups]
    reason = " ".join(r for r in reasons if r) + "".join(generated_sentence(group) for group in groups)
    shown = replace(shown, warnings=_as_printed(*groups))
    return not_computable("tail", measure, names, reason, counts=_counts(*groups), evidence=shown)


def refused(data: AuditData, attribute: Attribute, options: TailSetting, reason: str) -> Iterator[Raw]:
    """Give every comparison of an attribute the same reason why there is no answer."""
    sizes = group_sizes(data, attribute)
    b = attribute.labels.index(options.reference[attribute.name])
    for a in range(len(attribute.labels)):
        if a != b:
            names = (attribute.group_name(a), attribute.group_name(b))
            counts = {attribute.group_name(c): {"rows": int(sizes[c])} for c in (a, b)}
            said = reason.rstrip(".") + "."
            for measure in options.asked_for:
                name = measure if measure == "ecd" else f"{measure}_difference"
                yield not_computable("tail", name, names, said, counts=counts, evidence=DifferenceEvidence())
