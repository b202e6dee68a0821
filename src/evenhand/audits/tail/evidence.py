"""What stands behind a finding of the tail audit: each group's tail, and how two of them differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from evenhand.audits.tail.group_tail import HORIZONS, GroupTail, Level
from evenhand.kernels.extremes.pareto_tail import quantile_plot
from evenhand.results.evidence import Ends, Evidence, Part

P = TypeVar("P", bound=Part)
# A return level counts as known when its interval is at most this far from it, in units of the score's range.
FEASIBLE = 0.05
PLOTTED = 200  # points of a quantile plot, at most
NOTHING = 1e-9  # a change of score that is none


class TailMean(Part):
    """The mean of the largest changes, and which share of all they are."""

    share: float
    value: float


class LargestSeen(Part):
    """The largest change among the rows, and the share of people above it that they do not rule out."""

    value: float
    share_above_at_most: float


class LargestPossible(Part):
    """The largest change there can be, and why; `shift` is that of a logistic model, NaN for another."""

    value: float
    why: str
    shift: float


class ReturnLevel(Part):
    """The change that one person in so many exceeds."""

    interactions: float
    level: float
    low: float
    high: float
    kind: str


class FeasibleHorizon(Part):
    """Up to how many decisions the level is known within a tolerance."""

    interactions: float
    unlimited: bool
    tolerance: float


class Peak(Part):
    """How well a logistic model's peak fits the tail."""

    k: int
    distance: float
    pvalue: float
    believed: bool


class TiedChanges(Part):
    """How many changes are different, and whether ties were spread."""

    distinct: int
    of: int
    largest: int
    spread: bool


class Exponentiality(Part):
    """The test by which the tail's type is found, with this package's limits and the paper's."""

    k: tuple[int, ...]
    variation: tuple[float, ...]
    limit: tuple[float, ...]
    passed: bool
    limit_printed: tuple[float, ...]
    passed_printed: bool


class GoodnessOfFit(Part):
    """Whether the fitted tail describes the rows."""

    statistic: float
    pvalue: float


class Stability(Part):
    """Whether the level depends on the threshold: pairs of tail points and level."""

    levels: tuple[tuple[float, ...], ...]
    pvalue: float


class TailFit(Part):
    """The generalised Pareto tail, and whether it is believed beyond the rows."""

    k: int
    threshold: float
    scale: float
    shape: float
    method: str
    end_point: float
    end_point_interval: Ends
    free_shape: float
    free_shape_interval: Ends
    type: str
    location: float
    location_scale: float
    horizon: float
    believed: bool
    goodness_of_fit: GoodnessOfFit
    stability: Stability


class QuantilePlot(Part):
    """Fitted against observed quantiles."""

    fitted: tuple[float, ...]
    observed: tuple[float, ...]
    correlation: float


class PrintedAlgorithm(Part):
    """Algorithm 1 as printed, in one reading of its test: `generated` rows are made up and count as people in it."""

    reading: str
    rows: int
    generated: int
    rounds: int
    stopped: bool
    passed: bool
    type: str
    shape: float
    location: float


class TailShown(Part):
    """Everything about one group that a report shows or a reader may check."""

    group: str
    recorded_as: str
    rows: int
    horizon: float
    acd: float
    cvar: TailMean
    observed_maximum: LargestSeen
    largest_possible: LargestPossible
    nobody_better_off: bool
    doubt: str
    synthetic: Mapping[str, Any]
    return_levels: tuple[ReturnLevel, ...]
    feasible_horizon: FeasibleHorizon
    peak: Peak | None = None
    ties: TiedChanges | None = None
    exponentiality: Exponentiality | None = None
    fit: TailFit | None = None
    quantile_plot: QuantilePlot | None = None
    printed_algorithm: tuple[PrintedAlgorithm, ...] | None = None
    # By how much a change below the largest may differ from its person's own, as a share of its size; None when by
    # nothing. So many people's changes were counted in bins.
    largest_relative_error: float | None = None


class LevelEvidence(Evidence, TailShown):
    """Of one group's worst case at a horizon."""

    above_margin: int | None = None


class DifferenceEvidence(Evidence):
    """Of the difference between two groups' worst cases at a horizon."""

    horizon: float | None = None
    acd: float | None = None
    cvar: float | None = None
    groups: Mapping[str, TailShown] | None = None


class MeanEvidence(Evidence):
    """Of the mean of the worst share of changes; a share of 1 is everybody, the ACD."""

    share: float
    threshold: Mapping[str, float] | None = None


