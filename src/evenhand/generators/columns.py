"""Columns of a table: which are numbers, which are categories, and their way into a matrix and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray

Columns = Mapping[str, NDArray[Any]]

# A column of numbers with at most this many distinct values is treated as a category.
FEW = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnKind:
    """One column as a generator sees it."""

    name: str  # its name
    categories: NDArray[Any] | None  # its values, sorted, when it is a category; None for numbers
    whole: bool  # whether all its numbers are whole
    dtype: np.dtype[Any]  # of the values
    # Range of its numbers: nothing beyond what was seen is made up.
    low: float = -np.inf
    high: float = np.inf

    @property
    def size(self) -> int:
        """How many categories it has."""
        return 0 if self.categories is None else int(self.categories.size)

    def codes(self, values: NDArray[Any]) -> IntArray:
        """Return each value's place among the categories; -1 for one never seen."""
        assert self.categories is not None
        given = _sortable(values)
        at = np.minimum(np.searchsorted(self.categories, given), self.categories.size - 1)
        return np.where(self.categories[at] == given, at, -1)

    def one_hot(self, values: NDArray[Any]) -> FloatArray:
        """Return one column per category, 1 where a value is it."""
        return np.asarray(self.codes(values)[:, None] == np.arange(self.size), dtype=float)

    def restore(self, numbers: FloatArray) -> NDArray[Any]:
        """Return numbers (or codes) as values of the column's own kind."""
        if self.categories is not None:
            return np.asarray(self.categories[numbers.astype(np.int64)].astype(self.dtype))
        inside = np.clip(numbers, self.low, self.high)
        return np.asarray((np.round(inside) if self.whole else inside).astype(self.dtype))


def _sortable(values: NDArray[Any]) -> NDArray[Any]:
    values = np.asarray(values)
    return values.astype(str) if values.dtype == object else values


def describe(columns: Columns) -> tuple[ColumnKind, ...]:
    """Decide for each column whether it holds numbers or categories.

    Examples
    --------
    >>> kinds = describe({"age": np.arange(50), "sex": np.array(["F", "M"] * 25)})
    >>> [k.categories is None for k in kinds]
    [True, False]
    """
    kinds = []
    for name, values in columns.items():
        given = _sortable(values)
        distinct = np.unique(given)
        number = given.dtype.kind in "iuf" and distinct.size > FEW
        whole = bool(given.dtype.kind in "iu" or (number and np.all(distinct == np.round(distinct))))
        kinds.append(
            ColumnKind(
                name=name,
                categories=None if number else distinct,
                whole=whole,
                dtype=np.asarray(values).dtype,
                low=float(distinct[0]) if number else -np.inf,
                high=float(distinct[-1]) if number else np.inf,
            )
        )
    return tuple(kinds)


def encode(kinds: tuple[ColumnKind, ...], columns: Columns, like: Columns) -> FloatArray:
    """Return a table as a matrix: numbers standardised as in `like`, categories one-hot.

    Parameters
    ----------
    kinds : tuple of ColumnKind
        From `describe`.
    columns, like : mapping of str to ndarray
        The table, and the one whose means and deviations are used.

    Returns
    -------
    ndarray, shape (rows, inputs)
    """
    parts = []
    for kind in kinds:
        if kind.categories is None:
            base = np.asarray(like[kind.name], dtype=float)
            spread = base.std() or 1.0
            parts.append(((np.asarray(columns[kind.name], dtype=float) - base.mean()) / spread)[:, None])
        else:
            parts.append(kind.one_hot(columns[kind.name]))
    return np.concatenate(parts, axis=1)
