"""The proxy audit's findings and the sentences behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from evenhand.arrays import BoolArray
from evenhand.audits.detectable import POWER, least_by_normal
from evenhand.audits.finding import Raw, not_computable
from evenhand.audits.proxy.evidence import (
    FeatureEvidence,
    FeatureRow,
    GapEvidence,
    NamedFeature,
    PairScore,
    StatedSample,
)
from evenhand.audits.proxy.features import FeaturePart, Scores, no_test
from evenhand.audits.proxy.fits import FAITHFUL, Fits
from evenhand.audits.proxy.gap import Gap
from evenhand.audits.proxy.options import ProxySetting
from evenhand.audits.proxy.sample import Pair
from evenhand.audits.proxy.sums import PairSums
from evenhand.kernels.influence.design import Block
from evenhand.results import Finding, Verdict

Names = tuple[str, str]
Counts = Mapping[str, Mapping[str, float]]

# Rarer outcomes per coefficient than this make logistic variances unreliable.
_EVENTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One group against its reference: their records, what was asked, both names and their rows."""

    pair: Pair
    options: ProxySetting
    names: Names
    counts: Counts
    complete: bool = True  # whether the records are all rows

    @property
    def sides(self) -> list[tuple[str, BoolArray]]:
        """Both names, each with the mark of its records."""
        return list(zip(self.names, (self.pair.inside, ~self.pair.inside), strict=True))


def set_against(pair: Pair, options: ProxySetting, names: Names, *, complete: bool = True) -> Comparison:
    """Set a group against its reference, and count the rows of both and those with outcome 1."""
    asked = Comparison(pair=pair, options=options, names=names, counts={}, complete=complete)
    counts = {name: {"rows": int(pair.count[rows].sum())} for name, rows in asked.sides}
    if not np.isnan(pair.y).any():
        for name, rows in asked.sides:
            counts[name]["outcome_1"] = int(pair.count[rows & (pair.y == 1)].sum())
    return replace(asked, counts=counts)


def with_rest(asked: Comparison, rest: PairSums) -> Comparison:
    """Count the rows that are not at hand too."""
    counts = {name: dict(own) for name, own in asked.counts.items()}
    for k, own in enumerate(counts.values()):
        own["rows"] += int(rest.moments.rows[k])
        if "outcome_1" in own:
            own["outcome_1"] += int(rest.outcome_1[k])
    return replace(asked, counts=counts)


def stated_sample(asked: Comparison, rest: PairSums) -> StatedSample:
    """Say which rows what was learned comes from, and what is a sum over all rows."""
    own = {name: int(asked.pair.count[rows].sum()) for name, rows in asked.sides}
    every = {name: int(counts["rows"]) for name, counts in asked.counts.items()}
    rows = " and ".join(f"{own[name]:,} of {every[name]:,} rows of `{name}`" for name in asked.names)
    unseen = {name: int(k) for name, k in zip(asked.names, rest.strange, strict=True)}
    said = (
        f"Nuisance models, proxy scores, means by level, associations and the counterfactual population come from "
        f"{rows}, drawn by a hash of their content. The gap, the shares of values and the variances are sums over all "
        "rows; the variances know that the models saw fewer."
    )
    if any(unseen.values()):
        said += (
            f" {sum(unseen.values()):,} rows have a value that none of those has, and are left out of that feature's "
            "shares."
        )
    return StatedSample(sampled=own, rows=every, unseen=unseen, fact=said)


def findings(gap: Gap, parts: Sequence[FeaturePart], asked: Comparison, fits: Fits, evidence: GapEvidence) -> list[Raw]:
    """Return the gap, what each feature carries of it, and the features of one value, as raw findings."""
    features = [_feature_raw(part, gap, asked, fits) for part in parts]
    evidence = replace(
        evidence,
        fact=_gap_fact(gap, asked),
        planning=_planning(gap, asked.options.alpha),
        values=dict(zip(asked.names, gap.values, strict=True)),
        test=gap.method,
        pvalue_floor=gap.floor,
        n_resamples=gap.draws,
        nuisance=fits.reports,
        features=_feature_table(features),
        warnings=tuple(_warnings(asked, fits)),
    )
    why = "The feature takes one value in both groups: it carries nothing that could be measured."
    return [_gap_raw(gap, asked, evidence), *features, *_without_value(asked.pair.design.constant, asked, why)]


def _gap_raw(gap: Gap, asked: Comparison, evidence: GapEvidence) -> Raw:
    undefined, form = math.isnan(gap.estimate) or math.isnan(gap.pvalue), asked.options.form
    finding = Finding(
        audit="proxy",
        measure=str(form),
        groups=asked.names,
        estimate=gap.estimate,
        interval=None if undefined or gap.interval_at is None else gap.interval_at(asked.options.level),
        pvalue=gap.pvalue,
        counts=asked.counts,
        verdict=Verdict.NOT_COMPUTABLE if undefined else Verdict.INCONCLUSIVE,
        reason=f"The {form} of a group is undefined: no rows in its denominator." if undefined else "",
    )
    return Raw(finding=finding, evidence=evidence, interval_at=gap.interval_at)


