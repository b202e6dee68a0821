"""What means of ratios and ratios of rates need of their rows, as sums that add up over any division of the rows.

=============  =============================================================================
code           meaning
=============  =============================================================================
r              exp(log ratio - top): at most 1, so that no sum can overflow
moments[k, j]  sum over records of count weight^(k + 1) (r - centre)^j, k = 0, 1, 2, j = 0 .. 3
squares        sums over records of count weight^2 times 1, a, b, a b
=============  =============================================================================

Moments are taken around a mean, not around 0: a spread that is small beside the mean keeps its digits. Two sets of
moments meet around their common mean, by the binomial theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from evenhand.arrays import FloatArray

# Row j: how moments of orders 0 .. 3 around another centre make the one of order j.
_BINOMIAL = np.array([[math.comb(j, i) for i in range(4)] for j in range(4)], dtype=np.float64)
_LACKING = np.array([[j - i for i in range(4)] for j in range(4)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatioSums:
    """Ratios that are known by their logarithms, as moments.

    Examples
    --------
    >>> log_ratio, count = np.log([1.0, 2.0, 3.0]), np.ones(3)
    >>> whole = RatioSums.of(log_ratio, count)
    >>> parts = RatioSums.of(log_ratio[:1], count[:1]) + RatioSums.of(log_ratio[1:], count[1:])
    >>> round(math.exp(parts.top) * parts.mean, 12), bool(np.allclose(whole.moments, parts.moments))
    (2.0, True)
    """

    rows: float = 0.0  # with a finite ratio
    undefined: float = 0.0  # rows whose ratio is not a finite number
    top: float = -math.inf  # the largest logarithm; everything below is in units of its ratio
    centre: float = 0.0  # what the moments are taken around
    moments: FloatArray  # (3, 4), see above
    largest: float = 0.0  # the largest weight times ratio of one row

    EMPTY: ClassVar[RatioSums]

    @classmethod
    def of(cls, log_ratio: FloatArray, count: FloatArray, weight: FloatArray | None = None) -> RatioSums:
        """Sum up records that stand for `count` rows each, of which each has a sampling weight."""
        finite = np.isfinite(log_ratio)
        undefined = float(count[~finite].sum())
        if undefined or not finite.all():
            log_ratio, count = log_ratio[finite], count[finite]
            weight = None if weight is None else weight[finite]
        if log_ratio.size == 0:
            return replace(cls.EMPTY, undefined=undefined)
        top = float(log_ratio.max())
        r = np.exp(log_ratio - top)
        mass = count if weight is None else count * weight
        total = float(mass.sum())
        centre = float(mass @ r) / total if total > 0 else 0.0
        gap = r - centre
        # By products, shape (4, records): powers of arrays take ten times as long.
        powers = np.stack([np.ones_like(gap), gap, gap * gap, gap * gap * gap])
        if weight is None:
            moments = np.tile(powers @ count, (3, 1))
        else:
            moments = (mass * weight ** np.arange(3)[:, None]) @ powers.T
        largest = float((r if weight is None else weight * r).max())
        return cls(
            rows=float(count.sum()), undefined=undefined, top=top, centre=centre, moments=moments, largest=largest
        )

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.moments[0, 0])

    @property
    def mean(self) -> float:
        """Weighted mean of r; NaN without weight."""
        return self.centre + float(self.moments[0, 1]) / self.total if self.total > 0 else math.nan

    def around(self, centre: float) -> RatioSums:
        """Return the same moments around another centre."""
        shift = _BINOMIAL * (self.centre - centre) ** np.maximum(_LACKING, 0) * (_LACKING >= 0)
        return replace(self, centre=centre, moments=self.moments @ shift.T)

    def _in_units_of(self, top: float) -> RatioSums:
        if self.top == top:
            return self
        unit = math.exp(self.top - top)
        return replace(
            self,
            top=top,
            centre=self.centre * unit,
            moments=self.moments * unit ** np.arange(4),
            largest=self.largest * unit,
        )

    def __add__(self, other: RatioSums) -> RatioSums:
        """Return the sums of both."""
        if not self.rows or not other.rows:
            held = self if self.rows else other
            return replace(held, undefined=self.undefined + other.undefined)
        top = max(self.top, other.top)
        one, two = self._in_units_of(top), other._in_units_of(top)
        total = one.total + two.total
        centre = one.centre + (two.mean - one.centre) * (two.total / total) if two.total > 0 else one.centre
        one, two = one.around(centre), two.around(centre)
        return RatioSums(
            rows=self.rows + other.rows,
            undefined=self.undefined + other.undefined,
            top=top,
            centre=centre,
            moments=one.moments + two.moments,
            largest=max(one.largest, two.largest),
        )


RatioSums.EMPTY = RatioSums(moments=np.zeros((3, 4)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateSums:
    """Two 0-1 marks of the same rows, after and before, as sums.

    Examples
    --------
    >>> after, before, count = np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([2.0, 3.0, 5.0])
    >>> sums = RateSums.of(after, before, count)
    >>> sums.gained, sums.kept, (sums + sums).kept, sums.weighted
    (3.0, 2.0, 4.0, False)
    """

    rows: float = 0.0  # whose marks are both known
    undefined: float = 0.0  # rows of which some mark is not a number
    # gained, lost, kept: rows marked only after, only before, both times.
    gained: float = 0.0
    lost: float = 0.0
    kept: float = 0.0
    sums: FloatArray  # (4,): sums of count weight times 1, a, b, a b
    squares: FloatArray  # (4,): the same with squared weights
    weighted: bool = False  # whether sampling weights were used

    EMPTY: ClassVar[RateSums]

    @classmethod
    def of(cls, after: FloatArray, before: FloatArray, count: FloatArray, weight: FloatArray | None = None) -> RateSums:
        """Sum up records that stand for `count` rows each, of which each has a sampling weight."""
        known = ~(np.isnan(after) | np.isnan(before))
        undefined = float(count[~known].sum())
        if not known.all():
            after, before, count = after[known], before[known], count[known]
            weight = None if weight is None else weight[known]
        marks = np.stack([np.ones_like(after), after, before, after * before])
        rows, a, b, both = (float(v) for v in marks @ count)
        sums = np.array([rows, a, b, both]) if weight is None else marks @ (count * weight)
        return cls(
            rows=rows,
            undefined=undefined,
            gained=a - both,
            lost=b - both,
            kept=both,
            sums=sums,
            squares=sums if weight is None else marks @ (count * weight**2),
            weighted=weight is not None,
        )

    def __add__(self, other: RateSums) -> RateSums:
        """Return the sums of both."""
        return RateSums(
            rows=self.rows + other.rows,
            undefined=self.undefined + other.undefined,
            gained=self.gained + other.gained,
            lost=self.lost + other.lost,
            kept=self.kept + other.kept,
            sums=self.sums + other.sums,
            squares=self.squares + other.squares,
            weighted=self.weighted or other.weighted,
        )


RateSums.EMPTY = RateSums(sums=np.zeros(4), squares=np.zeros(4))
