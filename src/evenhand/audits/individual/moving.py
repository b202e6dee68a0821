"""The unfair map: where each person is moved, by gradient flow or by search, and with what error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.individual.options import MapOptions
from evenhand.audits.individual.region import Box
from evenhand.errors import UsageError
from evenhand.kernels.flow.flow_error import euler_bound
from evenhand.kernels.flow.gradient_flow import QuadraticForm, flow, stability_limit, step_sizes
from evenhand.kernels.flow.line_search import search
from evenhand.kernels.flow.losses import ProbabilityLoss
from evenhand.kernels.flow.rectifier_pieces import TILE as PIECES_TILE
from evenhand.kernels.flow.rectifier_pieces import as_pieces
from evenhand.models.gradient import precision
from evenhand.models.gradient_view import ModelView
from evenhand.similarity.metric import FairMetric

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Progress = Callable[[int, int], None]

# Shares of the observed range that the search is tried with, in place of flow time.
REACHES = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """People before and after.

    Parameters
    ----------
    end : ndarray, shape (people, inputs)
        Where each was moved.
    clock : ndarray, shape (checkpoints,)
        Flow time, or share of the range searched; the last is the whole map.
    log_loss, wrong : ndarray, shape (checkpoints, people)
        On the way; the first is the start.
    stopped : ndarray of bool, shape (people,)
        Held at the edge of the observed range.
    """

    end: FloatArray
    clock: FloatArray
    log_loss: FloatArray
    wrong: FloatArray
    stopped: BoolArray

    def take(self, index: IntArray) -> Moved:
        """Return some of the people."""
        return Moved(
            end=self.end[index],
            clock=self.clock,
            log_loss=self.log_loss[:, index],
            wrong=self.wrong[:, index],
            stopped=self.stopped[index],
        )


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
            f"Euler steps of {options.step:g} are too long: with penalty {options.penalty:g} and a metric of "
            "norm "
            f"{form.norm():.3g} they must stay below {limit:.3g}, or people oscillate instead of following "
            "the flow. Use a "
            "shorter `step`, a smaller `penalty`, `method='adaptive'`, or `allow_unstable=True` to repeat a "
            "published setting."
        )
    return limit


def move(
    view: ModelView, X: FloatArray, y: FloatArray, metric: FairMetric, box: Box, options: MapOptions,
    progress: Progress | None = None,
) -> Moved:  # fmt: skip
    """Move people by the chosen map.

    Parameters
    ----------
    view : ModelView
        The model.
    X, y : ndarray
        People and their outcomes.
    metric : FairMetric
        Who counts as similar.
    box : Box
        The observed range.
    options : MapOptions
        How.
    progress : callable, optional
        Called with people done and people in all.

    Returns
    -------
    Moved
    """
    movable = ~view.space.columns_of(options.freeze) if options.freeze else None
    tile = view.tile if options.batch_rows is None else options.batch_rows
    if options.method == "search":
        return _searched(view, X, y, metric.form, box, movable, options, tile, progress)
    gradient = gradient_of(view, y)
    assert view.network is not None
    kind = precision(view.network)
    start, form = X.astype(kind, copy=False), metric.form.astype(kind)

    def look(out: FloatArray, rows: IntArray) -> FloatArray:
        return np.column_stack([view.loss.log_value(out, y[rows]), view.loss.wrong(out, y[rows])])

    def observe(at: FloatArray, rows: IntArray) -> FloatArray:
        assert view.network is not None
        return look(view.network.outputs(at), rows)

    shared: dict[str, Any] = {
        "penalty": options.penalty, "observe": observe, "movable": movable, "tile": tile,
        "progress": progress, "keep": None if options.limit == "none" else box.keep, "workers": options.workers,
    }  # fmt: skip
    marks = checkpoints(options.steps)
    if options.method == "euler":
        steps = step_sizes(options.step, options.steps, options.schedule)
        # Two outputs count by their difference only where they are log-odds.
        pieces = None if isinstance(view.loss, ProbabilityLoss) else as_pieces(view.network, view.loss.slope, y, look)
        if pieces is not None and options.batch_rows is None:
            shared["tile"] = PIECES_TILE
        done = flow(start, gradient, form, steps=steps, checkpoints=marks, shortcut=pieces, **shared)
    else:
        clock = np.concatenate(([0.0], np.cumsum(step_sizes(options.step, options.steps, options.schedule))))[marks]
        done = flow(start, gradient, form, times=clock, tolerance=options.flow_tolerance, **shared)
    return Moved(
        end=done.end.astype(np.float64, copy=False),
        clock=done.times,
        log_loss=done.seen[..., 0],
        wrong=done.seen[..., 1],
        stopped=done.stopped,
    )


def gradient_of(view: ModelView, y: FloatArray) -> Callable[[FloatArray, IntArray], FloatArray]:
    """Return the loss gradient by the inputs, as `flow` asks for it."""
    network = view.network
    if network is None:
        raise UsageError("This model has no gradient; use `method='search'`.")

    def gradient(at: FloatArray, rows: IntArray) -> FloatArray:
        out, pull = network.pullback(at)
        return pull(view.loss.slope(out, y[rows]))

    return gradient


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
    view: ModelView, X: FloatArray, y: FloatArray, metric: FairMetric, box: Box, options: MapOptions, coarse: Moved
) -> dict[str, Any]:
    """Measure the flow's discretisation error on a few people: steps halved, and the bound of Theorem 2.2.

    Parameters
    ----------
    view, X, y, metric, box, options
        As in `move`; a few people are enough.
    coarse : Moved
        Where these people were moved.

    Returns
    -------
    dict
        People used, largest and median displacement error, change of the mean ratio, and the bound's
        logarithm.
    """
    assert view.network is not None
    kind = precision(view.network)
    fine = move(view, X, y, metric, box, _refined(options))
    gap = np.linalg.norm(coarse.end - fine.end, axis=1)
    ratio = [np.exp(np.minimum(m.log_loss[-1] - m.log_loss[0], 700.0)).mean() for m in (coarse, fine)]
    out: dict[str, Any] = {
        "people": int(X.shape[0]),
        "displacement_error_largest": float(gap.max(initial=0.0)),
        "displacement_error_median": float(np.median(gap)) if gap.size else float("nan"),
        "mean_ratio": float(ratio[0]),
        "mean_ratio_halved": float(ratio[1]),
    }
    if options.method == "euler":
        bound = euler_bound(
            [X, coarse.end], X, gradient_of(view, y), metric.form, penalty=options.penalty,
            longest=options.step, time=float(coarse.clock[-1]), probe=float(np.cbrt(np.finfo(kind).eps)),
        )  # fmt: skip
        out |= {
            "lipschitz": bound.lipschitz,
            "curvature": bound.curvature,
            "theorem_2_2_log10": bound.log10_bound,
        }
    return out


def _refined(options: MapOptions) -> MapOptions:
    if options.method == "adaptive":
        return replace(options, flow_tolerance=options.flow_tolerance / 10)
    # Halving a decaying schedule step by step keeps its flow time: each step is made twice at half length.
    return replace(options, step=options.step / 2, steps=options.steps * 2, schedule=f"{options.schedule}-halved")


def _searched(
    view: ModelView, X: FloatArray, y: FloatArray, form: QuadraticForm, box: Box, movable: BoolArray | None,
    options: MapOptions, tile: int, progress: Progress | None,
) -> Moved:  # fmt: skip
    directions = box.directions if movable is None else box.directions * movable[:, None]
    span = box.reach if options.limit == "groups" else np.full_like(box.reach, np.inf)
    low, high = box.low, box.high
    several = directions.ndim == 3
    free = form.basis is not None or (not several and bool(form.square(directions.T).max(initial=0.0) <= 1e-9))
    if several:  # one run of rows for each variant of the metric
        run = X.shape[0] // directions.shape[0]
        directions, low, high, span = (np.repeat(a, run, axis=0) for a in (directions, low, high, span))
        tile = tile if free else X.shape[0]

    def objective(at: FloatArray, rows: IntArray) -> FloatArray:
        value = view.loss.log_value(view.score(at), y[rows])
        if free:
            return value
        return np.exp(np.minimum(value, 700.0)) - options.penalty * form.square(at - X[rows])

    ends = [
        search(X, objective, directions, low, high, points=options.points, span=span, reach=r, snap=box.snap,
               tile=tile, progress=progress if r == REACHES[-1] else None)
        for r in (REACHES[-1:] if several else REACHES)
    ]  # fmt: skip
    outputs = [_in_tiles(view.score, at, tile) for at in (X, *ends)]
    return Moved(
        end=ends[-1],
        clock=np.array([0.0, *REACHES[-len(ends) :]]),
        log_loss=np.stack([view.loss.log_value(out, y) for out in outputs]),
        wrong=np.stack([view.loss.wrong(out, y) for out in outputs]),
        stopped=np.zeros(X.shape[0], dtype=bool),
    )


def _in_tiles(score: Callable[[FloatArray], FloatArray], X: FloatArray, tile: int) -> FloatArray:
    return np.concatenate([score(X[k : k + tile]) for k in range(0, X.shape[0], tile)])
