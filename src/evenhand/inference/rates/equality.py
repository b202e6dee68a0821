"""The exact test of equal rates in two samples, without conditioning on how many successes there are in all.

Given the number of all successes, the successes of one sample are hypergeometric, whatever the common rate. The
conditional test that sums its tails (`rates.conditional`) therefore holds its level, but in small samples it
rejects far less often than it may, because few tables have one total. Its mid-p value counts half of the table seen;
it is about right on average and may exceed its level. Here the mid-p value only *orders* the tables. The p-value is
the probability of all tables at least as extreme, over all totals, at the common rate where that is largest. So the
level holds and the conservatism goes (Boschloo 1970, who ordered by Fisher's p-value).

Only common rates that the data leave possible are looked at: those inside an exact interval with error 1e-9, and 1e-9
is added to the p-value (Berger and Boos 1994).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.kernels.counts.binomial import near_counts

# Error of the interval for the rate that is left free, added to every p-value.
SPENT = 1e-9
# Tables looked at up to which the p-value is exact; beyond, the ordering mid-p value itself is the p-value.
EXACT_TABLES = 200_000
_GRID = 65
# Counts this many standard deviations from their mean are left out: their probability is below 1e-15.
_FAR = 8.0
_TIE = 1e-7


def exact_sizes(n: int, m: int) -> bool:
    """Return whether the p-value and the interval of samples of these sizes are exact.

    Examples
    --------
    >>> exact_sizes(300, 300), exact_sizes(10, 1_000_000), exact_sizes(1000, 1000)
    (True, True, False)
    """
    everyone = n + m
    return (min(n, m) + 1) * min(everyone + 1.0, 15 * math.sqrt(everyone)) <= EXACT_TABLES


@functools.lru_cache(maxsize=4)
def _log_factorials(size: int) -> FloatArray:
    return np.asarray(special.gammaln(np.arange(size + 1) + 1.0))


def log_factorials(most: int) -> FloatArray:
    """Return log 0!, log 1!, ... up to at least `most`.

    Parameters
    ----------
    most : int
        The last one needed.

    Examples
    --------
    >>> log_factorials(3)[:4].round(3).tolist()
    [0.0, 0.0, 0.693, 1.792]
    """
    return _log_factorials(1 << max(int(most), 1).bit_length())


def possible_rates(successes: float, trials: int, spent: float = SPENT) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) limits of one rate.

    Parameters
    ----------
    successes, trials : int
        Counts.
    spent : float
        Error probability, both ends together.

    Examples
    --------
    >>> [round(end, 4) for end in possible_rates(0, 10, 0.05)]
    [0.0, 0.3085]
    """
    low = float(special.betaincinv(successes, trials - successes + 1, spent / 2)) if successes > 0 else 0.0
    high = float(special.betaincinv(successes + 1, trials - successes, 1 - spent / 2)) if successes < trials else 1.0
    return low, high


