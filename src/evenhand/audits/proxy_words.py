"""The proxy audit's findings and the sentences behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import special

from evenhand.audits.proxy_features import Carrier
from evenhand.audits.proxy_fits import FAITHFUL, Fits
from evenhand.audits.proxy_gap import Gap
from evenhand.audits.proxy_sample import Pair
from evenhand.audits.proxy_scores import interval_of
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
    single = len(carrier.block.levels) == 1
    reason = "One group has no rows at the feature's values." if math.isnan(carrier.pvalue) else ""
    if math.isnan(carrier.influence_pvalue):
        reason = f"The score has neither interval nor test: {fits.no_interval}."
    if single:
        reason = (
            f"All of `{names[0]}` have one value of `{carrier.block.name}`: what another one would do cannot be "
            "learned. A feature that is the group itself is not a proxy: leave it out."
        )
    return Finding(
        audit="proxy",
        measure=f"{form}:{carrier.block.name}",
        groups=names,
        estimate=math.nan if single else carrier.score,
        interval=None if single else _interval(carrier.low, carrier.high, options.level, fits),
        pvalue=math.nan if single else carrier.pvalue,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE if reason else Verdict.INCONCLUSIVE,
        reason=reason,
    )


def constant_findings(
    pair: Pair, form: Functional, names: Names, counts: Counts
) -> tuple[list[Finding], list[Mapping[str, Any]]]:
    """Return a finding without a value for each feature of one value, so that none is dropped in silence."""
    reason = "The feature takes one value in both groups: it carries nothing that could be measured."
    findings = [
        Finding(
            audit="proxy",
            measure=f"{form}:{name}",
            groups=names,
            estimate=math.nan,
            counts=counts,
            verdict=Verdict.NOT_COMPUTABLE,
            reason=reason,
        )
        for name in pair.design.constant
    ]
    return findings, [{"kind": "feature", "fact": reason, "feature": name} for name in pair.design.constant]


def _interval(low: float, high: float, level: float, fits: Fits) -> Interval | None:
    if fits.no_interval or math.isnan(low):
        return None
    return Interval(
        low=low, high=high, level=level, kind="linearised" if fits.known else "linearised, of the surrogate"
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
    fits: Fits,
) -> Finding:
    """Return a pair's score as a raw finding; it carries nothing when neither feature does."""
    low, high = interval_of(float(score), math.sqrt(max(variance, 0.0)), max(a.df + b.df, 1), options.level, form)
    if 2 * min(a.influence_pvalue, b.influence_pvalue) > 1 - options.level:
        low = 0.0  # where neither is shown to matter, 0 belongs to the interval
    pvalue = min(1.0, 2 * min(a.pvalue, b.pvalue)) if not math.isnan(a.pvalue + b.pvalue) else math.nan
    return Finding(
        audit="proxy",
        measure=f"{form}:{a.block.name} × {b.block.name}",
        groups=names,
        estimate=float(score),
        interval=_interval(low, high, options.level, fits),
        pvalue=pvalue,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE if math.isnan(pvalue) else Verdict.INCONCLUSIVE,
        reason="A feature of the pair could not be tested." if math.isnan(pvalue) else "",
    )


def not_computable(
    pair: Pair, form: Functional, options: Options, names: Names, counts: Counts, reason: str
) -> tuple[list[Finding], list[Mapping[str, Any]]]:
    """Return a finding without a value for the gap and each feature."""
    features = [*(b.name for b in pair.design.blocks), *pair.design.constant]
    measures = [str(form), *(f"{form}:{name}" for name in features)]
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
    evidence: list[Mapping[str, Any]] = [{"kind": "gap", "fact": reason}]
    return findings, evidence + [{"kind": "feature", "fact": reason, "feature": name} for name in features]


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


