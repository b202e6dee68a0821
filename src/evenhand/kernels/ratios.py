"""Means of ratios and ratios of means: estimates, intervals and one-sided tests against a bound.

=============  ======================  ======================================================
code           [maity2021]             meaning
=============  ======================  ======================================================
estimate       S_n, S~_n               mean ratio; ratio of error rates
spread         V_n                     standard deviation of the ratios (ddof 1)
bound          T_n, T~_n               one-sided lower limit, eq. (3.10) and (3.13)
limit          delta                   the largest ratio that is tolerated
=============  ======================  ======================================================

Ratios of losses are skewed to the right. The normal limits of the paper are then too low at both ends: the
lower one is careful, the upper one claims too much. `MeanRatio` corrects the studentised mean for skewness by
Hall's (1992) monotone cubic, which is deterministic and costs nothing; the paper's own limits stay available.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRatio:
    """The mean of ratios that are known by their logarithms.

    Parameters
    ----------
    estimate : float
        Weighted mean of the ratios.
    spread : float
        Standard deviation of one contribution (ddof 1).
    skewness : float
        Third standardised moment of the contributions.
    rows : float
        Rows behind it.
    largest_share : float
        The largest single contribution to the sum, as a share of it.
    """

    estimate: float
    spread: float
    skewness: float
    rows: float
    largest_share: float

    @property
    def error(self) -> float:
        """Standard error of the estimate."""
        return self.spread / math.sqrt(self.rows) if self.rows > 0 else math.nan

    def bound(self, alpha: float) -> float:
        """Return the paper's T_n: estimate minus z times the standard error."""
        return self.estimate - float(special.ndtri(1 - alpha)) * self.error

    def interval(self, level: float, method: str = "skewness") -> tuple[float, float]:
        """Return a two-sided equal-tailed interval, by ``"skewness"`` or ``"normal"``."""
        z = float(special.ndtri((1 + level) / 2))
        return self.lower(z, method), self.lower(-z, method)

    def lower(self, z: float, method: str = "skewness") -> float:
        """Return the limit below which a standard normal value z puts the mean."""
        return self.estimate - self.error * (self._unhall(z) if method == "skewness" else z)

    def above(self, limit: float, method: str = "skewness") -> float:
        """Return the p-value of "the mean is at most `limit`"."""
        return self._tail(limit, method, 1.0)

    def below(self, limit: float, method: str = "skewness") -> float:
        """Return the p-value of "the mean is at least `limit`"."""
        return self._tail(limit, method, -1.0)

    def _tail(self, limit: float, method: str, sign: float) -> float:
        gap = self.estimate - limit
        if not self.error > 0:  # every ratio is the same: decided, unless exactly on the limit
            return math.nan if math.isnan(self.error) else 1.0 if sign * gap <= 0 else 0.0
        t = gap / self.error
        return float(special.ndtr(-sign * (self._hall(t) if method == "skewness" else t)))

    def _hall(self, t: float) -> float:
        g = self.skewness / math.sqrt(self.rows)
        return t + g * t * t / 3 + g * g * t**3 / 27 + g / 6

    def _unhall(self, z: float) -> float:
        g = self.skewness / math.sqrt(self.rows)
        if abs(g) < 1e-7:
            return z
        return float(3.0 / g * (np.cbrt(1.0 + g * (z - g / 6)) - 1.0))


