"""Proxy audit: which features carry the disparity, and what population would show none.

Hypotheses
    For the gap, H0: group and reference have one value of the measure. For each feature, H0: there is no gap, or
    at most the margin of it goes through the feature.
Statistic
    What a feature carries: by how much the gap would be smaller if the feature alone were distributed as in the
    reference; see `evenhand.audits.proxy.features`. Beside it, in the evidence, the influence function psi(x) of the
    measure (how the gap changes when the group gets a few more people like x) and the feature's proxy score: the
    mean change of psi when the feature runs through its values and the others stay.
Reference distribution
    The gap: exact for rates of decisions, Welch for means of scores. What features carry: the linearised sampling
    law with the error of the fitted P(Y|X,S). A feature is named only where the gap is shown too: its p-value is
    the larger of the two (intersection-union).
When it fails
    Proposition 5: the influence function is as wrong as the nuisance models; look at their calibration. An
    outcome model that misses something lends it to features that go along, and a bystander may be named: numbers
    may bend, and products of two features that a score test finds missing are added, but not more. Without a
    model, toggled predictions come from a surrogate learned from the scores, whose fit is shown. Toggling
    leaves the data when features are tied together.

Symbols
    ================  ==========================  =================
    code              [wang2019]                  shape
    ================  ==========================  =================
    h                 P(Yhat=1 | x)               (records,)
    eta               P(Y=1 | x, S=0)             (records,)
    log_ratio         log P(x|S=0) / P(x|S=1)     (records,)
    psi               psi, eq. (8)-(12)           (records,)
    score             gamma, definition 5         one per feature
    carried           (not in the paper)          one per feature
    path              algorithm 1                 steps
    ================  ==========================  =================
    S = 0 is the group, S = 1 its reference; values are group minus reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.options import record, with_options
from evenhand.audits.proxy.evidence import GapEvidence, PairScore
from evenhand.audits.proxy.features import measure_features
from evenhand.audits.proxy.fits import Asked, Nuisance, learn, sample_of
from evenhand.audits.proxy.gap import gap_of
from evenhand.audits.proxy.inputs import Predictions, prepare
from evenhand.audits.proxy.options import ProxyOptions, ProxySetting
from evenhand.audits.proxy.sample import Pair, make_pair
from evenhand.audits.proxy.scores import ranking, score_blocks
from evenhand.audits.proxy.weights import CounterfactualWeights, describe, find_weights
from evenhand.audits.proxy.words import (
    Comparison,
    counts_of,
    feature_raw,
    feature_table,
    gap_fact,
    gap_raw,
    nothing_known,
    own_note,
    pair_rows,
    planning,
    too_few,
    warnings_of,
    without_value,
)
from evenhand.audits.reference import references
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.influence.descent import Pace
from evenhand.kernels.influence.design import join
from evenhand.kernels.influence.functionals import centre
from evenhand.kernels.shared.seeds import stream
from evenhand.results import AuditResult


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProxyResult(AuditResult):
    """The findings of a proxy audit, and the weights of each group's counterfactual population.

    Parameters
    ----------
    weights : mapping of str to CounterfactualWeights
        By group, such as ``"sex=Female"``. Not part of `to_dict`.
    """

    weights: Mapping[str, CounterfactualWeights]


@with_options(ProxyOptions)
def audit_proxy(data: AuditData, asked: ProxyOptions) -> ProxyResult:
    """Find the features that carry a disparity, and the population that would show none.

    Parameters
    ----------
    data : AuditData
        With features, and scores or decisions (or a `model`).

    Returns
    -------
    ProxyResult
        For each group: the gap, then one finding per feature: the part of the gap that it carries. Features that
        are the group itself are left out and noted.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.intake import AuditData
    >>> rng = np.random.default_rng(0)
    >>> s = rng.integers(0, 2, 2000)
    >>> x = (rng.random(2000) < np.where(s == 1, 0.7, 0.3)).astype(float)
    >>> noise = rng.integers(0, 2, 2000).astype(float)
    >>> p = np.where(x == 1, 0.6, 0.2)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> data = AuditData.from_arrays(outcome=y, score=p, groups={"g": s}, features={"x": x, "noise": noise})
    >>> [(f.measure, str(f.verdict)) for f in audit_proxy(data, measure="sp", reference="0")]
    [('sp', 'disparity'), ('sp:x', 'disparity'), ('sp:noise', 'equivalent')]
    """
    setting, predictions = prepare(data, asked)
    raw: list[Raw] = []
    weights: dict[str, CounterfactualWeights] = {}
    notes = list(data.notes)
    chosen = data.attributes if asked.attribute is None else (data.attribute(asked.attribute),)
    labels = references(data, asked.reference, chosen)
    for one in chosen:
        base = one.labels.index(labels[one.name])
        for code in range(len(one.labels)):
            if code == base:
                continue
            setting.say(f"proxy: {setting.form} of {one.group_name(code)}")
            block = _audit_group(data, one, code, base, setting, predictions)
            raw += block.raw
            if block.weights is not None:
                weights[one.group_name(code)] = block.weights
            notes += [block.note] * bool(block.note)
    return ProxyResult(
        audit="proxy",
        **columns_of(raw),
        options=record(setting, measure=str(setting.form), nuisance=setting.learner),
        notes=tuple(notes),
        weights=weights,
    )


class Block(NamedTuple):
    """The answer about one group."""

    raw: list[Raw]
    weights: CounterfactualWeights | None
    note: str


def _audit_group(
    data: AuditData, attribute: Attribute, code: int, base: int, setting: ProxySetting, predictions: Predictions
) -> Block:
    """Ask one group against its reference: the gap, the features, the counterfactual, and a note."""
    form, say, scorer = setting.form, setting.say, predictions.scorer
    names = (attribute.group_name(code), attribute.group_name(base))
    pair = make_pair(data, attribute, code, base, predictions.h, predictions.score, setting)
    note = own_note(pair.own, names)
    asked = Comparison(form=form, options=setting, names=names, counts=counts_of(pair, names))
    reason = too_few(pair, form, names)
    draws = Draws(seed=setting.seed, name=f"proxy/{form}", n_resamples=setting.n_resamples, workers=setting.workers)
    weighted = data.weight is not None
    if reason:
        return Block(nothing_known(pair, asked, reason), None, note)
    averaged = _averaged(pair, setting.max_rows)
    say(f"proxy: nuisance models of {names[0]}")
    how = Nuisance(learner=setting.nuisance, l2=setting.l2, interactions=setting.interactions)
    fits = learn(pair, form, how, scorer, data.features)
    gap = gap_of(pair, fits, form, level=setting.level, draws=draws, weighted=weighted)
    say(f"proxy: features of {names[0]}")
    at = centre(form, sample_of(pair, fits, form))
    blocks = pair.candidates
    if isinstance(fits.sources.h, Asked):
        fits.sources.h.ahead((*blocks, *pair.fine_candidates), averaged)
    scores = score_blocks(blocks, pair, fits, at, averaged)
    parts = measure_features(pair, fits, at, scores, gap, setting.level)
    ranks = ranking(scores, setting.seed, setting.level, firm=not fits.no_interval)
    say(f"proxy: counterfactual population of {names[0]}")
    weights = find_weights(
        pair,
        fits,
        form,
        names=(attribute.name, attribute.labels[code], attribute.labels[base]),
        scorer=scorer,
        pace=Pace(
            step=setting.step, max_steps=setting.max_steps, tolerance=setting.tolerance, patience=setting.patience
        ),
    )
    features = [feature_raw(p, rank, gap, asked, fits) for p, rank in zip(parts, ranks, strict=True)]
    joined: tuple[PairScore, ...] = ()
    if setting.pairs:
        say(f"proxy: pairs of features of {names[0]}")
        two = list(combinations(blocks, 2))
        both = score_blocks([join(a, b) for a, b in two], pair, fits, at, averaged)
        joined = pair_rows(two, both, {p.block.name: p.score for p in parts})
    evidence = GapEvidence(
        kind="gap",
        fact=gap_fact(gap, form, names, soft=setting.soft),
        planning=planning(gap, setting.alpha),
        values={names[0]: gap.values[0], names[1]: gap.values[1]},
        test=gap.method,
        pvalue_floor=gap.floor,
        n_resamples=gap.draws,
        nuisance=fits.reports,
        features=feature_table(features),
        pairs=joined,
        counterfactual=describe(pair, fits, weights, data.features),
        records_averaged=len(averaged),
        warnings=tuple(warnings_of(pair, fits, form)),
    )
    why = "The feature takes one value in both groups: it carries nothing that could be measured."
    still = without_value(pair.design.constant, asked, why)
    return Block([gap_raw(gap, asked, evidence), *features, *still], weights, note)


def _averaged(pair: Pair, max_rows: int) -> NDArray[np.int64]:
    """Choose the records of the group that scores average over: all, or a part, the same for any seed."""
    rows = np.flatnonzero(pair.inside)
    if len(rows) <= max_rows:
        return rows
    return np.sort(stream(0, "proxy/rows").permutation(rows)[:max_rows])
