"""Do two samples have the same return level at one horizon? A studentised permutation test, and an interval.

The statistic is the difference of the two return levels over its standard error, both recomputed on every
permutation with the same numbers of excesses. Only the largest pooled values can enter a permuted tail, so a
permutation draws the labels of those and nothing else: its cost does not grow with the samples.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.inference.pvalues import TestResult, monte_carlo
from evenhand.kernels.pareto import fit, level_variance, quantile
from evenhand.kernels.pareto_tail import Tail
from evenhand.kernels.seeds import stream

FloatArray = NDArray[np.float64]

_BLOCK = 250


def levels_of(top: FloatArray, n: int, horizon: float, upper: float) -> tuple[FloatArray, FloatArray]:
    """Return the return level of many tails and its variance.

    Parameters
    ----------
    top : ndarray, shape (samples, k + 1)
        The largest values, sorted downwards.
    n : int
        Size of each sample.
    horizon : float
        Observations; at least n / k.
    upper : float
        Largest possible value.

    Returns
    -------
    level, variance : ndarray, shape (samples,)

    Examples
    --------
    >>> top = -np.sort(-np.random.default_rng(0).exponential(size=(1, 101)))
    >>> level, variance = levels_of(top, 101, 101.0, np.inf)
    >>> bool(level[0] > top[0, 100])
    True
    """
    k = top.shape[1] - 1
    threshold = top[:, -1]
    y = (top[:, :-1] - threshold[:, None])[:, ::-1]
    flat = y[:, -1] <= 1e-12  # all tied: the level is that value
    y = np.where(flat[:, None], np.arange(1.0, k + 1), y)
    scale, shape, likely = fit(y, room=np.where(flat, math.inf, upper - threshold))
    end = np.where(shape < 0, -scale / np.minimum(shape, -1e-12), math.inf)
    bounded = end > (upper - threshold) - 1e-6 * max(1.0, abs(upper)) if math.isfinite(upper) else np.zeros_like(flat)
    expected = max(horizon * k / n, 1.0)
    level = threshold + quantile(1 / expected, scale, shape)
    variance = level_variance(scale, shape, likely, bounded, expected, k)
    return np.where(flat, threshold, level), np.where(flat, 0.0, variance)


def tail_difference_test(
    a: Tail, b: Tail, horizon: float, *, n_resamples: int, seed: int, name: str = "tail"
) -> TestResult:
    """Test whether two samples have the same return level.

    Parameters
    ----------
    a, b : Tail
        With at least n / horizon excesses each.
    horizon : float
        Observations.
    n_resamples : int
        Permutations.
    seed : int
        From `seed_of`.
    name : str
        Of the random stream; never a group's label.

    Returns
    -------
    TestResult
        Two-sided.

    Examples
    --------
    >>> from evenhand.kernels.pareto_tail import fit_tail
    >>> rng = np.random.default_rng(0)
    >>> x, y = fit_tail(rng.exponential(size=900), 50), fit_tail(3 * rng.exponential(size=900), 50)
    >>> tail_difference_test(x, y, 1000, n_resamples=199, seed=0).pvalue < 0.05
    True
    """
    # One order of the two samples whatever they are called, so that the draws do not depend on labels.
    swapped = (a.n, a.k, a.level(horizon)) > (b.n, b.k, b.level(horizon))
    first, second = (b, a) if swapped else (a, b)
    upper = max(a.upper, b.upper)
    observed = _statistics(
        first.values[None, : first.k + 1], second.values[None, : second.k + 1], first, second, horizon, upper
    )
    pooled = -np.sort(-np.concatenate([first.values, second.values]))
    null = []
    for block, start in enumerate(range(0, n_resamples, _BLOCK)):
        size = min(_BLOCK, n_resamples - start)
        rng = stream(seed, f"{name}/permutation", block)
        top_first, top_second = _permuted(pooled, first, second, _BLOCK, rng)
        null.append(_statistics(top_first[:size], top_second[:size], first, second, horizon, upper))
    value = float(observed[0])
    if not math.isfinite(value):
        return TestResult(statistic=math.nan, pvalue=math.nan, method="", exact=False)
    return monte_carlo(
        np.concatenate(null),
        -value if swapped else value,
        "two-sided",
        method="studentised permutation of group labels, return levels refitted on each",
    )


def _statistics(top_a: FloatArray, top_b: FloatArray, a: Tail, b: Tail, horizon: float, upper: float) -> FloatArray:
    level_a, variance_a = levels_of(top_a, a.n, horizon, upper)
    level_b, variance_b = levels_of(top_b, b.n, horizon, upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((level_a - level_b) / np.sqrt(variance_a + variance_b))


def _permuted(
    pooled: FloatArray, a: Tail, b: Tail, size: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw permutations and return each one's largest values in either sample."""
    n = pooled.size
    # So many of the largest pooled values that either sample gets its k + 1 of them, up to a chance of about 1e-12.
    needed = max(_enough(a.k + 1, a.n / n), _enough(b.k + 1, b.n / n))
    length = min(n, needed)
    inside = rng.hypergeometric(a.n, b.n, length, size=size) if length < n else np.full(size, a.n)
    keys = rng.random((size, length))
    # The `inside` smallest keys belong to sample a.
    ordered = np.concatenate([np.sort(keys, axis=1), np.ones((size, 1))], axis=1)
    mine = keys < ordered[np.arange(size), inside][:, None]
    return _first(pooled[:length], mine, a.k + 1), _first(pooled[:length], ~mine, b.k + 1)


