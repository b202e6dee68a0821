"""The unfair map: where each person is moved, by gradient flow or by search, and with what error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.audits.individual.options import MapOptions
from evenhand.audits.individual.people import People
from evenhand.audits.individual.region import Box
from evenhand.errors import UsageError
from evenhand.kernels.flow.direction_search import Directions, search
from evenhand.kernels.flow.gradient_flow import (
    Adaptive,
    Euler,
    Flow,
    QuadraticForm,
    follow,
    stability_limit,
    step_sizes,
)
from evenhand.kernels.flow.held_linear import TILE as HELD_TILE
from evenhand.kernels.flow.held_linear import HeldFlow, LinearScore, follow_held
from evenhand.kernels.flow.linear_runs import Look, Runs, linear_in_pieces
from evenhand.kernels.flow.losses import ProbabilityLoss
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.kernels.flow.rectifier_pieces import TILE as PIECES_TILE
from evenhand.kernels.flow.rectifier_pieces import as_pieces
from evenhand.kernels.flow.tiles import TILE, Tiles
from evenhand.models.gradient import precision
from evenhand.models.gradient_view import ModelView
from evenhand.similarity.metric import FairMetric

# Rows that are moved together in runs of steps, and numbers that these may have.
RUNS_TILE, RUNS_NUMBERS = 16384, 1_000_000
# Numbers that units may see of rows moved together through their pieces.
PIECES_NUMBERS = 2_000_000

Progress = Callable[[int, int], None]

# Shares of the observed range that the search is tried with, in place of flow time.
REACHES = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """People before and after."""

    end: FloatArray  # (people, inputs): where each was moved
    clock: FloatArray  # (checkpoints,): flow time, or share of the range searched; the last is the whole map
    # log_loss, wrong (checkpoints, people): on the way; the first is the start.
    log_loss: FloatArray
    wrong: FloatArray
    stopped: BoolArray  # (people,): held at the edge of the observed range

    def log_ratio(self, checkpoint: int = -1) -> FloatArray:
        """Return the log ratio of each loss to that at the start; undefined ones stay, as NaN or infinite."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.log_loss[checkpoint] - self.log_loss[0])


def check_step(form: QuadraticForm, options: MapOptions) -> float:
    """Return the longest allowed Euler step, or say that the chosen one is too long.

    Parameters
    ----------
    form : QuadraticForm
        The metric.
    options : MapOptions
        Penalty and step.

    Returns
    -------
    float
    """
    limit = stability_limit(form, options.penalty)
    if options.method == "euler" and options.step >= limit and not options.allow_unstable:
        raise UsageError(
            f"Euler steps of {options.step:g} are too long: with penalty {options.penalty:g} and a metric of norm "
            f"{form.norm():.3g} they must stay below {limit:.3g}, or people oscillate instead of following the flow. "
            "Use a shorter `step`, a smaller `penalty`, `method='adaptive'`, or `allow_unstable=True` to repeat a "
            "published setting."
        )
    return limit


