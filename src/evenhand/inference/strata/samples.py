"""The shape of every comparison within strata, and what is the same for all kinds of value.

Group `a` is compared with group `b` only where both are: in stratum s by the difference of their values a_s - b_s. The
conditional difference is the mean of these with the weights W_s = n_as n_bs / (n_as + n_bs), which are those of Mantel
and Haenszel: a stratum counts as much as it can tell. The conditional ratio is sum(W_s a_s) / sum(W_s b_s). Strata with
one of the two groups carry no information; they are counted and left out.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import optimize, special

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.samples import Draws, MarginSamples

NO_STRATUM = (
    "No stratum has rows of both groups, so nothing can be compared within strata. Join strata that are too fine."
)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two groups in the strata that have both."""

    strata: IntArray  # (S,): codes of these strata
    weight: FloatArray  # (S,): W_s
    # first, second (S,): the groups' values.
    first: FloatArray
    second: FloatArray
    # first_rows, second_rows (S,): the rows behind them.
    first_rows: FloatArray
    second_rows: FloatArray

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weight.sum())

    @property
    def values(self) -> tuple[float, float]:
        """The groups' values, both averaged with the weights; NaN without strata."""
        if not self.strata.size:
            return math.nan, math.nan
        return float(self.weight @ self.first) / self.total, float(self.weight @ self.second) / self.total

    def largest(self, most: int) -> Pair:
        """Return the strata with the largest weights, the largest first."""
        order = np.lexsort((self.strata, -self.weight))[:most]
        return Pair(*(getattr(self, f.name)[order] for f in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Homogeneity:
    """Whether the strata tell one difference or ratio."""

    statistic: float
    df: int
    pvalue: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many strata, and rows of the two groups, a comparison within strata rests on."""

    strata: int  # with rows of one of the two groups
    compared: int  # with rows of both
    rows: int  # of the two groups
    rows_compared: int


class StratifiedSamples(MarginSamples):
    """K samples compared within strata.

    Every answer about two samples comes from one signed normal deviate for each difference or ratio (`_deviate`), so
    that p-value, interval, margin and equivalence cannot contradict each other.

    Attributes
    ----------
    estimate : ndarray, shape (K,)
        Each sample's value as it would be with everybody's strata: the value of all, plus what the sample's own value
        exceeds the one expected from its strata (indirect standardisation).
    """

    @abstractmethod
    def pair(self, a: int, b: int) -> Pair:
        """Return two samples in the strata that have both."""

    @abstractmethod
    def _deviate(self, a: int, b: int, value: float, ratio: bool, draws: Draws) -> float:
        """Return the normal deviate of a difference or ratio: positive when the data lie above it."""

    @abstractmethod
    def _kind(self, draws: Draws) -> str:
        """Name the kind of interval."""

    @abstractmethod
    def homogeneity(self, a: int, b: int, *, ratio: bool) -> Homogeneity | None:
        """Test that all strata have one difference or ratio; None where too few strata can tell."""

    @abstractmethod
    def stratum_limits(
        self, a: int, b: int, strata: IntArray, level: float, *, ratio: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return limits for the difference or ratio of some strata that have both samples, given by their codes."""

    @abstractmethod
    def coverage(self, a: int, b: int) -> Coverage:
        """Count strata and rows with and without both samples."""

    def values(self, a: int, b: int) -> tuple[float, float]:
        """Return both samples' values, averaged over the strata they share with the weights of the comparison."""
        return self.pair(a, b).values

    def difference(self, a: int, b: int) -> float:
        """Return the conditional difference."""
        one, two = self.values(a, b)
        return one - two

    def _missing(self, *members: int) -> str:
        said = super()._missing(*members)
        if said or len(members) != 2 or self.pair(*members).strata.size:
            return said
        return NO_STRATUM

    def _point(self, a: int, b: int, ratio: bool) -> float:
        one, two = self.values(a, b)
        return (one / two if two != 0 else math.nan) if ratio else one - two

    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        return tail_of(self._deviate(a, b, margin, ratio, draws), draws.alternative)

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """All differences, or ratios, whose p-value is above 1 - level."""
        both = replace(draws, alternative="two-sided")
        far = float(-special.ndtri((1 - level) / 2))

        def beyond(value: float) -> float:
            return abs(self._deviate(a, b, value, ratio, both)) - far

        point, none = self._point(a, b, ratio), 1.0 if ratio else 0.0
        if math.isnan(point):
            return math.nan, math.nan, "none"
        low_end, high_end = self._range(a, b, ratio)
        low, high = (_end(beyond, point, end, none) for end in (low_end, high_end))
        return low, math.inf if ratio and high >= high_end else high, self._kind(draws)

    def _range(self, a: int, b: int, ratio: bool) -> tuple[float, float]:
        """Return the ends of what a difference or ratio can be."""
        return (0.0, 1e9 * max(self._point(a, b, True), 1.0)) if ratio else (-1.0, 1.0)


def _end(beyond: Callable[[float], float], point: float, limit: float, none: float) -> float:
    """Return where a test stops keeping values between the estimate and a limit; the limit where it keeps all.

    `beyond` is below 0 where a value is kept. No difference is asked first, so that the end agrees with the test there.
    """
    if point == limit or beyond(limit) < 0:
        return limit
    inside, outside = point, limit
    if min(point, limit) < none < max(point, limit):
        inside, outside = (none, outside) if beyond(none) < 0 else (inside, none)
    # From the inside outwards in growing steps: the limit may be very far off.
    step = (outside - inside) * 2.0**-24
    while abs(inside + step - point) < abs(outside - point):
        if beyond(inside + step) >= 0:
            outside = inside + step
            break
        inside, step = inside + step, 4 * step

    def clipped(value: float) -> float:
        return min(max(beyond(value), -1e3), 1e3)

    first, last = clipped(inside), clipped(outside)
    if first >= 0 or last <= 0:
        return inside if first >= 0 else outside
    return float(optimize.brentq(clipped, inside, outside, xtol=1e-300, rtol=1e-10, maxiter=200))


def tail_of(deviate: float, alternative: str) -> float:
    """Return the p-value of a normal deviate.

    Examples
    --------
    >>> round(tail_of(1.959964, "two-sided"), 4), round(tail_of(1.959964, "less"), 4)
    (0.05, 0.975)
    """
    if math.isnan(deviate):
        return math.nan
    if alternative == "two-sided":
        return min(1.0, 2 * float(special.ndtr(-abs(deviate))))
    return float(special.ndtr(-deviate if alternative == "greater" else deviate))


def spread_test(gaps: FloatArray, covariance: FloatArray) -> tuple[float, int]:
    """Return the quadratic form of K gaps that add up to nothing, in their covariance, and its degrees of freedom.

    Examples
    --------
    >>> q, df = spread_test(np.array([2.0, -2.0]), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> round(q, 6), df
    (4.0, 1)
    """
    scale = float(np.abs(np.diag(covariance)).max(initial=0.0))
    if scale <= 0:
        return math.nan, 0
    values, vectors = np.linalg.eigh(covariance / scale)
    kept = values > 1e-10
    along = vectors[:, kept].T @ gaps
    return float((along**2 / values[kept]).sum() / scale), int(kept.sum())
