"""The proxy audit's findings and the sentences behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from evenhand.audits.detectable import POWER, least_by_normal
from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.proxy.evidence import (
    FeatureEvidence,
    FeatureRow,
    GapEvidence,
    LevelInfluence,
    NamedFeature,
    PairScore,
    Rank,
)
from evenhand.audits.proxy.features import FeaturePart, no_test
from evenhand.audits.proxy.fits import FAITHFUL, Fits
from evenhand.audits.proxy.gap import Gap
from evenhand.audits.proxy.sample import Pair
from evenhand.audits.proxy.scores import Scores
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Functional
from evenhand.results import Finding, Interval, Verdict
from evenhand.results.evidence import Ends

Names = tuple[str, str]
Counts = Mapping[str, Mapping[str, float]]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One group against its reference: what is compared, what was asked, both names and their rows."""

    form: Functional
    options: Options
    names: Names
    counts: Counts


def gap_raw(gap: Gap, asked: Comparison, evidence: GapEvidence) -> Raw:
    """Return the gap as a raw finding."""
    undefined = math.isnan(gap.estimate) or math.isnan(gap.pvalue)
    form = asked.form
    finding = Finding(
        audit="proxy",
        measure=str(form),
        groups=asked.names,
        estimate=gap.estimate,
        interval=None if undefined else gap.interval,
        pvalue=gap.pvalue,
        counts=asked.counts,
        verdict=Verdict.NOT_COMPUTABLE if undefined else Verdict.INCONCLUSIVE,
        reason=f"The {form} of a group is undefined: no rows in its denominator." if undefined else "",
    )
    return Raw(finding=finding, evidence=evidence, interval_at=gap.interval_at)


def feature_raw(part: FeaturePart, rank: Mapping[str, float | None], gap: Gap, asked: Comparison, fits: Fits) -> Raw:
    """Return what one feature carries as a raw finding, with its proxy score and how the groups differ in it."""
    name, margin = part.block.name, asked.options.margin
    untested = no_test(asked.form, fits)
    reason = _unknown(part, asked.names, untested)
    interval_at = interval_maker(part, fits)
    interval = None if reason else interval_at(asked.options.level)
    carried = math.nan if len(part.block.levels) == 1 else part.carried
    share = part.carried / gap.estimate if gap.estimate else math.nan
    pvalue = math.nan if reason else part.pvalue(margin or 0.0)
    evidence = FeatureEvidence(
        kind="feature",
        fact=reason or _feature_fact(part, gap, asked, share),
        feature=name,
        carried=carried,
        carried_share=share,
        interval=interval,
        standard_error=part.error,
        pvalue=pvalue,
        test=""
        if reason
        else "normal test of the linearised part of the gap, and the test of the gap itself: both must reject",
        carried_pvalue=math.nan if reason else replace(part, gate=0.0).pvalue(margin or 0.0),
        gap_pvalue=part.gate,
        pvalue_floor=gap.floor,
        n_resamples=gap.draws,
        score=part.score,
        score_interval=None
        if math.isnan(part.score_low)
        else Ends(low=part.score_low, high=part.score_high, level=asked.options.level),
        signed_score=part.signed,
        ranking=Rank.from_dict(rank),
        no_interval=untested,
        association=part.association,
        association_pvalue=part.association_pvalue,
        levels=tuple(LevelInfluence(**row) for row in part.profile),
        equivalence_pvalue=None if reason or margin is None else part.equivalence(margin),
        difference_pvalue=None if reason or margin is None else part.difference(),
    )
    finding = Finding(
        audit="proxy",
        measure=f"{asked.form}:{name}",
        groups=asked.names,
        estimate=carried,
        interval=interval,
        pvalue=pvalue,
        margin=margin,
        counts=asked.counts,
        verdict=Verdict.NOT_COMPUTABLE if reason else Verdict.INCONCLUSIVE,
        reason=reason,
    )
    return Raw(finding=finding, evidence=evidence, interval_at=interval_at)


def _unknown(part: FeaturePart, names: Names, untested: str) -> str:
    """Say why nothing is shown about what a feature carries; empty where it is tested."""
    name = part.block.name
    if len(part.block.levels) == 1:
        return f"All of `{names[0]}` have one value of `{name}`: what another one would do cannot be learned."
    if math.isnan(part.carried):
        return f"What `{name}` carries is undefined: one group has no rows at the values that the other one has."
    if math.isnan(part.gate):
        return f"The gap itself has no test, so no part of it is shown to go through `{name}`."
    if untested:
        return f"The part of the gap that goes through `{name}` has neither interval nor test: {untested}."
    if math.isnan(part.error):
        return f"The uncertainty of what `{name}` carries is undefined on these rows."
    return ""


def interval_maker(part: FeaturePart, fits: Fits) -> Callable[[float], Interval]:
    """Return the interval of what a feature carries as a function of its coverage."""
    kind = "linearised" if fits.known else "linearised, of the surrogate"

    def at(level: float) -> Interval:
        low, high = part.interval(level)
        return Interval(low=low, high=high, level=level, kind=kind)

    return at


def without_value(features: Iterable[str], asked: Comparison, reason: str) -> list[Raw]:
    """Return a finding without a value for each of some features, so that none is dropped in silence."""
    return [
        not_computable(
            "proxy",
            f"{asked.form}:{name}",
            asked.names,
            reason,
            counts=asked.counts,
            margin=asked.options.margin,
            evidence=NamedFeature(kind="feature", fact=reason, feature=name),
        )
        for name in features
    ]


def nothing_known(pair: Pair, asked: Comparison, reason: str) -> list[Raw]:
    """Return a finding without a value for the gap and each feature."""
    features = [*(b.name for b in pair.design.blocks if b.name not in pair.own), *pair.design.constant]
    evidence = GapEvidence(kind="gap", fact=reason)
    gap = not_computable("proxy", str(asked.form), asked.names, reason, counts=asked.counts, evidence=evidence)
    return [gap, *without_value(features, asked, reason)]


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
    least = least_by_normal(gap.standard_error, alpha, two_sided=True)
    return f"With these rows a difference of {least:.2g} would have been shown with probability {POWER:g}."


def _feature_fact(part: FeaturePart, gap: Gap, asked: Comparison, share: float) -> str:
    name, names = part.block.name, asked.names
    shown = part.gate <= asked.options.alpha
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
) -> tuple[PairScore, ...]:
    """Return the proxy score of each pair of features, and by how much it exceeds the larger of the two."""
    return tuple(
        PairScore(
            features=(a.name, b.name),
            score=float(scores.toggles.score[k]),
            beyond_the_larger=float(scores.toggles.score[k]) - max(alone[a.name], alone[b.name]),
        )
        for k, (a, b) in enumerate(blocks)
    )


def feature_table(features: Sequence[Raw]) -> tuple[FeatureRow, ...]:
    """Return one row per feature, the largest part of the gap first."""
    own = [f.name for f in fields(FeatureRow) if f.name != "measure"]
    rows = [FeatureRow(measure=r.finding.measure, **{k: getattr(r.evidence, k) for k in own}) for r in features]
    return tuple(sorted(rows, key=lambda row: -abs(row.carried) if row.carried == row.carried else math.inf))


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
