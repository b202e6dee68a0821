"""What an individual audit describes beside its tests: the way there, classes and groups, the metric's share, pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

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
from evenhand.audits.individual.moving import Moved, move
from evenhand.audits.individual.options import MapOptions
from evenhand.audits.individual.people import People
from evenhand.audits.individual.region import Box
from evenhand.kernels.flow.map_error import MapError
from evenhand.kernels.flow.ratios import MeanRatio, mean_ratio, rate_ratio
from evenhand.similarity.metric import FairMetric
from evenhand.similarity.uncertainty import MetricSpread

# People behind a mean that is shown without having been asked for.
FEWEST = 10


def ratios(log_loss: FloatArray) -> FloatArray:
    """Return log ratios of each checkpoint's loss to the first; undefined ones stay, as NaN or infinite."""
    with np.errstate(invalid="ignore"):
        out: FloatArray = log_loss - log_loss[0]
    return out


class Limits(Protocol):
    """The options a finding depends on; `evenhand.audits.individual.options.IndividualOptions` has them."""

    @property
    def tolerance(self) -> float:
        """The largest ratio that is tolerated."""
        ...

    @property
    def alpha(self) -> float:
        """Error rate."""
        ...

    @property
    def level(self) -> float:
        """Coverage of the intervals."""
        ...

    @property
    def limits(self) -> str:
        """``"skewness"`` or ``"normal"``."""
        ...


def curve(
    people: People, moved: Moved, loss_map: Sequence[MapError], wrong_map: Sequence[MapError], options: Limits
) -> tuple[CurvePoint, ...]:
    """Return the statistics against flow time (or the share of the range searched).

    Parameters
    ----------
    people, moved
        Before and after.
    loss_map, wrong_map : sequence of MapError
        What the learned metric adds at each checkpoint.
    options : Limits
        For T_n and the limits.

    Returns
    -------
    tuple of CurvePoint
        One per checkpoint.
    """
    log_ratio, before = ratios(moved.log_loss), moved.wrong[0]
    return tuple(
        CurvePoint(
            time=float(time),
            **_statistics(people, people.count, log_ratio[k], (moved.wrong[k], before), errors, options),
        )
        for k, (time, *errors) in enumerate(zip(moved.clock, loss_map, wrong_map, strict=True))
    )


def by_part(
    people: People, log_ratio: FloatArray, moved: Moved, loss_map: MapError, wrong_map: MapError, options: Limits
) -> tuple[PartRatios, ...]:
    """Return the ratios of each class and each group, as description: they are not tested.

    Parameters
    ----------
    people, moved
        Before and after.
    log_ratio : ndarray, shape (people,)
        Of the whole map.
    loss_map, wrong_map, options
        As in `curve`, at the last checkpoint.

    Returns
    -------
    tuple of PartRatios
        Each a "class" or a "group".
    """
    parts: list[tuple[str, str, FloatArray]] = [
        ("class", label, people.count * (people.view.y == k)) for k, label in enumerate(people.view.labels)
    ]
    for group in people.groups:
        parts += [("group", f"{group.name}={label}", group.table[:, k]) for k, label in enumerate(group.labels)]
    wrong, errors = (moved.wrong[-1], moved.wrong[0]), (loss_map, wrong_map)
    return tuple(
        PartRatios(
            part=kind,
            name=name,
            rows=float(count.sum()),
            **(_statistics(people, count, log_ratio, wrong, errors, options) if count.sum() >= 2 else {}),
        )
        for kind, name, count in parts
    )


def _statistics(
    people: People,
    count: FloatArray,
    log_ratio: FloatArray,
    wrong: tuple[FloatArray, FloatArray],
    errors: Sequence[MapError],
    options: Limits,
) -> dict[str, float]:
    """Return both ratios of those who are counted, with one-sided limits at the level of the options.

    `wrong` holds the errors after and before, `errors` what the learned metric adds to either ratio.
    """
    used = count > 0
    weight = None if people.weight is None else people.weight[used]
    count, log_ratio, (after, before) = count[used], log_ratio[used], (w[used] for w in wrong)
    loss_map, wrong_map = errors
    out: dict[str, float] = {}
    tail = 1 - options.level
    if np.isfinite(log_ratio).all():
        found = replace(mean_ratio(log_ratio, count, weight), map=loss_map)
        low, high = found.lower(tail, options.limits), found.upper(tail, options.limits)
        out |= {"loss_ratio": found.estimate, "low": low, "high": high, "T_n": found.bound(options.alpha)}
    if np.isfinite(after).all() and np.isfinite(before).all():
        rates = replace(rate_ratio(after, before, count, weight), map=wrong_map)
        if math.isfinite(rates.estimate):
            out |= {"error_ratio": rates.estimate, "error_low": rates.lower(tail), "error_high": rates.upper(tail)}
            out["T_n_error"] = rates.bound(options.alpha)
    return {k: v for k, v in out.items() if math.isfinite(v)}


