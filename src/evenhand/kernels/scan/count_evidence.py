"""How unlikely counts are when successes are dealt out at random, for many subsets at once.

Of `rows` rows `successes` are successes; a subset of size m then holds a hypergeometric number of them. The evidence of
a count x is minus the logarithm of the chance of a count at least as far from the mean. Where the variance is large the
normal law with a continuity correction takes the place of the sum: any fixed increasing function of the distance from
the mean gives a valid permutation test, and this one makes subsets of all sizes comparable.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray

# Variances above which the normal law is used.
LARGE = 400.0
# Evidence beyond this is all the same: a chance below 1e-260.
MOST = 600.0
_TIE = 1e-9  # distances from the mean that differ by rounding only


class CountEvidence:
    """The evidence of counts of successes in subsets of given sizes.

    Parameters
    ----------
    size : array_like of int, shape (S,)
        Rows of each subset.
    rows, successes : int
        Of everybody.

    Examples
    --------
    >>> tea = CountEvidence(np.array([4, 2]), rows=8, successes=4)
    >>> np.exp(-tea(np.array([[3, 1], [4, 2]]))).round(4).tolist()
    [[0.4857, 1.0], [0.0286, 0.4286]]
    """

    def __init__(self, size: IntArray, *, rows: int, successes: int) -> None:
        m = np.asarray(size, dtype=np.int64)
        self.size, self.rows, self.successes = m, rows, successes
        share = successes / max(rows, 1)
        self.mean = m * share
        variance = m * share * (1 - share) * ((rows - m) / max(rows - 1, 1))
        self.spread = np.sqrt(variance)
        self._large = np.flatnonzero(variance > LARGE)
        self._small = np.flatnonzero(variance <= LARGE)
        distinct, place = np.unique(m[self._small], return_inverse=True)
        laws = [_law(int(n), rows, successes) for n in distinct]
        start = np.cumsum([0, *(law.size for _, law in laws)])
        self._table = np.concatenate([law for _, law in laws]) if laws else np.empty(0)
        self._shift = (start[:-1] - np.array([low for low, _ in laws], dtype=np.int64))[place.reshape(-1)]
        self._low = np.array([low for low, _ in laws], dtype=np.int64)[place.reshape(-1)]
        self._high = self._low + np.array([law.size - 1 for _, law in laws], dtype=np.int64)[place.reshape(-1)]

    def __call__(self, counts: np.ndarray) -> FloatArray:
        """Return the evidence of counts of shape (..., S)."""
        x = np.asarray(counts)
        out = np.empty(x.shape, dtype=np.float64)
        if self._small.size:
            own = np.clip(x[..., self._small].astype(np.int64), self._low, self._high)
            out[..., self._small] = self._table[own + self._shift]
        if self._large.size:
            at = self._large
            deviate = np.maximum(np.abs(x[..., at] - self.mean[at]) - 0.5, 0.0) / self.spread[at]
            out[..., at] = np.minimum(-special.log_ndtr(-deviate) - math.log(2), MOST)
        return out

    def most(self) -> FloatArray:
        """Return the largest evidence that each subset could give, whatever its count."""
        low, high = np.maximum(0, self.size - (self.rows - self.successes)), np.minimum(self.size, self.successes)
        return np.maximum(self(low), self(high))


def _law(size: int, rows: int, successes: int) -> tuple[int, FloatArray]:
    """Return the smallest count listed and the evidence of each count from there on."""
    lowest, highest = max(0, size - (rows - successes)), min(size, successes)
    mean = size * (successes / rows)
    reach = 30 + 36 * math.sqrt(mean * (1 - successes / rows) * ((rows - size) / max(rows - 1, 1)))
    low, high = max(lowest, math.floor(mean - reach)), min(highest, math.ceil(mean + reach))
    x = np.arange(low, high, dtype=np.float64)
    steps = np.log((successes - x) / (x + 1)) + np.log((size - x) / (rows - successes - size + x + 1))
    log_chance = np.concatenate([[0.0], np.cumsum(steps)])
    chance = np.exp(log_chance - log_chance.max())
    chance /= chance.sum()
    far = np.abs(np.arange(low, high + 1) - mean)
    order = np.argsort(-far, kind="stable")
    tail = np.cumsum(chance[order])
    # Counts on both sides that are equally far belong together: each gets the sum over both.
    last = np.searchsorted(-far[order], -far[order] + _TIE * max(mean, 1.0), side="right") - 1
    evidence = np.empty(far.size)
    evidence[order] = np.minimum(-np.log(np.clip(tail[last], math.exp(-MOST), 1.0)), MOST)
    return low, evidence
