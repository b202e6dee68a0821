"""Forests and boosted trees along one column: scores of rows with that column at other values, without asking anew.

The leaves that a row comes into while one column runs through all its values are known from the boxes of `leaf_boxes`,
and each of them lies between two thresholds of the column. So the sums over leaves at many values of the column cost
little more than at one. The model itself is asked about the rows as they are, and about one row at each value; where
the sums do not give these answers back, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.models.audited import AuditedModel
from evenhand.models.gradient_sklearn import final_step
from evenhand.models.ground import Ground, find_ground, is_number
from evenhand.models.input_space import Columns
from evenhand.models.leaf_boxes import LeafBoxes
from evenhand.models.leaves import nodes_of, whole_parts

_SAME = 1e-12  # by how much an answer may differ from the model's own

Values = Mapping[str, NDArray[Any]]
Link = Callable[[FloatArray], FloatArray]


def scores_along(model: AuditedModel, columns: Columns, values: Values) -> dict[str, FloatArray]:
    """Return the scores of rows with one column at a time set to other values.

    Parameters
    ----------
    model : AuditedModel
        The model.
    columns : mapping of str to ndarray
        The rows.
    values : mapping of str to ndarray
        Values of some of the columns.

    Returns
    -------
    dict of str to ndarray, shape (values, rows)
        Without columns along which the sums are not known; empty for a model whose score is no sum over leaves.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from evenhand.models.adapter import adapt
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> forest = RandomForestClassifier(5, random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> rows = {"x": X[:, 0], "z": X[:, 1]}
    >>> along = scores_along(adapt(forest, rows), rows, {"x": np.array([-1.0, 1.0])})
    >>> moved = np.column_stack([np.ones(50), X[:, 1]])
    >>> bool(np.allclose(along["x"][1], forest.predict_proba(moved)[:, 1]))
    True
    """
    nodes = nodes_of(final_step(model.source)[1])
    columns = {name: np.asarray(columns[name]) for name in (model.inputs or columns)}
    numbers = {name: column for name, column in columns.items() if is_number(column)}
    values = {name: given for name, given in values.items() if name in numbers and _finite(given)}
    if nodes is None or not values or not all(_finite(column) for column in numbers.values()):
        return {}
    rows = len(next(iter(columns.values())))
    ground = find_ground(model, _with_probes(columns, values))
    if ground.surface is None or not ground.one_to_one():
        return {}
    fed = _fed(ground)
    worth, scale = whole_parts(nodes)
    boxes = LeafBoxes(nodes, ground.E, [fed[name] for name in values if name in fed])
    total = boxes.total(np.arange(len(ground.E)), boxes.at, worth)
    link = _link(total / scale, model.score(ground.columns))
    if link is None:
        return {}
    places: dict[str, IntArray] = {}  # where the values of each column lie between its thresholds
    start = rows
    for name, given in values.items():
        if name in fed:
            places[name] = boxes.at[start : start + len(given)][:, len(places)]
        start += len(given)
    sums = _sums(boxes, worth, total[:rows], list(places.values()))
    return {name: link(of_column / scale) for name, of_column in zip(places, sums, strict=True)}


def _finite(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values.astype(float)).all())


def _with_probes(columns: Columns, values: Values) -> Columns:
    """Return the rows, and behind them the first row again with each value of each column."""
    every = sum(len(given) for given in values.values())
    out = {name: np.concatenate([column, np.repeat(column[:1], every)]) for name, column in columns.items()}
    start = len(next(iter(columns.values())))
    for name, given in values.items():
        out[name][start : start + len(given)] = given
        start += len(given)
    return out


def _fed(ground: Ground) -> dict[str, int]:
    """Return the column of the classifier that each number moves, of those that move one."""
    return {name: int(step.nonzero()[0][0]) for name, step in zip(ground.moving, ground.A, strict=True) if step.any()}


def _link(total: FloatArray, score: FloatArray) -> Link | None:
    """Return the way from sums to scores, themselves or their log-odds; None where neither gives the scores back."""
    from scipy import special

    ways = [(score, lambda sums: sums)]
    if score.min() > 0 and score.max() < 1:
        ways.append((special.logit(score), special.expit))
    for linear, back in ways:
        for sign in (1.0, -1.0):
            offset = float(np.median(linear - sign * total))

            def link(sums: FloatArray, back: Link = back, sign: float = sign, offset: float = offset) -> FloatArray:
                return np.asarray(back(sign * sums + offset))

            if np.abs(link(total) - score).max() <= _SAME * max(1.0, float(np.abs(score).max())):
                return link
    return None


def _sums(boxes: LeafBoxes, worth: FloatArray, total: FloatArray, places: list[IntArray]) -> list[FloatArray]:
    """Return for each moving column the sums over leaves of the first rows at places of it, shape (places, rows)."""
    order = [np.argsort(place, kind="stable") for place in places]
    # Of those places in order: how many are below each place between thresholds, and how many are not above.
    every = [np.arange(cuts.size + 1) for cuts in boxes.cuts]
    below = [np.searchsorted(place[o], all_) for place, o, all_ in zip(places, order, every, strict=True)]
    up_to = [np.searchsorted(place[o], all_, "right") for place, o, all_ in zip(places, order, every, strict=True)]
    out = [np.empty((place.size, total.size)) for place in places]
    rows = np.arange(total.size)
    start, stop = np.zeros((rows.size, len(places)), dtype=np.int64), np.tile([a[-1] for a in every], (rows.size, 1))
    home = boxes.with_stay(rows, boxes.at[rows])
    for tile in boxes.tiles(rows, boxes.with_stay(rows, start), boxes.with_stay(rows, stop), home):
        mine, size = tile.rows, tile.rows.size
        line, begin, end, change = tile.entered(np.arange(size), boxes.at[mine], start[mine], stop[mine], worth)
        for j, place in enumerate(places):
            some = np.flatnonzero(line // size == j)
            row, wide = line[some] - j * size, place.size + 1
            steps = np.bincount(row * wide + below[j][begin[some]], change[some], size * wide)
            steps -= np.bincount(row * wide + up_to[j][end[some]], change[some], size * wide)
            sums = total[mine, None] + np.cumsum(steps.reshape(size, wide)[:, :-1], axis=1)
            out[j][order[j][:, None], mine] = sums.T
    return out
