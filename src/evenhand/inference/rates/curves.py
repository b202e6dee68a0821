"""One p-value for every difference or ratio of two rates: the test and its inversion, the interval, in one curve.

At each value the tables are ordered by the two-sided tail of the modified likelihood root (`counts.rate_lines`),
which is near the mid-p value, and at equality by the mid-p value itself (`rates.equality`). The p-value is
the largest probability of tables at least as extreme, over all rates that have this difference or ratio and that
the data leave possible. It is summed exactly at a dozen values on either side of the estimate and at equality; between
them the ratio of the exact p-value to the ordering tail, which varies little, is interpolated. Away from the
estimate the curve never rises. So an interval leaves a value out exactly when the p-value there is at most one
minus its level. In large samples the curve is the tail itself, scaled to the p-value at equality.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.inference.rates.equality import SPENT, equality_pvalue, exact_sizes, log_factorials, possible_rates
from evenhand.inference.rates.equivalence import first_passing
from evenhand.kernels.counts.rate_lines import Edge

# Tails at which the p-value is summed exactly; in small samples, where it jumps and is soon summed, at more of them.
_KNOTS = (0.6, 0.3, 0.15, 0.08, 0.04, 0.02, 0.009, 0.003, 8e-4, 1e-4, 1e-6, 1e-9)
_MORE, _SMALL, _TINY = 16, 60, 25
_GRID = 41  # values of the free rate
_FAR = 8.0
_TIE = 1e-7
_FLOOR = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The curve on one side of the estimate."""

    at: FloatArray  # (L,): rising values (of a ratio the logarithms), from or up to the estimate
    pvalue: FloatArray  # (L,): logarithms of the p-values there, never rising away from the estimate

    def turned(self) -> _Side:
        """Return the side for the samples in the other order."""
        return _Side(-self.at[::-1], self.pvalue[::-1])


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """P-values of all differences or ratios of two rates.

    Examples
    --------
    >>> curve = curve_of((7, 1), (34, 34))
    >>> round(curve.pvalue(0.0), 4)
    0.0281
    >>> [round(end, 3) for end in curve.interval(0.95)]
    [0.027, 0.347]
    """

    # successes, trials: of the two samples.
    successes: tuple[int, int]
    trials: tuple[int, int]
    # ratio, f1: as in `Edge`.
    ratio: bool
    f1: bool
    sides: tuple[_Side | None, _Side | None]  # below and above the estimate
    given_total: bool = False  # as in `curve_of`

    @property
    def estimate(self) -> float:
        """The difference or ratio seen; infinite, or NaN for 0/0, without successes in the second sample."""
        p, q = (x / n for x, n in zip(self.successes, self.trials, strict=True))
        if self.f1:
            p, q = 2 * p / (1 + p), 2 * q / (1 + q)
        if not self.ratio:
            return p - q
        return p / q if q > 0 else math.inf if p > 0 else math.nan

    def pvalue(self, value: float) -> float:
        """Return the two-sided p-value of one difference or ratio.

        Parameters
        ----------
        value : float
            What is tested.
        """
        estimate = self.estimate
        if math.isnan(estimate) or value == estimate:
            return 1.0
        low, high = (0.0, math.inf) if self.ratio else (-1.0, 1.0)
        if not low <= value <= high:
            return 0.0
        side = self.sides[value > estimate]
        if side is None:
            return 1.0
        place = -math.inf if self.ratio and value == 0 else math.log(value) if self.ratio else value
        return math.exp(float(np.interp(place, side.at, side.pvalue)))

    def log_pvalues(self, differences: FloatArray) -> FloatArray:
        """Return the logarithms of the two-sided p-values of differences between -1 and 1."""
        below, above = (
            np.zeros(differences.shape) if side is None else np.interp(differences, side.at, side.pvalue)
            for side in self.sides
        )
        return np.where(differences == self.estimate, 0.0, np.where(differences > self.estimate, above, below))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the values whose p-value is above one minus the level.

        Parameters
        ----------
        level : float
            Coverage.
        """
        below, above = self.sides
        low, high = (0.0, math.inf) if self.ratio else (-1.0, 1.0)
        if below is not None:
            low = self._limit(below.at[::-1], below.pvalue[::-1], 1 - level, low)
        if above is not None:
            high = self._limit(above.at, above.pvalue, 1 - level, high)
        return low, high

    def _limit(self, at: FloatArray, logs: FloatArray, alpha: float, end: float) -> float:
        """Return the farthest value whose p-value is above alpha; values run from the estimate outwards."""
        out = logs <= math.log(alpha)
        if not out.any():
            return end
        k = int(np.argmax(out))
        if k == 0:
            return self.estimate
        inner, outer = logs[k - 1], logs[k]
        place = float(at[k] + (at[k - 1] - at[k]) * ((math.log(alpha) - outer) / (inner - outer)))
        farthest = math.exp(place) if self.ratio else place
        # The end itself is inside: by rounding it may seem left out, or equality may seem kept that is left out.
        for _ in range(8):
            if self.pvalue(farthest) > alpha:
                break
            farthest = math.nextafter(farthest, self.estimate)
        return farthest


@functools.lru_cache(maxsize=5_000)
def curve_of(
    successes: tuple[int, int],
    trials: tuple[int, int],
    *,
    ratio: bool = False,
    f1: bool = False,
    given_total: bool = False,
) -> Curve:
    """Return the curve of two samples.

    Parameters
    ----------
    successes, trials : tuple of int
        Of the two samples; every trial count at least 1.
    ratio, f1 : bool
        As in `Edge`.
    given_total : bool
        Whether the number of all successes is fixed, so that the p-value of equality is the conditional one.

    Examples
    --------
    >>> curve = curve_of((56, 48), (70, 80), ratio=True)
    >>> [round(end, 2) for end in curve.interval(0.95)]
    [1.08, 1.67]
    """
    empty = Curve(successes, trials, ratio, f1, (None, None), given_total)
    estimate, (x, y), (n, m) = empty.estimate, successes, trials
    if math.isnan(estimate):
        return empty
    if (n, x) > (m, y):  # one order for both namings: the same digits
        below, above = curve_of((y, x), (m, n), ratio=ratio, f1=f1, given_total=given_total).sides
        return replace(empty, sides=(above and above.turned(), below and below.turned()))
    return replace(empty, sides=(_side(empty, estimate, -1), _side(empty, estimate, +1)))


def _places(curve: Curve, sign: int) -> FloatArray | None:
    """Return values below (-1) or above (+1) the estimate, of a ratio the logarithms; None where there are none."""
    (x, y), (n, m), estimate = curve.successes, curve.trials, curve.estimate
    p, q = (x + 1) / (n + 2), (y + 1) / (m + 2)
    fine, coarse = np.arange(0.1, 8.05, 0.1), np.linspace(0, 1, 40)[1:]
    if curve.ratio:
        if (sign < 0 and x == 0) or (sign > 0 and y == 0):
            return None
        # Without successes in a sample the estimate is 0 or infinite: start where a twentieth of one is expected.
        ends = (max(x, 0.05) / n, max(y, 0.05) / m)
        start = math.log(ends[0] / ends[1])
        if curve.f1:
            start += math.log1p(ends[1]) - math.log1p(ends[0])
        error, equal = math.sqrt((1 - p) / (p * n) + (1 - q) / (q * m)), 0.0
        steps = np.concatenate([error * fine, 8 * error + (60 + 2 * abs(start)) * coarse])
    else:
        if estimate == sign:
            return None
        start, equal, room = estimate, 0.0, 1 - sign * estimate
        error = math.sqrt(p * (1 - p) / n + q * (1 - q) / m)
        reach = min(8 * error, 0.9 * room)
        steps = np.concatenate([reach * fine / 8, reach + (room - reach) * coarse])
    at = start + sign * steps
    if not curve.ratio:
        at[-1] = sign
    if sign * (equal - start) > 0:
        at = np.unique(np.append(at, equal))[::sign]
    return at


def _side(curve: Curve, estimate: float, sign: int) -> _Side | None:
    """Return the curve below (-1) or above (+1) the estimate; None where no value lies there."""
    at = _places(curve, sign)
    if at is None:
        return None
    (x, y), (n, m), ratio, f1 = curve.successes, curve.trials, curve.ratio, curve.f1
    values = np.exp(at) if ratio else at
    tail = Edge(values, ratio, f1).tails(np.array(float(x)), np.array(float(y)), n, m)
    # Never rising outwards: where a rate ends at 0 or 1 the tail itself may.
    logs = np.log(np.maximum.accumulate(np.maximum(tail, _FLOOR)[::-1])[::-1])
    equal = np.flatnonzero(at == 0.0) if estimate != (1.0 if ratio else 0.0) else np.array([], dtype=np.int64)
    equality = exact_pvalue if curve.given_total else equality_pvalue
    known = math.log(max(equality(curve.successes, curve.trials)[0], _FLOOR))
    if exact_sizes(n, m):
        knots = np.log(_KNOTS)
        if min(n, m) <= _SMALL:
            knots = np.concatenate([knots, np.linspace(math.log(0.9), math.log(1e-4), _MORE)])
        picked = np.unique(np.clip(np.searchsorted(-logs, -knots), 0, logs.size - 1))
        if min(n, m) <= _TINY:  # wherever the tail is listed
            picked = np.union1d(picked, np.flatnonzero(logs > math.log(1e-4)))
        exact = _summed(values[picked], tail[picked], (x, y), (n, m), ratio, f1)
        ratios = np.log(np.maximum(exact, _FLOOR)) - logs[picked]
    else:
        picked, ratios = np.array([], dtype=np.int64), np.array([])
    if equal.size:
        picked, ratios = picked[picked != equal[0]], ratios[picked != equal[0]]
        place = int(np.searchsorted(picked, equal[0]))
        picked, ratios = np.insert(picked, place, equal), np.insert(ratios, place, known - logs[equal])
    # The ratio of p-value to tail, interpolated in the tail; from the estimate outwards.
    more = np.interp(-logs, -logs[picked], ratios) if picked.size else 0.0
    pvalues = np.minimum(logs + more, 0.0)
    if equal.size:  # the p-value at equality stands: those farther out are not above it, those nearer not below
        k = int(equal[0])
        pvalues[k] = min(known, 0.0)
        pvalues[k:] = np.maximum.accumulate(np.minimum(pvalues[k:], pvalues[k])[::-1])[::-1]
        pvalues[: k + 1] = np.maximum.accumulate(pvalues[: k + 1][::-1])[::-1]
    else:
        pvalues = np.maximum.accumulate(pvalues[::-1])[::-1]
    if estimate not in (0.0, math.inf) or not ratio:
        at, pvalues = np.insert(at, 0, math.log(estimate) if ratio else estimate), np.insert(pvalues, 0, 0.0)
    return _Side(at[::sign], pvalues[::sign])


def _summed(
    values: FloatArray, bars: FloatArray, counts: tuple[int, int], trials: tuple[int, int], ratio: bool, f1: bool
) -> FloatArray:
    """Return the exact p-values of differences or ratios (K,) whose tails are `bars`."""
    (x, y), (n, m) = counts, trials
    if n > m:  # the sum runs over the smaller sample
        turned = Edge(values, ratio, f1).turned().at
        return _summed(np.asarray(turned), bars, (y, x), (m, n), ratio, f1)
    edge = Edge(values[:, None], ratio, f1)
    bar = bars[:, None] * (1 + _TIE)
    rows = np.arange(n + 1.0)
    middle = m * np.clip(edge.turned().first(rows / n), 0.0, 1.0)  # (K, n + 1): no difference from the value tested

    def extreme(second: IntArray) -> BoolArray:
        return np.asarray(edge.tails(rows, second.astype(np.float64), n, m) <= bar)

    # Second counts so far from the middle that they are extreme: all above the one, all below the other.
    above = first_passing(extreme, np.ceil(middle - 1e-9).astype(np.int64), m)
    below = -first_passing(lambda k: extreme(-k), -np.floor(middle + 1e-9).astype(np.int64), 0)
    above[:, x] = np.where(y >= middle[:, x], np.minimum(above[:, x], y), above[:, x])
    below[:, x] = np.where(y <= middle[:, x], np.maximum(below[:, x], y), below[:, x])
    return np.minimum(_worst(edge, above, below, counts, (n, m)) + SPENT, 1.0)


def _worst(
    edge: Edge, above: IntArray, below: IntArray, counts: tuple[int, int], trials: tuple[int, int]
) -> FloatArray:
    """Return the largest probability of extreme counts, over rates on the edge that the data leave possible."""
    (x, y), (n, m) = counts, trials
    own, other = possible_rates(x, n, SPENT / 2), possible_rates(y, m, SPENT / 2)
    ends = [edge.turned().first(np.array(end)) for end in own]  # the second rates that go with the first one's limits
    low, high = np.maximum(ends[0], other[0]), np.minimum(np.where(ends[1] > 1, 1.0, ends[1]), other[1])
    empty = (low > high)[:, 0]
    low, high = np.clip(low, 0.0, 1.0), np.clip(np.maximum(low, high), 0.0, 1.0)
    a, b = np.arcsin(np.sqrt(low)), np.arcsin(np.sqrt(high))
    q = np.sin(a + (b - a) * np.linspace(0, 1, _GRID)) ** 2  # (K, G)
    p = np.clip(edge.first(q), 0.0, 1.0)
    log = log_factorials(max(n, m))
    first = _law(np.arange(n + 1), n, p[..., None], log)  # (K, G, n + 1)
    width = int(2 * (_FAR * math.sqrt(m * float((q * (1 - q)).max())) + 2 * _FAR)) + 2
    start = np.maximum(np.floor(m * q - width / 2).astype(np.int64), 0)
    second = start[..., None] + np.arange(min(width, m + 1))
    law = np.where(second <= m, _law(np.minimum(second, m), m, q[..., None], log), 0.0)
    upto = np.concatenate([np.zeros((*q.shape, 1)), np.cumsum(law, -1)], -1)  # chance of fewer than start + j
    last = upto.shape[-1] - 1

    def fewer(than: IntArray) -> FloatArray:
        at = np.clip(than[:, None, :] - start[..., None], 0, last)
        return np.asarray(np.take_along_axis(upto, at, -1))

    extreme = fewer(below + 1) + np.maximum(upto[..., -1:] - fewer(above), 0.0)
    return np.asarray(np.where(empty, 0.0, _top((first * np.minimum(extreme, 1.0)).sum(-1))))


def _top(values: FloatArray) -> FloatArray:
    """Return the largest of values (K, G) on an even grid, between its points by the parabola through three."""
    best = np.clip(values.argmax(-1), 1, values.shape[-1] - 2)[:, None]
    left, middle, right = (np.take_along_axis(values, best + step, -1)[:, 0] for step in (-1, 0, 1))
    bend = np.minimum(left - 2 * middle + right, -1e-300)
    inside = np.maximum(left, right) <= middle
    return np.asarray(np.where(inside, middle - (right - left) ** 2 / (8 * bend), values.max(-1)))


def _law(k: IntArray, n: int, p: FloatArray, log: FloatArray) -> FloatArray:
    """Return binomial probabilities."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = np.log(p), np.log1p(-p)
        inner = log[n] - log[k] - log[n - k] + np.where(k > 0, k * yes, 0.0) + np.where(k < n, (n - k) * no, 0.0)
    return np.asarray(np.exp(inner))
