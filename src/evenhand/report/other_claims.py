"""What findings of the projection, individual, proxy and tail audits show, a sentence each."""

from __future__ import annotations

import math

from evenhand.audits.projection.evidence import ProjectionEvidence
from evenhand.audits.proxy.evidence import FeatureEvidence
from evenhand.audits.tail.evidence import DifferenceEvidence, LevelEvidence
from evenhand.report.claims import Claim, adjusted_interval
from evenhand.report.people import People, quoted
from evenhand.results import Evidence, Finding, Interval


def projection_claim(finding: Finding, evidence: Evidence, people: People, rows: int) -> Claim:
    """Say that the rates a criterion names differ, and how many people would have to change for equal ones.

    Examples
    --------
    >>> shown = Finding(audit="projection", measure="statistical_parity", groups=("g=a", "g=b"), estimate=0.1)
    >>> print(projection_claim(shown, ProjectionEvidence(), People(), 100))
    How often people got the decision `1` is not the same in the groups of `g`.
    """
    attribute = quoted("×".join(sorted({name.partition("=")[0] for name in finding.groups})))
    one, zero = people.with_outcome(1).clause, people.with_outcome(0).clause
    among = {
        "equal_opportunity": f" {one}",
        "predictive_equality": f" {zero}",
        "equalized_odds": f" {one}, or those {zero},",
    }.get(finding.measure, "")
    shown = f"How often people{among} {people.decision(1)} is not the same in the groups of {attribute}"
    changes = evidence.changes if isinstance(evidence, ProjectionEvidence) else None
    if changes is None:
        return Claim(shown=shown, numbers="")
    return Claim(
        shown=shown,
        numbers=f"the smallest change of features that makes it the same gives {changes.people:,} of {rows:,} people "
        "another decision",
    )


def individual_claim(finding: Finding, evidence: Evidence) -> Claim:
    """Say how much worse the model does for people who should be treated alike.

    Examples
    --------
    >>> shown = Finding(audit="individual", measure="error_ratio", groups=(), estimate=1.4, margin=1.25)
    >>> print(individual_claim(shown, Evidence()))
    Among comparable people the error rate is more than 1.25 times that among the people themselves: 1.40 times.
    """
    allowed = f"{finding.margin or 1.0:g} times"
    if finding.measure == "error_ratio":
        shown = f"Among comparable people the error rate is more than {allowed} that among the people themselves"
    else:
        shown = f"For comparable people the model's loss is on average more than {allowed} that for the people"
    interval = adjusted_interval(finding, evidence)
    numbers = f"{finding.estimate:.2f} times"
    if interval is not None and math.isfinite(interval.low):
        numbers += f", at least {_below(interval.low, finding.margin)}"
    rows = finding.counts.get("all", {}).get("rows")
    return Claim(shown=shown, numbers=numbers + (f"; {rows:,.0f} people" if rows else ""))


def proxy_claim(finding: Finding, evidence: Evidence) -> Claim:
    """Say what a feature carries of a gap, or that there is a gap to explain.

    Examples
    --------
    >>> shown = Finding(audit="proxy", measure="sp", groups=("g=a", "g=b"), estimate=-0.2)
    >>> print(proxy_claim(shown, Evidence()))
    The gap `sp` between people with `g=a` and with `g=b` is not 0: -0.200.
    """
    measure = quoted(finding.measure.partition(":")[0])
    between = f"between people with {' and with '.join(quoted(name) for name in finding.groups)}"
    around = _around(finding.estimate, adjusted_interval(finding, evidence))
    if not isinstance(evidence, FeatureEvidence):
        return Claim(shown=f"The gap {measure} {between} is not 0", numbers=around)
    beyond = "" if finding.margin is None else f" that is larger than the margin of {finding.margin:g}"
    share = f"about {abs(evidence.carried_share):.0%} of that gap"
    return Claim(
        shown=f"The feature {quoted(evidence.feature)} carries a part of the gap {measure} {between}{beyond}",
        numbers=f"{around}, {share}",
    )


def tail_claim(finding: Finding, evidence: Evidence) -> Claim:
    """Say how much the worst-treated, or the average, person would gain by being recorded as the other group.

    Examples
    --------
    >>> shown = Finding(audit="tail", measure="acd_difference", groups=("g=a", "g=b"), estimate=0.2)
    >>> print(tail_claim(shown, Evidence()))
    The mean change of score by being recorded as the other group differs between `g=a` and `g=b`: by +0.200.
    """
    beyond = "" if finding.margin is None else f" by more than the margin of {finding.margin:g}"
    around = _around(finding.estimate, adjusted_interval(finding, evidence))
    change = "change of score by being recorded as the other group"
    whose, other = quoted(finding.groups[0]), quoted(finding.groups[-1])
    better = "better" if finding.estimate > 0 else "worse"
    of_one_group = {
        "return_level": f"In {_horizon(evidence)} decisions about {whose}, the score of one person would be better"
        f"{beyond} had they been recorded as {other}",
        "acd": f"Had they been recorded as {other}, the mean score of {whose} would be {better}{beyond}",
        "cvar": f"Had they been recorded as {other}, the scores of those of {whose} with the largest change would "
        f"on average be better{beyond}",
    }
    if finding.measure in of_one_group:
        return Claim(shown=of_one_group[finding.measure], numbers=f"by {around}")
    kind = {"acd_difference": "mean", "cvar_difference": "mean of the worst share of each"}.get(finding.measure)
    what = f"The {kind} {change}" if kind else f"The worst {change} in {_horizon(evidence)} decisions"
    return Claim(shown=f"{what} differs between {whose} and {other}{beyond}", numbers=f"by {around}")


def _horizon(evidence: Evidence) -> str:
    horizon = evidence.horizon if isinstance(evidence, DifferenceEvidence | LevelEvidence) else None
    return "so many" if horizon is None else f"{horizon:,.0f}"


def _around(estimate: float, interval: Interval | None) -> str:
    digits = 3
    if interval is not None and math.isfinite(interval.high - interval.low) and interval.high > interval.low:
        digits = max(3, min(8, math.ceil(-math.log10(interval.high - interval.low)) + 1))
    said = f"{estimate:+.{digits}f}" if estimate >= 0 else f"{estimate:.{digits}f}"
    if interval is None:
        return said
    ends = [f"{end:.{digits}f}" for end in (interval.low, interval.high)]
    if math.isinf(interval.high):
        return f"{said}, at least {ends[0]}"
    return f"{said}, at most {ends[1]}" if math.isinf(interval.low) else f"{said}, between {ends[0]} and {ends[1]}"


def _below(value: float, limit: float | None) -> str:
    """Write a lower limit with as many decimals as keep it above what it was compared with."""
    if limit is None:
        return f"{value:.2f}"
    return next((f"{value:.{d}f}" for d in range(2, 6) if round(value, d) > limit or value <= limit), f"{value:.6g}")
