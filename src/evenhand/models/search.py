"""Any classifier: a search for the nearest point with the other decision, and how accurate it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.kernels.shared.seeds import stream
from evenhand.models.moves import NORMS, Moves, length

AskRows = Callable[[FloatArray, IntArray], FloatArray]  # points, and the rows they were moved from
# From rows, effort and whether to leave out points on which rounding decides to distances and points: a search that
# knows the model from inside.
Nearest = Callable[[IntArray, Moves, bool], tuple[FloatArray, FloatArray]]

_HALVINGS = 24  # a segment is cut to 6e-8 of its length
_NARROW = 0.5**_HALVINGS
_CHECKED = 48  # rows searched again, harder, to state the accuracy
_SENTINELS = 32  # rows of the other decision tried when the nearest ones do not help
_CROWD = 10  # where a score has steps, so many times more points are tried before the search starts
_FAR = 64.0  # a straight search ends at so many ranges of the data
_STEP = 1e-4  # of finite differences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Searched:
    """What a search found."""

    distance: FloatArray  # (n,): an upper bound of the distance to the boundary
    point: FloatArray  # (n, d): the point so far away, with the other decision; the row itself where none was found
    # How much shorter, relatively, a search with four times the effort was on some rows: the middle one and the
    # 95 % point.
    excess_median: float
    excess_high: float


def search_boundary(
    decide: AskRows,
    score: AskRows | None,
    Z: FloatArray,
    moves: Moves,
    *,
    shared: bool = False,
    seed: int = 0,
    inside: Nearest | None = None,
) -> Searched:
    """Search the boundary from every row.

    From each row towards its nearest rows of the other decision; then back along each feature as far as the
    decision allows, and, where the score has a slope, along the normal of the boundary. A row keeps inputs that do not
    move, such as categories. What the nearest rows of the other decision have need not change this row's decision; then
    the steepest direction, far rows and the ends of each feature are tried.

    Parameters
    ----------
    decide : callable
        From points, shape (m, d), and the rows they were moved from, shape (m,), to decisions.
    score : callable or None
        As `decide`, to score minus threshold; helps on smooth models, and is needed unless `shared`.
    Z : ndarray, shape (n, d)
        The inputs that move, on one scale; `decide` takes them on that scale.
    moves : Moves
        Length of a move, and effort.
    shared : bool
        Whether a point's decision does not depend on whose point it is.
    seed : int
        For the choice of rows that are searched again.
    inside : callable, optional
        A search that knows the model from inside, asked first; its points are checked with `decide`.

    Returns
    -------
    Searched
        Distances are infinite where no point with the other decision was found.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = search_boundary(lambda z, _: (z[:, 0] > 0).astype(float), None, Z, Moves(), shared=True)
    >>> bool(np.allclose(found.distance, np.abs(Z[:, 0]), atol=1e-5))
    True
    >>> Z, job = np.array([[0.0], [2.0], [2.0]]), np.array([1.0, 1.0, -9.0])
    >>> ask = lambda z, rows: z[:, 0] - job[rows]
    >>> search_boundary(lambda z, rows: (ask(z, rows) > 0) * 1.0, ask, Z, Moves()).distance.round(4).tolist()
    [1.0, 1.0, 11.0]
    """
    everyone = np.arange(len(Z))
    decision = decide(Z, everyone)
    # Trees look flat at so small a step; there secants would only waste calls.
    smooth = False
    if score is not None and inside is None:
        margin = score(Z, everyone)
        agrees = bool(np.all((margin == 0) | ((margin > 0) == (decision == 1))))
        smooth = agrees and bool(np.mean(score(Z + 1e-7, everyone) != margin) > 0.5)
    ask = _Ask(decide, score, smooth, decision, shared)
    nearest, point = _first_inside(ask, Z, everyone, moves, inside)
    if not np.isfinite(nearest).any():
        return Searched(distance=nearest, point=point, excess_median=0.0, excess_high=0.0)
    # By content, not by place. What is found harder is not taken: it would be for some rows and not for others.
    picked = np.lexsort(Z.T)[stream(seed, "models/search").choice(len(Z), size=min(_CHECKED, len(Z)), replace=False)]
    harder = replace(moves, starts=4 * moves.starts, rounds=2 * moves.rounds)
    again = _first_inside(ask, Z, picked, harder, inside)[0]
    reached = np.isfinite(again)
    excess = np.maximum(0.0, 1 - again[reached] / np.maximum(nearest[picked][reached], 1e-300))
    median, high = np.quantile(excess, [0.5, 0.95]) if excess.size else (0.0, 0.0)
    return Searched(distance=nearest, point=point, excess_median=float(median), excess_high=float(high))


@dataclass(frozen=True, slots=True, eq=False)
class _Ask:
    """The model as a search sees it: `shared` when a point's decision does not depend on whose point it is."""

    decide: AskRows
    score: AskRows | None
    smooth: bool
    decision: FloatArray  # (n,)
    shared: bool

    def flipped(self, points: FloatArray, rows: IntArray) -> BoolArray:
        return np.asarray(self.decide(points, rows) != self.decision[rows], dtype=bool)

    def slope(self, points: FloatArray, rows: IntArray) -> FloatArray:
        assert self.score is not None
        here = self.score(points, rows)
        slope = np.empty_like(points)
        for feature in range(points.shape[1]):
            shifted = points.copy()
            shifted[:, feature] += _STEP
            slope[:, feature] = (self.score(shifted, rows) - here) / _STEP
        return slope


