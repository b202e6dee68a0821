"""Forward Euler through a network that is linear in pieces and known by its outputs and gradients only.

Where the output's gradient D is the same at both ends of a run of steps, the steps between follow from D alone
(`Anchors`). So a run is made with the D of its beginning and looked at where it ends. Has D changed, the row goes back:
the linear functions of both ends are equal where the kink between them is, which says how far it may go; it passes the
kink in a single step, which needs no D but that of its beginning. Positions are those of forward Euler up to rounding,
unless a piece was entered and left again inside a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.kernels.flow.anchors import Anchors

Ask = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Slope = Callable[[FloatArray, FloatArray], FloatArray]
Look = Callable[[FloatArray, IntArray], FloatArray]
Inside = Callable[[FloatArray, IntArray], BoolArray]

# The longest run, and how much longer a run may be than the one before it: of a row that has met no kink yet, and of
# one that has, for which the next may be near.
LONGEST, GROWTH = np.array([32, 16]), np.array([4, 2])
# Single steps made where a kink must be near; runs that a row may try besides one for each eight steps (rows at a kink
# that they cross in every step are better left to single steps).
NEAR, TRIES = 2, 16
# The share of rows with another gradient a small step on above which a network is taken not to be linear in pieces.
MOST = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """A network with one output, and the loss on top of it.

    Examples
    --------
    >>> runs = Runs(ask=lambda X: (2 * X[:, 0], np.full(X.shape, 2.0)), slope=lambda out, y: np.ones_like(out),
    ...             y=np.zeros(1), look=lambda out, rows: out, near=1e-9)
    >>> here = np.zeros(1, dtype=int)
    >>> way = np.eye(1), 50.0, np.full(10, 0.01)
    >>> end, seen, made = runs.follow(here, np.zeros((1, 1)), way, [10], lambda X, part: np.ones(1, dtype=bool))
    >>> end.round(6).tolist(), seen.round(6).tolist(), made.tolist()
    ([[0.2]], [[[0.4]]], [True])
    """

    ask: Ask  # the output at positions, shape (rows,), and its gradient, shape (rows, inputs)
    slope: Slope  # `slope(outputs, y)`: the loss's derivative by the output, both of shape (rows, 1)
    y: FloatArray  # (rows,): outcomes
    look: Look  # `look(outputs, rows)`: what to keep at marked steps, shape (rows, values)
    near: float  # how far gradients that are the same may differ, per unit of their length

    def follow(
        self, rows: IntArray, origin: FloatArray, way: tuple[FloatArray, float, FloatArray], marks: Sequence[int],
        inside: Inside,
    ) -> tuple[FloatArray, FloatArray, BoolArray]:  # fmt: skip
        """Make Euler steps from `origin`.

        Parameters
        ----------
        rows : ndarray of int
            Numbers of the rows.
        origin : ndarray, shape (rows, inputs)
            Where they start.
        way : tuple
            The form's basis Q, the penalty, and the steps.
        marks : sequence of int
            Steps, increasing, after which rows are looked at.
        inside : callable
            ``inside(X, part)``: whether positions are in the allowed region.

        Returns
        -------
        positions, seen, made : ndarray
            As `Strides.follow` returns them.
        """
        basis, penalty, steps = way
        run = _Run(self, rows, Anchors(basis, penalty, origin), steps, marks)
        live = np.arange(len(rows))
        for _ in range(TRIES + len(steps) // 8):
            live = live[~run.lost[live] & (run.step[live] < len(steps))]
            if not live.size:
                break
            run.go(live, inside)
        run.lost |= run.step < len(steps)
        seen = np.stack([self.look(output[:, None], rows) for output in run.marked])
        return run.at.position(slice(None)), seen, ~run.lost


class _Run:
    """The rows of one tile, each on its own step."""

    def __init__(self, runs: Runs, rows: IntArray, at: Anchors, steps: FloatArray, marks: Sequence[int]) -> None:
        n, p = at.origin.shape
        self.runs, self.at, self.steps, self.y = runs, at, steps, runs.y[rows]
        # Two numbers by which gradients are told apart: each input counts with another direction in the plane.
        turn = 2.4 * np.arange(p)
        self.tell = np.column_stack([np.cos(turn), np.sin(turn)]).astype(at.origin.dtype)
        self.step, self.length, self.lost = np.zeros(n, dtype=int), np.ones(n, dtype=int), np.zeros(n, dtype=bool)
        self.kinks = np.zeros(n, dtype=int)  # 1 for rows that have met a kink
        self.near_kink = np.zeros(n, dtype=int)  # single steps still to be made because a kink must be near
        self.stops = np.array([min([m for m in marks if m > k], default=len(steps)) for k in range(len(steps) + 1)])
        self.place = np.full(len(steps) + 1, -1)
        self.place[list(marks)] = np.arange(len(marks))
        output, D = runs.ask(at.origin)
        self.told = D @ self.tell
        self.marked = np.full((len(marks), n), np.nan)
        if 0 in marks:
            self.marked[0] = output
        at.put(np.arange(n), at.moved(slice(None)), output, D)

    def go(self, some: IntArray, inside: Inside) -> None:
        """Let each row try its next run."""
        count = np.minimum(self.length[some], self.stops[self.step[some]] - self.step[some])
        order = np.argsort(-count, kind="stable")
        some, count = some[order], count[order]
        at, before = self.at, self._numbers(some)
        self._walk(some, count)
        X = at.position(some)
        output, D = self.runs.ask(X)
        told, near = D @ self.tell, self.runs.near
        expected = at.output(some)
        same = np.abs(told - self.told[some]).max(axis=1) <= near * np.sqrt(at.along[some] + at.across[some])
        same &= np.abs(output - expected) <= 10 * near * (1.0 + np.abs(output))
        single = count == 1
        new = np.flatnonzero(~same & single)
        if new.size:
            self.told[some[new]] = told[new]
            at.put(some[new], at.moved(some[new]), output[new], D[new])
        self.kinks[some[~same]] = 1
        far = np.flatnonzero(~same & ~single)
        if far.size:
            self._take_back(some[far], count[far], [b[far] for b in before], (output[far], expected[far], D[far]))
        kept = np.flatnonzero(same | single)
        self._arrive(some[kept], self.step[some[kept]] + count[kept], output[kept], inside(X[kept], some[kept]))
        on = some[same]
        met = self.kinks[on]
        longer = np.minimum(GROWTH[met] * count[same], LONGEST[met])
        self.length[on] = np.where(self.near_kink[on] > 0, 1, longer)
        self.near_kink[on] -= 1
        # Behind a kink the pull across Q changes at once: the next step is looked at by itself.
        self.length[some[new]], self.near_kink[some[new]] = 1, 0

    def _numbers(self, some: IntArray) -> list[FloatArray]:
        return [self.at.alpha[some], self.at.beta[some], self.at.gamma[some]]

    def _walk(self, some: IntArray, count: IntArray) -> None:
        """Make so many steps with each row; counts fall."""
        at, y, first = self.at, self.y[some], self.step[some]
        alpha, beta, gamma = self._numbers(some)
        start, along, across, back = at.start[some], at.along[some], at.across[some], at.back[some]
        start -= back
        for k in range(count[0]):
            part = slice(0, int(np.searchsorted(-count, -k)))
            output = alpha[part] * along[part]
            output += beta[part] * across[part]
            output += gamma[part] * back[part]
            output += start[part]
            size = self.steps[first[part] + k]
            left = 1.0 - 2.0 * at.penalty * size
            size *= self.runs.slope(output[:, None], y[part])[:, 0]
            alpha[part] += size
            beta[part] *= left
            beta[part] += size
            gamma[part] *= left
        at.alpha[some], at.beta[some], at.gamma[some] = alpha, beta, gamma

    def _take_back(
        self, some: IntArray, count: IntArray, before: list[FloatArray],
        found: tuple[FloatArray, FloatArray, FloatArray],
    ) -> None:  # fmt: skip
        """Put rows back where their run began, and say how far they may go: the kink is where two outputs agree.

        Found are the output where the run ended, the one that was expected, and the gradient.
        """
        at, (output, expected, D) = self.at, found
        end = at.position(some)
        at.alpha[some], at.beta[some], at.gamma[some] = before
        there = output + np.einsum("ij,ij->i", D, at.position(some) - end)  # the end's function where the run began
        first, last = at.output(some) - there, expected - output
        with np.errstate(divide="ignore", invalid="ignore"):
            share = first / (first - last)
        share[~((share >= 0) & (share <= 1))] = 0.5
        self.length[some] = np.clip((share * count).astype(int), 1, count - 1)
        self.near_kink[some] = NEAR

    def _arrive(self, some: IntArray, there: IntArray, output: FloatArray, good: BoolArray) -> None:
        """Note on which step rows are now, what they answer on marked ones, and who is lost."""
        self.step[some] = there
        self.lost[some] = ~(good & np.isfinite(output))
        place = self.place[there]
        on = place >= 0
        self.marked[place[on], some[on]] = output[on]


def linear_in_pieces(ask: Ask, X: FloatArray, near: float) -> bool:
    """Say whether a network's gradient stays the same over a small step, for most rows.

    Parameters
    ----------
    ask, near
        As in `Runs`.
    X : ndarray, shape (rows, inputs)
        Some rows.

    Returns
    -------
    bool

    Examples
    --------
    >>> X = np.linspace(-1.0, 1.0, 10)[:, None]
    >>> [linear_in_pieces(f, X, 1e-9) for f in (lambda X: (abs(X[:, 0]), np.sign(X)), lambda X: (X[:, 0] ** 2, 2 * X))]
    [True, False]
    """
    D = ask(X)[1]
    size = np.abs(D).max(axis=1, keepdims=True)
    moved = X + (1e-2 / np.maximum(size, 1e-30)).astype(X.dtype) * D
    gap = np.abs(ask(moved)[1] - D).max(axis=1, keepdims=True)
    return bool((gap <= near * size).mean() >= 1.0 - MOST)
