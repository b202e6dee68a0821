"""What a learned metric adds to the error of the ratios: directions and reach learned again from rows drawn again.

Rows are drawn by a generator whose seed is a hash of the people, so that the same people always get the same p-value.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.individual.folds import Fold, Plan
from evenhand.audits.individual.moving import Moved, move
from evenhand.audits.individual.options import MapOptions
from evenhand.audits.individual.people import People
from evenhand.audits.individual.region import Box, observed_box, stacked
from evenhand.errors import DataError
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.kernels.flow.map_error import EXACT, MapError, redrawn
from evenhand.kernels.shared.seeds import stream
from evenhand.similarity.metric import FairMetric, MetricRows, angles
from evenhand.similarity.uncertainty import draw

# People of each half who are moved again under each refit.
PROBED = 64
# An error is a step in the logarithm of the loss, at log 2 for two classes; smoothed over this width a few people show
# how the rate of errors follows the metric.
STEP, WIDTH = math.log(math.log(2.0)), 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refits:
    """Errors that the learned metric adds, at each checkpoint of the map."""

    # loss, wrong: for the mean ratio and for the rate of errors after.
    loss: tuple[MapError, ...]
    wrong: tuple[MapError, ...]
    told: dict[str, Any]  # what the report says: refits made and failed, angles of their directions, ratios under them


def refit_errors(people: People, plan: Plan, moved: Moved, how: MapOptions, refits: int) -> Refits:
    """Move some people again under metrics learned from rows drawn again, with replacement.

    Parameters
    ----------
    people : People
        All.
    plan : Plan
        As they were moved.
    moved : Moved
        Where they were moved.
    how : MapOptions
        How.
    refits : int
        Draws; 0 takes the metric as known.

    Returns
    -------
    Refits
    """
    marks = moved.clock.size
    known = Refits(loss=(EXACT,) * marks, wrong=(EXACT,) * marks, told={})
    if not refits or not plan.recipe.learned:
        return known
    mass = _mass(people)
    made: list[list[tuple[FairMetric, Box]]] = []
    times: list[FloatArray] = []
    seed = zlib.crc32(np.ascontiguousarray(people.X).tobytes())
    for b in range(refits):
        rng = stream(seed, "individual/refits", b)
        drawn, again = draw(people.learn(np.arange(mass.size)), rng)
        try:
            made.append([_refit(plan, fold, drawn, rng, how) for fold in plan.folds])
        except DataError:
            continue
        times.append(again)
    if len(made) < max(refits // 2, 3):
        nan = MapError(bias=math.nan, variance=math.nan, covariance=(math.nan, math.nan), freedom=math.nan)
        return replace(known, loss=(nan,) * marks, wrong=(nan,) * marks, told={"refits": len(made)})
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
        loss=tuple(redrawn(loss[:, t], _parts(mass, times, r[t])) for t in range(marks)),
        wrong=tuple(redrawn(wrong[:, t], _parts(mass, times, a[t], b0)) for t in range(marks)),
        told={
            "refits": len(made),
            "refits_failed": refits - len(made),
            "largest_angle_degrees": np.array(turns).max(axis=0),
            "loss_ratio_change": loss[:, -1],
        },
    )


def _refit(
    plan: Plan, fold: Fold, drawn: MetricRows, rng: np.random.Generator, how: MapOptions
) -> tuple[FairMetric, Box]:
    everyone = drawn.X.shape[0]
    if len(plan.folds) == 2:
        rows = drawn.take(np.setdiff1d(np.arange(everyone), fold.index))
    elif fold.rows.X is not drawn.X and fold.rows.X.shape != drawn.X.shape:
        rows = draw(fold.rows, rng)[0]
    else:
        rows = drawn
    metric = plan.recipe.fit(rows)
    moved = rows if fold.moved is fold.rows else drawn.take(fold.index)
    return metric, observed_box(fold.rows, metric, moved, how.limit)


def _moved_under(people: People, probe: IntArray, refits: list[tuple[FairMetric, Box]], how: MapOptions) -> FloatArray:
    """Return the log losses of some people under each refit, all moved at once where all make the same steps."""
    if how.method == "adaptive":
        alone = [move(people.view, people.X[probe], people.view.y[probe], m, b, how).log_loss for m, b in refits]
        return np.stack(alone)
    count = len(refits)
    forms = [m.form for m, _ in refits]
    if all(f.basis is not None for f in forms):
        wide = max(f.basis.shape[1] for f in forms if f.basis is not None)
        bases = [np.pad(f.basis, [(0, 0), (0, wide - f.basis.shape[1])]) for f in forms if f.basis is not None]
        form = QuadraticForm(basis=np.stack(bases))
    else:
        form = QuadraticForm(matrix=np.stack([f.dense() for f in forms]))
    X, y = np.tile(people.X[probe], (count, 1)), np.tile(people.view.y[probe], count)
    box = stacked([b for _, b in refits])
    done = move(people.view, X, y, replace(refits[0][0], form=form), box, replace(how, batch_rows=X.shape[0]))
    return done.log_loss.reshape(-1, count, probe.size).swapaxes(0, 1)


def _mass(people: People) -> FloatArray:
    return people.count if people.weight is None else people.count * people.weight


def _ratio(log_loss: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        out: FloatArray = np.exp(np.minimum(log_loss - log_loss[..., :1, :], 700.0))
    return out


def _smooth(log_loss: FloatArray) -> FloatArray:
    out: FloatArray = 1.0 / (1.0 + np.exp(-np.clip((log_loss - STEP) / (WIDTH * 0.6), -500, 500)))
    return out


def _parts(mass: FloatArray, times: list[FloatArray], *values: FloatArray) -> FloatArray:
    """Return how each mean changes with each draw of the people."""
    whole = [np.nan_to_num(v, nan=0.0, posinf=0.0, neginf=0.0) for v in values]
    return np.array([[float(mass * t @ v / (mass @ t) - mass @ v / mass.sum()) for v in whole] for t in times])
