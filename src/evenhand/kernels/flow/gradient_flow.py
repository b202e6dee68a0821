"""Gradient flow of a loss held back by a quadratic form: forward Euler, and an adaptive method.

Solves, for each row x0 of `start` by itself,

    X'(t) = grad loss(X(t)) - 2 penalty S (X(t) - x0),   X(0) = x0,            # [maity2021] eq. (2.6)

where S is a positive semi-definite matrix. Rows do not touch each other, so they are worked through in
tiles that fit the processor's cache; memory grows with the tile, not with the number of rows.

=============  ======================  ==================
code           [maity2021]             shape
=============  ======================  ==================
start          x_0                     (rows, inputs)
penalty        lambda                  one number
form           d_x^2(x, y)             (inputs, inputs)
steps          eta_k, epsilon_t        (number of steps,)
end            Phi(x_0, y_0) = X(T)    (rows, inputs)
=============  ======================  ==================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.kernels.flow.linear_runs import Runs
from evenhand.kernels.flow.rectifier_pieces import Pieces
from evenhand.kernels.flow.strides import Strides
from evenhand.kernels.flow.tiles import Tiles

WORTH = 32  # steps above which it is tried to make several at once

Gradient = Callable[[FloatArray, IntArray], FloatArray]
Observe = Callable[[FloatArray, IntArray], FloatArray]
Keep = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuadraticForm:
    """A squared distance d'Sd, with S given whole or as identity minus a projection.

    Either may have a leading axis of variants: rows then belong to them in equal runs, the first run to the first.
    """

    # (inputs, r): orthonormal columns Q; S = I - QQ'. Movement inside the span of Q is free.
    basis: FloatArray | None = None
    matrix: FloatArray | None = None  # (inputs, inputs): S itself, when it is not of that kind

    def apply(self, d: FloatArray) -> FloatArray:
        """Return ``d @ S`` for rows d."""
        out = np.zeros_like(d)
        self.subtract(out, d)
        return np.negative(out, out=out)

    def subtract(self, out: FloatArray, d: FloatArray) -> None:
        """Take ``d @ S`` away from `out` in place; with a basis without forming the product of a full matrix."""
        given = self.matrix if self.basis is None else self.basis
        assert given is not None
        if given.ndim == 3:  # one run of rows for each variant
            out, d = (a.reshape(given.shape[0], -1, given.shape[1]) for a in (out, d))
        if self.basis is None:
            out -= d @ given
            return
        out -= d
        out += (d @ given) @ given.swapaxes(-1, -2)

    def astype(self, kind: type[np.floating[Any]]) -> QuadraticForm:
        """Return the form in another precision."""
        return QuadraticForm(
            basis=None if self.basis is None else self.basis.astype(kind, copy=False),
            matrix=None if self.matrix is None else self.matrix.astype(kind, copy=False),
        )

    def square(self, d: FloatArray) -> FloatArray:
        """Return d'Sd, one value per row."""
        return np.asarray(np.maximum(np.einsum("ij,ij->i", d, self.apply(d)), 0.0))

    def dense(self) -> FloatArray:
        """Return S as a matrix."""
        if self.matrix is not None:
            return self.matrix
        assert self.basis is not None
        return np.eye(self.basis.shape[0]) - self.basis @ self.basis.T

    def norm(self) -> float:
        """Return the largest eigenvalue of S."""
        if self.matrix is not None:
            return float(np.linalg.eigvalsh(self.matrix)[-1])
        assert self.basis is not None
        return 1.0 if self.basis.shape[1] < self.basis.shape[0] else 0.0

    def free_directions(self) -> FloatArray:
        """Return orthonormal directions that cost (almost) nothing, shape (inputs, r)."""
        if self.basis is not None:
            return self.basis
        values, vectors = np.linalg.eigh(self.dense())
        return vectors[:, values <= 1e-6 * max(values[-1], 1e-300)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """Where a flow ended and what was seen on the way."""

    end: FloatArray  # (rows, inputs): X(T)
    times: FloatArray  # (checkpoints,): flow time at each checkpoint
    seen: FloatArray  # (checkpoints, rows, values): what `observe` returned there
    stopped: BoolArray  # (rows,): rows that were held at the edge of the allowed region on the way


def step_sizes(step: float, count: int, schedule: str = "constant") -> FloatArray:
    """Return the Euler steps of one flow, equal ones (``"constant"``) or falling as k to the power -2/3 (``"decay"``).

    With ``"-halved"`` appended to the schedule each step is made as two equal ones; `step` and `count` are the halves'.

    Examples
    --------
    >>> step_sizes(0.8, 2, "decay").round(3).tolist()
    [0.8, 0.504]
    """
    kind, _, halved = schedule.partition("-")
    if halved == "halved":  # the same flow times, each step made as two of half the length
        return np.repeat(step_sizes(step, count // 2, kind), 2)
    if schedule == "constant":
        return np.full(count, float(step))
    if schedule == "decay":
        return np.asarray(step * np.arange(1, count + 1) ** (-2 / 3), dtype=float)
    raise UsageError(f"`schedule` is `{schedule}`; allowed: `constant`, `decay`.")


def stability_limit(form: QuadraticForm, penalty: float) -> float:
    """Return the largest Euler step for which the pull back to the start does not overshoot for ever.

    The pull alone multiplies the distance by 1 - 2 step penalty ||S|| per step, so steps at or above
    1 / (penalty ||S||) oscillate or grow, often without any NaN.

    Examples
    --------
    >>> stability_limit(QuadraticForm(matrix=np.eye(2)), 50.0)
    0.02
    """
    bound = penalty * form.norm()
    return float("inf") if bound <= 0 else 1.0 / bound


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flow:
    """The differential equation."""

    gradient: Gradient  # `gradient(X, rows)` is the loss gradient at X of the rows with these numbers
    form: QuadraticForm  # the squared distance that holds a row back
    penalty: float  # its weight
    movable: BoolArray | None = None  # (inputs,): columns that may change; the others stay as they are
    # `keep(X, start)` brings positions that left the allowed region back to its edge; a row so slides along it.
    keep: Keep | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Euler:
    """Forward Euler with given steps."""

    steps: FloatArray  # step sizes
    marks: Sequence[int] = ()  # steps after which rows are observed; 0 is the start
    # Followed instead of single steps, as far as it goes, where every column may move, no region is set and the form
    # has a basis; it then says what is seen.
    shortcut: Pieces | None = None
    # Whether several steps may be made at once, with a small error, where the form has a basis and every column moves;
    # and how, for a network that is linear in pieces.
    strides: bool = False
    runs: Runs | None = None

    @property
    def clock(self) -> FloatArray:
        """Flow time at the marks."""
        return np.concatenate(([0.0], np.cumsum(self.steps)))[sorted(set(self.marks))]


@dataclass(frozen=True, slots=True, eq=False)
class Adaptive:
    """Steps as long as an error allows."""

    clock: FloatArray  # increasing flow times at which rows are observed; the last is the end
    tolerance: float = 1e-4  # error allowed per unit of length in one step


def follow(
    start: FloatArray, flow: Flow, method: Euler | Adaptive, *, observe: Observe | None = None,
    tiles: Tiles | None = None,
) -> Trajectory:  # fmt: skip
    """Follow a flow from each row.

    Parameters
    ----------
    start : ndarray, shape (rows, inputs)
        Where each row begins.
    flow : Flow
        The differential equation.
    method : Euler or Adaptive
        How it is solved, and where rows are observed.
    observe : callable, optional
        ``observe(X, rows)`` returns values of shape (rows, values) to keep.
    tiles : Tiles, optional
        How rows are worked through.

    Returns
    -------
    Trajectory

    Examples
    --------
    Along a free axis a linear loss is followed to the end; along the other the pull wins.

    >>> form = QuadraticForm(basis=np.array([[1.0], [0.0]]))
    >>> up = Flow(gradient=lambda X, rows: np.ones_like(X), form=form, penalty=50.0)
    >>> follow(np.zeros((1, 2)), up, Euler(np.full(500, 0.01))).end.round(6).tolist()
    [[5.0, 0.01]]
    """

    def work(rows: IntArray) -> tuple[FloatArray, BoolArray, FloatArray]:
        drift = Drift(flow, start[rows], rows)
        return _euler(drift, method, observe) if isinstance(method, Euler) else _adaptive(drift, method, observe)

    done = (tiles or Tiles()).run(work, start.shape[0])
    return Trajectory(
        end=np.concatenate([d[0] for d in done]) if done else np.empty_like(start),
        times=method.clock,
        seen=np.concatenate([d[2] for d in done], axis=1) if done else np.empty((method.clock.size, 0, 0)),
        stopped=np.concatenate([d[1] for d in done]) if done else np.zeros(0, dtype=bool),
    )


class Drift:
    """The right-hand side of the differential equation for one tile of rows."""

    def __init__(self, flow: Flow, origin: FloatArray, rows: IntArray) -> None:
        self.flow, self.origin, self.rows = flow, origin, rows
        self.fixed = None if flow.movable is None or bool(flow.movable.all()) else ~flow.movable

    def __call__(self, X: FloatArray, part: IntArray | None = None) -> FloatArray:
        """Return the drift at X, for all rows of the tile or some of them."""
        origin = self.origin if part is None else self.origin[part]
        rows = self.rows if part is None else self.rows[part]
        out = self.flow.gradient(X, rows)
        if self.flow.penalty:
            d = X - origin
            d *= 2.0 * self.flow.penalty
            self.flow.form.subtract(out, d)
        if self.fixed is not None:
            out[:, self.fixed] = 0.0
        return out


def _euler(drift: Drift, method: Euler, observe: Observe | None) -> tuple[FloatArray, BoolArray, FloatArray]:
    flow, steps, marks = drift.flow, method.steps, sorted(set(method.marks))
    X, made = drift.origin.copy(), 0
    seen: list[FloatArray] = []
    basis = flow.form.basis
    plain = drift.fixed is None and basis is not None and basis.ndim == 2
    if method.shortcut is not None and plain and flow.keep is None and basis is not None:
        X, seen, made = method.shortcut.follow(drift.rows, drift.origin, basis, flow.penalty, steps, marks)
    elif method.strides and plain and basis is not None and len(steps) > WORTH:
        return _in_strides(drift, method, observe, basis)
    return _step_by_step(drift, method, observe, (X, seen, made))


def _in_strides(
    drift: Drift, method: Euler, observe: Observe | None, basis: FloatArray
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Make the steps of most rows from a few gradients, and those of the others one by one."""
    flow, origin, rows = drift.flow, drift.origin, drift.rows
    marks = sorted(set(method.marks))

    def inside(X: FloatArray, part: IntArray) -> BoolArray:
        if flow.keep is None:
            return np.ones(len(X), dtype=bool)
        return ~_kept(flow.keep, X, origin[part], None)[1]

    if method.runs is not None:
        X, seen, made = method.runs.follow(rows, origin, (basis, flow.penalty, method.steps), marks, inside)
    else:
        strides = Strides(
            gradient=lambda X, part: flow.gradient(X, rows[part]),
            basis=basis,
            penalty=flow.penalty,
            see=lambda X, part: _look(observe, X, rows[part]),
            inside=inside,
        )
        X, seen, made = strides.follow(origin, method.steps, marks)
    edge = np.zeros(len(X), dtype=bool)
    left = np.flatnonzero(~made)
    if left.size:
        some = Drift(flow, origin[left], rows[left])
        X[left], edge[left], seen[:, left] = _step_by_step(some, method, observe, (origin[left].copy(), [], 0))
    return X, edge, seen


def _step_by_step(
    drift: Drift, method: Euler, observe: Observe | None, so_far: tuple[FloatArray, list[FloatArray], int]
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Go on with single steps from positions, what was seen before, and the steps made."""
    flow, steps, marks = drift.flow, method.steps, sorted(set(method.marks))
    X, seen, made = so_far
    edge = np.zeros(X.shape[0], dtype=bool)
    for k in range(made, len(steps) + 1):
        if k in marks[len(seen) :]:
            seen.append(_look(observe, X, drift.rows))
        if k == len(steps):
            break
        move = drift(X)
        move *= steps[k]  # [maity2021] eq. (2.8)
        X += move
        if flow.keep is not None:
            X, touched = _kept(flow.keep, X, drift.origin, drift.fixed)
            edge |= touched
    return X, edge, np.stack(seen) if seen else np.empty((0, X.shape[0], 0))


def _kept(keep: Keep, X: FloatArray, start: FloatArray, fixed: BoolArray | None) -> tuple[FloatArray, BoolArray]:
    """Bring positions back into the allowed region, and mark those that had left it."""
    held = keep(X, start)
    if fixed is not None:
        held[:, fixed] = start[:, fixed]
    return held, np.asarray((np.abs(held - X) > 1e-12 * (1.0 + np.abs(X))).any(axis=1))


def _adaptive(drift: Drift, method: Adaptive, observe: Observe | None) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Bogacki and Shampine's third-order pair, each row with its own step."""
    X, times, keep = drift.origin.copy(), method.clock, drift.flow.keep
    n = X.shape[0]
    edge = np.zeros(n, dtype=bool)
    clock = np.zeros(n)
    size = np.full(n, min(1e-2, max(float(times[-1]), 1e-12)))
    seen: list[FloatArray] = []
    for target in times:
        active = np.flatnonzero(clock < target)
        for _ in range(200_000):
            if active.size == 0:
                break
            h = np.minimum(size[active], target - clock[active])
            last = size[active] >= target - clock[active]
            x = X[active]
            k1 = drift(x, active)
            k2 = drift(x + (0.5 * h)[:, None] * k1, active)
            k3 = drift(x + (0.75 * h)[:, None] * k2, active)
            new = x + h[:, None] * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
            k4 = drift(new, active)
            gap = h[:, None] * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)
            error = np.sqrt((gap**2).mean(axis=1)) / (method.tolerance * (1.0 + np.sqrt((x**2).mean(axis=1))))
            error = np.where(np.isfinite(error), error, 1e6)
            good = error <= 1.0
            if keep is not None:
                new, touched = _kept(keep, new, drift.origin[active], drift.fixed)
                edge[active[good & touched]] = True
            X[active[good]] = new[good]
            clock[active[good]] = np.where(last[good], target, clock[active[good]] + h[good])
            factor = np.clip(0.9 * np.maximum(error, 1e-10) ** (-1 / 3), 0.2, 5.0)
            # A step cut short to hit a checkpoint says nothing about how long the next may be.
            size[active] = np.where(good & last, np.maximum(size[active], h * factor), h * factor)
            if float(size[active].min()) < 1e-12:
                raise UsageError(
                    "The adaptive flow needs steps below 1e-12: the loss gradient is not smooth or not finite. "
                    "Use `method='euler'`, or raise `flow_tolerance`."
                )
            active = active[clock[active] < target]
        else:
            raise UsageError("The adaptive flow did not arrive in 200,000 steps; use `method='euler'`.")
        seen.append(_look(observe, X, drift.rows))
    return X, edge, np.stack(seen) if seen else np.empty((0, n, 0))


def _look(observe: Observe | None, X: FloatArray, rows: IntArray) -> FloatArray:
    # A copy: positions go on moving in place.
    return np.empty((X.shape[0], 0)) if observe is None else np.array(observe(X, rows), dtype=np.float64)
