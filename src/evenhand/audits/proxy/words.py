"""The proxy audit's findings and the sentences behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from scipy import special

from evenhand.audits.proxy.features import FeaturePart, no_test
from evenhand.audits.proxy.fits import FAITHFUL, Fits
from evenhand.audits.proxy.gap import Gap
from evenhand.audits.proxy.sample import Pair
from evenhand.audits.proxy.scores import Scores
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Functional
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
        interval=None if undefined else gap.interval,
        pvalue=gap.pvalue,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE if undefined else Verdict.INCONCLUSIVE,
        reason=f"The {form} of a group is undefined: no rows in its denominator." if undefined else "",
    )


def feature_finding(
    part: FeaturePart,
    form: Functional,
    options: Options,
    names: Names,
    counts: Counts,
    fits: Fits,
) -> Finding:
    """Return what one feature carries as a raw finding."""
    name = part.block.name
    single = len(part.block.levels) == 1
    untested = no_test(form, fits)
    reason = ""
    if single:
        reason = f"All of `{names[0]}` have one value of `{name}`: what another one would do cannot be learned."
    elif math.isnan(part.carried):
        reason = f"What `{name}` carries is undefined: one group has no rows at the values that the other one has."
    elif math.isnan(part.gate):
        reason = f"The gap itself has no test, so no part of it is shown to go through `{name}`."
    elif untested:
        reason = f"The part of the gap that goes through `{name}` has neither interval nor test: {untested}."
    elif math.isnan(part.error):
        reason = f"The uncertainty of what `{name}` carries is undefined on these rows."
    interval = None
    if not reason:
        interval = interval_maker(part, fits)(options.level)
    return Finding(
        audit="proxy",
        measure=f"{form}:{name}",
        groups=names,
        estimate=math.nan if single else part.carried,
        interval=interval,
        pvalue=math.nan if reason else part.pvalue(options.margin or 0.0),
        margin=options.margin,
        counts=counts,
        verdict=Verdict.NOT_COMPUTABLE if reason else Verdict.INCONCLUSIVE,
        reason=reason,
    )


def interval_maker(part: FeaturePart, fits: Fits) -> Callable[[float], Interval]:
    """Return the interval of what a feature carries as a function of its coverage."""
    kind = "linearised" if fits.known else "linearised, of the surrogate"

    def at(level: float) -> Interval:
        low, high = part.interval(level)
        return Interval(low=low, high=high, level=level, kind=kind)

    return at


def constant_findings(
    pair: Pair, form: Functional, options: Options, names: Names, counts: Counts
) -> tuple[list[Finding], list[Mapping[str, Any]]]:
    """Return a finding without a value for each feature of one value, so that none is dropped in silence."""
    reason = "The feature takes one value in both groups: it carries nothing that could be measured."
    findings = [
        Finding(
            audit="proxy",
            measure=f"{form}:{name}",
            groups=names,
            estimate=math.nan,
            margin=options.margin,
            counts=counts,
            verdict=Verdict.NOT_COMPUTABLE,
            reason=reason,
        )
        for name in pair.design.constant
    ]
    return findings, [{"kind": "feature", "fact": reason, "feature": name} for name in pair.design.constant]


def not_computable(
    pair: Pair, form: Functional, options: Options, names: Names, counts: Counts, reason: str
) -> tuple[list[Finding], list[Mapping[str, Any]]]:
    """Return a finding without a value for the gap and each feature."""
    features = [*(b.name for b in pair.design.blocks if b.name not in pair.own), *pair.design.constant]
    measures = [str(form), *(f"{form}:{name}" for name in features)]
    findings = [
        Finding(
            audit="proxy",
            measure=m,
            groups=names,
            estimate=math.nan,
            margin=None if k == 0 else options.margin,
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
    part: FeaturePart,
    rank: Mapping[str, float | None],
    gap: Gap,
    form: Functional,
    options: Options,
    names: Names,
    finding: Finding,
    fits: Fits,
) -> dict[str, Any]:
    """Say what stands behind what a feature carries: its proxy score, how the groups differ in it, the test."""
    share = part.carried / gap.estimate if gap.estimate else math.nan
    tested = finding.interval is not None
    out: dict[str, Any] = {
        "kind": "feature",
        "fact": finding.reason or _feature_fact(part, gap, options, names, share),
        "feature": part.block.name,
        "carried": finding.estimate,
        "carried_share": share,
        "interval": None if finding.interval is None else finding.interval.to_dict(),
        "standard_error": part.error,
        "pvalue": finding.pvalue,
        "test": "normal test of the linearised part of the gap, and the test of the gap itself: both must reject"
        if tested
        else "",
        "carried_pvalue": replace(part, gate=0.0).pvalue(options.margin or 0.0) if tested else math.nan,
        "gap_pvalue": part.gate,
        "pvalue_floor": gap.floor,
        "n_resamples": gap.draws,
        "score": part.score,
        "score_interval": None
        if math.isnan(part.score_low)
        else {"low": part.score_low, "high": part.score_high, "level": options.level},
        "signed_score": part.signed,
        "ranking": dict(rank),
        "no_interval": no_test(form, fits),
        "association": part.association,
        "association_pvalue": part.association_pvalue,
        "levels": [dict(row) for row in part.profile],
    }
    if tested and options.margin is not None:
        out["equivalence_pvalue"] = part.equivalence(options.margin)
        out["difference_pvalue"] = part.difference()
    return out


def _feature_fact(part: FeaturePart, gap: Gap, options: Options, names: Names, share: float) -> str:
    name = part.block.name
    shown = part.gate <= options.alpha
    of_it = f" ({share:.0%} of it)" if shown and 0 < share < 10 else ""
    fact = (
        f"The feature `{name}` carries {part.carried:+.4f} of the gap of {gap.estimate:+.4f}{of_it}: the gap would be "
        f"about {gap.estimate - part.carried:+.4f} if `{name}` alone were distributed in `{names[0]}` as in "
        f"`{names[1]}`."
    )
    if not shown:
        fact += (
            " The gap itself is not shown, so no feature is named as its source; the interval allows for nothing being "
            "carried."
        )
    return fact


def pair_rows(
    blocks: Sequence[tuple[Block, Block]], scores: Scores, alone: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return the proxy score of each pair of features, and by how much it exceeds the larger of the two."""
    return [
        {
            "features": [a.name, b.name],
            "score": float(scores.toggles.score[k]),
            "beyond_the_larger": float(scores.toggles.score[k]) - max(alone[a.name], alone[b.name]),
        }
        for k, (a, b) in enumerate(blocks)
    ]


