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
    directions : ndarray, shape (inputs, r)
        Orthonormal columns.
    low, high : ndarray, shape (r,)
        Limits of the rows' coordinates along each direction.
    points : int
        Values tried along each direction.
    passes : int
        Rounds over the directions.
    reach : float
        Share of each direction's range that a row may move at most.
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
    for first in range(0, n, tile):
        rows = np.arange(first, min(first + tile, n))
        home = start[rows] @ directions  # (rows, r)
        free = start[rows].copy()  # not snapped: the next direction goes on from here
        best = objective(start[rows], rows)
        kept = start[rows].copy()
        for _ in range(passes if directions.shape[1] > 1 else 1):
            for j in range(directions.shape[1]):
                span = reach * (high[j] - low[j])
                at = free @ directions[:, j]
                values: list[FloatArray] = []
                places: list[FloatArray] = []
                for s in share:
                    goal = np.clip(low[j] + s * (high[j] - low[j]), home[:, j] - span, home[:, j] + span)
                    trial = free + np.outer(goal - at, directions[:, j])
                    value = objective(snapped(trial), rows)
                    values.append(np.where(np.isnan(value), -np.inf, value))
                    places.append(trial)
                stack = np.stack(values)  # (points, rows)
                # Among equal values the shortest way wins, so that nobody is moved without need.
                far = np.stack([np.linalg.norm(p - start[rows], axis=1) for p in places])
                top = stack.max(axis=0)
                pick = np.where(stack >= top, far, np.inf).argmin(axis=0)
                size = np.abs(np.where(np.isfinite(best), best, 0.0))
                better = top > best + 1e-12 * np.maximum(1.0, size)  # rounding is no improvement
                chosen = np.take_along_axis(np.stack(places), pick[None, :, None], axis=0)[0]
                free = np.where(better[:, None], chosen, free)
                kept = np.where(better[:, None], snapped(chosen), kept)
                best = np.where(better, top, best)
        end[rows] = kept
        if progress is not None:
            progress(int(rows[-1]) + 1, n)
    return end