def _feature_raw(part: FeaturePart, gap: Gap, asked: Comparison, fits: Fits) -> Raw:
    """Return what one feature carries as a raw finding, with its proxy score and how the groups differ in it."""
    name, margin = part.block.name, asked.options.margin
    untested = no_test(asked.options.form, fits)
    reason = _unknown(part, asked.names, untested)
    interval = None if reason else part.interval(asked.options.level)
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
        score_interval=part.score_interval,
        signed_score=part.signed,
        ranking=part.ranking,
        no_interval=untested,
        association=part.association,
        association_pvalue=part.association_pvalue,
        levels=part.levels,
        equivalence_pvalue=None if reason or margin is None else part.equivalence(margin),
        difference_pvalue=None if reason or margin is None else part.pvalue(0.0),
    )
    finding = Finding(
        audit="proxy",
        measure=f"{asked.options.form}:{name}",
        groups=asked.names,
        estimate=carried,
        interval=interval,
        pvalue=pvalue,
        margin=margin,
        counts=asked.counts,
        verdict=Verdict.NOT_COMPUTABLE if reason else Verdict.INCONCLUSIVE,
        reason=reason,
    )
    return Raw(finding=finding, evidence=evidence, interval_at=part.interval)


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


def _without_value(features: Iterable[str], asked: Comparison, reason: str) -> list[Raw]:
    """Return a finding without a value for each of some features, so that none is dropped in silence."""
    return [
        not_computable(
            "proxy",
            f"{asked.options.form}:{name}",
            asked.names,
            reason,
            counts=asked.counts,
            margin=asked.options.margin,
            evidence=NamedFeature(kind="feature", fact=reason, feature=name),
        )
        for name in features
    ]


def nothing_known(asked: Comparison) -> list[Raw]:
    """Return a finding without a value for the gap and each feature where there are too few rows; else nothing."""
    reason = _too_few(asked)
    if not reason:
        return []
    features = [*(b.name for b in asked.pair.candidates), *asked.pair.design.constant]
    evidence = GapEvidence(kind="gap", fact=reason)
    gap = not_computable("proxy", str(asked.options.form), asked.names, reason, counts=asked.counts, evidence=evidence)
    return [gap, *_without_value(features, asked, reason)]


def _too_few(asked: Comparison) -> str:
    """Say why nothing can be computed, or return an empty string."""
    pair, form = asked.pair, asked.options.form
    terms = [name for name, _ in form.terms]
    for name, rows in asked.sides:
        n = int(pair.count[rows].sum())
        if n < 2:
            return f"Group `{name}` has {n} row{'s' * (n != 1)}; at least 2 are needed."
        if form.uses_eta and (name == asked.names[0] or form.kinked):
            for value in (0, 1):
                k = int(pair.count[rows & (pair.y == value)].sum())
                if k < 2:
                    among = "" if asked.complete else " among those that were drawn"
                    return (
                        f"Group `{name}` has {k} row{'s' * (k != 1)} with outcome {value}{among}; at least 2 are "
                        "needed to learn P(Y|X,S)."
                    )
        if "da" in terms:
            w = pair.weight[rows]
            mean = float(w @ pair.h[rows] / w.sum())
            if not 0 < mean < 1:
                return f"All predictions of group `{name}` are {mean:g}: the divergence is not finite."
    for name, rows in asked.sides:
        if "fdr" in terms and not float(pair.weight[rows] @ pair.h[rows]) > 0:
            return f"Group `{name}` has no rows with decision 1: its fdr is undefined."
    return ""


def _gap_fact(gap: Gap, asked: Comparison) -> str:
    """State the gap; of scores it is not what decisions would give."""
    form, names = asked.options.form, asked.names
    if str(form) == "da" and form.penalty == 0:
        return (
            f"The mean prediction is {gap.values[0]:.4f} in `{names[0]}` and {gap.values[1]:.4f} in "
            f"`{names[1]}`: a divergence of {gap.estimate:.4f}."
        )
    of = ", taken on scores and not on decisions," if asked.options.soft else ""
    return (
        f"The {form}{of} is {gap.values[0]:.4f} in `{names[0]}` and {gap.values[1]:.4f} in `{names[1]}`: "
        f"a difference of {gap.estimate:+.4f}."
    )


def _planning(gap: Gap, alpha: float) -> str:
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


def _feature_table(features: Sequence[Raw]) -> tuple[FeatureRow, ...]:
    """Return one row per feature, the largest part of the gap first."""
    own = [f.name for f in fields(FeatureRow) if f.name != "measure"]
    rows = [FeatureRow(measure=r.finding.measure, **{k: getattr(r.evidence, k) for k in own}) for r in features]
    return tuple(sorted(rows, key=lambda row: -abs(row.carried) if row.carried == row.carried else math.inf))


def own_note(asked: Comparison) -> str:
    """Say which features are the group itself; empty when there are none."""
    own, names = asked.pair.own, asked.names
    if not own:
        return ""
    said = ", ".join(f"`{name}`" for name in own)
    return (
        f"Left out of the proxy audit of `{names[0]}` against `{names[1]}`: {said}, which "
        f"{'is the group itself' if len(own) == 1 else 'are the group itself'} and no stand-in for it."
    )


def _warnings(asked: Comparison, fits: Fits) -> list[str]:
    """Say where the method is known to be less reliable and the data are there."""
    out, pair, form = [], asked.pair, asked.options.form
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
    if form.kinked:
        out.append(
            "Calibration error has a kink: where the model is well calibrated, its scores are mostly noise, and only "
            "bounded from above."
        )
    surrogate = fits.reports.get("surrogate")
    if surrogate is not None and surrogate["r_squared"] < FAITHFUL:
        out.append(
            f"The surrogate explains {surrogate['r_squared']:.0%} of the scores' variance: pass `model=` for the "
            "model's own answer at changed features."
        )
    if fits.no_interval:
        out.append(f"What features carry has neither interval nor test: {fits.no_interval}.")
    return out
