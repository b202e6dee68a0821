"""The tail audit's rows: a difference between two groups, one group's worst case, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scipy import special

from evenhand.audits.tail_group import GroupTail, summary
from evenhand.audits.tail_words import (
    detectable,
    difference_sentence,
    generated_sentence,
    level_sentence,
    planning_sentence,
)
from evenhand.inference.mover import mover_interval
from evenhand.inference.tails import interval_pvalues, share_pvalues, tail_difference_test
from evenhand.intake.data import Attribute
from evenhand.results import Finding, Interval, Verdict

Raw = tuple[Finding, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TailOptions:
    """What a tail audit was asked; see `audit_tail`."""

    reference: Mapping[str, str]
    horizon: float
    k: int | None
    favourable: str
    score_range: tuple[float, float]
    margin: float | None
    alpha: float
    level: float
    printed: bool
    generator: str
    time_limit: float
    n_resamples: int
    seed: int

    @property
    def span(self) -> float:
        """Length of the score's range: the largest change a flip can make."""
        return self.score_range[1] - self.score_range[0]


def difference_finding(a: GroupTail, b: GroupTail, options: TailOptions) -> Raw:
    """Compare two groups at the common horizon.

    Parameters
    ----------
    a, b : GroupTail
        The group and its reference.
    options : TailOptions
        What was asked.

    Returns
    -------
    Raw
        Finding and evidence.
    """
    shown = {"groups": {g.name: summary(g, options.horizon, options.level, options.span) for g in (a, b)}}
    reasons = [g.reason for g in (a, b) if g.reason]
    if reasons or a.tail is None or b.tail is None:
        return _not_computable("ecd", (a.name, b.name), _counts(a, b), _why(reasons, a, b), shown)
    m = options.horizon
    one, two = a.tail.level(m), b.tail.level(m)
    test = tail_difference_test(a.tail, b.tail, m, n_resamples=options.n_resamples, seed=options.seed)
    if math.isnan(test.pvalue):
        return _not_computable("ecd", (a.name, b.name), _counts(a, b), "The test's statistic is undefined.", shown)
    ends = [float(e) for g in (a, b) for e in (g.intervals.low[-1], g.intervals.high[-1])]  # type: ignore[union-attr]
    z = float(special.ndtri((1 + options.level) / 2))
    low, high = mover_interval(one, two, lambda _: (ends[0], ends[1], ends[2], ends[3]), z, ratio=False)
    # Permutation alone rejects too often when the tails' forms differ (calibration/tail.py): the larger of the two
    # p-values is used, which also keeps the verdict and the interval together.
    by_interval, inside = interval_pvalues(one - two, low, high, options.level, options.margin or 0.0)
    least = detectable(max(one - two - low, high - (one - two)), options.level, options.alpha)
    evidence: dict[str, Any] = {
        "fact": difference_sentence(a, b, m),
        "planning": planning_sentence(least, one - two, a, b),
        "values": {a.name: one, b.name: two},
        "horizon": m,
        "minimum_detectable_difference": least,
        "acd": a.acd - b.acd,
        "cvar": a.cvar - b.cvar,
        "test": f"{test.method}; or the interval, whichever p-value is larger",
        "statistic": test.statistic,
        "n_resamples": test.n_resamples,
        "pvalue_permutation": test.pvalue,
        "pvalue_interval": by_interval,
        "pvalue_floor": test.floor,
        "pvalue_low": test.pvalue_low,
        "pvalue_high": test.pvalue_high,
        **shown,
    }
    if options.margin is not None:
        evidence["equivalence_pvalue"] = inside
    finding = Finding(
        audit="tail",
        measure="ecd",
        groups=(a.name, b.name),
        estimate=one - two,
        interval=Interval(low=low, high=high, level=options.level, kind="mover of return levels"),
        pvalue=max(test.pvalue, by_interval),
        margin=options.margin,
        counts=_counts(a, b),
    )
    return finding, evidence


def level_finding(group: GroupTail, options: TailOptions) -> Raw:
    """State one group's worst case at the common horizon, and test by counting whether anybody is better off.

    Parameters
    ----------
    group : GroupTail
        With or without a fit.
    options : TailOptions
        What was asked.

    Returns
    -------
    Raw
        Finding and evidence.
    """
    shown = summary(group, options.horizon, options.level, options.span)
    names = (group.name, group.other)
    if group.reason or group.tail is None or group.intervals is None:
        return _not_computable("return_level", names, _counts(group), _why([group.reason], group), shown)
    beyond = None if options.margin is None else int((group.cd > options.margin).sum())
    more, fewer = share_pvalues(int((group.cd > 0).sum()), beyond, group.cd.size, 1 / options.horizon)
    evidence = shown | {
        "fact": level_sentence(group, options.horizon, options.level, high_is_good=options.favourable == "high"),
        "planning": "",
        "test": "binomial: more than one in the horizon would be better off",
        "equivalence_pvalue": fewer,
    }
    finding = Finding(
        audit="tail",
        measure="return_level",
        groups=names,
        estimate=group.tail.level(options.horizon),
        interval=Interval(
            low=float(group.intervals.low[-1]),
            high=float(group.intervals.high[-1]),
            level=options.level,
            kind=group.intervals.kind[-1],
        ),
        pvalue=more,
        margin=options.margin,
        counts=_counts(group),
    )
    return finding, evidence


def _why(reasons: list[str], *groups: GroupTail) -> str:
    said = "; ".join(reasons)
    said = said[:1].upper() + said[1:] + "."
    return said + "".join(generated_sentence(group) for group in groups)


def _counts(*groups: GroupTail) -> dict[str, dict[str, float]]:
    return {
        g.name: {
            "rows": g.cd.size,
            "tail": 0 if g.tail is None else g.tail.k,
            "better_off": int((g.cd > 0).sum()),
            "generated": int(g.synthetic.get("rows", 0)),
        }
        for g in groups
    }


def _not_computable(
    measure: str,
    names: tuple[str, ...],
    counts: Mapping[str, Mapping[str, float]],
    reason: str,
    shown: Mapping[str, Any],
) -> Raw:
    finding = Finding(
        audit="tail",
        measure=measure,
        groups=names,
        estimate=math.nan,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE,
        reason=reason,
    )
    return finding, shown


def refused(attribute: Attribute, options: TailOptions, reason: str) -> Iterator[Raw]:
    """Give every comparison of an attribute the same reason why there is no answer."""
    b = attribute.labels.index(options.reference[attribute.name])
    for a in range(len(attribute.labels)):
        if a != b:
            names = (attribute.group_name(a), attribute.group_name(b))
            counts = {attribute.group_name(c): {"rows": int((attribute.codes == c).sum())} for c in (a, b)}
            yield _not_computable("ecd", names, counts, reason.rstrip(".") + ".", {})
