"""All subgroups that are described by up to so many conditions, as sets of cells.

A cell is a combination of codes, one for each attribute. An item is a condition on one attribute: a set of its codes.
A subgroup is one item of each of a few attributes; it holds the cells that meet all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from evenhand.arrays import BoolArray, IntArray
from evenhand.kernels.shared.seeds import published_stream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lattice:
    """Subgroups with at least one cell, short descriptions first.

    Parameters
    ----------
    conditions : ndarray of int, shape (S, depth)
        The items of each subgroup, by their numbers over all attributes; -1 where it has fewer.
    members : csr_matrix, shape (S, C)
        1 where a cell belongs to a subgroup.
    item_attribute : ndarray of int, shape (I,)
        The attribute of each item.
    """

    conditions: IntArray
    members: sparse.csr_matrix
    item_attribute: IntArray

    @property
    def depth(self) -> IntArray:
        """How many conditions describe each subgroup."""
        return np.asarray((self.conditions >= 0).sum(axis=1))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Add up values of cells, shape (C,) or (C, b), over each subgroup."""
        return np.asarray(self.members @ values)

    def take(self, kept: IntArray | BoolArray) -> Lattice:
        """Return some of the subgroups."""
        return Lattice(conditions=self.conditions[kept], members=self.members[kept], item_attribute=self.item_attribute)


def sizes(memberships: Sequence[BoolArray], depth: int) -> tuple[int, int]:
    """Return how many descriptions there are, and a bound on the entries of the members' matrix for each cell.

    Parameters
    ----------
    memberships : sequence of ndarray of bool, each of shape (codes, items)
        For each attribute, which codes meet which items.
    depth : int
        The most conditions.

    Examples
    --------
    >>> sizes([np.eye(2, dtype=bool), np.eye(3, dtype=bool)], 2)
    (11, 3)
    """
    descriptions, entries = [1], [1]
    for codes in memberships:
        most = int(codes.sum(axis=1).max(initial=0))
        descriptions = _next_sizes(descriptions, codes.shape[1], depth)
        entries = _next_sizes(entries, most, depth)
    return sum(descriptions) - 1, sum(entries) - 1


def _next_sizes(so_far: list[int], more: int, depth: int) -> list[int]:
    """Return the elementary symmetric sums when one attribute is added."""
    longer = [*so_far, 0]
    return [a + more * b for a, b in zip(longer, [0, *so_far], strict=True)][: depth + 1]


def build_lattice(codes: IntArray, memberships: Sequence[BoolArray], depth: int) -> Lattice:
    """List the subgroups that have at least one cell.

    Parameters
    ----------
    codes : ndarray of int, shape (C, d)
        The code of each attribute in each cell; -1 meets no item.
    memberships : sequence of ndarray of bool, each of shape (codes, items)
        For each attribute, which codes meet which items.
    depth : int
        The most conditions.

    Returns
    -------
    Lattice

    Examples
    --------
    >>> lattice = build_lattice(np.array([[0, 0], [0, 1], [1, 1]]), [np.eye(2, dtype=bool)] * 2, 2)
    >>> lattice.conditions.tolist()
    [[0, -1], [1, -1], [2, -1], [3, -1], [0, 2], [0, 3], [1, 3]]
    >>> lattice.members.toarray().sum(axis=1).tolist()
    [2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]
    """
    first = np.cumsum([0, *(m.shape[1] for m in memberships)])
    item_attribute = np.repeat(np.arange(len(memberships)), [m.shape[1] for m in memberships])
    pairs = [_cells_of_items(codes[:, j], m) for j, m in enumerate(memberships)]
    conditions: list[IntArray] = []
    rows: list[IntArray] = []
    columns: list[IntArray] = []
    found = 0
    for length in range(1, min(depth, len(memberships)) + 1):
        for chosen in combinations(range(len(memberships)), length):
            cell, key = _crossed([pairs[j] for j in chosen], [memberships[j].shape[1] for j in chosen])
            names, place = np.unique(key, return_inverse=True)
            described = np.full((names.size, depth), -1, dtype=np.int64)
            for at in range(length - 1, -1, -1):
                items = memberships[chosen[at]].shape[1]
                described[:, at] = names % items + first[chosen[at]]
                names = names // items
            conditions.append(described)
            rows.append(place.reshape(-1) + found)
            columns.append(cell)
            found += described.shape[0]
    shape = (found, codes.shape[0])
    row, column = (np.concatenate(part) if part else np.empty(0, dtype=np.int64) for part in (rows, columns))
    members = sparse.csr_matrix((np.ones(row.size, dtype=np.float32), (row, column)), shape=shape)
    return Lattice(
        conditions=np.concatenate(conditions) if conditions else np.empty((0, depth), dtype=np.int64),
        members=members,
        item_attribute=item_attribute,
    )


