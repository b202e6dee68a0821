"""The sum of independent hypergeometric counts: one count per stratum, each given the margins of its 2 x 2 table.

The law is the convolution of the strata's laws. Equal strata are folded by repeated doubling, the rest two at a time,
always the two shortest; every product adds numbers above 0, so no digits cancel. Counts with a probability below
`RARE` are left out on the way; whatever is left out has at most the probability `LOST`, which is added to the tails.
Where the sum is so spread out that this would take long, the normal law with a continuity correction and the third
cumulant takes its place (Edgeworth): with a variance above `EXACT_VARIANCE` its error is below a thousandth of the
p-value up to four standard deviations, which `tests/kernels` measures.
"""

from __future__ import annotations

import functools
import heapq
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray, IntArray

EXACT_VARIANCE = 5000.0
RARE, LOST = 1e-20, 1e-15
_TIE = 1e-9
_SHORT = 64  # a law of so few counts is not worth shortening


class HypergeometricSum:
    """Law of the number of successes in the first samples of all strata, given the margins of each.

    Parameters
    ----------
    first, second : array_like of int, shape (S,)
        Rows of the two samples in each stratum.
    successes : array_like of int, shape (S,)
        Successes of both samples in each stratum.

    Examples
    --------
    >>> law = HypergeometricSum([4, 1], [4, 1], [4, 1])
    >>> law.mean, law.exact
    (2.5, True)
    >>> round(law.pvalue(4, "two-sided"), 4)  # (1 / 70 + 16 / 70) / 2 + 1 / 140, on either side
    0.2571
    """

    def __init__(self, first: ArrayLike, second: ArrayLike, successes: ArrayLike) -> None:
        n, m, s = (np.asarray(part, dtype=np.int64) for part in (first, second, successes))
        everyone = n + m
        share, rest = s / everyone, np.maximum(everyone - 1, 1)
        self.mean = float((n * share).sum())
        own = n * share * (1 - share) * m / rest  # (S,)
        self.variance = float(own.sum())
        # Third cumulant of each count; it is 0 in strata of two rows, whatever is divided by.
        third = own * (1 - 2 * share) * (m - n) / np.maximum(everyone - 2, 1)
        self._skewness = float(third.sum()) / self.variance**1.5 if self.variance > 0 else 0.0
        self.low, self.high = int(np.maximum(0, s - m).sum()), int(np.minimum(n, s).sum())
        self.exact = self.variance <= EXACT_VARIANCE
        self._strata = np.stack([n, m, s], 1)

    @functools.cached_property
    def _law(self) -> tuple[int, FloatArray, FloatArray, FloatArray]:
        """Return the smallest count listed, the probabilities, and those of so many or fewer, and or more."""
        start, chance = _folded(self._strata)
        return start, chance, np.cumsum(chance), np.cumsum(chance[::-1])[::-1]

    def tail(self, at: float, *, upper: bool, midp: bool = False) -> float:
        """Return the probability of `at` or more (or fewer), of `at` itself counted half for a mid-p value.

        Parameters
        ----------
        at : float
            A count; between two counts the next one outwards is meant.
        upper : bool
            Whether more is extreme.
        midp : bool
            Whether ties count half.
        """
        place = math.ceil(at - _TIE) if upper else math.floor(at + _TIE)
        tie = midp and abs(place - at) <= 1e-6
        if not self.exact:
            return self._by_limit(place - (0.0 if tie else 0.5) if upper else place + (0.0 if tie else 0.5), upper)
        start, chance, below, above = self._law
        k = place - start
        lost = LOST if chance.size < self.high - self.low + 1 else 0.0
        if k < 0 or k >= chance.size:
            return 1.0 if (k < 0) == upper else lost if self.low <= place <= self.high else 0.0
        whole = float(above[k] if upper else below[k])
        return min(whole - (0.5 * float(chance[k]) if tie else 0.0) + lost, 1.0)

    def _by_limit(self, at: float, upper: bool) -> float:
        z = (at - self.mean) / math.sqrt(self.variance)
        lean = self._skewness / 6 * (z * z - 1) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        tail = special.ndtr(-z) + lean if upper else special.ndtr(z) - lean
        return float(min(max(tail, 0.0), 1.0))

    def pvalue(self, at: int, alternative: str, *, midp: bool = False) -> float:
        """Return the probability of counts at least as extreme as the one seen.

        Parameters
        ----------
        at : int
            The count.
        alternative : {"two-sided", "greater", "less"}
            Two-sided, counts at least as far from the mean are extreme.
        midp : bool
            Whether ties count half.
        """
        if alternative != "two-sided":
            return self.tail(at, upper=alternative == "greater", midp=midp)
        gap = abs(at - self.mean)
        if gap <= _TIE * max(1.0, abs(self.mean)):
            return 1.0
        ends = ((self.mean + gap, True), (self.mean - gap, False))
        return min(1.0, sum(self.tail(end, upper=upper, midp=midp) for end, upper in ends))

    def floor(self, alternative: str) -> float:
        """Return the smallest p-value that these margins allow."""
        ends = {"greater": (self.high,), "less": (self.low,)}.get(alternative, (self.low, self.high))
        return min(self.pvalue(end, alternative) for end in ends)


def _folded(strata: IntArray) -> tuple[int, FloatArray]:
    """Return the smallest count kept and the probabilities from there on."""
    distinct, times = np.unique(strata, axis=0, return_counts=True)
    queue: list[tuple[int, int, int, FloatArray]] = []
    for k, ((n, m, s), often) in enumerate(zip(distinct.tolist(), times.tolist(), strict=True)):
        start, law = _power(*_single(n, m, s), often)
        queue.append((law.size, k, start, law))
    heapq.heapify(queue)
    k = len(queue)
    while len(queue) > 1:
        (_, _, a, one), (_, _, b, two) = heapq.heappop(queue), heapq.heappop(queue)
        start, law = _near(a + b, np.convolve(one, two))
        heapq.heappush(queue, (law.size, k, start, law))
        k += 1
    return (queue[0][2], queue[0][3] / queue[0][3].sum()) if queue else (0, np.ones(1))


def _single(n: int, m: int, s: int) -> tuple[int, FloatArray]:
    """Return the law of one stratum."""
    mean = n * s / (n + m)
    # Ten standard deviations and thirty counts hold all counts that are kept.
    reach = 10 * math.sqrt(mean * (1 - s / (n + m))) + 30
    low, high = max(0, s - m, math.floor(mean - reach)), min(n, s, math.ceil(mean + reach))
    x = np.arange(low, high + 1.0)
    logs = -(special.gammaln(x + 1) + special.gammaln(n - x + 1) + special.gammaln(s - x + 1))
    logs -= special.gammaln(m - s + x + 1)
    law = np.exp(logs - logs.max())
    return _near(low, law / law.sum())


def _power(start: int, law: FloatArray, times: int) -> tuple[int, FloatArray]:
    """Return the law of the sum of so many counts of one law."""
    at, total = (start, law) if times & 1 else (0, np.ones(1))
    times >>= 1
    while times:
        start, law = _near(2 * start, np.convolve(law, law))
        if times & 1:
            at, total = _near(at + start, np.convolve(total, law))
        times >>= 1
    return at, total


def _near(start: int, law: FloatArray) -> tuple[int, FloatArray]:
    """Leave out the counts at both ends that hardly ever come."""
    if law.size < _SHORT:
        return start, law
    kept = np.flatnonzero(law >= RARE)
    return start + int(kept[0]), law[kept[0] : kept[-1] + 1]
