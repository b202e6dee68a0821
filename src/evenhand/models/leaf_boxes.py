"""Leaves of many trees as boxes: which a point is in, and which it comes into when one column moves.

A leaf is a box: in each column it lies between two thresholds. A point is in it when no column misses it, and comes
into it by a move of one column when that column alone misses it. Rows that are near each other have few boxes
near them, so rows are put together into tiles; there, for each column and place, the boxes that it misses are a row of
bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import BoolArray, FloatArray, IntArray

Words = NDArray[np.uint64]
Places = NDArray[Any]  # unsigned whole numbers, as short as the thresholds of a column allow

_CELLS, _FEWEST, _MOST = 1 << 22, 64, 2048  # rows times boxes of a tile, and about how many rows it has
_WALKED = 1 << 15  # rows times trees that are followed at once, so that they stay in fast memory
_NEEDED = 0.7  # boxes of a tile are sorted out once more where less than this share is near any row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nodes:
    """Conditions of all trees, and their leaves numbered so that those below a condition follow each other."""

    column: IntArray  # (nodes,): which column is compared
    threshold: FloatArray  # (nodes,): to the left up to here
    # (nodes,): leaves [first, middle) are below on the left, [middle, last) on the right.
    first: IntArray
    middle: IntArray
    last: IntArray
    depth: IntArray  # (nodes,): how many conditions are above
    # (trees,) and (2, nodes): where each tree begins, and what follows on the left and on the right; a condition, or
    # -1 minus the number of a leaf.
    root: IntArray
    child: IntArray
    value: FloatArray  # (leaves,): what each leaf adds to the score
    tree: IntArray  # (leaves,): which tree each is in
    single: bool  # whether columns are compared in single precision
    trees: int  # how many there are


class LeafBoxes:
    """The boxes of a model's leaves, and where rows lie between the thresholds.

    Parameters
    ----------
    nodes : Nodes
        The trees.
    E : ndarray, shape (n, q)
        The rows.
    moving : sequence of int
        Columns that move; the others stay as they are.

    Examples
    --------
    >>> nodes = Nodes(column=np.array([0]), threshold=np.array([0.5]), first=np.array([0]), middle=np.array([1]),
    ...               last=np.array([2]), depth=np.array([0]), root=np.array([0]), child=np.array([[-1], [-2]]),
    ...               value=np.array([3.0, 4.0]), tree=np.array([0, 0]), single=False, trees=1)
    >>> boxes = LeafBoxes(nodes, np.array([[0.0], [1.0]]), [0])
    >>> boxes.total(np.arange(2), boxes.at, nodes.value).tolist()
    [3.0, 4.0]
    """

    def __init__(self, nodes: Nodes, E: FloatArray, moving: Sequence[int]) -> None:
        self.nodes, self.moving = nodes, len(moving)
        cuts = {int(c): np.unique(nodes.threshold[nodes.column == c]) for c in np.unique(nodes.column)}
        columns = [*moving, *(c for c in cuts if c not in moving)]
        given = E.astype(np.float32).astype(float) if nodes.single else E
        every = [cuts.get(c, np.empty(0)) for c in columns]
        self.cuts = every[: self.moving]  # thresholds of each moving column
        # (n, columns): how many thresholds of the column lie below each value; columns that move come first.
        self._place = np.zeros((len(E), len(columns)), dtype=np.int64)
        for k, c in enumerate(columns):
            if every[k].size:
                self._place[:, k] = np.searchsorted(every[k], given[:, c])
        self.at = self._place[:, : self.moving]
        self.stays = len(columns) > self.moving  # whether the model has columns that do not move
        # (nodes,): where the threshold of each condition stands among those of its column, and which column it is here.
        place, number = np.zeros(nodes.column.size, dtype=np.int64), np.zeros(nodes.column.size, dtype=np.int64)
        # How many conditions there are up to each place of a column.
        self._below = [np.zeros(1, dtype=np.int64) for _ in columns]
        for k, c in enumerate(columns):
            mine = np.flatnonzero(nodes.column == c)
            number[mine], place[mine] = k, np.searchsorted(every[k], nodes.threshold[mine])
            self._below[k] = np.concatenate([[0], np.cumsum(np.bincount(place[mine], minlength=every[k].size))])
        self._where, self._column = place, number
        # By moving column: places that `along` always tells.
        self.wanted: list[IntArray] = [np.empty(0, dtype=np.int64) for _ in moving]
        # (columns, leaves): the first and the last place at which a leaf can be.
        self.low, self.high = _bounds(nodes, number, place, [own.size for own in every])

    def total(self, rows: IntArray, at: IntArray, worth: FloatArray) -> FloatArray:
        """Return the sum of what leaves are worth for rows whose moving columns are at these places."""
        out = np.zeros(rows.size)
        trees, child = self.nodes.trees, self.nodes.child.T.reshape(-1)
        many = max(1, _WALKED // trees)
        for begin in range(0, rows.size, many):
            place = self.with_stay(rows[begin : begin + many], at[begin : begin + many])
            row, node = np.repeat(np.arange(len(place)), trees), np.tile(self.nodes.root, len(place))
            flat, columns = place.reshape(-1), place.shape[1]
            while row.size:
                on = np.flatnonzero(node >= 0)
                if on.size < row.size:
                    there = np.flatnonzero(node < 0)
                    out[begin : begin + len(place)] += np.bincount(row[there], worth[~node[there]], len(place))
                    row, node = row[on], node[on]
                right = flat[row * columns + self._column[node]] > self._where[node]
                node = child[2 * node + right]
        return out

    def with_stay(self, rows: IntArray, at: IntArray) -> IntArray:
        """Return places of all columns: those given for the columns that move, the rows' own for the others."""
        return np.concatenate([at, self._place[rows, self.moving :]], axis=1)

    def alike(self, value: FloatArray) -> IntArray:
        """Return numbers of rows, equal for rows with the same values and the same places of columns that stay."""
        number = np.zeros(len(value), dtype=np.int64)
        for column in (*value.T, *self._place[:, self.moving :].T):
            if np.ptp(column) == 0:
                continue
            own = np.unique(column, return_inverse=True)[1]
            number = np.unique(number * len(value) + own, return_inverse=True)[1]
        return number

    def tiles(self, rows: IntArray, first: IntArray, last: IntArray, home: IntArray | None = None) -> Iterator[Tile]:
        """Put rows together that are near each other, with the leaves that they can come into.

        Parameters
        ----------
        rows : ndarray of int
            Their numbers.
        first, last : ndarray of int, shape (rows, columns)
            Between which places each row can come; a column that stays has one place.
        home : ndarray of int, shape (rows, columns), optional
            Where rows are: only leaves that at most one column misses are wanted.
        """
        spread = np.column_stack([own[places[:, k]] for k, own in enumerate(self._below) for places in (first, last)])
        every = Tile(self, np.arange(self.low.shape[1]), self.low, self.high)
        left = [(np.arange(len(first)), every.part(np.asarray((self.low <= self.high).all(axis=0))))]
        while left:
            some, tile = left.pop()
            if not some.size:
                continue
            low, high = first[some].min(axis=0), last[some].max(axis=0)
            near = tile.between(low, high)
            if home is not None:
                near &= tile.almost(home[some].min(axis=0), home[some].max(axis=0))
            tile = tile.part(near)
            widest = int(np.ptp(spread[some], axis=0).argmax())
            if some.size <= _FEWEST or (some.size <= _MOST and some.size * tile.leaves.size <= _CELLS):
                yield tile.ready(rows[some], first[some], last[some])
                continue
            order = np.argsort(spread[some, widest], kind="stable")
            left += [(some[order[some.size // 2 :]], tile), (some[order[: some.size // 2]], tile)]


class Tile:
    """Some rows and the leaves near them."""

    rows: IntArray
    _outside: Words  # (rows, words): leaves that a row cannot come into
    _tree: IntArray  # (leaves,)
    _known: list[IntArray]  # by column: which row of its table a place has, -1 for none
    _tables: list[Words]  # by column, (places, words): which leaves it misses

    def __init__(self, boxes: LeafBoxes, leaves: IntArray, low: Places, high: Places) -> None:
        self.boxes, self.leaves = boxes, leaves
        self.low, self.high = low, high  # (columns, leaves)

    def part(self, kept: BoolArray) -> Tile:
        """Return the tile with some of the leaves."""
        which = np.flatnonzero(kept)
        return Tile(self.boxes, self.leaves[which], self.low.take(which, axis=1), self.high.take(which, axis=1))

    def ready(self, rows: IntArray, first: IntArray, last: IntArray) -> Tile:
        """Return the tile, ready to be asked about rows that each stay between two places of every column."""
        words = -(-self.leaves.size // 64)
        outside = np.zeros((rows.size, words), dtype=np.uint64)
        outside[:, -1] = ~np.uint64(0) << np.uint64((self.leaves.size - 1) % 64) << np.uint64(1)  # behind the last leaf
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if k >= self.boxes.moving:  # stays at one place
                values, of = _numbered(first[:, k], low.dtype)
                outside |= _packed(_missing(values, low, high))[of]
                continue
            for place, edge, compare in ((last[:, k], low, np.less), (first[:, k], high, np.greater)):
                values, of = _numbered(place, low.dtype)
                outside |= _packed(compare(values[:, None], edge))[of]
        never = np.bitwise_and.reduce(outside, axis=0)
        if np.bitwise_count(~never).sum() < _NEEDED * self.leaves.size:
            bits = np.unpackbits(never.astype("<u8").view(np.uint8), bitorder="little")
            return self.part(bits[: self.leaves.size] == 0).ready(rows, first, last)
        self.rows, self._outside, self._tree = rows, outside, self.boxes.nodes.tree[self.leaves]
        self._known = [np.full(cuts.size + 1, -1) for cuts in self.boxes.cuts]
        self._tables = [np.empty((0, words), dtype=np.uint64) for _ in self.boxes.cuts]
        return self

    def inside(self) -> Words:
        """Say which leaves each row can come into, shape (rows, words)."""
        return ~self._outside

    def between(self, first: IntArray, last: IntArray) -> BoolArray:
        """Say which leaves are somewhere between two places of every column."""
        near = np.ones(self.leaves.size, dtype=bool)
        for low, high, one, other in zip(self.low, self.high, first, last, strict=True):
            near &= low <= low.dtype.type(other)
            near &= high >= high.dtype.type(one)
        return near

    def almost(self, first: IntArray, last: IntArray) -> BoolArray:
        """Say which leaves at most one column that moves misses, and none that stays."""
        missed = np.zeros(self.leaves.size, dtype=np.uint8)
        for low, high, one, other in zip(self.low, self.high, first, last, strict=True):
            here = low > low.dtype.type(other)
            here |= high < high.dtype.type(one)
            missed += here
        return missed <= 1

    def _missed(self, rows: IntArray, at: IntArray) -> tuple[Words, Words]:
        """Return the leaves that rows of the tile are in, (rows, words), and those that one column alone misses.

        The latter have shape (moving, rows, words).
        """
        twice = self._outside[rows]
        once = twice.copy()
        each = np.empty((at.shape[1], *twice.shape), dtype=np.uint64)
        for k, here in enumerate(each):
            here[:] = self._miss(k, at[:, k])
            twice |= once & here
            once |= here
        each &= ~twice
        return ~once, each

    def _miss(self, k: int, place: IntArray) -> Words:
        """Say which leaves one column misses at places of it, shape (places, words)."""
        known, table = self._known[k], self._tables[k]
        new = place[known[place] < 0]
        if new.size:
            new = np.unique(new)
            more = _packed(_missing(new.astype(self.low.dtype), self.low[k], self.high[k]))
            known[new] = len(table) + np.arange(new.size)
            table = self._tables[k] = np.concatenate([table, more])
        return table[known[place]]

    def entered(
        self, rows: IntArray, at: IntArray, first: IntArray, last: IntArray, worth: FloatArray
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the leaves that rows come into when one column moves and the others are where they are.

        Parameters
        ----------
        rows, at : ndarray of int, shape (rows,) and (rows, moving)
            Which rows of the tile, and where they are.
        first, last : ndarray of int, shape (rows, moving)
            From where to where each column moves.
        worth : ndarray
            What each leaf of the model adds to the sum.

        Returns
        -------
        line, begin, end, change : ndarray
            Column times rows plus row; the first and the last place of this column at which the row is in the leaf;
            how much more that leaf adds than the one of the same tree in which the row is.
        """
        inside, alone = self._missed(rows, at)
        alone[(first == last).T] = 0
        trees, size, wide = self.boxes.nodes.trees, rows.size, 64 * inside.shape[1]
        worth = worth[self.leaves]
        bit = _set_bits(inside)
        row = bit // wide
        leaf = bit - row * wide
        own = np.empty(size * trees)  # what the leaf of each tree adds in which a row is
        own[row * trees + self._tree[leaf]] = worth[leaf]
        bit = _set_bits(alone)
        line = bit // wide
        leaf = bit - line * wide
        column = line // size
        where = column * self.leaves.size + leaf
        begin = np.maximum(self.low.reshape(-1)[where], first.T.reshape(-1)[line])
        end = np.minimum(self.high.reshape(-1)[where], last.T.reshape(-1)[line])
        change = worth[leaf] - own[(line - column * size) * trees + self._tree[leaf]]
        some = np.flatnonzero(begin <= end)
        return line[some], begin[some], end[some], change[some]

    def along(
        self, rows: IntArray, at: IntArray, home: IntArray, first: IntArray, last: IntArray, worth: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return how the sum over leaves changes when one column moves and the others are where they are.

        Takes what `entered` takes, and where rows come from, shape (rows, moving).

        Returns
        -------
        line, place, change : ndarray
            Column times rows plus row, in order; of places with one sum that follow each other, the one nearest to
            where the row comes from, and those of `wanted`.
        """
        line, begin, end, change = self.entered(rows, at, first, last, worth)
        wide = (last - first + 2).T.reshape(-1)  # one more, where the last leaves end
        stop = np.cumsum(wide)
        start = stop - wide - first.T.reshape(-1)
        shift = start[line]
        begin += shift
        end += shift + 1
        sums = np.cumsum(np.bincount(begin, change, int(stop[-1])) - np.bincount(end, change, int(stop[-1])))
        of, own = np.repeat(np.arange(wide.size), wide), start + home.T.reshape(-1)
        seen = np.zeros(sums.size, dtype=bool)
        seen[begin] = seen[end] = True
        slot = np.flatnonzero(seen)
        seen[slot] = False
        seen[slot - (slot <= own[of[slot]])] = True  # on the way down a sum is met at the last of its places
        seen[own] = (home != at).T.reshape(-1)
        for k, places in enumerate(self.boxes.wanted):
            if not places.size:
                continue
            within = (places >= first[:, k, None]) & (places <= last[:, k, None])
            seen[(start[k * rows.size : (k + 1) * rows.size, None] + places)[within]] = True
        seen[stop - 1] = False
        slot = np.flatnonzero(seen)
        of = of[slot]
        return of, slot - start[of], sums[slot]


def _numbered(place: IntArray, kind: Any) -> tuple[Places, IntArray]:
    """Return the places that occur, and which of them each is."""
    occurs = np.zeros(int(place.max(initial=0)) + 1, dtype=bool)
    occurs[place] = True
    return np.flatnonzero(occurs).astype(kind), (np.cumsum(occurs) - 1)[place]


def _missing(place: Places, low: Places, high: Places) -> BoolArray:
    """Say for each place, and each leaf between its lowest and its highest one, whether the leaf is elsewhere."""
    return np.asarray(place[:, None] - low > high - low)  # unsigned: below the lowest is far above


def _packed(allowed: BoolArray) -> Words:
    """Return rows of bits as words."""
    bytes_ = np.packbits(allowed, axis=1, bitorder="little")
    out = np.zeros((len(allowed), -(-allowed.shape[1] // 64) * 8), dtype=np.uint8)
    out[:, : bytes_.shape[1]] = bytes_
    return out.view("<u8").astype(np.uint64, copy=False)


def _set_bits(words: Words) -> IntArray:
    """Return the number of each bit that is set, all words one after the other."""
    flat, one = words.reshape(-1), np.uint64(1)
    word = np.flatnonzero(flat)
    left = flat[word]
    word <<= 6
    bits = []
    while left.size:
        less = left - one
        bits.append(word + np.bitwise_count(~left & less))  # zeros behind the lowest bit
        left &= less
        more = np.flatnonzero(left)
        word, left = word[more], left[more]
    return np.concatenate([*bits, word])


def _bounds(nodes: Nodes, number: IntArray, place: IntArray, sizes: Sequence[int]) -> tuple[Places, Places]:
    """Return the first and the last place of each leaf in each column."""
    leaves = nodes.value.size
    most = max(sizes, default=0)
    kind = np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32
    low = np.zeros((len(sizes), leaves), dtype=kind)
    high = np.repeat(np.array(sizes, dtype=kind)[:, None], leaves, axis=1)
    order = np.argsort(nodes.depth, kind="stable")
    for level in np.split(order, np.flatnonzero(np.diff(nodes.depth[order])) + 1):
        # Conditions of one level have no leaf in common.
        for start, stop, out, edge in (
            (nodes.first, nodes.middle, high, place[level]), (nodes.middle, nodes.last, low, place[level] + 1)
        ):  # fmt: skip
            count = stop[level] - start[level]
            begin = number[level] * leaves + start[level] - (np.cumsum(count) - count)
            where = np.repeat(begin, count) + np.arange(int(count.sum()))
            flat, narrower = out.reshape(-1), np.maximum if out is low else np.minimum
            flat[where] = narrower(flat[where], np.repeat(edge.astype(kind), count))
    return low, high
