"""Power of the unconditional test of equal rates, by adding up all pairs of counts that it rejects."""

from __future__ import annotations

import functools

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.inference.rates.equality import SPENT, conditional_law, exact_sizes, possible_rates
from evenhand.inference.rates.equivalence import binomial_chance, chance_of

# Tables and trials up to which all tables are listed.
TABLES, TRIALS = 60_000, 1_200
# Values of the common rate, for each root of all trials: between two of them the law of a rate hardly moves.
_FINE = 12


def listable(n: int, m: int) -> bool:
    """Return whether the tables of so many trials are few enough to be listed.

    Examples
    --------
    >>> listable(100, 100), listable(10_000, 10_000)
    (True, False)
    """
    return n + m <= TRIALS and (n + 1) * (m + 1) <= TABLES


@functools.lru_cache(maxsize=8)
def pvalues(n: int, m: int) -> FloatArray:
    """Return the two-sided p-value of every pair of success counts, of so many trials.

    Returns
    -------
    ndarray, shape (n + 1, m + 1)
        As `evenhand.inference.rates.equality.equality_pvalue`, on a fixed list of common rates.

    Examples
    --------
    >>> pvalues(4, 4)[0].round(3).tolist()
    [1.0, 1.0, 0.178, 0.07, 0.008]
    """
    if n > m:
        return pvalues(m, n).T
    everyone = n + m
    totals = np.arange(everyone + 1)
    chance, midp = conditional_law(totals, n, m, "two-sided")
    s, x = np.nonzero(chance > 0)
    if not exact_sizes(n, m):
        largest = midp[s, x]
    else:
        order = np.argsort(midp[s, x], kind="stable")
        s, x = s[order], x[order]
        bars = midp[s, x]
        last = np.searchsorted(bars, bars * (1 + 1e-7), side="right") - 1
        limits = np.array([possible_rates(int(total), everyone) for total in totals])[s]
        # Even steps of the angle; the ends of a table's own range lie between two of them, both of which count.
        steps = max(int(_FINE * everyone**0.5), 48)
        rates = np.sin(np.linspace(0, np.pi / 2, steps + 1)) ** 2
        first = np.searchsorted(rates, limits[:, 0], side="right") - 1
        end = np.searchsorted(rates, limits[:, 1], side="left")
        largest = np.zeros(s.size)
        for k, rate in enumerate(rates):
            law = binomial_chance(totals, everyone, float(rate))
            upto = np.cumsum(law[s] * chance[s, x])[last]
            largest = np.where((first <= k) & (k <= end), np.maximum(largest, upto), largest)
        largest = np.minimum(largest + SPENT, 1.0)
    out = np.ones((n + 1, m + 1))
    out[x, s - x] = largest
    out[x[x * m == (s - x) * n], (s - x)[x * m == (s - x) * n]] = 1.0
    return out


def exact_power(trials: tuple[int, int], rates: tuple[float, float], alpha: float) -> float:
    """Return the probability that the test rejects at a level, under the true rates of samples of so many trials.

    Examples
    --------
    >>> round(exact_power((20, 20), (0.9, 0.4), 0.05), 3)
    0.941
    """
    return chance_of(pvalues(*trials) <= alpha, rates)
