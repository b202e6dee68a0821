"""One comparison of the group audit: two groups, all groups, or a continuous attribute, as a raw finding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.audits.detectable import plan_correlation, plan_pair
from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.group.design import design_evidence, has_design
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.group.options import GroupSetting
from evenhand.audits.group.samples import row_values
from evenhand.audits.margin import pvalue_beyond
from evenhand.inference.correlation import correlation_interval, correlation_test
from evenhand.inference.design.conditional import ConditionalClusters
from evenhand.inference.limits import Margin
from evenhand.inference.pvalues import TestResult
from evenhand.inference.rates.gaps import RateGaps
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.rates.weighted import WeightedRateSamples
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.strata.samples import StratifiedSamples
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import Metric
from evenhand.results import Finding, Interval
from evenhand.results.evidence import Null


def compare_pair(
    metric: Metric, attribute: Attribute, samples: Samples, a: int, b: int, options: GroupSetting, draws: Draws
) -> Raw:
    """Compare group `a` with group `b`: estimate, interval, test, equivalence.

    Parameters
    ----------
    metric : Metric
        What is compared.
    attribute : Attribute
        Whose groups.
    samples : Samples
        The groups' values and tests.
    a, b : int
        Codes of the group and its reference.
    options : GroupSetting
        Ratio or difference, margin, alpha, level.
    draws : Draws
        How the reference distribution is made.

    Returns
    -------
    Raw
    """
    names = (attribute.group_name(a), attribute.group_name(b))
    measure = _measure(metric, samples, ratio=options.ratio)
    counts = {n: dict(samples.counts[k]) for n, k in zip(names, (a, b), strict=True)}
    value_a, value_b = samples.values(a, b)
    reason = _undefined([(names[0], samples.reason[a]), (names[1], samples.reason[b])])
    # Over a rate of 0 there is no estimate, but a lower limit; other values have none.
    unbounded = isinstance(samples, RateSamples | WeightedRateSamples) and value_a > 0
    if not reason and options.ratio and value_b == 0 and not unbounded:
        reason = f"The ratio is undefined: {metric.per_group or metric.name} of `{names[1]}` is 0."
    if reason:
        return _not_computable(metric, measure, names, counts, reason)
    estimate = samples.difference(a, b)
    if options.ratio:
        estimate = value_a / value_b if value_b != 0 else math.inf
    test = samples.test(a, b, draws)
    if math.isnan(test.pvalue):
        return _not_computable(metric, measure, names, counts, _without_test(test))
    margin, interval_at = options.margin, partial(_interval, samples, a, b, options.ratio, draws)
    interval = interval_at(options.level)
    finite = options.ratio and value_b != 0
    planning, numbers = plan_pair(samples, (a, b), names, options.alpha, margin, interval, ratio=finite)
    raw = _tested(
        Finding(audit="group", measure=measure, groups=names, estimate=estimate, interval=interval, counts=counts),
        test,
        fact=_fact(metric, samples, (a, b), names, estimate, ratio=options.ratio),
        values={names[0]: value_a, names[1]: value_b},
        planning=planning,
        sample_size=numbers,
        **design_evidence(samples, (a, b), names),
    )
    raw = replace(raw, pair=(metric.name, attribute.name, a, b), interval_at=interval_at)
    if margin is None:
        return raw
    return _at_margin(raw, margin, beyond_margin(samples, a, b, margin, draws), _inside(samples, a, b, margin, draws))


def _measure(metric: Metric, samples: Samples, *, ratio: bool) -> str:
    """Name what is compared: the metric, as a ratio or a difference, of everybody or within strata."""
    within = "_conditional" if isinstance(samples, StratifiedSamples | ConditionalClusters) else ""
    return f"{metric.name}_ratio{within}" if ratio else f"{metric.name}{within}"


def _tested(finding: Finding, test: TestResult, **said: Any) -> Raw:
    """Give a finding the p-value of its test, and the evidence for it beside what is said."""
    return Raw(finding=replace(finding, pvalue=test.pvalue), evidence=replace(_test_evidence(test), **said))


def _at_margin(raw: Raw, margin: Margin, beyond: float, inside: float, **said: Any) -> Raw:
    """Ask whether a value lies beyond the margin or inside it; that it differs from none becomes evidence."""
    differs = raw.finding.pvalue
    evidence = replace(raw.evidence, difference_pvalue=differs, equivalence_pvalue=inside, **said)
    return replace(raw, finding=replace(raw.finding, pvalue=beyond, margin=margin.value), evidence=evidence)


def _without_test(test: TestResult) -> str:
    return " ".join(test.warnings) or "The test's statistic is undefined on these data."


def _fact(
    metric: Metric, samples: Samples, pair: tuple[int, int], names: Sequence[str], estimate: float, *, ratio: bool
) -> str:
    """Say the values of both groups and how they compare."""
    parts: Mapping[str, Samples] = {metric.per_group or metric.name: samples}
    word = f"a ratio of {estimate:.3f}" if ratio else f"a difference of {estimate:+.3f}"
    if estimate == math.inf:
        word = "a ratio that has a lower limit only"
    if isinstance(samples, RateGaps):
        parts, word = samples.parts, f"a mean absolute difference of {estimate:.3f}"
    within = " within strata" if isinstance(samples, StratifiedSamples | ConditionalClusters) else ""
    said = "; ".join(
        f"{name} is {one:.3f} for {names[0]} and {two:.3f} for {names[1]}"
        for name, (one, two) in ((name, part.values(*pair)) for name, part in parts.items())
    )
    return f"{said}: {word}{within}."


def _interval(samples: Samples, a: int, b: int, ratio: bool, draws: Draws, level: float) -> Interval:
    """Return the interval at a level; of a one-sided question the end that it asks about."""
    sides = draws.alternative
    if sides == "two-sided":
        low, high, kind = samples.interval(a, b, level=level, ratio=ratio, draws=draws)
        return Interval(low=low, high=high, level=level, kind=kind)
    both = replace(draws, alternative="two-sided")
    low, high, kind = samples.interval(a, b, level=max(2 * level - 1, 1e-9), ratio=ratio, draws=both)
    if sides == "greater":
        return Interval(low=low, high=math.inf, level=level, kind=f"{kind}, one-sided")
    return Interval(low=0.0 if ratio else -math.inf, high=high, level=level, kind=f"{kind}, one-sided")


def beyond_margin(samples: Samples, a: int, b: int, margin: Margin, draws: Draws) -> float:
    """Return the p-value against "the difference, or ratio, lies inside the margin"."""
    own: Callable[..., float] | None = getattr(samples, "beyond", None)
    if own is not None and draws.alternative == "two-sided":
        return own(a, b, low=margin.low, high=margin.high, ratio=margin.ratio, draws=draws)
    interval_at = partial(_interval, samples, a, b, margin.ratio, draws)
    # Where the interval comes from random draws, it says no more than they do.
    drawn = any(word in interval_at(0.95).kind for word in ("permutation", "bootstrap"))
    rows = int(samples.counts[a]["rows"] + samples.counts[b]["rows"])
    return max(pvalue_beyond(interval_at, margin), 1 / (1 + draws.number(rows)) if drawn else 0.0)


def _inside(samples: Samples, a: int, b: int, margin: Margin, draws: Draws) -> float:
    return samples.equivalence(a, b, low=margin.low, high=margin.high, ratio=margin.ratio, draws=draws)


def compare_all(metric: Metric, attribute: Attribute, samples: Samples, options: GroupSetting, draws: Draws) -> Raw:
    """Test whether all groups of an attribute have one value.

    Parameters
    ----------
    metric, attribute, samples, options, draws
        As for `compare_pair`.

    Returns
    -------
    Raw
        Its estimate is the largest value minus the smallest (or the smallest over the largest), without an
        interval: the estimate is never below 0, so an interval made from its spread would exclude 0 even when all
        groups agree. With a margin the question is whether any two groups differ by more.
    """
    names = tuple(attribute.group_name(k) for k in range(len(attribute.labels)))
    measure = f"{_measure(metric, samples, ratio=options.ratio)}_global"
    counts = {n: dict(samples.counts[k]) for k, n in enumerate(names)}
    members = [k for k in range(len(names)) if not samples.reason[k]]
    if len(members) < 2:
        reason = _undefined([(n, samples.reason[k]) for k, n in enumerate(names)])
        return _not_computable(metric, measure, names, counts, f"Fewer than two groups have a value. {reason}")
    test = samples.test_global(members, draws)
    if math.isnan(test.pvalue):
        return _not_computable(metric, measure, names, counts, _without_test(test))
    values = samples.estimate[members]
    smallest, largest = float(values.min()), float(values.max())
    lowest, highest = members[int(np.argmin(values))], members[int(np.argmax(values))]
    left_out = [(n, samples.reason[k]) for k, n in enumerate(names) if k not in members]
    apart = largest - smallest
    fact = (
        f"{metric.per_group or metric.name} ranges from {smallest:.3f} ({names[lowest]}) to {largest:.3f} "
        f"({names[highest]}) over {len(members)} groups."
    )
    if isinstance(samples, RateGaps):
        one, two = samples.farthest(members)
        apart = samples.difference(one, two)
        fact = f"The largest {metric.name} of two of {len(members)} groups is {apart:.3f} ({names[one]}, {names[two]})."
    if left_out:
        fact += f" Left out: {_undefined(left_out)}"
    estimate = apart if not options.ratio else smallest / largest if largest else math.nan
    raw = _tested(
        Finding(audit="group", measure=measure, groups=names, estimate=estimate, counts=counts),
        test,
        fact=fact,
        values={names[k]: float(samples.estimate[k]) for k in members},
        planning="The comparisons of single groups say what could have been detected.",
        **design_evidence(samples, members, [names[k] for k in members]),
    )
    if options.margin is None:
        return raw
    note = "Beyond the margin: some two groups are, with p-values times their number; inside it: all pairs are."
    return _at_margin(raw, options.margin, *_all_pairs(samples, members, options.margin, draws), margin_note=note)


def _all_pairs(samples: Samples, members: Sequence[int], margin: Margin, draws: Draws) -> tuple[float, float]:
    """Return p-values against "no two groups are farther apart than the margin" and against "some two are".

    The first is Bonferroni's over all pairs; the second, an intersection-union test, the largest over them, and 1
    where an estimate lies outside.
    """
    pairs = list(combinations(members, 2))
    apart = [(a, b) for a, b in pairs if not _within(samples, a, b, margin)]
    both = replace(draws, alternative="two-sided")
    if apart:
        return min(1.0, len(pairs) * min(beyond_margin(samples, a, b, margin, both) for a, b in apart)), 1.0
    return 1.0, max(_inside(samples, a, b, margin, both) for a, b in pairs)


def _within(samples: Samples, a: int, b: int, margin: Margin) -> bool:
    if not margin.ratio:
        return margin.low <= samples.difference(a, b) <= margin.high
    one, two = samples.values(a, b)
    return one == two if two == 0 else margin.low <= one / two <= margin.high


def correlate(metric: Metric, data: AuditData, name: str, options: GroupSetting, draws: Draws) -> Raw:
    """Test whether a metric's per-row value is correlated with a continuous attribute.

    Parameters
    ----------
    metric : Metric
        A rate (its rows are those of its denominator) or a mean.
    data : AuditData
        Records with the attribute in `continuous`.
    name : str
        The attribute.
    options, draws
        As for `compare_pair`.

    Returns
    -------
    Raw
        Its estimate is Pearson's correlation.
    """
    measure = f"{metric.name}_correlation"
    if data.strata is not None:
        reason = f"Correlation within strata is not offered; cut `{name}` into groups with `cuts=`."
        return _not_computable(metric, measure, (name,), {}, reason)
    if metric.compare:
        reason = (
            f"{metric.name} compares groups, so it has no correlation with `{name}`; ask for `tpr`, `fpr` or "
            f"`selection_rate`, or cut `{name}` into groups."
        )
        return _not_computable(metric, measure, (name,), {}, reason)
    per_row = row_values(metric, data)
    if per_row is None:
        reason = (
            f"{metric.name} is not a mean over rows, so it has no correlation with `{name}`; cut `{name}` into groups."
        )
        return _not_computable(metric, measure, (name,), {}, reason)
    values, inside = per_row
    x, v, c = data.continuous[name][inside], values[inside], data.count[inside]
    rows = int(c.sum())
    counts = {name: {"rows": rows}}
    if data.weight is not None or has_design(data):
        what = "clustered rows" if data.weight is None else "sampling weights"
        reason = f"Correlation with {what} is not offered; cut the attribute into groups."
        return _not_computable(metric, measure, (name,), counts, reason)
    estimate, test = correlation_test(x, v, c, draws)
    if math.isnan(test.pvalue):
        why = f"The correlation is undefined: `{name}` or the per-row {metric.name} is constant over {rows} rows."
        return _not_computable(metric, measure, (name,), counts, why)
    interval_at = partial(_correlation_interval, x, v, c, draws)
    interval = interval_at(options.level)
    planning, numbers = plan_correlation(name, rows, estimate, test.statistic, options.alpha, interval)
    fact = f"Per-row {metric.name} and {name} have correlation {estimate:+.3f}."
    if options.margin:
        fact += " The margin is for differences of the metric, not for correlations."
    finding = Finding(
        audit="group", measure=measure, groups=(name,), estimate=estimate, interval=interval, counts=counts
    )
    raw = _tested(finding, test, fact=fact, planning=planning, sample_size=numbers)
    return replace(raw, interval_at=interval_at)


def _correlation_interval(x: FloatArray, v: FloatArray, c: NDArray[np.int64], draws: Draws, level: float) -> Interval:
    low, high, kind = correlation_interval(x, v, c, level=level, draws=draws)
    return Interval(low=low, high=high, level=level, kind=kind)


def _undefined(reasons: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"Group `{name}` {why}." for name, why in reasons if why)


def _not_computable(
    metric: Metric,
    measure: str,
    names: tuple[str, ...],
    counts: Mapping[str, Mapping[str, float]],
    reason: str,
) -> Raw:
    said = f"{metric.name} cannot be compared. {reason}"
    return not_computable("group", measure, names, said, counts=counts, evidence=GroupEvidence())


def _test_evidence(test: TestResult) -> GroupEvidence:
    finite = test.null[np.isfinite(test.null)]
    null = None
    if finite.size:
        middle = float(np.median(finite))
        alike = np.ptp(finite) <= 1e-9 * max(1.0, abs(middle))  # rounding apart, and no bin is that narrow
        counts, edges = np.histogram(np.full(finite.size, middle) if alike else finite, bins=40)
        null = Null(counts=tuple(counts.tolist()), edges=tuple(np.round(edges, 6).tolist()))
    return GroupEvidence(
        test=test.method,
        statistic=test.statistic,
        exact=test.exact,
        n_resamples=test.n_resamples,
        pvalue_floor=test.floor,
        pvalue_low=test.pvalue if test.exact else test.pvalue_low,
        pvalue_high=test.pvalue if test.exact else test.pvalue_high,
        warnings=tuple(test.warnings),
        null=null,
    )
