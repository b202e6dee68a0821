"""What stands behind an individual audit: the way there, classes and groups, the metric's share, pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.audits.individual.moving import Moved, move
from evenhand.audits.individual.options import MapOptions
from evenhand.audits.individual.people import People
from evenhand.audits.individual.region import Box
from evenhand.kernels.flow.map_error import MapError
from evenhand.kernels.flow.ratios import MeanRatio, mean_ratio, rate_ratio
from evenhand.similarity.metric import FairMetric
from evenhand.similarity.uncertainty import MetricSpread

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
) -> list[dict[str, Any]]:
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
    list of dict
        One per checkpoint: `time`, `loss_ratio`, `low`, `high`, `T_n`; for classifiers also `error_ratio`,
        `error_low`, `error_high`, `T_n_error`. What cannot be computed is left out.
    """
    rows: list[dict[str, Any]] = []
    for time, log_ratio, wrong, loss_error, wrong_error in zip(
        moved.clock, ratios(moved.log_loss), moved.wrong, loss_map, wrong_map, strict=True
    ):
        row: dict[str, Any] = {"time": float(time)}
        row |= _statistics(
            log_ratio, wrong, moved.wrong[0], people.count, people.weight, loss_error, wrong_error, options
        )
        rows.append(row)
    return rows


def by_part(
    people: People, log_ratio: FloatArray, moved: Moved, loss_map: MapError, wrong_map: MapError, options: Limits
) -> list[dict[str, Any]]:
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
    list of dict
        `part` ("class" or "group"), `name`, `rows`, and the keys of `curve`.
    """
    parts: list[tuple[str, str, FloatArray]] = [
        ("class", label, people.count * (people.view.y == k)) for k, label in enumerate(people.view.labels)
    ]
    for group in people.groups:
        parts += [("group", f"{group.name}={label}", group.table[:, k]) for k, label in enumerate(group.labels)]
    rows: list[dict[str, Any]] = []
    for kind, name, count in parts:
        used = count > 0
        row: dict[str, Any] = {"part": kind, "name": name, "rows": float(count.sum())}
        if count.sum() >= 2:
            weight = None if people.weight is None else people.weight[used]
            after, before = moved.wrong[-1][used], moved.wrong[0][used]
            row |= _statistics(log_ratio[used], after, before, count[used], weight, loss_map, wrong_map, options)
        rows.append(row)
    return rows


def _statistics(
    log_ratio: FloatArray, after: FloatArray, before: FloatArray, count: FloatArray, weight: FloatArray | None,
    loss_map: MapError, wrong_map: MapError, options: Limits,
) -> dict[str, float]:  # fmt: skip
    """Return both ratios with one-sided limits, each at the level of the options."""
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


def off_range(people: People, folds: Sequence[tuple[IntArray, Box]], moved: Moved) -> dict[str, float]:
    """Return the share of rows that ended outside the observed range of the directions, and of the inputs.

    Parameters
    ----------
    people, moved
        Before and after.
    folds : sequence of (index, Box)
        Who was moved inside which range.

    Returns
    -------
    dict
        Shares `directions`, `columns`, `either`, and `stopped` (held at the edge on the way).
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
    return out


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


def movement_summary(people: People, moved: Moved, log_ratio: FloatArray, most: int = 8) -> dict[str, Any]:
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
    dict
        `rows` and `columns`: means over at least `FEWEST` rows (all, when a tenth is fewer), so that no single person
        can be read from it; no columns when there are not so many rows.
    """
    order = np.argsort(-np.nan_to_num(log_ratio, nan=-np.inf), kind="stable")
    reached = np.cumsum(people.count[order])
    top = order[: int(np.searchsorted(reached, max(FEWEST, 0.1 * reached[-1]))) + 1]
    rows = float(people.count[top].sum())
    if top.size < FEWEST:  # people, not rows: ten times the same person is one person
        return {"rows": rows, "columns": []}
    share = people.count[top] / rows
    change = moved.end[top] - people.X[top]
    found: list[tuple[float, dict[str, Any]]] = []
    inputs = people.view.space.inputs
    for j, i in enumerate(inputs):
        if i.category is None:
            size = float(share @ np.abs(change[:, j]))
            told = {"mean_change": i.scale * float(share @ change[:, j]), "mean_size": abs(i.scale) * size}
            found.append((size, {"column": i.column, **told}))
    for block in people.view.space.blocks:
        weight = float(share @ np.abs(change[:, block]).sum(axis=1)) / 2
        mean = share @ change[:, block]
        fell, rose = (inputs[block[int(k)]].category for k in (mean.argmin(), mean.argmax()))
        told = {"mean_weight_moved": weight, "from": fell, "to": rose}
        found.append((weight, {"column": inputs[block[0]].column, **told}))
    ranked = [row for size, row in sorted(found, key=lambda r: -r[0]) if size > 1e-9]
    return {"rows": rows, "columns": ranked[:most]}


def pairs(people: People, moved: Moved, log_ratio: FloatArray, wanted: int) -> list[dict[str, Any]]:
    """Return the people with the largest ratios as pairs of before and after: rows, so only on request.

    Parameters
    ----------
    people, moved
        Before and after.
    log_ratio : ndarray, shape (people,)
        Of the whole map.
    wanted : int
        How many.

    Returns
    -------
    list of dict
    """
    order = np.argsort(-np.nan_to_num(log_ratio, nan=-np.inf), kind="stable")[:wanted]
    labels = people.view.labels
    return [
        {
            "ratio": float(np.exp(min(log_ratio[k], 700.0))),
            "loss_before": float(np.exp(moved.log_loss[0, k])),
            "loss_after": float(np.exp(min(moved.log_loss[-1, k], 700.0))),
            "outcome": labels[int(people.view.y[k])] if labels else float(people.view.y[k]),
            "rows": float(people.count[k]),
            "moved": people.view.space.movement(people.X[k], moved.end[k]),
        }
        for k in order
    ]


def planning(found: MeanRatio, tolerance: float, alpha: float) -> str:
    """Say what could have been shown, and how many rows would decide if the estimate holds."""
    if not found.error > 0:
        return ""
    reach = float(special.ndtri(1 - alpha) + special.ndtri(0.8)) * found.error
    text = f"A mean ratio of {tolerance + reach:.3g} would have been shown with probability 0.8."
    gap = abs(found.estimate - tolerance)
    if gap > 0:
        rows = math.ceil(found.rows * (reach / gap) ** 2)
        if rows > found.rows:
            text += f" If the ratio is what it seems, about {rows:,} rows would decide."
    return text