def summary(group: GroupTail, horizon: float, level: float, span: float) -> TailShown:
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
    """
    n = group.cd.size
    levels = group.levels_at(HORIZONS, level) if n else []
    fit, plot = _fit(group, horizon, level)
    return TailShown(
        group=group.name,
        recorded_as=group.other,
        rows=n,
        horizon=horizon,
        acd=group.acd,
        cvar=TailMean(share=group.share, value=group.cvar),
        observed_maximum=LargestSeen(
            value=float(group.cd.values[0]) if n else math.nan,
            # None of n rows lies above it: with 95 % confidence at most 3 in n do.
            share_above_at_most=min(1.0, -math.log(0.05) / n) if n else 1.0,
        ),
        largest_possible=LargestPossible(
            value=group.ceiling,
            why="the range of the score" if math.isnan(group.shift) else "closed form of a logistic model",
            shift=group.shift,
        ),
        nobody_better_off=bool(n and group.cd.values[0] <= NOTHING),
        doubt=group.doubt,
        synthetic=dict(group.synthetic),
        return_levels=tuple(
            ReturnLevel(interactions=m, level=x.value, low=x.low, high=x.high, kind=x.kind)
            for m, x in zip(HORIZONS, levels, strict=False)
            if not math.isnan(x.value)
        ),
        feasible_horizon=_feasible(group, levels, span),
        peak=None if group.peak is None else _copied(Peak, group.peak),
        ties=None if group.ties is None else _copied(TiedChanges, group.ties),
        exponentiality=_exponentiality(group),
        fit=fit,
        quantile_plot=plot,
        printed_algorithm=tuple(_copied(PrintedAlgorithm, fit) for fit in group.as_printed) or None,
        largest_relative_error=group.relative_error or None,
    )


def _copied(kind: type[P], source: object) -> P:
    """Return what another room measured as a part of the evidence: the fields of the same names."""
    return kind(**{f.name: getattr(source, f.name) for f in fields(kind)})


def _exponentiality(group: GroupTail) -> Exponentiality | None:
    test, printed = group.test, group.printed
    if test is None or printed is None:
        return None
    return Exponentiality(
        k=tuple(test.k.tolist()),
        variation=tuple(test.variation.round(5).tolist()),
        limit=tuple(test.limit.round(5).tolist()),
        passed=test.passed,
        limit_printed=tuple(printed.limit.round(5).tolist()),
        passed_printed=printed.passed,
    )


def _feasible(group: GroupTail, levels: list[Level], span: float) -> FeasibleHorizon:
    """Say up to which horizon the level is known well; without end for a tail that ends."""
    if math.isinf(span):  # a score without limits: what its changes cover
        span = float(group.cd.values[0] - group.cd.values[-1]) if group.cd.size else math.nan
    good = 0.0
    for m, x in zip(HORIZONS, levels, strict=False):
        if math.isnan(x.value) or not max(x.value - x.low, x.high - x.value) <= FEASIBLE * span:
            break
        good = m
    unlimited = good == HORIZONS[-1] and group.ceiling - levels[-1].low <= FEASIBLE * span
    intervals = group.intervals
    if not unlimited and good == HORIZONS[-1] and intervals is not None and intervals.type == "III":
        unlimited = intervals.end[1] - levels[-1].value <= FEASIBLE * span
    return FeasibleHorizon(interactions=math.inf if unlimited else good, unlimited=bool(unlimited), tolerance=FEASIBLE)


def _fit(group: GroupTail, horizon: float, level: float) -> tuple[TailFit | None, QuantilePlot | None]:
    """Describe the fitted tail, its checks and its quantile plot."""
    tail, intervals, check = group.tail, group.intervals, group.check
    if tail is None or intervals is None or check is None:
        return None, None
    fitted, observed, correlation = quantile_plot(tail)
    # A large tail is thinned evenly, both ends kept.
    kept = np.unique(np.linspace(0, tail.k - 1, min(tail.k, PLOTTED)).round().astype(int))
    fit = TailFit(
        k=tail.k,
        threshold=tail.threshold,
        scale=tail.scale,
        shape=tail.shape,
        method="likelihood" if tail.likely else "probability-weighted moments",
        end_point=tail.end,
        end_point_interval=Ends(low=intervals.end[0], high=intervals.end[1], level=level),
        free_shape=tail.free_shape,
        free_shape_interval=Ends(low=intervals.shape[0], high=intervals.shape[1], level=level),
        type=intervals.type,
        location=tail.level(horizon),
        location_scale=tail.scale_at(horizon),
        horizon=horizon,
        believed=not group.doubt,
        goodness_of_fit=GoodnessOfFit(statistic=check.statistic, pvalue=check.fits),
        stability=Stability(levels=tuple((k, v) for k, v in check.levels), pvalue=check.stable),
    )
    plot = QuantilePlot(
        fitted=tuple(fitted[kept].round(6).tolist()),
        observed=tuple(observed[kept].round(6).tolist()),
        correlation=round(correlation, 5),
    )
    return fit, plot
