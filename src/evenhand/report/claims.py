"""One sentence for each finding that shows something: who, what, by how much, out of how many people.

The first half of each sentence states what was tested and nothing beyond it; the second gives the numbers. What the
group audit and the scan compare stands here; `evenhand.report.other_claims` has the sentences of the other audits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.audits.group.evidence import GroupEvidence
from evenhand.audits.margin import is_ratio, margin_ends, metric_of
from evenhand.audits.scan.evidence import ScanEvidence
from evenhand.metrics import METRICS
from evenhand.report.people import People, Population, quoted
from evenhand.report.points import Compared
from evenhand.results import Evidence, Finding, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is shown, and the numbers behind it; both are parts of one sentence."""

    shown: str  # without a full stop; names in it come from strangers
    numbers: str  # the same; empty where there are none
    least: float = 0.0  # for an order among rates: the difference that the interval does not go below

    def __str__(self) -> str:
        return f"{self.shown}: {self.numbers}." if self.numbers else f"{self.shown}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate in words: of whom it is a share, and what it counts."""

    among: Population
    event: str  # a verb in the past, such as "were refused"


def rate_words(metric: str, people: People) -> Rate | None:
    """Say what a rate of the catalogue counts; None for what is no rate.

    Examples
    --------
    >>> rate_words("fnr", People())
    Rate(among=Population(clause='who had the outcome `1`'), event='got the decision `0`')
    >>> rate_words("precision", People()).event
    'had the outcome `1`'
    """
    metric = _base(metric)
    by_outcome = {"tpr": (1, 1), "fnr": (1, 0), "fpr": (0, 1), "tnr": (0, 0)}
    by_decision = {"precision": (1, 1), "fdr": (1, 0), "npv": (0, 0), "for": (0, 1)}
    everybody = {
        "selection_rate": people.decision(1),
        "accuracy": "got the decision that agrees with their outcome",
        "error_rate": "got the decision that does not agree with their outcome",
        "scoring_rate": "scored above the median of everybody",
    }
    if metric in by_outcome:
        outcome, decision = by_outcome[metric]
        return Rate(among=people.with_outcome(outcome), event=people.decision(decision))
    if metric in by_decision:
        decision, outcome = by_decision[metric]
        return Rate(among=people.with_decision(decision), event=people.outcome(outcome))
    return Rate(among=Population(), event=everybody[metric]) if metric in everybody else None


# What is no rate, as the subject of a sentence.
_QUANTITIES = {
    "balanced_accuracy": "the mean of tpr and tnr (balanced accuracy)",
    "f1": "the harmonic mean of precision and recall (f1)",
    "auc": "the chance that a person with outcome 1 is scored above one with outcome 0 (auc)",
    "brier": "the mean squared distance between score and outcome (brier)",
    "log_loss": "the log loss of the scores",
    "calibration_error": "the distance between scores and outcome rates (calibration error)",
    "mean_score": "the mean score",
    "mae": "the mean absolute distance between score and outcome (mae)",
    "mse": "the mean squared distance between score and outcome (mse)",
    "mean_residual": "the mean of outcome minus score, which is above 0 where scores are too low (mean residual),",
    "aod": "the mean of tpr and fpr",
}


def quantity(metric: str) -> str:
    """Name a value that is no rate, as the subject of a sentence; a metric of the user's own has its name.

    Examples
    --------
    >>> quantity("mean_score"), quantity("regret")
    ('the mean score', '`regret`')
    """
    return _QUANTITIES.get(metric, quoted(metric))


def group_claim(finding: Finding, evidence: Evidence, people: People) -> Claim:
    """Say what a finding of the group audit or of the scan shows.

    Parameters
    ----------
    finding : Finding
        A disparity.
    evidence : Evidence
        What stands behind it.
    people : People
        How labels are said.

    Returns
    -------
    Claim
    """
    if finding.measure.endswith("_global"):
        return _all_groups(finding, evidence, people)
    if finding.measure.endswith("_correlation"):
        return _correlation(finding, evidence, people)
    metric = metric_of(finding.measure)
    rate = rate_words(metric, people)
    if metric == "aod_abs":
        claim = _gaps(finding, evidence)
    elif rate is not None:
        claim = _rates(finding, evidence, rate)
    else:
        claim = _quantities(finding, evidence, metric)
    assumed = _assumed(finding, evidence)
    return claim if not assumed else Claim(shown=assumed + _lower(claim.shown), numbers=claim.numbers)


