"""Probabilities learned beside the model that is judged: cross-fitted, with their calibration.

[wang2019] Proposition 5: the error of an influence function is the error of these models. A row's
probability comes from fits that did not see it. Rows may be records that stand for several rows; a
record's rows are then spread over the folds, and the record appears once per fold with its share.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, MissingDependencyError, UsageError
from evenhand.kernels.shared.logistic import LogisticFit, fit_logistic

LEARNERS = ("logistic", "boosting")
# Probabilities of any learner but the logistic one are kept off 0 and 1: their logarithms are used.
EDGE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """A probability as a function of a matrix row: fits of an estimator without each fold, and one of all rows."""

    fits: tuple[Any, ...]
    all_rows: Any

    def fold(self, X: FloatArray, k: int) -> FloatArray:
        """Predict with the fit that did not see fold `k`."""
        return self._ask(self.fits[k], X)

    def whole(self, X: FloatArray) -> FloatArray:
        """Predict with the fit of all rows."""
        return self._ask(self.all_rows, X)

    def _ask(self, fit: Any, X: FloatArray) -> FloatArray:
        with threadpool_limits(1):
            probability = np.asarray(fit.predict_proba(X), dtype=np.float64)[:, 1]
        return np.clip(probability, EDGE, 1 - EDGE)


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFolds(Learned):
    """The same of logistic fits; products of columns may be added."""

    l2: float
    products: tuple[tuple[int, int], ...] = ()

    def _ask(self, fit: LogisticFit, X: FloatArray) -> FloatArray:
        return fit.probability(with_products(X, self.products))


def with_products(X: FloatArray, products: Sequence[tuple[int, int]]) -> FloatArray:
    """Append products of pairs of columns to a matrix.

    Examples
    --------
    >>> with_products(np.array([[2.0, 3.0]]), [(0, 1)]).tolist()
    [[2.0, 3.0, 6.0]]
    """
    if not products:
        return X
    return np.concatenate([X, np.stack([X[:, a] * X[:, b] for a, b in products], axis=1)], axis=1)


def with_one(X: FloatArray, products: Sequence[tuple[int, int]] = ()) -> FloatArray:
    """Return a matrix with a column of ones before it and products of columns behind it."""
    return np.concatenate([np.ones((len(X), 1)), with_products(X, products)], axis=1)


def spread(
    count: IntArray, stratum: IntArray, n_folds: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Deal rows out to folds, evenly within each stratum.

    Parameters
    ----------
    count : ndarray of int, shape (records,)
        Rows each record stands for.
    stratum : ndarray of int, shape (records,)
        Records that are dealt out together, such as those of one group and outcome.
    n_folds : int
        Number of folds.
    rng : Generator
        Shuffles the records.

    Returns
    -------
    record, fold, share : ndarray of int, shape (pieces,)
        One entry per record and fold that got any of its rows, ordered by fold, then record.

    Examples
    --------
    >>> record, fold, share = spread(np.array([4, 1]), np.zeros(2, dtype=int), 2, np.random.default_rng(0))
    >>> int(share.sum()), int(share[fold == 0].sum())
    (5, 3)
    """
    order = rng.permutation(len(count))
    order = order[np.argsort(stratum[order], kind="stable")]
    sorted_stratum = stratum[order]
    last = np.cumsum(count[order])
    first = last - count[order]
    # Each stratum starts at the next fold, so that small strata do not all fill fold 0.
    starts = np.flatnonzero(np.concatenate(([True], sorted_stratum[1:] != sorted_stratum[:-1])))
    offset = np.repeat(first[starts] - np.arange(starts.size), np.diff(np.append(starts, len(order))))
    shares = np.empty((n_folds, len(count)), dtype=np.int64)
    for k in range(n_folds):
        shares[k, order] = (last - offset - k + n_folds - 1) // n_folds - (first - offset - k + n_folds - 1) // n_folds
    fold, record = np.nonzero(shares)
    return record.astype(np.int64), fold.astype(np.int64), shares[fold, record]


