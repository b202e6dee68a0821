"""Proxy audit: which features carry the disparity, and what population would show none.

Hypotheses
    For the gap, H0: group and reference have one value of the measure. For each feature, H0: it carries none
    of the gap, because changing it does not change the influence function or because both groups have the
    same distribution of it.
Statistic
    The influence function psi(x) of the measure: how the gap changes when the group gets a few more people
    like x. A feature's proxy score is the mean change of psi when the feature runs through its values and the
    others stay. Closed forms in `evenhand.kernels.influence`.
Reference distribution
    The gap: exact for rates of decisions, Welch for means of scores. Scores: the linearised sampling law
    with the error of the fitted P(Y|X,S) and P(S|X). Feature tests: see `evenhand.audits.proxy_features`.
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
    path              algorithm 1                 steps
    ================  ==========================  =================
    S = 0 is the group, S = 1 its reference; values are group minus reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.proxy_features import judge_features
from evenhand.audits.proxy_fits import Scorer, centre_of, learn
from evenhand.audits.proxy_gap import gap_of
from evenhand.audits.proxy_model import make_scorer
from evenhand.audits.proxy_options import ProxyOptions, check
from evenhand.audits.proxy_sample import Pair, make_pair
from evenhand.audits.proxy_scores import ranking, score_blocks
from evenhand.audits.proxy_weights import CounterfactualWeights, describe, find_weights
from evenhand.audits.proxy_words import (
    constant_findings,
    counts_of,
    feature_evidence,
    feature_finding,
    feature_table,
    gap_fact,
    gap_finding,
    not_computable,
    pair_evidence,
    pair_finding,
    planning,
    too_few,
    warnings_of,
)
from evenhand.audits.verdict import settle
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.inference.samples import Draws
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.design import join
from evenhand.kernels.influence import Functional, functional
from evenhand.kernels.seeds import RngLike, seed_of, stream
from evenhand.results import AuditResult, Finding

FloatArray = NDArray[np.float64]

# Permutations behind the gap's p-value, where it is not exact.
_RESAMPLES = 1999


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
    margin: float | None = None,
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
        Score pairs of features too.
    blocks : mapping of str to sequence of str, optional
        Columns that are one feature, such as the dummies of a one-hot coding.
    categorical : sequence of str
        Numeric columns that are codes of categories.
    alignment_penalty : float
        Lambda of ``da``.
    margin : float, optional
        The largest gap that counts as negligible.
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
        The descent; see `evenhand.kernels.descent.descend`.
    progress : callable, optional
        Called with a sentence before each part of the work.
    rng : int, Generator or None
        Seed.
    workers : int
        Threads; the answer does not depend on it.

    Returns
    -------
    ProxyResult
        For each group: the gap, then one finding per feature, then one per pair of features.

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
    [('sp', 'disparity'), ('sp:x', 'disparity'), ('sp:noise', 'inconclusive')]
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
            margin=margin,
            alpha=alpha,
            level=1 - alpha if level is None else level,
            correction=correction,
        )
    )
    options, scorer, h, score = _prepare(data, form, model, soft, checked)
    say = progress or _silent
    findings: list[Finding] = []
    evidence: list[Mapping[str, Any]] = []
    weights: dict[str, CounterfactualWeights] = {}
    chosen = data.attributes if attribute is None else (data.attribute(attribute),)
    for one in chosen:
        base = _reference(data, one, reference, len(chosen))
        for code in range(len(one.labels)):
            if code == base:
                continue
            say(f"proxy: {options.measure} of {one.group_name(code)}")
            block = _audit_group(data, one, code, base, form, options, scorer, h, score, nuisance, seed, workers, say)
            findings += block[0]
            evidence += block[1]
            if block[2] is not None:
                weights[one.group_name(code)] = block[2]
    result = ProxyResult(
        audit="proxy",
        findings=tuple(findings),
        evidence=tuple(evidence),
        options={**asdict(options), "seed": seed},
        notes=data.notes,
        weights=weights,
    )
    settled = settle([result], alpha=alpha, correction=correction)[0]
    return settled if isinstance(settled, ProxyResult) else result


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
) -> tuple[list[Finding], list[Mapping[str, Any]], CounterfactualWeights | None]:
    """Ask one group against its reference: the gap, the features, the pairs, the counterfactual."""
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
    )
    counts = counts_of(pair, names)
    reason = too_few(pair, form, names)
    draws = Draws(seed=seed, name=f"proxy/{form}", n_resamples=_RESAMPLES, workers=workers)
    weighted = data.weight is not None
    if reason:
        return *not_computable(pair, form, options, names, counts, reason), None
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
    gap = gap_of(pair, fits, form, level=options.level, margin=options.margin, draws=draws, weighted=weighted)
    say(f"proxy: features of {names[0]}")
    at, means = centre_of(pair, fits, form)
    scores = score_blocks(pair.design.blocks, pair, fits, form, at, means, averaged)
    sign = -1.0 if gap.estimate < 0 else 1.0
    carriers = judge_features(pair, fits, form, scores, at, means, sign=sign, level=options.level, learner=nuisance)
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
    features = [feature_finding(c, form, options, names, counts, fits) for c in carriers]
    behind = [
        feature_evidence(c, rank, gap, names, f, fits) for c, rank, f in zip(carriers, ranks, features, strict=True)
    ]
    findings = [gap_finding(gap, form, options, names, counts), *features]
    evidence: list[Mapping[str, Any]] = [
        {
            "kind": "gap",
            "fact": gap_fact(gap, form, names, soft=options.soft),
            "planning": planning(gap, options.alpha),
            "values": {names[0]: gap.values[0], names[1]: gap.values[1]},
            "test": gap.method,
            "equivalence_pvalue": gap.equivalence,
            "nuisance": fits.reports,
            "features": feature_table(behind, form),
            "counterfactual": describe(pair, fits, weights.path, data.features),
            "records_averaged": len(averaged),
            "warnings": warnings_of(pair, fits, form),
        },
        *behind,
    ]
    still = constant_findings(pair, form, names, counts)
    findings += still[0]
    evidence += still[1]
    if options.pairs:
        say(f"proxy: pairs of features of {names[0]}")
        joined = [join(a, b) for a, b in combinations(pair.design.blocks, 2)]
        both = score_blocks(joined, pair, fits, form, at, means, averaged)
        for k, (a, b) in enumerate(combinations(carriers, 2)):
            value, variance = float(both.found.score[k]), float(both.covariance[k, k])
            findings.append(pair_finding(a, b, value, variance, form, options, names, counts, fits))
            evidence.append(pair_evidence(a, b, findings[-1], fits, form))
    return findings, evidence, weights


def _averaged(pair: Pair, max_rows: int) -> NDArray[np.int64]:
    """Choose the records of the group that scores average over: all, or a part, the same for any seed."""
    rows = np.flatnonzero(pair.inside)
    if len(rows) <= max_rows:
        return rows
    return np.sort(stream(0, "proxy/rows").permutation(rows)[:max_rows])


def _prepare(
    data: AuditData, form: Functional, model: Any, soft: bool | None, options: ProxyOptions
) -> tuple[ProxyOptions, Scorer | None, FloatArray, FloatArray]:
    """Check the request against the data and predict once; the only place that raises errors about them."""
    if not data.features:
        raise DataError("The proxy audit needs the model's features and none were given. Name them with `features=`.")
    if not data.attributes:
        raise DataError("No group column was given. Name at least one in `groups`.")
    if form.uses_eta and (data.outcome is None or data.outcome_kind != "binary"):
        raise DataError(f"Measure `{form}` needs an outcome with two values. Name it with `outcome=`, or use `sp`.")
    scorer, h, is_soft = _predictions(data, model, soft)
    behind = data.score is not None and data.score_kind == "probability" and scorer is None and not is_soft
    score = data.score if behind and data.score is not None else h
    return replace(options, soft=is_soft), scorer, h, score


def _predictions(data: AuditData, model: Any, soft: bool | None) -> tuple[Scorer | None, FloatArray, bool]:
    """Return the model as a function of columns, its predictions, and whether they are scores."""
    if model is not None:
        scorer = make_scorer(model, list(data.features), soft=soft)
        h = scorer(data.features)
        return scorer, h, bool(np.any((h != 0) & (h != 1)))
    if soft is not False and data.score is not None and data.score_kind == "probability":
        return None, data.score, True
    if soft is True:
        raise DataError("`soft=True` needs scores between 0 and 1 or a `model`. Name the column with `score=`.")
    if data.decision is None:
        raise DataError("The proxy audit needs decisions, scores between 0 and 1, or a `model`; none were given.")
    return None, data.decision, False


def _reference(data: AuditData, attribute: Attribute, wanted: Mapping[str, str] | str | None, n: int) -> int:
    """Return the code of the reference group: the user's choice, or the group with the most rows."""
    if isinstance(wanted, str) and n > 1:
        raise UsageError(f"`reference` is the single label `{wanted}` but {n} attributes are audited. Give a mapping.")
    label = wanted if isinstance(wanted, str) else (wanted or {}).get(attribute.name)
    if label is None:
        rows = np.bincount(attribute.codes, weights=data.count, minlength=len(attribute.labels))
        return int(rows.argmax())
    if label not in attribute.labels:
        raise UsageError(
            f"Reference `{attribute.name}={label}` is not a group in the data.{near_matches(label, attribute.labels)}"
        )
    return attribute.labels.index(label)


def _silent(_: str) -> None:
    return None
