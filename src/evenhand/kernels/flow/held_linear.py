"""Euler's steps for a linear score whose rows are held inside a region: the same steps with few passes over the rows.

A linear score has the gradient s w at every point, s being the loss's slope by the score. With the distance that leaves
the directions D free, one step multiplies the displacement d by a number and adds a few fixed vectors to it:

    d <- (1 - 2 h penalty) d + D push + h s w,

where push is what puts the displacement along D where the step and the region want it. So one product of matrices makes
the step, and one clip of the columns ends it. Inputs that are shares of one whole are then brought back to their sum.

Inputs that never come to an edge follow from what was added along the vectors alone, however many they are: only the
others have to be looked at in each step. Which these are is guessed, and checked when all steps are made; the few rows
for which the guess was wrong walk again with all inputs looked at.

=============  =======================================================  ====================
code           meaning                                                  shape
=============  =======================================================  ====================
d              displacement from the start                              (rows, inputs)
along          d D, displacement along the free directions              (rows, r)
vectors        D and w side by side                                     (inputs, r + outputs)
push           what is added along D                                    (rows, r)
=============  =======================================================  ====================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.kernels.flow.gradient_flow import Euler, Trajectory
from evenhand.kernels.flow.simplex import to_simplex
from evenhand.kernels.flow.tiles import Tiles

# Rows worked on together: the arrays of a step that keep all inputs out stay in the second-level cache.
TILE = 8192
# An input that at most this share of the rows bring to an edge is not looked at in each step.
FEW = 0.02
# A row counts as held when it is brought back by more than rounding.
ROUNDING = 1e-12

ByRow = Callable[[FloatArray, IntArray], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearScore:
    """A score and its loss."""

    weights: FloatArray  # (inputs, outputs): w
    bias: FloatArray  # (outputs,)
    slope: ByRow  # `slope(outputs, rows)` is the derivative of the loss of the rows with these numbers
    look: ByRow  # `look(outputs, rows)` is what is seen of them, shape (rows, values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Room:
    """How far each row may be displaced: along the free directions, and in each input."""

    # least, most (rows, r): along the free directions.
    least: FloatArray
    most: FloatArray
    # lowest, highest (rows, inputs): at most 0 and at least 0.
    lowest: FloatArray
    highest: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldFlow:
    """The differential equation of a linear score, and where its rows are held."""

    score: LinearScore
    directions: FloatArray  # (inputs, r): orthonormal, and free of any price
    penalty: float  # price of distance in all other directions
    room: Callable[[FloatArray], Room]  # of rows that start at these positions
    shares: tuple[IntArray, ...] = ()  # inputs that are at least 0 and sum to one


def follow_held(start: FloatArray, flow: HeldFlow, method: Euler, tiles: Tiles) -> Trajectory:
    """Follow the flow of a linear score from each row, as `follow` does for any.

    Parameters
    ----------
    start : ndarray, shape (rows, inputs)
        Where each row begins.
    flow : HeldFlow
        The differential equation.
    method : Euler
        Steps, and after which of them rows are observed.
    tiles : Tiles
        How rows are worked through.

    Returns
    -------
    Trajectory

    Examples
    --------
    One input is free and ends at its edge, the other is held back by its price.

    >>> flow = HeldFlow(
    ...     score=LinearScore(
    ...         weights=np.ones((2, 1)),
    ...         bias=np.zeros(1),
    ...         slope=lambda out, rows: np.ones_like(out),
    ...         look=lambda out, rows: out,
    ...     ),
    ...     directions=np.array([[1.0], [0.0]]),
    ...     penalty=50.0,
    ...     room=lambda x: Room(least=-9 + 0 * x[:, :1], most=9 + 0 * x[:, :1], lowest=0 * x - 3, highest=0 * x + 3),
    ... )
    >>> done = follow_held(np.zeros((1, 2)), flow, Euler(np.full(500, 0.01), [500]), Tiles())
    >>> done.end.round(6).tolist(), done.seen.round(6).tolist(), done.stopped.tolist()
    ([[3.0, 0.01]], [[[3.01]]], [True])
    """
    done = tiles.run(lambda rows: _steps(start[rows], rows, flow, method), start.shape[0])
    return Trajectory(
        end=np.concatenate([d[0] for d in done]) if done else np.empty_like(start),
        times=method.clock,
        seen=np.concatenate([d[2] for d in done], axis=1) if done else np.empty((method.clock.size, 0, 0)),
        stopped=np.concatenate([d[1] for d in done]) if done else np.zeros(0, dtype=bool),
    )


def _steps(
    start: FloatArray, rows: IntArray, flow: HeldFlow, method: Euler
) -> tuple[FloatArray, BoolArray, FloatArray]:
    tile = _Tile.of(start, rows, flow)
    end, held, seen, sure = tile.walk(method, tile.near_edges(method))
    again = np.flatnonzero(~sure)
    if again.size:
        everywhere = np.ones(start.shape[1], dtype=bool)
        part = _Tile.of(start[again], rows[again], flow)
        end[again], held[again], seen[:, again], _ = part.walk(method, everywhere)
    return start + end, held, seen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tile:
    """Some rows with what does not change while they move; the last axis is that of rows."""

    flow: HeldFlow
    rows: IntArray  # their numbers
    began: FloatArray  # (outputs, rows): the score at the start
    # least, most (r, rows), lowest, highest (inputs, rows): as in `Room`.
    least: FloatArray
    most: FloatArray
    lowest: FloatArray
    highest: FloatArray
    rounding: FloatArray  # (inputs, rows): a row that is brought back by more is held
    whole: tuple[FloatArray, ...]  # of each set of shares, where rows start, shape (shares, rows)

    @classmethod
    def of(cls, start: FloatArray, rows: IntArray, flow: HeldFlow) -> _Tile:
        """Make the tile of rows that start at these positions."""
        room = flow.room(start)
        least, most, lowest, highest, began, rounding = (
            np.ascontiguousarray(a.T)
            for a in (
                room.least, room.most, room.lowest, room.highest,
                start @ flow.score.weights + flow.score.bias, ROUNDING * (1.0 + np.abs(start)),
            )
        )  # fmt: skip
        return cls(
            flow=flow, rows=rows, began=began, least=least, most=most, lowest=lowest, highest=highest,
            rounding=rounding, whole=tuple(np.ascontiguousarray(start[:, block].T) for block in flow.shares),
        )  # fmt: skip

    def near_edges(self, method: Euler) -> BoolArray:
        """Mark inputs that some rows may bring to an edge; a guess that is checked when the rows have walked."""
        score = self.flow.score
        slope = np.abs(score.slope(self.began.T, self.rows)).T  # (outputs, rows)
        slope /= max(self.flow.penalty, 1.0 / float(np.sum(method.steps)))
        with np.errstate(invalid="ignore"):  # a reach that is not finite
            far = np.maximum(-self.least, self.most)
            reach = np.abs(self.flow.directions) @ far + np.abs(score.weights) @ slope
            near = ((reach > -self.lowest) | (reach > self.highest)).mean(axis=1) > FEW
        for block in self.flow.shares:
            near[block] = True
        return np.asarray(near)

    def walk(self, method: Euler, near: BoolArray) -> tuple[FloatArray, BoolArray, FloatArray, BoolArray]:
        """Make all steps; inputs that are not `near` an edge are taken to stay inside.

        Returns the displacements, who was held, what was seen, and for whom all that is sure.
        """
        flow, score, marks = self.flow, self.flow.score, set(method.marks)
        free, count = flow.directions.shape[1], self.rows.size
        every = np.hstack([flow.directions, score.weights])
        vectors, other = np.ascontiguousarray(every[near]), np.ascontiguousarray(every[~near])
        gain = flow.directions.T @ score.weights  # (r, outputs): how the slopes move a row along the free directions
        rest = other.T @ other  # what was added along a vector, through the inputs that are not looked at
        lowest, highest, rounding = self.lowest[near], self.highest[near], self.rounding[near]
        # d: displacement of the inputs near an edge; made: what was added along each vector, which gives all others.
        d, made, u = (
            np.zeros((len(vectors), count)),
            np.zeros((every.shape[1], count)),
            np.zeros((every.shape[1], count)),
        )
        fewest, largest, at = np.zeros_like(made), np.zeros_like(made), np.zeros_like(made)
        loose, nearly = np.arange(count), self.rounding.max(axis=0)
        place = np.cumsum(near) - 1  # of an input among those near an edge
        shares = [place[block] for block in flow.shares]
        seen: list[FloatArray] = []
        for k in range(len(method.steps) + 1):
            out = (self.began + at[free:]).T
            if k in marks:
                seen.append(np.array(score.look(out, self.rows), dtype=np.float64))
            if k == len(method.steps):
                break
            step, shrink = method.steps[k], 1.0 - 2.0 * flow.penalty * method.steps[k]
            np.multiply(score.slope(out, self.rows).T, step, out=u[free:])
            rise = gain @ u[free:]
            wanted = at[:free] + rise
            kept = np.minimum(np.maximum(wanted, self.least), self.most)
            np.subtract(kept, rise, out=u[:free])
            u[:free] -= shrink * at[:free]
            made *= shrink
            made += u
            np.minimum(fewest, made, out=fewest)
            np.maximum(largest, made, out=largest)
            if len(vectors):  # in place: the displacements, seen from the other side, are the product's own result
                blas.dgemm(1.0, u.T, vectors.T, beta=shrink, c=d.T, overwrite_c=True)
            if loose.size:
                part, slack = d[:, loose], rounding[:, loose]
                held = (np.abs(kept - wanted)[:, loose] > nearly[loose]).any(axis=0)
                held |= ((part < lowest[:, loose] - slack) | (part > highest[:, loose] + slack)).any(axis=0)
                loose = loose[~held]
            np.maximum(d, lowest, out=d)
            np.minimum(d, highest, out=d)
            for block, whole in zip(shares, self.whole, strict=True):
                part = to_simplex(d[block] + whole) - whole
                if loose.size:
                    back = np.abs(part - d[block])[:, loose] > rounding[block][:, loose]
                    loose = loose[~back.any(axis=0)]
                d[block] = part
            at = vectors.T @ d
            at += rest @ made
        end = np.empty((count, len(near)))
        end[:, near], end[:, ~near] = d.T, (other @ made).T
        middle, reach = other @ ((largest + fewest) / 2), np.abs(other) @ ((largest - fewest) / 2)
        sure = ((middle - reach >= self.lowest[~near]) & (middle + reach <= self.highest[~near])).all(axis=0)
        stopped = np.ones(count, dtype=bool)
        stopped[loose] = False
        return end, stopped, np.stack(seen) if seen else np.empty((0, count, 0)), np.asarray(sure)