def off_range(people: People, folds: Sequence[tuple[IntArray, Box]], moved: Moved) -> OffRange:
    """Return the share of rows that ended outside the observed range of the directions, and of the inputs.

    Parameters
    ----------
    people, moved
        Before and after.
    folds : sequence of (index, Box)
        Who was moved inside which range.

    Returns
    -------
    OffRange
    """
    total = float(people.count.sum())
    out = dict.fromkeys(("directions", "columns", "either", "stopped"), 0.0)
    for index, box in folds:
        end, count = moved.end[index], people.count[index]
        a, b = ~box.inside_directions(end), ~box.inside_columns(end)
        for name, mark in (
            ("directions", a),
            ("columns", b),
            ("either", a | b),
            ("stopped", moved.stopped[index]),
        ):
            out[name] += float(count[mark].sum()) / total
    return OffRange(**out)


def metric_sensitivity(
    people: People, index: IntArray, moved: Moved, metric: FairMetric, box: Box, spread: MetricSpread,
    options: MapOptions,
) -> dict[str, Any]:  # fmt: skip
    """Return what metrics from other pairs would have said, on a few people.

    Parameters
    ----------
    people : People
        All.
    index : ndarray
        The few that are moved again under each refit.
    moved : Moved
        Where these few were moved.
    metric, box, options
        As the audit used them.
    spread : MetricSpread
        Refits of the metric.

    Returns
    -------
    dict
    """
    X, y = people.X[index], people.view.y[index]
    out: dict[str, Any] = {
        "refits": len(spread.forms),
        "refits_failed": spread.failed,
        "largest_angle_degrees": spread.largest_angle,
        "matrix_distance": spread.distance,
    }
    if not spread.forms:
        return out
    others = [move(people.view, X, y, replace(metric, form=form), box, options) for form in spread.forms[:5]]
    values = [float(np.exp(np.minimum(ratios(m.log_loss)[-1], 700.0)).mean()) for m in (moved, *others)]
    out |= {"people": int(index.size), "loss_ratio": values[0], "loss_ratio_under_refits": values[1:]}
    return out


def movement_summary(people: People, moved: Moved, log_ratio: FloatArray, most: int = 8) -> Movement:
    """Return which columns moved, and how far in the user's units, for the tenth with the largest ratios.

    Parameters
    ----------
    people, moved
        Before and after.
    log_ratio : ndarray, shape (people,)
        Of the whole map.
    most : int
        Columns named.

    Returns
    -------
    Movement
        Means over at least `FEWEST` rows (all, when a tenth is fewer), so that no single person
        can be read from it; no columns when there are not so many rows.
    """
    order = np.argsort(-np.nan_to_num(log_ratio, nan=-np.inf), kind="stable")
    reached = np.cumsum(people.count[order])
    top = order[: int(np.searchsorted(reached, max(FEWEST, 0.1 * reached[-1]))) + 1]
    rows = float(people.count[top].sum())
    if top.size < FEWEST:  # people, not rows: ten times the same person is one person
        return Movement(rows=rows, columns=())
    share = people.count[top] / rows
    change = moved.end[top] - people.X[top]
    found: list[tuple[float, MovedColumn]] = []
    inputs = people.view.space.inputs
    for j, i in enumerate(inputs):
        if i.category is None:
            size = float(share @ np.abs(change[:, j]))
            mean = i.scale * float(share @ change[:, j])
            found.append((size, MovedColumn(column=i.column, mean_change=mean, mean_size=abs(i.scale) * size)))
    for block in people.view.space.blocks:
        weight = float(share @ np.abs(change[:, block]).sum(axis=1)) / 2
        means = share @ change[:, block]
        fell, rose = (inputs[block[int(k)]].category for k in (means.argmin(), means.argmax()))
        column = inputs[block[0]].column
        found.append((weight, MovedColumn(column=column, mean_weight_moved=weight, from_=fell, to=rose)))
    ranked = [row for size, row in sorted(found, key=lambda r: -r[0]) if size > 1e-9]
    return Movement(rows=rows, columns=tuple(ranked[:most]))


def pairs(people: People, moved: Moved, log_ratio: FloatArray, wanted: int) -> tuple[ExamplePair, ...]:
    """Return the people with the largest ratios as pairs of before and after: rows, so only on request."""
    order = np.argsort(-np.nan_to_num(log_ratio, nan=-np.inf), kind="stable")[:wanted]
    labels = people.view.labels
    return tuple(
        ExamplePair(
            ratio=float(np.exp(min(log_ratio[k], 700.0))),
            loss_before=float(np.exp(moved.log_loss[0, k])),
            loss_after=float(np.exp(min(moved.log_loss[-1, k], 700.0))),
            outcome=labels[int(people.view.y[k])] if labels else float(people.view.y[k]),
            rows=float(people.count[k]),
            moved=tuple(people.view.space.movement(people.X[k], moved.end[k])),
        )
        for k in order
    )


def planning(found: MeanRatio, tolerance: float, alpha: float) -> str:
    """Say what could have been shown, and how many rows would decide if the estimate holds."""
    if not found.error > 0:
        return ""
    reach = least_by_normal(found.error, alpha, two_sided=False)
    text = f"A mean ratio of {tolerance + reach:.3g} would have been shown with probability {POWER:g}."
    gap = abs(found.estimate - tolerance)
    if gap > 0:
        rows = math.ceil(found.rows * (reach / gap) ** 2)
        if rows > found.rows:
            text += f" If the ratio is what it seems, about {rows:,} rows would decide."
    return text