def comparison_of(finding: Finding, evidence: Evidence) -> Compared:
    """Return the two values of a finding of the group audit or of the scan, ready to be written."""
    first, second = _two_values(evidence)
    ratio = is_ratio(finding.measure)
    none = 1.0 if ratio else 0.0
    limits = (none,) if finding.margin is None else (none, *margin_ends(finding.measure, finding.margin))
    return Compared(
        first=first,
        second=second,
        change=finding.estimate,
        interval=adjusted_interval(finding, evidence),
        scale=100 if rate_words(metric_of(finding.measure), People()) is not None else 1,
        ratio=ratio,
        limits=limits,
    )


def adjusted_interval(finding: Finding, evidence: Evidence) -> Interval | None:
    """Return the interval at the level of the verdict where there is one, else the plain one."""
    return evidence.verdict_interval or finding.interval


def _rates(finding: Finding, evidence: Evidence, rate: Rate) -> Claim:
    seen = comparison_of(finding, evidence)
    group, among = finding.groups[0], rate.among
    more = seen.change > (1 if seen.ratio else 0)
    # The size comes last: labels are often numbers, and two numbers in a row are hard to read.
    size = f", {seen.size} times as often" if seen.ratio else f", by {seen.size} points"
    shown = (
        f"{_upper(among.of(group))} {rate.event} {'more' if more else 'less'} often than "
        f"{reference_words(finding, evidence, among)}{size if math.isfinite(seen.change) else ''}"
    )
    numbers = [] if math.isnan(seen.first) else [f"{seen.values[0]} of 100 against {seen.values[1]} of 100"]
    numbers[-1:] = [", ".join([*numbers[-1:], *_between(seen, "" if seen.ratio else " points")])]
    return Claim(
        shown=shown,
        numbers="; ".join(
            part for part in (*numbers, *_margin(finding, seen), *_how_many(finding, evidence, among)) if part
        ),
        least=0.0 if seen.ratio else max(seen.ends[0], 0.0) if math.isfinite(seen.ends[0]) else 0.0,
    )


def _quantities(finding: Finding, evidence: Evidence, metric: str) -> Claim:
    seen = comparison_of(finding, evidence)
    among = Population()
    if seen.ratio:
        size = f"{seen.size} times that for" if math.isfinite(seen.change) else "above that for"
    else:
        size = f"{seen.size} {'higher' if seen.change > 0 else 'lower'} than for"
    other = reference_words(finding, evidence, among)
    shown = f"For {among.of(finding.groups[0])}, {quantity(metric)} is {size} {other}"
    numbers = [] if math.isnan(seen.first) else [f"{seen.values[0]} against {seen.values[1]}"]
    numbers[-1:] = [", ".join([*numbers[-1:], *_between(seen, "")])]
    return Claim(
        shown=shown,
        numbers="; ".join(
            part for part in (*numbers, *_margin(finding, seen), *_how_many(finding, evidence, among)) if part
        ),
    )


def _gaps(finding: Finding, evidence: Evidence) -> Claim:
    """Say that two groups do not have the same tpr and fpr."""
    seen = comparison_of(finding, evidence)
    names = " and ".join(quoted(name) for name in finding.groups)
    shown = f"People with {names} do not have the same tpr and fpr"
    if finding.margin is not None:
        shown = f"The absolute differences of tpr and fpr between people with {names} exceed the margin on average"
    numbers = [", ".join([f"the mean absolute difference is {seen.size}", *_between(seen, "")])]
    return Claim(
        shown=shown, numbers="; ".join([*numbers, *_margin(finding, seen), *_how_many(finding, evidence, Population())])
    )


def _all_groups(finding: Finding, evidence: Evidence, people: People) -> Claim:
    metric, ratio = metric_of(finding.measure), is_ratio(finding.measure)
    attribute = quoted("×".join(sorted({name.partition("=")[0] for name in finding.groups})))
    rate = rate_words(metric, people)
    what = quantity(metric)
    if metric == "aod_abs":
        what = "tpr or fpr"
    if rate is not None:
        what = f"how often people {rate.among.clause} {rate.event}".replace("  ", " ")
    if finding.margin is None:
        shown = f"{_upper(what)} is not the same in all {len(finding.groups)} groups of {attribute}"
    else:
        apart = "ratio" if ratio else "difference"
        shown = f"{_upper(what)} differs between some two groups of {attribute} by more than the margin of the {apart}"
    values = evidence.values if isinstance(evidence.values, Mapping) else {}
    if not values or metric == "aod_abs":
        return Claim(shown=shown, numbers="")
    low, high = (min(values, key=lambda name: values[name]), max(values, key=lambda name: values[name]))
    seen = Compared(
        first=values[high], second=values[low], change=values[high] - values[low], scale=100 if rate else 1, limits=(0,)
    )
    unit = " of 100" if rate is not None else ""
    top, bottom = seen.values
    return Claim(shown=shown, numbers=f"from {bottom}{unit} ({quoted(low)}) to {top}{unit} ({quoted(high)})")


