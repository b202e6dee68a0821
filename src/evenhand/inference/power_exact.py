"""Power of the exact test of equal rates, by adding up all pairs of counts that it rejects."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.inference.unconditional import binomial_chance

BoolArray = NDArray[np.bool_]

# Tables and trials up to which all tables are listed.
TABLES, TRIALS = 300_000, 1_200


def listable(n: int, m: int) -> bool:
    """Return whether the tables of so many trials are few enough to be listed.

    Parameters
    ----------
    n, m : int
        Trials of the two samples.

    Returns
    -------
    bool

    Examples
    --------
    >>> listable(100, 100), listable(10_000, 10_000)
    (True, False)
    """
    return n + m <= TRIALS and (n + 1) * (m + 1) <= TABLES


@functools.lru_cache(maxsize=8)
def rejected(n: int, m: int, alpha: float) -> BoolArray:
    """Return which pairs of success counts the two-sided exact test rejects.

    Parameters
    ----------
    n, m : int
        Trials of the two samples.
    alpha : float
        Level.

    Returns
    -------
    ndarray of bool, shape (n + 1, m + 1)

    Examples
    --------
    >>> int(rejected(4, 4, 0.05).sum())  # only 0 of 4 against 4 of 4
    2
    """
    out = np.zeros((n + 1, m + 1), dtype=bool)
    ways = [special.gammaln(k + 1) + special.gammaln(k[::-1] + 1) for k in (np.arange(n + 1.0), np.arange(m + 1.0))]
    for total in range(n + m + 1):
        x = np.arange(max(0, total - m), min(n, total) + 1)
        log = -ways[0][x] - ways[1][total - x]
        chance = np.exp(log - log.max())
        chance /= chance.sum()
        # Whole numbers order the tables by their difference of rates without rounding, as the test does.
        lean = np.abs((n + m) * x - total * n)
        order = np.argsort(-lean, kind="stable")
        tail = np.cumsum(chance[order])
        # Tables as far out as this one count whole: the last of each tie carries the p-value.
        last = np.searchsorted(-lean[order], -lean, side="right") - 1
        out[x, total - x] = tail[last] <= alpha * (1 + 1e-9)
    return out


def exact_power(trials: tuple[int, int], rates: tuple[float, float], alpha: float) -> float:
    """Return the probability that the exact test rejects.

    Parameters
    ----------
    trials : tuple of int
        Of the two samples.
    rates : tuple of float
        Their true rates.
    alpha : float
        Level.

    Returns
    -------
    float

    Examples
    --------
    >>> round(exact_power((20, 20), (0.9, 0.4), 0.05), 3)
    0.908
    """
    n, m = trials
    p, q = (binomial_chance(np.arange(t + 1), t, r) for t, r in zip(trials, rates, strict=True))
    return float(p @ rejected(n, m, alpha) @ q)
