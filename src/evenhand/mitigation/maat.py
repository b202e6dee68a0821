"""MAAT: a model for performance and a model for fairness, whose probabilities are mixed.

The performance model is the learner fitted to all rows. The fairness model is the same learner fitted to fewer rows,
under the view that all groups are equal: in a group whose share of label 1 is above that of all rows, rows with label 1
are left out at random until it is the same, and in a group below it rows with label 0 are. The share over all rows
stays as it was. The probabilities of the two models are averaged; neither needs the group to decide.

Source
    Chen, Zhang, Sarro and Harman (2022), MAAT: a novel ensemble approach to addressing fairness and performance bugs
    for machine learning software, ESEC/FSE.
Where it fails
    Equal shares of labels in training are not equal decisions: what stands for the group among the features keeps part
    of the gap, and the performance model half of it by design. Rows are thrown away; a small group can lose most of
    its rows, and the fairness model is then noisy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner, probability_of


class MAAT(Mitigator):
    """A performance model and a fairness model, mixed.

    Parameters
    ----------
    estimator : estimator, optional
        The learner of both models, not fitted. By default logistic regression.
    strength : float
        Share of the fairness model: between 0, the performance model alone, and 1, the fairness model alone.
    random_state : int
        Seed of the rows that are left out.

    Attributes
    ----------
    performance_, fairness_ : estimator
        The two fitted models.
    fairness_rows_ : ndarray of int
        The training rows that the fairness model was fitted to, by position.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 100)
    >>> y = np.arange(200) % 100 < np.repeat([60, 20], 100)
    >>> X = rng.normal(size=(200, 1)) + y[:, None]
    >>> method = MAAT().fit(X, y, sensitive_features=group)
    >>> kept = method.fairness_rows_
    >>> [round(float(y[kept][group[kept] == g].mean()), 2) for g in "ab"]
    [0.4, 0.4]
    """

    about = About(
        stage="after",
        needs="rows of every label in every group",
        changes="the decisions: a second model, fitted to fewer rows, has a say",
        cost="2 fits",
        grid=({"strength": 0.25}, {"strength": 0.5}, {"strength": 0.75}, {"strength": 1.0}),
    )

    def __init__(self, estimator: Any = None, *, strength: float = 0.5, random_state: int = 0) -> None:
        self.estimator = estimator
        self.strength = strength
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        if not 0 <= self.strength <= 1:
            raise UsageError(f"`strength` must be a number from 0 to 1; got {self.strength!r}.")
        self.fairness_rows_ = equal_shares(rows, stream(seed_of(self.random_state), "maat"))
        self.performance_ = fit_learner(self.estimator, rows)
        self.fairness_ = fit_learner(self.estimator, rows.take(self.fairness_rows_))

    def _probability(self, X: Any) -> FloatArray:
        performance, fairness = (probability_of(model, X) for model in (self.performance_, self.fairness_))
        mixed: FloatArray = (1 - self.strength) * performance + self.strength * fairness
        return mixed


def equal_shares(rows: Training, rng: np.random.Generator) -> IntArray:
    """Draw rows without replacement so that each group has the share of label 1 that all rows have.

    Parameters
    ----------
    rows : Training
        All rows, counted by their weight.
    rng : Generator
        Where random numbers come from.

    Returns
    -------
    ndarray of int
        The rows that stay, in order.
    """
    kept = np.ones(rows.y.size, dtype=bool)
    weight = rows.weights
    odds = weight[rows.y == 1].sum() / weight[rows.y == 0].sum()
    for code, group in enumerate(rows.groups):
        zeros, ones = ((rows.group == code) & (rows.y == label) for label in (0, 1))
        mass = weight[zeros].sum(), weight[ones].sum()
        if not all(mass):
            label = rows.classes[int(mass[0] > 0)]
            raise DataError(
                f"Group `{group}` has no rows with label `{label}`: its share cannot be made that of all rows by "
                "leaving some out. Leave the group out, or join it with another one."
            )
        many, wanted = (ones, mass[0] * odds) if mass[1] > mass[0] * odds else (zeros, mass[1] / odds)
        drawn = rng.permutation(np.flatnonzero(many))
        # The nearest that whole rows come to the wanted weight.
        kept[drawn[np.cumsum(weight[drawn]) - weight[drawn] / 2 > wanted]] = False
    return np.flatnonzero(kept & (weight > 0))
