"""The upper tail of one sample: threshold, ties, fit, return levels with intervals, quantile plot.

Everything is stated per horizon: the return level of m is what one observation in m exceeds on average. Below the
threshold it is a quantile of the sample, above it comes from the fitted tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from evenhand.arrays import FloatArray
from evenhand.kernels.extremes.exponentiality import ExponentialityTest, exponentiality
from evenhand.kernels.extremes.pareto import fit, quantile
from evenhand.kernels.extremes.pareto_profile import end_range, level_ranges, pivotal_draws, region, shape_range
from evenhand.kernels.shared.descending import Descending

# Numbers of largest values tried, most first; at most this share of the sample where it is large enough.
TRIED = (200, 150, 100, 75, 50)
_SHARE, _MOST_SHARE = 0.1, 0.25
_NORMAL = -0.5  # below, the likelihood's shape is not normal even in large samples


def choose_k(values: FloatArray | Descending, *, printed: bool = False) -> tuple[int, ExponentialityTest | None]:
    """Choose how many of the largest values make the tail: as many as pass the exponentiality test.

    Parameters
    ----------
    values : ndarray or Descending
        The sample.
    printed : bool
        Use the limits as printed.

    Returns
    -------
    k : int
        0 when no number of at least 50 passes.
    test : ExponentialityTest or None
        The test of the chosen k, or of the smallest that failed; None when there are too few values.

    Examples
    --------
    >>> k, test = choose_k(-np.log((np.arange(1000) + 0.5) / 1000))
    >>> k, test.passed
    (100, True)
    """
    most = min(max(TRIED[-1], _SHARE * values.size), _MOST_SHARE * values.size)
    test = None
    for k in TRIED:
        if k <= most:
            largest = values.head(k) if isinstance(values, Descending) else values
            test = exponentiality(largest, kmax=k, printed=printed)
            if test.passed:
                return k, test
    return 0, test


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tail:
    """The fitted upper tail of a sample."""

    values: Descending  # the sample
    k: int  # excesses
    threshold: float  # the (k+1)-th largest value
    # scale, shape: of the generalised Pareto law of the excesses, end point at most `upper`.
    scale: float
    shape: float
    likely: bool  # made by likelihood, else by probability-weighted moments
    # free_shape, free_likely: the same without a limit for the end point: they decide the type.
    free_shape: float
    free_likely: bool
    upper: float  # largest possible value

    @property
    def n(self) -> int:
        """Size of the sample."""
        return self.values.size

    @property
    def excesses(self) -> FloatArray:
        """Excesses over the threshold, sorted upwards."""
        return np.asarray((self.values.head(self.k) - self.threshold)[::-1])

    @property
    def room(self) -> float:
        """Largest possible excess."""
        return self.upper - self.threshold

    @property
    def end(self) -> float:
        """End point of the fitted tail, infinite when the shape is not negative."""
        return self.threshold - self.scale / self.shape if self.shape < 0 else math.inf

    def expected(self, horizon: float) -> float:
        """Return the expected number of values above the threshold in `horizon` observations."""
        return horizon * self.k / self.n

    def level(self, horizon: float) -> float:
        """Return what one observation in `horizon` exceeds on average."""
        if self.expected(horizon) < 1:
            return float(self.values.at(max(math.ceil(self.n / horizon) - 1, 0)))
        return self.threshold + float(quantile(1 / self.expected(horizon), self.scale, self.shape))

    def scale_at(self, horizon: float) -> float:
        """Return the scale of the point process (and of the largest value) over a horizon."""
        return self.scale + self.shape * (self.level(horizon) - self.threshold)


def fit_tail(values: FloatArray | Descending, k: int, *, upper: float = math.inf) -> Tail:
    """Fit the k largest values of a sample.

    Parameters
    ----------
    values : ndarray or Descending
        The sample, more than k values.
    k : int
        Excesses, at least 10.
    upper : float
        Largest possible value: the end point of the fit does not lie above it.

    Returns
    -------
    Tail

    Examples
    --------
    >>> tail = fit_tail(-np.log((np.arange(5000) + 0.5) / 5000), 100)
    >>> round(tail.level(10_000), 1)  # the exponential law gives log(10000) = 9.2
    9.0
    """
    ordered = values if isinstance(values, Descending) else Descending(-np.sort(-values))
    threshold = float(ordered.at(k))
    y = (ordered.head(k) - threshold)[::-1]
    free = fit(y)
    scale, shape, likely = fit(y, room=upper - threshold) if math.isfinite(upper) else free
    return Tail(
        values=ordered,
        k=k,
        threshold=threshold,
        scale=float(scale),
        shape=float(shape),
        likely=bool(likely),
        free_shape=float(free[1]),
        free_likely=bool(free[2]),
        upper=upper,
    )


def _cutoff(level: float, k: int, *, limited: bool = False) -> float:
    """Return the deviance that a profile interval allows.

    The chi-square quantile, slightly stretched: small tails cover .90 to .93 without it (calibration/tail.py). When the
    end point may sit at its limit, other parameters are held on one side: the deviance of a return level is then at
    worst an even mixture of chi-squares with 1 and 2 degrees of freedom.
    """
    chi_square = float(special.chdtri(1, 1 - level))
    if limited:
        # sf(c) = (erfc(sqrt(c / 2)) + exp(-c / 2)) / 2, between the quantiles of the two parts.
        most = float(special.chdtri(2, 1 - level))
        chi_square = float(
            optimize.brentq(lambda c: (special.chdtrc(1, c) + special.chdtrc(2, c)) / 2 - (1 - level), chi_square, most)
        )
    return chi_square * (1 + 10 / k)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TailIntervals:
    """Intervals of a tail's shape, end point and return levels."""

    # shape, end: low and high; the shape's without a limit for the end point.
    shape: tuple[float, float]
    end: tuple[float, float]
    # low, high (horizons,): of the return levels.
    low: FloatArray
    high: FloatArray

    @property
    def type(self) -> str:
        """I, II or III: shape not distinguishable from 0, positive, negative."""
        return "III" if self.shape[1] < 0 else "II" if self.shape[0] > 0 else "I"


