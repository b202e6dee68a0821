"""Means of ratios and ratios of means: estimates, intervals and one-sided tests against a bound.

=============  ======================  ======================================================
code           [maity2021]             meaning
=============  ======================  ======================================================
estimate       S_n, S~_n               mean ratio; ratio of error rates
spread         V_n                     standard deviation of the ratios (ddof 1)
bound          T_n, T~_n               one-sided lower limit, eq. (3.10) and (3.13)
limit          delta                   the largest ratio that is tolerated
=============  ======================  ======================================================

Where the map that made the ratios was itself estimated, `MapError` adds its variance and its bias; the bias is only
ever taken off the limit that it makes too sharp.

Ratios of losses are skewed to the right. The normal limits of the paper are then too low at both ends: the
lower one is careful, the upper one claims too much. `MeanRatio` corrects the studentised mean for skewness by
Hall's (1992) monotone cubic, which is deterministic and costs nothing; the paper's own limits stay available.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from evenhand.arrays import FloatArray
from evenhand.kernels.flow.map_error import (
    EXACT,
    MapError,
    beyond,
    combined_freedom,
    folded,
    quantile,
    unfolded,
    widening,
)
from evenhand.kernels.flow.ratio_sums import RateSums, RatioSums


class _Ratio:
    """A ratio with one-sided limits and tests; `method` names one of its own, by default the best it has."""

    __slots__ = ()

    def lower(self, tail: float, method: str | None = None) -> float:
        """Return the one-sided lower limit that is too high with probability `tail`."""
        return self._limit(tail, method, 1.0)

    def upper(self, tail: float, method: str | None = None) -> float:
        """Return the one-sided upper limit that is too low with probability `tail`."""
        return self._limit(tail, method, -1.0)

    def above(self, limit: float, method: str | None = None) -> float:
        """Return the p-value of "the ratio is at most `limit`"."""
        return self._tail(limit, method, 1.0)

    def below(self, limit: float, method: str | None = None) -> float:
        """Return the p-value of "the ratio is at least `limit`"."""
        return self._tail(limit, method, -1.0)

    def interval(self, level: float, method: str | None = None) -> tuple[float, float]:
        """Return a two-sided equal-tailed interval."""
        return self.lower((1 - level) / 2, method), self.upper((1 - level) / 2, method)

    def _limit(self, tail: float, method: str | None, sign: float) -> float:
        raise NotImplementedError

    def _tail(self, limit: float, method: str | None, sign: float) -> float:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRatio(_Ratio):
    """The mean of ratios that are known by their logarithms."""

    estimate: float  # weighted mean of the ratios
    spread: float  # standard deviation of one contribution (ddof 1)
    skewness: float  # third standardised moment of the contributions
    rows: float  # rows behind it
    largest_share: float  # the largest single contribution to the sum, as a share of it
    map: MapError = EXACT  # what an estimated map adds; its one mean is the mean ratio

    @property
    def error(self) -> float:
        """Standard error of the estimate."""
        return math.sqrt(self._sampling + self._extra(1.0)) if self.rows > 0 else math.nan

    @property
    def _sampling(self) -> float:
        return self.spread * self.spread / self.rows  # infinite, not an error, where a square is too large

    def _extra(self, sign: float) -> float:
        extra = self.map.extra(1.0)
        return extra if sign > 0 else extra * widening(math.sqrt(extra), self.estimate - 1.0) ** 2

    def _scale(self, sign: float) -> tuple[float, float, float]:
        """Return standard error, skewness and degrees of freedom for a limit below (sign 1) or above (-1)."""
        sampling, extra = self._sampling, self._extra(sign)
        if not math.isfinite(sampling + extra):
            return math.nan, math.nan, math.nan
        # What an estimated map adds is taken as symmetric.
        part = (sampling / (sampling + extra)) ** 1.5 if extra > 0 else 1.0
        freedom = combined_freedom(sampling, self.rows, extra, self.map.freedom)
        return math.sqrt(sampling + extra), part * self.skewness / math.sqrt(self.rows), freedom

    def bound(self, alpha: float) -> float:
        """Return the paper's T_n for a known map: estimate minus z times the standard error."""
        plain = self.spread / math.sqrt(self.rows) if self.rows > 0 else math.nan
        return self.estimate - float(special.ndtri(1 - alpha)) * plain

    def _limit(self, tail: float, method: str | None, sign: float) -> float:
        error, skew, freedom = self._scale(sign)
        if not math.isfinite(error):
            return math.nan
        z = sign * quantile(1 - tail, freedom)
        bias = sign * max(sign * self.map.bias, 0.0)
        limit = self.estimate - bias - error * (z if method == "normal" else _unhall(z, skew))
        return 1.0 + unfolded(limit - 1.0, self._fold) if sign > 0 else limit

    @property
    def _fold(self) -> float:
        return math.sqrt(2 * self.map.extra(1.0))  # each half has its own directions: twice the variance of their mean

    def _tail(self, limit: float, method: str | None, sign: float) -> float:
        error, skew, freedom = self._scale(sign)
        if not math.isfinite(error):
            return math.nan
        gap = self.estimate - sign * max(sign * self.map.bias, 0.0) - limit
        if sign > 0:
            gap -= folded(limit - 1.0, self._fold) - (limit - 1.0)
        if not error > 0:  # every ratio is the same: decided, unless exactly on the limit
            return 1.0 if sign * gap <= 0 else 0.0
        t = gap / error
        return beyond(sign * (t if method == "normal" else _hall(t, skew)), freedom)