def _cells_of_items(codes: IntArray, membership: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the pairs of cell and item, cells rising."""
    known = codes >= 0
    meets = np.zeros((codes.size, membership.shape[1]), dtype=bool)
    meets[known] = membership[codes[known]]
    cell, item = np.nonzero(meets)
    return cell, item


def _crossed(pairs: Sequence[tuple[IntArray, IntArray]], items: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return each cell with each combination of its items, as one number."""
    cell, key = pairs[0]
    for (other, item), size in zip(pairs[1:], items[1:], strict=True):
        start = np.searchsorted(other, cell, side="left")
        many = np.searchsorted(other, cell, side="right") - start
        again = np.repeat(np.arange(cell.size), many)
        step = np.arange(again.size) - np.repeat(np.cumsum(many) - many, many)
        cell, key = cell[again], key[again] * size + item[start[again] + step]
    return cell, key


def one_of_each(lattice: Lattice, count: IntArray) -> IntArray:
    """Return the places of subgroups that are the same question only once.

    Two subgroups ask the same where they have the same people, or where one holds just the people that the other
    leaves out. The shorter description stays; of two that divide everybody, the one with fewer people.

    Parameters
    ----------
    lattice : Lattice
        The subgroups.
    count : ndarray of int, shape (C,)
        People in each cell.

    Returns
    -------
    ndarray of int
        Rising; without subgroups of nobody or of everybody.

    Examples
    --------
    >>> lattice = build_lattice(np.array([[0, 0], [0, 1], [1, 1]]), [np.eye(2, dtype=bool)] * 2, 2)
    >>> [lattice.conditions[i].tolist() for i in one_of_each(lattice, np.array([5, 4, 3]))]
    [[1, -1], [2, -1], [0, 3]]
    """
    there = count > 0
    size, everyone = lattice.sums(np.where(there, count, 0).astype(np.float64)), float(count.sum())
    # Random whole numbers whose sums are exact: two different sets have the same two sums by chance only, at most once
    # in 2**60 with a million cells.
    largest = 2 ** (52 - count.size.bit_length())
    marks = published_stream(8_191).integers(1, largest, size=(count.size, 2)).astype(np.float64) * there[:, None]
    own, all_marks = lattice.sums(marks), marks.sum(axis=0)
    smaller = (size < everyone - size) | ((size == everyone - size) & (own[:, 0] < all_marks[0] / 2))
    mark = np.where(smaller[:, None], own, all_marks - own)
    kept = np.flatnonzero((size > 0) & (size < everyone))
    # Of the same mark: the smaller side first, then the shorter description, then the order of the list.
    order = kept[np.lexsort((kept, lattice.depth[kept], ~smaller[kept], mark[kept, 1], mark[kept, 0]))]
    new = np.ones(order.size, dtype=bool)
    new[1:] = (mark[order[1:]] != mark[order[:-1]]).any(axis=1)
    return np.sort(order[new])


def parents(lattice: Lattice, index: int) -> Iterator[IntArray]:
    """Yield the conditions of each description that leaves one condition of a subgroup out.

    Examples
    --------
    >>> lattice = build_lattice(np.array([[0, 0], [1, 1]]), [np.eye(2, dtype=bool)] * 2, 2)
    >>> [p.tolist() for p in parents(lattice, 4)], lattice.conditions[4].tolist()
    ([[2], [0]], [0, 2])
    """
    own = lattice.conditions[index]
    own = own[own >= 0]
    if own.size > 1:
        for at in range(own.size):
            yield np.delete(own, at)


def entries_limit(gigabytes: float) -> int:
    """Return how many entries of the members' matrix fit into so much memory.

    Examples
    --------
    >>> entries_limit(1.2)
    50000000
    """
    return math.floor(gigabytes * 1e9 / 24)
