"""One group's tail: what flipping the attribute does to its members, at worst and on average.

Where the rows reach, a level is counted; beyond them it is fitted, and given only if the fit is believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.tail.changes import Changes
from evenhand.generators import PrintedFit
from evenhand.inference.one_mean import tail_rows
from evenhand.inference.quantiles import level_interval, sample_level
from evenhand.kernels.extremes.exponentiality import ExponentialityTest, exponentiality
from evenhand.kernels.extremes.logit_peak import Peak, find_peak, largest_change
from evenhand.kernels.extremes.pareto_checks import DOUBT, FitCheck, check_fit
from evenhand.kernels.extremes.pareto_tail import Tail, TailIntervals, choose_k, fit_tail, tail_intervals
from evenhand.kernels.extremes.ties import Ties, count_ties, spread_ties
from evenhand.kernels.shared.descending import Descending
from evenhand.kernels.shared.seeds import stream

HORIZONS = (10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
LEAST_ROWS = 200  # of a fit: 50 excesses must be at most a quarter of the rows
CVAR_SHARE = 0.05
_DRAWS = 199  # samples of the fitted law that check it
_PINNED = 1e-3  # an interval this short gives a level without a fit
_SMALLEST_PART = 20  # excesses; the half of a tail gives an upper limit of its own from here


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What one decision in so many exceeds."""

    value: float  # the change of score; NaN where it is not known
    # low, high: its interval.
    low: float
    high: float
    kind: str  # how the interval was made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTail:
    """The tail of one group's counterfactual discrimination."""

    # name, other: the group, and the group its members were recorded as.
    name: str
    other: str
    cd: Descending  # counterfactual discrimination of the rows that were observed
    relative_error: float = 0.0  # of the changes below the largest, where they were counted in bins
    ceiling: float  # the largest change that is possible
    share: float = CVAR_SHARE  # of the people whose mean change is the CVaR
    shift: float = math.nan  # of the log-odds, where it is the same for everybody (a logistic model); else NaN
    ties: Ties | None = None  # of the largest values; None when there are too few rows
    # test, printed: with calibrated limits, and with the limits as printed.
    test: ExponentialityTest | None = None
    printed: ExponentialityTest | None = None
    tail: Tail | None = None  # the fit, None when there is none
    parts: tuple[Tail, ...] = ()  # the fit and that of its larger half: the higher of their upper limits counts
    intervals: TailIntervals | None = None  # of the fit's shape, end point and return levels at `HORIZONS`
    check: FitCheck | None = None  # of the fit
    peak: Peak | None = None  # people near the largest change of a logistic model
    doubt: str = ""  # why nothing is said beyond the rows; empty when the fit is believed
    seed: int = 0  # for limits that are drawn
    # What generated rows suggest, when they were asked for; never part of the above.
    synthetic: Mapping[str, Any] = field(default_factory=dict)
    as_printed: tuple[PrintedFit, ...] = ()  # Algorithm 1 as printed, when it was asked for; never part of the above

    @property
    def type(self) -> str:
        """Type of the tail: I, II, III, or nothing without a fit."""
        return "" if self.intervals is None else self.intervals.type

    @property
    def acd(self) -> float:
        """Average counterfactual discrimination."""
        return self.cd.mean() if self.cd.size else math.nan

    @property
    def cvar(self) -> float:
        """Mean of the worst share."""
        return tail_rows(self.cd, self.share)[0].mean() if self.cd.size else math.nan

    def inside(self, horizon: float, level: float) -> bool:
        """Say whether the rows alone bound the level at a horizon from both sides."""
        return self.cd.size * math.log1p(-1 / horizon) <= math.log((1 - level) / 2)

    def level_at(self, horizon: float, level: float) -> Level:
        """Return the level at one horizon; see `levels_at`."""
        return self.levels_at((horizon,), level)[0]

    def levels_at(self, horizons: Sequence[float], level: float) -> list[Level]:
        """Return the levels at some horizons: counted where the rows reach, else from a fit that is believed.

        Parameters
        ----------
        horizons : sequence of float
            Decisions.
        level : float
            Coverage of each interval.

        Returns
        -------
        list of Level
        """
        beyond = [m for m in horizons if not self.inside(m, level)]
        limits = dict(zip(beyond, self._limits(beyond, level), strict=True)) if beyond else {}
        levels = []
        for m in horizons:
            low, high = level_interval(self.cd, 1 / m, level, highest=self.ceiling)
            value, kind = sample_level(self.cd, 1 / m) if m <= self.cd.size else math.nan, "order statistics"
            if m in limits:
                fitted, above, kind = limits[m]
                value, high = fitted if math.isnan(value) else value, max(min(high, above), low)
            if math.isnan(value) and high - low <= _PINNED:
                value = (low + high) / 2  # what is possible leaves no room
            levels.append(Level(value=_within(value, low, high), low=low, high=high, kind=kind))
        return levels

    def _limits(self, horizons: Sequence[float], level: float) -> list[tuple[float, float, str]]:
        """Return level, upper limit and kind of interval where the rows do not reach."""
        if self.peak is not None and self.peak.believed:
            kind = "order statistic below, closed form of the logistic model above"
            return [(self.peak.level(m), self.peak.upper(m, (1 - level) / 2), kind) for m in horizons]
        if self.tail is None or self.doubt:
            return [(math.nan, math.inf, "order statistic below, largest possible change above")] * len(horizons)
        at = np.array(horizons, dtype=float)
        rng = stream(self.seed, "tail/limits")  # the same draws at every level, so that intervals are nested
        above = np.max([tail_intervals(t, at, level=level, rng=rng).high for t in self.parts], axis=0)
        kind = "order statistic below, fitted tail above"
        return [(self.tail.level(m), float(u), kind) for m, u in zip(horizons, above, strict=True)]


