"""A certificate: candidates tested in a fixed order on people that neither training nor choosing has seen.

Hypotheses
    For candidate j, H_j: some metric differs between some two groups by more than its margin.
Test
    For each metric and pair of groups the audit's own test against "outside the margin"; the largest p-value over all
    of them tests H_j (an intersection-union test, which needs no correction).
Order
    Candidates are ordered on other people, from the one that looks safest to the one that performs best, and each
    must perform better than those before it. They are tested in this order, each at the whole level alpha, until one is
    not shown to be inside. A false H_j is certified at most with probability alpha over the whole sequence
    ([angelopoulos2021], fixed sequence; the order is that of [laufer2023]).
Answer
    The last certified candidate, which performs best on the people to choose on. None, when the first fails.
When it fails
    People who depend on each other across the parts (the same person twice), and people who differ from those in the
    file: the certificate is about the population that the file was drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy import optimize, special

from evenhand.arrays import FloatArray
from evenhand.audits.group import audit_group
from evenhand.audits.margin import is_ratio
from evenhand.inference.limits import Margin
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import METRICS
from evenhand.results import Finding, Verdict

_POWER = 0.8  # how often something is to be shown, where the rows for it are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be certified."""

    margins: Mapping[str, Margin]  # metric to what counts as negligible
    attributes: tuple[Attribute, ...]  # whose groups are compared, all pairs of each
    alpha: float  # probability, at most, of certifying a model that lies outside a margin

    @property
    def words(self) -> str:
        """What is wanted, in words."""
        return " and ".join(
            f"{name} {'ratios above' if m.ratio else 'differences below'} {m.value:g}"
            for name, m in self.margins.items()
        )

    @property
    def needs_score(self) -> bool:
        """Whether some metric reads the model's score."""
        return any("score" in METRICS[name].needs for name in self.margins)

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(a.name for a in self.attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One metric between two groups: the finding, and the p-value for lying outside the margin."""

    finding: Finding
    outside: float  # 1 where it is not computable
    times_rows: float = math.nan  # how many times these rows would show it 4 times in 5, were the estimate true

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        interval = self.finding.interval
        return {
            "measure": self.finding.measure,
            "groups": list(self.finding.groups),
            "estimate": finite(self.finding.estimate),
            "low": None if interval is None else finite(interval.low),
            "high": None if interval is None else finite(interval.high),
            "margin": self.finding.margin,
            "pvalue_outside": self.outside,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One test of the sequence."""

    candidate: str  # its label
    pvalue: float  # for lying outside the margin
    certified: bool
    comparisons: tuple[Comparison, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the step as plain data."""
        return {
            "candidate": self.candidate,
            "pvalue": self.pvalue,
            "certified": self.certified,
            "comparisons": [c.to_dict() for c in self.comparisons],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was shown about the chosen model, and how."""

    verdict: Verdict  # equivalent: a model is certified; inconclusive: none is
    margins: Mapping[str, float | str]  # metric to margin
    attributes: tuple[str, ...]
    alpha: float
    rows: int  # people it rests on
    steps: tuple[Step, ...]
    reason: str  # a sentence

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        return {
            "verdict": str(self.verdict),
            "margins": dict(self.margins),
            "attributes": list(self.attributes),
            "alpha": self.alpha,
            "rows": self.rows,
            "steps": [s.to_dict() for s in self.steps],
            "reason": self.reason,
        }


def compare_groups(
    part: AuditData, decision: FloatArray, score: FloatArray | None, target: Target
) -> tuple[Comparison, ...]:
    """Compare all pairs of groups by each metric, as a model decides about them.

    Parameters
    ----------
    part : AuditData
        People with their outcomes and groups.
    decision, score : ndarray
        The model's.
    target : Target
        Metrics, margins and attributes.

    Returns
    -------
    tuple of Comparison
    """
    kind = "none" if score is None else "probability"
    attributes = tuple(part.attribute(name) for name in target.names)
    judged = replace(part, decision=decision, score=score, score_kind=kind, attributes=attributes, continuous={})
    asked = {"compare": "pairs", "correction": "none", "alpha": target.alpha, "rng": 0}
    made = []
    for metric, margin in target.margins.items():
        result = audit_group(judged, metrics=[metric], margin=margin, **asked)
        for finding, evidence in zip(result.findings, result.evidence, strict=True):
            if finding.measure.endswith("_global"):  # the largest of the pairs
                continue
            outside = evidence.equivalence_pvalue
            undecided = finding.verdict is Verdict.NOT_COMPUTABLE or outside is None or math.isnan(outside)
            made.append(
                Comparison(
                    finding=finding,
                    outside=1.0 if undecided or outside is None else float(outside),
                    times_rows=math.nan if undecided else times_rows(finding, margin, target.alpha),
                )
            )
    return tuple(made)


def times_rows(finding: Finding, margin: Margin, alpha: float) -> float:
    """Return how many times these rows would show it 4 times in 5, by the normal law; NaN where no number would."""
    if finding.interval is None or not (math.isfinite(finding.interval.low) and math.isfinite(finding.interval.high)):
        return math.nan
    values = [finding.estimate, finding.interval.low, finding.interval.high, margin.low, margin.high]
    if margin.ratio:
        if min(values) <= 0:
            return math.nan
        values = [math.log(v) for v in values]
    estimate, low, high, least, most = values
    error = (high - low) / (2 * float(special.ndtri((1 + finding.interval.level) / 2)))
    if min(estimate - least, most - estimate) <= 0 or error == 0:
        return math.nan
    bar = float(special.ndtri(1 - alpha))

    def short_of_power(log_times: float) -> float:
        sides = [room / error * math.exp(log_times / 2) - bar for room in (estimate - least, most - estimate)]
        return float(special.ndtr(sides).sum()) - 1 - _POWER

    least_log, most_log = -20.0, 40.0
    if short_of_power(most_log) <= 0:  # an estimate on the margin itself
        return math.nan
    if short_of_power(least_log) >= 0:
        return math.exp(least_log)
    return math.exp(optimize.brentq(short_of_power, least_log, most_log))


def pvalue_of(comparisons: Sequence[Comparison]) -> float:
    """Return the p-value for "some comparison lies outside its margin": the largest of all."""
    return max((c.outside for c in comparisons), default=1.0)


def certificate_of(steps: Sequence[Step], target: Target, rows: int) -> Certificate:
    """Say what a sequence of tests has shown.

    Parameters
    ----------
    steps : sequence of Step
        In the order of the tests; the last may have failed.
    target : Target
        What they tested.
    rows : int
        People it rests on.

    Returns
    -------
    Certificate
    """
    certified = [s for s in steps if s.certified]
    if certified:
        p = max(s.pvalue for s in certified)
        reason = (
            f"Certified: `{certified[-1].candidate}` keeps {target.words} between all groups of "
            f"{' and '.join(target.names)}, "
            f"shown on {rows:,} people it has not seen (p {p:.3g}, error rate {target.alpha:g})."
        )
    elif steps:
        reason = (
            f"Nothing is certified. The safest candidate, `{steps[0].candidate}`, is not shown to keep {target.words} "
            f"on {rows:,} people it has not seen. {_obstacle(steps[0])}"
        )
    else:
        reason = "Nothing is certified: no candidate was worth testing."
    return Certificate(
        verdict=Verdict.EQUIVALENT if certified else Verdict.INCONCLUSIVE,
        margins={name: said(m) for name, m in target.margins.items()},
        attributes=target.names,
        alpha=target.alpha,
        rows=rows,
        steps=tuple(steps),
        reason=reason,
    )


def _obstacle(step: Step) -> str:
    """Say which comparison is in the way, and how many rows would decide."""
    worst = max(step.comparisons, key=lambda c: c.outside)
    finding = worst.finding
    if finding.verdict is Verdict.NOT_COMPUTABLE:
        return finding.reason
    between = " and ".join(finding.groups)
    fact = f"{finding.measure} between {between} is {amount(finding)}"
    if finding.interval is not None:
        fact += f", with a {finding.interval.level:.0%} interval from {finding.interval.low:.3f} to "
        fact += f"{finding.interval.high:.3f}"
    if math.isnan(worst.times_rows):
        return f"{fact}. More rows alone would not show it: a wider margin, other methods or more features might."
    needed = f"{worst.times_rows:.1f} times" if worst.times_rows < 10 else f"{worst.times_rows:,.0f} times"
    return f"{fact}. If that were its true value, {needed} as many people would show it 4 times in 5."


def amount(finding: Finding) -> str:
    """Write an estimate: a difference with its sign, a ratio without."""
    return f"{finding.estimate:.3f}" if is_ratio(finding.measure) else f"{finding.estimate:+.3f}"


def said(margin: Margin) -> float | str:
    """Return a margin as the user says it."""
    return f"ratio:{margin.value:g}" if margin.ratio else margin.value


def finite(value: float) -> float | None:
    """Return a number that JSON can hold, None for any other."""
    return value if math.isfinite(value) else None
