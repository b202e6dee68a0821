"""Forests and boosted trees: a search for the nearest point with the other decision that is exact along each column.

With all columns but one where they are, the sum over the trees' leaves is known at every value of that column. From
each row the search makes, one column after the other, the moves that bring the sum fastest to the level at which the
decision changes, looks after each of them along all columns for the nearest value that changes it, and gives every
column back as much as the decision allows. Before that it does the same from the nearest of some rows with the other
decision, so that it need not look farther.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.models.leaf_bits import Reach
from evenhand.models.leaf_space import LeafSpace
from evenhand.models.leaves import WHOLE
from evenhand.models.moves import NORMS, Moves, length

# Rows worked on together: so many at least and at most, and about so many bytes of bits.
_FEWEST, _MOST, _BYTES = 256, 4096, 1 << 22
_GIVEN_BACK = 6  # rounds in which columns are given back
_SENTINELS, _TRIED = 1024, 16  # rows of the other decision, and how many of them are tried from a row, the nearest
_STARTS = 2  # how many of those that have the other decision with the row's own values of what stays are started from


def nearest_leaves(
    space: LeafSpace, Z: FloatArray, ids: IntArray, moves: Moves, sure: bool = False
) -> tuple[FloatArray, FloatArray]:
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
    sure : bool
        Whether to leave out points whose sum is at the level, where rounding inside the model decides.

    Returns
    -------
    distance : ndarray, shape (ids,)
        Infinite where none was found.
    point : ndarray, shape (ids, p)
        On the scale of `Z`.
    """
    if sure:
        space = replace(space, tied=np.zeros_like(space.tied))
    same = space.bits.alike(space.value)[ids]
    rows, of = np.unique(same, return_index=True, return_inverse=True)[1:]
    rows = ids[rows]
    point = space.value[rows].copy()
    start = _Starts(space, rows)
    for tile in start.tiles():
        within = space.bits.within(rows[tile], *space.reach(rows[tile], start.farthest[tile]))
        search, *others = (
            _Search(space, rows[tile], within, start.cost[k, tile], start.at[k, tile], start.kept[k, tile])
            for k in (0, *range(_STARTS))
        )
        if point.shape[1] > _GIVEN_BACK:  # what one column can do shows which starts cannot come as near
            search.look_home()
        for other in others:
            other.give_back(np.flatnonzero(np.isfinite(other.best)), search.best)
            search.take_over(other)
        before = search.best.copy()
        search.run(min(moves.starts, point.shape[1]), moves.rounds + 2)
        search.give_back(np.flatnonzero(search.best < before))
        reached = np.flatnonzero(np.isfinite(search.best))
        point[tile[reached]] = space.points(rows[tile[reached]], search.best_at[reached])
    move = (point - space.value[rows]) / space.step
    far = length(move, space.norm)
    return np.where(far > 0, far, np.inf)[of], Z[ids] + move[of]


