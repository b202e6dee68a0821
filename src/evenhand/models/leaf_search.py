"""Forests and boosted trees: a search for the nearest point with the other decision that is exact along each column.

With all columns but one where they are, the sum over the trees' leaves is known at every value of that column. From
each row the search makes, one column after the other, the moves that bring the sum fastest to the level at which the
decision changes, looks after each of them along all columns for the nearest value that changes it, and gives every
column back as much as the decision allows. It need not look farther than the nearest of some rows with the other
decision, nor, after the first look, into leaves that are farther than what that look found, and it stops where moves at
the pace of the best ones would not come to the level in time. At the end rows try the points found for neighbours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.models.leaf_boxes import Tile
from evenhand.models.leaf_space import LeafSpace
from evenhand.models.leaves import WHOLE
from evenhand.models.moves import NORMS, Moves, length

_GIVEN_BACK = 4  # rounds in which columns are given back
_SENTINELS = 4096  # rows of the other decision
_TRIED = 6  # how many of them are tried from a row, the nearest, and how many points of its neighbours
_STARTS = 2  # how many of those that have the other decision with the row's own values of what stays are started from
_FEW = 8  # columns up to which the points of neighbours find what other rows and more first moves would
_FEWER = 1  # how many first moves less are made then
# How much of the sum the best moves of all columns, each counted alone, must promise to take away. Trees let columns
# help each other, so less than the whole: below, one look in a thousand found a nearer point on the Adult data, and one
# in sixty with twelve columns.
_HOPE = 0.5
_MORE = 3  # how many moves more are made than rounds are asked for


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
        Effort: `starts` columns that are moved first, and some moves more than `rounds` from each.
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
    same = space.boxes.alike(space.value)[ids]
    rows, of = np.unique(same, return_index=True, return_inverse=True)[1:]
    search = _Search(space, ids[rows])
    many, starts = Z.shape[1] > _FEW, moves.starts
    if not (many or space.boxes.stays):
        starts = max(1, starts - _FEWER)
    search.note_others()
    search.look_home()
    if many:  # what one column can do shows which of many columns need not be given back
        search.from_others()
    search.run(min(starts, Z.shape[1]), moves.rounds + _MORE)
    search.from_others(nearer=True)
    search.from_neighbours()
    move = (space.points(search.ids, search.best_at) - space.value[search.ids]) / space.step
    far = length(move, space.norm)
    return np.where(far > 0, far, np.inf)[of], Z[ids] + move[of]


# Of the best move of each column, each (rows, p): what it is worth, where it goes, and the sum there.
_Best = tuple[FloatArray, IntArray, FloatArray]


class _Search:
    """The search from some rows."""

    def __init__(self, space: LeafSpace, ids: IntArray) -> None:
        self.space, self.ids = space, ids
        self.home = space.boxes.at[ids]
        # Sums are counted from the level towards the own decision.
        self.kept = space.keep[ids] * (space.total[ids] - space.level)
        self.best = np.full(ids.size, np.inf)  # the least cost so far
        self.best_at, self.best_kept = self.home.copy(), np.zeros(ids.size)
        # (rows, tried): some rows with the other decision, the nearest first; -1 for none.
        self.others = np.full((ids.size, _TRIED if space.boxes.stays else _STARTS), -1)
        self.first: _Best = np.zeros(self.home.shape), self.home.copy(), np.zeros(self.home.shape)  # moves from home

    def note_others(self) -> None:
        """Note the nearest of some rows with the other decision, and how far it is, before anything is looked at."""
        space = self.space
        for side in (1.0, -1.0):
            mine, others = np.flatnonzero(space.keep[self.ids] == side), self._spread(side)
            if mine.size and others.size:
                near = others[self._nearest(mine, others)]
                self.others[mine, : near.shape[1]] = near
        if space.boxes.stays:
            return
        who = np.flatnonzero(self.others[:, 0] >= 0)
        there = self.others[who, 0]
        kept = space.keep[self.ids[who]] * (space.total[there] - space.level)
        some = np.flatnonzero(space.flips(kept, self.ids[who]))
        who, there = who[some], there[some]
        self.best_at[who], self.best_kept[who] = space.boxes.at[there], kept[some]
        self.best[who] = space.joined(space.costs(self.ids[who], self.best_at[who]))

    def from_others(self, nearer: bool = False) -> None:
        """Start from the nearest of some rows with the other decision, and give their columns back.

        Parameters
        ----------
        nearer : bool
            Whether to start only from those that are nearer than the best known.
        """
        space, boxes = self.space, self.space.boxes
        count = np.zeros(self.ids.size, dtype=np.int64)  # points that each row started from
        for other in self.others.T:
            who = np.flatnonzero((count < _STARTS) & (other >= 0))
            if nearer:
                far = space.joined(space.costs(self.ids[who], boxes.at[other[who]]))
                who = who[far < self.best[who]]
            if not who.size:
                continue
            there = other[who]
            at = boxes.at[there]
            total = boxes.total(self.ids[who], at, space.worth) if boxes.stays else space.total[there]
            kept = space.keep[self.ids[who]] * (total - space.level)
            works = np.flatnonzero(space.flips(kept, self.ids[who]))
            count[who[works]] += 1
            self._from(who[works], at[works], kept[works])

    def from_neighbours(self) -> None:
        """Start from the points that were found for rows nearby of which the same stays: they are points of theirs."""
        from scipy.spatial import cKDTree

        space = self.space
        stays = space.boxes.alike(space.value[:, :0])[self.ids]
        own = space.value[self.ids] / space.step
        for side in (1.0, -1.0):
            mine = np.flatnonzero(space.keep[self.ids] == side)
            owner = mine[np.isfinite(self.best[mine])]
            if not owner.size:
                continue
            found = np.column_stack([stays[owner], self.best_at[owner]])
            owner = owner[np.unique(found, axis=0, return_index=True)[1]]
            points = space.points(self.ids[owner], self.best_at[owner]) / space.step
            # Of whom something else stays is farther than anybody else.
            apart = (1.0 + np.ptp(np.concatenate([own, points]), axis=0).sum()) * stays
            tried = min(_TRIED, owner.size)
            near = cKDTree(np.column_stack([points, apart[owner]])).query(
                np.column_stack([own[mine], apart[mine]]), k=tried, p=NORMS[space.norm]
            )[1]
            near = owner[np.asarray(near).reshape(mine.size, tried)]
            cost = space.joined(
                space.costs(np.repeat(self.ids[mine], tried), self.best_at[near].reshape(-1, self.home.shape[1]))
            ).reshape(near.shape)
            cost[stays[near] != stays[mine, None]] = np.inf
            best = cost.argmin(axis=1)
            some = np.flatnonzero(cost[np.arange(mine.size), best] < self.best[mine])
            source = near[some, best[some]]
            self._from(mine[some], self.best_at[source], self.best_kept[source])

    def _from(self, rows: IntArray, at: IntArray, kept: FloatArray) -> None:
        """Give back the columns of points with the other decision; what is nearer than the best known is kept."""
        costs = self.space.costs(self.ids[rows], at)
        some = np.flatnonzero(self._can(costs, _GIVEN_BACK, self.best[rows]))
        rows, at, kept, costs = rows[some], at[some], kept[some], costs[some]
        known = self.best[rows], self.best_at[rows], self.best_kept[rows]
        self.best[rows], self.best_at[rows], self.best_kept[rows] = self.space.joined(costs), at, kept
        here, there = (self.space.boxes.with_stay(self.ids[rows], a) for a in (self.home[rows], at))
        least = np.full(self.ids.size, np.inf)
        least[rows] = known[0]
        for tile in self.space.boxes.tiles(rows, np.minimum(here, there), np.maximum(here, there)):
            self._give_back(tile, least)
        worse = np.flatnonzero(known[0] <= self.best[rows])
        for mine, before in zip((self.best, self.best_at, self.best_kept), known, strict=True):
            mine[rows[worse]] = before[worse]

    def _can(self, costs: FloatArray, rounds: int, known: FloatArray) -> BoolArray:
        """Say where giving back so many columns can make a point cheaper than what is known."""
        return np.asarray(self.space.joined(np.sort(costs, axis=1)[:, :-rounds]) < known)

    def _spread(self, side: float) -> IntArray:
        """Return some rows that have the other decision; equal rows once, so that order and number do not matter."""
        scaled = self.space.value / self.space.step
        rows = np.flatnonzero(self.space.keep != side)
        rows = rows[np.lexsort(scaled[rows].T)]
        new = np.ones(rows.size, dtype=bool)
        new[1:] = (scaled[rows[1:]] != scaled[rows[:-1]]).any(axis=1)
        rows = rows[new]
        return rows[np.unique(np.linspace(0, rows.size - 1, _SENTINELS).astype(int))] if rows.size else rows

    def _nearest(self, mine: IntArray, others: IntArray) -> IntArray:
        """Return the nearest of other rows, shape (mine, tried)."""
        from scipy.spatial import cKDTree

        space = self.space
        tried = min(self.others.shape[1], others.size)
        scaled = space.value / space.step
        near = cKDTree(scaled[others]).query(scaled[self.ids[mine]], k=tried, p=NORMS[space.norm])[1]
        return np.asarray(near).reshape(mine.size, tried)

    def look_home(self) -> None:
        """Look along all columns from where the rows are."""
        boxes, everyone = self.space.boxes, np.arange(self.ids.size)
        for tile in boxes.tiles(everyone, *self._reach(everyone), boxes.with_stay(self.ids, self.home)):
            found = self._look(tile, np.arange(tile.rows.size), self.home[tile.rows], self.kept[tile.rows])
            for whole, part in zip(self.first, found, strict=True):
                whole[tile.rows] = part

    def run(self, starts: int, moves: int) -> None:
        """Make several chains of moves, and look along all columns from where they lead."""
        everyone = np.arange(self.ids.size)
        # What was looked at before other points were found may be farther away than these.
        self.first[0][self.space.costs(self.ids, self.first[1]) >= self.best[:, None]] = 0.0
        some = np.flatnonzero(self._hopeful(everyone, self.first[0], self.kept, np.zeros(self.ids.size)))
        first, last = self._reach(some)
        for tile in self.space.boxes.tiles(some, first, last):
            self._chains(tile, starts, moves)
            self._give_back(tile)

    def _hopeful(self, who: IntArray, worth: FloatArray, now: FloatArray, here: FloatArray) -> BoolArray:
        """Say which rows could come to the other decision before they are as far as the best known.

        Parameters
        ----------
        who : ndarray of int
            The rows.
        worth : ndarray, shape (rows, p)
            Of the best move of each column.
        now, here : ndarray
            The sum where they are, and what they paid to be there.
        """
        room, pace = np.maximum(self.best[who] - here, 0.0), worth.max(axis=1, initial=0.0)
        if self.space.norm != "l1":  # where the columns' costs are shared out best, their paces add up
            pace = worth.sum(axis=1)
        hope = np.where(pace > 0, room, 0.0) * pace
        return np.asarray((np.sqrt(hope) if self.space.norm == "l2" else hope) > _HOPE * (now / WHOLE))

    def _reach(self, who: IntArray) -> tuple[IntArray, IntArray]:
        """Return between which places of all columns the points lie that are not farther than the best known."""
        ids = self.ids[who]
        first, last = self.space.reach(ids, self.best[who])
        return self.space.boxes.with_stay(ids, first), self.space.boxes.with_stay(ids, last)

    def _chains(self, tile: Tile, starts: int, moves: int) -> None:
        """Move columns one after the other, from several first moves."""
        worth, place, kept = self.first[0][tile.rows], self.first[1][tile.rows], self.first[2][tile.rows]
        order = np.argsort(-worth, axis=1, kind="stable")
        home = self.home[tile.rows]
        been = np.full((starts, moves, *home.shape), -1)  # where each row was, so as not to look there twice
        for start in range(starts):
            column = order[:, start]
            rows = np.flatnonzero(worth[np.arange(column.size), column] > 0)
            column, at = column[rows], home[rows]
            to, now = place[rows, column], kept[rows, column]
            for count in range(moves):
                at[np.arange(rows.size), column] = to
                new = np.flatnonzero(~(been[:start, : count + 1, rows] == at).all(axis=3).any(axis=(0, 1)))
                if not new.size:
                    break
                rows, at, now = rows[new], at[new], now[new]
                been[start, count, rows] = at
                found = self._look(tile, rows, at, now)
                column = found[0].argmax(axis=1)
                who = tile.rows[rows]
                here = self.space.joined(self.space.costs(self.ids[who], at))
                on = np.flatnonzero(self._hopeful(who, found[0], now, here))
                rows, at, column = rows[on], at[on], column[on]
                to, now = found[1][on, column], found[2][on, column]

    def _give_back(self, tile: Tile, known: FloatArray | None = None) -> None:
        """Bring columns back towards the row's own value, as far as the decision stays the other one.

        Each round brings one column back. A row is left as soon as those that remain cannot make it cheaper than what
        is known.
        """
        rows = np.arange(tile.rows.size)
        for left in range(_GIVEN_BACK, 0, -1):
            who = tile.rows[rows]
            open_rows = (self.best_at[who] != self.home[who]).sum(axis=1) > 1
            if known is not None:
                open_rows &= self._can(self.space.costs(self.ids[who], self.best_at[who]), left, known[who])
            rows = rows[open_rows]
            if not rows.size:
                break
            who = tile.rows[rows]
            before = self.best[who]
            self._look(tile, rows, self.best_at[who], self.best_kept[who], back=True)
            rows = rows[self.best[who] < before]

    def _look(self, tile: Tile, rows: IntArray, at: IntArray, now: FloatArray, back: bool = False) -> _Best:
        """Note where one more column changes the decision, and return the best move of each column that does not.

        Parameters
        ----------
        tile : Tile
            The leaves.
        rows, at, now : ndarray
            Which rows of the tile, their places, and the sums there, counted from the level towards the own decision.
        back : bool
            Whether columns only come back towards the row's own value, from where the decision is the other one.

        Returns
        -------
        tuple of ndarray
            A move that does not help is worth 0.
        """
        space, who = self.space, tile.rows[rows]
        ids = self.ids[who]
        costs = space.costs(ids, at)
        here, rest = space.joined(costs), space.others(costs)
        bound = self.best[who, None]
        if back:
            first, last = self.home[who], self.home[who]
        else:
            room = np.where(rest < bound, bound - (0.0 if space.norm == "linf" else rest), 0.0)
            first, last = space.reach(ids, room)
        first, last = np.minimum(first, at), np.maximum(last, at)
        line, place, change = tile.along(rows, at, self.home[who], first, last, space.worth)
        of_row, of_column = np.tile(np.arange(rows.size), at.shape[1]), np.repeat(np.arange(at.shape[1]), rows.size)
        row = of_row[line]
        change *= space.keep[ids][row]
        kept = now[row] + change
        flips = space.flips(kept, ids[row])
        some = np.flatnonzero(flips if back else flips | (change < 0))
        line, row, place, kept, flips = line[some], row[some], place[some], kept[some], flips[some]
        column = of_column[line]
        cost, other = space.price(ids[row], column, place), rest[row, column]
        cost = np.maximum(other, cost) if space.norm == "linf" else other + cost
        some = np.flatnonzero(flips & (cost < self.best[who[row]]))
        some = some[np.lexsort((cost[some], row[some]))]
        some = some[_begins(row[some])]
        better = at[row[some]]
        better[np.arange(some.size), column[some]] = place[some]
        found = who[row[some]]
        self.best[found], self.best_at[found], self.best_kept[found] = cost[some], better, kept[some]
        worth, where, left = np.zeros(at.shape), at.copy(), np.zeros(at.shape)
        if back:
            return worth, where, left
        some = np.flatnonzero(~flips & (cost < self.best[who[row]]))
        drop = (now[row[some]] - kept[some]) / WHOLE
        # Along a straight slope this is the same for short and long moves.
        gain = (drop * drop if space.norm == "l2" else drop) / np.maximum(cost[some] - here[row[some]], 1e-12)
        chosen, most = _largest(line[some], gain)
        chosen = some[chosen]
        for out, values in ((worth, most), (where, place[chosen]), (left, kept[chosen])):
            out[row[chosen], column[chosen]] = values
        return worth, where, left


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