def _hall(t: float, g: float) -> float:
    return t + g * t * t / 3 + g * g * t**3 / 27 + g / 6


def _unhall(z: float, g: float) -> float:
    if abs(g) < 1e-7:
        return z
    return float(3.0 / g * (np.cbrt(1.0 + g * (z - g / 6)) - 1.0))


def mean_ratio(log_ratio: FloatArray, count: FloatArray, weight: FloatArray | None = None) -> MeanRatio:
    """Average ratios given by their logarithms.

    Parameters
    ----------
    log_ratio : ndarray, shape (records,)
        Those that are not finite are left out; the caller decides what they mean.
    count : ndarray, shape (records,)
        Rows each record stands for.
    weight : ndarray, shape (records,), optional
        Sampling weight of each of a record's rows.

    Returns
    -------
    MeanRatio

    Examples
    --------
    >>> mean = mean_ratio(np.log([1.0, 2.0, 3.0]), np.ones(3))
    >>> round(mean.estimate, 6), round(mean.spread, 6), round(mean.bound(0.05), 3)
    (2.0, 1.0, 1.05)
    """
    return mean_of(RatioSums.of(log_ratio, count, weight))


def mean_of(sums: RatioSums) -> MeanRatio:
    """Average ratios given by their sums; ratios that are not finite are not in them."""
    n, total = sums.rows, sums.total
    if n < 2 or not total > 0:
        return MeanRatio(estimate=math.nan, spread=math.nan, skewness=math.nan, rows=n, largest_share=math.nan)
    mean = sums.mean
    moments = sums.around(mean).moments
    # The linearised contribution of one row is weight (r - mean) n / total.
    second = float(moments[1, 2]) * (n / total) ** 2
    third = float(moments[2, 3]) * (n / total) ** 3
    scale = math.exp(sums.top) if sums.top < 700 else math.inf
    # Contributions that differ by rounding only are equal: their "skewness" would be noise over noise.
    flat = second <= n * (1e-14 * mean) ** 2
    return MeanRatio(
        estimate=scale * mean,
        spread=0.0 if flat else scale * math.sqrt(second / (n - 1)),
        skewness=0.0 if flat else (third / n) / (second / n) ** 1.5,
        rows=n,
        largest_share=sums.largest / (mean * total),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRatio(_Ratio):
    """The ratio of two rates measured on the same rows: errors after and before."""

    # after, before: weighted rates A and B.
    after: float
    before: float
    spread: tuple[float, float, float]  # variances of one contribution to A and B, and their covariance (ddof 1)
    rows: float  # rows behind them
    # gained, lost, kept: rows wrong only after, wrong only before, wrong both times.
    gained: float = 0.0
    lost: float = 0.0
    kept: float = 0.0
    weighted: bool = False  # whether sampling weights were used
    map: MapError = EXACT  # what an estimated map adds to A; its means are A and B

    @property
    def estimate(self) -> float:
        """A / B; infinite when only B is zero, NaN when both are."""
        if self.before > 0:
            return self.after / self.before
        return math.inf if self.after > 0 else math.nan

    @property
    def method(self) -> str:
        """``"binomial"`` when no error was repaired (exact at any size), else ``"fieller"``."""
        return "binomial" if self.lost == 0 and not self.weighted else "fieller"

    def bound(self, alpha: float) -> float:
        """Return the paper's T~_n, the delta-method lower limit of eq. (3.13)."""
        if not self.before > 0:
            return math.nan
        vaa, vbb, vab = self.spread
        a, b = self.after, self.before
        inner = max(a * a * vbb + b * b * vaa - 2 * a * b * vab, 0.0) / self.rows
        return a / b - float(special.ndtri(1 - alpha)) * math.sqrt(inner) / b**2

    def interval(self, level: float, method: str | None = None) -> tuple[float, float]:
        """Return a two-sided interval: ``"binomial"``, ``"fieller"`` or ``"delta"``."""
        tail = (1 - level) / 2
        if method == "delta":
            low = self.bound(tail)
            return low, 2 * self.estimate - low
        return self.lower(tail, method), self.upper(tail, method)

    def _limit(self, tail: float, method: str | None, sign: float) -> float:
        if self.map is EXACT:
            return self._limits(tail, method)[0 if sign > 0 else 1]
        crossing = self._crossing(tail, method, sign)
        least = 1.0 if (method or self.method) == "binomial" else 0.0
        return max(crossing, least) if sign > 0 else crossing

    def _crossing(self, tail: float, method: str | None, sign: float) -> float:
        """Return the ratio at which the one-sided p-value is `tail`: 0 or infinity where there is none."""

        def above(log_ratio: float) -> float:
            pvalue = self._tail(math.exp(log_ratio), method, sign)
            inside = ends[0] < log_ratio < ends[1]
            # Rows that are all wrong alike before and after have no spread at their own ratio, and nothing against it.
            return (1.0 if inside and math.isnan(pvalue) else pvalue) - tail

        ends = (0.0 if (method or self.method) == "binomial" else -7.0, 7.0)
        seen = [above(e) for e in ends]
        if not all(math.isfinite(v) for v in seen) or seen[0] * seen[1] > 0:
            return 0.0 if sign > 0 else math.inf
        return math.exp(float(optimize.brentq(above, *ends, xtol=1e-12)))

    def _limits(self, tail: float, method: str | None) -> tuple[float, float]:
        method = self.method if method is None else method
        if method == "fieller":
            return self._fieller(float(special.ndtri(1 - tail)))
        hits, trials = self.gained, self.gained + self.kept
        low = 0.0 if hits == 0 else float(special.betaincinv(hits, trials - hits + 1, tail))
        high = 1.0 if hits == trials else float(special.betaincinv(hits + 1, trials - hits, 1 - tail))
        return 1 / (1 - low), math.inf if high == 1 else 1 / (1 - high)

    def _tail(self, limit: float, method: str | None, sign: float) -> float:
        method = self.method if method is None else method
        pvalue = math.nan
        if method == "binomial":
            # Given gained + kept, gained is binomial with share (ratio - 1) / ratio.
            share, trials = (limit - 1) / limit, self.gained + self.kept
            if trials == 0:
                return math.nan
            if sign > 0:
                pvalue = 1.0 if self.gained == 0 else float(special.bdtrc(self.gained - 1, int(trials), share))
            else:
                pvalue = float(special.bdtr(self.gained, int(trials), share))
            if self.map is EXACT:
                return pvalue
        vaa, vbb, vab = self.spread  # the linear form A - limit B
        variance = max(vaa - 2 * limit * vab + limit**2 * vbb, 0.0) / self.rows
        extra = self.map.extra(1.0, -limit)
        fold = math.sqrt(2 * extra)
        if sign < 0:
            extra *= widening(math.sqrt(extra), self.after - self.before) ** 2
        gap = sign * (self.after - limit * self.before)
        if variance + extra <= 0:
            return math.nan if gap == 0 else 1.0 if gap < 0 else 0.0
        if method == "binomial":  # no further than the exact test of a known map goes, in standard errors of it
            exact = -float(special.ndtri(min(max(pvalue, 1e-300), 1 - 1e-16))) * math.sqrt(variance)
            gap = min(gap, exact)
        gap -= max(sign * self.map.bias, 0.0)
        if sign > 0:
            excess = (limit - 1) * self.before
            gap -= folded(excess, fold) - excess
        freedom = combined_freedom(variance, self.rows, extra, self.map.freedom)
        return beyond(gap / math.sqrt(variance + extra), freedom)

    def _fieller(self, z: float) -> tuple[float, float]:
        vaa, vbb, vab = (v * z * z / self.rows for v in self.spread)
        a, b = self.after, self.before
        square, middle, constant = b * b - vbb, a * b - vab, a * a - vaa
        inner = middle**2 - square * constant
        if square > 0:
            root = math.sqrt(max(inner, 0.0))
            return max((middle - root) / square, 0.0), (middle + root) / square
        if square == 0 or inner <= 0:
            return 0.0, math.inf
        # B is not clearly above zero: the set is two rays; keep the one that holds the estimate.
        ends = sorted(((middle - math.sqrt(inner)) / square, (middle + math.sqrt(inner)) / square))
        return (max(ends[1], 0.0), math.inf) if self.estimate >= ends[1] else (0.0, math.inf)


def rate_ratio(after: FloatArray, before: FloatArray, count: FloatArray, weight: FloatArray | None = None) -> RateRatio:
    """Compare two 0-1 marks of the same rows by the ratio of their rates.

    Parameters
    ----------
    after, before : ndarray, shape (records,)
        0.0 or 1.0.
    count, weight
        As in `mean_ratio`.

    Returns
    -------
    RateRatio

    Examples
    --------
    >>> ratio = rate_ratio(np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([20.0, 20.0, 60.0]))
    >>> ratio.estimate, ratio.method, [round(x, 2) for x in ratio.interval(0.95)]
    (2.0, 'binomial', [1.51, 2.96])
    """
    return rate_of(RateSums.of(after, before, count, weight))


def rate_of(sums: RateSums) -> RateRatio:
    """Compare two rates given by their sums; rows with a mark that is not a number are not in them."""
    n, total = sums.rows, float(sums.sums[0])
    nan = math.nan
    if n < 2 or not total > 0:
        return RateRatio(after=nan, before=nan, spread=(nan, nan, nan), rows=n, weighted=sums.weighted)
    a, b = float(sums.sums[1]) / total, float(sums.sums[2]) / total
    whole, sa, sb, sab = (float(v) * (n / total) ** 2 / (n - 1) for v in sums.squares)

    def moment(both: float, p: float, sp: float, q: float, sq: float) -> float:
        """Return the mean product of two contributions, weight (mark - rate) n / total each."""
        return both - p * sq - q * sp + p * q * whole

    return RateRatio(
        after=a,
        before=b,
        # A mark is its own square. One formula for all three: equal marks have equal variances, to the last digit.
        spread=(moment(sa, a, sa, a, sa), moment(sb, b, sb, b, sb), moment(sab, a, sa, b, sb)),
        rows=n,
        gained=sums.gained,
        lost=sums.lost,
        kept=sums.kept,
        weighted=sums.weighted,
    )
