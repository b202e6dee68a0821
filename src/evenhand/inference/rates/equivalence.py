"""Exact equivalence test of two rates, by the worst value of the rate that is left free.

With a margin the success counts have no conditional law that is free of unknowns, so the exact test is
unconditional (Chan and Zhang 1999 for one side). The statistic is that of two one-sided score tests, the smaller of the
distances from both ends of the margin. All pairs of counts at least as far inside as the observed pair are
counted, and their probability is taken where it is largest, over all rates on both ends. So the p-value is
near that of the two score tests where those are right. In small samples they are not: on the margin they
claimed equivalence with probability up to .069 at a nominal .05.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.inference.limits import crossing
from evenhand.kernels.counts.binomial import near_counts
from evenhand.kernels.counts.rate_lines import Edge

# Trials of the smaller sample up to which the exact test is made. Beyond, at worst over all rates, the score
# tests claimed equivalence with probability up to .055; .059 for `ratio:0.5`, rare successes and unequal samples.
EXACT_TRIALS = 500
# Values of the free rate tried, and tried again near the worst one.
_GRID = 129
# Counts this many standard deviations from their mean are left out: their probability is below 1e-15.
_FAR = 9.0
_TIE = 1e-9


def first_passing(test: Callable[[IntArray], BoolArray], start: IntArray, top: int) -> IntArray:
    """Return for each place the least whole number from `start` to `top` that passes; ``top + 1`` for none."""
    low, high = start - 1, np.full(start.shape, top + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        open_, passed = high - low > 1, test(np.clip(middle, start, top))
        high, low = np.where(open_ & passed, middle, high), np.where(open_ & ~passed, middle, low)
    return high


Ends = tuple[Edge | None, Edge | None]  # None on a side without a margin
Limits = tuple[IntArray, IntArray]


def _inside(ends: Ends, bar: float, n: int, m: int) -> Limits:
    """Return for each second count the least and the largest first count at least `bar` inside both ends."""
    low, high = ends
    y, zero = np.arange(m + 1.0), np.zeros(m + 1, dtype=np.int64)
    least, most = zero, zero + n
    if low is not None:
        least = first_passing(lambda x: low.statistic(x.astype(np.float64), y, n, m) >= bar, zero, n)
    if high is not None:
        most = first_passing(lambda x: high.statistic(x.astype(np.float64), y, n, m) > -bar, zero, n) - 1
    return least, most


def _mass(limits: Limits, p: FloatArray, q: FloatArray, n: int, m: int) -> FloatArray:
    """Return the probability of first counts between the limits of the second, for rates p and q (G,)."""
    y = near_counts(m, q, _FAR, _FAR)
    least, most = (side[y] for side in limits)
    between = _upper(least, n, p[:, None]) - _upper(np.maximum(most + 1, least), n, p[:, None])
    return np.asarray((binomial_chance(y, m, q[:, None]) * between).sum(-1))


def binomial_chance(k: IntArray, n: int, p: float | FloatArray) -> FloatArray:
    """Return the binomial probability of exactly `k`.

    Parameters
    ----------
    k : ndarray of int
        Successes.
    n : int
        Trials.
    p : float or ndarray
        Rate.

    Examples
    --------
    >>> binomial_chance(np.arange(3), 2, 0.5).round(9).tolist()
    [0.25, 0.5, 0.25]
    """
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


def _upper(k: IntArray, n: int, p: FloatArray) -> FloatArray:
    """Return the binomial probability of at least `k`."""
    inside = special.betainc(np.clip(k, 1, n), np.clip(n - k + 1, 1, None), p)
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, inside))


def _worst(ends: Ends, bar: float, n: int, m: int) -> float:
    """Return the largest probability of counts at least `bar` inside, over all rates on either end."""
    limits, worst = _inside(ends, bar, n, m), 0.0
    for edge in filter(None, ends):
        # Even steps of the angle: rates near 0 and 1 change the law faster.
        q = np.sin(np.linspace(0, math.pi / 2, _GRID)) ** 2
        for _ in range(2):
            p = edge.first(q)
            known = (p >= 0) & (p <= 1)
            if not known.any():
                break
            q, p = q[known], p[known]
            chance = _mass(limits, p, q, n, m)
            best = int(np.argmax(chance))
            worst = max(worst, float(chance[best]))
            q = np.linspace(q[max(best - 1, 0)], q[min(best + 1, q.size - 1)], _GRID // 4)
    return min(worst, 1.0)


def exact_equivalence(
    successes: tuple[int, int], trials: tuple[int, int], low: float, high: float, *, ratio: bool, f1: bool = False
) -> float:
    """Return the exact p-value against "the difference (or ratio) of two rates lies outside (low, high)".

    Parameters
    ----------
    successes, trials : tuple of int
        Of the two samples.
    low, high : float
        The ends of the margin; without an upper end, infinite, the test is of one side only.
    ratio, f1 : bool
        As in `Edge`.

    Examples
    --------
    >>> round(exact_equivalence((45, 44), (50, 50), -0.2, 0.2, ratio=False), 4)
    0.0055
    >>> round(exact_equivalence((45, 44), (50, 50), 0.8, math.inf, ratio=True), 4)
    0.0025
    """
    (x, y), (n, m) = successes, trials
    ends: Ends = (Edge(low, ratio, f1), None if high == math.inf else Edge(high, ratio, f1))
    if n < m:  # the sum runs over the smaller sample
        x, y, n, m, ends = y, x, m, n, (ends[1] and ends[1].turned(), ends[0] and ends[0].turned())
    signs = ((end, sign) for end, sign in zip(ends, (1.0, -1.0), strict=True) if end is not None)
    bar = min(sign * float(end.statistic(np.array(float(x)), np.array(float(y)), n, m)) for end, sign in signs)
    # Never below the score tests' own p-value: equivalence is not claimed where their interval leaves the margin.
    return 1.0 if bar < 0 else max(_worst(ends, bar - _TIE, n, m), float(special.ndtr(-bar)))


def claimed_tables(
    trials: tuple[int, int], low: float, high: float, alpha: float, *, ratio: bool, f1: bool = False
) -> BoolArray:
    """Return for which pairs of success counts the exact test shows equivalence.

    Parameters
    ----------
    trials : tuple of int
        Of the two samples.
    low, high, ratio, f1
        As in `exact_equivalence`.
    alpha : float
        Level.

    Returns
    -------
    ndarray of bool, shape (n + 1, m + 1)

    Examples
    --------
    >>> claimed_tables((8, 8), -0.5, 0.5, 0.05, ratio=False).sum(1).tolist()
    [2, 3, 2, 1, 1, 1, 2, 3, 2]
    """
    n, m = trials
    ends = (Edge(low, ratio, f1), Edge(high, ratio, f1))
    if n < m:
        low, high = (float(end.turned().at) for end in (ends[1], ends[0]))
        return claimed_tables((m, n), low, high, alpha, ratio=ratio, f1=f1).T
    small = large = float(-special.ndtri(alpha))  # the score tests' value, and a little more where that is not enough
    while _worst(ends, large, n, m) > alpha and large < 40:
        small, large = large, large + 0.25
    bar = crossing(lambda bar: _worst(ends, bar, n, m) <= alpha, large, small, tolerance=3e-5)
    least, most = _inside(ends, bar, n, m)
    x = np.arange(n + 1)[:, None]
    return np.asarray((least <= x) & (x <= most))


def chance_inside(
    trials: tuple[int, int], rates: tuple[float, float], low: float, high: float, alpha: float, *, ratio: bool, f1: bool
) -> float:
    """Return the probability that two samples show equivalence by the exact test.

    Parameters
    ----------
    trials : tuple of int
        Of the two samples.
    rates : tuple of float
        Their true rates.
    low, high, ratio, f1
        As in `exact_equivalence`.
    alpha : float
        Level.

    Examples
    --------
    >>> round(chance_inside((40, 40), (0.9, 0.9), -0.2, 0.2, 0.05, ratio=False, f1=False), 3)
    0.733
    """
    claimed = claimed_tables(trials, low, high, alpha, ratio=ratio, f1=f1)
    return chance_of(claimed, rates)


def chance_of(tables: BoolArray, rates: tuple[float, float]) -> float:
    """Return the probability of the marked pairs of success counts, (n + 1, m + 1), under these rates."""
    p, q = (binomial_chance(np.arange(n), n - 1, rate) for n, rate in zip(tables.shape, rates, strict=True))
    return float(p @ tables @ q)
