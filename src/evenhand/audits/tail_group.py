"""One group's tail: what flipping the attribute does to its members, at worst and on average."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.kernels.exponentiality import ExponentialityTest, exponentiality
from evenhand.kernels.pareto_tail import (
    Tail,
    TailIntervals,
    choose_k,
    ended_tail,
    fit_tail,
    order_interval,
    quantile_plot,
    tail_intervals,
)
from evenhand.kernels.ties import Ties, count_ties, spread_ties

FloatArray = NDArray[np.float64]

HORIZONS = (10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
LEAST_ROWS = 200  # 50 excesses must be at most a quarter of the rows
CVAR_SHARE = 0.05
# A return level counts as known when its interval is at most this far from it, in units of the score's range.
FEASIBLE = 0.05
PLOTTED = 200  # points of a quantile plot, at most
_NOTHING = 1e-9  # a change of score that is none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTail:
    """The tail of one group's counterfactual discrimination.

    Parameters
    ----------
    name, other : str
        The group, and the group its members were recorded as.
    cd : ndarray, shape (rows,)
        Counterfactual discrimination, sorted downwards; observed rows only.
    ties : Ties or None
        Of the largest values; None when there are too few rows.
    test, printed : ExponentialityTest or None
        With calibrated limits, and with the limits as printed.
    tail : Tail or None
        The fit, None when it is refused.
    intervals : TailIntervals or None
        Of shape, end point and return levels at the horizons and at the chosen one (last).
    reason : str
        Why there is no fit.
    synthetic : mapping
        What generated rows suggest, when they were asked for; never part of the above.
    """

    name: str
    other: str
    cd: FloatArray
    ties: Ties | None
    test: ExponentialityTest | None
    printed: ExponentialityTest | None
    tail: Tail | None
    intervals: TailIntervals | None
    reason: str
    synthetic: Mapping[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """Type of the tail: I, II, III, or nothing without a fit."""
        return "" if self.intervals is None else self.intervals.type

    @property
    def acd(self) -> float:
        """Average counterfactual discrimination."""
        return float(self.cd.mean()) if self.cd.size else math.nan

    @property
    def cvar(self) -> float:
        """Mean of the worst twentieth."""
        return float(self.cd[: max(1, math.ceil(CVAR_SHARE * self.cd.size))].mean()) if self.cd.size else math.nan


def group_tail(
    name: str,
    other: str,
    cd: FloatArray,
    *,
    horizon: float,
    k: int | None,
    upper: float,
    level: float,
    printed: bool,
    rng: np.random.Generator,
) -> GroupTail:
    """Choose the threshold, fit and say how sure, or say why not.

    Parameters
    ----------
    name, other : str
        The group and the other group.
    cd : ndarray
        Counterfactual discrimination of its rows.
    horizon : float
        The common horizon.
    k : int or None
        Excesses; None lets the exponentiality test choose.
    upper : float
        Largest possible value.
    level : float
        Coverage of the intervals.
    printed : bool
        Judge by the printed limits.
    rng : Generator
        For intervals.

    Returns
    -------
    GroupTail
    """
    ordered = -np.sort(-cd)
    wanted = LEAST_ROWS if k is None else 2 * k
    if ordered.size < wanted:
        reason = f"`{name}` has {ordered.size} rows; a tail needs at least {wanted}"
        return _without(name, other, ordered, reason)
    ties = count_ties(ordered, k or 50)
    nobody = _nobody(name, other, ordered, horizon, level)
    if nobody is not None:
        return nobody
    if ties.atoms:
        reason = (
            f"the {ties.of} largest changes of `{name}` take only {ties.distinct} distinct values, one of them "
            f"{ties.largest} times: the model's scores come in steps, as a tree's do, or many people have one and the "
            "same record. No continuous tail can be fitted to steps"
        )
        return _without(name, other, ordered, reason, ties)
    values = spread_ties(ordered, upper=upper) if ties.tied else ordered
    if k is None:
        chosen, test = choose_k(values, printed=printed)
    else:
        test = exponentiality(values, kmax=max(k, 20), printed=printed)
        chosen = k if test.passed else 0
    assert test is not None  # there are rows enough
    as_printed = exponentiality(values, kmax=int(test.k[-1]), printed=True)
    if not chosen:
        reason = (
            f"the {test.k[-1]} largest changes of `{name}` spread more than those of an exponential tail would "
            "(the exponentiality test fails), so its worst case cannot be extrapolated from these rows"
        )
        return _without(name, other, ordered, reason, ties, test, as_printed)
    # At a horizon inside the sample the level is a quantile of it: as many excesses as lie above that.
    tail = fit_tail(values, max(chosen, math.ceil(values.size / horizon)), upper=upper)
    found = tail_intervals(tail, np.array([*HORIZONS, horizon]), level=level, rng=rng)
    reason = ""
    if found.type == "II":
        reason = (
            f"the tail of `{name}` is heavy (shape {tail.free_shape:.2f}, interval {found.shape[0]:.2f} to "
            f"{found.shape[1]:.2f}): worst cases beyond those seen have no usable limit"
        )
    return GroupTail(
        name=name,
        other=other,
        cd=ordered,
        ties=ties,
        test=test,
        printed=as_printed,
        tail=tail,
        intervals=found,
        reason=reason,
    )


def _nobody(name: str, other: str, cd: FloatArray, horizon: float, level: float) -> GroupTail | None:
    """Return the tail of a group none of whose members would be better off, where the rows show that much.

    Members whose score is 0 or 1 in both records pile up at a change of 0. With at least three times as many rows as
    the horizon (rule of three), and so many at 0 that one in the horizon surely is, the return level is 0.
    """
    if cd[0] > _NOTHING or cd.size < -math.log(1 - level) * horizon:
        return None
    if order_interval(cd, 1 / horizon, level)[0] < cd[0] - _NOTHING or cd[0] < -_NOTHING:
        return None
    k = min(50, int((cd >= cd[0] - _NOTHING).sum()) - 1)
    horizons = np.array([*HORIZONS, horizon])
    reach = horizons * -math.log(1 - level) <= cd.size
    low = [min(order_interval(cd, 1 / m, level)[0], float(cd[0])) for m in horizons]
    ended = TailIntervals(
        shape=(-math.inf, -math.inf),
        end=(float(cd[0]), math.inf),
        low=np.array(low),
        high=np.where(reach, cd[0], math.inf),
        kind=("rule of three",) * horizons.size,
    )
    return replace(_without(name, other, cd, ""), tail=ended_tail(cd, k), intervals=ended)


def _without(
    name: str,
    other: str,
    cd: FloatArray,
    reason: str,
    ties: Ties | None = None,
    test: ExponentialityTest | None = None,
    printed: ExponentialityTest | None = None,
) -> GroupTail:
    return GroupTail(
        name=name, other=other, cd=cd, ties=ties, test=test, printed=printed, tail=None, intervals=None, reason=reason
    )


def feasible_horizon(group: GroupTail, span: float) -> float:
    """Return the longest horizon whose return level is known well; infinite for a bounded tail, 0 for none.

    Parameters
    ----------
    group : GroupTail
        With or without a fit.
    span : float
        Length of the score's range.

    Returns
    -------
    float
    """
    tail, found = group.tail, group.intervals
    if tail is None or found is None or found.type == "II":
        return 0.0
    if math.isinf(span):  # a score without limits: what its changes cover
        span = float(group.cd[0] - group.cd[-1])
    good = 0.0
    for i, m in enumerate(HORIZONS):
        here = tail.level(m)
        if not max(here - found.low[i], found.high[i] - here) <= FEASIBLE * span:
            return good
        good = m
    bounded = found.type == "III" and found.end[1] - tail.level(HORIZONS[-1]) <= FEASIBLE * span
    return math.inf if bounded else good


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
        "acd": group.acd,
        "cvar": {"share": CVAR_SHARE, "value": group.cvar},
        "observed_maximum": {
            "value": float(group.cd[0]) if n else math.nan,
            # None of n rows lies above it: with 95 % confidence at most 3 in n do.
            "share_above_at_most": min(1.0, -math.log(0.05) / n) if n else 1.0,
        },
        "reason": group.reason,
        "synthetic": dict(group.synthetic),
    }
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
    if group.tail is None or group.intervals is None:
        return shown
    tail, found = group.tail, group.intervals
    shown["return_levels"] = [
        {
            "interactions": m, "level": tail.level(m), "low": float(found.low[i]), "high": float(found.high[i]),
            "kind": found.kind[i],
        }
        for i, m in enumerate(HORIZONS)
    ]  # fmt: skip
    if tail.scale == 0:
        shown["nobody_better_off"] = True
        return shown
    shown["fit"] = {
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
    }
    shown["feasible_horizon"] = {
        "interactions": feasible_horizon(group, span),
        "unlimited": math.isinf(feasible_horizon(group, span)),
        "tolerance": FEASIBLE,
    }
    fitted, observed, correlation = quantile_plot(tail)
    # A large tail is thinned evenly, both ends kept.
    kept = np.unique(np.linspace(0, tail.k - 1, min(tail.k, PLOTTED)).round().astype(int))
    shown["quantile_plot"] = {
        "fitted": fitted[kept].round(6).tolist(),
        "observed": observed[kept].round(6).tolist(),
        "correlation": round(correlation, 5),
    }
    return shown
