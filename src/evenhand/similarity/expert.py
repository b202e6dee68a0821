"""Metrics an expert states: a matrix, or directions and columns that should not matter; and how a statement is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.similarity.metric import FairMetric, MetricRows, Similarity, largest_inputs, orthonormal
from evenhand.similarity.subspace import SensitiveSubspace


class ExpertMatrix:
    """The squared distance d'Sd with a matrix S that an expert gives.

    Parameters
    ----------
    matrix : array, shape (inputs, inputs)
        Symmetric and positive semi-definite, in the model's own inputs and units. Directions it maps to zero are
        free: people who differ only there are alike.

    Examples
    --------
    >>> ExpertMatrix([[0.0, 0.0], [0.0, 1.0]]).learned
    False
    """

    learned = False

    def __init__(self, matrix: ArrayLike) -> None:
        S = np.array(matrix, dtype=np.float64)
        if S.ndim != 2 or S.shape[0] != S.shape[1] or not np.all(np.isfinite(S)):
            raise UsageError(f"The metric's matrix must be square and finite; got shape {S.shape}.")
        if not np.allclose(S, S.T, atol=1e-10 * max(1.0, float(np.abs(S).max(initial=0.0)))):
            raise UsageError("The metric's matrix must be symmetric.")
        values = np.linalg.eigvalsh(S)
        if values.size and values[0] < -1e-9 * max(1.0, float(values[-1])):
            raise UsageError(
                f"The metric's matrix must not have negative eigenvalues; the smallest is {values[0]:.3g}."
            )
        self.matrix: FloatArray = (S + S.T) / 2

    def fit(self, rows: MetricRows) -> FairMetric:
        """Return the metric in the coordinates of these rows."""
        _check_width(self.matrix.shape[0], rows)
        units = rows.space.units
        return FairMetric(form=QuadraticForm(matrix=self.matrix * np.outer(units, units)), kind="expert matrix")


class Discounted:
    """Directions or columns that should not matter: moving along them costs nothing.

    Parameters
    ----------
    directions : array, shape (r, inputs), optional
        In the model's own inputs and units.
    columns : sequence of str, optional
        Columns (with all their categories) or single inputs.

    Examples
    --------
    >>> Discounted(columns=["gender"]).learned
    False
    """

    learned = False

    def __init__(self, directions: ArrayLike | None = None, *, columns: Sequence[str] = ()) -> None:
        self.directions = None if directions is None else np.atleast_2d(np.array(directions, dtype=np.float64))
        self.columns = tuple(columns)
        if self.directions is None and not self.columns:
            raise UsageError("Give `directions` or `columns` that should not matter.")

    def fit(self, rows: MetricRows) -> FairMetric:
        """Return the metric in the coordinates of these rows."""
        wide = rows.X.shape[1]
        parts = []
        if self.directions is not None:
            _check_width(self.directions.shape[1], rows)
            parts.append(self.directions / rows.space.units)
        if self.columns:
            parts.append(np.eye(wide)[rows.space.columns_of(self.columns)])
        basis = orthonormal(np.vstack(parts))
        return FairMetric(
            form=QuadraticForm(basis=basis),
            kind="directions that should not matter, as stated",
            details={"directions": [largest_inputs(v, rows.space.names) for v in basis.T]},
        )


def _check_width(width: int, rows: MetricRows) -> None:
    if width != rows.X.shape[1]:
        raise UsageError(
            f"The metric is for {width} inputs and the model has {rows.X.shape[1]}: {', '.join(rows.space.names[:8])}."
        )


def as_similarity(similarity: Any) -> Similarity:
    """Read what was given as `similarity`.

    Parameters
    ----------
    similarity : Similarity, array, sequence of str, str or None
        A recipe; a matrix; columns that should not matter; None for the directions that predict the groups.

    Returns
    -------
    Similarity

    Examples
    --------
    >>> type(as_similarity(None)).__name__, type(as_similarity("gender")).__name__
    ('SensitiveSubspace', 'Discounted')
    >>> type(as_similarity([[0.0, 0.0], [0.0, 1.0]])).__name__
    'ExpertMatrix'
    """
    if similarity is None:
        return SensitiveSubspace()
    if isinstance(similarity, Similarity):
        return similarity
    if isinstance(similarity, str):
        return Discounted(columns=[similarity])
    values = np.asarray(similarity)
    if values.dtype.kind in "UO":
        return Discounted(columns=[str(v) for v in values.ravel()])
    return ExpertMatrix(values)
