"""What stands behind an individual audit: the way there, classes and groups, the metric's share, pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.audits.people import People
from evenhand.audits.unfair_map import Box, MapOptions, Moved, gradient_of, move
from evenhand.kernels.ratios import MeanRatio, mean_ratio, rate_ratio
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


def curve(people: People, moved: Moved, alpha: float, level: float, limits: str) -> list[dict[str, Any]]:
    """Return the statistics against flow time (or the share of the range searched).

    Parameters
    ----------
    people, moved
        Before and after.
    alpha, level : float
        For T_n, and for the intervals.
    limits : {"skewness", "normal"}
        Kind of interval of the mean ratio.

    Returns
    -------
    list of dict
        One per checkpoint: `time`, `loss_ratio`, `low`, `high`, `T_n`; for classifiers also `error_ratio`,
        `error_low`, `error_high`, `T_n_error`. What cannot be computed is left out.
    """
    rows: list[dict[str, Any]] = []
    for time, log_ratio, wrong in zip(moved.clock, ratios(moved.log_loss), moved.wrong, strict=True):
        row: dict[str, Any] = {"time": float(time)}
        row |= _statistics(log_ratio, wrong, moved.wrong[0], people.count, people.weight, alpha, level, limits)
        rows.append(row)
    return rows


def by_part(
    people: People, log_ratio: FloatArray, moved: Moved, alpha: float, level: float, limits: str
) -> list[dict[str, Any]]:
    """Return the ratios of each class and each group, as description: they are not tested.

    Parameters
    ----------
    people, moved
        Before and after.
    log_ratio : ndarray, shape (people,)
        Of the whole map.
    alpha, level, limits
        As in `curve`.

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
            row |= _statistics(
                log_ratio[used], moved.wrong[-1][used], moved.wrong[0][used], count[used], weight, alpha, level, limits
            )
        rows.append(row)
    return rows


def _statistics(
    log_ratio: FloatArray, after: FloatArray, before: FloatArray, count: FloatArray, weight: FloatArray | None,
    alpha: float, level: float, limits: str,
) -> dict[str, float]:  # fmt: skip
    out: dict[str, float] = {}
    if np.isfinite(log_ratio).all():
        found = mean_ratio(log_ratio, count, weight)
        low, high = found.interval(level, limits)
        out |= {"loss_ratio": found.estimate, "low": low, "high": high, "T_n": found.bound(alpha)}
    if np.isfinite(after).all() and np.isfinite(before).all():
        rates = rate_ratio(after, before, count, weight)
        if math.isfinite(rates.estimate):
            low, high = rates.interval(level)
            out |= {"error_ratio": rates.estimate, "error_low": low, "error_high": high}
            out["T_n_error"] = rates.bound(alpha)
    return out


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
    options: MapOptions, lipschitz: float | None,
) -> dict[str, Any]:  # fmt: skip
    """Return what other plausible metrics would have said, on a few people, and the bound of Theorem A.1.

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
    lipschitz : float or None
        L, where known.

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
    if lipschitz and options.method != "search":
        slope = gradient_of(people.view, y)(X, np.arange(index.size))
        smallest = float(moved.log_loss[0].min()) / math.log(10)
        width = float(np.linalg.norm(np.ptp(people.X, axis=0)))
        delta = 2 * float(spread.distance.max())
        inner = options.penalty * delta / lipschitz
        steep = float(np.linalg.norm(slope, axis=1).max())
        if inner > 0 and steep > 0:  # [maity2021] eq. (A.5), in decimal logarithms
            out["theorem_a1_log10"] = (
                0.5 * math.log10(inner)
                + math.log10(steep * width)
                + lipschitz * float(moved.clock[-1]) / math.log(10)
                - smallest
            )
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
