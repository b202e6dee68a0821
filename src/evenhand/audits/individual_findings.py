"""The findings of an individual audit: statistics and evidence in, raw findings out."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from scipy import special

from evenhand.audits.individual_evidence import planning, ratios
from evenhand.audits.people import People
from evenhand.audits.unfair_map import Moved
from evenhand.kernels.ratios import MeanRatio, RateRatio
from evenhand.results import Finding, Interval, Verdict

Raw = tuple[Finding, dict[str, Any]]

# Rows from which a normal limit is trusted to show equivalence; see `calibration/individual.py`.
ENOUGH = 100


class Limits(Protocol):
    """The options a finding depends on; `evenhand.audits.individual.IndividualOptions` has them."""

    @property
    def tolerance(self) -> float:
        """The largest ratio that is tolerated."""
        ...

    @property
    def alpha(self) -> float:
        """Error rate."""
        ...

    @property
    def level(self) -> float:
        """Coverage of the intervals."""
        ...

    @property
    def limits(self) -> str:
        """``"skewness"`` or ``"normal"``."""
        ...


def loss_finding(people: People, moved: Moved, found: MeanRatio | None, behind: dict[str, Any], options: Limits) -> Raw:
    """Return the finding on the mean ratio of losses; no ratio is dropped, undefined ones forbid it."""
    log_ratio = ratios(moved.log_loss)[-1]
    bad = ~np.isfinite(log_ratio)
    counts = {
        "all": {
            "rows": float(people.count.sum()),
            "different_people": float(people.count.size),
            "undefined_ratios": float(people.count[bad].sum()),
        }
    }
    if found is None or not math.isfinite(found.estimate) or not math.isfinite(found.spread):
        reason = (
            f"The ratio is not a number for {counts['all']['undefined_ratios']:.0f} of "
            f"{counts['all']['rows']:.0f} rows: their "
            + (
                "prediction is not a number. Mend the model first."
                if np.isnan(moved.log_loss[[0, -1]]).any()
                else "loss is exactly 0 or infinite before or after. Look at `error_ratio`, or keep probabilities away "
                "from 0 and 1 with `clip=0.01`."
            )
        )
        return refused("loss_ratio", reason, people, counts, behind)
    low, high = found.interval(options.level, options.limits)
    # Too few rows, or a tail too long for them: people who carry it may be missing from the sample altogether.
    trusted = found.rows >= ENOUGH and abs(found.skewness) <= 0.5 * math.sqrt(found.rows)
    plan = planning(found, options.tolerance, options.alpha)
    if not trusted:
        plan += f" With fewer than {ENOUGH} rows, or so long a tail of ratios, equivalence is not claimed."
    evidence = {
        **behind,
        "T_n": found.bound(options.alpha),
        "one_sided_low": found.bound(options.alpha) if options.limits == "normal" else found.lower(_z(options.alpha)),
        "V_n": found.spread,
        "skewness": found.skewness,
        "largest_share": found.largest_share,
        "equivalence_pvalue": _floor(found.below(options.tolerance, options.limits), found.rows)
        if trusted
        else math.nan,
        "fact": _fact("loss", found.estimate, behind, people),
        "planning": plan.strip(),
    }
    finding = Finding(
        audit="individual",
        measure="loss_ratio",
        groups=(),
        estimate=found.estimate,
        interval=Interval(low=low, high=high, level=options.level, kind=options.limits),
        pvalue=_floor(found.above(options.tolerance, options.limits), found.rows),
        margin=options.tolerance,
        counts=counts,
    )
    return finding, evidence


def error_finding(people: People, moved: Moved, found: RateRatio, behind: dict[str, Any], options: Limits) -> Raw:
    """Return the finding on the ratio of error rates."""
    counts = {
        "all": {
            "rows": found.rows,
            "wrong_before": found.kept + found.lost,
            "wrong_after": found.kept + found.gained,
            "became_wrong": found.gained,
            "became_right": found.lost,
        }
    }
    silent = np.isnan(moved.wrong[[0, -1]]).any(axis=0)
    if silent.any():
        reason = (
            f"The model's answer is not a number for {people.count[silent].sum():.0f} of {people.count.sum():.0f} "
            "rows, before or after they are moved, so nobody can say whether it is right. Mend the model first."
        )
        return refused("error_ratio", reason, people, None, {"map": behind["map"]})
    if math.isnan(found.estimate):
        reason = "Nobody is misjudged before or after, so the error rates have no ratio."
        return refused("error_ratio", reason, people, counts, {"map": behind["map"]})
    low, high = found.interval(options.level)
    evidence = {
        **{k: behind[k] for k in ("map", "metric", "curve", "by_part", "off_range", "movement")},
        "T_n": found.bound(options.alpha),
        "linear_form": found.after - options.tolerance * found.before,
        "test": "exact binomial given the errors" if found.method == "binomial" else "linear form (Fieller)",
        "equivalence_pvalue": _floor(found.below(options.tolerance), found.rows)
        if found.method == "binomial" or found.rows >= ENOUGH
        else math.nan,
        "fact": _fact("error rate", found.estimate, behind, people),
        "planning": "",
    }
    finding = Finding(
        audit="individual",
        measure="error_ratio",
        groups=(),
        estimate=found.estimate,
        interval=Interval(low=low, high=high, level=options.level, kind=found.method),
        pvalue=_floor(found.above(options.tolerance), found.rows),
        margin=options.tolerance,
        counts=counts,
    )
    return finding, evidence


def refused(
    measure: str, reason: str, people: People, counts: Any = None, evidence: dict[str, Any] | None = None
) -> Raw:
    """Return a finding that could not be computed, with its reason."""
    counts = {"all": {"rows": float(people.count.sum())}} if counts is None else counts
    return (
        Finding(
            audit="individual", measure=measure, groups=(), estimate=math.nan, counts=counts,
            verdict=Verdict.NOT_COMPUTABLE, reason=reason,
        ),
        evidence or {},
    )  # fmt: skip


def _fact(what: str, estimate: float, behind: dict[str, Any], people: People) -> str:
    text = (
        f"Moving people where they should be treated alike multiplies the {what} by {estimate:.3g} "
        f"({people.count.sum():.0f} rows, {behind['map']['kind']})."
    )
    outside = behind["off_range"]["either"]
    held = behind["off_range"]["stopped"] > 0
    if outside > 0.1 and not held and behind["map"]["kind"].startswith("gradient"):
        text += (
            f" {100 * outside:.0f} % of them end outside the observed range; `stay_in_range=True` holds them inside."
        )
    return text


def _floor(pvalue: float, rows: float) -> float:
    # No limit theorem makes n rows say more than n tosses of a coin that all agree.
    return max(pvalue, math.ldexp(1.0, -int(min(rows, 1000))))


def _z(alpha: float) -> float:
    return float(special.ndtri(1 - alpha))
