"""The findings of an individual audit: statistics and evidence in, raw findings out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.individual.description import planning
from evenhand.audits.individual.evidence import IndividualEvidence
from evenhand.audits.individual.options import IndividualSetting
from evenhand.audits.individual.totals import Totals
from evenhand.audits.verdict import OneSided
from evenhand.kernels.flow.map_error import MapError
from evenhand.kernels.flow.ratios import MeanRatio, RateRatio
from evenhand.results import Finding

# Rows from which a normal limit is trusted to show equivalence; see `calibration/individual.py`.
ENOUGH = 100
# Errors from which their rates are compared.
FEWEST_ERRORS = 10
CLIP = "set the individual audit's option `clip` to 0.01, in a plan or in Python"
UNSURE = (
    "The directions could not be learned again from rows drawn again, so nobody knows how sure they are. "
    "More rows, or larger groups, are needed."
)


def loss_finding(totals: Totals, mean: MeanRatio | None, behind: IndividualEvidence, options: IndividualSetting) -> Raw:
    """Return the finding on the mean ratio of losses; no ratio is dropped, undefined ones forbid it."""
    counts = {"all": {"rows": totals.rows, "undefined_ratios": totals.ratios[-1].undefined}}
    reason = _no_mean(totals, mean)
    if reason or mean is None:
        return refused("loss_ratio", reason, totals.rows, counts, behind)
    # Too few rows, or a tail too long for them: people who carry it may be missing from the sample altogether.
    trusted = mean.rows >= ENOUGH and abs(mean.skewness) <= 0.5 * math.sqrt(mean.rows)
    plan = planning(mean, options.tolerance, options.alpha)
    if not trusted:
        plan += f" With fewer than {ENOUGH} rows, or so long a tail of ratios, equivalence is not claimed."
    evidence = replace(
        _with_metric(behind, mean.map, mean.map.extra(1.0), mean.error),
        V_n=mean.spread,
        skewness=mean.skewness,
        largest_share=mean.largest_share,
        fact=_fact("loss", mean.estimate, behind, totals.rows),
        planning=plan.strip(),
    )
    return _tested("loss_ratio", mean, options.limits, counts, evidence, options, trusted=trusted)


def error_finding(totals: Totals, rates: RateRatio, behind: IndividualEvidence, options: IndividualSetting) -> Raw:
    """Return the finding on the ratio of error rates."""
    counts = {
        "all": {
            "rows": rates.rows,
            "wrong_before": rates.kept + rates.lost,
            "wrong_after": rates.kept + rates.gained,
            "became_wrong": rates.gained,
            "became_right": rates.lost,
        }
    }
    reason = _no_rates(totals, rates)
    if reason:
        answered = not totals.rates[-1].undefined
        evidence = IndividualEvidence(map=behind.map)
        return refused("error_ratio", reason, totals.rows, counts if answered else None, evidence)
    evidence = replace(
        _with_metric(behind, rates.map, rates.map.extra(1.0, -options.tolerance)),
        pairs=None,
        linear_form=rates.after - options.tolerance * rates.before,
        test="exact binomial given the errors" if rates.method == "binomial" else "linear form (Fieller)",
        fact=_fact("error rate", rates.estimate, behind, totals.rows),
        planning="",
    )
    trusted = rates.method == "binomial" or rates.rows >= ENOUGH
    return _tested("error_ratio", rates, rates.method, counts, evidence, options, trusted=trusted)


def _tested(
    measure: str,
    ratio: MeanRatio | RateRatio,
    method: str,
    counts: Mapping[str, Mapping[str, float]],
    evidence: IndividualEvidence,
    options: IndividualSetting,
    *,
    trusted: bool,
) -> Raw:
    """Test a ratio against the tolerance from above, and from below where its law is trusted there."""
    interval_at = OneSided(
        lower=partial(ratio.lower, method=method),
        upper=partial(ratio.upper, method=method),
        kind=f"{method}, one-sided",
    )
    finding = Finding(
        audit="individual",
        measure=measure,
        groups=(),
        estimate=ratio.estimate,
        interval=interval_at(options.level),
        pvalue=_floor(ratio.above(options.tolerance, method), ratio.rows),
        margin=options.tolerance,
        counts=counts,
    )
    evidence = replace(
        evidence,
        T_n=ratio.bound(options.alpha),
        one_sided_high=ratio.upper(1 - options.level, method),
        equivalence_pvalue=_floor(ratio.below(options.tolerance, method), ratio.rows) if trusted else math.nan,
    )
    return Raw(finding=finding, evidence=evidence, interval_at=interval_at)


def _no_mean(totals: Totals, mean: MeanRatio | None) -> str:
    """Say why the ratios of losses have no mean that can be tested; empty where they have."""
    if mean is None or not math.isfinite(mean.estimate) or not math.isfinite(mean.spread):
        return f"The ratio is not a number for {totals.ratios[-1].undefined:.0f} of {totals.rows:.0f} rows: their " + (
            "prediction is not a number. Mend the model first."
            if totals.silent
            else "loss is exactly 0 or infinite before or after. Look at `error_ratio`, or keep probabilities away "
            f"from 0 and 1: {CLIP}."
        )
    if not math.isfinite(mean.spread * mean.spread):
        return (
            "The loss of some people is so near to 0 before they are moved that the ratios cannot be averaged. Look at "
            f"`error_ratio`, or keep probabilities away from 0 and 1: {CLIP}."
        )
    return "" if math.isfinite(mean.map.variance) else UNSURE


def _no_rates(totals: Totals, rates: RateRatio) -> str:
    """Say why error rates cannot be compared; empty where they can."""
    silent = totals.rates[-1].undefined
    if silent:
        return (
            f"The model's answer is not a number for {silent:.0f} of {totals.rows:.0f} "
            "rows, before or after they are moved, so nobody can say whether it is right. Mend the model first."
        )
    if math.isnan(rates.estimate):
        return "Nobody is misjudged before or after, so the error rates have no ratio."
    if not math.isfinite(rates.map.variance):
        return UNSURE
    one_sided = rates.method == "binomial"
    after, before = rates.kept + rates.gained, rates.kept + rates.lost
    seen = after if one_sided else min(after, before)
    if seen < FEWEST_ERRORS:
        return (
            f"Only {seen:.0f} rows are misjudged{'' if one_sided else ' before or after'}; at least "
            f"{FEWEST_ERRORS} are needed to compare error rates. Look at `loss_ratio`, which uses every row."
        )
    return ""


def refused(
    measure: str, reason: str, rows: float, counts: Any = None, evidence: IndividualEvidence | None = None
) -> Raw:
    """Return a finding that could not be computed, with its reason."""
    counts = {"all": {"rows": rows}} if counts is None else counts
    return not_computable("individual", measure, (), reason, counts=counts, evidence=evidence or IndividualEvidence())


def _fact(what: str, estimate: float, behind: IndividualEvidence, rows: float) -> str:
    assert behind.map is not None
    assert behind.off_range is not None
    text = (
        f"Moving people where they should be treated alike multiplies the {what} by {estimate:.3g} "
        f"({rows:,.0f} rows, {behind.map.kind})."
    )
    outside, held = behind.off_range.either, behind.off_range.stopped > 0
    if outside > 0.1 and not held and behind.map.kind.startswith("gradient"):
        text += f" {100 * outside:.0f} % of them end outside the observed range; `limit='range'` holds them inside."
    return text


def _floor(pvalue: float, rows: float) -> float:
    # No limit theorem makes n rows say more than n tosses of a coin that all agree.
    return max(pvalue, math.ldexp(1.0, -int(min(rows, 1000))))


def _with_metric(
    behind: IndividualEvidence, error: MapError, extra: float, total: float | None = None
) -> IndividualEvidence:
    """Add what the learned metric adds to the error of an estimate, where it was learned."""
    if error.variance == 0:
        return behind
    return replace(behind, metric_error=math.sqrt(extra), metric_bias=error.bias, error=total)
