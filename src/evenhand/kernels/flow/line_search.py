"""A fixed map for functions without gradients: the best point along given directions inside a box.

From each row the directions are tried in turn; along each the row is set to evenly spaced values between the
direction's limits, and the best is kept. Nothing is random and rows do not touch each other, so the result is a fixed
function of the row, which is all that the limit theorem of [maity2021] (Theorem 3.1) asks of a map.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Objective = Callable[[FloatArray, NDArray[np.int64]], FloatArray]
Snap = Callable[[FloatArray], FloatArray]


def search(
    start: FloatArray,
    objective: Objective,
    directions: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    points: int = 17,
    passes: int = 2,
    span: FloatArray | None = None,
    reach: float = 1.0,
    snap: Snap | None = None,
    tile: int = 2048,
    progress: Callable[[int, int], None] | None = None,
) -> FloatArray:
    """Move each row along the directions to where the objective is largest.

    Parameters
    ----------
    start : ndarray, shape (rows, inputs)
        Where each row begins; staying there is always allowed.
    objective : callable
        ``objective(X, rows)``, larger is taken; NaN is never taken.
    directions : ndarray, shape (inputs, r) or (rows, inputs, r)
        Orthonormal columns; of all rows, or of each.
    low, high : ndarray, shape (r,) or (rows, r)
        Limits of the rows' coordinates along each direction.
    points : int
        Values tried along each direction.
    passes : int
        Rounds over the directions.
    span : ndarray, shape (r,) or (rows, r), optional
        Farthest that a row may move along each direction; infinite for no limit but the range.
    reach : float
        Share of each direction's range (or span, where that is finite) that a row may move at most.
    snap : callable, optional
        Puts a position on values that exist (categories); applied before the objective.
    tile : int
        Rows worked on together.
    progress : callable, optional
        Called with rows done and rows in all.

    Returns
    -------
    ndarray, shape (rows, inputs)
        The best positions, snapped.

    Examples
    --------
    >>> up = lambda X, rows: X[:, 0]
    >>> search(np.zeros((1, 2)), up, np.array([[1.0], [0.0]]), np.array([-1.0]), np.array([2.0])).tolist()
    [[2.0, 0.0]]
    """
    end = np.empty_like(start)
    n = start.shape[0]
    share = np.linspace(0.0, 1.0, points)
    snapped = (lambda X: X) if snap is None else snap
    width = directions.shape[-1]
    limits = np.full(width, np.inf) if span is None else span
    for first in range(0, n, tile):
        rows = np.arange(first, min(first + tile, n))
        free = start[rows].copy()  # not snapped: the next direction goes on from here
        best = objective(start[rows], rows)
        kept = start[rows].copy()
        for _ in range(passes if width > 1 else 1):
            for j in range(width):
                along = directions[..., j] if directions.ndim == 2 else directions[rows, :, j]
                least, most, longest = (
                    np.broadcast_to(a[j] if a.ndim == 1 else a[rows, j], rows.shape) for a in (low, high, limits)
                )
                at, home = (free * along).sum(axis=1), (start[rows] * along).sum(axis=1)
                # Inside the range evenly over it; inside a span evenly over what the span leaves of it.
                within = np.isfinite(longest)
                room = reach * np.where(within, longest, most - least)
                bottom = np.where(within, np.maximum(np.minimum(least, home), home - room), least)
                top = np.where(within, np.minimum(np.maximum(most, home), home + room), most)
                values: list[FloatArray] = []
                places: list[FloatArray] = []
                for s in share:
                    goal = np.clip(bottom + s * (top - bottom), home - room, home + room)
                    trial = free + (goal - at)[:, None] * along
                    value = objective(snapped(trial), rows)
                    values.append(np.where(np.isnan(value), -np.inf, value))
                    places.append(trial)
                stack = np.stack(values)  # (points, rows)
                # Among equal values the shortest way wins, so that nobody is moved without need.
                far = np.stack([np.linalg.norm(p - start[rows], axis=1) for p in places])
                peak = stack.max(axis=0)
                pick = np.where(stack >= peak, far, np.inf).argmin(axis=0)
                size = np.abs(np.where(np.isfinite(best), best, 0.0))
                better = peak > best + 1e-12 * np.maximum(1.0, size)  # rounding is no improvement
                chosen = np.take_along_axis(np.stack(places), pick[None, :, None], axis=0)[0]
                free = np.where(better[:, None], chosen, free)
                kept = np.where(better[:, None], snapped(chosen), kept)
                best = np.where(better, peak, best)
        end[rows] = kept
        if progress is not None:
            progress(int(rows[-1]) + 1, n)
    return end