def tail_intervals(
    tail: Tail, horizons: FloatArray, *, level: float, rng: np.random.Generator, draws: int = 400
) -> TailIntervals:
    """Return intervals of the shape, the end point and return levels.

    Parameters
    ----------
    tail : Tail
        From `fit_tail`.
    horizons : ndarray
        Which return levels; one below the threshold is taken at it.
    level : float
        Coverage of each.
    rng : Generator
        For tails that likelihood cannot fit.
    draws : int
        How many.

    Returns
    -------
    TailIntervals

    Examples
    --------
    >>> tail = fit_tail(-np.log((np.arange(5000) + 0.5) / 5000), 100)
    >>> limits = tail_intervals(tail, np.array([10_000.0]), level=0.95, rng=np.random.default_rng(0))
    >>> bool(limits.low[0] < np.log(10_000) < limits.high[0]), limits.type
    (True, 'I')
    """
    y, u, k = tail.excesses, tail.threshold, tail.k
    horizons = np.asarray(horizons, dtype=float)
    expected = np.maximum(horizons * k / tail.n, 1.0)
    sides = [(1 - level) / 2, (1 + level) / 2]
    drawn, free = None, None
    # A uniform tail (shape -1) now and then looks like one that likelihood can fit, and the profile then misses it.
    regular = tail.free_likely and tail.free_shape >= _NORMAL
    if not (tail.likely and regular):
        drawn = pivotal_draws(y, draws, rng)
    if regular:
        free = region(y, cutoff=_cutoff(level, k))
        shape = shape_range(free)
    else:
        shape = tuple(np.quantile(drawn[1], sides, method="weibull").tolist())  # type: ignore[index]
    if tail.likely:
        known = free if math.isinf(tail.room) else None
        edge = known or region(y, cutoff=_cutoff(level, k), room=tail.room)
        if known is None and end_range(edge)[1] > tail.room * (1 - 1e-6):
            edge = region(y, cutoff=_cutoff(level, k, limited=True), room=tail.room)
        low, high = level_ranges(edge, expected)
        end = end_range(edge)
    else:
        scales, shapes, shares = drawn  # type: ignore[misc]
        levels = quantile(1 / (expected[:, None] * shares), scales, shapes)
        # Weibull's positions: few draws then cover as often as many.
        low, high = np.quantile(levels, sides, axis=1, method="weibull")
        ends = np.where(shapes < 0, -scales / np.minimum(shapes, -1e-12), math.inf)
        end = tuple(np.quantile(ends, sides, method="nearest").tolist())
    low, high = np.minimum(u + low, tail.upper), np.minimum(u + high, tail.upper)
    end_high = min(u + end[1], tail.upper)
    return TailIntervals(
        shape=(float(shape[0]), float(shape[1])),
        end=(max(u + end[0], float(tail.values.values[0])), max(end_high, float(tail.values.values[0]))),
        low=low,
        high=high,
    )


def quantile_plot(tail: Tail) -> tuple[FloatArray, FloatArray, float]:
    """Return what a quantile plot shows: fitted and observed excesses, and their correlation.

    Parameters
    ----------
    tail : Tail
        From `fit_tail`.

    Returns
    -------
    fitted, observed : ndarray, shape (k,)
        Values at the same shares, upwards.
    correlation : float
        Near 1 when the fit follows the data.
    """
    shares = 1 - (np.arange(tail.k) + 0.5) / tail.k
    fitted = tail.threshold + quantile(shares, tail.scale, tail.shape)
    observed = tail.values.head(tail.k)[::-1]
    return fitted, observed, float(np.corrcoef(fitted, observed)[0, 1])
