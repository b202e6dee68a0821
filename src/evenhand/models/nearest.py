"""Where each person would have to go: the nearest inputs at the boundary, for the distances that have such a point.

[si2021] Proposition 3 moves people to these points. A kernel's distance has none: the nearest point of its own space
need not belong to any inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.models.ground import Ground
from evenhand.models.moves import Moves, length

Moved = dict[str, NDArray[Any]]  # the model's inputs after a move, by column
Towards = Callable[[IntArray], Moved]  # from rows to where they would have to go


def put_back(ground: Ground, rows: IntArray, X: FloatArray) -> Moved:
    """Return the model's inputs of some rows with other numbers, shape (rows, p)."""
    moved = {name: np.asarray(column)[rows] for name, column in ground.columns.items()}
    return moved | {name: X[:, j] for j, name in enumerate(ground.moving)}


def plane_towards(
    ground: Ground, unit: FloatArray, form: tuple[FloatArray, float], parts: FloatArray, moves: Moves
) -> Towards:
    """Return the way to a hyperplane: straight along the numbers, after the jumps that make it cheapest.

    Parameters
    ----------
    ground : Ground
        The rows.
    unit : ndarray, shape (p,)
        Of each number that moves.
    form : (ndarray, float)
        Coefficients and intercept of the classifier.
    parts : ndarray, shape (n, k)
        What each jumping column adds to the margin.
    moves : Moves
        Length of a move, price and manner of jumps.

    Returns
    -------
    Towards
        To points on the hyperplane, or beyond it where a jump alone changes the decision.
    """
    coefficients, intercept = form
    names = [n for n in ground.moving if n in moves.categorical] if ground.shared else list(moves.categorical)
    slope = np.where(ground.jumps, 0.0, ground.A @ coefficients * unit)
    step = _straight(slope, moves.norm)  # changes the margin by one
    price = float(length(step[None, :], moves.norm)[0]) if step.any() else np.inf  # of the margin's unit

    def towards(rows: IntArray) -> Moved:
        margin = ground.E[rows] @ coefficients + intercept
        left, donors = _jumped(margin, parts, rows, moves, price)
        signed = np.where(margin >= 0, -left, left)
        moved = put_back(ground, rows, ground.X[rows] + signed[:, None] * step * unit)
        for name, donor in zip(names, donors.T, strict=True):
            moved[name] = np.asarray(ground.columns[name])[donor]
        return moved

    return towards


def _straight(slope: FloatArray, norm: str) -> FloatArray:
    """Return the shortest move that changes the margin by one; nothing where nothing changes it."""
    if not slope.any():
        return np.zeros(slope.size)
    if norm == "l2":
        return slope / float(slope @ slope)
    if norm == "linf":
        return np.sign(slope) / float(np.abs(slope).sum())
    step = np.zeros(slope.size)
    steepest = int(np.abs(slope).argmax())
    step[steepest] = 1 / slope[steepest]
    return step


def _jumped(
    margin: FloatArray, parts: FloatArray, rows: IntArray, moves: Moves, price: float
) -> tuple[FloatArray, IntArray]:
    """Return the margin left after the cheapest jumps, and for each jumping column the row whose value is taken."""
    left = np.abs(margin)
    donors = np.repeat(rows[:, None], parts.shape[1], axis=1)
    if not parts.shape[1]:
        return left, donors
    together = moves.jumps == "together"
    worth = parts.sum(axis=1, keepdims=True) if together else parts  # (n, k)
    ends = np.where(margin[:, None] >= 0, worth.argmin(axis=0), worth.argmax(axis=0))  # (rows, k): whose value is best
    gains = np.abs(worth[rows] - np.take_along_axis(worth, ends, axis=0))
    order = np.argsort(-gains, axis=1, kind="stable")
    total = np.cumsum(np.take_along_axis(gains, order, axis=1), axis=1)
    total = np.hstack([np.zeros((rows.size, 1)), total])  # (rows, k + 1): after so many jumps
    rest = np.maximum(left[:, None] - total, 0.0)
    with np.errstate(invalid="ignore"):
        glide = np.where(rest > 0, rest * price, 0.0)
    best = np.argmin(moves.delta * np.arange(total.shape[1]) + glide, axis=1)
    for count in range(1, total.shape[1]):
        who = np.flatnonzero(best >= count)
        column = order[who, count - 1]
        if together:
            donors[who] = ends[who]
        else:
            donors[who, column] = ends[who, column]
    return rest[np.arange(rows.size), best], donors


def tree_towards(
    ground: Ground, boxes: tuple[FloatArray, FloatArray], positive: BoolArray, steps: FloatArray, norm: str
) -> Towards:
    """Return the way to the nearest leaf with the other decision, just inside it.

    Parameters
    ----------
    ground : Ground
        The rows; each number feeds one encoded column at most.
    boxes : (ndarray, ndarray), each of shape (leaves, q)
        Lower and upper corners.
    positive : ndarray of bool, shape (leaves,)
        The decision in each box.
    steps : ndarray, shape (q,)
        Unit of each encoded column; 0 for one that cannot move.
    norm : {"l2", "l1", "linf"}
        Length of a move.

    Returns
    -------
    Towards
    """
    low, high = boxes
    back = np.divide(1.0, ground.A, out=np.zeros_like(ground.A), where=ground.A != 0)  # (p, q)

    def towards(rows: IntArray) -> Moved:
        E, own = ground.E[rows], ground.decision[rows] == 1
        nearest, best = np.zeros(rows.size, dtype=np.int64), np.full(rows.size, np.inf)
        for leaf in range(len(low)):
            outside = np.maximum(np.maximum(low[leaf] - E, E - high[leaf]), 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                far = length(np.where(outside > 0, outside / steps, 0.0), norm)
            closer = (own != positive[leaf]) & (far < best)
            nearest, best = np.where(closer, leaf, nearest), np.where(closer, far, best)
        # Trees compare in single precision, and a row at the lower corner belongs to the leaf below.
        floor, roof = _single(low[nearest], up=True), _single(high[nearest], up=False)
        target = np.where(low[nearest] >= E, floor, np.where(high[nearest] < E, roof, E))
        return put_back(ground, rows, ground.X[rows] + (target - E) @ back.T)

    return towards


def _single(values: FloatArray, *, up: bool) -> FloatArray:
    """Return the next number of single precision above, or the one at or below."""
    near = values.astype(np.float32)
    if up:
        return np.where(np.isfinite(values), np.nextafter(near, np.float32(np.inf)), values).astype(float)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near).astype(float)


def joined_towards(each: Sequence[Towards | None], which: IntArray) -> Towards | None:
    """Return the way of rows that each have a model of their own among several; None where one model has none."""
    known = [one for one in each if one is not None]
    if len(known) < len(each):
        return None

    def towards(rows: IntArray) -> Moved:
        ways = [one(rows) for one in known]
        mine = which[rows]
        return {
            name: np.array([ways[m][name][k] for k, m in enumerate(mine)], dtype=column.dtype)
            for name, column in ways[0].items()
        }

    return towards