class _Starts:
    """A first point with the other decision for each row, from rows of that decision that are spread over the data."""

    def __init__(self, space: LeafSpace, rows: IntArray) -> None:
        self.space, self.rows = space, rows
        # The nearest first. What points cost, where they are, and the sum there, counted from the level towards the
        # own decision.
        self.cost = np.full((_STARTS, rows.size), np.inf)
        self.at = np.repeat(space.bits.at[None, rows], _STARTS, axis=0)
        self.kept = np.zeros((_STARTS, rows.size))
        for side in (1.0, -1.0):
            mine = np.flatnonzero(space.keep[rows] == side)
            others = self._spread(side)
            if mine.size and others.size:
                self._nearest(mine, others)
        self.farthest = np.where(np.isinf(self.cost), self.cost[0], self.cost).max(axis=0)

    def _spread(self, side: float) -> IntArray:
        """Return some rows that have the other decision; equal rows once, so that order and number do not matter."""
        scaled = self.space.value / self.space.step
        rows = np.flatnonzero(self.space.keep != side)
        rows = rows[np.lexsort(scaled[rows].T)]
        new = np.ones(rows.size, dtype=bool)
        new[1:] = (scaled[rows[1:]] != scaled[rows[:-1]]).any(axis=1)
        rows = rows[new]
        return rows[np.unique(np.linspace(0, rows.size - 1, _SENTINELS).astype(int))] if rows.size else rows

    def _nearest(self, mine: IntArray, others: IntArray) -> None:
        """Try the nearest of other rows, with the rows' own values of what stays."""
        from scipy.spatial import cKDTree

        space = self.space
        stays = space.bits.stay.shape[1] > 0
        tried = min(_TRIED if stays else _STARTS, others.size)
        scaled = space.value / space.step
        near = cKDTree(scaled[others]).query(scaled[self.rows[mine]], k=tried, p=NORMS[space.norm])[1]
        count = np.zeros(mine.size, dtype=np.int64)  # points that each row has
        for place in near.reshape(mine.size, tried).T:
            left = np.flatnonzero(count < _STARTS)
            if not left.size:
                break
            who, there = mine[left], others[place[left]]
            ids, at = self.rows[who], space.bits.at[there]
            total = space.bits.total(ids, at, space.worth) if stays else space.total[there]
            kept = space.keep[ids] * (total - space.level)
            works = np.flatnonzero(space.flips(kept, ids))
            where = count[left[works]], who[works]
            self.cost[where] = space.joined(space.costs(ids[works], at[works]))
            self.at[where], self.kept[where] = at[works], kept[works]
            count[left[works]] += 1

    def tiles(self) -> Iterator[IntArray]:
        """Put rows together that can come into the same leaves."""
        first, last = self.space.reach(self.rows, self.farthest)
        between = self.space.bits.between(self.rows, first, last)
        words = sum(block.full.size for block in self.space.bits.blocks)
        most = int(np.clip(_BYTES // (8 * words), _FEWEST, _MOST))
        left = [np.arange(self.rows.size)]
        while left:
            some = left.pop()
            if some.size <= most:
                if some.size:
                    yield some
                continue
            widest = int(np.ptp(between[some], axis=0).argmax())
            order = np.argsort(between[some, widest], kind="stable")
            left += [some[order[: some.size // 2]], some[order[some.size // 2 :]]]


# Along one column: rows, places, sums counted from the level towards the own decision, and costs of being there.
_Line = tuple[int, IntArray, IntArray, FloatArray, FloatArray]
# Of the best move of each column, each (rows, p): what it is worth, where it goes, and the sum there.
_Best = tuple[FloatArray, IntArray, FloatArray]


class _Search:
    """The search from some rows."""

    def __init__(
        self, space: LeafSpace, ids: IntArray, within: Reach, best: FloatArray, at: IntArray, kept: FloatArray
    ) -> None:
        self.space, self.ids, self.within = space, ids, within
        self.home = space.bits.at[ids]
        self.best = best  # the least cost so far
        self.best_at = at
        self.best_kept = kept  # the sum there, counted from the level towards the own decision

    def look_home(self) -> _Best:
        """Look along all columns from where the rows are."""
        space = self.space
        kept = space.keep[self.ids] * (space.total[self.ids] - space.level)
        return self._look(np.arange(self.ids.size), self.home, kept)

    def run(self, starts: int, moves: int) -> None:
        """Move columns one after the other, from several first moves."""
        everyone = np.arange(self.ids.size)
        worth, place, kept = self.look_home()
        order = np.argsort(-worth, axis=1, kind="stable")
        been = np.full((starts, moves, *self.home.shape), -1)  # where each row was, so as not to look there twice
        for start in range(starts):
            column = order[:, start]
            rows = np.flatnonzero(worth[everyone, column] > 0)
            at = self.home[rows]
            at[np.arange(rows.size), column[rows]] = place[rows, column[rows]]
            now = kept[rows, column[rows]]
            for count in range(moves):
                new = np.flatnonzero(~(been[:start, : count + 1, rows] == at).all(axis=3).any(axis=(0, 1)))
                rows, at, now = rows[new], at[new], now[new]
                if not rows.size:
                    break
                been[start, count, rows] = at
                next_worth, next_place, next_kept = self._look(rows, at, now)
                if count == moves - 1:
                    break
                following = next_worth.argmax(axis=1)
                on = np.flatnonzero(next_worth[np.arange(rows.size), following] > 0)
                rows, at, now = rows[on], at[on], next_kept[on, following[on]]
                at[np.arange(on.size), following[on]] = next_place[on, following[on]]

    def give_back(self, rows: IntArray, known: FloatArray | None = None) -> None:
        """Bring columns back towards the row's own value, as far as the decision stays the other one.

        Each round brings one column back. A row is left as soon as those that remain cannot make it cheaper than what
        is known.
        """
        for left in range(_GIVEN_BACK, 0, -1):
            if known is not None:
                costs = np.sort(self.space.costs(self.ids[rows], self.best_at[rows]), axis=1)
                rows = rows[self.space.joined(costs[:, :-left]) < known[rows]]
            if not rows.size:
                break
            before = self.best[rows]
            at = self.best_at[rows]
            for line in self._lines(rows, at, self.best_kept[rows]):
                self._take(rows, at, line, self._flips(line[3], rows[line[1]]))
            rows = rows[self.best[rows] < before]

    def take_over(self, other: _Search) -> None:
        """Take what another search from the same rows found, where it is nearer."""
        nearer = np.flatnonzero(other.best < self.best)
        self.best[nearer], self.best_at[nearer] = other.best[nearer], other.best_at[nearer]
        self.best_kept[nearer] = other.best_kept[nearer]

    def _flips(self, kept: FloatArray, rows: IntArray) -> BoolArray:
        return self.space.flips(kept, self.ids[rows])

    def _look(self, rows: IntArray, at: IntArray, now: FloatArray) -> _Best:
        """Note where one more column changes the decision, and return the best move of each column that does not.

        A move that does not help is worth 0.
        """
        space = self.space
        worth, where, left = np.zeros(at.shape), at.copy(), np.zeros(at.shape)
        here = space.joined(space.costs(self.ids[rows], at))
        for j, row, place, kept, cost in self._lines(rows, at, now):
            flips = self._flips(kept, rows[row])
            self._take(rows, at, (j, row, place, kept, cost), flips)
            drop = now[row] - kept
            some = np.flatnonzero((drop > 0) & ~flips & (cost < self.best[rows[row]]))
            drop, row = drop[some] / WHOLE, row[some]
            # Along a straight slope this is the same for short and long moves.
            gain = (drop * drop if space.norm == "l2" else drop) / np.maximum(cost[some] - here[row], 1e-12)
            first, most = _largest(row, gain)
            who, chosen = row[first], some[first]
            worth[who, j], where[who, j], left[who, j] = most, place[chosen], kept[chosen]
        return worth, where, left

    def _take(self, rows: IntArray, at: IntArray, line: _Line, flips: BoolArray) -> None:
        """Keep the cheapest place of a line with the other decision where it is cheaper than what is known."""
        j, row, place, kept, cost = line
        some = np.flatnonzero(flips)
        some = some[cost[some] < self.best[rows[row[some]]]]
        first, less = _largest(row[some], -cost[some])
        chosen = some[first]
        better = at[row[chosen]]
        better[:, j] = place[chosen]
        who = rows[row[chosen]]
        self.best[who], self.best_at[who], self.best_kept[who] = -less, better, kept[chosen]

    def _lines(self, rows: IntArray, at: IntArray, now: FloatArray) -> Iterator[_Line]:
        """Give for each column all places that are not farther than the best point known.

        `now` is the sum where the rows are, counted from the level towards the own decision.
        """
        space, ids = self.space, self.ids[rows]
        bound = self.best[rows]
        rest = space.others(space.costs(ids, at))
        room = np.where(rest < bound[:, None], bound[:, None] - (0.0 if space.norm == "linf" else rest), 0.0)
        first, last = space.reach(ids, room)
        first, last = np.minimum(first, at), np.maximum(last, at)
        for j, row, leaf in self.within.lines(rows, at, first, last):
            row, place, change = self._changes(j, (row, leaf), first[:, j], last[:, j], at[:, j])
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


def _largest(row: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the place of the largest value of each row that occurs, the first of equal ones, and the value.

    Rows are in order.
    """
    start = np.flatnonzero(_begins(row))
    if not start.size:
        return start, values
    most = np.maximum.reduceat(values, start)
    equal = np.flatnonzero(values == np.repeat(most, np.diff(start, append=row.size)))
    return equal[_begins(row[equal])], most


def _begins(row: IntArray) -> BoolArray:
    """Say where another row begins."""
    new = np.ones(row.size, dtype=bool)
    np.not_equal(row[1:], row[:-1], out=new[1:])
    return new
