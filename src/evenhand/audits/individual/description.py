"""What an individual audit describes beside its tests: the way there, classes and groups, the metric's share."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.detectable import POWER, least_by_normal
from evenhand.audits.individual.evidence import CurvePoint, MovedColumn, Movement, PartRatios
from evenhand.audits.individual.folds import Fold, Refits
from evenhand.audits.individual.moving import Moved, move
from evenhand.audits.individual.options import IndividualSetting, MapOptions
from evenhand.audits.individual.people import People
from evenhand.audits.individual.totals import Totals
from evenhand.kernels.flow.ratio_sums import RateSums, RatioSums
from evenhand.kernels.flow.ratios import MeanRatio, mean_of, rate_of
from evenhand.similarity.uncertainty import MetricSpread

# People behind a mean that is shown without having been asked for.
FEWEST = 10
# Columns named of those that moved.
NAMED = 8


def curve(totals: Totals, clock: FloatArray, refit: Refits, options: IndividualSetting) -> tuple[CurvePoint, ...]:
    """Return the statistics against flow time (or the share of the range searched).

    Parameters
    ----------
    totals : Totals
        Of everybody.
    clock : ndarray, shape (checkpoints,)
        Flow time, or share of the range.
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
        CurvePoint(time=float(time), **_statistics(totals.ratios[k], totals.rates[k], refit, k, options))
        for k, time in enumerate(clock)
    )


def by_part(totals: Totals, refit: Refits, options: IndividualSetting) -> tuple[PartRatios, ...]:
    """Return the ratios of each class and each group, as description: they are not tested.

    Parameters
    ----------
    totals, refit, options
        As in `curve`.

    Returns
    -------
    tuple of PartRatios
        Each a "class" or a "group", at the last checkpoint.
    """
    return tuple(
        PartRatios(
            part=kind,
            name=name,
            rows=ratio.rows + ratio.undefined,
            **(_statistics(ratio, rate, refit, -1, options) if ratio.rows + ratio.undefined >= 2 else {}),
        )
        for (kind, name), (ratio, rate) in totals.parts.items()
    )


def _statistics(
    ratio: RatioSums, rate: RateSums, refit: Refits, checkpoint: int, options: IndividualSetting
) -> dict[str, float]:
    """Return both ratios of those who are counted, with one-sided limits at the level of the options."""
    out: dict[str, float] = {}
    tail = 1 - options.level
    if not ratio.undefined:
        mean = replace(mean_of(ratio), map=refit.loss[checkpoint])
        low, high = mean.lower(tail, options.limits), mean.upper(tail, options.limits)
        out |= {"loss_ratio": mean.estimate, "low": low, "high": high, "T_n": mean.bound(options.alpha)}
    if not rate.undefined:
        rates = replace(rate_of(rate), map=refit.wrong[checkpoint])
        if math.isfinite(rates.estimate):
            out |= {"error_ratio": rates.estimate, "error_low": rates.lower(tail), "error_high": rates.upper(tail)}
            out["T_n_error"] = rates.bound(options.alpha)
    return {k: v for k, v in out.items() if math.isfinite(v)}


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
