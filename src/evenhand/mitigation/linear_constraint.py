"""Linear constraint: a linear model whose mean score among true ones is the same in every group.

For a linear score w'x the means agree when w'u = 0, where u is the difference of the groups' mean inputs among true
ones. One input i is eliminated: every other input becomes x_j - x_i u_j / u_i, and any linear learner on these keeps
the constraint. (Donini, Oneto, Ben-David, Shawe-Taylor and Pontil, "Empirical risk minimization under fairness
constraints", NeurIPS 2018, sec. 4; as audited in Si, Murthy, Blanchet and Nguyen, ICML 2021.)

Where it fails: equal mean scores are not equal rates of decisions; where the groups' scores have other shapes the true
positive rates still differ. Nothing is asked among true zeros. The constraint holds on the rows of training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.arrays import FloatArray
from evenhand.errors import DataError, UsageError
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner
from evenhand.mitigation.front import join, split_learner

#: A difference of means smaller than this, beside the inputs' own size, is none.
_NOTHING = 1e-10


class LinearConstraint(Mitigator):
    """A linear learner whose mean score among true ones is the same in every group.

    Parameters
    ----------
    estimator : estimator, optional
        A linear classifier (one with `coef_`), alone or as the last step of a pipeline; a logistic regression by
        default. Without a pipeline it gets standardised numbers and one column for each text.

    Attributes
    ----------
    decides_as_ : pipeline
        Encoding, elimination and learner.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 400)
    >>> X = rng.normal(size=(400, 3)) + np.array([1.0, 0.0, 0.0]) * (group == "a")[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=400) > 0).astype(int)
    >>> model = LinearConstraint().fit(X, y, sensitive_features=group)
    >>> score = model.decides_as_.decision_function(X)
    >>> a, b = (score[(y == 1) & (group == g)].mean() for g in ("a", "b"))
    >>> bool(abs(a - b) < 1e-9)
    True
    """

    about: ClassVar[About] = About(
        stage="in",
        needs="a linear learner; true ones in every group",
        changes="the inputs: one of them is eliminated for each group beyond the first",
        cost="1 fit",
    )

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def _fit(self, rows: Training) -> None:
        front, last, behind = split_learner(self.estimator, rows, numbers=True)
        equal = EqualMeans().fit(behind.X, rows.y, group=rows.group, weight=rows.weight)
        learner = fit_learner(last, replace(behind, X=equal.transform(behind.X)))
        if getattr(learner, "coef_", None) is None:
            raise UsageError(
                f"The learner {type(learner).__name__} is not linear (it has no `coef_`), and the constraint is on a "
                "linear score. Use a linear learner such as logistic regression or a linear SVM."
            )
        self.decides_as_ = join([*front, ("equal", equal)], "learner", learner)


class EqualMeans(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace the inputs by combinations whose means among true ones are the same in every group.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 0.0], [9.0, 9.0]])
    >>> equal = EqualMeans().fit(X, [1, 1, 1, 0], group=[0, 0, 1, 0])
    >>> equal.transform(X)[:3].tolist()
    [[0.0], [2.0], [1.0]]
    """

    def fit(self, X: ArrayLike, y: ArrayLike, *, group: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Learn which inputs to eliminate.

        Parameters
        ----------
        X : array, shape (rows, inputs)
            Numbers.
        y : array, shape (rows,)
            0 and 1.
        group : array, shape (rows,)
            The group of each row.
        weight : array, shape (rows,), optional
            Weight of each row.

        Returns
        -------
        EqualMeans
            Itself.
        """
        data = validate_data(self, X, dtype=np.float64)
        counted = np.ones(len(data)) if weight is None else np.asarray(weight, dtype=np.float64)
        counted = np.where(np.asarray(y) == 1, counted, 0.0)
        codes = np.asarray(group)
        means = []
        for value in np.unique(codes):
            share = np.where(codes == value, counted, 0.0)
            if not share.any():
                raise DataError(f"Group {value} has no row with label 1; the constraint compares means among those.")
            means.append(share @ data / share.sum())
        self.matrix_, self.kept_ = _eliminate(np.array(means), np.abs(data).max(axis=0))
        if not self.kept_.size:
            raise DataError(
                f"{data.shape[1]} inputs are too few for {len(means)} groups: equal means leave no input to learn from."
            )
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the combinations, one for each input that is left."""
        check_is_fitted(self)
        out: FloatArray = validate_data(self, X, dtype=np.float64, reset=False) @ self.matrix_
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the inputs that are left."""
        names = [f"x{j}" for j in range(self.n_features_in_)] if input_features is None else input_features
        return np.asarray(names, dtype=object)[self.kept_]


def _eliminate(means: FloatArray, size: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the matrix from inputs to combinations with equal means, and the places of the inputs that are left.

    The difference of the first group and each other one is a constraint; in turn, the input in which it is largest is
    eliminated.
    """
    matrix, kept = np.eye(means.shape[1]), np.arange(means.shape[1])
    for gap in means[0] - means[1:]:
        u = gap @ matrix  # the same difference in the combinations so far
        if not kept.size or np.abs(u).max() <= _NOTHING * max(1.0, float(size.max())):
            continue
        i = int(np.argmax(np.abs(u)))
        matrix = np.delete(matrix - np.outer(matrix[:, i] / u[i], u), i, axis=1)
        kept = np.delete(kept, i)
    return matrix, kept
