"""Forests and boosted trees taken apart into conditions and leaves, where their score is a sum over the leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.models.leaf_boxes import LeafBoxes, Nodes
from evenhand.models.surface import Surface

_MOST = 500_000  # leaves taken apart; above, tables would need more than about half a gigabyte
_COMPARED = 2048  # rows on which the sum over leaves is compared with the model's score
WHOLE = 2.0**48  # leaves are counted in whole parts of the largest sum: sums are exact in any order
_CLOSE = 1e-9  # by how much the sum over leaves may differ from the model's score


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Additive:
    """A score that is a sum over leaves, up to a constant: positive towards decision 1."""

    boxes: LeafBoxes
    worth: FloatArray  # (leaves,): what each adds to the sum, in whole numbers
    total: FloatArray  # (n,): the sum of each row
    sign: float  # 1 where larger sums are nearer to decision 1, -1 otherwise
    level: float  # sum at which the decision changes


def additive(surface: Surface, E: FloatArray, moving: Sequence[int] = ()) -> Additive | None:
    """Take a forest or boosted trees apart; None for any other model, or where the sum is not its score on the rows.

    Parameters
    ----------
    surface : Surface
        The classifier.
    E : ndarray, shape (n, q)
        Rows as it takes them; on some of them the sum over leaves is compared with its score.
    moving : sequence of int
        Columns that move.

    Returns
    -------
    Additive or None
    """
    nodes = nodes_of(surface.source)
    if nodes is None:
        return None
    from scipy import special

    some = np.unique(np.linspace(0, len(E) - 1, min(len(E), _COMPARED)).astype(int))
    boxes, (worth, scale) = LeafBoxes(nodes, E, moving), whole_parts(nodes)
    whole = boxes.total(np.arange(len(E)), boxes.at, worth)
    total, score = whole[some] / scale, surface.score(E[some])
    linked = [(score, surface.threshold)]
    if 0 < surface.threshold < 1 and score.min() > 0 and score.max() < 1:
        linked.append((special.logit(score), float(special.logit(surface.threshold))))
    for values, cut in linked:
        for sign in (1.0, -1.0):
            offset = sign * values - total
            if np.ptp(offset) <= _CLOSE * (1.0 + float(np.abs(total).max())):
                level = scale * (sign * cut - float(np.median(offset)))
                return Additive(boxes=boxes, worth=worth, total=whole, sign=sign, level=level)
    return None


def whole_parts(nodes: Nodes) -> tuple[FloatArray, float]:
    """Return what leaves add in whole numbers, and how many of these make one."""
    scale = WHOLE / max(nodes.trees * float(np.abs(nodes.value).max(initial=0.0)), 1e-300)
    return np.rint(nodes.value * scale), scale


def nodes_of(model: Any) -> Nodes | None:
    """Return the conditions of a model's trees; None for a model whose trees are not known, or are too many."""
    boosted = getattr(model, "_predictors", None)
    if boosted is not None and getattr(model, "_preprocessor", None) is None:
        trees = [_histogram_tree(one) for stage in boosted for one in stage] if len(boosted[0]) == 1 else []
        return _joined(trees, single=False)
    members = np.asarray(getattr(model, "estimators_", ()), dtype=object).reshape(-1)
    rate = getattr(model, "learning_rate", None)
    kind = type(model).__name__
    if kind.startswith("GradientBoosting") and getattr(model, "n_trees_per_iteration_", 1) == 1:
        trees = [_tree(one, float(rate or 1.0)) for one in members]
    elif kind.startswith(("RandomForest", "ExtraTrees")):
        trees = [_tree(one, 1.0 / len(members)) for one in members]
    else:
        return None
    return _joined(trees, single=True)


# Left and right child (-1 at leaves), column, threshold and value of each node of one tree.
_Tree = tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]


def _tree(member: Any, share: float) -> _Tree | None:
    tree = getattr(member, "tree_", None)
    if tree is None or tree.value.shape[1] != 1 or tree.value.shape[2] > 2:
        return None
    value = tree.value[:, 0, :]
    value = value[:, 0] if value.shape[1] == 1 else value[:, 1] / value.sum(axis=1)
    return tree.children_left, tree.children_right, tree.feature, tree.threshold, share * value


def _histogram_tree(predictor: Any) -> _Tree | None:
    nodes = getattr(predictor, "nodes", None)
    if nodes is None or bool(nodes["is_categorical"].any()):
        return None
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    return left, right, nodes["feature_idx"].astype(np.int64), nodes["num_threshold"], nodes["value"]


def _joined(trees: list[_Tree | None], *, single: bool) -> Nodes | None:
    """Give the leaves of all trees numbers, from left to right and one tree after the other."""
    known = [tree for tree in trees if tree is not None]
    if not known or len(known) < len(trees) or sum(len(tree[0]) for tree in known) > 2 * _MOST:
        return None
    roots = np.cumsum([0, *(len(tree[0]) for tree in known)])
    left, right = (
        np.concatenate([np.where(tree[k] >= 0, tree[k] + root, -1) for tree, root in zip(known, roots, strict=False)])
        for k in (0, 1)
    )
    column, threshold, value = (np.concatenate([tree[k] for tree in known]) for k in (2, 3, 4))
    levels = [*_levels(roots[:-1], left, right)]
    below = np.ones(left.size, dtype=np.int64)  # how many leaves are below each node
    for inner in reversed(levels):
        below[inner] = below[left[inner]] + below[right[inner]]
    first = np.zeros(left.size, dtype=np.int64)  # the first of them
    first[roots[:-1]] = np.cumsum(below[roots[:-1]]) - below[roots[:-1]]
    for inner in levels:
        first[left[inner]] = first[inner]
        first[right[inner]] = first[inner] + below[left[inner]]
    every = np.concatenate([np.empty(0, dtype=np.int64), *levels])
    leaves = np.flatnonzero(left < 0)
    leaves = leaves[np.argsort(first[leaves])]
    number = np.empty(left.size, dtype=np.int64)
    number[every], number[leaves] = np.arange(every.size), ~np.arange(leaves.size)
    return Nodes(
        column=column[every].astype(np.int64), threshold=threshold[every].astype(float), first=first[every],
        middle=first[right[every]], last=first[every] + below[every],
        depth=np.repeat(np.arange(len(levels)), [inner.size for inner in levels]),
        root=number[roots[:-1]], child=np.stack([number[left[every]], number[right[every]]]),
        value=value[leaves].astype(float), tree=np.searchsorted(roots, leaves, side="right") - 1,
        single=single, trees=len(known),
    )  # fmt: skip


def _levels(roots: IntArray, left: IntArray, right: IntArray) -> Iterator[IntArray]:
    """Give the conditions of each level of all trees, from the roots down."""
    level = roots
    while level.size:
        inner = level[left[level] >= 0]
        if inner.size:
            yield inner
        level = np.concatenate([left[inner], right[inner]])
