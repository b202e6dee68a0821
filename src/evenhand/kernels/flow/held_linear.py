"""Euler's steps for a linear score whose rows are held inside a region: the same steps with few passes over the rows.

A linear score has the gradient s w at every point, s being the loss's slope by the score. With the distance that leaves
the directions D free, one step multiplies the displacement d by a number and adds a few fixed vectors to it:

    d <- (1 - 2 h penalty) d + D push + h s w,

where push is what puts the displacement along D where the step and the region want it. So one product of matrices makes
the step, and one clip of the columns ends it.

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
from evenhand.kernels.flow.tiles import Tiles

# Rows worked on together: the few arrays of a tile stay in the second-level cache.
TILE = 1024
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
    score, room, marks = flow.score, flow.room(start), set(method.marks)
    free = flow.directions.shape[1]
    vectors = np.asfortranarray(np.hstack([flow.directions, score.weights]))
    gain = flow.directions.T @ score.weights  # (r, outputs): how the slopes move a row along the free directions
    began = start @ score.weights + score.bias
    rounding = ROUNDING * (1.0 + np.abs(start))
    below, above = room.lowest - rounding, room.highest + rounding
    nearly = rounding.max(axis=1)[:, None]
    d, held = np.zeros_like(start, order="C"), np.zeros(rows.size, dtype=bool)
    seen: list[FloatArray] = []
    for k in range(len(method.steps) + 1):
        at = d @ vectors
        along, out = at[:, :free], began + at[:, free:]
        if k in marks:
            seen.append(np.array(score.look(out, rows), dtype=np.float64))
        if k == len(method.steps):
            break
        moved = score.slope(out, rows) * method.steps[k]
        rise = moved @ gain.T
        wanted = along + rise
        kept = np.minimum(np.maximum(wanted, room.least), room.most)
        shrink = 1.0 - 2.0 * flow.penalty * method.steps[k]
        # In place: the displacements, seen as a matrix of columns, are the product's own result.
        blas.dgemm(
            1.0, vectors, np.hstack([kept - shrink * along - rise, moved]).T, beta=shrink, c=d.T, overwrite_c=True
        )
        if not held.all():
            held |= (np.abs(kept - wanted) > nearly).any(axis=1)
            outside = d < below
            outside |= d > above
            held |= outside.any(axis=1)
        np.maximum(d, room.lowest, out=d)
        np.minimum(d, room.highest, out=d)
    return start + d, held, np.stack(seen) if seen else np.empty((0, rows.size, 0))
