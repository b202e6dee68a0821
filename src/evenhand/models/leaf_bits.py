"""Leaves of many trees as bits: which a point is in, and which it comes into when one column moves.

A point is in a leaf when every condition on the way to it holds. For each column and each interval between two of the
column's thresholds the leaves that the column allows are one row of bits, so the leaves of a point are what remains
of one such row per column, and where a single column moves all other rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        self.stay = np.column_stack([np.empty((len(E), 0), dtype=np.int64), *stay.values()])  # (n, columns that stay)
        self._patterns, self._pattern = _patterns(stay, len(E))
        counts = {c: np.bincount(np.searchsorted(cuts[c], nodes.threshold[nodes.column == c])) for c in cuts}
        below = {c: np.concatenate([[0], np.cumsum(counts[c])]) for c in cuts}
        # How many conditions there are up to each place: of moving columns, and of those that stay.
        self._moving_below = [below.get(c, np.zeros(1, dtype=np.int64)) for c in moving]
        self._stay_below = [below[c] for c in stay]
        leaves = len(nodes.value)
        # (leaves,) for each moving column: the first and the last place at which a leaf can be.
        self.low = [np.zeros(leaves, dtype=np.int32) for _ in moving]
        self.high = [np.full(leaves, own.size, dtype=np.int32) for own in self.cuts]
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

    def total(self, rows: IntArray, at: IntArray, worth: FloatArray) -> FloatArray:
        """Return the sum of what leaves are worth for rows whose moving columns are at these places."""
        out = np.zeros(rows.size)
        for start in range(0, rows.size, _TILE):
            part = slice(start, start + _TILE)
            for block in self.blocks:
                bits = self._remaining(block, rows[part])
                for j, table in block.moving.items():
                    bits &= table.there[table.row_of[at[part, j]]]
                row, word, bit = _set_bits(bits)
                out[part] += np.bincount(row, worth[block.start + 64 * word + bit], len(bits))
        return out

    def lines(self, rows: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Give the leaves that rows come into or leave when one column moves and the others are where they are.

        Parameters
        ----------
        rows : ndarray of int
            Which rows.

        Yields
        ------
        column, rows, leaves
            Places among the rows, and a part of the leaves: columns come several times.
        """
        for block in self.blocks:
            columns = list(block.moving)
            there = [table.there[table.row_of[self.at[rows, j]]] for j, table in block.moving.items()]
            for j, bits in zip(columns, _without_each(self._remaining(block, rows), there), strict=True):
                table = block.moving[j]
                bits &= ~(table.begun[0] & table.open[-1])  # leaves that are there at all places
                row, word, bit = _set_bits(bits)
                yield j, row, block.start + 64 * word + bit

    def _remaining(self, block: _Block, rows: IntArray) -> Words:
        """Return what the columns that stay leave of the leaves of a block, shape (rows, words)."""
        bits = np.repeat(block.full[None], rows.size, axis=0)
        for which, table in block.kept:
            bits &= table[self._pattern[rows, which]]
        return bits

    def alike(self, value: FloatArray) -> IntArray:
        """Return numbers of rows, equal for rows with the same values and the same places of columns that stay."""
        number = np.zeros(len(value), dtype=np.int64)
        for column in (*value.T, *self._pattern.T):
            own = np.unique(column, return_inverse=True)[1]
            number = np.unique(number * len(value) + own, return_inverse=True)[1]
        return number

    def between(self, rows: IntArray, first: IntArray, last: IntArray) -> IntArray:
        """Return how many conditions lie below the places that rows can come to; similar rows have similar numbers."""
        moving = [below[places[:, j]] for j, below in enumerate(self._moving_below) for places in (first, last)]
        stay = [below[self.stay[rows, k]] for k, below in enumerate(self._stay_below)]
        return np.column_stack([*moving, *stay])

    def within(self, rows: IntArray, first: IntArray, last: IntArray) -> Reach:
        """Return the leaves that rows can come into while each moving column is between two places.

        Parameters
        ----------
        rows : ndarray of int
            Which rows.
        first, last : ndarray of int, shape (rows, moving)
            The places.
        """
        low, high = first.min(axis=0), last.max(axis=0) + 1
        left, starts = [], []
        begun: list[list[Words]] = [[] for _ in self.cuts]
        still: list[list[Words]] = [[] for _ in self.cuts]
        for block in self.blocks:
            bits = self._remaining(block, rows)
            for j, table in block.moving.items():
                bits &= table.begun[table.row_of[last[:, j]]]
                bits &= table.open[table.row_of[first[:, j]]]
            some = np.flatnonzero(np.bitwise_or.reduce(bits, axis=0))
            if not some.size:
                continue
            left.append(bits[:, some])
            starts.append(block.start + 64 * some)
            for j in range(len(self.cuts)):
                between = np.arange(low[j], high[j])
                if j in block.moving:
                    table = block.moving[j]
                    own = table.row_of[between]
                    begun[j].append(table.begun[own][:, some])
                    still[j].append(table.open[own][:, some])
                else:
                    everything = np.repeat(block.full[None, some], between.size, axis=0)
                    begun[j].append(everything)
                    still[j].append(everything)
        started, unended = ([np.concatenate(one, axis=1) for one in each] for each in (begun, still))
        return Reach(
            left=np.concatenate(left, axis=1), start=np.concatenate(starts), low=low, begun=started, open=unended,
            there=[one & other for one, other in zip(started, unended, strict=True)],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reach:
    """Leaves that some rows can come into; words of bits in which no row has any are left out."""

    left: Words  # (rows, words): what is within reach of each row
    start: IntArray  # (words,): the first leaf of each word
    low: IntArray  # (moving,): the place that the first row of each table below stands for
    # By moving column, each (places, words): leaves that begin there or before, and that end there or behind.
    begun: list[Words]
    open: list[Words]
    there: list[Words]  # both

    def lines(
        self, rows: IntArray, at: IntArray, first: IntArray, last: IntArray
    ) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Give the leaves that rows come into or leave when one column moves and the others are at these places.

        Parameters
        ----------
        rows : ndarray of int
            Which rows of those within reach.
        at : ndarray of int, shape (rows, moving)
            Places of the moving columns.
        first, last : ndarray of int, shape (rows, moving)
            From where to where each column moves.

        Yields
        ------
        column, rows, leaves
            Leaves in which a row is all the way are left out.
        """
        there = [self.there[j][at[:, j] - low] for j, low in enumerate(self.low)]
        for j, bits in enumerate(_without_each(self.left[rows], there)):
            begin, end = first[:, j] - self.low[j], last[:, j] - self.low[j]
            some = self.begun[j][end]
            some &= self.open[j][begin]
            whole = self.begun[j][begin]
            whole &= self.open[j][end]
            some ^= whole
            bits &= some
            row, word, bit = _set_bits(bits)
            yield j, row, self.start[word] + bit


def _without_each(every: Words, there: list[Words]) -> Iterator[Words]:
    """Give for each column the leaves that all other columns leave of some; what is given is worked in."""
    behind = [every]
    for one in there[:0:-1]:
        behind.append(behind[-1] & one)
    before: Words | None = None
    for one in there:
        bits = behind.pop()
        if before is None:
            before = one
        else:
            bits &= before
            before &= one
        yield bits


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


def _set_bits(words: Words) -> tuple[IntArray, IntArray, IntArray]:
    """Return row, word and number of each bit that is set."""
    flat, one = words.reshape(-1), np.uint64(1)
    place = np.flatnonzero(flat)
    left = flat[place]
    places, bits = [place], [place[:0]]
    while place.size:
        less = left - one
        bits.append(np.bitwise_count(~left & less))  # zeros behind the lowest bit
        left &= less
        more = np.flatnonzero(left)
        place, left = place[more], left[more]
        places.append(place)
    every = np.concatenate(places)
    row = every // words.shape[1]
    return row, every - row * words.shape[1], np.concatenate(bits)


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
