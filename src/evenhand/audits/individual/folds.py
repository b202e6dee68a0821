"""Who is moved under which metric: directions that predict groups on rows apart, and each half under the other's.

A learned metric adds to the error of the ratios: it is learned again from rows that are drawn again, by a generator
whose seed is a hash of the people, so that the same people always get the same p-value.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.individual.moving import Moved, check_step, move
from evenhand.audits.individual.options import MapOptions
from evenhand.audits.individual.people import People, content_marks, same_space, second_half
from evenhand.audits.individual.region import Box, observed_box, stacked, turned_box
from evenhand.errors import DataError
from evenhand.intake import AuditData
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.kernels.flow.map_error import EXACT, MapError, redrawn
from evenhand.kernels.shared.seeds import stream
from evenhand.similarity.metric import FairMetric, MetricRows, Similarity, angles
from evenhand.similarity.prediction import Predicted, predicted_groups
from evenhand.similarity.subspace import SensitiveSubspace
from evenhand.similarity.uncertainty import draw

# Below this the normal limit says nothing at all.
LEAST_ROWS = 8
# People of each half who are moved again under each refit.
PROBED = 64
# An error is a step in the logarithm of the loss, at log 2 for two classes; smoothed over this width a few people show
# how the rate of errors follows the metric.
STEP, WIDTH = math.log(math.log(2.0)), 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """Some people, the metric they are moved under and where they may go."""

    index: IntArray  # the people who are moved
    rows: MetricRows  # the rows the metric was learned from
    # The rows on which differences between groups are measured: those who are moved, where their groups are known.
    moved: MetricRows
    metric: FairMetric  # who counts as similar
    box: Box  # where they may go


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The folds of an audit and the recipe behind them."""

    recipe: Similarity  # with only the attributes that the inputs predict
    folds: tuple[Fold, ...]  # one or two
    predicted: tuple[Predicted, ...]  # how well the inputs predict each attribute; empty for a stated metric
    marks: IntArray  # of the content of the people, increasing: they say to which fold anybody else belongs


class NotPredictedError(DataError):
    """No attribute is predicted by the inputs: no direction can be called group-like."""

    def __init__(self, message: str, predicted: Sequence[Predicted]) -> None:
        super().__init__(message)
        self.predicted = tuple(predicted)


def make_plan(
    people: People, recipe: Similarity, metric_rows: str | AuditData, how: MapOptions, alpha: float | None
) -> Plan:
    """Fit the metric, and where people may go, for each part of the people.

    Parameters
    ----------
    people : People
        All who are audited.
    recipe : Similarity
        As the user asked for it.
    metric_rows : {"crossfit", "shared"} or AuditData
        Where a metric is learned.
    how : MapOptions
        How people are moved.
    alpha : float or None
        Error rate of the test that the inputs predict some attribute; None takes the metric as known and tests nothing.

    Returns
    -------
    Plan
    """
    if people.count.sum() < LEAST_ROWS:
        raise DataError(
            f"{people.count.sum():.0f} rows are too few for any statement; at least {LEAST_ROWS} are needed."
        )
    everyone = np.arange(people.rows.X.shape[0])
    own = None if isinstance(metric_rows, str) else same_space(people, metric_rows)
    marks = people.marks
    known_marks = np.unique(marks)
    one, two = _halves(marks, known_marks)
    if min(one.size, two.size) == 0:
        raise DataError("There are too few different people to learn the fair metric apart from them.")
    predicted: list[Predicted] = []
    if recipe.learned and alpha is not None:
        learned, sides = (people.rows, (one, two)) if own is None else (own, _halves(content_marks(own.X)))
        first, second = (learned.take(i) for i in sides)
        recipe, predicted = predictive(recipe, first, second, alpha)
    if own is not None:
        parts = [(everyone, own)]
    elif metric_rows == "crossfit" and (recipe.learned or how.method == "search"):
        parts = [(one, people.rows.take(two)), (two, people.rows.take(one))]
    else:
        parts = [(everyone, people.rows)]
    folds = []
    for index, rows in parts:
        metric = recipe.fit(rows)
        check_step(metric.form, how)
        moved = people.rows.take(index)
        known = {g.name for g in moved.groups} | set(moved.continuous)
        if not all(p.attribute is None or p.attribute in known for p in metric.parts):
            moved = rows
        box = observed_box(rows, metric, moved, how.limit)
        folds.append(Fold(index=index, rows=rows, moved=moved, metric=metric, box=box))
    return Plan(recipe=recipe, folds=tuple(folds), predicted=tuple(predicted), marks=known_marks)


