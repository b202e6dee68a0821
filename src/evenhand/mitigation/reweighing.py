"""Reweighing: weights for the training rows under which group and label are independent.

A row of group g with label y gets the weight P(g) P(y) / P(g, y): rows of a combination that is rarer than
independence would have it count more, the others less. The learner is then fitted with these weights and decides
without knowing the group.

Source
    Kamiran and Calders (2012), Data preprocessing techniques for classification without discrimination, Knowledge
    and Information Systems 33.
Where it fails
    Independence of group and label in the training rows is not independence of group and decision. A learner that
    finds the group in other features may keep much of the gap, and one that hardly minds weights (a deep tree, a
    boosted model that fits every row) keeps almost all of it. Nothing is said about error rates: they can move
    apart. A combination with few rows gets a large weight, and noise with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner


class Reweighing(Mitigator):
    """A learner fitted with weights that make group and label independent.

    Parameters
    ----------
    estimator : estimator, optional
        The learner, not fitted; it must take sample weights. By default logistic regression.
    strength : float
        Between 0, which leaves the weights as they are, and 1, which makes group and label independent.

    Attributes
    ----------
    decides_as_ : estimator
        The fitted learner.
    weights_ : ndarray, shape (rows,)
        The weight of each training row, the given one included.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [1.0], [2.0]])
    >>> method = Reweighing().fit(X, [0, 0, 1, 1, 0, 0], sensitive_features=list("aaaabb"))
    >>> method.weights_.round(3).tolist()
    [1.333, 1.333, 0.667, 0.667, 0.667, 0.667]
    """

    about = About(
        stage="before",
        needs="a learner that takes sample weights",
        changes="how much each training row counts",
        cost="1 fit",
        grid=({"strength": 0.5}, {"strength": 1.0}),
    )

    def __init__(self, estimator: Any = None, *, strength: float = 1.0) -> None:
        self.estimator = estimator
        self.strength = strength

    def _fit(self, rows: Training) -> None:
        if not 0 <= self.strength <= 1:
            raise UsageError(f"`strength` must be a number from 0 to 1; got {self.strength!r}.")
        factor = independence_weights(rows.group, rows.y, rows.weights)
        self.weights_ = rows.weights * (1 + self.strength * (factor - 1))
        self.decides_as_ = fit_learner(self.estimator, rows, weight=self.weights_)


def independence_weights(group: IntArray, y: IntArray, weight: FloatArray) -> FloatArray:
    """Return P(group) P(y) / P(group, y) of each row, with rows counted by their weight.

    Parameters
    ----------
    group, y : ndarray of int, shape (rows,)
        Codes from 0 on.
    weight : ndarray, shape (rows,)
        Weight of each row.

    Returns
    -------
    ndarray, shape (rows,)
        0 in a combination whose rows all have weight 0.

    Examples
    --------
    >>> independence_weights(np.array([0, 0, 0, 1]), np.array([0, 1, 1, 1]), np.ones(4)).tolist()
    [0.75, 1.125, 1.125, 0.75]
    """
    table = np.zeros((int(group.max()) + 1, int(y.max()) + 1))
    np.add.at(table, (group, y), weight)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    factor: FloatArray = np.divide(expected, table, out=np.zeros_like(table), where=table > 0)
    return factor[group, y]