def mean_ratio(log_ratio: FloatArray, count: FloatArray, weight: FloatArray | None = None) -> MeanRatio:
    """Average ratios given by their logarithms.

    Parameters
    ----------
    log_ratio : ndarray, shape (records,)
        Finite; the caller decides what an undefined ratio means.
    count : ndarray, shape (records,)
        Rows each record stands for.
    weight : ndarray, shape (records,), optional
        Sampling weight of each of a record's rows.

    Returns
    -------
    MeanRatio

    Examples
    --------
    >>> found = mean_ratio(np.log([1.0, 2.0, 3.0]), np.ones(3))
    >>> round(found.estimate, 6), round(found.spread, 6), round(found.bound(0.05), 3)
    (2.0, 1.0, 1.05)
    """
    n = float(count.sum())
    if n < 2 or log_ratio.size == 0:
        return MeanRatio(estimate=math.nan, spread=math.nan, skewness=math.nan, rows=n, largest_share=math.nan)
    w = np.ones_like(log_ratio) if weight is None else weight
    top = float(log_ratio.max())
    r = np.exp(log_ratio - top)  # at most 1: sums cannot overflow
    total = float((count * w).sum())
    mean = float((count * w * r).sum()) / total
    u = w * (r - mean) * (n / total)  # linearised contribution of one row
    second = float((count * u**2).sum())
    third = float((count * u**3).sum())
    scale = math.exp(top) if top < 700 else math.inf
    # Contributions that differ by rounding only are equal: their "skewness" would be noise over noise.
    flat = second <= n * (1e-14 * mean) ** 2
    return MeanRatio(
        estimate=scale * mean,
        spread=0.0 if flat else scale * math.sqrt(second / (n - 1)),
        skewness=0.0 if flat else (third / n) / (second / n) ** 1.5,
        rows=n,
        largest_share=float((w * r).max()) / (mean * total),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRatio:
    """The ratio of two rates measured on the same rows: errors after and before.

    Parameters
    ----------
    after, before : float
        Weighted rates A and B.
    spread : tuple of float
        Variances of one contribution to A and B, and their covariance (ddof 1).
    rows : float
        Rows behind them.
    gained, lost, kept : float
        Rows wrong only after, wrong only before, wrong both times.
    weighted : bool
        Whether sampling weights were used.
    """

    after: float
    before: float
    spread: tuple[float, float, float]
    rows: float
    gained: float
    lost: float
    kept: float
    weighted: bool

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
        method = self.method if method is None else method
        if method == "delta":
            low = self.bound(tail)
            return low, 2 * self.estimate - low
        if method == "fieller":
            return self._fieller(float(special.ndtri(1 - tail)))
        hits, trials = self.gained, self.gained + self.kept
        low = 0.0 if hits == 0 else float(special.betaincinv(hits, trials - hits + 1, tail))
        high = 1.0 if hits == trials else float(special.betaincinv(hits + 1, trials - hits, 1 - tail))
        return 1 / (1 - low), math.inf if high == 1 else 1 / (1 - high)

    def above(self, limit: float, method: str | None = None) -> float:
        """Return the p-value of "the ratio is at most `limit`"."""
        return self._tail(limit, method, 1.0)

    def below(self, limit: float, method: str | None = None) -> float:
        """Return the p-value of "the ratio is at least `limit`"."""
        return self._tail(limit, method, -1.0)

    def _tail(self, limit: float, method: str | None, sign: float) -> float:
        method = self.method if method is None else method
        if method == "binomial":
            # Given gained + kept, gained is binomial with share (ratio - 1) / ratio.
            share, trials = (limit - 1) / limit, self.gained + self.kept
            if trials == 0:
                return math.nan
            if sign > 0:
                return 1.0 if self.gained == 0 else float(special.bdtrc(self.gained - 1, int(trials), share))
            return float(special.bdtr(self.gained, int(trials), share))
        vaa, vbb, vab = self.spread  # the linear form A - limit B
        variance = max(vaa - 2 * limit * vab + limit**2 * vbb, 0.0) / self.rows
        gap = self.after - limit * self.before
        if variance <= 0:
            return math.nan if gap == 0 else 1.0 if sign * gap < 0 else 0.0
        return float(special.ndtr(-sign * gap / math.sqrt(variance)))

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
    count : ndarray, shape (records,)
        Rows each record stands for.
    weight : ndarray, shape (records,), optional
        Sampling weight of each of a record's rows.

    Returns
    -------
    RateRatio

    Examples
    --------
    >>> found = rate_ratio(np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([20.0, 20.0, 60.0]))
    >>> found.estimate, found.method, [round(x, 2) for x in found.interval(0.95)]
    (2.0, 'binomial', [1.51, 2.96])
    """
    n = float(count.sum())
    w = np.ones_like(after) if weight is None else weight
    total = float((count * w).sum())
    nan = math.nan
    if n < 2 or total <= 0:
        return RateRatio(
            after=nan,
            before=nan,
            spread=(nan, nan, nan),
            rows=n,
            gained=0.0,
            lost=0.0,
            kept=0.0,
            weighted=weight is not None,
        )
    a, b = float((count * w * after).sum()) / total, float((count * w * before).sum()) / total
    ua, ub = w * (after - a) * (n / total), w * (before - b) * (n / total)

    def moment(x: FloatArray, y: FloatArray) -> float:
        return float((count * x * y).sum()) / (n - 1)

    return RateRatio(
        after=a,
        before=b,
        spread=(moment(ua, ua), moment(ub, ub), moment(ua, ub)),
        rows=n,
        gained=float((count * after * (1 - before)).sum()),
        lost=float((count * before * (1 - after)).sum()),
        kept=float((count * before * after).sum()),
        weighted=weight is not None,
    )