def _halves(marks: IntArray, known: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """Return who belongs to the first half and who to the second, by their content."""
    second = second_half(marks, np.unique(marks) if known is None else known)
    return np.flatnonzero(~second), np.flatnonzero(second)


def predictive(
    recipe: Similarity, one: MetricRows, two: MetricRows, alpha: float
) -> tuple[Similarity, list[Predicted]]:
    """Return the recipe with only what the inputs predict on rows apart, or say that they predict nothing.

    Parameters
    ----------
    recipe : Similarity
        A learned one.
    one, two : MetricRows
        Two halves of the rows.
    alpha : float
        Error rate over all regressions together.

    Returns
    -------
    recipe, predicted
    """
    ours = isinstance(recipe, SensitiveSubspace)
    asked = recipe if isinstance(recipe, SensitiveSubspace) else SensitiveSubspace(getattr(recipe, "attributes", None))
    predicted = predicted_groups(asked, one, two)
    shown = [p for p in predicted if p.pvalue <= alpha / len(predicted)]
    if not shown and not (ours and asked.axes(one)):
        tested = ", ".join(f"{p.label}: p {p.pvalue:.2g}, AUC {p.auc:.2f}" for p in predicted)
        raise NotPredictedError(
            "The model's inputs do not predict the protected groups better than chance on rows apart "
            f"({tested or 'no group to predict'}; p at most {alpha / max(len(predicted), 1):.3g} is needed). So no "
            "direction can be called group-like, and nobody can be moved as if they belonged to another group.",
            predicted,
        )
    return (asked.keeping({(p.attribute, p.group) for p in shown}) if ours else recipe), predicted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refits:
    """Errors that the learned metric adds, at each checkpoint of the map."""

    # loss, wrong: for the mean ratio and for the rate of errors after.
    loss: tuple[MapError, ...]
    wrong: tuple[MapError, ...]
    shown: dict[str, Any]  # what the report says: refits made and failed, angles of their directions, ratios under them


def refit_errors(people: People, plan: Plan, moved: Moved, how: MapOptions, refits: int, share: float = 1.0) -> Refits:
    """Move some people again under metrics learned from rows drawn again, with replacement.

    Parameters
    ----------
    people : People
        All from whom the metric is learned.
    plan : Plan
        As they were moved.
    moved : Moved
        Where they were moved.
    how : MapOptions
        How.
    refits : int
        Draws; 0 takes the metric as known.
    share : float
        Their share of all rows of the audit: a draw of them moves means over all rows by as much less.

    Returns
    -------
    Refits
    """
    marks = moved.clock.size
    known = Refits(loss=(EXACT,) * marks, wrong=(EXACT,) * marks, shown={})
    if not refits or not plan.recipe.learned:
        return known
    mass = people.count if people.weight is None else people.count * people.weight
    made: list[list[tuple[FairMetric, Box]]] = []
    times: list[FloatArray] = []
    seed = zlib.crc32(np.ascontiguousarray(people.rows.X).tobytes())
    for b in range(refits):
        rng = stream(seed, "individual/refits", b)
        drawn, again = draw(people.rows, rng)
        try:
            made.append([_refit(plan, fold, drawn, rng, how) for fold in plan.folds])
        except DataError:
            continue
        times.append(again)
    if len(made) < max(refits // 2, 3):
        nan = MapError(bias=math.nan, variance=math.nan, covariance=(math.nan, math.nan), freedom=math.nan)
        return replace(known, loss=(nan,) * marks, wrong=(nan,) * marks, shown={"refits": len(made)})
    loss, wrong = np.zeros((len(made), marks)), np.zeros((len(made), marks))
    turns = []
    for k, fold in enumerate(plan.folds):
        probe = fold.index[np.unique(np.linspace(0, fold.index.size - 1, min(PROBED, fold.index.size)).astype(int))]
        weight = float(mass[fold.index].sum() / mass.sum()) * mass[probe] / mass[probe].sum()
        after = _moved_under(people, probe, [v[k] for v in made], how)  # (refits, checkpoints, people)
        before = moved.log_loss[:, probe]
        places = np.arange(marks) if after.shape[1] == marks else np.array([0, marks - 1])  # a search has one reach
        for value, out in ((_ratio, loss), (_smooth, wrong)):
            out[:, places] += (value(after) - value(before[places])) @ weight
        first = fold.metric.form.free_directions()
        turns.append([float(angles(first, v[k][0].form.free_directions()).max(initial=0.0)) for v in made])
    r, a, b0 = _ratio(moved.log_loss), moved.wrong, moved.wrong[0]
    return Refits(
        loss=tuple(redrawn(loss[:, t], share * _parts(mass, times, r[t])) for t in range(marks)),
        wrong=tuple(redrawn(wrong[:, t], share * _parts(mass, times, a[t], b0)) for t in range(marks)),
        shown={
            "refits": len(made),
            "refits_failed": refits - len(made),
            "largest_angle_degrees": np.array(turns).max(axis=0),
            "loss_ratio_change": loss[:, -1],
        },
    )


def _refit(
    plan: Plan, fold: Fold, drawn: MetricRows, rng: np.random.Generator, how: MapOptions
) -> tuple[FairMetric, Box]:
    if len(plan.folds) == 2:
        rows = drawn.take(next(other.index for other in plan.folds if other is not fold))
    elif fold.rows.X is not drawn.X and fold.rows.X.shape != drawn.X.shape:
        rows = draw(fold.rows, rng)[0]
    else:
        rows = drawn
    metric = plan.recipe.fit(rows)
    moved = rows if fold.moved is fold.rows else drawn.take(fold.index)
    return metric, turned_box(fold.box, fold.rows, metric, moved, how.limit)


def _moved_under(people: People, probe: IntArray, refits: list[tuple[FairMetric, Box]], how: MapOptions) -> FloatArray:
    """Return the log losses of some people under each refit, all moved at once where all make the same steps."""
    if how.method == "adaptive":
        return np.stack([move(people, probe, m, b, how).log_loss for m, b in refits])
    count = len(refits)
    forms = [m.form for m, _ in refits]
    if all(f.basis is not None for f in forms):
        wide = max(f.basis.shape[1] for f in forms if f.basis is not None)
        bases = [np.pad(f.basis, [(0, 0), (0, wide - f.basis.shape[1])]) for f in forms if f.basis is not None]
        form = QuadraticForm(basis=np.stack(bases))
    else:
        form = QuadraticForm(matrix=np.stack([f.dense() for f in forms]))
    metric, box, every = replace(refits[0][0], form=form), stacked([b for _, b in refits]), np.tile(probe, count)
    done = move(people, every, metric, box, replace(how, batch_rows=every.size))
    return done.log_loss.reshape(-1, count, probe.size).swapaxes(0, 1)


def _ratio(log_loss: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.exp(np.minimum(log_loss - log_loss[..., :1, :], 700.0))


def _smooth(log_loss: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-np.clip((log_loss - STEP) / (WIDTH * 0.6), -500, 500)))


def _parts(mass: FloatArray, times: list[FloatArray], *values: FloatArray) -> FloatArray:
    """Return how each mean changes with each draw of the people."""
    whole = [np.nan_to_num(v, nan=0.0, posinf=0.0, neginf=0.0) for v in values]
    return np.array([[float(mass * t @ v / (mass @ t) - mass @ v / mass.sum()) for v in whole] for t in times])