def _correlation(finding: Finding, evidence: Evidence, people: People) -> Claim:
    metric = finding.measure.removesuffix("_correlation")
    rate, name = rate_words(metric, people), quoted(finding.groups[0])
    interval = adjusted_interval(finding, evidence)
    more = "more" if finding.estimate > 0 else "less"
    if rate is not None:
        among = f"people {rate.among.clause}".rstrip()
        shown = f"The higher {name} is, the {more} often {among} {rate.event}, by a linear correlation"
    else:
        way = "higher" if finding.estimate > 0 else "lower"
        shown = f"The higher {name} is, the {way} is {quantity(metric)}, by a linear correlation"
    numbers = f"{finding.estimate:.2f}"
    if interval is not None:
        numbers += f", between {interval.low:.2f} and {interval.high:.2f}"
    rows = finding.counts.get(finding.groups[0], {}).get("rows")
    return Claim(shown=shown, numbers=numbers + (f"; {rows:,.0f} people" if rows else ""))


def reference_words(finding: Finding, evidence: Evidence, among: Population) -> str:
    """Name whom a group or subgroup is compared with."""
    word = (evidence.reference or "") if isinstance(evidence, GroupEvidence) else ""
    if isinstance(evidence, ScanEvidence):
        word = finding.groups[-1]
    if word == "highest":
        highest = evidence.highest_group if isinstance(evidence, GroupEvidence) else None
        return f"in the group with the highest rate, as seen {quoted(highest or '')}"
    return among.like(finding.groups[-1], word)


def _assumed(finding: Finding, evidence: Evidence) -> str:
    """Say under which condition the comparison holds, as the beginning of a sentence."""
    if not isinstance(evidence, GroupEvidence):
        return ""
    if finding.measure.removesuffix("_global").endswith("_bounds"):
        some = f"{evidence.unknown_rows:,} people" if evidence.unknown_rows else "people"
        return f"Even where the {some} of unknown or guessed group are placed to make the difference smallest, "
    if finding.measure.removesuffix("_global").endswith("_em"):
        return "If, given the group, nothing depends on what the group was guessed from, "
    if evidence.strata is not None:
        return f"Compared within the same {quoted(evidence.strata.name)}, "
    return ""


def _two_values(evidence: Evidence) -> tuple[float, float]:
    values = evidence.values if isinstance(evidence.values, Mapping) else {}
    known = list(values.values())
    return (known[0], known[1]) if len(known) == 2 else (math.nan, math.nan)


def _between(seen: Compared, unit: str) -> list[str]:
    return [f"{seen.between}{unit}"] if seen.between else []


def _margin(finding: Finding, seen: Compared) -> list[str]:
    if finding.margin is None:
        return []
    if seen.ratio:
        low, high = margin_ends(finding.measure, finding.margin)
        return [f"outside the margin of {low:g} to {high:.4g}"]
    unit = " points" if seen.scale == 100 else ""
    return [f"beyond the margin of {finding.margin * seen.scale:g}{unit}"]


def _how_many(finding: Finding, evidence: Evidence, among: Population) -> list[str]:
    """Say how many people of the group the value is about, and how many of them make the difference."""
    counts = finding.counts.get(finding.groups[0], {})
    number = counts.get("denominator", counts.get("rows"))
    said = [] if number is None else [f"{number:,.0f} {among.like(finding.groups[0])}"]
    if isinstance(evidence, ScanEvidence) and evidence.more_people is not None and abs(evidence.more_people) >= 1:
        way = "more" if evidence.more_people > 0 else "fewer"
        said.append(f"about {abs(evidence.more_people):,.0f} {way} than at the others' rate")
    return said


def _base(metric: str) -> str:
    """Return the rate that a metric with a name of its own compares."""
    known = METRICS.get(metric)
    return known.per_group if known is not None and known.per_group in METRICS else metric


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
