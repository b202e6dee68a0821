"""Two rates on a line of equal difference or ratio: the most likely pair on it, and how far counts lie from it.

The distance is the two-sided tail probability of the likelihood root, modified so that its error is of third order
(Barndorff-Nielsen 1986; Fraser and Reid 1995): near the mid-p value even with few counts and far out in the tails.
Each tail has its own root. The other tail starts at the mirror image of the counts about the most likely pair, which
has the same score statistic on the other side; where the mirror image has a negative count there is no other tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.kernels.counts.binomial import ratio_statistic, score_statistic

# Rates are kept this far from 0 and 1, and counts this far from 0 and all, where a logarithm would be infinite. With
# a hundredth of a count the tail beyond an extreme count is near half its probability, as for mid-p.
_OFF, _CELL = 1e-12, 0.01
# The largest correction of the root.
_MOST = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """All pairs of rates p and q with one difference or ratio.

    Examples
    --------
    >>> Edge(0.1).first(np.array([0.2, 0.95])).round(2).tolist()
    [0.3, 1.05]
    """

    at: float | FloatArray  # the difference p - q or the ratio p / q
    ratio: bool = False  # whether it is a ratio
    f1: bool = False  # whether the values compared are 2 p / (1 + p) and 2 q / (1 + q)

    def first(self, q: FloatArray) -> FloatArray:
        """Return the first rate on this edge, given the second; outside 0 to 1 where there is none."""
        moved = self._moved(q)
        return np.asarray(np.where(moved > 1, 2.0, moved / np.maximum(2 - moved, 1.0)) if self.f1 else moved)

    def _moved(self, q: FloatArray) -> FloatArray:
        value = _f1(q) if self.f1 else q
        return np.asarray(value * self.at if self.ratio else value + self.at)

    def slope(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivative of the first rate in the second."""
        factor = np.asarray(self.at if self.ratio else 1.0, dtype=np.float64)
        if not self.f1:
            return factor, np.zeros(())
        step = factor * _slope(q)
        room = np.maximum(2 - self._moved(q), 1e-9)
        steep = 2 * step / room**2
        return steep, steep * (2 * step / room - 2 / (1 + q))

    def turned(self) -> Edge:
        """Return the same edge seen from the second rate."""
        return Edge(1 / self.at if self.ratio else -self.at, self.ratio, self.f1)

    def statistic(self, x: FloatArray, y: FloatArray, n: int, m: int) -> FloatArray:
        """Return how far success counts lie above the edge, in standard errors (the score statistic)."""
        if self.f1:
            off = 0.1 / (n + m)
            p, q = (np.clip(rate, off, 1 - off) for rate in self.restricted(x, y, n, m))
            factor, shift = (self.at, 0.0) if self.ratio else (1.0, self.at)
            gap = _f1(x / n) - factor * _f1(y / m) - shift
            spread = _slope(p) ** 2 * p * (1 - p) / n + (factor * _slope(q)) ** 2 * q * (1 - q) / m
            return np.asarray(gap / np.sqrt(spread))
        counts = np.stack(np.broadcast_arrays(x, y), -1)
        trials = np.array([n, m], dtype=np.float64)
        if self.ratio:
            return ratio_statistic(counts, trials, self.at)
        return score_statistic(counts, trials, [1, -1], np.broadcast_to(self.at, counts.shape[:-1]))

    def restricted(self, x: FloatArray, y: FloatArray, n: float, m: float) -> tuple[FloatArray, FloatArray]:
        """Return the most likely rates on this edge."""
        if self.f1:
            return self._by_halving(x, y, n, m)
        if self.ratio:  # a quadratic (Koopman 1984)
            phi = np.asarray(self.at)
            half = phi * (n + y) + x + m
            root = np.sqrt(np.maximum(half * half - 4 * (n + m) * phi * (x + y), 0.0))
            q = np.minimum(2 * (x + y) / (half + root), np.minimum(1.0, 1 / np.maximum(phi, 1e-300)))
            return np.asarray(np.minimum(phi * q, 1.0)), np.asarray(q)
        # A cubic with three real roots (Miettinen and Nurminen 1985).
        d, total, whole = np.asarray(self.at), n + m, x + y
        b = ((n + 2 * m) * d - total - whole) / (3 * total)
        c = ((m * d - total - 2 * y) * d + whole) / total
        u = b**3 - b * c / 2 + y * d * (1 - d) / (2 * total)
        v = np.copysign(np.sqrt(np.maximum(b * b - c / 3, 1e-60)), u)
        angle = (math.pi + np.arccos(np.clip(u / v**3, -1, 1))) / 3
        q = np.clip(2 * v * np.cos(angle) - b, np.maximum(-d, 0.0), np.minimum(1 - d, 1.0))
        return np.asarray(np.clip(q + d, 0.0, 1.0)), np.asarray(q)

    def _by_halving(self, x: FloatArray, y: FloatArray, n: float, m: float) -> tuple[FloatArray, FloatArray]:
        """Return the most likely rates by halving: the likelihood has one top."""
        x, y, _ = np.broadcast_arrays(x, y, self.at)
        ends = [np.broadcast_to(self.turned().first(np.array(end)), x.shape) for end in (0.0, 1.0)]
        low, high = np.clip(ends[0], 0.0, 1.0), np.clip(ends[1], 0.0, 1.0)
        for _ in range(40):
            q = np.clip(0.5 * (low + high), _OFF, 1 - _OFF)
            p = np.clip(self.first(q), _OFF, 1 - _OFF)
            rising = (x - n * p) / (p * (1 - p)) * self.slope(q)[0] + (y - m * q) / (q * (1 - q)) > 0
            low, high = np.where(rising, q, low), np.where(rising, high, q)
        q = 0.5 * (low + high)
        return np.clip(self.first(q), 0.0, 1.0), q

    def tails(self, x: FloatArray, y: FloatArray, n: int, m: int) -> FloatArray:
        """Return the two-sided tail probability of the modified likelihood root."""
        p, q = self.restricted(x, y, n, m)
        twin = 2 * n * p - x, 2 * m * q - y
        possible = (twin[0] >= 0) & (twin[0] <= n) & (twin[1] >= 0) & (twin[1] <= m)
        other = np.where(possible, self._tail(np.clip(twin[0], 0, n), np.clip(twin[1], 0, m), p, q, n, m), 0.0)
        return np.asarray(np.minimum(self._tail(x, y, p, q, n, m) + other, 1.0))

    def _tail(self, x: FloatArray, y: FloatArray, p: FloatArray, q: FloatArray, n: int, m: int) -> FloatArray:
        p, q = np.clip(p, _OFF, 1 - _OFF), np.clip(q, _OFF, 1 - _OFF)
        log_p, log_q, log_not_p, log_not_q = np.log(p), np.log(q), np.log1p(-p), np.log1p(-q)
        likely = x * log_p + (n - x) * log_not_p + y * log_q + (m - y) * log_not_q
        root = np.sqrt(np.maximum(2 * (_peak(x, n) + _peak(y, m) - likely), 0.0))
        a, b = p * (1 - p), q * (1 - q)
        steep, bend = self.slope(q)
        known = steep**2 * (x / p**2 + (n - x) / (1 - p) ** 2) - (x - n * p) / a * bend
        known = np.sqrt(np.maximum(known + y / q**2 + (m - y) / (1 - q) ** 2, 1e-300))
        x, y = np.clip(x, _CELL, n - _CELL), np.clip(y, _CELL, m - _CELL)
        one, two = np.sqrt(x * (n - x) / n), np.sqrt(y * (m - y) / m)
        gap_p, gap_q = np.log(x / (n - x)) - log_p + log_not_p, np.log(y / (m - y)) - log_q + log_not_q
        # How much each rate alone tells; at most all of it, also where the other is at the end of its range.
        moved = gap_p * one * np.minimum(two / (b * known), 1.0)
        moved = np.abs(moved - gap_q * two * np.minimum(steep * one / (a * known), 1.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            # Regular counts need less; where a rate ends at 0 or 1 the correction would have no bound.
            star = root + np.clip(np.log(np.maximum(moved, 1e-300) / root) / root, -_MOST, _MOST)
        return np.where(root > 0.02, special.ndtr(-np.where(root > 0.02, star, 0.0)), 0.5)


def _peak(x: FloatArray, n: int) -> FloatArray:
    """Return the largest log-likelihood of x successes of n."""
    return np.asarray(special.xlogy(x, x / n) + special.xlogy(n - x, 1 - x / n))


def _f1(p: FloatArray) -> FloatArray:
    return 2 * p / (1 + p)


def _slope(p: FloatArray) -> FloatArray:
    return 2 / (1 + p) ** 2
