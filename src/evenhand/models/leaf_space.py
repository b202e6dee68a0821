"""Rows before the boundary of a sum of trees: what places cost, which sums have the other decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.models.leaf_boxes import LeafBoxes
from evenhand.models.leaves import WHOLE, additive
from evenhand.models.surface import Surface

_EDGE = 1e-9  # of a column's unit: how far behind a threshold a point is put


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafSpace:
    """Rows before the boundary of a sum of trees, in the columns that move."""

    boxes: LeafBoxes
    worth: FloatArray  # (leaves,): what each adds to the sum, in whole numbers
    total: FloatArray  # (n,): the sum of each row
    level: float  # the sum at which the decision changes
    slack: float  # by how much rounding to whole numbers can have changed a sum
    value: FloatArray  # (n, p): the rows as the trees see them
    step: FloatArray  # (p,): what a move of length one changes
    keep: FloatArray  # (n,): 1 where a larger sum keeps the decision, -1 where a smaller one does
    tied: BoolArray  # (n,): whether a sum at the level has the other decision
    # The lowest and the highest value of each place, one column after the other, and where each column begins.
    low: FloatArray
    high: FloatArray
    start: IntArray  # (p,)
    norm: str

    def moved(self, rows: IntArray, column: IntArray, place: IntArray) -> FloatArray:
        """Return the nearest value at places of columns; the row's own value where it is there."""
        value, home, where = self.value[rows, column], self.boxes.at[rows, column], self.start[column] + place
        return np.where(place > home, self.low[where], np.where(place < home, self.high[where], value))

    def points(self, rows: IntArray, at: IntArray) -> FloatArray:
        """Return the nearest values at places of all columns, shape (rows, p)."""
        return self.moved(rows[:, None], np.arange(at.shape[1]), at)

    def price(self, rows: IntArray, column: IntArray, place: IntArray) -> FloatArray:
        """Return what it costs rows to be at places of columns, such that costs add up, or the largest counts."""
        far = np.abs((self.moved(rows, column, place) - self.value[rows, column]) / self.step[column])
        return np.asarray(self.cost(far), dtype=float)

    def cost(self, gap: FloatArray) -> FloatArray:
        """Return lengths such that those of several columns add up, or the largest counts."""
        return gap * gap if self.norm == "l2" else gap

    def joined(self, cost: FloatArray) -> FloatArray:
        """Return what several columns cost together, along the last axis."""
        out = cost.max(axis=-1, initial=0.0) if self.norm == "linf" else cost.sum(axis=-1)
        return np.asarray(out, dtype=float)

    def costs(self, rows: IntArray, at: IntArray) -> FloatArray:
        """Return what each column costs at places, shape (rows, p)."""
        return self.price(rows[:, None], np.arange(at.shape[1]), at)

    def others(self, cost: FloatArray) -> FloatArray:
        """Return for each column what all others cost together."""
        add = np.maximum if self.norm == "linf" else np.add
        before, behind = np.zeros_like(cost), np.zeros_like(cost)
        before[:, 1:] = add.accumulate(cost[:, :-1], axis=1)
        behind[:, :-1] = add.accumulate(cost[:, :0:-1], axis=1)[:, ::-1]
        return np.asarray(add(before, behind), dtype=float)

    def reach(self, rows: IntArray, room: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the first and the last place of each column that cost no more than `room`, each of shape (rows, p)."""
        far = np.broadcast_to((room if room.ndim == 2 else room[:, None]), (rows.size, self.step.size))
        far = (np.sqrt(far) if self.norm == "l2" else far) * np.abs(self.step)
        first, last = np.empty(far.shape, dtype=np.int64), np.empty(far.shape, dtype=np.int64)
        for j, cuts in enumerate(self.boxes.cuts):
            first[:, j] = np.searchsorted(cuts, self.value[rows, j] - far[:, j])
            last[:, j] = np.searchsorted(cuts, self.value[rows, j] + far[:, j])
        return first, last

    def flips(self, kept: FloatArray, rows: IntArray) -> BoolArray:
        """Say which sums, counted from the level towards a row's own decision, have the other decision."""
        return (kept < -self.slack) | (self.tied[rows] & (kept <= self.slack))


def leaf_space(
    surface: Surface, E: FloatArray, A: FloatArray, unit: FloatArray, decision: FloatArray, norm: str
) -> LeafSpace | None:
    """Return the rows before the boundary of a sum of trees; None where the model is no such sum.

    Parameters
    ----------
    surface : Surface
        The classifier.
    E : ndarray, shape (n, q)
        Rows as it takes them.
    A : ndarray, shape (p, q)
        The step of each number that moves in these columns, one column each.
    unit : ndarray, shape (p,)
        Of each number.
    decision : ndarray, shape (n,)
        The model's decisions.
    norm : {"l2", "l1", "linf"}
        Length of a move.
    """
    columns = np.abs(A).argmax(axis=1)
    slope = A[np.arange(len(A)), columns]
    moving = [int(c) if a else -1 - j for j, (c, a) in enumerate(zip(columns, slope, strict=True))]
    trees = additive(surface, E, moving)
    if trees is None:
        return None
    boxes, slack = trees.boxes, trees.boxes.nodes.trees + 1.0 + 1e-12 * WHOLE
    step = np.where(slope != 0, slope, 1.0) * unit  # a number that feeds no column has no thresholds either
    edges = [_edges(cuts, abs(one), boxes.nodes.single) for cuts, one in zip(boxes.cuts, step, strict=True)]
    low, high = (np.concatenate([one[k] for one in edges]) for k in (0, 1))
    sizes = np.array([one[0].size for one in edges], dtype=np.int64)
    # Behind places that hold no value the nearest one with a sum need not be the first one with it.
    boxes.wanted = [_beside(one[0] > one[1]) for one in edges]
    # Which decision a sum at the level has shows where a row is there; where none is there it hardly matters.
    at_level = np.abs(trees.total - trees.level) <= slack
    tie = float(decision[at_level][0]) if at_level.any() else 0.0
    return LeafSpace(
        boxes=boxes, worth=trees.worth, total=trees.total, level=trees.level, slack=slack, value=E[:, columns],
        step=step, keep=np.where(decision == 1, trees.sign, -trees.sign), tied=decision != tie,
        low=low, high=high, start=np.cumsum(sizes) - sizes, norm=norm,
    )  # fmt: skip


def _edges(cuts: FloatArray, step: float, single: bool) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest value of each place between thresholds."""
    hair = _EDGE * (np.abs(cuts) + step)
    if not single:
        above, below = cuts + hair, cuts - hair
    else:  # a value is compared after it is rounded, which forgives errors of less than half a step
        near = cuts.astype(np.float32)
        half = 0.5 * np.spacing(np.abs(near)).astype(float)
        above = _rounded(np.where(half < hair, cuts + hair, np.nextafter(cuts, np.inf)), up=True)
        below = _rounded(np.where(half < hair, cuts - hair, cuts), up=False)
    low, high = np.concatenate([[-np.inf], above]), np.concatenate([below, [np.inf]])
    nothing = low > high  # between thresholds that are too close
    return np.where(nothing, np.inf, low), np.where(nothing, -np.inf, high)


def _beside(nothing: BoolArray) -> IntArray:
    """Return the places next to those that hold no value."""
    beside = np.zeros(nothing.size, dtype=bool)
    beside[1:] |= nothing[:-1]
    beside[:-1] |= nothing[1:]
    return np.flatnonzero(beside & ~nothing)


def _rounded(values: FloatArray, *, up: bool) -> FloatArray:
    """Return the nearest number of single precision that is not smaller, or not larger."""
    near, end = values.astype(np.float32), np.float32(np.inf if up else -np.inf)
    beyond = near < values if up else near > values
    return np.where(beyond, np.nextafter(near, end), near).astype(float)
