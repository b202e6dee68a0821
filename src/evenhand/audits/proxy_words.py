"""The proxy audit's findings and the sentences behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from scipy import special

from evenhand.audits.proxy_features import Carrier, interval_of
from evenhand.audits.proxy_gap import Gap
from evenhand.audits.proxy_sample import Fits, Pair
from evenhand.kernels.influence import Functional
from evenhand.results import Finding, Interval, Verdict

Names = tuple[str, str]
Counts = Mapping[str, Mapping[str, float]]

_POWER = 0.8
# Rarer outcomes per coefficient than this make logistic variances unreliable.
_EVENTS = 10


class Options(Protocol):
    """What findings need of the audit's options."""

    @property
    def margin(self) -> float | None:
        """The margin."""
        ...

    @property
    def level(self) -> float:
        """Coverage of intervals."""
        ...

    @property
    def alpha(self) -> float:
        """The error rate."""
        ...


def gap_finding(
    gap: Gap,
    form: Functional,
    options: Options,
    names: Names,
    counts: Counts,
) -> Finding:
    """Return the gap as a raw finding."""
    undefined = math.isnan(gap.estimate) or math.isnan(gap.pvalue)
    return Finding(
        audit="proxy",
        measure=str(form),
        groups=names,
        estimate=gap.estimate,
        interval=None if undefined else Interval(low=gap.low, high=gap.high, level=options.level, kind=gap.kind),
        pvalue=gap.pvalue,
        margin=options.margin,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE if undefined else Verdict.INCONCLUSIVE,
        reason=f"The {form} of a group is undefined: no rows in its denominator." if undefined else "",
    )


def feature_finding(
    carrier: Carrier,
    form: Functional,
    options: Options,
    names: Names,
    counts: Counts,
    fits: Fits,
) -> Finding:
    """Return one feature's score as a raw finding."""
    return Finding(
        audit="proxy",
        measure=f"{form}:{carrier.block.name}",
        groups=names,
        estimate=carrier.score,
        interval=Interval(
            low=carrier.low,
            high=carrier.high,
            level=options.level,
            kind="linearised" if fits.linear else "linearised, nuisance fixed",
        ),
        pvalue=carrier.pvalue,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE if math.isnan(carrier.pvalue) else Verdict.INCONCLUSIVE,
        reason="One group has no rows at the feature's values." if math.isnan(carrier.pvalue) else "",
    )


def pair_finding(
    a: Carrier,
    b: Carrier,
    score: float,
    variance: float,
    form: Functional,
    options: Options,
    names: Names,
    counts: Counts,
) -> Finding:
    """Return a pair's score as a raw finding; it carries nothing when neither feature does."""
    low, high = interval_of(float(score), math.sqrt(max(variance, 0.0)), max(a.df + b.df, 1), options.level)
    pvalue = min(1.0, 2 * min(a.pvalue, b.pvalue)) if not math.isnan(a.pvalue + b.pvalue) else math.nan
    return Finding(
        audit="proxy",
        measure=f"{form}:{a.block.name} × {b.block.name}",
        groups=names,
        estimate=float(score),
        interval=Interval(low=low, high=high, level=options.level, kind="linearised"),
        pvalue=pvalue,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE if math.isnan(pvalue) else Verdict.INCONCLUSIVE,
        reason="A feature of the pair could not be tested." if math.isnan(pvalue) else "",
    )


def not_computable(
    pair: Pair, form: Functional, options: Options, names: Names, counts: Counts, reason: str
) -> tuple[list[Finding], list[Mapping[str, Any]]]:
    """Return a finding without a value for the gap and each feature."""
    measures = [str(form), *(f"{form}:{b.name}" for b in pair.design.blocks)]
    findings = [
        Finding(
            audit="proxy",
            measure=m,
            groups=names,
            estimate=math.nan,
            margin=options.margin if k == 0 else None,
            counts=counts,
            verdict=Verdict.NOT_COMPUTABLE,
            reason=reason,
        )
        for k, m in enumerate(measures)
    ]
    return findings, [{"fact": reason} for _ in findings]


def counts_of(pair: Pair, names: Names) -> dict[str, dict[str, float]]:
    """Count the rows of both groups, and those with outcome 1."""
    out: dict[str, dict[str, float]] = {}
    for name, rows in zip(names, (pair.inside, ~pair.inside), strict=True):
        out[name] = {"rows": int(pair.count[rows].sum())}
        if not np.isnan(pair.y).any():
            out[name]["outcome_1"] = int(pair.count[rows & (pair.y == 1)].sum())
    return out


