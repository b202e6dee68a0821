"""STEALTH: a small model that has seen one labelled person of each cluster, in place of the large one.

The training rows are cut in two again and again: along the line between two rows far from each other, at the median,
the largest part first, until there are about sqrt(n) parts. In each part the row nearest to its centre stands for all.
The model to be replaced, the learner fitted to all rows, labels these few rows, and a random forest fitted to them
decides from then on. What the large model does in small corners of the data, biases among it, is not passed on. The
groups are not used at all, and weights in the cuts alone.

Source
    Alvarez and Menzies (2023), Don't lie to me: avoiding malicious explanations with STEALTH, IEEE Software 40.
Where it fails
    Nothing aims at equal treatment: a gap that runs through all of the data is inherited, and can grow. Performance is
    lost with all but a few hundred rows. Where one label is rare, few or no representatives carry it. Distances among
    many text columns say little about who is alike.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.kernels.shared.seeds import seed_of
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner, to_numbers

LABELS = ("model", "true")


class STEALTH(Mitigator):
    """A forest fitted to one labelled row of each cluster.

    Parameters
    ----------
    estimator : estimator, optional
        The learner of the model that is replaced, not fitted. By default logistic regression.
    surrogate : estimator, optional
        What replaces it, not fitted. By default a random forest.
    exponent : float
        Between 0 and 1: rows to this power is the number of clusters.
    labels : {"model", "true"}
        Whether the replaced model labels the representatives, or their own labels are taken.
    random_state : int
        Seed of the forest.

    Attributes
    ----------
    decides_as_ : estimator
        The fitted surrogate.
    leaves_ : ndarray of int, shape (rows,)
        The cluster of each training row; -1 for rows of weight 0.
    representatives_ : ndarray of int, shape (clusters,)
        The row that stands for each cluster, by position.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> method = STEALTH().fit(X, X[:, 0] > 0, sensitive_features=rng.choice(["a", "b"], 400))
    >>> len(method.representatives_)
    20
    """

    about = About(
        stage="after",
        needs="nothing else; the groups are not used",
        changes="the model: a forest fitted to few representatives takes its place",
        cost="3",
        grid=({"exponent": 0.7}, {"exponent": 0.6}, {"exponent": 0.5}),
    )

    def __init__(
        self, estimator: Any = None, *, surrogate: Any = None, exponent: float = 0.5, labels: str = "model",
        random_state: int = 0,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.surrogate = surrogate
        self.exponent = exponent
        self.labels = labels
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        if not 0 < self.exponent < 1:
            raise UsageError(f"`exponent` must be a number between 0 and 1; got {self.exponent!r}.")
        if self.labels not in LABELS:
            raise UsageError(f"`labels` must be one of {', '.join(LABELS)}; got {self.labels!r}.")
        numbers = np.asarray(to_numbers(rows.X).fit_transform(rows.X), dtype=np.float64)
        there = np.flatnonzero(rows.weights > 0)
        weight = rows.weights[there]
        leaves = bisect(numbers[there], weight, max(round(there.size**self.exponent), 2))
        self.leaves_ = np.full(rows.y.size, -1)
        for k, leaf in enumerate(leaves):
            self.leaves_[there[leaf]] = k
        self.representatives_ = np.array([there[central(numbers[there], weight, leaf)] for leaf in leaves])
        few = rows.take(self.representatives_)
        labels = few.y
        if self.labels == "model":
            labels = (np.asarray(fit_learner(self.estimator, rows).predict(few.X)) == 1).astype(np.int64)
        if np.unique(labels).size < 2:
            raise DataError(
                f"All {labels.size} representatives have the label `{rows.classes[labels[0]]}`, and the surrogate "
                "needs both. Raise `exponent`, which gives more of them."
            )
        surrogate = self.surrogate
        if surrogate is None:
            forest = RandomForestClassifier(random_state=seed_of(self.random_state) % 2**32)
            surrogate = make_pipeline(to_numbers(few.X), forest)
        # Clusters weigh about the same, and so do their representatives.
        self.decides_as_ = fit_learner(surrogate, replace(few, weight=None), y=labels)


def bisect(points: FloatArray, weight: FloatArray, leaves: int) -> list[IntArray]:
    """Cut points in two, the heaviest part first, until there are so many parts.

    Parameters
    ----------
    points : ndarray, shape (rows, columns)
        Points.
    weight : ndarray, shape (rows,)
        Their weights, above 0.
    leaves : int
        Parts wanted; at most one for each point.

    Returns
    -------
    list of ndarray of int
        The points of each part.

    Examples
    --------
    >>> [part.tolist() for part in bisect(np.array([[0.0], [9.0], [1.0], [8.0]]), np.ones(4), 2)]
    [[0, 2], [1, 3]]
    """
    whole = np.arange(len(points))
    # Heaviest first; a single point cannot be cut and comes last, and the first point breaks ties.
    queue = [(0.0, 0, whole)]
    while len(queue) < min(leaves, len(points)):
        for half in _halves(points, weight, heappop(queue)[2]):
            heappush(queue, (-float(weight[half].sum()) if half.size > 1 else 0.0, int(half[0]), half))
    return [part for _, _, part in sorted(queue, key=itemgetter(1))]


def central(points: FloatArray, weight: FloatArray, part: IntArray) -> int:
    """Return the point of a part that is nearest to the part's weighted mean.

    Examples
    --------
    >>> central(np.array([[0.0], [1.0], [5.0]]), np.ones(3), np.array([0, 1, 2]))
    1
    """
    centre = np.average(points[part], axis=0, weights=weight[part])
    return int(part[_distances(points[part], centre).argmin()])


def _halves(points: FloatArray, weight: FloatArray, part: IntArray) -> list[IntArray]:
    """Cut a part at the weighted median along the line between two distant points."""
    inside, mass = points[part], weight[part]
    east = inside[_distances(inside, np.average(inside, axis=0, weights=mass)).argmax()]
    west = inside[_distances(inside, east).argmax()]
    order = np.argsort(inside @ (west - east), kind="stable")
    reached = np.cumsum(mass[order])
    cut = int(np.searchsorted(reached, reached[-1] / 2)) + 1
    cut = min(cut, part.size - 1)
    return [np.sort(part[order[:cut]]), np.sort(part[order[cut:]])]


def _distances(points: FloatArray, one: FloatArray) -> FloatArray:
    """Return squared distances from one point."""
    away = points - one
    squared: FloatArray = np.einsum("ij,ij->i", away, away)
    return squared