def _first_inside(
    ask: _Ask, Z: FloatArray, ids: IntArray, moves: Moves, inside: Nearest | None
) -> tuple[FloatArray, FloatArray]:
    """Search from inside the model where that is possible, and from outside where the model does not confirm it."""
    if inside is None:
        return _nearest(ask, Z, ids, moves)
    best, point = inside(ids, moves, False)
    wrong = _unconfirmed(ask, ids, best, point)
    if wrong.size:
        best[wrong], point[wrong] = inside(ids[wrong], moves, True)
        wrong = wrong[_unconfirmed(ask, ids[wrong], best[wrong], point[wrong])]
    if wrong.size:
        best[wrong], point[wrong] = _nearest(ask, Z, ids[wrong], moves)
    return best, point


def _unconfirmed(ask: _Ask, ids: IntArray, best: FloatArray, point: FloatArray) -> IntArray:
    """Return the rows whose point does not have the other decision when the model is asked."""
    reached = np.flatnonzero(np.isfinite(best))
    return reached[~ask.flipped(point[reached], ids[reached])] if reached.size else reached


def _nearest(ask: _Ask, Z: FloatArray, ids: IntArray, moves: Moves) -> tuple[FloatArray, FloatArray]:
    """Return the distance of each row to the nearest point found, and that point."""
    from scipy.spatial import cKDTree

    norm, starts = moves.norm, moves.starts
    best, nearest = np.full(len(ids), np.inf), Z[ids].copy()
    rows, points = [], []
    for side in (0.0, 1.0):
        own = np.flatnonzero(ask.decision[ids] == side)
        others = Z[ask.decision != side]
        if own.size and len(others):
            k = min(starts if ask.shared or ask.smooth else _CROWD * starts, len(others))
            near = cKDTree(others).query(Z[ids[own]], k=k, p=NORMS[norm])[1].reshape(own.size, k)
            rows.append(np.repeat(own, k))
            points.append(others[near.reshape(-1)])
    if not rows and ask.shared:
        return best, nearest
    # All starts of all rows go through the model together: it is called some hundred times, however many rows.
    row = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
    point = np.concatenate([*points, np.empty((0, Z.shape[1]))])
    if not ask.shared:
        if row.size:
            works = ask.flipped(point, ids[row])
            row, point = row[works], point[works]
        if not ask.smooth:
            along, there = _axis_starts(ask, Z, ids, _CROWD * starts)
            row, point = np.concatenate([row, along]), np.concatenate([point, there])
            row, point = _shortest(Z[ids[row]], row, point, norm, 2 * starts)
        lost = np.setdiff1d(np.arange(len(ids)), row)
        reached, there = _far_starts(ask, Z, ids[lost], norm)
        row, point = np.concatenate([row, lost[reached]]), np.concatenate([point, there])
        if not row.size:
            return best, nearest
    base, of = Z[ids[row]], ids[row]
    point = _shrink(ask, base, point, of)
    for _ in range(moves.rounds):
        point = _restore(ask, base, point, of)
        if ask.smooth or (ask.shared and ask.score is not None):
            point = _slide(ask, base, point, of, norm)
    far = length(point - base, norm)
    order = np.lexsort((far, row))
    first = order[np.unique(row[order], return_index=True)[1]]  # the shortest of each row
    best[row[first]], nearest[row[first]] = far[first], point[first]
    return best, nearest


