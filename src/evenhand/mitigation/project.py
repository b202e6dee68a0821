"""Project: take the sensitive directions out of the inputs before a model sees them.

The simplest repair of [maity2021] sec. 4.2: x becomes x - QQ'x, where Q spans the directions that predict the
protected attributes. A model behind it cannot use them, though it may still use what is correlated with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.arrays import FloatArray
from evenhand.errors import DataError
from evenhand.kernels.shared.logistic import fit_logistic
from evenhand.similarity.metric import orthonormal


def sensitive_directions(X: FloatArray, sensitive: ArrayLike, l2: float = 1.0) -> FloatArray:
    """Return one direction per attribute value that predicts it, by converged logistic regressions.

    Parameters
    ----------
    X : ndarray, shape (rows, inputs)
        Standardised inputs.
    sensitive : array, shape (rows,) or (rows, attributes)
        Protected attributes; more than two values give one direction per value.
    l2 : float
        Ridge penalty of each regression.

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
            fit = fit_logistic(X, (column == value).astype(np.float64), l2=l2)
            found.append(fit.coef)
    return np.vstack(found)


class ProjectSensitive(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Remove the sensitive directions from the inputs.

    Parameters
    ----------
    directions : array, shape (r, inputs), optional
        Directions to remove; without them they are learned from `sensitive` in `fit`.
    l2 : float
        Ridge penalty of the regressions that learn them.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> ProjectSensitive(directions=[[1.0, 0.0]]).fit_transform(X)[:, 0].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, directions: ArrayLike | None = None, *, l2: float = 1.0) -> None:
        self.directions = directions
        self.l2 = l2

    def fit(self, X: ArrayLike, y: Any = None, *, sensitive: ArrayLike | None = None) -> ProjectSensitive:
        """Learn, or take over, the directions; in a pipeline pass ``projectsensitive__sensitive=``."""
        data = validate_data(self, X, dtype=np.float64)
        if self.directions is not None:
            found = np.atleast_2d(np.asarray(self.directions, dtype=np.float64))
        elif sensitive is not None:
            found = sensitive_directions(data, sensitive, self.l2)
        else:
            raise DataError("ProjectSensitive needs `directions`, or the attributes as `sensitive` in `fit`.")
        if found.shape[1] != data.shape[1]:
            raise DataError(f"`directions` are for {found.shape[1]} inputs; X has {data.shape[1]}.")
        self.basis_ = orthonormal(found)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the inputs without their sensitive part."""
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False)
        out: FloatArray = data - (data @ self.basis_) @ self.basis_.T
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the inputs, which stay the same."""
        names = getattr(self, "feature_names_in_", None) if input_features is None else input_features
        return np.asarray([f"x{j}" for j in range(self.n_features_in_)] if names is None else names, dtype=object)
