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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.finding import Raw, columns_of
from evenhand.audits.proxy.evidence import GapEvidence, PairScore
from evenhand.audits.proxy.features import candidates, measure_features
from evenhand.audits.proxy.fits import Asked, Scorer, centre_of, learn
from evenhand.audits.proxy.gap import gap_of
from evenhand.audits.proxy.inputs import prepare, reference_of
from evenhand.audits.proxy.options import ProxyOptions, check
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
from evenhand.audits.verdict import settle
from evenhand.errors import UsageError
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.influence.design import join
from evenhand.kernels.influence.functionals import Functional, functional
from evenhand.kernels.shared.seeds import RngLike, seed_of, stream
from evenhand.results import AuditResult

FloatArray = NDArray[np.float64]

# A part of the gap up to this is negligible unless the user says otherwise: one point of a rate.
MARGIN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProxyResult(AuditResult):
    """The findings of a proxy audit, and the weights of each group's counterfactual population.

    Parameters
    ----------
    weights : mapping of str to CounterfactualWeights
        By group, such as ``"sex=Female"``. Not part of `to_dict`.
    """

    weights: Mapping[str, CounterfactualWeights]


def audit_proxy(
    data: AuditData,
    *,
    measure: str | Mapping[str, float] = "fpr",
    attribute: str | None = None,
    reference: Mapping[str, str] | str | None = None,
    model: Any = None,
    nuisance: Any = "logistic",
    soft: bool | None = None,
    pairs: bool = False,
    blocks: Mapping[str, Sequence[str]] | None = None,
    categorical: Sequence[str] = (),
    alignment_penalty: float = 0.0,
    margin: float | None = MARGIN,
    alpha: float = 0.05,
    level: float | None = None,
    correction: str = "holm",
    folds: int = 5,
    l2: float = 1.0,
    interactions: bool = True,
    max_rows: int = 50_000,
    step: float = 0.1,
    max_steps: int = 200,
    tolerance: float = 1e-3,
    patience: int = 6,
    n_resamples: int = 9999,
    progress: Callable[[str], None] | None = None,
    rng: RngLike = 0,
    workers: int = 1,
) -> ProxyResult:
    """Find the features that carry a disparity, and the population that would show none.

    Parameters
    ----------
    data : AuditData
        With features, and scores or decisions (or a `model`).
    measure : str or mapping of str to float
        ``fpr``, ``fnr``, ``fdr``, ``sp`` (statistical parity), ``accuracy``, ``cal`` (calibration error),
        ``da`` (distribution alignment), or a combination such as ``{"fpr": 0.5, "fnr": 0.5}``.
    attribute : str, optional
        The attribute audited; by default all.
    reference : mapping of str to str, or str, optional
        The group the others are compared with; by default the largest.
    model : object with predict_proba or predict, or callable, optional
        The audited model, asked for predictions at changed features. Without it they come from a surrogate
        learned from the scores.
    nuisance : {"logistic", "boosting"} or estimator
        Learner of P(Y|X,S) and P(S|X).
    soft : bool, optional
        Audit scores (True) or decisions (False); by default scores where they are probabilities.
    pairs : bool
        Score pairs of features too; in the evidence of the gap.
    blocks : mapping of str to sequence of str, optional
        Columns that are one feature, such as the dummies of a one-hot coding.
    categorical : sequence of str
        Numeric columns that are codes of categories.
    alignment_penalty : float
        Lambda of ``da``.
    margin : float or None
        The largest part of the gap that counts as negligible: a feature is a `disparity` when it is shown to carry
        more, and `equivalent` when it is shown to carry less. With None or 0 any part counts. The gap itself is
        tested for any difference.
    alpha : float
        Error rate over all findings.
    level : float, optional
        Coverage of each interval, ``1 - alpha`` by default.
    correction : {"holm", "bonferroni", "bh", "none"}
        How p-values are adjusted over the findings.
    folds : int
        Folds for cross-fitting; the first also judges the descent.
    l2 : float
        Penalty of the logistic nuisance models.
    interactions : bool
        Give the logistic outcome model the products of features it is shown to miss.
    max_rows : int
        Records a proxy score averages over; the interval knows about it.
    step, max_steps, tolerance, patience
        The descent; see `evenhand.kernels.influence.descent.descend`.
    n_resamples : int
        Random permutations behind the gap's p-value, where it is neither exact nor by a limit law; a small one gets
        more.
    progress : callable, optional
        Called with a sentence before each part of the work.
    rng : int, Generator or None
        Seed.
    workers : int
        Threads; the answer does not depend on it.

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
    form = functional(measure, alignment_penalty)
    seed = seed_of(rng)
    if isinstance(workers, bool) or int(workers) != workers or workers < 1:
        raise UsageError(f"`workers` must be a whole number of at least 1; got {workers}.")
    checked = check(
        ProxyOptions(
            measure=str(form),
            alignment_penalty=form.penalty,
            nuisance=nuisance if isinstance(nuisance, str) else type(nuisance).__name__,
            soft=soft is not False,
            pairs=pairs,
            blocks={k: tuple(v) for k, v in (blocks or {}).items()},
            categorical=tuple(categorical),
            folds=folds,
            l2=l2,
            interactions=interactions,
            max_rows=max_rows,
            step=step,
            max_steps=max_steps,
            tolerance=tolerance,
            patience=patience,
            n_resamples=n_resamples,
            margin=margin or None,
            alpha=alpha,
            level=1 - alpha if level is None else level,
            correction=correction,
        )
    )
    options, scorer, h, score = prepare(data, form, model, soft, checked)
    say = progress or _silent
    raw: list[Raw] = []
    weights: dict[str, CounterfactualWeights] = {}
    notes = list(data.notes)
    chosen = data.attributes if attribute is None else (data.attribute(attribute),)
    for one in chosen:
        base = reference_of(data, one, reference, len(chosen))
        for code in range(len(one.labels)):
            if code == base:
                continue
            say(f"proxy: {options.measure} of {one.group_name(code)}")
            block = _audit_group(data, one, code, base, form, options, scorer, h, score, nuisance, seed, workers, say)
            raw += block.raw
            if block.weights is not None:
                weights[one.group_name(code)] = block.weights
            notes += [block.note] * bool(block.note)
    result = ProxyResult(
        audit="proxy",
        **columns_of(raw),
        options={**asdict(options), "seed": seed},
        notes=tuple(notes),
        weights=weights,
    )
    settled = settle([result], alpha=alpha, correction=correction)[0]
    return settled if isinstance(settled, ProxyResult) else result


class Block(NamedTuple):
    """The answer about one group."""

    raw: list[Raw]
    weights: CounterfactualWeights | None
    note: str


def _audit_group(
    data: AuditData,
    attribute: Attribute,
    code: int,
    base: int,
    form: Functional,
    options: ProxyOptions,
    scorer: Scorer | None,
    h: FloatArray,
    score: FloatArray,
    nuisance: Any,
    seed: int,
    workers: int,
    say: Callable[[str], None],
) -> Block:
    """Ask one group against its reference: the gap, the features, the counterfactual, and a note."""
    names = (attribute.group_name(code), attribute.group_name(base))
    inside = attribute.codes == code
    pair = make_pair(
        data.features,
        inside=inside,
        used=inside | (attribute.codes == base),
        y=data.outcome if data.outcome_kind == "binary" else None,
        h=h,
        score=score,
        count=data.count,
        unit=data.weight,
        n_folds=options.folds,
        blocks=options.blocks,
        categorical=options.categorical,
        own=attribute.name.split(" × "),
    )
    note = own_note(pair.own, names)
    asked = Comparison(form=form, options=options, names=names, counts=counts_of(pair, names))
    reason = too_few(pair, form, names)
    draws = Draws(seed=seed, name=f"proxy/{form}", n_resamples=options.n_resamples, workers=workers)
    weighted = data.weight is not None
    if reason:
        return Block(nothing_known(pair, asked, reason), None, note)
    averaged = _averaged(pair, options.max_rows)
    say(f"proxy: nuisance models of {names[0]}")
    fits = learn(
        pair,
        form,
        nuisance,
        l2=options.l2,
        interactions=options.interactions,
        scorer=scorer,
        features=data.features,
    )
    gap = gap_of(pair, fits, form, level=options.level, draws=draws, weighted=weighted)
    say(f"proxy: features of {names[0]}")
    at, means = centre_of(pair, fits, form)
    blocks = candidates(pair)
    if isinstance(fits.sources.h, Asked):
        fits.sources.h.ahead((*blocks, *(b for b in pair.fine if b.name not in pair.own)), averaged)
    scores = score_blocks(blocks, pair, fits, form, at, means, averaged)
    sign = -1.0 if gap.estimate < 0 else 1.0
    parts = measure_features(pair, fits, form, scores, at, means, sign=sign, level=options.level, gate=gap.pvalue)
    ranks = ranking(scores, seed, options.level, firm=not fits.no_interval)
    say(f"proxy: counterfactual population of {names[0]}")
    weights = find_weights(
        pair,
        fits,
        form,
        names=(attribute.name, attribute.labels[code], attribute.labels[base]),
        scorer=scorer,
        step=options.step,
        max_steps=options.max_steps,
        tolerance=options.tolerance,
        patience=options.patience,
    )
    features = [feature_raw(p, rank, gap, asked, fits) for p, rank in zip(parts, ranks, strict=True)]
    joined: tuple[PairScore, ...] = ()
    if options.pairs:
        say(f"proxy: pairs of features of {names[0]}")
        two = list(combinations(blocks, 2))
        both = score_blocks([join(a, b) for a, b in two], pair, fits, form, at, means, averaged)
        joined = pair_rows(two, both, {p.block.name: p.score for p in parts})
    evidence = GapEvidence(
        kind="gap",
        fact=gap_fact(gap, form, names, soft=options.soft),
        planning=planning(gap, options.alpha),
        values={names[0]: gap.values[0], names[1]: gap.values[1]},
        test=gap.method,
        pvalue_floor=gap.floor,
        n_resamples=gap.draws,
        nuisance=fits.reports,
        features=feature_table(features),
        pairs=joined,
        counterfactual=describe(pair, fits, weights.path, data.features),
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


def _silent(_: str) -> None:
    return None
