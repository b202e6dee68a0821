"""Group-by sums of records: the only place after intake that walks over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.intake import Attribute, AuditData


def confusion(data: AuditData, codes: IntArray, n_groups: int) -> IntArray:
    """Count rows by group, outcome and decision.

    Parameters
    ----------
    data : AuditData
        Records; without an outcome all rows count as outcome 0.
    codes : ndarray of int, shape (records,)
        Each record's group.
    n_groups : int
        How many groups there are.

    Returns
    -------
    ndarray of int, shape (n_groups, 4)
        True negatives, false positives, false negatives, true positives.

    Examples
    --------
    >>> from evenhand.intake import AuditData
    >>> data = AuditData.from_arrays(outcome=[0, 1, 1], decision=[0, 0, 1], groups={"g": ["a", "a", "b"]})
    >>> confusion(data, data.attributes[0].codes, 2).tolist()
    [[1, 0, 1, 0], [0, 0, 0, 1]]
    """
    return _by_cell(data, codes, n_groups, data.count).astype(np.int64)


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedTable:
    """Sums of sampling weights and of their squares by group, outcome and decision.

    Parameters
    ----------
    w, ww : ndarray, shape (n_groups, 4)
        Sum of weights, sum of squared weights.
    """

    w: FloatArray
    ww: FloatArray


def weighted_confusion(data: AuditData, codes: IntArray, n_groups: int) -> WeightedTable:
    """Sum sampling weights by group, outcome and decision.

    Parameters
    ----------
    data : AuditData
        Records with sampling weights.
    codes : ndarray of int, shape (records,)
        Each record's group.
    n_groups : int
        How many groups there are.

    Returns
    -------
    WeightedTable

    Examples
    --------
    >>> from evenhand.intake import AuditData
    >>> data = AuditData.from_arrays(outcome=[0, 1], decision=[0, 1], groups={"g": ["a", "b"]}, weight=[0.5, 2.5])
    >>> weighted_confusion(data, data.attributes[0].codes, 2).ww.tolist()
    [[0.25, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 6.25]]
    """
    w, ww = weight_sums(data)
    return WeightedTable(w=_by_cell(data, codes, n_groups, w), ww=_by_cell(data, codes, n_groups, ww))


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
    """Return each record's cell of the confusion table: decision plus twice the outcome.

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


def _by_cell(data: AuditData, codes: IntArray, n_groups: int, amounts: NDArray[np.generic]) -> FloatArray:
    sums = np.bincount(4 * codes + cells_of(data), weights=amounts, minlength=4 * n_groups)
    return np.asarray(sums, dtype=np.float64).reshape(n_groups, 4)
