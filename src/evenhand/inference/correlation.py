"""Correlation of a value with a continuous attribute.

Hypothesis: Pearson's correlation is zero; the two need not be independent.
Statistic: sqrt(n) r / tau with tau^2 = mu22 / (mu20 mu02), the fourth cross moment over the variances,
so that dependence without correlation (unequal spread along the attribute) does not count as evidence
([diciccio2020] sec. 4.1, where the permutation test without tau rejects a true null at .75).
Reference: permutations of one column against the other, tau recomputed each time; the normal law where
the first Edgeworth term is negligible.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand.inference.pvalues import TestResult, far_from_rejecting, monte_carlo
from evenhand.inference.resampling import limit_result, refuse_exact, undefined
from evenhand.inference.samples import Draws
from evenhand.kernels.subsets import block_size, in_blocks

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# As for means: |skewness of the products| / (6 sqrt(n)) below which the normal law is used.
EDGEWORTH = {"two-sided": 0.01, "greater": 0.002, "less": 0.002}
# Rows from which permutations are no longer drawn by default: the normal law is then as good.
MANY = 2_000_000


def correlation_test(
    x: ArrayLike, y: ArrayLike, count: ArrayLike | None = None, draws: Draws | None = None
) -> tuple[float, TestResult]:
    """Test that two columns are uncorrelated.

    Parameters
    ----------
    x, y : array_like, shape (R,)
        The columns.
    count : array_like of int, shape (R,), optional
        Rows each record stands for; 1 by default.
    draws : Draws, optional
        How the reference distribution is made.

    Returns
    -------
    correlation : float
        NaN when a column is constant.
    result : TestResult

    Examples
    --------
    >>> x = np.arange(40.0)
    >>> r, result = correlation_test(x, x % 7 + x / 9, draws=Draws(n_resamples=99))
    >>> round(r, 3), result.pvalue
    (0.586, 0.01)
    """
    draws = Draws() if draws is None else draws
    u, v, c = _standardised(x, y, count)
    n = int(c.sum())
    if u.size == 0:
        return math.nan, undefined("A column is constant, so it has no correlation.")
    r = float(np.dot(c, u * v) / n)
    tau = math.sqrt(float(np.dot(c, (u * v) ** 2) / n))
    statistic = math.sqrt(n) * r / tau if tau > 0 else 0.0
    skew = float(np.dot(c, (u * v - r) ** 3) / n) / max(tau**2 - r**2, 1e-300) ** 1.5
    negligible = n >= 100 and abs(skew) / (6 * math.sqrt(n)) <= EDGEWORTH[draws.alternative]
    if draws.method == "limit" or (draws.method == "auto" and (negligible or n > MANY)):
        return r, limit_result(statistic, draws.alternative, method="normal limit")
    refuse_exact(draws, "a correlation has no exact test")
    a, b = np.repeat(u, c), np.repeat(v, c)

    def work(rng: np.random.Generator, size: int) -> FloatArray:
        moved = rng.permuted(np.broadcast_to(b, (size, n)), axis=1)  # (size, n)
        cross = moved @ a / n
        np.square(moved, out=moved)
        spread = moved @ (a * a) / n
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spread > 0, math.sqrt(n) * cross / np.sqrt(spread), 0.0)

    null = in_blocks(
        work,
        draws.number(n),
        block_size(n, 500_000),
        seed=draws.seed,
        name=f"{draws.name}/correlation",
        workers=draws.workers,
        enough=far_from_rejecting(statistic, draws.alternative),
    )
    return r, monte_carlo(null, statistic, draws.alternative, method="studentised permutation test")


def correlation_interval(
    x: ArrayLike, y: ArrayLike, count: ArrayLike | None = None, *, level: float = 0.95
) -> tuple[float, float, str]:
    """Return a confidence interval of the correlation that allows for dependence of any form.

    Fisher's transformation with the sandwich variance of r in place of 1 / (n - 3).

    Parameters
    ----------
    x, y : array_like, shape (R,)
        The columns.
    count : array_like of int, shape (R,), optional
        Rows each record stands for; 1 by default.
    level : float
        Nominal coverage.

    Returns
    -------
    low, high : float
    kind : str

    Examples
    --------
    >>> x = np.arange(40.0)
    >>> low, high, kind = correlation_interval(x, x % 7 + x / 9)
    >>> round(low, 2), round(high, 2)
    (0.35, 0.75)
    """
    u, v, c = _standardised(x, y, count)
    if u.size == 0:
        return math.nan, math.nan, "fisher-sandwich"
    n = int(c.sum())
    r = float(np.dot(c, u * v) / n)
    if 1 - r * r < 1e-12:
        return r, r, "fisher-sandwich"
    influence = u * v - r * (u * u + v * v) / 2
    error = math.sqrt(float(np.dot(c, influence**2)) / n / max(n - 3, 1)) / (1 - r * r)
    t = float(special.stdtrit(max(n - 3, 1), 1 - (1 - level) / 2))
    low, high = math.tanh(math.atanh(r) - t * error), math.tanh(math.atanh(r) + t * error)
    # With heavy tails the sandwich is too small; a correlation of 0 leaves only if the test rejects it.
    if math.sqrt(n) * abs(r) <= t * math.sqrt(float(np.dot(c, (u * v) ** 2) / n)):
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high, "fisher-sandwich"


def _standardised(x: ArrayLike, y: ArrayLike, count: ArrayLike | None) -> tuple[FloatArray, FloatArray, IntArray]:
    """Both columns with mean 0 and mean square 1 in a fixed row order; empty when one is constant."""
    u, v = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    c = np.ones(u.shape, dtype=np.int64) if count is None else np.asarray(count, dtype=np.int64)
    keep = c > 0
    order = np.lexsort((v[keep], u[keep]))
    u, v, c = u[keep][order], v[keep][order], c[keep][order]
    none = (np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
    if u.size == 0 or u.min() == u.max() or v.min() == v.max():
        return none
    # Equal records become one, so that repeated rows and counts give the same bytes.
    new = np.concatenate([[True], (u[1:] != u[:-1]) | (v[1:] != v[:-1])])
    c = np.add.reduceat(c, np.flatnonzero(new))
    u, v = u[new], v[new]
    out = []
    for z in (u, v):
        centred = z - np.dot(c, z) / c.sum()
        scale = math.sqrt(float(np.dot(c, centred**2)) / float(c.sum()))
        if scale == 0:
            return none
        out.append(centred / scale)
    return out[0], out[1], c
