"""Where people may be moved: the observed range of inputs and of sensitive directions, and the groups' reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.kernels.flow.held_linear import Room
from evenhand.kernels.flow.simplex import to_simplex
from evenhand.similarity.metric import FairMetric, MetricRows
from evenhand.similarity.reach import group_reach

# What limits a movement: how far groups differ (and the range), the observed range, nothing.
LIMITS = ("groups", "range", "none")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Box:
    """The observed range of the people a metric was learned from, and how far anybody may be moved inside it.

    `directions`, `low`, `high` and `reach` may have a leading axis of variants, to which rows belong in equal runs.
    """

    directions: FloatArray  # (inputs, r): the free directions of the metric, orthonormal
    # low, high (r,): range of the coordinates along them.
    low: FloatArray
    high: FloatArray
    reach: FloatArray  # (r,): farthest movement along each; infinite where only the range limits it
    # column_low, column_high (inputs,): range of each input.
    column_low: FloatArray
    column_high: FloatArray
    slack: FloatArray  # (inputs,): half a unit for yes-or-no inputs: nearer to a value that exists than to none
    two_values: BoolArray  # (inputs,): inputs with two values that are no category of a larger column
    blocks: tuple[IntArray, ...]  # inputs that are the categories of one column
    shares: tuple[IntArray, ...]  # those of them that hold an attribute themselves and always sum to one

    def keep(self, X: FloatArray, start: FloatArray) -> FloatArray:
        """Bring positions back to the range of every direction and every input, and to the reach.

        Somebody who starts outside the range of the others may stay there, but goes no further out.
        """
        shape, low, high, reach = X.shape, self.low, self.high, self.reach
        if self.directions.ndim == 3:
            X, start = (a.reshape(self.directions.shape[0], -1, shape[-1]) for a in (X, start))
            low, high, reach = (a[:, None, :] for a in (low, high, reach))
        at, began = X @ self.directions, start @ self.directions
        least, most = _allowed(began, low, high, reach)
        move = np.minimum(np.maximum(at, least), most)
        move -= at
        out = X + move @ self.directions.swapaxes(-1, -2)
        out = np.minimum(np.maximum(out, np.minimum(self.column_low, start)), np.maximum(self.column_high, start))
        for block in self.shares:
            out[..., block] = np.moveaxis(to_simplex(np.moveaxis(out[..., block], -1, 0)), 0, -1)
        return out.reshape(shape)

    def room(self, start: FloatArray) -> Room:
        """Return the displacements that `keep` allows, shares apart, for boxes without variants."""
        began = start @ self.directions
        least, most = _allowed(began, self.low, self.high, self.reach)
        return Room(
            least=least - began,
            most=most - began,
            lowest=np.minimum(self.column_low - start, 0.0),
            highest=np.maximum(self.column_high - start, 0.0),
        )

    def snap(self, X: FloatArray) -> FloatArray:
        """Put positions on values that exist: inside the range, one of two values, one category."""
        low, high = self.column_low, self.column_high
        out = np.clip(X, low - self.slack, high + self.slack)
        two = self.two_values
        if two.any():
            out[:, two] = np.where(out[:, two] > (low + high)[two] / 2, high[two], low[two])
        every = np.arange(len(out))
        for block in self.blocks:
            first, last = int(block[0]), int(block[-1])
            # Inputs side by side are looked at where they are; others would be copied.
            part = slice(first, last + 1) if last - first + 1 == block.size else block
            top = block[out[:, part].argmax(axis=1)]
            out[:, part] = 0.0
            out[every, top] = 1.0
        return out

    def inside_directions(self, X: FloatArray) -> BoolArray:
        """Mark positions inside the range of every free direction."""
        at = X @ self.directions
        slack = 1e-9 * (1.0 + np.abs(self.high - self.low))
        return np.asarray(((at >= self.low - slack) & (at <= self.high + slack)).all(axis=1))

    def inside_columns(self, X: FloatArray) -> BoolArray:
        """Mark positions inside the range of every input; a yes-or-no input may lie half a unit outside."""
        low, high = self.column_low - self.slack, self.column_high + self.slack
        return np.asarray(((low - 1e-9 <= X) & (high + 1e-9 >= X)).all(axis=1))


def _allowed(began: FloatArray, low: FloatArray, high: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return between which coordinates along a direction somebody may go who began there."""
    return (
        np.maximum(np.minimum(low, began), began - reach),
        np.minimum(np.maximum(high, began), began + reach),
    )


def observed_box(rows: MetricRows, metric: FairMetric, moved: MetricRows, limit: str) -> Box:
    """Return the range of the rows a metric was learned from, and the reach of those who are moved.

    Parameters
    ----------
    rows : MetricRows
        The rows the metric was learned from: their range counts.
    metric : FairMetric
        Whose free directions count; without any, the cheapest direction.
    moved : MetricRows
        The people who are moved: differences between their groups count.
    limit : str
        One of `LIMITS`.

    Returns
    -------
    Box
    """
    X = rows.X[rows.count > 0]
    directions, reach = _directions(metric, moved, limit)
    at = X @ directions
    lowest, highest = X.min(axis=0), X.max(axis=0)
    two = ((lowest == X) | (highest == X)).all(axis=0)
    category = np.array([i.category is not None for i in rows.space.inputs])
    held = np.any([np.zeros(X.shape[1]), *(p.direction for p in metric.parts if p.column)], axis=0)
    blocks = rows.space.blocks
    return Box(
        directions=directions,
        low=at.min(axis=0),
        high=at.max(axis=0),
        reach=reach,
        column_low=np.where(category, 0.0, lowest),
        column_high=np.where(category, 1.0, highest),
        slack=np.where(two | category, 0.5 * np.where(category, 1.0, highest - lowest), 0.0),
        two_values=two & ~category,
        blocks=blocks,
        shares=tuple(b for b in blocks if held[b].all() and np.allclose(X[:, b].sum(axis=1), 1.0)),
    )


def turned_box(box: Box, rows: MetricRows, metric: FairMetric, moved: MetricRows, limit: str) -> Box:
    """Return the box of the same rows under another metric: the range of the inputs stays, that of directions turns."""
    directions, reach = _directions(metric, moved, limit)
    at = (rows.X @ directions)[rows.count > 0]
    return replace(box, directions=directions, low=at.min(axis=0), high=at.max(axis=0), reach=reach)


def _directions(metric: FairMetric, moved: MetricRows, limit: str) -> tuple[FloatArray, FloatArray]:
    """Return the free directions, or the cheapest one where none is free, and the reach along each."""
    if limit == "groups":
        directions, reach = group_reach(metric, moved)
    else:
        directions = metric.form.free_directions()
        reach = np.full(directions.shape[1], np.inf)
    if directions.shape[1] == 0:
        directions, reach = np.linalg.eigh(metric.form.dense())[1][:, :1], np.full(1, np.inf)
    return directions, reach


def stacked(boxes: Sequence[Box]) -> Box:
    """Return several boxes as variants of one; directions that some lack are empty there."""
    wide = max(b.directions.shape[1] for b in boxes)

    def stack(parts: list[FloatArray]) -> FloatArray:
        return np.stack([np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, wide - a.shape[-1])]) for a in parts])

    return replace(
        boxes[0],
        directions=stack([b.directions for b in boxes]),
        low=stack([b.low for b in boxes]),
        high=stack([b.high for b in boxes]),
        reach=stack([b.reach for b in boxes]),
    )
