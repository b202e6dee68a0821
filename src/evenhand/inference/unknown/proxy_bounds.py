"""What group probabilities alone say about a difference of rates: bounds per proxy cell, in closed form.

In a cell of people with alike probabilities the share p of a group and the shares of the people in a rate's numerator
(N), in its denominator only (F) and outside (O) are known; who of the group is where is not. The group's people of the
numerator are at most min(p, N) and, at the same time, those of the denominator only at least max(0, p - N - O): the
group takes the numerator first, then what does not count, then the rest. This maximises its rate
s / (s + f), which rises in s and falls in f. The smallest rate comes from the opposite order. Another group that is to
have the smallest rate takes the rest of the denominator first, and the two never want the same people: shares of all
groups and of N, F and O both add up to 1. So the range of a difference, or of a ratio, is from one group's smallest
rate against the other's largest to the opposite, and no assumption narrows it but a finer proxy.

The smaller of two estimated shares is too small on average. Where the two lie within three standard errors of each
other, the share is moved by the most that this can make, 0.4 standard errors, which can only widen the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.inference.unknown.identified import End, IdentifiedSet, critical_value

NUMERATOR, DENOMINATOR, OUTSIDE = 0, 1, 2
_FEW_ROWS, _MOST_BINS, _MOST_CELLS = 100, 10, 100
_NEAR = 3.0  # standard errors: farther apart the smaller of two shares is known
_DRAWN_IN = 1 / math.sqrt(2 * math.pi)  # mean of the larger of 0 and a standard normal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProxyRows:
    """Records with the probability of each group, and where they stand in a rate."""

    probability: FloatArray  # (R, K): rows add up to 1
    place: IntArray  # (R,): NUMERATOR, DENOMINATOR (only) or OUTSIDE
    rows: IntArray  # (R,): rows that each record stands for
    # weight, square: (R,) each, sums of the sampling weights and of their squares; both are `rows` without weights.
    weight: FloatArray
    square: FloatArray
    cluster: IntArray | None = None  # (R,): rows of one cluster belong together

    def spread(self, influence: FloatArray) -> float:
        """Return the variance of a weighted sum of independent rows' influences, or of independent clusters'."""
        if self.cluster is None:
            return float((self.square * influence**2).sum())
        return float((np.bincount(self.cluster, weights=self.weight * influence) ** 2).sum())

    @classmethod
    def of(cls, probability: FloatArray, place: IntArray) -> ProxyRows:
        """Make records of one row each, without sampling weights."""
        one = np.ones(len(place))
        return cls(probability=probability, place=place, rows=one.astype(np.int64), weight=one, square=one)


def proxy_cells(people: ProxyRows, a: int, b: int) -> IntArray:
    """Put people with alike probabilities of two groups into cells of a hundred and more, by quantiles.

    Distinct probabilities are cells of their own where there are few of them.

    Examples
    --------
    >>> p = np.repeat([[0.2, 0.8], [0.7, 0.3]], 100, axis=0)
    >>> np.bincount(proxy_cells(ProxyRows.of(p, np.zeros(200, dtype=np.int64)), 0, 1)).tolist()
    [100, 100]
    """
    n, groups = int(people.rows.sum()), people.probability.shape[1]
    kinds = _distinct(people.probability)
    if kinds is not None and np.bincount(kinds, weights=people.rows).min() >= _FEW_ROWS:
        return kinds
    if groups == 2:
        return quantile_bins(people.probability[:, a], people.rows, min(_MOST_CELLS, max(1, n // _FEW_ROWS)))
    bins = min(_MOST_BINS, max(1, math.isqrt(n // _FEW_ROWS)))
    first, second = (quantile_bins(people.probability[:, g], people.rows, bins) for g in (a, b))
    crossed: IntArray = np.unique(first * bins + second, return_inverse=True)[1].ravel().astype(np.int64)
    return crossed


def _distinct(probability: FloatArray) -> IntArray | None:
    """Return the number of each distinct row; None where there are more of them than cells."""
    codes = np.zeros(len(probability), dtype=np.int64)
    for column in np.round(probability, 12).T:
        values, own = np.unique(column, return_inverse=True)
        if len(values) > _MOST_CELLS:
            return None
        codes = np.unique(codes * len(values) + own, return_inverse=True)[1].astype(np.int64)
    return codes if codes.max(initial=0) < _MOST_CELLS else None


def quantile_bins(values: FloatArray, rows: IntArray, bins: int) -> IntArray:
    """Return the bin of each value, bins with about as many rows each; ties stay together."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(rows[order])
    at = np.searchsorted(reached, reached[-1] * np.arange(1, bins) / bins)
    edges = np.unique(values[order][at])
    return np.searchsorted(edges, values, side="left")