def too_few(pair: Pair, form: Functional, names: Names) -> str:
    """Say why nothing can be computed, or return an empty string."""
    for k_group, (name, rows) in enumerate(zip(names, (pair.inside, ~pair.inside), strict=True)):
        n = int(pair.count[rows].sum())
        if n < 2:
            return f"Group `{name}` has {n} row{'s' * (n != 1)}; at least 2 are needed."
        learned = k_group == 0 or any(t == "cal" for t, _ in form.terms)
        both = form.uses_eta and learned
        if both:
            for value in (0, 1):
                k = int(pair.count[rows & (pair.y == value)].sum())
                if k < 2:
                    return (
                        f"Group `{name}` has {k} row{'s' * (k != 1)} with outcome {value}; at least 2 are "
                        "needed to learn P(Y|X,S)."
                    )
        if any(t == "da" for t, _ in form.terms):
            w = pair.weight[rows]
            mean = float(w @ pair.h[rows] / w.sum())
            if not 0 < mean < 1:
                return f"All predictions of group `{name}` are {mean:g}: the divergence is not finite."
    if any(t == "fdr" for t, _ in form.terms):
        for name, rows in zip(names, (pair.inside, ~pair.inside), strict=True):
            if not float(pair.weight[rows] @ pair.h[rows]) > 0:
                return f"Group `{name}` has no rows with decision 1: its fdr is undefined."
    return ""


def gap_fact(gap: Gap, form: Functional, names: Names) -> str:
    """State the gap."""
    if str(form) == "da" and form.penalty == 0:
        return (
            f"The mean prediction is {gap.values[0]:.4f} in `{names[0]}` and {gap.values[1]:.4f} in "
            f"`{names[1]}`: a divergence of {gap.estimate:.4f}."
        )
    return (
        f"The {form} is {gap.values[0]:.4f} in `{names[0]}` and {gap.values[1]:.4f} in `{names[1]}`: "
        f"a difference of {gap.estimate:+.4f}."
    )


def planning(gap: Gap, alpha: float) -> str:
    """Say what the data could have shown."""
    if not gap.standard_error > 0:
        return ""
    least = float(special.ndtri(1 - alpha / 2) + special.ndtri(_POWER)) * gap.standard_error
    return f"With these rows a difference of {least:.2g} would have been shown with probability {_POWER:g}."


def feature_evidence(carrier: Carrier, rank: Mapping[str, float], gap: Gap, names: Names) -> dict[str, Any]:
    """Say what stands behind a feature's score."""
    name = carrier.block.name
    fact = f"Changing `{name}` moves the influence by {carrier.score:.4f} on average (rank {rank['rank']}). "
    if carrier.influence_pvalue > carrier.difference_pvalue:
        fact += (
            f"Neither predictions nor outcome of `{names[0]}` are shown to depend on it given the other "
            f"features; its plain association with the group is {carrier.association:.3f}."
            if carrier.influence_pvalue > 0.05
            else f"It matters given the other features; the groups differ in it ({carrier.association:.3f})."
        )
    elif carrier.difference_pvalue > 0.05:
        fact += f"The groups do not differ clearly in it (association {carrier.association:.3f})."
    else:
        fact += f"The groups differ in it (association {carrier.association:.3f})."
    share = -carrier.carried / gap.estimate if gap.estimate else math.nan
    return {
        "fact": fact,
        "signed_score": carrier.signed,
        "carried": carrier.carried,
        "carried_share": share,
        "association": carrier.association,
        "association_pvalue": carrier.association_pvalue,
        "influence_pvalue": carrier.influence_pvalue,
        "difference_pvalue": carrier.difference_pvalue,
        "test": "intersection-union: influence (Wald) and difference of distributions",
        "ranking": dict(rank),
        "levels": [dict(row) for row in carrier.profile],
    }


def warnings_of(pair: Pair, fits: Fits, form: Functional) -> list[str]:
    """Say where the method is known to be less reliable and the data are there."""
    out = []
    if form.uses_eta:
        rare = min(int(pair.count[pair.inside & (pair.y == v)].sum()) for v in (0, 1))
        width = pair.X.shape[1]
        if rare < _EVENTS * width:
            out.append(
                f"The group has {rare} rows of the rarer outcome for {width} columns: with fewer than "
                f"{_EVENTS} per column intervals and p-values of features are rough."
            )
        slope = float(fits.reports["outcome"]["slope"])
        if not 0.8 <= slope <= 1.25:
            out.append(f"The outcome model is not calibrated (slope {slope:.2f}, not 1): scores inherit its error.")
    if any(name == "cal" for name, _ in form.terms):
        out.append("Calibration error has a kink: where the model is well calibrated, its scores are mostly noise.")
    found = fits.reports.get("surrogate")
    if found is not None and found["r_squared"] < 0.9:
        out.append(
            f"The surrogate explains {found['r_squared']:.0%} of the scores' variance: pass `model` for the "
            "model's own answer at changed features."
        )
    if not fits.linear:
        out.append("Intervals of scores take the fitted nuisance models as given: they are too short.")
    return out
