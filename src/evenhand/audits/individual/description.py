"""What an individual audit describes beside its tests: the way there, classes and groups, the metric's share, pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.detectable import POWER, least_by_normal
from evenhand.audits.individual.evidence import (
    CurvePoint,
    ExamplePair,
    MovedColumn,
    Movement,
    OffRange,
    PartRatios,
)
from evenhand.audits.individual.folds import Fold, Refits
from evenhand.audits.individual.moving import Moved, move
from evenhand.audits.individual.options import IndividualSetting, MapOptions
from evenhand.audits.individual.people import People
from evenhand.kernels.flow.ratios import MeanRatio, mean_ratio, rate_ratio
from evenhand.similarity.uncertainty import MetricSpread

# People behind a mean that is shown without having been asked for.
FEWEST = 10
# Columns named of those that moved.
NAMED = 8


def curve(people: People, moved: Moved, refit: Refits, options: IndividualSetting) -> tuple[CurvePoint, ...]:
    """Return the statistics against flow time (or the share of the range searched).

    Parameters
    ----------
    people, moved
        Before and after.
    refit : Refits
        What the learned metric adds at each checkpoint.
    options : IndividualSetting
        For T_n and the limits.

    Returns
    -------
    tuple of CurvePoint
        One per checkpoint.
    """
    return tuple(
        CurvePoint(time=float(time), **_statistics(people, people.count, moved, k, refit, options))
        for k, time in enumerate(moved.clock)
    )


def by_part(people: People, moved: Moved, refit: Refits, options: IndividualSetting) -> tuple[PartRatios, ...]:
    """Return the ratios of each class and each group, as description: they are not tested.

    Parameters
    ----------
    people, moved, refit, options
        As in `curve`.

    Returns
    -------
    tuple of PartRatios
        Each a "class" or a "group", at the last checkpoint.
    """
    parts: list[tuple[str, str, FloatArray]] = [
        ("class", label, people.count * (people.view.y == k)) for k, label in enumerate(people.view.labels)
    ]
    for group in people.rows.groups:
        parts += [("group", f"{group.name}={label}", group.table[:, k]) for k, label in enumerate(group.labels)]
    return tuple(
        PartRatios(
            part=kind,
            name=name,
            rows=float(count.sum()),
            **(_statistics(people, count, moved, -1, refit, options) if count.sum() >= 2 else {}),
        )
        for kind, name, count in parts
    )


def _statistics(
    people: People, count: FloatArray, moved: Moved, checkpoint: int, refit: Refits, options: IndividualSetting
) -> dict[str, float]:
    """Return both ratios of those who are counted, with one-sided limits at the level of the options."""
    used = count > 0
    weight = None if people.weight is None else people.weight[used]
    count, log_ratio = count[used], moved.log_ratio(checkpoint)[used]
    after, before = moved.wrong[checkpoint][used], moved.wrong[0][used]
    out: dict[str, float] = {}
    tail = 1 - options.level
    if np.isfinite(log_ratio).all():
        mean = replace(mean_ratio(log_ratio, count, weight), map=refit.loss[checkpoint])
        low, high = mean.lower(tail, options.limits), mean.upper(tail, options.limits)
        out |= {"loss_ratio": mean.estimate, "low": low, "high": high, "T_n": mean.bound(options.alpha)}
    if np.isfinite(after).all() and np.isfinite(before).all():
        rates = replace(rate_ratio(after, before, count, weight), map=refit.wrong[checkpoint])
        if math.isfinite(rates.estimate):
            out |= {"error_ratio": rates.estimate, "error_low": rates.lower(tail), "error_high": rates.upper(tail)}
            out["T_n_error"] = rates.bound(options.alpha)
    return {k: v for k, v in out.items() if math.isfinite(v)}


def off_range(people: People, folds: Sequence[Fold], moved: Moved) -> OffRange:
    """Return the share of rows that ended outside the observed range of the directions, and of the inputs.

    Parameters
    ----------
    people, moved
        Before and after.
    folds : sequence of Fold
        Who was moved inside which range.

    Returns
    -------
    OffRange
    """
    total = float(people.count.sum())
    out = dict.fromkeys(("directions", "columns", "either", "stopped"), 0.0)
    for fold in folds:
        end, count = moved.end[fold.index], people.count[fold.index]
        a, b = ~fold.box.inside_directions(end), ~fold.box.inside_columns(end)
        for name, mark in zip(out, (a, b, a | b, moved.stopped[fold.index]), strict=True):
            out[name] += float(count[mark].sum()) / total
    return OffRange(**out)


def metric_sensitivity(
    people: People, index: IntArray, moved: Moved, fold: Fold, spread: MetricSpread, options: MapOptions
) -> dict[str, Any]:
    """Return what metrics from other pairs would have said, on a few people.

    Parameters
    ----------
    people : People
        All.
    index : ndarray
        The few that are moved again under each refit.
    moved : Moved
        Where everybody was moved.
    fold, options
        Metric and range as the audit used them.
    spread : MetricSpread
        Refits of the metric.

    Returns
    -------
    dict
    """
    out: dict[str, Any] = {
        "refits": len(spread.forms),
        "refits_failed": spread.failed,
        "largest_angle_degrees": spread.largest_angle,
        "matrix_distance": spread.distance,
    }
    if not spread.forms:
        return out
    others = [move(people, index, replace(fold.metric, form=f), fold.box, options) for f in spread.forms[:5]]
    log_ratios = [moved.log_ratio()[index], *(m.log_ratio() for m in others)]
    values = [float(np.exp(np.minimum(r, 700.0)).mean()) for r in log_ratios]
    out |= {"people": int(index.size), "loss_ratio": values[0], "loss_ratio_under_refits": values[1:]}
    return out


def movement_summary(people: People, moved: Moved) -> Movement:
    """Return which columns moved, and how far in the user's units, for the tenth with the largest ratios.

    Parameters
    ----------
    people, moved
        Before and after.

    Returns
    -------
    Movement
        Means over at least `FEWEST` rows (all, when a tenth is fewer), so that no single person
        can be read from it; no columns when there are not so many rows.
    """
    order = np.argsort(-np.nan_to_num(moved.log_ratio(), nan=-np.inf), kind="stable")
    reached = np.cumsum(people.count[order])
    top = order[: int(np.searchsorted(reached, max(FEWEST, 0.1 * reached[-1]))) + 1]
    rows = float(people.count[top].sum())
    if top.size < FEWEST:  # people, not rows: ten times the same person is one person
        return Movement(rows=rows, columns=())
    share = people.count[top] / rows
    change = moved.end[top] - people.rows.X[top]
    sized: list[tuple[float, MovedColumn]] = []
    inputs = people.view.space.inputs
    for j, i in enumerate(inputs):
        if i.category is None:
            size = float(share @ np.abs(change[:, j]))
            mean = i.scale * float(share @ change[:, j])
            sized.append((size, MovedColumn(column=i.column, mean_change=mean, mean_size=abs(i.scale) * size)))
    for block in people.view.space.blocks:
        weight = float(share @ np.abs(change[:, block]).sum(axis=1)) / 2
        means = share @ change[:, block]
        fell, rose = (inputs[block[int(k)]].category for k in (means.argmin(), means.argmax()))
        column = inputs[block[0]].column
        sized.append((weight, MovedColumn(column=column, mean_weight_moved=weight, from_=fell, to=rose)))
    ranked = [row for size, row in sorted(sized, key=lambda r: -r[0]) if size > 1e-9]
    return Movement(rows=rows, columns=tuple(ranked[:NAMED]))


def pairs(people: People, moved: Moved, wanted: int) -> tuple[ExamplePair, ...]:
    """Return the people with the largest ratios as pairs of before and after: rows, so only on request."""
    log_ratio, labels = moved.log_ratio(), people.view.labels
    order = np.argsort(-np.nan_to_num(log_ratio, nan=-np.inf), kind="stable")[:wanted]
    return tuple(
        ExamplePair(
            ratio=float(np.exp(min(log_ratio[k], 700.0))),
            loss_before=float(np.exp(moved.log_loss[0, k])),
            loss_after=float(np.exp(min(moved.log_loss[-1, k], 700.0))),
            outcome=labels[int(people.view.y[k])] if labels else float(people.view.y[k]),
            rows=float(people.count[k]),
            moved=tuple(people.view.space.movement(people.rows.X[k], moved.end[k])),
        )
        for k in order
    )


def planning(mean: MeanRatio, tolerance: float, alpha: float) -> str:
    """Say what could have been shown, and how many rows would decide if the estimate holds."""
    if not mean.error > 0:
        return ""
    reach = least_by_normal(mean.error, alpha, two_sided=False)
    text = f"A mean ratio of {tolerance + reach:.3g} would have been shown with probability {POWER:g}."
    gap = abs(mean.estimate - tolerance)
    if gap > 0:
        rows = math.ceil(mean.rows * (reach / gap) ** 2)
        if rows > mean.rows:
            text += f" If the ratio is what it seems, about {rows:,} rows would decide."
    return text
