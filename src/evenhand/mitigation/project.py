"""Project: take the sensitive directions out of the inputs before a learner sees them.

The columns become numbers x, logistic regressions find the directions that predict the groups, and x becomes x - QQ'x,
where Q spans those directions. (The simplest repair in Maity, Xue, Yurochkin and Sun, "Statistical inference for
individual fairness", ICLR 2021, sec. 4.2; the idea is that of Bolukbasi et al., NeurIPS 2016.)

Where it fails: what was removed predicts the groups linearly. A learner that bends, such as a tree or a network, may
find the groups again in what is left, and even a linear one may use what is correlated with them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.arrays import FloatArray
from evenhand.errors import DataError
from evenhand.kernels.shared.logistic import fit_logistic
from evenhand.mitigation.estimator import About, Mitigator, Training, fit_learner
from evenhand.mitigation.front import as_matrix, join, split_learner
from evenhand.similarity.metric import orthonormal


def sensitive_directions(
    X: FloatArray, sensitive: ArrayLike, l2: float = 1.0, weight: FloatArray | None = None
) -> FloatArray:
    """Return one direction per attribute value that predicts it, by converged logistic regressions.

    Parameters
    ----------
    X : ndarray, shape (rows, inputs)
        Standardised inputs.
    sensitive : array, shape (rows,) or (rows, attributes)
        Protected attributes; more than two values give one direction per value.
    l2 : float
        Ridge penalty of each regression.
    weight : ndarray, shape (rows,), optional
        Weight of each row.

    Returns
    -------
    ndarray, shape (directions, inputs)

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> sensitive_directions(X, [0, 0, 1, 1]).shape
    (1, 2)
    """
    columns = np.asarray(sensitive)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or columns.shape[0] != X.shape[0]:
        raise DataError(
            f"`sensitive` has shape {np.shape(sensitive)}; it needs one row for each of the {X.shape[0]} rows."
        )
    found: list[FloatArray] = []
    for column in columns.T:
        values = np.unique(column)
        if values.size < 2:
            raise DataError(f"A sensitive attribute has the single value {values.tolist()}; at least two are needed.")
        for value in values[1:] if values.size == 2 else values:
            fit = fit_logistic(X, (column == value).astype(np.float64), weight, l2)
            found.append(fit.coef)
    return np.vstack(found)


def directions_of(rows: Training, directions: ArrayLike | None, l2: float) -> FloatArray:
    """Return directions that were given, checked, or else those that predict the groups of these rows of numbers."""
    if directions is None:
        return sensitive_directions(rows.X, rows.group, l2, rows.weight)
    given = np.atleast_2d(np.asarray(directions, dtype=np.float64))
    if given.shape[1] != rows.X.shape[1]:
        raise DataError(f"`directions` are for {given.shape[1]} inputs; X has {rows.X.shape[1]}.")
    return given


class Project(Mitigator):
    """A learner that sees the inputs without the directions that predict the groups.

    Parameters
    ----------
    estimator : estimator, optional
        The learner; a logistic regression by default. In a pipeline the directions are removed before the last step,
        from the numbers that the steps before it make. A learner without a pipeline gets standardised numbers and one
        column for each text.
    directions : array, shape (r, inputs), optional
        Directions to remove from those numbers; by default they are learned from the groups.
    l2 : float
        Ridge penalty of the regressions that learn them.

    Attributes
    ----------
    decides_as_ : pipeline
        Encoding, projection and learner.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 200)
    >>> X = rng.normal(size=(200, 2)) + np.array([2.0, 0.0]) * (group == "a")[:, None]
    >>> model = Project().fit(X, X.sum(axis=1) > 1, sensitive_features=group)
    >>> a, b = (model.predict(X[group == g]).mean() for g in ("a", "b"))
    >>> bool(abs(a - b) < 0.2)
    True
    """

    about: ClassVar[About] = About(
        stage="in",
        needs="groups that are predicted by directions in the inputs",
        changes="the inputs: the directions that predict the groups are removed",
        cost="1 fit, and a logistic regression for each group",
    )

    def __init__(self, estimator: Any = None, *, directions: ArrayLike | None = None, l2: float = 1.0) -> None:
        self.estimator = estimator
        self.directions = directions
        self.l2 = l2

    def _fit(self, rows: Training) -> None:
        front, last, behind = split_learner(self.estimator, rows, numbers=True)
        project = ProjectSensitive(directions_of(behind, self.directions, self.l2)).fit(behind.X)
        fitted = fit_learner(last, replace(behind, X=project.transform(behind.X)))
        self.decides_as_ = join([*front, ("project", project)], "learner", fitted)


class ProjectSensitive(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Remove directions from the inputs.

    Parameters
    ----------
    directions : array, shape (r, inputs)
        Directions to remove.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> ProjectSensitive(directions=[[1.0, 0.0]]).fit_transform(X)[:, 0].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, directions: ArrayLike) -> None:
        self.directions = directions

    def fit(self, X: ArrayLike, y: Any = None) -> ProjectSensitive:
        """Make an orthonormal basis of the directions."""
        data = validate_data(self, as_matrix(X), dtype=np.float64)
        given = np.atleast_2d(np.asarray(self.directions, dtype=np.float64))
        if given.shape[1] != data.shape[1]:
            raise DataError(f"`directions` are for {given.shape[1]} inputs; X has {data.shape[1]}.")
        self.basis_ = orthonormal(given)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the inputs without their part along the directions."""
        check_is_fitted(self)
        data = validate_data(self, as_matrix(X), dtype=np.float64, reset=False)
        out: FloatArray = data - (data @ self.basis_) @ self.basis_.T
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the inputs, which stay the same."""
        names = [f"x{j}" for j in range(self.n_features_in_)] if input_features is None else input_features
        return np.asarray(names, dtype=object)
