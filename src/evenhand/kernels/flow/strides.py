"""Forward Euler in strides: many steps from a few gradients, for rows along whose way the gradient changes smoothly.

With S = I - QQ' a row's Euler steps add up loss gradients: along Q as they are, across Q each held back by the steps
after it. Both sums are known as soon as the gradients are, so the gradients are taken at some steps only (anchors) and
the others are read off the polynomial through them. A stride is made twice: from the anchors behind it, and again
with the gradient at its end. Where the two differ, a row is left to single steps. So positions are those of forward
Euler up to a small error, and a row's position depends on no other row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray

# Single steps at the start, anchors that a polynomial goes through, and the longest strides: tried in turn.
SINGLE, ANCHORS, LONGEST = 6, 4, (13, 5)
# How far the two ways of making a stride may come apart, per unit of length.
CLOSE = 1e-5

Slope = Callable[[FloatArray, IntArray], FloatArray]  # the loss gradient at positions of some rows of the tile
See = Callable[[FloatArray, IntArray], FloatArray]  # what is kept of positions of some rows of the tile
Inside = Callable[[FloatArray, IntArray], BoolArray]  # whether positions of some rows are in the allowed region


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strides:
    """The flow of one tile of rows.

    Examples
    --------
    >>> flow = Strides(gradient=lambda X, rows: np.ones_like(X), basis=np.array([[1.0], [0.0]]), penalty=50.0,
    ...                see=lambda X, rows: X[:, :1], inside=lambda X, rows: np.ones(len(X), dtype=bool))
    >>> end, seen, made = flow.follow(np.zeros((1, 2)), np.full(500, 0.01), [0, 500])
    >>> end.round(6).tolist(), seen.round(6)[:, 0].tolist(), made.tolist()
    ([[5.0, 0.01]], [[0.0], [5.0]], [True])
    """

    gradient: Slope
    basis: FloatArray  # (inputs, r): orthonormal columns Q
    penalty: float
    see: See
    inside: Inside

    def follow(
        self, origin: FloatArray, steps: FloatArray, marks: Sequence[int]
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Make all Euler steps from `origin`.

        Rows for which long strides do not hold are tried with shorter ones.

        Returns
        -------
        positions, seen, made : ndarray
            Where rows are, shape (rows, inputs), what was seen after the marked steps, shape (marks, rows, values),
            and for which rows that holds, shape (rows,); the others are to be followed by single steps.
        """
        rows, end, made = np.arange(len(origin)), origin.copy(), np.zeros(len(origin), dtype=bool)
        first = self.see(origin, rows)
        seen = np.full((len(marks), *first.shape), np.nan)
        if 0 in marks:
            seen[0] = first
        for longest in LONGEST:
            plan = planned(tuple(steps.tolist()), tuple(marks), longest, self.penalty)
            done, X = self._tried(origin, rows, seen, (marks, plan))
            end[done], made[done] = X, True
            rows = np.flatnonzero(~made)
            if not rows.size:
                break
        return end, seen, made

    def _tried(
        self,
        origin: FloatArray,
        rows: IntArray,
        seen: FloatArray,
        plan: tuple[Sequence[int], Sequence[Stride]],
    ) -> tuple[IntArray, FloatArray]:
        """Follow rows from anchor to anchor; return those for which every stride held, and where they are."""
        marks, strides = plan
        X = origin[rows]
        d = np.zeros_like(X)
        history = [self._slope(X, rows)]
        for stride in strides:
            guess = self._moved(d, history, stride.behind)
            guess += origin[rows]
            history = [*history[-(ANCHORS - 1) :], self._slope(guess, rows)]
            if stride.length > 1:
                d = self._moved(d, history, stride.through)
                X = origin[rows] + d
                # A comparison with what is not a number is false: such a row goes on in single steps.
                good = np.abs(X - guess).max(axis=1) <= CLOSE * (1.0 + np.abs(X).max(axis=1))
                good &= self.inside(X, rows)
            else:
                X, d = guess, guess - origin[rows]
                good = self.inside(X, rows)
            if not good.all():
                rows, X, d = rows[good], X[good], d[good]
                history = [(g[good], along[good]) for g, along in history]
            if not rows.size:
                break
            if stride.end in marks:
                seen[list(marks).index(stride.end), rows] = self.see(X, rows)
        return rows, X

    def _slope(self, X: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient, and its coordinates along Q."""
        g = self.gradient(X, rows)
        return g, g @ self.basis

    def _moved(self, d: FloatArray, history: Sequence[tuple[FloatArray, FloatArray]], weights: Weights) -> FloatArray:
        """Return how far rows have come after a stride: gradients at the anchors, weighed along Q and across it."""
        free, held, left = weights
        across, along = left * d, (1.0 - left) * (d @ self.basis)
        for (g, g_along), f, h in zip(history, free, held, strict=True):
            if h:
                across += g * h
            along += g_along * (f - h)
        across += along @ self.basis.T
        return across


# Of each anchor's gradient along Q and across it, and the share of the way across Q that is left of what was there.
Weights = tuple[list[float], list[float], float]


@dataclass(frozen=True, slots=True)
class Stride:
    """Steps made at once."""

    length: int
    end: int  # the step where it ends
    behind: Weights  # of the gradients at the anchors behind it
    through: Weights  # of the last of these, and the gradient at its end


@lru_cache(maxsize=8)  # the same for every tile of rows
def planned(steps: tuple[float, ...], marks: tuple[int, ...], longest: int, penalty: float) -> tuple[Stride, ...]:
    """Return the strides of a flow.

    Examples
    --------
    >>> [(s.length, s.end) for s in planned((0.01,) * 10, (0, 10), 13, 50.0)]
    [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 8), (2, 10)]
    """
    sizes = np.array(steps)
    plan, known = [], [0]
    for here, there in pairwise(anchors(len(steps), marks, longest)):
        behind = stride(known, here, there, sizes, penalty)
        known = [*known[-(ANCHORS - 1) :], there]
        plan.append(Stride(there - here, there, behind, stride(known, here, there, sizes, penalty)))
    return tuple(plan)


def stride(known: Sequence[int], here: int, there: int, steps: FloatArray, penalty: float) -> Weights:
    """Return how the gradients at the known anchors count in the Euler steps from here to there.

    Examples
    --------
    >>> stride([0, 1], 1, 2, np.full(2, 0.01), 50.0)
    ([0.0, 0.01], [0.0, 0.01], 0.0)
    """
    at, sizes = np.arange(here, there), np.asarray(steps[here:there], dtype=float)
    shrink = 1.0 - 2.0 * penalty * sizes
    # What the steps after each leave of it.
    later = np.append(np.cumprod(shrink[::-1])[::-1], 1.0)
    free, held = [], []
    for k in known:
        share = np.ones(at.size)
        for other in known:
            if other != k:
                share = share * (at - other) / (k - other)
        free.append(float((sizes * share).sum()))
        held.append(float((sizes * share * later[1:]).sum()))
    return free, held, float(later[0])


def anchors(count: int, marks: Sequence[int], longest: int) -> list[int]:
    """Return the steps at which gradients are taken: all at first, then farther and farther apart, and all marks.

    Examples
    --------
    >>> anchors(40, [0, 20, 40], 13)
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 25, 30, 35, 40]
    """
    plan = [0]
    while plan[-1] < count:
        here = plan[-1]
        mark = min([m for m in marks if m > here], default=count)
        most = 1 if here < SINGLE else min(max(here // 4, 2), longest)
        parts = -(-(mark - here) // most)
        plan.append(here + max((mark - here) // parts, 1))
    return plan
