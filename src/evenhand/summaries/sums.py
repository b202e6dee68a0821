"""Group-by sums of records: the only place after intake that walks over all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import AnyArray, FloatArray, IntArray
from evenhand.intake import Attribute, AuditData


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedTable:
    """Sums of sampling weights and of their squares by group, outcome and decision, each of shape (groups, 4)."""

    w: FloatArray
    ww: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SortedRecords:
    """Records in the order of a value, and among equals of their weight.

    Parameters
    ----------
    order : ndarray of int, shape (records,)
        Places of the records.
    value : ndarray, shape (records,)
        Rising.
    count : ndarray of int, shape (records,)
        Rows each stands for.
    weight : ndarray or None
        Sampling weight of each.
    """

    order: IntArray
    value: FloatArray
    count: IntArray
    weight: FloatArray | None


class Sums:
    """The sums of some records, each made once and shared by all metrics that ask for it.

    Parameters
    ----------
    data : AuditData
        Records; without a decision or a binary outcome it counts as 0.

    Examples
    --------
    >>> from evenhand.intake import AuditData
    >>> data = AuditData.from_arrays(outcome=[0, 1, 1], decision=[0, 0, 1], groups={"g": ["a", "a", "b"]})
    >>> sums = Sums(data)
    >>> sums.confusion(data.attributes[0]).tolist()  # true negatives, false positives, false negatives, true positives
    [[1, 0, 1, 0], [0, 0, 0, 1]]
    >>> sums.cells.tolist()
    [0, 2, 3]
    """

    def __init__(self, data: AuditData) -> None:
        self.data = data
        self._tables: dict[str, IntArray] = {}
        self._weighted: dict[str, WeightedTable] = {}
        self._in_strata: dict[str, IntArray] = {}
        self._sorted: tuple[str, SortedRecords] | None = None

    @functools.cached_property
    def cells(self) -> IntArray:
        """Each record's cell of the confusion table: decision plus twice the outcome."""
        return cells_of(self.data)

    def confusion(self, attribute: Attribute) -> IntArray:
        """Count rows by group, outcome and decision, shape (groups, 4)."""
        if attribute.name not in self._tables:
            self._tables[attribute.name] = self._by_cell(attribute, self.data.count).astype(np.int64)
        return self._tables[attribute.name]

    def weighted_confusion(self, attribute: Attribute) -> WeightedTable:
        """Sum sampling weights by group, outcome and decision."""
        if attribute.name not in self._weighted:
            w, ww = (self._by_cell(attribute, part) for part in weight_sums(self.data))
            self._weighted[attribute.name] = WeightedTable(w=w, ww=ww)
        return self._weighted[attribute.name]

    def _by_cell(self, attribute: Attribute, amounts: AnyArray) -> FloatArray:
        n = len(attribute.labels)
        sums = np.bincount(4 * attribute.codes + self.cells, weights=amounts, minlength=4 * n)
        return np.asarray(sums, dtype=np.float64).reshape(n, 4)

    def confusion_in_strata(self, attribute: Attribute) -> IntArray:
        """Count rows by group, stratum, outcome and decision, shape (groups, strata, 4)."""
        key = attribute.name
        if key not in self._in_strata:
            parts = [self.in_strata(attribute, self.data.count * (self.cells == cell)) for cell in range(4)]
            self._in_strata[key] = np.stack(parts, -1).astype(np.int64)
        return self._in_strata[key]

    def in_strata(self, attribute: Attribute, amounts: AnyArray) -> FloatArray:
        """Add up an amount per record by group and stratum, shape (groups, strata)."""
        strata = self.data.strata
        assert strata is not None
        shape = (len(attribute.labels), len(strata.labels))
        place = attribute.codes * shape[1] + strata.codes
        sums = np.bincount(place, weights=amounts, minlength=shape[0] * shape[1])
        return np.asarray(sums, dtype=np.float64).reshape(shape)

    def by_value(self, name: str, make: Callable[[], FloatArray]) -> SortedRecords:
        """Sort the records by a value for all attributes; the last one asked for, by its name, is kept."""
        if self._sorted is None or self._sorted[0] != name:
            value, count, weight = make(), self.data.count, self.data.weight
            # Whoever asks adds up equal values: their order does not matter, and a sort that keeps it is slower.
            order = np.argsort(value) if weight is None else np.lexsort((weight, value))
            ordered = None if weight is None else weight[order]
            self._sorted = (name, SortedRecords(order=order, value=value[order], count=count[order], weight=ordered))
        return self._sorted[1]


def group_sizes(data: AuditData, attribute: Attribute) -> IntArray:
    """Count the rows of each group.

    Parameters
    ----------
    data : AuditData
        Records.
    attribute : Attribute
        Whose groups.

    Returns
    -------
    ndarray of int, shape (groups,)

    Examples
    --------
    >>> from evenhand.intake import AuditData
    >>> data = AuditData.from_arrays(decision=[0, 1, 1], groups={"g": ["a", "a", "b"]})
    >>> group_sizes(data, data.attributes[0]).tolist()
    [2, 1]
    """
    sums = np.bincount(attribute.codes, weights=data.count, minlength=len(attribute.labels))
    return sums.astype(np.int64)


def weight_sums(data: AuditData) -> tuple[FloatArray, FloatArray]:
    """Return each record's sum of sampling weights and of their squares; counts when there are none.

    Parameters
    ----------
    data : AuditData
        Records.

    Returns
    -------
    w, ww : ndarray, shape (records,)

    Examples
    --------
    >>> from evenhand.intake import AuditData
    >>> data = AuditData.from_arrays(decision=[0, 1], groups={"g": ["a", "b"]}, weight=[0.5, 2.5])
    >>> [a.tolist() for a in weight_sums(data)]
    [[0.5, 2.5], [0.25, 6.25]]
    """
    count = data.count.astype(float)
    if data.weight is None or data.weight_square is None:
        return count, count
    return count * data.weight, data.weight_square


def cells_of(data: AuditData) -> IntArray:
    """Return each record's cell of the confusion table: decision plus twice the outcome, 0 where it is unknown.

    Parameters
    ----------
    data : AuditData
        Records; without a decision or a binary outcome it counts as 0.

    Returns
    -------
    ndarray of int, shape (records,)

    Examples
    --------
    >>> from evenhand.intake import AuditData
    >>> data = AuditData.from_arrays(outcome=[0, 1], decision=[1, 1], groups={"g": ["a", "b"]})
    >>> cells_of(data).tolist()
    [1, 3]
    """
    cell = np.zeros(data.count.shape, dtype=np.int64)
    if data.decision is not None:
        cell += data.decision.astype(np.int64)
    if data.outcome is not None and data.outcome_kind == "binary":
        cell += 2 * data.outcome.astype(np.int64)
    return cell