def cross_fit(
    learner: str | Any,
    X: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    fold: IntArray,
    *,
    l2: float = 1.0,
    products: tuple[tuple[int, int], ...] = (),
) -> Learned:
    """Fit a probability on all rows but each fold's, and on all rows.

    Parameters
    ----------
    learner : {"logistic", "boosting"} or estimator
        The logistic regression of this package; scikit-learn's histogram gradient boosting; or any
        object with ``fit(X, y, sample_weight=...)`` and ``predict_proba``, which is copied, not changed.
    X : ndarray, shape (rows, columns)
        Inputs.
    y : ndarray, shape (rows,)
        0, 1 or a share in between.
    weight : ndarray, shape (rows,)
        Row weights.
    fold : ndarray of int, shape (rows,)
        Each row's fold.
    l2 : float
        Penalty of the logistic regression.
    products : tuple of (int, int)
        Products of columns the logistic regression gets too.

    Returns
    -------
    Learned

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0.0, 1.0, 1.0, 0.0])
    >>> cross_fit("logistic", X, y, np.ones(4), np.array([0, 0, 1, 1])).whole(X).round(3).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    n_folds = int(fold.max()) + 1
    logistic = isinstance(learner, str) and learner == "logistic"
    Xd, yd, wd, fd = _sure(with_products(X, products) if logistic else X, y, weight, fold)
    if logistic:
        whole = fit_logistic(Xd, yd, wd, l2)
        return LogisticFolds(
            fits=tuple(fit_logistic(Xd, yd, np.where(fd == k, 0.0, wd), l2, start=whole) for k in range(n_folds)),
            all_rows=whole,
            l2=l2,
            products=products,
        )
    estimator = _estimator(learner)
    return Learned(
        fits=tuple(_fitted(estimator, Xd[fd != k], yd[fd != k], wd[fd != k]) for k in range(n_folds)),
        all_rows=_fitted(estimator, Xd, yd, wd),
    )


def predict_folds(learned: Learned, X: FloatArray, fold: IntArray) -> FloatArray:
    """Predict each row with the fit that did not see its fold.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0.0, 1.0, 1.0, 0.0])
    >>> fold = np.array([0, 0, 1, 1])
    >>> predict_folds(cross_fit("logistic", X, y, np.ones(4), fold), X, fold).round(2).tolist()
    [0.56, 0.44, 0.44, 0.56]
    """
    out = np.empty(len(X))
    for k in range(int(fold.max()) + 1):
        mine = fold == k
        if mine.any():
            out[mine] = learned.fold(X[mine], k)
    return out


def calibration_of(probability: FloatArray, y: FloatArray, weight: FloatArray, bins: int = 10) -> dict[str, Any]:
    """Say how far learned probabilities can be trusted.

    Parameters
    ----------
    probability, y, weight : ndarray, shape (rows,)
        Cross-fitted probability, outcome, weight.
    bins : int
        Groups of equal weight.

    Returns
    -------
    dict
        ``auc``, ``brier``, ``slope`` and ``intercept`` of a logistic recalibration (1 and 0 when
        calibrated), ``error`` (mean gap between the bins' predicted and observed means) and ``bins``.

    Examples
    --------
    >>> p = np.array([0.2, 0.2, 0.8, 0.8])
    >>> round(calibration_of(p, np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4), bins=2)["error"], 6)
    0.2
    """
    order = np.argsort(probability, kind="stable")
    p, t, w = probability[order], y[order], weight[order]
    total = float(w.sum())
    mid = (np.cumsum(w) - w / 2) / total
    # Equal probabilities share a bin: take the bin of the first of them.
    first = np.concatenate(([0], np.flatnonzero(np.diff(p)) + 1))
    run = np.repeat(first, np.diff(np.append(first, len(p))))
    code = np.minimum((mid[run] * bins).astype(int), bins - 1)
    mass = np.bincount(code, weights=w, minlength=bins)
    kept = mass > 0
    predicted = np.bincount(code, weights=w * p, minlength=bins)[kept] / mass[kept]
    observed = np.bincount(code, weights=w * t, minlength=bins)[kept] / mass[kept]
    # Weighted Mann-Whitney with ties.
    positive, negative = np.add.reduceat(w * t, first), np.add.reduceat(w * (1 - t), first)
    pairs = float(positive.sum() * negative.sum())
    slope = intercept = float("nan")
    try:
        z = special.logit(np.clip(p, EDGE, 1 - EDGE))[:, None]
        fit = fit_logistic(*_sure(z, t, w, np.zeros(len(p), dtype=np.int64))[:3], 1e-6)
        slope, intercept = float(fit.coef[0]), fit.intercept
    except DataError:
        pass
    return {
        "auc": float(positive @ (np.cumsum(negative) - negative + negative / 2)) / pairs if pairs > 0 else float("nan"),
        "brier": float(w @ (p - t) ** 2) / total,
        "slope": slope,
        "intercept": intercept,
        "error": float(mass[kept] @ np.abs(predicted - observed)) / total,
        "bins": [
            {"predicted": float(a), "observed": float(b), "share": float(m) / total}
            for a, b, m in zip(predicted, observed, mass[kept], strict=True)
        ],
    }


def _sure(
    X: FloatArray, y: FloatArray, weight: FloatArray, fold: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Turn a share y into a row with y = 1 and one with y = 0 of matching weights."""
    if np.all((y == 0) | (y == 1)):
        return X, y, weight, fold
    n = len(y)
    return (
        np.concatenate([X, X]),
        np.concatenate([np.ones(n), np.zeros(n)]),
        np.concatenate([weight * y, weight * (1 - y)]),
        np.concatenate([fold, fold]),
    )


def _estimator(learner: str | Any) -> Any:
    if not isinstance(learner, str):
        if not (hasattr(learner, "fit") and hasattr(learner, "predict_proba")):
            raise UsageError(
                "`nuisance` must be `logistic`, `boosting` or an object with `fit` and `predict_proba`; "
                f"got {type(learner).__name__}."
            )
        return learner
    if learner != "boosting":
        raise UsageError(f"`nuisance` is `{learner}`; allowed: `logistic`, `boosting`, or an estimator.")
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependencyError(
            "`nuisance='boosting'` needs scikit-learn. Install it, or use `nuisance='logistic'`."
        ) from error
    return HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=15, early_stopping=False, random_state=0)


def _fitted(estimator: Any, X: FloatArray, y: FloatArray, weight: FloatArray) -> Any:
    used = weight > 0
    model = copy.deepcopy(estimator)
    if np.unique(y[used]).size < 2:
        raise DataError("A fold has one outcome only: there are too few rows of the other to fit a nuisance model.")
    with threadpool_limits(1):  # trees summed by several threads can differ in the last digit between machines
        model.fit(X[used], y[used], sample_weight=weight[used])
    return model