_SHOWN = (
    "feature",
    "carried",
    "carried_share",
    "interval",
    "pvalue",
    "score",
    "score_interval",
    "signed_score",
    "association",
    "association_pvalue",
    "ranking",
)


def feature_table(evidence: Sequence[Mapping[str, Any]], form: Functional) -> list[dict[str, Any]]:
    """Return one row per feature, the largest part of the gap first; `measure` names the finding of each."""
    rows = [{"measure": f"{form}:{e['feature']}", **{k: e[k] for k in _SHOWN}} for e in evidence]
    return sorted(rows, key=lambda row: -abs(row["carried"]) if row["carried"] == row["carried"] else math.inf)


def own_note(own: Sequence[str], names: Names) -> str:
    """Say which features are the group itself; empty when there are none."""
    if not own:
        return ""
    said = ", ".join(f"`{name}`" for name in own)
    return (
        f"Left out of the proxy audit of `{names[0]}` against `{names[1]}`: {said}, which "
        f"{'is the group itself' if len(own) == 1 else 'are the group itself'} and no stand-in for it."
    )


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
            out.append(
                f"The outcome model is not calibrated (slope {slope:.2f}, not 1): its error is in what features carry."
            )
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
        out.append(f"What features carry has neither interval nor test: {fits.no_interval}.")
    return out
