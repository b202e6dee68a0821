"""What is learned on two groups: the nuisance models, and a surrogate of scores where there is no model to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.audits.proxy.options import ProxySetting
from evenhand.audits.proxy.sample import Pair, distinct
from evenhand.kernels.influence.attainable import counting_bound
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import Functional, Sample, means
from evenhand.kernels.influence.linearised import Equation, equation, missed_products
from evenhand.kernels.influence.nuisance import Learned, LogisticFolds, calibration_of, cross_fit, predict_folds
from evenhand.kernels.influence.shifted_predictions import Sources

# Columns by name in, one prediction per row out.
Scorer = Callable[[Mapping[str, NDArray[Any]]], FloatArray]
# Columns by name and values of some in, predictions (values, rows) with one column set to its values out, by column.
Along = Callable[[Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]], dict[str, FloatArray]]

# Predictions of a model that are kept for a second look, and rows a model is asked for at once.
_KEPT = 16_000_000
_AT_ONCE = 20_000
# Records searched for interactions.
_SEARCHED = 20_000
# A surrogate that misses the scores by less than this on average is the model itself.
EXACT = 1e-6
# A surrogate that explains less of the scores' variance than this says little about the model.
FAITHFUL = 0.9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fits:
    """What was learned on a pair."""

    sources: Sources  # where toggled predictions come from
    eta: FloatArray  # (records,): cross-fitted outcome probability under each record's own group; zeros when unused
    reference: Learned | None  # the reference's P(Y|X), where more than its means enters
    log_ratio: FloatArray | None  # log ratio of the group's to the reference's density
    equations: Mapping[str, Equation]  # of the logistic fits
    known: bool  # whether toggled predictions are the model's own
    reports: Mapping[str, Any]  # calibration of each fit
    no_interval: str = ""  # why scores have no valid interval; empty where they have one


class _Record:
    """Fits of one pair, with the calibration and the equation of each."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.equations: dict[str, Equation] = {}
        self.reports: dict[str, Any] = {}

    def fit(
        self, learner: str | Any, X: FloatArray, y: FloatArray, l2: float, rows: BoolArray | None = None,
        products: tuple[tuple[int, int], ...] = (),
    ) -> tuple[Learned, FloatArray]:  # fmt: skip
        """Return a cross-fitted probability and its values, on all records or some."""
        some = slice(None) if rows is None else rows
        fold = self.pair.fold[some]
        learned = cross_fit(learner, X[some], y[some], self.pair.weight[some], fold, l2=l2, products=products)
        return learned, predict_folds(learned, X[some], fold)

    def note(self, name: str, learned: Learned, target: FloatArray, weight: FloatArray, fitted: FloatArray) -> None:
        """Keep the equation of a logistic fit."""
        if isinstance(learned, LogisticFolds):
            self.equations[name] = equation(self.pair.X, target, fitted, weight, learned.l2, learned.products)


def learn(
    pair: Pair, how: ProxySetting, scorer: Scorer | None, along: Along | None, features: Mapping[str, NDArray[Any]]
) -> Fits:
    """Fit what psi needs: P(Y|X) within the group, P(S|X) for the divergence, a surrogate of the scores.

    Parameters
    ----------
    pair : Pair
        The two groups.
    how : ProxySetting
        What is measured, and how nuisance models are learned.
    scorer : callable or None
        The model; without one a surrogate is learned from the scores.
    along : callable or None
        Its predictions along whole columns, where there is a quicker way to them than asking.
    features : mapping
        Columns of all rows, for the model.

    Returns
    -------
    Fits
    """
    record, form = _Record(pair), how.form
    outcome, reference, eta = (
        _learn_outcome(pair, how, record) if form.uses_eta else (None, None, np.zeros(len(pair.h)))
    )
    member, log_ratio, log_prior = _learn_member(pair, how, record) if form.uses_log_ratio else (None, None, 0.0)
    h_source: Any
    if scorer is None:
        h_source, known = _surrogate(pair, how, record)
    else:
        h_source, known = Asked(scorer, along, features, pair.origin), True
    fits = Fits(
        sources=Sources(h=h_source, eta=outcome, member=member, log_prior=log_prior),
        eta=eta,
        reference=reference,
        log_ratio=log_ratio,
        equations=record.equations,
        known=known,
        reports=record.reports,
    )
    return replace(fits, no_interval=_no_interval(pair, fits))


