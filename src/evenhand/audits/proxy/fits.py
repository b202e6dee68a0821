"""What is learned on two groups: the nuisance models, and a surrogate of scores where there is no model to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.proxy.sample import Pair
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Centre, Functional, centre, means
from evenhand.kernels.influence.linearised import Equation, Population, equation, missed_products
from evenhand.kernels.influence.nuisance import Learned, LogisticFolds, calibration_of, cross_fit, predict_folds
from evenhand.kernels.influence.shifted_predictions import Sources

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Columns by name in, one prediction per row out.
Scorer = Callable[[Mapping[str, NDArray[Any]]], FloatArray]

# Predictions of a model that are kept for a second look, and rows a model is asked for at once.
_KEPT = 16_000_000
_AT_ONCE = 100_000
# Records searched for interactions.
_SEARCHED = 20_000
# A surrogate that misses the scores by less than this on average is the model itself.
EXACT = 1e-6
# A surrogate that explains less of the scores' variance than this says little about the model.
FAITHFUL = 0.9


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
    no_interval : str
        Why scores have no valid interval; empty where they have one.
    """

    sources: Sources
    eta: FloatArray
    log_ratio: FloatArray | None
    equations: Mapping[str, Equation]
    known: bool
    reports: Mapping[str, Any]
    no_interval: str = ""

    @property
    def linear(self) -> bool:
        """Whether every learned source has an equation, so that variances need no refitting."""
        return all(isinstance(s, LogisticFolds) for _, s in self.sources.named() if isinstance(s, Learned))


def learn(
    pair: Pair,
    form: Functional,
    learner: str | Any,
    *,
    l2: float,
    interactions: bool,
    scorer: Scorer | None,
    features: Mapping[str, NDArray[Any]],
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
        X = pair.X.copy()
        X[:, [j for b in pair.design.blocks if b.name in pair.own for j in b.where]] = 0.0  # would tell everything
        member = cross_fit(learner, X, s, weight, pair.fold, l2=l2)
        p = np.clip(predict_folds(member, X, pair.fold), 1e-12, 1 - 1e-12)
        log_prior = float(np.log(weight[~pair.inside].sum() / weight[pair.inside].sum()))
        log_ratio = np.log1p(-p) - np.log(p) + log_prior
        reports["membership"] = calibration_of(p, s, weight)
        _note(equations, "member", member, pair, s, weight, p, l2)
    if scorer is not None:
        h_source: Any = Asked(scorer, features, pair.origin)
        known = True
    else:
        h_source, known, reports["surrogate"] = _surrogate(pair, learner, l2, equations)
    found = Fits(
        sources=Sources(h=h_source, eta=eta_source, member=member, log_prior=log_prior),
        eta=eta,
        log_ratio=log_ratio,
        equations=equations,
        known=known,
        reports=reports,
    )
    return replace(found, no_interval=_no_interval(pair, found))


def _no_interval(pair: Pair, fits: Fits) -> str:
    """Say why the linearised interval of a score would not hold; see calibration/proxy.json."""
    if not fits.linear:
        return "the error of a nuisance model without coefficients cannot be followed into it"
    if not fits.known and bool(np.all((pair.h == 0) | (pair.h == 1))):
        return "decisions were learned without the score behind them, which blurs their edge; pass `model` or scores"
    if not fits.known and fits.reports["surrogate"]["r_squared"] < FAITHFUL:
        return "the surrogate misses too much of the scores; pass `model`"
    return ""


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
    pair: Pair, learner: str | Any, l2: float, equations: dict[str, Equation]
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
                return Cut(inner, cut, pair.X), True, report
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


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Decisions that are a learned score cut somewhere: a model that can be asked by record, or at new rows."""

    learned: Learned
    cut: float
    X: FloatArray

    def __call__(self, rows: IntArray, block: Block, level: int) -> FloatArray:
        """Decide over records with one block changed."""
        changed = self.X[rows]
        changed[:, list(block.where)] = block.levels[level]
        return self.whole(changed)

    def whole(self, X: FloatArray) -> FloatArray:
        """Decide over new rows."""
        return (self.learned.whole(X) >= self.cut).astype(np.float64)


class Asked:
    """The audited model, asked for records with one feature changed.

    Parameters
    ----------
    scorer : callable
        Columns by name in, one prediction per row out.
    features : mapping
        Columns of all rows.
    origin : ndarray of int, shape (records,)
        A row of each record.
    """

    def __init__(self, scorer: Scorer, features: Mapping[str, NDArray[Any]], origin: IntArray):
        self.scorer = scorer
        self.columns = {name: np.asarray(v) for name, v in features.items()}
        self.origin = origin
        self.kept: dict[tuple[str, bytes], FloatArray] = {}
        self.place = np.full(len(origin), -1)

    def ahead(self, blocks: Sequence[Block], rows: IntArray) -> None:
        """Ask for all levels of all blocks at some records, many at once: scores and shares need the same answers."""
        self.place[:] = -1
        self.place[rows] = np.arange(len(rows))
        self.kept.clear()
        wanted = {_key(b, v): (b, v) for b in blocks for v in range(len(b.levels))}
        todo = list(wanted.items())[: _KEPT // max(len(rows), 1)]
        several = max(_AT_ONCE // max(len(rows), 1), 1)
        for start in range(0, len(todo), several):
            some = todo[start : start + several]
            found = self._ask(rows, [place for _, place in some])
            for (key, _), part in zip(some, found.reshape(len(some), len(rows)), strict=True):
                self.kept[key] = part

    def __call__(self, rows: IntArray, block: Block, level: int) -> FloatArray:
        """Predict records with one block changed."""
        found = self.kept.get(_key(block, level))
        place = self.place[rows]
        return self._ask(rows, [(block, level)]) if found is None or (place < 0).any() else found[place]

    def _ask(self, rows: IntArray, places: Sequence[tuple[Block, int]]) -> FloatArray:
        base = {name: v[self.origin[rows]] for name, v in self.columns.items()}
        columns = {name: np.tile(v, len(places)) for name, v in base.items()}
        for k, (block, level) in enumerate(places):
            for name, value in zip(block.columns, block.raw[level], strict=True):
                columns[name][k * len(rows) : (k + 1) * len(rows)] = value
        return self.scorer(columns)


def _key(block: Block, level: int) -> tuple[str, bytes]:
    return block.name, block.levels[level].tobytes()


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
