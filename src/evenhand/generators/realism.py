"""How real do generated rows look? Distances, a detector, and what a model learnt from them is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.generators.columns import Columns, describe, encode
from evenhand.kernels.shared.logistic import fit_logistic
from evenhand.kernels.shared.seeds import stream

_BINS = 20
_MOST = 5000  # rows a detector looks at


def realism(real: Columns, made: Columns, *, seed: int = 0) -> dict[str, float]:
    """Compare generated rows with real ones.

    Parameters
    ----------
    real, made : mapping of str to ndarray
        Two tables with the same columns.
    seed : int
        For the detector's folds.

    Returns
    -------
    dict
        ``frechet``: Fréchet distance of two normal laws fitted to standardised, one-hot coded rows, 0 when equal.
        ``kl``: mean over columns of 1 / (1 + Kullback-Leibler divergence), 1 when the margins are equal.
        ``detection_auc``: of a logistic detector on rows it was not fitted to, 0.5 when it cannot tell.
        ``detection_score``: 2 - 2 max(AUC, 0.5), 1 when it cannot tell.
        ``copied``: share of generated rows equal to a real one.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> table = {"x": draw.normal(size=500)}
    >>> realism(table, {"x": draw.normal(size=500) + 9})["detection_auc"] > 0.99
    True
    """
    kinds = describe(real)
    a, b = encode(kinds, real, real), encode(kinds, made, real)
    return {
        "frechet": round(_frechet(a, b), 4),
        "kl": round(float(np.mean([_margin(real[k.name], made[k.name], k) for k in kinds])), 4),
        **_detection(a, b, seed),
        "copied": round(_copied(real, made), 4),
    }


def _frechet(a: FloatArray, b: FloatArray) -> float:
    from scipy import linalg

    cov_a, cov_b = np.atleast_2d(np.cov(a.T)), np.atleast_2d(np.cov(b.T))
    root = np.real(linalg.sqrtm(cov_a @ cov_b + 1e-9 * np.eye(cov_a.shape[0])))
    gap = a.mean(axis=0) - b.mean(axis=0)
    return max(float(gap @ gap + np.trace(cov_a + cov_b - 2 * root)), 0.0)


def _margin(real: NDArray[Any], made: NDArray[Any], kind: Any) -> float:
    if kind.categories is None:
        x, y = np.asarray(real, dtype=float), np.asarray(made, dtype=float)
        edges = np.unique(np.quantile(x, np.linspace(0, 1, _BINS + 1)[1:-1]))
        p = np.bincount(np.searchsorted(edges, x, side="right"), minlength=edges.size + 1)
        q = np.bincount(np.searchsorted(edges, y, side="right"), minlength=edges.size + 1)
    else:
        size = kind.categories.size
        p = np.bincount(kind.codes(real), minlength=size)
        q = np.bincount(kind.codes(made)[kind.codes(made) >= 0], minlength=size)
    p, q = (p + 0.5) / (p + 0.5).sum(), (q + 0.5) / (q + 0.5).sum()
    return float(1 / (1 + (p * np.log(p / q)).sum()))


def _detection(a: FloatArray, b: FloatArray, seed: int) -> dict[str, float]:
    from scipy import stats

    rng = stream(seed, "generator/detection")
    a, b = a[rng.permutation(len(a))[:_MOST]], b[rng.permutation(len(b))[:_MOST]]
    x = np.concatenate([a, b])
    x = x[:, x.std(axis=0) > 0]
    y = np.repeat([0.0, 1.0], [len(a), len(b)])
    fold = rng.permutation(len(y)) % 3
    areas = []
    for f in range(3):
        train, test = fold != f, fold == f
        score = fit_logistic(x[train], y[train], l2=1.0).linear(x[test])
        rank = stats.rankdata(score)
        one = y[test] == 1
        areas.append((rank[one].sum() - one.sum() * (one.sum() + 1) / 2) / (one.sum() * (~one).sum()))
    area = float(np.mean(areas))
    return {"detection_auc": round(area, 4), "detection_score": round(2 - 2 * max(area, 0.5), 4)}


def _copied(real: Columns, made: Columns) -> float:
    def rows(table: Columns) -> list[tuple[Any, ...]]:
        return list(zip(*(np.asarray(table[n]).tolist() for n in real), strict=True))

    known = set(rows(real))
    drawn = rows(made)
    return sum(r in known for r in drawn) / len(drawn)


def downstream_f1(
    train: tuple[Columns, FloatArray], made: tuple[Columns, FloatArray], test: tuple[Columns, FloatArray]
) -> float:
    """Return how much F1 a logistic model loses when it is fitted to generated rows instead of real ones.

    Parameters
    ----------
    train, made, test : tuple of columns and outcome
        Real rows to fit, generated rows to fit, real rows to judge by.

    Returns
    -------
    float
        F1 after real rows minus F1 after generated ones; near 0 is good.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> x = draw.normal(size=600)
    >>> part = ({"x": x}, (x > 0).astype(float))
    >>> downstream_f1(part, part, part)
    0.0
    """
    kinds = describe(train[0])
    judged = encode(kinds, test[0], train[0])
    scores = []
    for columns, outcome in (train, made):
        x = encode(kinds, columns, train[0])
        keep = x.std(axis=0) > 0
        if outcome.min() == outcome.max():
            scores.append(0.0 if outcome[0] == 0 else _f1(np.ones(len(test[1])), test[1]))
            continue
        fit = fit_logistic(x[:, keep], outcome, l2=1.0)
        scores.append(_f1((fit.linear(judged[:, keep]) >= 0).astype(float), test[1]))
    return scores[0] - scores[1]


def _f1(decision: FloatArray, outcome: FloatArray) -> float:
    hits = float((decision * outcome).sum())
    return 2 * hits / max(float(decision.sum() + outcome.sum()), 1.0)