def _learn_outcome(pair: Pair, how: ProxySetting, record: _Record) -> tuple[Learned, Learned | None, FloatArray]:
    """Learn P(Y|X) within the group; of the reference only means enter, unless there is a kink."""
    group, other, weight = pair.inside, ~pair.inside, pair.weight
    eta = np.zeros(len(weight))
    learned, eta[group] = record.fit(how.nuisance, pair.X, pair.y, how.l2, group)
    if how.interactions and isinstance(learned, LogisticFolds):
        products = _missed(pair, eta, how.l2)
        if products:
            learned, eta[group] = record.fit(how.nuisance, pair.X, pair.y, how.l2, group, products)
            owner = {j: b.name for b in pair.design.blocks for j in b.where}
            record.reports["interactions"] = sorted({f"{owner[a]} × {owner[b]}" for a, b in products})
    record.reports["outcome"] = calibration_of(eta[group], pair.y[group], weight[group])
    record.reports["outcome"]["counting_bound"] = _bound(pair, group)
    # The outcome itself has the same mean as its probability, except inside an absolute value.
    eta[other] = pair.y[other]
    reference = None
    if how.form.kinked:
        reference, eta[other] = record.fit(how.nuisance, pair.X, pair.y, how.l2, other)
        record.reports["outcome_reference"] = calibration_of(eta[other], pair.y[other], weight[other])
    record.note("eta", learned, pair.y, np.where(group, weight, 0.0), eta)
    return learned, reference, eta


def _learn_member(pair: Pair, how: ProxySetting, record: _Record) -> tuple[Learned, FloatArray, float]:
    """Learn P(S|X); return it with the log ratio of the two densities and that of the two sizes."""
    s, weight = (~pair.inside).astype(np.float64), pair.weight
    X = pair.X.copy()
    X[:, pair.own_columns] = 0.0  # would tell everything
    member, fitted = record.fit(how.nuisance, X, s, how.l2)
    p = np.clip(fitted, 1e-12, 1 - 1e-12)
    log_prior = float(np.log(weight[~pair.inside].sum() / weight[pair.inside].sum()))
    record.reports["membership"] = calibration_of(p, s, weight)
    record.reports["membership"]["counting_bound"] = _bound(pair, np.ones(len(s), dtype=bool))
    record.note("member", member, s, weight, p)
    return member, log_odds(p) + log_prior, log_prior


def _bound(pair: Pair, rows: BoolArray) -> float:
    """Say how far off counting people by their features would be. [wang2019] proposition 5."""
    return counting_bound(distinct(pair.X[rows]), float(pair.count[rows].sum()))


def log_odds(p: FloatArray) -> FloatArray:
    """Return log (1 - p) / p, for probabilities off 0 and 1."""
    return np.log1p(-p) - np.log(p)


def _no_interval(pair: Pair, fits: Fits) -> str:
    """Say why the linearised interval of a score would not hold; see calibration/proxy.json."""
    learned = [s for _, s in fits.sources.named() if isinstance(s, Learned)]
    if not all(isinstance(s, LogisticFolds) for s in learned):  # variances would need refitting
        return "the error of a nuisance model without coefficients cannot be followed into it"
    if not fits.known and pair.hard:
        return "decisions were learned without the score behind them, which blurs their edge; pass `model=` or scores"
    if not fits.known and fits.reports["surrogate"]["r_squared"] < FAITHFUL:
        return "the surrogate misses too much of the scores; pass `model=`"
    return ""


