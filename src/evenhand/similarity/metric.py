"""A fair metric: who counts as similar to whom, as a squared distance between the model's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.errors import DataError
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.models.input_space import InputSpace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTable:
    """How many people of each group have each row of inputs."""

    name: str  # the attribute
    labels: tuple[str, ...]  # its groups
    table: FloatArray  # (rows, groups): counts; a resample has other counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricRows:
    """The people a metric is learned from, in the coordinates they are moved in; equal inputs are one row.

    Parameters
    ----------
    X : ndarray, shape (rows, inputs)
        Model inputs.
    groups : tuple of GroupTable
        Protected attributes with groups.
    continuous : mapping of str to ndarray, shape (rows,)
        Sum over a row's people of each protected attribute that is a number.
    count : ndarray, shape (rows,)
        People per row.
    space : InputSpace
        Names of the coordinates, and the way from columns to them.
    """

    X: FloatArray
    groups: tuple[GroupTable, ...]
    continuous: Mapping[str, FloatArray]
    count: FloatArray
    space: InputSpace

    def take(self, index: NDArray[Any]) -> MetricRows:
        """Return some of the rows, by number or by mark."""
        return replace(
            self,
            X=self.X[index],
            groups=tuple(replace(g, table=g.table[index]) for g in self.groups),
            continuous={name: sums[index] for name, sums in self.continuous.items()},
            count=self.count[index],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensitiveDirection:
    """One direction in which people of different groups differ."""

    attribute: str | None  # the protected attribute; None for a column that was stated
    # The group that lies further along the direction, by its place among the labels; None for a number.
    group: int | None
    direction: FloatArray  # (inputs,): of length one
    strength: float  # length of the coefficients it was made from; 1 for a column
    column: bool  # whether it is an input that itself holds the attribute
    label: str  # what it predicts, in words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FairMetric:
    """A fitted metric.

    Parameters
    ----------
    form : QuadraticForm
        The squared distance.
    kind : str
        How it was made, in words.
    learned : bool
        Whether it depends on data, and so should come from rows apart from the audited ones.
    parts : tuple of SensitiveDirection
        The directions it was made from, where it was learned from groups.
    details : mapping
        What the report says about it: penalty, directions with their largest inputs, singular values.
    """

    form: QuadraticForm
    kind: str
    learned: bool = False
    parts: tuple[SensitiveDirection, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Similarity(Protocol):
    """A recipe for a fair metric."""

    learned: bool

    def fit(self, rows: MetricRows) -> FairMetric:
        """Make the metric from these rows."""
        ...


@runtime_checkable
class Resampled(Protocol):
    """A recipe that brings its own examples, and so its own bootstrap."""

    def resampled(self, rng: np.random.Generator) -> Similarity:
        """Return the recipe with its examples drawn again."""
        ...


def orthonormal(directions: FloatArray, rank: int | None = None) -> FloatArray:
    """Return an orthonormal basis of the span of some directions, each scaled to length one first.

    Parameters
    ----------
    directions : ndarray, shape (r, inputs)
        Zero rows are ignored.
    rank : int, optional
        At most this many columns.

    Returns
    -------
    ndarray, shape (inputs, at most r)

    Examples
    --------
    >>> orthonormal(np.array([[2.0, 0.0], [4.0, 0.0]])).shape
    (2, 1)
    """
    length = np.linalg.norm(directions, axis=1)
    kept = directions[length > 1e-12] / length[length > 1e-12, None]
    if kept.shape[0] == 0:
        raise DataError("The fair metric has no sensitive direction: nothing in the inputs predicts the attributes.")
    u, s, _ = np.linalg.svd(kept.T, full_matrices=False)
    basis = u[:, s > 1e-7 * s[0]][:, :rank]
    # A fixed sign: the largest component is positive.
    sign = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])])
    return np.ascontiguousarray(basis * sign)


def angles(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the principal angles between two subspaces in degrees, largest last.

    Parameters
    ----------
    a, b : ndarray, shape (inputs, r)
        Orthonormal columns.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> turn = np.array([[np.cos(0.1)], [np.sin(0.1)]])
    >>> angles(np.array([[1.0], [0.0]]), turn).round(3).tolist()
    [5.73]
    """
    cosines = np.clip(np.linalg.svd(a.T @ b, compute_uv=False), 0.0, 1.0)
    return np.asarray(np.degrees(np.arccos(cosines)))


def largest_inputs(direction: FloatArray, names: tuple[str, ...], most: int = 5) -> list[dict[str, Any]]:
    """Name the inputs that weigh most in a direction."""
    order = np.argsort(-np.abs(direction), kind="stable")[:most]
    return [{"input": names[j], "weight": float(direction[j])} for j in order]
