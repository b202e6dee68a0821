"""Decision trees: the exact distance to the nearest leaf with the other decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.models.moves import length


def is_tree(inner: Any) -> bool:
    """Say whether an estimator is one decision tree.

    Examples
    --------
    >>> is_tree(object())
    False
    """
    tree = getattr(inner, "tree_", None)
    return all(hasattr(tree, a) for a in ("children_left", "children_right", "feature", "threshold", "value"))


def leaf_boxes(inner: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the box of each leaf and a point inside it.

    Parameters
    ----------
    inner : object
        A fitted scikit-learn decision tree.

    Returns
    -------
    low, high : ndarray, shape (leaves, d)
        A row belongs to a leaf when low < x <= high.
    inside : ndarray, shape (leaves, d)
    """
    tree = inner.tree_
    d = int(tree.n_features)
    lows, highs = [], []
    stack = [(0, np.full(d, -np.inf), np.full(d, np.inf))]
    while stack:
        node, low, high = stack.pop()
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left == right:
            lows.append(low)
            highs.append(high)
            continue
        feature, cut = int(tree.feature[node]), float(tree.threshold[node])
        below, above = high.copy(), low.copy()
        below[feature] = min(below[feature], cut)
        above[feature] = max(above[feature], cut)
        stack += [(left, low, below), (right, above, high)]
    low, high = np.array(lows), np.array(highs)
    far = 2.0 + np.abs(np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0)))
    bottom = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0) - far)
    top = np.where(np.isfinite(high), high, np.where(np.isfinite(low), low, 0.0) + far)
    return low, high, 0.5 * (bottom + top)


def tree_distance(
    boxes: tuple[FloatArray, FloatArray],
    leaf_decision: BoolArray,
    decision: FloatArray,
    X: FloatArray,
    scale: FloatArray,
    norm: str,
) -> FloatArray:
    """Return the distance to the nearest box with the other decision.

    Parameters
    ----------
    boxes : (ndarray, ndarray), each of shape (leaves, d)
        Lower and upper corners.
    leaf_decision : ndarray of bool, shape (leaves,)
        The decision in each box.
    decision : ndarray, shape (n,)
        The decision of each row.
    X : ndarray, shape (n, d)
        Features.
    scale : ndarray, shape (d,)
        Unit of each feature; 0 for one that cannot move.
    norm : {"l2", "l1", "linf"}
        Length of a move.

    Returns
    -------
    ndarray, shape (n,)
        Infinite when no box within reach has the other decision.

    Examples
    --------
    >>> low, high = np.array([[-np.inf], [1.0]]), np.array([[1.0], [np.inf]])
    >>> sides, decided, X = np.array([False, True]), np.array([0.0, 1.0]), np.array([[0.0], [4.0]])
    >>> tree_distance((low, high), sides, decided, X, np.ones(1), "l2").tolist()
    [1.0, 3.0]
    """
    distance = np.full(len(X), np.inf)
    for low, high, positive in zip(*boxes, leaf_decision, strict=True):
        rows = np.flatnonzero((decision == 1) != positive)
        part = X[rows]
        outside = np.maximum(np.maximum(low - part, part - high), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            outside = np.where(outside > 0, outside / scale, 0.0)
        distance[rows] = np.minimum(distance[rows], length(outside, norm))
    return distance
