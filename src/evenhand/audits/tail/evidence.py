"""What a report shows about one group's tail, as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.audits.tail.group_tail import CVAR_SHARE, HORIZONS, GroupTail, Level
from evenhand.kernels.extremes.pareto_tail import quantile_plot

# A return level counts as known when its interval is at most this far from it, in units of the score's range.
FEASIBLE = 0.05
PLOTTED = 200  # points of a quantile plot, at most
NOTHING = 1e-9  # a change of score that is none


def summary(group: GroupTail, horizon: float, level: float, span: float) -> dict[str, Any]:
    """Return everything about one group that a report shows or a reader may check.

    Parameters
    ----------
    group : GroupTail
        From `group_tail`.
    horizon : float
        The common horizon.
    level : float
        Coverage of the intervals.
    span : float
        Length of the score's range.

    Returns
    -------
    dict
    """
    n = group.cd.size
    shown: dict[str, Any] = {
        "group": group.name,
        "recorded_as": group.other,
        "rows": n,
        "horizon": horizon,
        "acd": group.acd,
        "cvar": {"share": CVAR_SHARE, "value": group.cvar},
        "observed_maximum": {
            "value": float(group.cd[0]) if n else math.nan,
            # None of n rows lies above it: with 95 % confidence at most 3 in n do.
            "share_above_at_most": min(1.0, -math.log(0.05) / n) if n else 1.0,
        },
        "largest_possible": {
            "value": group.ceiling,
            "why": "the range of the score" if math.isnan(group.shift) else "closed form of a logistic model",
            "shift": None if math.isnan(group.shift) else group.shift,
        },
        "nobody_better_off": bool(n and group.cd[0] <= NOTHING),
        "doubt": group.doubt,
        "synthetic": dict(group.synthetic),
    }
    levels = group.levels_at(HORIZONS, level) if n else []
    shown["return_levels"] = [
        {"interactions": m, "level": x.value, "low": x.low, "high": x.high, "kind": x.kind}
        for m, x in zip(HORIZONS, levels, strict=False)
        if not math.isnan(x.value)
    ]
    shown["feasible_horizon"] = _feasible(group, levels, span)
    if group.peak is not None:
        peak = group.peak
        shown["peak"] = {"k": peak.k, "distance": peak.distance, "pvalue": peak.pvalue, "believed": peak.believed}
    if group.ties is not None:
        ties = group.ties
        shown["ties"] = {
            "distinct": ties.distinct,
            "of": ties.of,
            "largest": ties.largest,
            "spread": ties.tied and not ties.atoms,
        }
    if group.test is not None and group.printed is not None:
        shown["exponentiality"] = {
            "k": group.test.k.tolist(),
            "variation": group.test.variation.round(5).tolist(),
            "limit": group.test.limit.round(5).tolist(),
            "passed": group.test.passed,
            "limit_printed": group.printed.limit.round(5).tolist(),
            "passed_printed": group.printed.passed,
        }
    return shown | _fit(group, horizon, level)


def _feasible(group: GroupTail, levels: list[Level], span: float) -> dict[str, Any]:
    """Say up to which horizon the level is known well; without end for a tail that ends."""
    if math.isinf(span):  # a score without limits: what its changes cover
        span = float(group.cd[0] - group.cd[-1]) if group.cd.size else math.nan
    good = 0.0
    for m, x in zip(HORIZONS, levels, strict=False):
        if math.isnan(x.value) or not max(x.value - x.low, x.high - x.value) <= FEASIBLE * span:
            break
        good = m
    unlimited = good == HORIZONS[-1] and group.ceiling - levels[-1].low <= FEASIBLE * span
    if not unlimited and good == HORIZONS[-1] and group.type == "III" and group.intervals is not None:
        unlimited = group.intervals.end[1] - levels[-1].value <= FEASIBLE * span
    return {"interactions": math.inf if unlimited else good, "unlimited": unlimited, "tolerance": FEASIBLE}


def _fit(group: GroupTail, horizon: float, level: float) -> dict[str, Any]:
    """Describe the fitted tail, its checks and its quantile plot."""
    tail, found, check = group.tail, group.intervals, group.check
    if tail is None or found is None or check is None:
        return {}
    fitted, observed, correlation = quantile_plot(tail)
    # A large tail is thinned evenly, both ends kept.
    kept = np.unique(np.linspace(0, tail.k - 1, min(tail.k, PLOTTED)).round().astype(int))
    return {
        "fit": {
            "k": tail.k,
            "threshold": tail.threshold,
            "scale": tail.scale,
            "shape": tail.shape,
            "method": "likelihood" if tail.likely else "probability-weighted moments",
            "end_point": tail.end,
            "end_point_interval": {"low": found.end[0], "high": found.end[1], "level": level},
            "free_shape": tail.free_shape,
            "free_shape_interval": {"low": found.shape[0], "high": found.shape[1], "level": level},
            "type": found.type,
            "location": tail.level(horizon),
            "location_scale": tail.scale_at(horizon),
            "horizon": horizon,
            "believed": not group.doubt,
            "goodness_of_fit": {"statistic": check.statistic, "pvalue": check.fits},
            "stability": {"levels": [[k, v] for k, v in check.levels], "pvalue": check.stable},
        },
        "quantile_plot": {
            "fitted": fitted[kept].round(6).tolist(),
            "observed": observed[kept].round(6).tolist(),
            "correlation": round(correlation, 5),
        },
    }