def _enough(wanted: int, share: float) -> int:
    return math.ceil((wanted + 7.5 * math.sqrt(wanted) + 30) / share)


def _first(pooled: FloatArray, mine: NDArray[np.bool_], wanted: int) -> FloatArray:
    """Return the first `wanted` marked values of each row; a row with fewer is filled with its last one."""
    chosen = mine & (np.cumsum(mine, axis=1) <= wanted)
    counts = chosen.sum(axis=1)
    rows, at = np.nonzero(chosen)
    out = np.full((mine.shape[0], wanted), pooled[-1])
    place = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    out[rows, place] = pooled[at]
    return out


def interval_pvalues(
    estimate: float, low: float, high: float, level: float, margin: float = 0.0
) -> tuple[float, float]:
    """Read p-values off an interval whose two sides have their own length, each taken as a normal one.

    Parameters
    ----------
    estimate, low, high : float
        Of the difference.
    level : float
        Of the interval.
    margin : float
        A difference that is negligible; 0 when there is none.

    Returns
    -------
    none : float
        Against "no difference", two-sided: at most ``1 - level`` exactly when the interval excludes 0.
    inside : float
        Against "not inside the margin", by two one-sided tests.

    Examples
    --------
    >>> none, _ = interval_pvalues(1.0, 0.0, 5.0, 0.95)
    >>> round(none, 3)
    0.05
    """
    z = float(special.ndtri((1 + level) / 2))

    def below(distance: float, side: float) -> float:
        if side <= 0:
            return 0.0 if distance > 0 else 1.0
        return float(special.ndtr(-z * distance / side))

    left, right = estimate - low, high - estimate
    none = 2 * below(abs(estimate), left if estimate > 0 else right)
    return min(none, 1.0), max(below(margin - estimate, right), below(margin + estimate, left))


def share_pvalues(above_zero: int, above_margin: int | None, n: int, share: float) -> tuple[float, float]:
    """Test exactly, by counting, whether more (or fewer) than `share` of the population lie above a level.

    Parameters
    ----------
    above_zero : int
        Observations above 0.
    above_margin : int or None
        Observations above the margin.
    n : int
        Observations.
    share : float
        One over the horizon.

    Returns
    -------
    more : float
        P-value against "at most `share` lie above 0".
    fewer : float
        P-value against "at least `share` lie above the margin"; NaN without a margin.

    Examples
    --------
    >>> more, fewer = share_pvalues(5, 0, 3000, 0.001)
    >>> round(more, 3), round(fewer, 3)
    (0.185, 0.05)
    """
    more = 1.0 if above_zero == 0 else max(float(special.bdtrc(above_zero - 1, n, share)), 1e-300)
    fewer = math.nan if above_margin is None else float(special.bdtr(above_margin, n, share))
    return more, fewer