class ProxyBounds:
    """The range of the difference or ratio of two groups' rates that group probabilities leave possible.

    Parameters
    ----------
    people : ProxyRows
        Records.
    a, b : int
        The group and its reference.
    f1 : bool
        Whether the values compared are 2 r / (1 + r) of the rates r.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.2, 0.2, 20_000)
    >>> group = rng.random(p.size) < p
    >>> place = np.where(rng.random(p.size) < np.where(group, 0.5, 0.3), NUMERATOR, DENOMINATOR)
    >>> values = ProxyBounds(ProxyRows.of(np.stack([p, 1 - p], 1), place), 0, 1).difference()
    >>> round(values.low.estimate, 2), round(values.high.estimate, 2)
    (-0.04, 0.36)
    """

    def __init__(self, people: ProxyRows, a: int, b: int, *, f1: bool = False) -> None:
        self._people, self._f1 = people, f1
        self.cells = proxy_cells(people, a, b)  # (R,)
        self._most_a, self._least_a = self._extremes(a)
        self._most_b, self._least_b = self._extremes(b)

    def difference(self) -> IdentifiedSet:
        """Return the range of the rate of a minus the rate of b."""
        low = self._difference_end(self._least_a, self._most_b)
        high = self._difference_end(self._most_a, self._least_b)
        return IdentifiedSet(low=low, high=high)

    def ratio(self) -> IdentifiedSet:
        """Return the range of the rate of a over the rate of b; from 0 to infinity where rates may be 0."""
        low = self._ratio_end(self._least_a, self._most_b, empty=0.0)
        high = self._ratio_end(self._most_a, self._least_b, empty=math.inf)
        return IdentifiedSet(low=low, high=high, log=True)

    def rates(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the smallest and largest rate of a, and those of b."""
        return (self._least_a[0], self._most_a[0]), (self._least_b[0], self._most_b[0])

    def _extremes(self, group: int) -> tuple[tuple[float, FloatArray], tuple[float, FloatArray]]:
        """Return the largest and the smallest rate of a group, each with the influence of every record."""
        place = self._people.place
        top, rest = place == NUMERATOR, place == DENOMINATOR
        most, pull = self._largest(self._people.probability[:, group], top, rest)
        least, other = self._largest(self._people.probability[:, group], rest, top)
        return self._valued(most, pull), self._valued(1 - least, -other)

    def _valued(self, rate: float, influence: FloatArray) -> tuple[float, FloatArray]:
        """Return the value that belongs to a rate, which rises with it."""
        return (2 * rate / (1 + rate), influence * 2 / (1 + rate) ** 2) if self._f1 else (rate, influence)

    def _largest(self, p: FloatArray, top: BoolArray, rest: BoolArray) -> tuple[float, FloatArray]:
        inside, needed = top.astype(float), p - (~rest).astype(float)
        room, error = self._by_cell(p - inside)
        taken = np.where((room <= 0)[self.cells], p, inside)  # the smaller of the two shares
        beyond, error_beyond = self._by_cell(needed)
        spilled = np.where((beyond > 0)[self.cells], needed, 0.0)  # the larger of it and none
        s = self._mean(taken) + self._drawn_in(room, error)
        f = max(self._mean(spilled) - self._drawn_in(beyond, error_beyond), 0.0)
        if s <= 0:
            return 0.0, np.zeros(p.shape)
        rate = s / (s + f)
        return rate, ((1 - rate) * (taken - s) - rate * (spilled - f)) / (s + f)

    def _by_cell(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of some values in each cell, and its standard error."""
        w, ww = self._people.weight, self._people.square
        total = np.bincount(self.cells, weights=w)
        mean = np.bincount(self.cells, weights=w * values) / total
        spread = np.bincount(self.cells, weights=ww * (values - mean[self.cells]) ** 2)
        return mean, np.sqrt(spread) / total

    def _drawn_in(self, mean: FloatArray, error: FloatArray) -> float:
        share = np.bincount(self.cells, weights=self._people.weight) / self._people.weight.sum()
        return float((share * _DRAWN_IN * error)[np.abs(mean) <= _NEAR * error].sum())

    def _mean(self, values: FloatArray) -> float:
        return float(np.average(values, weights=self._people.weight))

    def _error(self, influence: FloatArray) -> float:
        return math.sqrt(self._people.spread(influence)) / float(self._people.weight.sum())

    def _difference_end(self, first: tuple[float, FloatArray], second: tuple[float, FloatArray]) -> End:
        error, value = self._error(first[1] - second[1]), first[0] - second[0]
        return _normal_end(value, error)

    def _ratio_end(self, first: tuple[float, FloatArray], second: tuple[float, FloatArray], empty: float) -> End:
        if first[0] <= 0 or second[0] <= 0:
            return End(estimate=empty, interval=lambda _: (empty, empty), pvalue=lambda _: 1.0)
        error = self._error(first[1] / first[0] - second[1] / second[0])
        return _normal_end(first[0] / second[0], error, log=True)


def _normal_end(estimate: float, error: float, *, log: bool = False) -> End:
    """Make an end whose estimate (or the logarithm of it) is normal with this standard error."""

    def interval(level: float) -> tuple[float, float]:
        half = critical_value(0.0, level) * error
        if log:
            return estimate * math.exp(-half), estimate * math.exp(half)
        return max(estimate - half, -1.0), min(estimate + half, 1.0)

    def pvalue(value: float) -> float:
        if error == 0 or (log and value <= 0):
            return 1.0
        gap = math.log(estimate / value) if log else estimate - value
        return float(2 * special.ndtr(-abs(gap) / error))

    return End(estimate=estimate, interval=interval, pvalue=pvalue)