def gap_fact(gap: Gap, form: Functional, names: Names, *, soft: bool) -> str:
    """State the gap; of scores it is not what decisions would give."""
    if str(form) == "da" and form.penalty == 0:
        return (
            f"The mean prediction is {gap.values[0]:.4f} in `{names[0]}` and {gap.values[1]:.4f} in "
            f"`{names[1]}`: a divergence of {gap.estimate:.4f}."
        )
    of = ", taken on scores and not on decisions," if soft else ""
    return (
        f"The {form}{of} is {gap.values[0]:.4f} in `{names[0]}` and {gap.values[1]:.4f} in `{names[1]}`: "
        f"a difference of {gap.estimate:+.4f}."
    )


def planning(gap: Gap, alpha: float) -> str:
    """Say what the data could have shown."""
    if not gap.standard_error > 0:
        return ""
    least = float(special.ndtri(1 - alpha / 2) + special.ndtri(_POWER)) * gap.standard_error
    return f"With these rows a difference of {least:.2g} would have been shown with probability {_POWER:g}."


def feature_evidence(
    carrier: Carrier, rank: Mapping[str, float | None], gap: Gap, names: Names, finding: Finding, fits: Fits
) -> dict[str, Any]:
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
    if fits.no_interval:
        fact += f" The score has no interval: {fits.no_interval}."
    share = -carrier.carried / gap.estimate if gap.estimate else math.nan
    level = None if finding.interval is None else finding.interval.level
    known = level is not None and not math.isnan(carrier.carried_low)
    return {
        "kind": "feature",
        "fact": fact,
        "feature": name,
        **_score_evidence(finding, fits),
        "signed_score": carrier.signed,
        "carried": carrier.carried,
        "carried_share": share,
        "carried_interval": {"low": carrier.carried_low, "high": carrier.carried_high, "level": level}
        if known
        else None,
        "association": carrier.association,
        "association_pvalue": carrier.association_pvalue,
        "influence_pvalue": carrier.influence_pvalue,
        "difference_pvalue": carrier.difference_pvalue,
        "test": "intersection-union: influence and difference of distributions",
        "ranking": dict(rank),
        "levels": [dict(row) for row in carrier.profile],
    }


def pair_evidence(a: Carrier, b: Carrier, finding: Finding, fits: Fits, form: Functional) -> dict[str, Any]:
    """Say what stands behind a pair's score."""
    return {
        "kind": "pair",
        "fact": f"Together `{a.block.name}` and `{b.block.name}` move the influence on {form} by "
        f"{finding.estimate:.4f} on average.",
        "features": [a.block.name, b.block.name],
        **_score_evidence(finding, fits),
        "beyond_the_larger": finding.estimate - max(a.score, b.score),
        "test": "Bonferroni over the two features' tests",
    }


def _score_evidence(finding: Finding, fits: Fits) -> dict[str, Any]:
    return {
        "score": finding.estimate,
        "interval": None if finding.interval is None else finding.interval.to_dict(),
        "no_interval": fits.no_interval,
        "pvalue": finding.pvalue,
    }


_SHOWN = (
    "feature",
    "score",
    "interval",
    "signed_score",
    "pvalue",
    "carried",
    "carried_share",
    "carried_interval",
    "association",
    "association_pvalue",
    "ranking",
)


def feature_table(evidence: Sequence[Mapping[str, Any]], form: Functional) -> list[dict[str, Any]]:
    """Return one row per feature, the largest score first; `measure` names the finding of each."""
    rows = [{"measure": f"{form}:{e['feature']}", **{k: e[k] for k in _SHOWN}} for e in evidence]
    return sorted(rows, key=lambda row: int(row["ranking"]["rank"]))


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
        out.append(
            "Calibration error has a kink: where the model is well calibrated, its scores are mostly noise, and only "
            "bounded from above."
        )
    found = fits.reports.get("surrogate")
    if found is not None and found["r_squared"] < FAITHFUL:
        out.append(
            f"The surrogate explains {found['r_squared']:.0%} of the scores' variance: pass `model` for the "
            "model's own answer at changed features."
        )
    if fits.no_interval:
        out.append(f"Scores have no interval: {fits.no_interval}.")
    return out
