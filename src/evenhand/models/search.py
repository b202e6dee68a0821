"""Any classifier: a search for the nearest point with the other decision, and how accurate it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.kernels.seeds import stream
from evenhand.models.linear import NORMS, length

FloatArray = NDArray[np.float64]
Decide = Callable[[FloatArray], FloatArray]

_HALVINGS = 24  # a segment is cut to 6e-8 of its length
_CHECKED = 48  # rows searched again, harder, to state the accuracy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Searched:
    """What a search found.

    Parameters
    ----------
    distance : ndarray, shape (n,)
        An upper bound of the distance to the boundary.
    excess_median, excess_high : float
        How much shorter, relatively, a search with four times the effort was on some rows: the middle one and the
        95 % point.
    """

    distance: FloatArray
    excess_median: float
    excess_high: float


def search_distance(
    decide: Decide,
    Z: FloatArray,
    norm: str,
    *,
    score: Decide | None = None,
    starts: int = 3,
    rounds: int = 2,
    seed: int = 0,
) -> Searched:
    """Search the boundary from every row.

    From each row towards its nearest rows of the other decision; then back along each feature as far as the
    decision allows, and, where the score has a slope, along the normal of the boundary.

    Parameters
    ----------
    decide : callable
        From features to decisions.
    Z : ndarray, shape (n, d)
        Features on one scale; `decide` takes them on that scale.
    norm : {"l2", "l1", "linf"}
        Length of a move.
    score : callable, optional
        From features to score minus threshold; helps on smooth models.
    starts, rounds : int
        Effort: rows to start towards, and rounds of improvement.
    seed : int
        For the choice of rows that are searched again.

    Returns
    -------
    Searched
        Distances are infinite when all rows have one decision.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = search_distance(lambda z: (z[:, 0] > 0).astype(float), Z, "l2")
    >>> bool(np.allclose(found.distance, np.abs(Z[:, 0]), atol=1e-5))
    True
    """
    decision = decide(Z)
    found = _nearest(decide, score, Z, decision, Z, decision, norm, starts, rounds)
    if not np.isfinite(found).any():
        return Searched(distance=found, excess_median=0.0, excess_high=0.0)
    picked = stream(seed, "models/search").choice(len(Z), size=min(_CHECKED, len(Z)), replace=False)
    again = _nearest(decide, score, Z[picked], decision[picked], Z, decision, norm, 4 * starts, 2 * rounds)
    excess = np.maximum(0.0, 1 - again / np.maximum(found[picked], 1e-300))
    median, high = np.quantile(excess, [0.5, 0.95])
    found[picked] = np.minimum(found[picked], again)
    return Searched(distance=found, excess_median=float(median), excess_high=float(high))


def _nearest(
    decide: Decide,
    score: Decide | None,
    Z: FloatArray,
    decision: FloatArray,
    pool: FloatArray,
    pool_decision: FloatArray,
    norm: str,
    starts: int,
    rounds: int,
) -> FloatArray:
    from scipy.spatial import cKDTree

    best = np.full(len(Z), np.inf)
    rows, points = [], []
    for side in (0.0, 1.0):
        own = np.flatnonzero(decision == side)
        others = pool[pool_decision != side]
        if own.size and len(others):
            k = min(starts, len(others))
            near = cKDTree(others).query(Z[own], k=k, p=NORMS[norm])[1].reshape(own.size, k)
            rows.append(np.repeat(own, k))
            points.append(others[near.reshape(-1)])
    if not rows:
        return best
    # All starts of all rows go through the model together: it is called some hundred times, however many rows.
    row, point = np.concatenate(rows), np.concatenate(points)
    base, side_of = Z[row], decision[row]

    def flipped(trial: FloatArray) -> NDArray[np.bool_]:
        return np.asarray(decide(trial) != side_of, dtype=bool)

    point = _shrink(flipped, base, point)
    for _ in range(rounds):
        point = _restore(flipped, base, point)
        if score is not None:
            point = _slide(flipped, score, base, point, norm)
    np.minimum.at(best, row, length(point - base, norm))
    return best


def _shrink(flipped: Callable[[FloatArray], NDArray[np.bool_]], base: FloatArray, point: FloatArray) -> FloatArray:
    """Pull points towards their base as far as the decision stays the other one."""
    low, high = np.zeros(len(base)), np.ones(len(base))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        keep = flipped(base + middle[:, None] * (point - base))
        high = np.where(keep, middle, high)
        low = np.where(keep, low, middle)
    return np.where((high < 1)[:, None], base + high[:, None] * (point - base), point)


def _restore(flipped: Callable[[FloatArray], NDArray[np.bool_]], base: FloatArray, point: FloatArray) -> FloatArray:
    """Give features back their own value, smallest changes first, where the decision stays the other one."""
    point = point.copy()
    rows = np.arange(len(base))
    order = np.argsort(np.abs(point - base), axis=1)
    for column in range(base.shape[1]):
        feature = order[:, column]
        trial = point.copy()
        trial[rows, feature] = base[rows, feature]
        keep = flipped(trial)
        point[keep] = trial[keep]
    return _shrink(flipped, base, point)


def _slide(
    flipped: Callable[[FloatArray], NDArray[np.bool_]],
    score: Decide,
    base: FloatArray,
    point: FloatArray,
    norm: str,
) -> FloatArray:
    """Step to where the tangent plane of the boundary is nearest, and pull back; keep what is shorter."""
    here = score(point)
    slope = np.empty_like(base)
    step = 1e-4
    for feature in range(base.shape[1]):
        shifted = point.copy()
        shifted[:, feature] += step
        slope[:, feature] = (score(shifted) - here) / step
    steep = {
        "l2": np.linalg.norm(slope, axis=1),
        "l1": np.abs(slope).max(axis=1),
        "linf": np.abs(slope).sum(axis=1),
    }[norm]
    usable = steep > 1e-9
    if not usable.any():
        return point
    # The unit move that changes the linearised score most: the normal, one feature, or all features alike.
    if norm == "l2":
        move = slope / np.maximum(steep, 1e-300)[:, None]
    elif norm == "linf":
        move = np.sign(slope)
    else:
        move = np.zeros_like(slope)
        place = np.abs(slope).argmax(axis=1)
        rows = np.arange(len(slope))
        move[rows, place] = np.sign(slope[rows, place])
    need = ((point - base) * slope).sum(axis=1) / np.maximum(steep, 1e-300)
    step_to = point
    open_rows = usable.copy()
    for stretch in (1.001, 1.05, 1.3):
        trial = base + (stretch * need)[:, None] * move
        taken = open_rows & flipped(trial)
        step_to = np.where(taken[:, None], trial, step_to)
        open_rows &= ~taken
    shorter = _shrink(flipped, base, step_to)
    better = length(shorter - base, norm) < length(point - base, norm)
    return np.where(better[:, None], shorter, point)
