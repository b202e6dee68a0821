"""K rates against the best of them, which is chosen by the same data, and that is paid for.

With rates p_1, ..., p_K the ratio to the best is rho_a = p_a / max_b p_b = min_b p_a / p_b. So each statement about
rho_a is one about pairs, and holds whichever sample is the best:

* rho_a lies below a value r as soon as *some* p_a / p_b does. All K - 1 pairs are looked at and the smallest p-value
  counts, so it is compared with the law of the largest of K - 1 statistics. They all contain p_a. The more of their
  variance it makes up, the more alike they are and the less the choice costs: a small sample among large ones pays
  next to nothing. Their dependence is that of the normal law, the p-values keep their own. No p-value exceeds K / 2
  times the smallest of its pairs'.
* rho_a lies above r only if *every* p_a / p_b does: an intersection-union test, which needs no correction.

The interval inverts both. The sample seen to be best is not tested; the K - 1 others are corrected for their number
elsewhere. So a false finding has probability at most alpha: with all rates equal, K / 2 times K - 1 is Bonferroni over
all K (K - 1) / 2 pairs, and the law of the largest, taken where it asks for less, leaves each of K samples a chance
of at most alpha / (2 K - 2) to be falsely found worse. Differences p_a - max_b p_b are treated alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.inference.limits import crossing
from evenhand.inference.rates.equivalence import EXACT_TRIALS, exact_equivalence
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.rates.weighted import WeightedRateSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.counts.binomial import ratio_interval, score_interval
from evenhand.kernels.counts.rate_lines import Edge

# Values of the part that all statistics share, over which the law of their largest is summed.
_NODES = np.linspace(-9.0, 13.0, 1101)
_DENSITY = np.exp(-0.5 * _NODES**2) / math.sqrt(2 * math.pi) * (_NODES[1] - _NODES[0])
# More than this is not taken to be shared: the sum stays smooth, and less in common makes p-values larger.
_MOST_SHARED = 0.99
# Below this the sum loses digits and the union bound is as good.
_TINY = 1e-13
# Levels at which the pairs that decide are looked for, and how many are kept at each.
_LEVELS, _KEPT = (0.95, 0.9999), 2
_DRAWS = Draws()  # nothing is drawn


Rates = RateSamples | WeightedRateSamples


def largest_pvalue(pvalue: float, shared: FloatArray) -> float:
    """Return the two-sided p-value of the most extreme of several statistics, from its own.

    Parameters
    ----------
    pvalue : float
        Two-sided, of the most extreme statistic alone.
    shared : ndarray, shape (m,)
        Each statistic's correlation with the part that all share; 0 where they are independent.

    Returns
    -------
    float
        Between the p-value and `(m + 1) / 2` times it, which is enough where of all `m + 1` samples only the one that
        is best is not tested.

    Examples
    --------
    >>> round(largest_pvalue(0.01, np.zeros(4)), 4), round(largest_pvalue(0.01, np.full(4, 0.99)), 4)
    (0.025, 0.0146)
    """
    most = min((len(shared) + 1) / 2 * pvalue, 1.0)
    if len(shared) < 2 or most < _TINY or pvalue >= 1:
        return most
    load = np.minimum(shared, _MOST_SHARED)
    bar = -special.ndtri(pvalue / 2)
    below = special.log_ndtr((bar - load * _NODES[:, None]) / np.sqrt(1 - load**2)).sum(1)
    return float(min(max(2 * (_DENSITY @ -np.expm1(below)), pvalue), most))


class Best:
    """Rates compared with the highest of them.

    Parameters
    ----------
    samples : RateSamples or WeightedRateSamples
        The rates.
    ratio : bool
        Whether a rate is divided by the highest one; otherwise that is subtracted.
    among : sequence of int, optional
        The samples compared; by default all.

    Attributes
    ----------
    members : tuple of int
        Those of them that have a value.
    highest : int
        The one whose rate is highest here, the first of several.

    Examples
    --------
    >>> best = Best(RateSamples.from_counts([45, 70, 12], [150, 175, 60]), ratio=True)
    >>> best.highest, round(best.estimate(2), 3)
    (1, 0.5)
    >>> [round(end, 3) for end in best.interval(2, 0.95)[:2]]
    [0.288, 0.861]
    >>> round(best.pvalue(2, 1.0), 4), round(best.pvalue(2, 0.8), 4)
    (0.0103, 0.1046)
    """

    def __init__(self, samples: Rates, *, ratio: bool, among: Sequence[int] | None = None) -> None:
        self.samples, self.ratio = samples, ratio
        compared = range(len(samples.reason)) if among is None else among
        self.members = tuple(k for k in compared if not samples.reason[k])
        self.highest = max(self.members, key=lambda k: (float(samples.estimate[k]), -k), default=-1)
        self._none = 1.0 if ratio else 0.0  # the value of the best itself
        self._f1 = isinstance(samples, RateSamples) and samples.transformed
        self._kept: dict[tuple[int, bool], list[int]] = {}

    def estimate(self, a: int) -> float:
        """Return the rate over the highest one, or minus it; NaN for the ratio where all rates are 0."""
        own, top = float(self.samples.estimate[a]), float(self.samples.estimate[self.highest])
        return own - top if not self.ratio else own / top if top > 0 else math.nan

    def pvalue(self, a: int, at: float) -> float:
        """Return the two-sided p-value against "it is at least `at`", whichever sample is the best."""
        least = min((self._below(a, b, at) for b in self._rivals(a, lowest=False)), default=1.0)
        return 1.0 if least >= 1 else largest_pvalue(least, self._shared(a, at))

    def inside(self, a: int, at: float) -> float:
        """Return the one-sided p-value against "it is at most `at`", whichever sample is the best."""
        return max((self._above(a, b, at) for b in self._rivals(a, lowest=True)), default=1.0)

    def interval(self, a: int, level: float) -> tuple[float, float, str]:
        """Return low, high and kind of the interval; it leaves a value out just when the p-value there is small."""
        estimate = self.estimate(a)
        rivals = self._rivals(a, lowest=True)
        ends = [self.samples.interval(a, b, level=level, ratio=self.ratio, draws=_DRAWS) for b in rivals]
        low, _, kind = min(ends)
        high = self._none
        if estimate < high:
            high = crossing(lambda at: self.pvalue(a, at) > 1 - level, estimate, high, tolerance=1e-9)
        return min(low, estimate), high, f"{kind}, whichever group is highest"

    def _below(self, a: int, b: int, at: float) -> float:
        """Return the two-sided p-value of one pair against "it is at least `at`"."""
        if at == self._none:  # the test of equality, which the limits pass through
            less = self.samples.estimate[a] < self.samples.estimate[b]
            return self.samples.test(a, b, _DRAWS).pvalue if less else 1.0
        return self.samples.beyond(a, b, low=at, high=math.inf, ratio=self.ratio, draws=_DRAWS)

    def _above(self, a: int, b: int, at: float) -> float:
        """Return the one-sided p-value of one pair against "it is at most `at`"."""
        low = 0.0 if self.ratio else -math.inf
        both = self.samples.beyond(a, b, low=low, high=at, ratio=self.ratio, draws=_DRAWS)
        if both >= 1:
            return 1.0
        x, n = self.samples.successes[[a, b]].tolist(), self.samples.trials[[a, b]].tolist()
        if min(n) > EXACT_TRIALS:
            return both / 2
        # Half of a two-sided exact p-value may be too small for one side.
        one = exact_equivalence((x[0], x[1]), (n[0], n[1]), at, math.inf, ratio=self.ratio, f1=self._f1)
        return max(both / 2, one)

    def _others(self, a: int) -> list[int]:
        return [b for b in self.members if b != a]

    def _rivals(self, a: int, *, lowest: bool) -> Sequence[int]:
        """Return the samples that may decide: in which pairs with `a` the lower, or the upper, limits are lowest.

        Exact limits take long and those of the score test do not. A sample left out of the upper limits makes them
        wider, never too narrow.
        """
        samples, others = self.samples, self._others(a)
        if len(others) <= _KEPT:
            return others
        if (a, lowest) not in self._kept:
            pairs = np.array([[a, b] for b in others])
            x, n = samples.successes[pairs], samples.trials[pairs]
            kept: set[int] = set()
            for level in _LEVELS:
                ends = ratio_interval(x, n, level) if self.ratio else score_interval(x, n, [1, -1], level)
                kept |= {others[k] for k in np.argsort(ends[0 if lowest else 1], kind="stable")[:_KEPT]}
            self._kept[a, lowest] = sorted(kept)
        return self._kept[a, lowest]

    def _shared(self, a: int, at: float) -> FloatArray:
        """Return the correlation of each pair's statistic with the part of sample `a` in it."""
        samples, others = self.samples, self._others(a)
        edge = Edge(max(at, 1e-9) if self.ratio else at, self.ratio, self._f1)
        members = list(self.members)
        off = 0.5 / (1 + float(samples.trials[members].sum()))
        other = np.clip(samples.successes[members].sum() / samples.trials[members].sum(), off, 1 - off)
        own = np.clip(edge.first(np.asarray(other)), 1e-12, 1 - 1e-12)
        own_part = own * (1 - own) / samples.trials[a]
        parts = edge.slope(np.asarray(other))[0] ** 2 * other * (1 - other) / samples.trials[others]
        return np.asarray(np.sqrt(own_part / (own_part + parts)))