def move(
    people: People,
    index: IntArray,
    metric: FairMetric,
    box: Box,
    options: MapOptions,
    progress: Progress | None = None,
    *,
    few: bool = False,
) -> Moved:
    """Move people by the chosen map.

    Parameters
    ----------
    people : People
        People, their outcomes and the model.
    index : ndarray of int
        Those who are moved.
    metric : FairMetric
        Who counts as similar.
    box : Box
        The observed range.
    options : MapOptions
        How.
    progress : callable, optional
        Called with people done and people in all.
    few : bool, default False
        Whether they are so few that single steps through a network with kinks take less time than finding out where
        several can be made at once. They are then made in double precision.

    Returns
    -------
    Moved
    """
    if options.method == "search":
        return _searched(people, index, metric.form, box, options, progress)
    view, X, y = people.view, people.rows.X[index], people.view.y[index]
    network = view.network
    if network is None:
        raise UsageError("This model has no gradient; use `method='search'`.")

    def gradient(at: FloatArray, rows: IntArray) -> FloatArray:
        out, pull = network.pullback(at)
        return pull(view.loss.slope(out, y[rows]))

    def look(out: FloatArray, rows: IntArray) -> FloatArray:
        return np.column_stack([view.loss.log_value(out, y[rows]), view.loss.wrong(out, y[rows])])

    # Two outputs count by their difference only where they are log-odds.
    pieces = None if isinstance(view.loss, ProbabilityLoss) else as_pieces(network, view.loss.slope, y, look)
    runs = _runs(view, X, y, look)
    single = few and options.method == "euler" and (pieces is not None or runs is not None)
    own = precision(network)
    kind = np.float64 if single else own
    flow = Flow(
        gradient=gradient,
        form=metric.form.astype(kind),
        penalty=options.penalty,
        movable=~view.space.columns_of(options.freeze) if options.freeze else None,
        keep=None if options.limit == "none" else box.keep,
    )
    tile = _tile(view, options)
    steps, marks = step_sizes(options.step, options.steps, options.schedule), checkpoints(options.steps)
    method: Euler | Adaptive = Euler(steps, marks) if single else Euler(steps, marks, pieces, strides=True, runs=runs)
    if options.method == "adaptive":
        method = Adaptive(method.clock, options.flow_tolerance)
    elif pieces is not None and options.batch_rows is None and flow.keep is None:
        tile = max(TILE, min(PIECES_TILE, PIECES_NUMBERS // len(pieces.network.weights[-1])))
    elif runs is not None and options.batch_rows is None:
        tile = max(TILE, min(RUNS_TILE, RUNS_NUMBERS // X.shape[1]))
    if isinstance(method, Euler) and isinstance(network, Perceptron) and _is_held_linear(network, metric, box, options):
        held = HeldFlow(
            score=LinearScore(
                weights=network.weights[0],
                bias=network.biases[0],
                slope=lambda out, rows: view.loss.slope(out, y[rows]),
                look=look,
            ),
            directions=box.directions,
            penalty=options.penalty,
            room=box.room,
            shares=box.shares,
        )
        size = HELD_TILE if options.batch_rows is None else options.batch_rows
        done = follow_held(X, held, method, Tiles(size=size, progress=progress))
    else:
        done = follow(
            X.astype(own, copy=False).astype(kind, copy=False),  # a few people start where all others do
            flow,
            method,
            observe=lambda at, rows: look(network.outputs(at), rows),
            tiles=Tiles(size=tile, progress=progress),
        )
    return Moved(
        end=done.end.astype(np.float64, copy=False),
        clock=done.times,
        log_loss=done.seen[..., 0],
        wrong=done.seen[..., 1],
        stopped=done.stopped,
    )


def _runs(view: ModelView, X: FloatArray, y: FloatArray, look: Look) -> Runs | None:
    """Return how to move people through a network that is linear in pieces; None for others.

    It has one output, or two of which the difference counts.
    """
    network = view.network
    # Two outputs count by their difference only where they are log-odds.
    if network is None or isinstance(view.loss, ProbabilityLoss) or len(view.labels) > 2:
        return None
    kind = precision(network)

    def ask(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, slopes = np.empty(len(at)), np.empty(at.shape, dtype=kind)
        for low in range(0, len(at), view.tile):
            part = slice(low, low + view.tile)
            out, pull = network.pullback(at[part])
            values[part] = out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0]
            slopes[part] = pull(np.ones_like(out) if out.shape[1] == 1 else np.tile([-1.0, 1.0], (len(out), 1)))
        return values, slopes

    near = 1e-5 if kind == np.float32 else 1e-9
    if not linear_in_pieces(ask, X[:64].astype(kind), near):
        return None
    return Runs(ask=ask, slope=view.loss.slope, y=y, look=look, near=near)


def _is_held_linear(network: Perceptron, metric: FairMetric, box: Box, options: MapOptions) -> bool:
    """Say whether a score is linear, and its rows are held in a box along the very directions that are free."""
    basis, along = metric.form.basis, box.directions
    if len(network.weights) > 1 or network.dtype is not np.float64 or options.limit == "none" or options.freeze:
        return False
    if basis is None or basis.ndim == 3 or basis.shape != along.shape:
        return False
    return bool(np.abs(basis - along @ (along.T @ basis)).max(initial=0.0) < 1e-10)


def _tile(view: ModelView, options: MapOptions) -> int:
    return view.tile if options.batch_rows is None else options.batch_rows


def checkpoints(steps: int) -> list[int]:
    """Return the steps at which the statistic is looked at: each eighth of the way, and three halvings before.

    Examples
    --------
    >>> checkpoints(200)
    [0, 3, 6, 12, 25, 50, 75, 100, 125, 150, 175, 200]
    """
    shares = [k / 8 for k in range(9)] + [1 / 16, 1 / 32, 1 / 64]
    return sorted({round(steps * share) for share in shares})


def euler_errors(
    people: People, index: IntArray, metric: FairMetric, box: Box, options: MapOptions, coarse: Moved
) -> dict[str, Any]:
    """Measure the flow's discretisation error on a few people, by steps of half the length.

    Parameters
    ----------
    people, index, metric, box, options
        As in `move`; a few people are enough.
    coarse : Moved
        Where everybody was moved.

    Returns
    -------
    dict
        People used, largest and median displacement error, and change of the mean ratio.
    """
    fine = move(people, index, metric, box, _refined(options), few=True)
    gap = np.linalg.norm(coarse.end[index] - fine.end, axis=1)
    ratio = [np.exp(np.minimum(r, 700.0)).mean() for r in (coarse.log_ratio()[index], fine.log_ratio())]
    return {
        "people": int(index.size),
        "displacement_error_largest": float(gap.max(initial=0.0)),
        "displacement_error_median": float(np.median(gap)) if gap.size else float("nan"),
        "mean_ratio": float(ratio[0]),
        "mean_ratio_halved": float(ratio[1]),
    }


def _refined(options: MapOptions) -> MapOptions:
    if options.method == "adaptive":
        return replace(options, flow_tolerance=options.flow_tolerance / 10)
    # Halving a decaying schedule step by step keeps its flow time: each step is made twice at half length.
    return replace(options, step=options.step / 2, steps=options.steps * 2, schedule=f"{options.schedule}-halved")


def _searched(
    people: People, index: IntArray, form: QuadraticForm, box: Box, options: MapOptions, progress: Progress | None
) -> Moved:
    view, X, y = people.view, people.rows.X[index], people.view.y[index]
    movable = ~view.space.columns_of(options.freeze)[:, None] if options.freeze else 1.0
    span = box.reach if options.limit == "groups" else np.full_like(box.reach, np.inf)
    lines = Directions(box.directions * movable, box.low, box.high, span)
    several = box.directions.ndim == 3
    free = form.basis is not None or (not several and bool(form.square(lines.along.T).max(initial=0.0) <= 1e-9))
    tile = _tile(view, options)
    if several:  # one run of rows for each variant of the metric
        run = X.shape[0] // box.directions.shape[0]
        along, low, high, span = (np.repeat(a, run, axis=0) for a in (lines.along, box.low, box.high, span))
        lines = Directions(along, low, high, span)
        tile = tile if free else X.shape[0]

    def objective(at: FloatArray, rows: IntArray) -> FloatArray:
        value = view.loss.log_value(view.score(at), y[rows])
        if free:
            return value
        return np.exp(np.minimum(value, 700.0)) - options.penalty * form.square(at - X[rows])

    ends = []
    for reach in REACHES[-1:] if several else REACHES:
        tiles = Tiles(size=tile, progress=progress if reach == REACHES[-1] else None)
        some = replace(lines, reach=reach)
        ends.append(search(X, objective, some, points=options.points, snap=box.snap, tiles=tiles))
    starts = range(0, X.shape[0], tile)
    outputs = [np.concatenate([view.score(at[k : k + tile]) for k in starts]) for at in (X, *ends)]
    return Moved(
        end=ends[-1],
        clock=np.array([0.0, *REACHES[-len(ends) :]]),
        log_loss=np.stack([view.loss.log_value(out, y) for out in outputs]),
        wrong=np.stack([view.loss.wrong(out, y) for out in outputs]),
        stopped=np.zeros(X.shape[0], dtype=bool),
    )