def conditional_law(totals: IntArray, n: int, m: int, alternative: str) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities and mid-p values of the first sample's successes, given the successes in all.

    Parameters
    ----------
    totals : ndarray of int, shape (W,)
        Successes in all.
    n, m : int
        Trials of the two samples.
    alternative : {"two-sided", "greater", "less"}
        Of the first rate minus the second; two-sided p-values count tables with at least the absolute difference seen.

    Returns
    -------
    chance, midp : ndarray, shape (W, n + 1)
        Impossible counts have probability 0.

    Examples
    --------
    >>> chance, midp = conditional_law(np.array([4]), 4, 4, "two-sided")
    >>> (chance * 70).round().tolist(), (midp * 70).round().tolist()
    ([[1.0, 16.0, 36.0, 16.0, 1.0]], [[1.0, 18.0, 52.0, 18.0, 1.0]])
    """
    log = log_factorials(n + m)
    x, s, everyone = np.arange(n + 1), np.asarray(totals)[:, None], n + m
    y = s - x
    known = (y >= 0) & (y <= m)
    y = np.clip(y, 0, m)
    ways = (log[n] - log[x] - log[n - x]) + (log[m] - log[y] - log[m - y])
    chance = np.where(known, np.exp(ways - (log[everyone] - log[s] - log[everyone - s])), 0.0)
    chance /= chance.sum(1, keepdims=True)
    below, above = np.cumsum(chance, 1), np.cumsum(chance[:, ::-1], 1)[:, ::-1]
    if alternative != "two-sided":
        return chance, (above if alternative == "greater" else below) - 0.5 * chance
    lean = everyone * x - s * n  # whole numbers order the tables by their difference of rates without rounding
    mirror = 2 * s * n - everyone * x
    up = lean > 0
    other = np.where(up, mirror // everyone, -(-mirror // everyone))
    rows, inside = np.arange(len(s))[:, None], (other >= 0) & (other <= n)
    at = np.clip(other, 0, n)
    far = np.where(inside, np.where(up, below[rows, at], above[rows, at]), 0.0)
    twin = np.where(inside & (mirror % everyone == 0), chance[rows, at], 0.0)
    midp = np.where(up, above, below) + far - 0.5 * (chance + twin)
    return chance, np.where(lean == 0, 1 - 0.5 * chance, midp)


@functools.lru_cache(maxsize=20_000)
def equality_pvalue(
    successes: tuple[int, int], trials: tuple[int, int], alternative: str = "two-sided"
) -> tuple[float, bool]:
    """Return the p-value of equal rates, and whether it is exact.

    Parameters
    ----------
    successes, trials : tuple of int
        Of the two samples; every trial count at least 1.
    alternative : {"two-sided", "greater", "less"}
        Of the first rate minus the second.

    Returns
    -------
    pvalue : float
    exact : bool
        See `exact_sizes`; otherwise it is the conditional mid-p value.

    Examples
    --------
    >>> p, exact = equality_pvalue((7, 1), (34, 34))
    >>> round(p, 4), exact
    (0.0281, True)
    """
    (x, y), (n, m) = successes, trials
    if (n, x) > (m, y):  # one order for both namings: the same digits
        turned = {"greater": "less", "less": "greater"}.get(alternative, alternative)
        return equality_pvalue((y, x), (m, n), turned)
    if not exact_sizes(n, m):
        return exact_pvalue((x, y), (n, m), alternative, midp=True)[0], False
    if alternative == "two-sided" and x * m == y * n:
        return 1.0, True
    everyone, total = n + m, x + y
    low, high = possible_rates(total, everyone)
    totals = near_counts(everyone, np.array([low, high]), _FAR, 3 * _FAR)
    chance, midp = conditional_law(totals, n, m, alternative)
    bar = midp[total - totals[0], x] * (1 + _TIE)
    share = np.where(midp <= bar, chance, 0.0).sum(1)  # of each total's tables, those as extreme
    log = log_factorials(everyone)
    ways = log[everyone] - log[totals] - log[everyone - totals]

    def chance_at(rates: FloatArray) -> FloatArray:
        law = np.exp(ways + special.xlogy(totals, rates[:, None]) + special.xlog1py(everyone - totals, -rates[:, None]))
        return np.asarray(law @ share)

    # Even steps of the angle: there the spread of a rate is the same everywhere.
    angles = np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), _GRID)
    chances = chance_at(np.sin(angles) ** 2)
    best = int(np.argmax(chances))
    closer = np.linspace(angles[max(best - 1, 0)], angles[min(best + 1, _GRID - 1)], 17)
    worst = max(float(chances[best]), float(chance_at(np.sin(closer) ** 2).max()))
    return min(worst + SPENT, 1.0), True


@functools.lru_cache(maxsize=1000)
def smallest_pvalue(n: int, m: int) -> float:
    """Return the smallest two-sided p-value that samples of these sizes can give.

    Examples
    --------
    >>> round(smallest_pvalue(1, 3), 3)
    0.125
    """
    if n + m > 200:
        return SPENT if exact_sizes(n, m) else 0.0
    return min(equality_pvalue((0, m), (n, m))[0], equality_pvalue((n, 0), (n, m))[0])
