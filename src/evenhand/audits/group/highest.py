"""Rates compared with the highest one: which group has it is chosen by the data, and the inference pays for that.

Each group but the one seen to be highest has a finding. Its hypothesis is that no group has a higher rate (with a
margin: that its rate is at least so much of every other's), so it holds whichever group is truly the best. See
`evenhand.inference.rates.best`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

from evenhand.audits.detectable import plan_pair
from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.group.options import GroupSetting
from evenhand.inference.limits import Margin
from evenhand.inference.rates.best import Best, Rates
from evenhand.inference.rates.conditional import fisher_pvalues
from evenhand.inference.rates.samples import RateSamples
from evenhand.intake import Attribute
from evenhand.metrics import Metric
from evenhand.results import Finding, Interval

_TEST = (
    "two-sided test of two rates, exact in small samples, against each other group; the smallest of {others} p-values "
    "counts, adjusted for the choice by the law of the largest of statistics that share a group (their dependence is "
    "that of the normal law)"
)


def compare_highest(metric: Metric, attribute: Attribute, samples: Rates, options: GroupSetting) -> Iterator[Raw]:
    """Compare each group's rate with the highest one.

    Parameters
    ----------
    metric : Metric
        A rate.
    attribute : Attribute
        Whose groups.
    samples : RateSamples or WeightedRateSamples
        Their rates.
    options : GroupSetting
        Ratio or difference, margin, alpha, level.

    Yields
    ------
    Raw
        One for each group but the highest.
    """
    groups = [k for k in range(len(attribute.labels)) if k != attribute.unknown]
    best = Best(samples, ratio=options.ratio, among=groups)
    measure = f"{metric.name}_ratio" if options.ratio else metric.name
    called = metric.per_group or metric.name
    for a in groups:
        if a == best.highest and len(best.members) > 1:
            continue
        names = (attribute.group_name(a), f"{attribute.name}=highest")
        reason = f"Group `{names[0]}` {samples.reason[a]}." if samples.reason[a] else ""
        if not reason and len(best.members) < 2:
            reason = "No other group has a value."
        if not reason and math.isnan(best.estimate(a)):
            reason = f"{called} is 0 in every group, so the highest one is 0 and there is no ratio to it."
        if reason:
            counts = {names[0]: dict(samples.counts[a])}
            said = f"{metric.name} cannot be compared. {reason}"
            yield not_computable("group", measure, names, said, counts=counts, evidence=GroupEvidence())
            continue
        yield _compared(best, a, Finding(audit="group", measure=measure, groups=names, estimate=best.estimate(a)),
                        metric, attribute, options)  # fmt: skip


def _compared(best: Best, a: int, finding: Finding, metric: Metric, attribute: Attribute, options: GroupSetting) -> Raw:
    """Return the finding of one group with its test, its interval and what stands behind it."""
    samples, margin, none = best.samples, options.margin, 1.0 if options.ratio else 0.0
    own, top = (attribute.group_name(k) for k in (a, best.highest))
    interval_at = partial(_interval, best, a)
    interval = interval_at(options.level)
    pair = (a, best.highest)
    planning, numbers = plan_pair(samples, pair, (own, top), options.alpha, margin, interval, ratio=options.ratio)
    values = {own: float(samples.estimate[a]), top: float(samples.estimate[best.highest])}
    word = f"a ratio of {finding.estimate:.3f}" if options.ratio else f"a difference of {finding.estimate:+.3f}"
    fact = (
        f"{metric.per_group or metric.name} is {values[own]:.3f} for {own} and {values[top]:.3f} for {top}, the "
        f"highest of {len(best.members)} groups: {word}."
    )
    evidence = GroupEvidence(
        fact=fact,
        planning=planning,
        sample_size=numbers,
        values=values,
        test=_TEST.format(others=len(best.members) - 1),
        reference="highest",
        highest_group=top,
    )
    if isinstance(samples, RateSamples):
        fisher, half = fisher_pvalues(samples.successes[list(pair)].tolist(), samples.trials[list(pair)].tolist())
        evidence = replace(evidence, fisher_pvalue_unadjusted=fisher, midp_pvalue_unadjusted=half)
    if isinstance(samples, RateSamples) and margin is not None and not samples.transformed:
        missing = shortfall(samples, a, best.highest, margin)
        evidence = replace(evidence, shortfall=missing, fact=f"{fact}{_shortfall_words(missing, own, metric, margin)}")
    counts = {own: dict(samples.counts[a]), top: dict(samples.counts[best.highest])}
    finding = replace(finding, counts=counts, interval=interval, pvalue=best.pvalue(a, none))
    if margin is not None:
        evidence = replace(evidence, difference_pvalue=finding.pvalue, equivalence_pvalue=best.inside(a, margin.low))
        finding = replace(finding, pvalue=best.pvalue(a, margin.low), margin=margin.value)
    return Raw(finding=finding, evidence=evidence, interval_at=interval_at)


def _interval(best: Best, a: int, level: float) -> Interval:
    low, high, kind = best.interval(a, level)
    return Interval(low=low, high=high, level=level, kind=kind)


def shortfall(samples: RateSamples, a: int, highest: int, margin: Margin) -> int:
    """Return how many more successes of group `a` would bring its rate to the margin, the highest rate standing.

    Examples
    --------
    >>> samples = RateSamples.from_counts([12, 70], [60, 175])
    >>> shortfall(samples, 0, 1, Margin(value=0.8, low=0.8, high=1.25, ratio=True))
    8
    """
    x, n = (int(k) for k in (samples.successes[a], samples.trials[a]))
    top = Fraction(int(samples.successes[highest]), int(samples.trials[highest]))
    low = Fraction(margin.low).limit_denominator(10**9)  # as it was written: 0.8 is four fifths
    goal = n * (top * low if margin.ratio else top + low)
    return max(math.ceil(goal) - x, 0)


def _shortfall_words(missing: int, own: str, metric: Metric, margin: Margin) -> str:
    if missing == 0:
        return ""
    more = f"{missing:,} more {'person' if missing == 1 else 'people'} of {own} counted in its rate"
    if metric.kind == "scoring":
        more = f"{missing:,} more {'score' if missing == 1 else 'scores'} of {own} above the median"
    if (metric.per_group or metric.name) == "selection_rate":
        more = f"{missing:,} more {'selection' if missing == 1 else 'selections'} of {own}"
    where = f"{margin.value:g} of it" if margin.ratio else f"{margin.value:g} below it"
    if margin.ratio and margin.value == 0.8:
        where = "four fifths of it"
    return f" {more} would reach {where}."
