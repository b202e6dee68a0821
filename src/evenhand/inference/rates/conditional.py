"""The exact test of equal rates in two samples, summed and not drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.pvalues import SMALLEST
from evenhand.kernels.counts.permuted_tables import hypergeometric_tail

_FAR = 45.0  # beyond so many standard deviations a probability is too small for a double
_TIE = 1e-7  # probabilities that differ by rounding only are equal


def exact_pvalue(
    successes: Sequence[int], trials: Sequence[int], alternative: str = "two-sided", *, midp: bool = False
) -> tuple[float, float]:
    """Return the exact p-value of equal rates in two samples, and the smallest one these margins allow.

    The two-sided p-value sums all tables whose absolute difference of rates is at least the observed
    one; Fisher's usual one sums the tables that are not more probable, and may differ.

    Parameters
    ----------
    successes, trials : sequence of int, length 2
        Counts; every trial count at least 1.
    alternative : {"two-sided", "greater", "less"}
        Of the first rate minus the second.
    midp : bool
        Count half of the probability of ties.

    Examples
    --------
    >>> p, floor = exact_pvalue([3, 1], [4, 4])
    >>> round(p, 4), round(floor, 4)
    (0.4857, 0.0286)
    """
    first, second = sorted(((int(trials[0]), int(successes[0])), (int(trials[1]), int(successes[1]))))
    if first != (int(trials[0]), int(successes[0])):  # one order for both namings: the same digits
        alternative = {"greater": "less", "less": "greater"}.get(alternative, alternative)
    (n0, x), (n1, other_x) = first, second
    total = x + other_x
    everyone = n0 + n1
    low, high = max(0, total - n1), min(n0, total)

    def tail(at: int) -> float:
        # Whole numbers: N x - S n0 orders the tables by their difference of rates without rounding.
        lean = everyone * at - total * n0
        if alternative == "greater" or (alternative == "two-sided" and lean > 0):
            whole, point = hypergeometric_tail(at, n0, n1, total, upper=True)
        else:
            whole, point = hypergeometric_tail(at, n0, n1, total, upper=False)
        if alternative == "two-sided":
            if lean == 0:
                return 1.0 - 0.5 * point if midp else 1.0
            # The other side starts at the mirror image of the observed count, rounded outwards.
            mirror = 2 * total * n0 - everyone * at
            other = mirror // everyone if lean > 0 else -(-mirror // everyone)
            far, twin = hypergeometric_tail(other, n0, n1, total, upper=lean < 0)
            whole += far
            if mirror % everyone == 0:
                point += twin
        return min(whole - (0.5 * point if midp else 0.0), 1.0)

    if alternative == "two-sided":
        most = max(low, high, key=lambda at: abs(everyone * at - total * n0))
    else:
        most = high if alternative == "greater" else low
    return tail(x), tail(most)


def fisher_pvalues(successes: Sequence[int], trials: Sequence[int]) -> tuple[float, float]:
    """Return Fisher's usual two-sided p-value of equal rates in two samples, and its mid-p value.

    Fisher's sums all tables that are not more probable than the one seen; the mid-p value counts that one half.

    Parameters
    ----------
    successes, trials : sequence of int, length 2
        Counts; every trial count at least 1.

    Examples
    --------
    >>> [round(p, 4) for p in fisher_pvalues([7, 1], [34, 34])]
    [0.0544, 0.042]
    """
    (x, y), (n, m) = (int(k) for k in successes), (int(k) for k in trials)
    total, everyone = x + y, n + m
    mean = total * n / everyone
    reach = math.ceil(_FAR * math.sqrt(mean * (m / everyone) * (1 - total / everyone))) + 50
    if abs(x - mean) > reach:
        return SMALLEST, SMALLEST
    first = np.arange(max(0, total - m, math.floor(mean) - reach), min(n, total, math.ceil(mean) + reach) + 1)

    def log_choose(size: int, chosen: IntArray) -> FloatArray:
        return np.asarray(gammaln(size + 1.0) - gammaln(chosen + 1.0) - gammaln(size - chosen + 1.0))

    ways = log_choose(n, first) + log_choose(m, total - first)
    law = np.exp(ways - ways.max())
    seen = float(law[x - first[0]])
    everything = float(law.sum())
    whole = float(law[law <= seen * (1 + _TIE)].sum())
    return max(whole / everything, SMALLEST), max((whole - 0.5 * seen) / everything, SMALLEST)


def exact_null(successes: Sequence[int], trials: Sequence[int], bins: int = 40) -> tuple[list[float], list[float]]:
    """Return the distribution of the difference of rates when labels are shuffled, in bins.

    Parameters
    ----------
    successes, trials : sequence of int, length 2
        Counts; every trial count at least 1.
    bins : int
        At most so many; fewer when the difference takes few values.

    Returns
    -------
    edges, shares : list of float
        Within five standard deviations and ten counts, which leaves out less than one shuffle in a million.

    Examples
    --------
    >>> edges, shares = exact_null([3, 1], [4, 4])
    >>> [round(s, 3) for s in shares]
    [0.014, 0.229, 0.514, 0.229, 0.014]
    """
    n0, n1 = (int(n) for n in trials)
    total, everyone = int(sum(successes)), n0 + n1
    mean = total * n0 / everyone
    spread = math.sqrt(mean * (n1 / everyone) * (everyone - total) / max(everyone - 1, 1))
    reach = math.ceil(5 * spread) + 10  # ten more for the skew of rare events
    low = max(0, total - n1, math.floor(mean) - reach)
    high = min(n0, total, math.ceil(mean) + reach)
    x = np.arange(low, high + 1, dtype=np.float64)

    def log_choose(n: float, k: FloatArray) -> FloatArray:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    share = np.exp(log_choose(n0, x) + log_choose(n1, total - x) - log_choose(everyone, np.array(float(total))))
    difference = x / n0 - (total - x) / n1
    step = 1 / n0 + 1 / n1
    # Whole steps in each bin: otherwise neighbours would hold different numbers of values and look like teeth.
    each = -(-len(x) // bins)
    edges = difference[0] - step / 2 + step * each * np.arange(-(-len(x) // each) + 1)
    shares, _ = np.histogram(difference, bins=edges, weights=share)
    return edges.tolist(), shares.tolist()
