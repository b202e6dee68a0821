"""Forests and boosted trees: a search for the nearest point with the other decision that is exact along each column.

With all columns but one where they are, the sum over the trees' leaves is known at every value of that column. From
each row the search makes, one column after the other, the moves that bring the sum fastest to the level at which the
decision changes, looks after each of them along all columns for the nearest value that changes it, and gives every
column back as much as the decision allows. Before that it does the same from the nearest of some rows with the other
decision, so that it need not look farther.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.models.leaf_bits import LeafBits
from evenhand.models.leaves import Additive, additive
from evenhand.models.moves import Moves, length
from evenhand.models.surface import Surface

_TILE, _BYTES = 2048, 1 << 24  # rows worked on together: so many, and so many bytes of bits at most
_GIVEN_BACK = 6  # rounds in which columns are given back
_SENTINELS, _TRIED = 256, 16  # rows of the other decision, and how many of them are tried from a row, the nearest
_WHOLE = 2.0**48  # leaves are counted in whole parts of the largest sum: sums are exact in any order
_EDGE = 1e-9  # of a column's unit: how far behind a threshold a point is put


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafSpace:
    """Rows before the boundary of a sum of trees, in the columns that move."""

    bits: LeafBits
    worth: FloatArray  # (leaves,): what each adds to the sum, in whole numbers
    level: float  # the sum at which the decision changes
    slack: float  # by how much rounding to whole numbers can have changed a sum
    value: FloatArray  # (n, p): the rows as the trees see them
    step: FloatArray  # (p,): what a move of length one changes
    keep: FloatArray  # (n,): 1 where a larger sum keeps the decision, -1 where a smaller one does
    tied: BoolArray  # (n,): whether a sum at the level has the other decision
    # By column: the lowest and the highest value of each place.
    low: tuple[FloatArray, ...]
    high: tuple[FloatArray, ...]
    norm: str

    def gap(self, j: int, rows: IntArray, place: IntArray) -> FloatArray:
        """Return how far rows are from places of a column."""
        there = self.moved(j, rows, place)
        return np.asarray(np.abs((there - self.value[rows, j]) / self.step[j]), dtype=float)

    def moved(self, j: int, rows: IntArray, place: IntArray) -> FloatArray:
        """Return the nearest value at places of a column; the row's own value where it is there."""
        value, home = self.value[rows, j], self.bits.at[rows, j]
        return np.where(place > home, self.low[j][place], np.where(place < home, self.high[j][place], value))

    def points(self, rows: IntArray, at: IntArray) -> FloatArray:
        """Return the nearest values at places of all columns, shape (rows, p)."""
        return np.stack([self.moved(j, rows, at[:, j]) for j in range(at.shape[1])], axis=1)

    def cost(self, gap: FloatArray) -> FloatArray:
        """Return lengths such that those of several columns add up, or the largest counts."""
        return gap * gap if self.norm == "l2" else gap

    def joined(self, cost: FloatArray) -> FloatArray:
        """Return what several columns cost together, along the last axis."""
        out = cost.max(axis=-1, initial=0.0) if self.norm == "linf" else cost.sum(axis=-1)
        return np.asarray(out, dtype=float)

    def flips(self, kept: FloatArray, rows: IntArray) -> BoolArray:
        """Say which sums, counted from the level towards a row's own decision, have the other decision."""
        return (kept < -self.slack) | (self.tied[rows] & (kept <= self.slack))


