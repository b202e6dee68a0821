"""Records of many groups as sorted lines, one group after the other: work on a group costs its own lines only.

A table with one column for each group costs lines times groups, most of them zeros where values are continuous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class GroupLines:
    """One line for each distinct (value, weight) of each group, rising within the group."""

    values: FloatArray  # (L,)
    weights: FloatArray | None  # (L,), None where every weight is 1
    counts: tuple[IntArray, ...]  # (L,) each: rows of every kind on a line
    cuts: IntArray  # (K + 1,): group k has the lines from cuts[k] up to cuts[k + 1]

    def group(self, k: int) -> tuple[FloatArray, FloatArray | None, tuple[IntArray, ...]]:
        """Return the values, weights and counts of one group."""
        part = slice(self.cuts[k], self.cuts[k + 1])
        weights = None if self.weights is None else self.weights[part]
        return self.values[part], weights, tuple(count[part] for count in self.counts)

    def together(self, members: Sequence[int], kind: int) -> tuple[FloatArray, FloatArray | None, IntArray]:
        """Return the distinct lines of several groups that have rows of a kind, sorted, with their counts."""
        parts = [slice(self.cuts[k], self.cuts[k + 1]) for k in members]
        counts = np.concatenate([self.counts[kind][part] for part in parts])
        used = np.flatnonzero(counts)
        values = np.concatenate([self.values[part] for part in parts])[used]
        weights = None if self.weights is None else np.concatenate([self.weights[part] for part in parts])[used]
        whole = group_lines(values, weights, (counts[used],), np.zeros(used.size, dtype=np.int64), 1)
        return whole.values, whole.weights, whole.counts[0]


def group_lines(
    values: FloatArray, weights: FloatArray | None, counts: Sequence[IntArray], codes: IntArray, n_groups: int
) -> GroupLines:
    """Sort records into lines; their order cannot matter, nor how repeated rows are written down.

    Parameters
    ----------
    values, weights : ndarray, shape (R,)
        The records' contents; None for weights that are all 1.
    counts : sequence of int ndarray, shape (R,) each
        Rows of every kind that a record stands for.
    codes : ndarray of int, shape (R,)
        Group of each record, 0 to n_groups - 1.
    n_groups : int
        K.

    Examples
    --------
    >>> lines = group_lines(np.array([2.0, 1.0, 2.0]), None, [np.array([1, 1, 3])], np.array([0, 0, 0]), 1)
    >>> lines.values.tolist(), lines.counts[0].tolist(), lines.cuts.tolist()
    ([1.0, 2.0], [1, 4], [0, 2])
    """
    # Records often come sorted: one sort then serves many groupings. Small whole numbers are sorted by counting.
    code = codes.astype(np.uint16 if n_groups <= 2**16 else np.int64)
    order = np.argsort(code, kind="stable")
    if not _rising(values, weights):
        sort = np.argsort(values, kind="stable") if weights is None else np.lexsort((weights, values))
        order = sort[np.argsort(code[sort], kind="stable")]
    v, w = values[order], None if weights is None else weights[order]
    cuts = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=n_groups))]).astype(np.int64)
    new = np.ones(v.size, dtype=np.bool_)
    new[1:] = v[1:] != v[:-1]
    if w is not None:
        new[1:] |= w[1:] != w[:-1]
    new[cuts[cuts < v.size]] = True
    if new.all():
        return GroupLines(v, w, tuple(count[order] for count in counts), cuts)
    starts = np.flatnonzero(new)
    summed = tuple(np.add.reduceat(count[order], starts) for count in counts)
    return GroupLines(v[starts], None if w is None else w[starts], summed, np.searchsorted(starts, cuts))


def _rising(values: FloatArray, weights: FloatArray | None) -> bool:
    """Whether records are sorted by value, and among equals by weight."""
    rising = values[1:] >= values[:-1]
    if weights is not None:
        rising &= (values[1:] != values[:-1]) | (weights[1:] >= weights[:-1])
    return bool(rising.all())