def _within(value: float, low: float, high: float) -> float:
    return value if math.isnan(value) else min(max(value, low), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How a group's tail is fitted and judged."""

    upper: float  # largest possible value
    level: float  # coverage of the intervals
    draws: int  # samples of the fitted law that check it
    seed: int  # for checks and intervals
    share: float = CVAR_SHARE  # of the people whose mean change is the CVaR
    k: int | None = None  # excesses; None lets the exponentiality test choose
    printed: bool = False  # judge by the printed limits

    @property
    def least_rows(self) -> int:
        """Rows that a fit needs."""
        return LEAST_ROWS if self.k is None else 2 * self.k

    def test(self, values: Descending) -> tuple[int, ExponentialityTest | None]:
        """Return the number of excesses, 0 when none will do, and the test that chose it."""
        if self.k is None:
            return choose_k(values, printed=self.printed)
        kmax = max(self.k, 20)
        test = exponentiality(values.head(kmax), kmax=kmax, printed=self.printed)
        return self.k if test.passed else 0, test


def group_tail(
    name: str, other: str, before: FloatArray, after: FloatArray, horizon: float, asked: Request
) -> GroupTail:
    """Return the tail of a group from its scores as they are and as the other group's; see `tail_of`."""
    return tail_of(name, other, Changes.of(before, after), horizon, asked)


def tail_of(name: str, other: str, changes: Changes, horizon: float, asked: Request) -> GroupTail:
    """Count, choose the threshold, fit, check the fit and say how sure.

    Parameters
    ----------
    name, other : str
        The group and the other group.
    changes : Changes
        Of the scores of its members.
    horizon : float
        At which the fit must be stable.
    asked : Request
        How the tail is fitted and judged.

    Returns
    -------
    GroupTail
    """
    cd, shift = changes.sample(), changes.shift.value
    ceiling = asked.upper if math.isnan(shift) else max(largest_change(shift), float(cd.values[0]))
    rng = stream(asked.seed, "tail/checks")
    peak = find_peak(changes.nearest_peak(), shift, rng, rows=cd.size) if shift > 0 else None
    counted = GroupTail(
        name=name, other=other, cd=cd, ceiling=ceiling, shift=shift, share=asked.share, seed=asked.seed, peak=peak,
        relative_error=changes.relative_error,
    )  # fmt: skip
    if cd.size < asked.least_rows:
        return replace(counted, doubt=f"`{name}` has {cd.size:,} rows; a fit needs at least {asked.least_rows}")
    looked_at = asked.k or 50
    ties = count_ties(cd.head(looked_at), looked_at)
    counted = replace(counted, ties=ties)
    if ties.atoms:
        doubt = (
            f"the {ties.of} largest changes of `{name}` take only {ties.distinct} distinct values, one of them "
            f"{ties.largest} times: the model's scores come in steps, as a tree's do, or many people have one and the "
            "same record. No continuous tail can be fitted to steps"
        )
        return replace(counted, doubt=doubt)
    values = _without_ties(cd, ceiling) if ties.tied else cd
    k, test = asked.test(values)
    assert test is not None  # there are rows enough
    counted = replace(counted, test=test, printed=_as_printed(values, int(test.k[-1])))
    if not k:
        doubt = (
            f"the {test.k[-1]} largest changes of `{name}` spread more than those of an exponential tail would "
            "(the exponentiality test fails), so its worst case cannot be extrapolated from these rows"
        )
        return replace(counted, doubt=doubt)
    tail = fit_tail(values, k, upper=ceiling)
    parts = (tail, fit_tail(values, k // 2, upper=ceiling)) if k // 2 >= _SMALLEST_PART else (tail,)
    intervals = tail_intervals(tail, np.array(HORIZONS), level=asked.level, rng=rng)
    check = check_fit(tail, max(horizon, float(cd.size)), draws=min(asked.draws, _DRAWS), rng=rng)
    doubt = _doubt(name, tail, intervals, check)
    return replace(counted, tail=tail, parts=parts, intervals=intervals, check=check, doubt=doubt)


def _as_printed(values: Descending, kmax: int) -> ExponentialityTest:
    return exponentiality(values.head(kmax), kmax=kmax, printed=True)


def _without_ties(cd: Descending, ceiling: float) -> Descending:
    """Spread tied values over what rounding may have joined, among those that are kept as they are."""
    if cd.counts is None:
        return Descending(spread_ties(cd.values, upper=ceiling))
    kept = int(np.flatnonzero(cd.counts > 1)[0]) if (cd.counts > 1).any() else cd.values.size
    spread = spread_ties(cd.values[:kept], upper=ceiling)
    return Descending(np.maximum.accumulate(np.concatenate([spread, cd.values[kept:]])[::-1])[::-1], cd.counts)


def _doubt(name: str, tail: Tail, intervals: TailIntervals, check: FitCheck) -> str:
    """Say why a fit is not believed; empty when it is."""
    if intervals.type == "II":
        return (
            f"the tail of `{name}` is heavy (shape {tail.free_shape:.2f}, interval {intervals.shape[0]:.2f} to "
            f"{intervals.shape[1]:.2f}): worst cases beyond those seen have no usable limit"
        )
    if check.fits < DOUBT:
        return (
            f"the {tail.k} largest changes of `{name}` do not follow the fitted tail (Anderson-Darling test, p "
            f"{check.fits:.2g}; at least {DOUBT:g} is needed), so the fit is not believed beyond the rows"
        )
    if check.stable < DOUBT:
        levels = ", ".join(f"{v:.3g} from {k}" for k, v in check.levels)
        return (
            f"the fitted worst case of `{name}` depends on how many of the largest changes are used ({levels}; p "
            f"{check.stable:.2g}; at least {DOUBT:g} is needed), so the fit is not believed beyond the rows"
        )
    return ""