def leaf_space(
    surface: Surface, E: FloatArray, A: FloatArray, unit: FloatArray, decision: FloatArray, norm: str
) -> LeafSpace | None:
    """Return the rows before the boundary of a sum of trees; None where the model is no such sum.

    Parameters
    ----------
    surface : Surface
        The classifier.
    E : ndarray, shape (n, q)
        Rows as it takes them.
    A : ndarray, shape (p, q)
        The step of each number that moves in these columns, one column each.
    unit : ndarray, shape (p,)
        Of each number.
    decision : ndarray, shape (n,)
        The model's decisions.
    norm : {"l2", "l1", "linf"}
        Length of a move.
    """
    trees = additive(surface, E)
    if trees is None:
        return None
    columns = np.abs(A).argmax(axis=1)
    slope = A[np.arange(len(A)), columns]
    step = np.where(slope != 0, slope, 1.0) * unit  # a number that feeds no column has no thresholds either
    bits = LeafBits(
        trees.nodes, E, [int(c) if a else -1 - j for j, (c, a) in enumerate(zip(columns, slope, strict=True))]
    )
    edges = [_edges(cuts, abs(one), trees.nodes.single) for cuts, one in zip(bits.cuts, step, strict=True)]
    worth, level, slack = _in_whole_numbers(trees)
    kept = np.where(decision == 1, trees.sign, -trees.sign)
    space = LeafSpace(
        bits=bits, worth=worth, level=level, slack=slack, value=E[:, columns], step=step, keep=kept,
        tied=np.zeros(len(E), dtype=bool), low=tuple(e[0] for e in edges), high=tuple(e[1] for e in edges), norm=norm,
    )  # fmt: skip
    at_level = np.abs(bits.total(np.arange(len(E)), bits.at, worth) - level) <= slack
    # Which decision a sum at the level has shows where a row is there; where none is there it hardly matters.
    tie = float(decision[at_level][0]) if at_level.any() else 0.0
    return replace(space, tied=decision != tie)


def _edges(cuts: FloatArray, step: float, single: bool) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest value of each place between thresholds."""
    if single:  # a value is compared after it is rounded
        near = cuts.astype(np.float32)
        above = np.where(near > cuts, near, np.nextafter(near, np.float32(np.inf))).astype(float)
        below = np.where(near > cuts, np.nextafter(near, np.float32(-np.inf)), near).astype(float)
    else:
        hair = _EDGE * (np.abs(cuts) + step)
        above, below = cuts + hair, cuts - hair
    return np.concatenate([[-np.inf], above]), np.concatenate([below, [np.inf]])


def _in_whole_numbers(trees: Additive) -> tuple[FloatArray, float, float]:
    nodes = trees.nodes
    largest = nodes.trees * float(np.abs(nodes.value).max(initial=0.0)) + abs(trees.level)
    scale = _WHOLE / max(largest, 1e-300)
    return np.rint(nodes.value * scale), trees.level * scale, nodes.trees + 1.0 + 1e-12 * _WHOLE


def nearest_leaves(space: LeafSpace, Z: FloatArray, ids: IntArray, moves: Moves) -> tuple[FloatArray, FloatArray]:
    """Return the distance of rows to the nearest point found with the other decision, and that point.

    Parameters
    ----------
    space : LeafSpace
        The rows.
    Z : ndarray, shape (n, p)
        The numbers that move, on the scale on which moves have their length.
    ids : ndarray of int
        Those searched.
    moves : Moves
        Effort: `starts` columns that are moved first, and two moves more than `rounds` from each.

    Returns
    -------
    distance : ndarray, shape (ids,)
        Infinite where none was found.
    point : ndarray, shape (ids, p)
        On the scale of `Z`.
    """
    point = space.value[ids].copy()
    words = sum(block.full.size for block in space.bits.blocks)
    tile = int(np.clip(_BYTES // (8 * words), 16, _TILE))
    sentinels = _Sentinels(space)
    for start in range(0, ids.size, tile):
        rows = ids[start : start + tile]
        search = _Search(space, rows)
        sentinels.bound(search, np.arange(rows.size))
        search.give_back()
        search.run(min(moves.starts, point.shape[1]), moves.rounds + 2)
        search.give_back()
        reached = np.flatnonzero(np.isfinite(search.best))
        point[start + reached] = space.points(rows[reached], search.best_at[reached])
    move = (point - space.value[ids]) / space.step
    far = length(move, space.norm)
    return np.where(far > 0, far, np.inf), Z[ids] + move


class _Sentinels:
    """Some rows of each decision, spread over the data: where they are, the other decision can be."""

    def __init__(self, space: LeafSpace) -> None:
        self.space = space
        self.at: dict[float, IntArray] = {}
        scaled = space.value / space.step
        for side in (1.0, -1.0):
            rows = np.flatnonzero(space.keep != side)
            rows = rows[np.lexsort(scaled[rows].T)]
            new = np.ones(rows.size, dtype=bool)  # equal rows once: the order and number of rows do not matter
            new[1:] = (scaled[rows[1:]] != scaled[rows[:-1]]).any(axis=1)
            rows = rows[new]
            if rows.size:
                rows = rows[np.unique(np.linspace(0, rows.size - 1, _SENTINELS).astype(int))]
            self.at[side] = rows

    def bound(self, search: _Search, some: IntArray) -> None:
        """Try the nearest sentinels from some rows of a search, with the rows' own values of what stays."""
        space = self.space
        for side, others in self.at.items():
            mine = some[space.keep[search.ids[some]] == side]
            if not (mine.size and others.size):
                continue
            there = space.value[others] / space.step
            far = np.stack([length(there - one, space.norm) for one in space.value[search.ids[mine]] / space.step])
            for place in np.argsort(far, axis=1, kind="stable")[:, :_TRIED].T:
                open_rows = ~np.isfinite(search.best[mine])
                if not open_rows.any():
                    break
                search.try_at(mine[open_rows], space.bits.at[others[place[open_rows]]])