def _missed(pair: Pair, eta: FloatArray, l2: float) -> tuple[tuple[int, int], ...]:
    """Find products of two features' columns that the outcome model should have had."""
    rows = np.flatnonzero(pair.inside)
    if len(rows) > _SEARCHED:
        rows = rows[:: -(-len(rows) // _SEARCHED)]
    # A number enters with its own column, not with its bends.
    firsts = [b.where[:1] if b.graded else b.where for b in pair.design.blocks]
    pairs = [(i, j) for k, a in enumerate(firsts) for b in firsts[k + 1 :] for i in a for j in b]
    people = replace(pair, eta=eta).take(rows)
    return missed_products(people, equation(people.X, pair.y[rows], people.eta, people.weight, l2), pairs)


def _surrogate(pair: Pair, how: ProxySetting, record: _Record) -> tuple[Any, bool]:
    """Learn the model from its scores; decisions through their score where one score separates them."""
    if pair.hard and np.any((pair.score != 0) & (pair.score != 1)):
        low = float(pair.score[pair.h == 0].max(initial=0.0))
        high = float(pair.score[pair.h == 1].min(initial=1.0))
        if low < high:
            inner, fitted = record.fit("logistic", pair.X, pair.score, 1e-6)
            record.reports["surrogate"] = report = _fidelity(pair, fitted, pair.score)
            if report["root_mean_square_error"] < EXACT:
                cut = 0.5 if low < 0.5 <= high else (low + high) / 2
                return Cut(inner, cut, pair.X), True
    # A penalty that matters for separable decisions only.
    learned, fitted = record.fit(how.nuisance, pair.X, pair.h, how.l2 if pair.hard else 1e-6)
    record.reports["surrogate"] = report = _fidelity(pair, fitted, pair.h)
    record.note("h", learned, pair.h, pair.weight, fitted)
    return learned, report["root_mean_square_error"] < EXACT


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
    along : callable or None
        A quicker way to predictions along whole columns; those that it does not know are asked for.
    features : mapping
        Columns of all rows.
    origin : ndarray of int, shape (records,)
        A row of each record.
    """

    def __init__(
        self, scorer: Scorer, along: Along | None, features: Mapping[str, NDArray[Any]], origin: IntArray
    ) -> None:
        self.scorer, self.along = scorer, along
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
        todo = dict(list(wanted.items())[: _KEPT // max(len(rows), 1)])
        self._run_along(todo, rows)
        left = [item for item in todo.items() if item[0] not in self.kept]
        several = max(_AT_ONCE // max(len(rows), 1), 1)
        base = {name: np.tile(v[self.origin[rows]], several) for name, v in self.columns.items()}
        for start in range(0, len(left), several):
            some = left[start : start + several]
            answers = self._ask(base, len(rows), [place for _, place in some])
            for (key, _), part in zip(some, answers.reshape(len(some), len(rows)), strict=True):
                self.kept[key] = part

    def _run_along(self, todo: Mapping[tuple[str, bytes], tuple[Block, int]], rows: IntArray) -> None:
        """Keep the predictions along blocks of one column, as far as there is a quicker way to them than asking."""
        if self.along is None:
            return
        single: dict[str, list[tuple[str, bytes]]] = {}
        for key, (block, _) in todo.items():
            if len(block.columns) == 1:
                single.setdefault(block.columns[0], []).append(key)
        values = {name: np.array([todo[k][0].raw[todo[k][1]][0] for k in keys]) for name, keys in single.items()}
        base = {name: v[self.origin[rows]] for name, v in self.columns.items()}
        for name, answers in self.along(base, values).items():
            self.kept.update(zip(single[name], answers, strict=True))

    def __call__(self, rows: IntArray, block: Block, level: int) -> FloatArray:
        """Predict records with one block changed."""
        kept = self.kept.get(_key(block, level))
        place = self.place[rows]
        if kept is not None and not (place < 0).any():
            return np.asarray(kept[place])
        base = {name: v[self.origin[rows]] for name, v in self.columns.items()}
        return self._ask(base, len(rows), [(block, level)])

    def _ask(self, base: Mapping[str, NDArray[Any]], n: int, places: Sequence[tuple[Block, int]]) -> FloatArray:
        """Ask about n records as often as there are places, each time changed; `base` holds them often enough."""
        columns = {name: v[: n * len(places)] for name, v in base.items()}
        for name in {name for block, _ in places for name in block.columns}:
            columns[name] = columns[name].copy()
        for k, (block, level) in enumerate(places):
            for name, value in zip(block.columns, block.raw[level], strict=True):
                columns[name][k * n : (k + 1) * n] = value
        return self.scorer(columns)


def _key(block: Block, level: int) -> tuple[str, bytes]:
    return block.name, block.levels[level].tobytes()


def sample_of(pair: Pair, fits: Fits, form: Functional, part: BoolArray | None = None) -> Sample:
    """Return the group as a sample of P with the reference's means, from all records or a part of them."""
    part = np.ones(len(pair.h), dtype=bool) if part is None else part
    g, other, weight = pair.inside & part, ~pair.inside & part, pair.weight
    return Sample(
        h=pair.h[g],
        eta=fits.eta[g],
        weight=weight[g],
        reference=means(form, pair.h[other], fits.eta[other], weight[other]),
        log_ratio=None if fits.log_ratio is None else fits.log_ratio[g],
    )