def _axis_starts(ask: _Ask, Z: FloatArray, ids: IntArray, many: int) -> tuple[IntArray, FloatArray]:
    """Return the rows whose decision changes along one feature alone, and the nearest such value on either side."""
    rows, points = [], []
    for feature in range(Z.shape[1]):
        seen = np.unique(Z[:, feature])
        values = seen[np.unique(np.linspace(0, len(seen) - 1, many).astype(int))]
        for upward in (True, False):
            open_rows = np.arange(len(ids))
            for value in values if upward else values[::-1]:
                own = Z[ids[open_rows], feature]
                ahead = np.flatnonzero(own < value if upward else own > value)
                if not ahead.size:
                    continue
                trial = Z[ids[open_rows[ahead]]]
                trial[:, feature] = value
                works = ask.flipped(trial, ids[open_rows[ahead]])
                rows.append(open_rows[ahead[works]])
                points.append(trial[works])
                open_rows = np.delete(open_rows, ahead[works])
    none, nowhere = np.empty(0, dtype=np.int64), np.empty((0, Z.shape[1]))
    return np.concatenate([none, *rows]), np.concatenate([nowhere, *points])


def _shortest(base: FloatArray, row: IntArray, point: FloatArray, norm: str, most: int) -> tuple[IntArray, FloatArray]:
    """Keep so many points of each row, the nearest."""
    order = np.lexsort((length(point - base, norm), row))
    first = np.searchsorted(row[order], row[order])
    kept = order[np.arange(len(order)) - first < most]
    return row[kept], point[kept]


def _far_starts(ask: _Ask, Z: FloatArray, rows: IntArray, norm: str) -> tuple[IntArray, FloatArray]:
    """Return which of the rows were brought to the other decision after all, and the points that did it."""
    point = Z[rows].copy()
    open_rows = np.arange(len(rows))

    def attempt(trial: FloatArray) -> None:
        nonlocal open_rows
        if not open_rows.size:
            return
        works = ask.flipped(trial, rows[open_rows])
        point[open_rows[works]] = trial[works]
        open_rows = open_rows[~works]

    low, high = Z.min(axis=0), Z.max(axis=0)
    if ask.smooth and open_rows.size:
        move = _steepest(ask.slope(point, rows), norm)[0] * np.where(ask.decision[rows] == 1, -1.0, 1.0)[:, None]
        reach = 0.25
        while open_rows.size and reach <= _FAR * float((high - low).max()):
            attempt(point[open_rows] + reach * move[open_rows])
            reach *= 2
    assert ask.score is not None
    for side in (0.0, 1.0):
        others = Z[ask.decision != side]
        if not len(others):
            continue
        value = ask.score(others, np.flatnonzero(ask.decision != side))
        order = np.lexsort((*others.T, value))
        spread = order[np.unique(np.linspace(0, len(others) - 1, _SENTINELS).astype(int))]
        for place in spread if side == 0 else spread[::-1]:  # weakest first: they are nearer
            mine = ask.decision[rows[open_rows]] == side
            trial = point[open_rows]
            trial[mine] = others[place]
            attempt(trial)
    for feature in range(Z.shape[1]):
        for end in (low[feature], high[feature]):
            trial = point[open_rows]
            trial[:, feature] = end
            attempt(trial)
    reached = np.setdiff1d(np.arange(len(rows)), open_rows)
    return reached, point[reached]


def _shrink(ask: _Ask, base: FloatArray, point: FloatArray, rows: IntArray) -> FloatArray:
    """Pull points towards their base as far as the decision stays the other one."""
    if not len(base):
        return point
    if ask.smooth:
        return _shrink_smooth(ask, base, point, rows)
    low, high = np.zeros(len(base)), np.ones(len(base))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        keep = ask.flipped(base + middle[:, None] * (point - base), rows)
        high = np.where(keep, middle, high)
        low = np.where(keep, low, middle)
    return np.where((high < 1)[:, None], base + high[:, None] * (point - base), point)