# Along one column: rows, places, sums counted from the level towards the own decision, and costs of being there.
_Line = tuple[int, IntArray, IntArray, FloatArray, FloatArray]


class _Search:
    """The search from some rows."""

    def __init__(self, space: LeafSpace, ids: IntArray) -> None:
        self.space, self.ids = space, ids
        self.remaining = space.bits.remaining(ids)
        self.home = space.bits.at[ids]
        self.best = np.full(ids.size, np.inf)  # the least cost so far
        self.best_at = self.home.copy()
        self.best_kept = np.zeros(ids.size)  # the sum there, counted from the level towards the own decision

    def run(self, starts: int, moves: int) -> None:
        """Move columns one after the other, from several first moves."""
        everyone = np.arange(self.ids.size)
        worth, place, kept = self._look(everyone, self.home, self._kept(everyone, self.home))
        order = np.argsort(-worth, axis=1, kind="stable")
        for start in range(starts):
            column = order[:, start]
            rows = np.flatnonzero(worth[everyone, column] > 0)
            at = self.home[rows]
            at[np.arange(rows.size), column[rows]] = place[rows, column[rows]]
            now = kept[rows, column[rows]]
            for count in range(moves):
                if not rows.size:
                    break
                next_worth, next_place, next_kept = self._look(rows, at, now)
                if count == moves - 1:
                    break
                following = next_worth.argmax(axis=1)
                on = np.flatnonzero(next_worth[np.arange(rows.size), following] > 0)
                rows, at, now = rows[on], at[on], next_kept[on, following[on]]
                at[np.arange(on.size), following[on]] = next_place[on, following[on]]

    def give_back(self) -> None:
        """Bring columns back towards the row's own value, as far as the decision stays the other one."""
        rows = np.flatnonzero(np.isfinite(self.best))
        for _ in range(_GIVEN_BACK):
            if not rows.size:
                break
            before = self.best[rows]
            at = self.best_at[rows]
            for j, row, place, kept, cost in self._lines(rows, at, self.best_kept[rows]):
                self._take(rows, at, j, (row, place, kept, np.where(self._flips(kept, rows[row]), cost, np.inf)))
            rows = rows[self.best[rows] < before]

    def try_at(self, rows: IntArray, at: IntArray) -> None:
        """Note places where rows have the other decision."""
        kept, cost = self._kept(rows, at), self.space.joined(self._costs(rows, at))
        works = np.flatnonzero(self._flips(kept, rows) & (cost < self.best[rows]))
        self.best[rows[works]], self.best_at[rows[works]] = cost[works], at[works]
        self.best_kept[rows[works]] = kept[works]

    def _kept(self, rows: IntArray, at: IntArray) -> FloatArray:
        space, ids = self.space, self.ids[rows]
        return space.keep[ids] * (space.bits.total(ids, at, space.worth) - space.level)

    def _flips(self, kept: FloatArray, rows: IntArray) -> BoolArray:
        return self.space.flips(kept, self.ids[rows])

    def _costs(self, rows: IntArray, at: IntArray) -> FloatArray:
        space = self.space
        gaps = [space.gap(j, self.ids[rows], at[:, j]) for j in range(at.shape[1])]
        return space.cost(np.stack(gaps, axis=1))

    def _look(self, rows: IntArray, at: IntArray, now: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Note where one more column changes the decision, and return the best move of each column that does not.

        Returns
        -------
        worth : ndarray, shape (rows, p)
            Of the move; 0 where no move of the column helps.
        place : ndarray of int, shape (rows, p)
            Where it goes.
        kept : ndarray, shape (rows, p)
            The sum there, counted from the level towards the own decision.
        """
        space = self.space
        worth, where, left = np.zeros(at.shape), at.copy(), np.zeros(at.shape)
        here = space.joined(self._costs(rows, at))
        for j, row, place, kept, cost in self._lines(rows, at, now):
            flips = self._flips(kept, rows[row])
            self._take(rows, at, j, (row, place, kept, np.where(flips, cost, np.inf)))
            drop = np.maximum(now[row] - kept, 0.0) / _WHOLE
            # Along a straight slope this is the same for short and long moves.
            gain = (drop * drop if space.norm == "l2" else drop) / np.maximum(cost - here[row], 1e-12)
            gain[flips | (cost >= self.best[rows[row]])] = 0.0
            chosen, most = _least(row, -gain, rows.size)
            worth[:, j], where[:, j], left[:, j] = -most, place[chosen], kept[chosen]
        return worth, where, left

    def _take(
        self, rows: IntArray, at: IntArray, j: int, line: tuple[IntArray, IntArray, FloatArray, FloatArray]
    ) -> None:
        """Keep the cheapest place of a line where it is cheaper than what is known."""
        row, place, kept, cost = line
        chosen, least = _least(row, cost, rows.size)
        cheaper = np.flatnonzero(least < self.best[rows])
        who, chosen = rows[cheaper], chosen[cheaper]
        better = at[cheaper]
        better[:, j] = place[chosen]
        self.best[who], self.best_at[who], self.best_kept[who] = least[cheaper], better, kept[chosen]

    def _lines(self, rows: IntArray, at: IntArray, now: FloatArray) -> Iterator[_Line]:
        """Give for each column all places that are not farther than the best point known.

        `now` is the sum where the rows are, counted from the level towards the own decision.
        """
        space, ids = self.space, self.ids[rows]
        costs, bound = self._costs(rows, at), self.best[rows]
        first, last, rest = np.empty_like(at), np.empty_like(at), np.empty(at.shape)
        for j, cuts in enumerate(space.bits.cuts):
            rest[:, j] = space.joined(np.delete(costs, j, axis=1))
            room = np.where(rest[:, j] < bound, bound if space.norm == "linf" else bound - rest[:, j], 0.0)
            reach = (np.sqrt(room) if space.norm == "l2" else room) * abs(space.step[j])
            value = space.value[ids, j]
            first[:, j] = np.minimum(np.searchsorted(cuts, value - reach), at[:, j])
            last[:, j] = np.maximum(np.searchsorted(cuts, value + reach), at[:, j])
        remaining = self.remaining if rows.size == self.ids.size else [words[rows] for words in self.remaining]
        for j, leaves in enumerate(space.bits.lines(remaining, at, first, last)):
            row, place, change = self._changes(j, leaves, first[:, j], last[:, j], at[:, j])
            cost = space.cost(space.gap(j, ids[row], place))
            cost = np.maximum(rest[row, j], cost) if space.norm == "linf" else rest[row, j] + cost
            yield j, row, place, now[row] + space.keep[ids[row]] * change, cost

    def _changes(
        self, j: int, leaves: tuple[IntArray, IntArray], first: IntArray, last: IntArray, at: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return rows and places along a column, from the first to the last of each row, and how the sum changes."""
        bits, (row, leaf) = self.space.bits, leaves
        low, high = np.maximum(bits.low[j][leaf], first[row]), np.minimum(bits.high[j][leaf], last[row])
        wide = last - first + 2  # one more, where the last leaves end
        end = np.cumsum(wide)
        start = end - wide - first
        shift, worth = start[row], self.space.worth[leaf]
        steps = np.bincount(shift + low, worth, int(end[-1])) - np.bincount(shift + high + 1, worth, int(end[-1]))
        sums = np.cumsum(steps)
        of = np.repeat(np.arange(first.size), wide - 1)
        flat = np.arange(of.size) + of
        return of, flat - start[of], sums[flat] - sums[start + at][of]


def _least(row: IntArray, values: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """Return the place of the smallest value of each row, the first of equal ones, and the value; rows are in order."""
    start = np.searchsorted(row, np.arange(n))
    least = np.minimum.reduceat(values, start)
    equal = np.flatnonzero(values == least[row])[::-1]
    place = np.zeros(n, dtype=np.int64)
    place[row[equal]] = equal
    return place, least
