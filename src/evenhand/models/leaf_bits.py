"""Leaves of many trees as bits: which a point is in, and which it comes into when one column moves.

A point is in a leaf when every condition on the way to it holds. For each column and each interval between two of the
column's thresholds the leaves that the column allows are one row of bits, so the leaves of a point are what remains
of one such row per column, and where a single column moves all other rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray

Words = NDArray[np.uint64]

_BLOCK = 2048  # leaves whose bits are kept together
_PATTERNS = 64  # values that columns which stay may have together to be looked up at once
_TILE = 512  # rows worked on together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nodes:
    """Conditions of all trees, and their leaves numbered so that those below a condition follow each other."""

    column: IntArray  # (nodes,): which column is compared
    threshold: FloatArray  # (nodes,): to the left up to here
    # (nodes,): leaves [first, middle) are below on the left, [middle, last) on the right.
    first: IntArray
    middle: IntArray
    last: IntArray
    value: FloatArray  # (leaves,): what each leaf adds to the score
    single: bool  # whether columns are compared in single precision
    trees: int  # how many there are


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """Bits of some leaves that follow each other."""

    start: int  # the first leaf
    full: Words  # (words,): all leaves
    kept: tuple[tuple[int, Words], ...]  # of columns that stay, several together: which, and (patterns, words)
    moving: dict[int, _Table]  # by moving column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """What one column allows of the leaves of a block."""

    row_of: IntArray  # (places,): which row of bits a place of the column has
    # Each (rows, words): leaves that are there, that begin there or before, and that end there or behind.
    there: Words
    begun: Words
    open: Words


class LeafBits:
    """Which leaves remain of each row's trees where some columns stay as they are and others move.

    Parameters
    ----------
    nodes : Nodes
        The trees.
    E : ndarray, shape (n, q)
        The rows.
    moving : sequence of int
        Columns that move.

    Examples
    --------
    >>> nodes = Nodes(column=np.array([0]), threshold=np.array([0.5]), first=np.array([0]), middle=np.array([1]),
    ...               last=np.array([2]), value=np.array([3.0, 4.0]), single=False, trees=1)
    >>> bits = LeafBits(nodes, np.array([[0.0], [1.0]]), [0])
    >>> bits.total(np.arange(2), bits.at, nodes.value).tolist()
    [3.0, 4.0]
    """

    def __init__(self, nodes: Nodes, E: FloatArray, moving: Sequence[int]) -> None:
        self.nodes = nodes
        cuts = {int(c): np.unique(nodes.threshold[nodes.column == c]) for c in np.unique(nodes.column)}
        given = E.astype(np.float32).astype(float) if nodes.single else E
        self.cuts = [cuts.get(c, np.empty(0)) for c in moving]  # thresholds of each moving column
        # (n, moving): how many thresholds of the column lie below each value.
        self.at = np.zeros((len(E), len(moving)), dtype=np.int64)
        for j, column in enumerate(moving):
            self.at[:, j] = np.searchsorted(self.cuts[j], given[:, column])
        stay = {c: np.searchsorted(cuts[c], given[:, c]) for c in cuts if c not in moving}
        self._patterns, self._pattern = _patterns(stay, len(E))
        leaves = len(nodes.value)
        # (leaves,) for each moving column: the first and the last place at which a leaf can be.
        self.low = [np.zeros(leaves, dtype=np.int64) for _ in moving]
        self.high = [np.full(leaves, own.size, dtype=np.int64) for own in self.cuts]
        ends = [*range(0, leaves, _BLOCK), leaves]
        self.blocks = [self._block(cuts, moving, *pair) for pair in pairwise(ends)]

    def _block(self, cuts: dict[int, FloatArray], moving: Sequence[int], start: int, stop: int) -> _Block:
        nodes = self.nodes
        inside = np.flatnonzero((nodes.first < stop) & (nodes.last > start))
        tables: dict[int, _Table] = {}
        for column in np.unique(nodes.column[inside]).tolist():
            mine = inside[nodes.column[inside] == column]
            place = np.searchsorted(cuts[column], nodes.threshold[mine])
            own = np.unique(place)
            first, middle, last = (
                np.clip(a[mine], start, stop) - start for a in (nodes.first, nodes.middle, nodes.last)
            )
            allowed = _allowed(np.searchsorted(own, place), first, middle, last, (own.size + 1, stop - start))
            tables[column] = _table(allowed, np.searchsorted(own, np.arange(cuts[column].size + 1)), column in moving)
            if column in moving:
                # A row of bits stands for the places behind one threshold of the block, up to the next.
                j, ends = list(moving).index(column), np.concatenate([[-1], own, [cuts[column].size]])
                self.low[j][start:stop] = ends[allowed.argmax(axis=0)] + 1
                self.high[j][start:stop] = ends[own.size + 1 - allowed[::-1].argmax(axis=0)]
        full = _packed(np.ones((1, stop - start), dtype=bool))[0]
        kept = []
        for which, (columns, patterns) in enumerate(self._patterns):
            bits = np.repeat(full[None], len(patterns), axis=0)
            for column, places in zip(columns, patterns.T, strict=True):
                if column in tables:
                    bits &= tables[column].there[tables[column].row_of[places]]
            if bool((bits != full).any()):
                kept.append((which, bits))
        own_tables = {j: tables[c] for j, c in enumerate(moving) if c in tables}
        return _Block(start=start, full=full, kept=tuple(kept), moving=own_tables)

    def remaining(self, rows: IntArray) -> list[Words]:
        """Return what the columns that stay leave of the leaves, for each block: shape (rows, words)."""
        out = []
        for block in self.blocks:
            bits = np.repeat(block.full[None], rows.size, axis=0)
            for which, table in block.kept:
                bits &= table[self._pattern[rows, which]]
            out.append(bits)
        return out

    def total(self, rows: IntArray, at: IntArray, worth: FloatArray) -> FloatArray:
        """Return the sum of what leaves are worth for rows whose moving columns are at these places."""
        out = np.zeros(rows.size)
        for start in range(0, rows.size, _TILE):
            part = slice(start, start + _TILE)
            for block, bits in zip(self.blocks, self.remaining(rows[part]), strict=True):
                for j, table in block.moving.items():
                    bits &= table.there[table.row_of[at[part, j]]]
                row, leaf = _set_bits(bits)
                out[part] += np.bincount(row, worth[block.start + leaf], len(bits))
        return out

    def lines(
        self, remaining: Sequence[Words], at: IntArray, first: IntArray, last: IntArray
    ) -> list[tuple[IntArray, IntArray]]:
        """Return the leaves that rows come into or leave when one column moves and the others are at these places.

        Parameters
        ----------
        remaining : list of ndarray
            Of the rows.
        at : ndarray of int, shape (rows, moving)
            Places of the moving columns.
        first, last : ndarray of int, shape (rows, moving)
            From where to where each column moves.

        Returns
        -------
        list
            For each column rows and leaves. Leaves in which a row is all the way are left out.
        """
        rows: list[list[IntArray]] = [[np.empty(0, dtype=np.int64)] for _ in self.cuts]
        leaves: list[list[IntArray]] = [[np.empty(0, dtype=np.int64)] for _ in self.cuts]
        for block, left in zip(self.blocks, remaining, strict=True):
            there = {j: table.there[table.row_of[at[:, j]]] for j, table in block.moving.items()}
            columns = [*there]
            behind = {columns[-1]: left} if columns else {}
            for j, after in zip(columns[-2::-1], columns[:0:-1], strict=True):
                behind[j] = behind[after] & there[after]
            before: Words | None = None
            for j in columns:
                bits = behind[j] if before is None else behind[j] & before
                before = there[j] if before is None else before & there[j]
                table = block.moving[j]
                begin, end = table.row_of[first[:, j]], table.row_of[last[:, j]]
                row, leaf = _set_bits(
                    bits & table.begun[end] & table.open[begin] & ~(table.begun[begin] & table.open[end])
                )
                rows[j].append(row)
                leaves[j].append(block.start + leaf)
        return [(np.concatenate(row), np.concatenate(leaf)) for row, leaf in zip(rows, leaves, strict=True)]


def _table(allowed: NDArray[np.bool_], row_of: IntArray, moves: bool) -> _Table:
    there = _packed(allowed)
    if not moves:
        return _Table(row_of=row_of, there=there, begun=there, open=there)
    begun = np.logical_or.accumulate(allowed, axis=0)
    still = np.logical_or.accumulate(allowed[::-1], axis=0)[::-1]
    return _Table(row_of=row_of, there=there, begun=_packed(begun), open=_packed(still))


def _allowed(
    place: IntArray, first: IntArray, middle: IntArray, last: IntArray, shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """Say which leaves one column allows between its thresholds, shape (thresholds + 1, leaves)."""
    broken = np.zeros((shape[0], shape[1] + 1), dtype=np.int16)
    np.add.at(broken[0], middle, 1)  # up to the threshold leaves on the right are not reached, behind it those left
    np.add.at(broken[0], last, -1)
    np.add.at(broken, (place + 1, first), 1)
    np.add.at(broken, (place + 1, middle), -2)
    np.add.at(broken, (place + 1, last), 1)
    np.cumsum(broken, axis=0, out=broken)
    np.cumsum(broken, axis=1, out=broken)
    return np.asarray(broken[:, :-1] == 0)


def _packed(allowed: NDArray[np.bool_]) -> Words:
    wide = -(-allowed.shape[1] // 64) * 64
    padded = np.zeros((len(allowed), wide), dtype=bool)
    padded[:, : allowed.shape[1]] = allowed
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _set_bits(words: Words) -> tuple[IntArray, IntArray]:
    """Return row and number of each bit that is set."""
    flat = words.reshape(-1)
    place = np.flatnonzero(flat)
    left = flat[place]
    places, bits = [place[:0]], [place[:0]]
    while place.size:
        lowest = left & (~left + np.uint64(1))
        places.append(place)
        bits.append(np.frexp(lowest.astype(float))[1] - 1)
        left ^= lowest
        more = left != 0
        place, left = place[more], left[more]
    row, word = np.divmod(np.concatenate(places), words.shape[1])
    return row, 64 * word + np.concatenate(bits)


def _patterns(stay: dict[int, IntArray], n: int) -> tuple[list[tuple[list[int], IntArray]], IntArray]:
    """Put columns that stay together as long as they have few values in common.

    Returns the columns put together with the places that occur, shape (patterns, columns), and which of them each row
    has, shape (n, sets of columns).
    """
    together: list[tuple[list[int], IntArray]] = []
    codes: list[IntArray] = []
    for column, place in stay.items():
        if together:
            columns, patterns = together[-1]
            pairs, code = np.unique(codes[-1] * (int(place.max(initial=0)) + 1) + place, return_inverse=True)
            if pairs.size <= _PATTERNS:
                before, own = np.divmod(pairs, int(place.max(initial=0)) + 1)
                together[-1] = ([*columns, column], np.column_stack([patterns[before], own]))
                codes[-1] = code
                continue
        values, code = np.unique(place, return_inverse=True)
        together.append(([column], values[:, None]))
        codes.append(code)
    return together, np.column_stack([np.empty((n, 0), dtype=np.int64), *codes])
