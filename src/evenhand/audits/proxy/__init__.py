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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.needs import check_independent
from evenhand.audits.options import complete, record, with_options
from evenhand.audits.proxy.evidence import GapEvidence, PairScore
from evenhand.audits.proxy.features import measure_features, score_blocks
from evenhand.audits.proxy.fits import Asked, Fits, learn
from evenhand.audits.proxy.gap import gap_of, gap_rows
from evenhand.audits.proxy.options import ASKED, AVERAGED, ProxyOptions, ProxySetting
from evenhand.audits.proxy.sample import Pair, Predicted, make_pair
from evenhand.audits.proxy.stated import at_hand
from evenhand.audits.proxy.sums import Learnt, PairSums, Predictor, RestSums, moments_of
from evenhand.audits.proxy.weights import CounterfactualWeights, describe, find_weights
from evenhand.audits.proxy.words import (
    Comparison,
    findings,
    nothing_known,
    own_note,
    pair_rows,
    set_against,
    stated_sample,
    with_rest,
)
from evenhand.audits.reference import references
from evenhand.errors import DataError
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.influence.design import join
from evenhand.kernels.influence.functionals import Functional, centre_at, functional
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.models import audited_model
from evenhand.models.leaf_lines import scores_along
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
    check_independent(data, "The proxy audit")
    setting, people, predictor = _prepare(data, asked)
    chosen = data.attributes if asked.attribute is None else (data.attribute(asked.attribute),)
    labels = references(data, asked.reference, chosen)
    places = [
        (one, code, one.labels.index(labels[one.name]))
        for one in chosen
        for code, label in enumerate(one.labels)
        if label != labels[one.name]
    ]
    raw: list[Raw] = []
    weights: dict[str, CounterfactualWeights] = {}
    notes = list(data.notes)
    for group, rest in _with_rest(people, predictor, (_learn(people, p, setting, predictor) for p in places)):
        some, own, own_notes = _audit_group(group, rest, people, setting, predictor)
        raw += some
        weights |= {} if own is None else {group.asked.names[0]: own}
        notes += own_notes
    return ProxyResult(
        audit="proxy",
        **columns_of(raw),
        options=record(setting, measure=str(setting.form), nuisance=setting.learner),
        notes=tuple(notes),
        weights=weights,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """One group against its reference: the rows at hand and what was learned on them."""

    attribute: Attribute
    code: int
    base: int
    asked: Comparison
    refused: list[Raw]  # findings without a value where there are too few rows to learn
    fits: Fits | None  # None where refused

    def learnt(self, form: Functional) -> Learnt:
        """Return what new rows need to be added up."""
        assert self.fits is not None
        return Learnt.of(self.asked.pair, self.fits, form, (self.attribute.name, self.code, self.base))


def _learn(
    people: Predicted,
    place: tuple[Attribute, int, int],
    setting: ProxySetting,
    predictor: Predictor,
    names: tuple[str, str] | None = None,
) -> _Group:
    """Set one group against its reference and learn what psi needs on the rows at hand."""
    attribute, code, base = place
    names = names or (attribute.group_name(code), attribute.group_name(base))
    setting.say(f"proxy: {setting.form} of {names[0]}")
    pair = make_pair(people, attribute, code, base, setting)
    asked = set_against(pair, setting, names, complete=people.at_hand.complete)
    refused, fits = nothing_known(asked), None
    if not refused:
        setting.say(f"proxy: nuisance models of {names[0]}")
        fits = learn(pair, setting, predictor.scorer, predictor.along, people.at_hand.data.features)
    return _Group(attribute=attribute, code=code, base=base, asked=asked, refused=refused, fits=fits)


def _with_rest(
    people: Predicted, predictor: Predictor, groups: Iterable[_Group]
) -> Iterator[tuple[_Group, PairSums | None]]:
    """Pass groups on with sums over the rows that are not at hand, which are added up in one pass for all groups."""
    limits, batches = people.at_hand.limits, people.at_hand.batches
    if batches is None or limits is None or people.at_hand.complete:
        yield from ((group, None) for group in groups)
        return
    every = list(groups)
    learnt = [group.learnt(group.asked.options.form) for group in every if group.fits is not None]
    sums = iter(batches.fold(partial(RestSums, learnt, limits, predictor)).pairs)
    yield from ((group, None if group.fits is None else next(sums)) for group in every)


def _audit_group(
    group: _Group, rest: PairSums | None, people: Predicted, setting: ProxySetting, predictor: Predictor
) -> tuple[list[Raw], CounterfactualWeights | None, list[str]]:
    """Ask one group against its reference: the gap, the features, the counterfactual, and notes."""
    data, asked, fits = people.at_hand.data, group.asked, group.fits
    notes = [own_note(asked)] * bool(own_note(asked))
    if fits is None:
        return group.refused, None, notes
    form, say, pair, names = setting.form, setting.say, asked.pair, asked.names
    sample = None
    if rest is not None:
        asked = with_rest(asked, rest)
        sample = stated_sample(asked, rest)
        notes.append(sample.fact)
    draws = Draws(seed=setting.seed, name=f"proxy/{form}", n_resamples=setting.n_resamples)
    averaged = _averaged(pair, setting.max_rows)
    rows = gap_rows(pair, fits, form, None if rest is None else rest.gap)
    gap = gap_of(rows, draws, weighted=data.weight is not None)
    say(f"proxy: features of {names[0]}")
    sums = moments_of(group.learnt(form), pair, fits, rest)
    at = centre_at(form, sums.means(0), sums.means(1), rows.every.penalty)
    blocks = pair.candidates
    if isinstance(fits.sources.h, Asked):
        fits.sources.h.ahead((*blocks, *pair.fine_candidates), averaged)
    scores = score_blocks(blocks, pair, fits, at, averaged, sums)
    parts = measure_features(pair, fits, at, scores, gap, setting, sums)
    say(f"proxy: counterfactual population of {names[0]}")
    attribute = group.attribute
    labels = (attribute.name, attribute.labels[group.code], attribute.labels[group.base])
    weights = find_weights(pair, fits, setting, predictor.scorer, labels)
    joined: tuple[PairScore, ...] = ()
    if setting.pairs:
        say(f"proxy: pairs of features of {names[0]}")
        two = list(combinations(blocks, 2))
        both = score_blocks([join(a, b) for a, b in two], pair, fits, at, averaged, sums)
        joined = pair_rows(two, both, {p.block.name: p.score for p in parts})
    evidence = GapEvidence(
        kind="gap",
        pairs=joined,
        counterfactual=describe(pair, fits, weights, data.features),
        records_averaged=len(averaged),
        sample=sample,
    )
    return findings(gap, parts, asked, fits, evidence), weights, notes


def weights_of(data: AuditData, asked: ProxyOptions, group: str, reference: str) -> CounterfactualWeights | str:
    """Return the weights of one group's counterfactual population alone, or why there are none.

    Parameters
    ----------
    data : AuditData
        With scores, outcome and features, and one attribute.
    asked : ProxyOptions
        As for `audit_proxy`.
    group, reference : str
        Labels of the attribute.

    Returns
    -------
    CounterfactualWeights or str
    """
    setting, people, predictor = _prepare(data, asked)
    attribute = data.attributes[0]
    group_place = (attribute, attribute.labels.index(group), attribute.labels.index(reference))
    one = _learn(people, group_place, setting, predictor, (group, reference))
    if one.fits is None:
        return one.refused[0].finding.reason
    return find_weights(one.asked.pair, one.fits, setting, predictor.scorer, (attribute.name, group, reference))


def _averaged(pair: Pair, max_rows: int) -> NDArray[np.int64]:
    """Choose the records of the group that scores average over: all, or a part, the same for any seed."""
    rows = np.flatnonzero(pair.inside)
    if len(rows) <= max_rows:
        return rows
    return np.sort(stream(0, "proxy/rows").permutation(rows)[:max_rows])


def _prepare(data: AuditData, asked: ProxyOptions) -> tuple[ProxySetting, Predicted, Predictor]:
    """Check the request against the data and predict once; the only place that raises errors about them."""
    form = functional(asked.measure, asked.alignment_penalty)
    if not (data.features if data.batches is None else data.batches.features):
        raise DataError("The proxy audit needs the model's features and none were given. Name them with `features=`.")
    if not data.attributes:
        raise DataError("No group column was given. Name at least one in `groups=`.")
    if form.uses_eta and (data.outcome is None or data.outcome_kind != "binary"):
        raise DataError(f"Measure `{form}` needs an outcome with two values. Name it with `outcome=`, or use `sp`.")
    predictor = _predictor(data, asked.model, asked.soft)
    people = at_hand(data, asked.sample_rows, asked=predictor.scorer is not None)
    h = predictor.of(people.data)
    is_soft = predictor.column == "score" or (predictor.scorer is not None and bool(np.any((h != 0) & (h != 1))))
    score = people.data.score if predictor.column == "decision" and data.score_kind == "probability" else None
    setting = complete(
        ProxySetting,
        asked,
        form=form,
        alignment_penalty=form.penalty,
        soft=is_soft,
        blocks={k: tuple(v) for k, v in (asked.blocks or {}).items()},
        categorical=tuple(asked.categorical),
        margin=asked.margin or None,
        max_rows=asked.max_rows or (AVERAGED if predictor.scorer is None else ASKED),
        level=asked.coverage,
        seed=seed_of(asked.rng),
    )
    return setting, Predicted(at_hand=people, h=h, score=h if score is None else score), predictor


def _predictor(data: AuditData, model: Any, soft: bool | None) -> Predictor:
    """Say where predictions come from: the model, scores or decisions."""
    if model is not None:
        asked = audited_model(model, data)
        if soft is True and not asked.probability:
            raise DataError(f"`soft=True` needs probabilities, and the model `{asked.name}` gives none.")
        if soft is not False and asked.probability:
            told = asked.seen is not None and asked.seen.score is data.score and data.score is not None
            return Predictor(scorer=asked.score, along=partial(scores_along, asked), column="score" if told else "")
        return Predictor(scorer=asked.decide)
    if soft is not False and data.score is not None and data.score_kind == "probability":
        return Predictor(scorer=None, column="score")
    if soft is True:
        raise DataError("`soft=True` needs scores between 0 and 1 or a `model=`. Name the column with `score=`.")
    if data.decision is None:
        raise DataError("The proxy audit needs decisions, scores between 0 and 1, or a `model=`; none were given.")
    return Predictor(scorer=None, column="decision")
