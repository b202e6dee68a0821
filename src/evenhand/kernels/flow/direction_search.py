"""A fixed map for functions without gradients: the best point along given directions inside a box.

From each row the directions are tried in turn; along each the row is set to evenly spaced values between the
direction's limits, and the best is kept. Nothing is random and rows do not touch each other, so the result is a fixed
function of the row, which is all that the limit theorem of [maity2021] (Theorem 3.1) asks of a map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.flow.tiles import Tiles

Objective = Callable[[FloatArray, IntArray], FloatArray]
Snap = Callable[[FloatArray], FloatArray]

# Rounds over the directions, and values tried along each by default.
PASSES, POINTS = 2, 17


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Where rows may be moved."""

    along: FloatArray  # (inputs, r) or (rows, inputs, r): orthonormal columns; of all rows, or of each
    # low, high (r,) or (rows, r): limits of the rows' coordinates along each direction.
    low: FloatArray
    high: FloatArray
    # (r,) or (rows, r): farthest that a row may move along each direction; infinite for no limit but the range.
    span: FloatArray | None = None
    reach: float = 1.0  # share of each direction's range (or span, where that is finite) that a row may move at most

    @property
    def number(self) -> int:
        """How many directions there are."""
        return int(self.along.shape[-1])

    def line(self, j: int, start: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the j-th direction of some rows, where it leaves from, and the lowest and highest places on it."""
        along = self.along[..., j] if self.along.ndim == 2 else self.along[rows, :, j]
        span = np.full(self.number, np.inf) if self.span is None else self.span
        least, most, longest = (
            np.broadcast_to(a[j] if a.ndim == 1 else a[rows, j], rows.shape) for a in (self.low, self.high, span)
        )
        home = (start * along).sum(axis=1)
        # Inside the range evenly over it; inside a span evenly over what the span leaves of it.
        within = np.isfinite(longest)
        room = self.reach * np.where(within, longest, most - least)
        bottom = np.where(within, np.maximum(np.minimum(least, home), home - room), least)
        top = np.where(within, np.minimum(np.maximum(most, home), home + room), most)
        return along, np.stack([home - room, home + room]), bottom, top


def search(
    start: FloatArray, objective: Objective, directions: Directions, *, points: int = POINTS,
    snap: Snap | None = None, tiles: Tiles | None = None,
) -> FloatArray:  # fmt: skip
    """Move each row along the directions to where the objective is largest.

    Parameters
    ----------
    start : ndarray, shape (rows, inputs)
        Where each row begins; staying there is always allowed.
    objective : callable
        ``objective(X, rows)``, larger is taken; NaN is never taken.
    directions : Directions
        Where rows may be moved.
    points : int
        Values tried along each direction.
    snap : callable, optional
        Puts a position on values that exist (categories); applied before the objective.
    tiles : Tiles, optional
        How rows are worked through.

    Returns
    -------
    ndarray, shape (rows, inputs)
        The best positions, snapped.

    Examples
    --------
    >>> lines = Directions(np.array([[1.0], [0.0]]), np.array([-1.0]), np.array([2.0]))
    >>> search(np.zeros((1, 2)), lambda X, rows: X[:, 0], lines).tolist()
    [[2.0, 0.0]]
    """
    share = np.linspace(0.0, 1.0, points)
    snapped = (lambda X: X) if snap is None else snap

    def work(rows: IntArray) -> FloatArray:
        free = start[rows].copy()  # not snapped: the next direction goes on from here
        best = objective(start[rows], rows)
        kept = start[rows].copy()
        for j in [*range(directions.number)] * (PASSES if directions.number > 1 else 1):
            along, (least, most), bottom, top = directions.line(j, start[rows], rows)
            at = (free * along).sum(axis=1)
            goals = (np.clip(bottom + s * (top - bottom), least, most) for s in share)
            places = np.stack([free + (goal - at)[:, None] * along for goal in goals])  # (points, rows, inputs)
            stands = snapped(places.reshape(-1, free.shape[1])).reshape(places.shape)
            # Places that are one and the same after snapping are asked about once.
            new = np.ones(places.shape[:2], dtype=bool)
            new[1:] = (stands[1:] != stands[:-1]).any(axis=2)
            of = np.maximum.accumulate(np.where(new, np.arange(points)[:, None], 0), axis=0)
            values = np.full(new.shape, np.nan)
            values[new] = objective(stands[new], rows[np.nonzero(new)[1]])
            values = np.take_along_axis(values, of, axis=0)
            values = np.where(np.isnan(values), -np.inf, values)
            # Among equal values the shortest way wins, so that nobody is moved without need.
            far = np.linalg.norm(places - start[rows], axis=2)
            peak = values.max(axis=0)
            pick = np.where(values >= peak, far, np.inf).argmin(axis=0)
            size = np.abs(np.where(np.isfinite(best), best, 0.0))
            better = peak > best + 1e-12 * np.maximum(1.0, size)  # rounding is no improvement
            chosen = np.take_along_axis(places, pick[None, :, None], axis=0)[0]
            free = np.where(better[:, None], chosen, free)
            kept = np.where(better[:, None], np.take_along_axis(stands, pick[None, :, None], axis=0)[0], kept)
            best = np.where(better, peak, best)
        return kept

    done = (tiles or Tiles(size=2048)).run(work, start.shape[0])
    return np.concatenate(done) if done else np.empty_like(start)