def _shrink_smooth(ask: _Ask, base: FloatArray, point: FloatArray, rows: IntArray) -> FloatArray:
    """Do the same by the Illinois rule of secants: a third of the calls when the score is smooth."""
    assert ask.score is not None
    sign = np.where(ask.decision[rows] == 1, -1.0, 1.0)
    ends = np.column_stack([np.zeros(len(base)), np.ones(len(base))])  # own decision, other decision
    value = np.column_stack(
        [np.minimum(sign * ask.score(base, rows), 0.0), np.maximum(sign * ask.score(point, rows), 0.0)]
    )
    trust = np.ones_like(value)
    last = np.full(len(base), -1)
    live = np.arange(len(base))
    for count in range(2 * _HALVINGS):
        (low, high), (below, above) = ends[live].T, value[live].T
        going = (high - low > _NARROW) & (above * (high - low) > _NARROW * (above - below))
        live, low, high = live[going], low[going], high[going]
        if not live.size:
            break
        below, above = (value[live] * trust[live]).T
        share = above / (above - below) if count % 4 < 3 else 0.5
        # Half a hair towards the other decision: the end that counts has that decision.
        middle = np.clip(high - (high - low) * share + 0.5 * _NARROW, low + 0.25 * _NARROW, high - 0.25 * _NARROW)
        there = sign[live] * ask.score(base[live] + middle[:, None] * (point[live] - base[live]), rows[live])
        end = (there > 0).astype(int)
        trust[live, 1 - end] *= np.where(last[live] == end, 0.5, 1.0)
        trust[live, end] = 1.0
        ends[live, end], value[live, end], last[live] = middle, there, end
    return np.where((ends[:, 1] < 1)[:, None], base + ends[:, 1:] * (point - base), point)


def _restore(ask: _Ask, base: FloatArray, point: FloatArray, rows: IntArray) -> FloatArray:
    """Give features back their own value, smallest changes first, where the decision stays the other one."""
    before, point = point, point.copy()
    places = np.arange(len(base))
    order = np.argsort(np.abs(point - base), axis=1)
    for column in range(base.shape[1]):
        feature = order[:, column]
        trial = point.copy()
        trial[places, feature] = base[places, feature]
        keep = ask.flipped(trial, rows)
        point[keep] = trial[keep]
    if ask.shared:
        return _shrink(ask, base, point, rows)
    changed = np.flatnonzero(np.any(point != before, axis=1))  # the others were pulled back already
    point[changed] = _shrink(ask, base[changed], point[changed], rows[changed])
    return point


def _slide(ask: _Ask, base: FloatArray, point: FloatArray, rows: IntArray, norm: str) -> FloatArray:
    """Step to where the tangent plane of the boundary is nearest, and pull back; keep what is shorter."""
    slope = ask.slope(point, rows)
    move, steep = _steepest(slope, norm)
    open_rows = steep > 1e-9
    if not open_rows.any():
        return point
    need = ((point - base) * slope).sum(axis=1) / np.maximum(steep, 1e-300)
    step_to = point
    for stretch in (1.001, 1.05, 1.3):
        trial = base + (stretch * need)[:, None] * move
        taken = open_rows & ask.flipped(trial, rows)
        step_to = np.where(taken[:, None], trial, step_to)
        open_rows &= ~taken
    shorter = _shrink(ask, base, step_to, rows)
    better = length(shorter - base, norm) < length(point - base, norm)
    return np.where(better[:, None], shorter, point)


def _steepest(slope: FloatArray, norm: str) -> tuple[FloatArray, FloatArray]:
    """Return the unit move that raises the linearised score most, and by how much."""
    if norm == "l2":
        steep = np.linalg.norm(slope, axis=1)
        return slope / np.maximum(steep, 1e-300)[:, None], steep
    if norm == "linf":  # all features alike
        return np.sign(slope), np.abs(slope).sum(axis=1)
    move = np.zeros_like(slope)  # one feature alone
    place, rows = np.abs(slope).argmax(axis=1), np.arange(len(slope))
    move[rows, place] = np.sign(slope[rows, place])
    return move, np.abs(slope).max(axis=1)
