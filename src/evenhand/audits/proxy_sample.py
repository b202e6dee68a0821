"""Two groups made ready for the proxy audit: records in a fixed order, folds, predictions, nuisance fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.kernels.design import Block, Design, make_design
from evenhand.kernels.influence import Centre, Functional, centre, means
from evenhand.kernels.linearised import Equation, Population, equation, missed_products
from evenhand.kernels.nuisance import Learned, LogisticFolds, calibration_of, cross_fit, predict_folds, spread
from evenhand.kernels.seeds import stream
from evenhand.kernels.toggles import Sources

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Columns by name in, one prediction per row out.
Scorer = Callable[[Mapping[str, NDArray[Any]]], FloatArray]

# Records searched for interactions.
_SEARCHED = 20_000
# A surrogate that misses the scores by less than this on average is the model itself.
EXACT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """A group and its reference as records; identical rows are one record.

    Parameters
    ----------
    design : Design
        How features became columns.
    X : ndarray, shape (records, columns)
        Coded features.
    inside : ndarray of bool, shape (records,)
        Records of the group; the others are the reference's.
    y, h : ndarray, shape (records,)
        Outcome (NaN when there is none) and prediction.
    score : ndarray, shape (records,)
        The score behind a decision; the prediction itself when there is none.
    count : ndarray of int, shape (records,)
        Rows each record stands for.
    unit : ndarray, shape (records,)
        Sampling weight of each of its rows.
    origin : ndarray of int, shape (records,)
        A row of the data with these features.
    fold : ndarray of int, shape (records,)
        Fold of the record, sorted.
    """

    design: Design
    X: FloatArray
    inside: BoolArray
    y: FloatArray
    h: FloatArray
    score: FloatArray
    count: IntArray
    unit: FloatArray
    origin: IntArray
    fold: IntArray

    @property
    def weight(self) -> FloatArray:
        """Weight of each record."""
        out: FloatArray = self.count * self.unit
        return out


def make_pair(
    features: Mapping[str, NDArray[Any]],
    *,
    inside: BoolArray,
    used: BoolArray,
    y: FloatArray | None,
    h: FloatArray,
    score: FloatArray,
    count: IntArray,
    unit: FloatArray | None,
    n_folds: int,
    blocks: Mapping[str, Sequence[str]] | None,
    categorical: Sequence[str],
) -> Pair:
    """Code the rows of two groups, join identical ones and deal them out to folds.

    Parameters
    ----------
    features : mapping of str to ndarray
        Columns of all rows.
    inside, used : ndarray of bool, shape (rows,)
        Rows of the group; rows of the group or its reference.
    y, h, score : ndarray, shape (rows,)
        Outcome or None, prediction, and the score behind it.
    count : ndarray of int, shape (rows,)
        Rows each record stands for.
    unit : ndarray or None
        Sampling weight.
    n_folds : int
        Folds for cross-fitting. The deal is the same for any seed: estimates do not depend on it.
    blocks, categorical
        See `make_design`.

    Returns
    -------
    Pair
    """
    rows = np.flatnonzero(used)
    columns = {name: np.asarray(v)[rows] for name, v in features.items()}
    weights = np.ones(len(rows)) if unit is None else unit[rows]
    design = make_design(columns, count[rows] * weights, inside[rows], blocks=blocks, categorical=categorical)
    if not design.blocks:
        raise DataError("No feature takes more than one value in these groups. Name features that vary in `features`.")
    X = design.encode(columns)
    outcome = np.full(len(rows), -1.0) if y is None else y[rows]
    extra = np.column_stack([outcome, h[rows], score[rows], weights, inside[rows]])
    key = _keys(X, extra)
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    first = np.flatnonzero(np.concatenate(([True], sorted_key[1:] != sorted_key[:-1])))
    counts = np.add.reduceat(count[rows][order], first)
    pick = order[first]
    stratum = 2 * inside[rows][pick].astype(np.int64) + (outcome[pick] > 0.5)
    record, fold, share = spread(counts, stratum, n_folds, stream(0, "proxy/folds"))
    chosen = pick[record]
    return Pair(
        design=design,
        X=X[chosen],
        inside=inside[rows][chosen],
        y=np.where(outcome[chosen] < 0, np.nan, outcome[chosen]),
        h=h[rows][chosen],
        score=score[rows][chosen],
        count=share,
        unit=weights[chosen],
        origin=rows[chosen],
        fold=fold,
    )


def _keys(X: FloatArray, extra: FloatArray) -> NDArray[np.uint64]:
    """Hash each row's content: rows with equal content meet, and sorting by it forgets their order."""
    out = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in (*X.T, *extra.T):
            bits = (np.ascontiguousarray(column) + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
            out = (out ^ (bits ^ (bits >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
            out ^= out >> np.uint64(32)
    return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fits:
    """What was learned on a pair.

    Parameters
    ----------
    sources : Sources
        Where toggled predictions come from.
    eta : ndarray, shape (records,)
        Cross-fitted outcome probability under each record's own group; zeros when unused.
    log_ratio : ndarray or None
        Log ratio of the group's to the reference's density.
    equations : mapping of str to Equation
        Of the logistic fits.
    known : bool
        Whether toggled predictions are the model's own.
    reports : mapping
        Calibration of each fit.
    """

    sources: Sources
    eta: FloatArray
    log_ratio: FloatArray | None
    equations: Mapping[str, Equation]
    known: bool
    reports: Mapping[str, Any]

    @property
    def linear(self) -> bool:
        """Whether every learned source has an equation, so that variances need no refitting."""
        learned = [s for s in (self.sources.h, self.sources.eta, self.sources.member) if isinstance(s, Learned)]
        return all(isinstance(s, LogisticFolds) for s in learned)


def learn(
    pair: Pair,
    form: Functional,
    learner: str | Any,
    *,
    l2: float,
    interactions: bool,
    scorer: Scorer | None,
    features: Mapping[str, NDArray[Any]],
    averaged: IntArray,
) -> Fits:
    """Fit what psi needs: P(Y|X) within the group, P(S|X) for the divergence, a surrogate of the scores.

    Parameters
    ----------
    pair : Pair
        The two groups.
    form : Functional
        What is measured.
    learner : str or estimator
        See `cross_fit`.
    l2 : float
        Penalty of logistic fits.
    interactions : bool
        Whether a logistic outcome model gets the products of features it is shown to miss.
    scorer : callable or None
        The model; without one a surrogate is learned from the scores.
    features : mapping
        Columns of all rows, for the model.
    averaged : ndarray of int
        The records that will be toggled.

    Returns
    -------
    Fits
    """
    weight = pair.weight
    equations: dict[str, Equation] = {}
    reports: dict[str, Any] = {}
    eta_source: Learned | None = None
    member: Learned | None = None
    eta = np.zeros(len(weight))
    if form.uses_eta:
        group, other = pair.inside, ~pair.inside
        eta_source = cross_fit(learner, pair.X[group], pair.y[group], weight[group], pair.fold[group], l2=l2)
        eta[group] = predict_folds(eta_source, pair.X[group], pair.fold[group])
        if interactions and isinstance(eta_source, LogisticFolds):
            products = _missed(pair, eta_source, eta, l2)
            if products:
                eta_source = cross_fit(
                    learner, pair.X[group], pair.y[group], weight[group], pair.fold[group], l2=l2, products=products
                )
                eta[group] = predict_folds(eta_source, pair.X[group], pair.fold[group])
                reports["interactions"] = _product_names(pair, products)
        reports["outcome"] = calibration_of(eta[group], pair.y[group], weight[group])
        # Of the reference only means enter. The outcome itself has the same mean as its probability,
        # except inside an absolute value.
        eta[other] = pair.y[other]
        if any(name == "cal" for name, _ in form.terms):
            reference = cross_fit(learner, pair.X[other], pair.y[other], weight[other], pair.fold[other], l2=l2)
            eta[other] = predict_folds(reference, pair.X[other], pair.fold[other])
            reports["outcome_reference"] = calibration_of(eta[other], pair.y[other], weight[other])
        _note(equations, "eta", eta_source, pair, pair.y, np.where(group, weight, 0.0), eta, l2)
    log_ratio = None
    log_prior = 0.0
    if form.uses_log_ratio:
        s = (~pair.inside).astype(np.float64)
        member = cross_fit(learner, pair.X, s, weight, pair.fold, l2=l2)
        p = np.clip(predict_folds(member, pair.X, pair.fold), 1e-12, 1 - 1e-12)
        log_prior = float(np.log(weight[~pair.inside].sum() / weight[pair.inside].sum()))
        log_ratio = np.log1p(-p) - np.log(p) + log_prior
        reports["membership"] = calibration_of(p, s, weight)
        _note(equations, "member", member, pair, s, weight, p, l2)
    if scorer is not None:
        h_source: Any = _opaque(scorer, features, pair.origin[averaged])
        known = True
    else:
        h_source, known, reports["surrogate"] = _surrogate(pair, learner, l2, averaged, equations)
    return Fits(
        sources=Sources(h=h_source, eta=eta_source, member=member, log_prior=log_prior),
        eta=eta,
        log_ratio=log_ratio,
        equations=equations,
        known=known,
        reports=reports,
    )


def _missed(pair: Pair, learned: LogisticFolds, eta: FloatArray, l2: float) -> tuple[tuple[int, int], ...]:
    """Find products of two features' columns that the outcome model should have had."""
    rows = np.flatnonzero(pair.inside)
    if len(rows) > _SEARCHED:
        rows = rows[:: -(-len(rows) // _SEARCHED)]
    # A number enters with its own column, not with its bends.
    firsts = [b.where[:1] if b.graded else b.where for b in pair.design.blocks]
    pairs = [(i, j) for k, a in enumerate(firsts) for b in firsts[k + 1 :] for i in a for j in b]
    coef = np.concatenate(([learned.all_rows.intercept], learned.all_rows.coef))
    X, weight = pair.X[rows], pair.weight[rows]
    fit = equation(X, pair.y[rows], eta[rows], weight, coef, l2)
    return missed_products(X, fit, eta[rows], pair.count[rows].astype(np.float64), pair.unit[rows], pairs)


def _product_names(pair: Pair, products: tuple[tuple[int, int], ...]) -> list[str]:
    owner = {j: b.name for b in pair.design.blocks for j in b.where}
    return sorted({f"{owner[a]} × {owner[b]}" for a, b in products})


def _surrogate(
    pair: Pair, learner: str | Any, l2: float, averaged: IntArray, equations: dict[str, Equation]
) -> tuple[Any, bool, dict[str, float]]:
    """Learn the model from its scores; decisions through their score where one score separates them."""
    hard = bool(np.all((pair.h == 0) | (pair.h == 1)))
    if hard and np.any((pair.score != 0) & (pair.score != 1)):
        low = float(pair.score[pair.h == 0].max(initial=0.0))
        high = float(pair.score[pair.h == 1].min(initial=1.0))
        if low < high:
            inner = cross_fit("logistic", pair.X, pair.score, pair.weight, pair.fold, l2=1e-6)
            report = _fidelity(pair, predict_folds(inner, pair.X, pair.fold), pair.score)
            if report["root_mean_square_error"] < EXACT:
                cut = 0.5 if low < 0.5 <= high else (low + high) / 2
                return _cut(inner, cut, pair.X[averaged]), True, report
    # A penalty that matters for separable decisions only.
    penalty = l2 if hard else 1e-6
    learned = cross_fit(learner, pair.X, pair.h, pair.weight, pair.fold, l2=penalty)
    fitted = predict_folds(learned, pair.X, pair.fold)
    report = _fidelity(pair, fitted, pair.h)
    _note(equations, "h", learned, pair, pair.h, pair.weight, fitted, penalty)
    return learned, report["root_mean_square_error"] < EXACT, report


def _fidelity(pair: Pair, fitted: FloatArray, target: FloatArray) -> dict[str, float]:
    w = pair.weight / pair.weight.sum()
    miss = float(w @ (fitted - target) ** 2)
    whole = float(w @ (target - w @ target) ** 2)
    return {
        "r_squared": 1 - miss / whole if whole > 0 else 1.0,
        "root_mean_square_error": float(np.sqrt(miss)),
        "agreement": float(w @ ((fitted >= 0.5) == (target >= 0.5))),
    }


def _cut(learned: Learned, cut: float, X: FloatArray) -> Callable[[IntArray, Block, int], FloatArray]:
    def predict(rows: IntArray, block: Block, level: int) -> FloatArray:
        changed = X[rows]
        changed[:, list(block.where)] = block.levels[level]
        return (learned.whole(changed) >= cut).astype(np.float64)

    return predict


def _note(
    equations: dict[str, Equation],
    name: str,
    learned: Learned,
    pair: Pair,
    target: FloatArray,
    weight: FloatArray,
    probability: FloatArray,
    l2: float,
) -> None:
    if isinstance(learned, LogisticFolds):
        coef = np.concatenate(([learned.all_rows.intercept], learned.all_rows.coef))
        equations[name] = equation(pair.X, target, probability, weight, coef, l2, learned.products)


def _opaque(
    scorer: Scorer, features: Mapping[str, NDArray[Any]], origin: IntArray
) -> Callable[[IntArray, Block, int], FloatArray]:
    def predict(rows: IntArray, block: Block, level: int) -> FloatArray:
        columns = {name: np.asarray(v)[origin[rows]] for name, v in features.items()}
        for name, value in zip(block.columns, block.raw[level], strict=True):
            filled = columns[name].copy()
            filled[:] = value
            columns[name] = filled
        return scorer(columns)

    return predict


def population(pair: Pair, fits: Fits) -> Population:
    """Return the pair as the rows a centre was computed from."""
    return Population(
        X=pair.X,
        inside=pair.inside,
        count=pair.count.astype(np.float64),
        unit=pair.unit,
        h=pair.h,
        eta=fits.eta,
    )


def centre_of(pair: Pair, fits: Fits, form: Functional) -> tuple[Centre, FloatArray]:
    """Return the centre of psi on the group and the reference's means."""
    weight, g = pair.weight, pair.inside
    reference = means(form, pair.h[~g], fits.eta[~g], weight[~g])
    ratio = None if fits.log_ratio is None else fits.log_ratio[g]
    return centre(form, pair.h[g], fits.eta[g], weight[g], reference=reference, log_ratio=ratio), reference
