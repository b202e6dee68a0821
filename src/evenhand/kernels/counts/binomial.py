"""Independent binomials under a linear constraint: restricted likelihood, score test, score interval.

Maximising the likelihood of independent proportions p_i subject to sum c_i p_i = delta gives
x_i - n_i p_i = lambda c_i p_i (1 - p_i): each p_i solves a quadratic, and sum c_i p_i falls as the
multiplier lambda grows. So the constraint is one monotone equation in one unknown. On that path the
score statistic is lambda sqrt(V), V = sum c_i^2 p_i (1 - p_i) / n_i, and its square is the Pearson
chi-square of the x_i against the p_i, which grows in |lambda|: a score interval needs one root per end
and no inner search.

Two samples with c = (1, -1) is the test of Miettinen and Nurminen (1985) for a difference; c = (1, -phi),
delta = 0 is the one for a ratio (Koopman 1984); four samples give differences of averaged rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray, IntArray


def normal_quantile(level: float) -> float:
    """Return the two-sided normal quantile of a confidence level.

    Parameters
    ----------
    level : float
        Such as 0.95.

    Examples
    --------
    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return float(-special.ndtri((1 - level) / 2))


def near_counts(n: int, p: FloatArray, far: float, more: float) -> IntArray:
    """Return the counts of n that lie within `far` standard deviations and `more` counts of their mean at some rate."""
    reach = far * np.sqrt(n * p * (1 - p)) + more
    low, high = math.floor(float((n * p - reach).min())), math.ceil(float((n * p + reach).max()))
    return np.arange(max(0, low), min(n, high) + 1)


def _path(x: FloatArray, n: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return p, 1 - p and the root of the discriminant at multiplier times coefficient `a`."""
    up = a >= 0
    # Solve for p when a >= 0 and for 1 - p when a < 0: in both the stable form has no cancellation.
    s, m = np.where(up, x, n - x), np.abs(a)
    root = np.sqrt((n - m) ** 2 + 4 * m * (n - s))
    low = 2 * s / (n + m + root)
    near = 2 * (n - s) / np.maximum(n - m + root, 1e-300)
    high = np.where(m < n, near, (m - n + root) / (2 * np.maximum(m, 1e-300)))
    return np.where(up, low, high), np.where(up, high, low), root


def _root(f: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Find one root per element between ends of opposite sign (Chandrupatla 1997)."""
    a, b = low.astype(np.float64), high.astype(np.float64)
    fa, fb = f(a), f(b)
    c, fc = a, fa
    t = np.full(a.shape, 0.5)
    for _ in range(120):
        x = a + t * (b - a)
        fx = f(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        size = np.abs(b - a)
        tolerance = 4e-15 * np.abs(best) + 1e-300
        if bool(np.all((size <= tolerance) | (fa == 0) | (fb == 0))):
            break
        with np.errstate(all="ignore"):
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            inverse = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            t = np.where(inverse & np.isfinite(t), t, 0.5)
            edge = np.minimum(0.5 * tolerance / size, 0.5)
        t = np.clip(t, np.where(np.isfinite(edge), edge, 0.5), np.where(np.isfinite(edge), 1 - edge, 0.5))
    return np.where(fa == 0, a, np.where(fb == 0, b, best))


def _together(
    successes: ArrayLike, trials: ArrayLike, contrast: ArrayLike, delta: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return float arrays: three of one shape (..., m), and `delta` as (...)."""
    goal = np.asarray(delta, dtype=np.float64)
    x, n, c, wide = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64),
        np.asarray(trials, dtype=np.float64),
        np.asarray(contrast, dtype=np.float64),
        goal[..., None],
    )
    return x, n, c, wide[..., 0]


def restricted_proportions(
    successes: ArrayLike, trials: ArrayLike, contrast: ArrayLike, delta: ArrayLike
) -> FloatArray:
    """Return the most likely proportions with ``sum(contrast * p) == delta``.

    Parameters
    ----------
    successes, trials : array_like, shape (..., m)
        Independent binomials; every trial count at least 1.
    contrast : array_like, shape (m,) or (..., m)
        Coefficients, none of them 0.
    delta : array_like, shape (...)
        The value the contrast is held at; outside its range the answer is NaN.

    Returns
    -------
    ndarray, shape (..., m)

    Examples
    --------
    >>> restricted_proportions([8, 4], [10, 10], [1, -1], 0.0).round(6).tolist()
    [0.6, 0.6]
    >>> restricted_proportions([8, 4], [10, 10], [1, -1], 0.2).round(3).tolist()
    [0.71, 0.51]
    """
    x, n, c, goal = _together(successes, trials, contrast, delta)
    least, most = np.minimum(c, 0).sum(-1), np.maximum(c, 0).sum(-1)
    total = n.sum(-1)
    now = (c * (x / n)).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # p <= n / (lambda c) bounds the multiplier on either side.
        high = np.where(goal < now, total / (goal - least), 0.0)
        low = np.where(goal > now, -total / (most - goal), 0.0)
    edge = ~(np.isfinite(low) & np.isfinite(high)) | (goal <= least) | (goal >= most)
    low, high = np.where(edge, 0.0, low), np.where(edge, 0.0, high)
    multiplier = np.zeros(x.shape[:-1])
    p = np.asarray(x / n)
    scale = 2e-16 * np.abs(c).sum(-1)
    for _ in range(200):
        p, q, root = _path(x, n, multiplier[..., None] * c)
        gap = (c * p).sum(-1) - goal
        low, high = np.where(gap > 0, multiplier, low), np.where(gap < 0, multiplier, high)
        done = edge | (np.abs(gap) <= scale) | (high - low <= 1e-15 * np.abs(multiplier))
        if bool(done.all()):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            step = multiplier + gap / (c * c * p * q / root).sum(-1)
        inside = (step > low) & (step < high)
        multiplier = np.where(done, multiplier, np.where(inside, step, 0.5 * (low + high)))
    bound = np.where(c > 0, (goal >= most)[..., None], (goal <= least)[..., None]).astype(np.float64)
    p = np.where(edge[..., None], bound, p)
    return np.where(((goal < least) | (goal > most))[..., None], np.nan, p)


def _standardise(difference: FloatArray, variance: FloatArray) -> FloatArray:
    """Return difference over root of variance; 0/0 is 0 and anything else over 0 infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / np.sqrt(variance)
    small = np.abs(difference) <= 1e-14
    return np.where(variance > 0, z, np.where(small, 0.0, np.copysign(np.inf, difference)))


def _correction(n: FloatArray, corrected: bool) -> FloatArray:
    """Return N / (N - m + 1) for m samples (..., m) with m - 1 free rates under the constraint, or 1.

    With two samples it is the factor N / (N - 1) of Miettinen and Nurminen.
    """
    total = n.sum(-1)
    return total / np.maximum(total - (n.shape[-1] - 1), 1) if corrected else np.ones_like(total)


def score_statistic(
    successes: ArrayLike, trials: ArrayLike, contrast: ArrayLike, delta: ArrayLike = 0.0, *, corrected: bool = True
) -> FloatArray:
    """Return the score statistic of ``sum(contrast * p) == delta``, standard normal when that is true.

    Parameters
    ----------
    successes, trials, contrast, delta
        As in `restricted_proportions`.
    corrected : bool
        Multiply the variance by N / (N - m + 1), N all trials; for two samples this is the factor of
        Miettinen and Nurminen (1985).

    Returns
    -------
    ndarray, shape (...)
        Signed: positive when the data lie above `delta`. Infinite where `delta` is impossible.

    Examples
    --------
    >>> round(float(score_statistic([56, 48], [70, 80], [1, -1], corrected=False)), 4)
    2.6502
    """
    x, n, c, goal = _together(successes, trials, contrast, delta)
    p = restricted_proportions(x, n, c, goal)
    variance = (c * c * p * (1 - p) / n).sum(-1) * _correction(n, corrected)
    difference = (c * (x / n)).sum(-1) - goal
    return _standardise(difference, np.where(np.isnan(variance), 0.0, variance))


def score_interval(
    successes: ArrayLike, trials: ArrayLike, contrast: ArrayLike, level: float, *, corrected: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return the values of ``sum(contrast * p)`` that the score test does not reject.

    Parameters
    ----------
    successes, trials : array_like, shape (..., m)
        Independent binomials; every trial count at least 1.
    contrast : array_like, shape (m,)
        Coefficients, none of them 0.
    level : float
        Nominal coverage, such as 0.95.
    corrected : bool
        As in `score_statistic`.

    Returns
    -------
    low, high : ndarray, shape (...)

    Examples
    --------
    >>> [round(float(end), 4) for end in score_interval([56, 48], [70, 80], [1, -1], 0.95)]
    [0.0528, 0.3382]
    """
    x, n, c, _ = _together(successes, trials, contrast, 0.0)
    total = n.sum(-1)
    goal = normal_quantile(level) ** 2 * _correction(n, corrected)
    # Both ends at once: the upper limit of c is minus the lower limit of -c.
    c = np.stack([c, -c])
    estimate, least = (c * (x / n)).sum(-1), np.minimum(c, 0).sum(-1)
    widest = (c * c / (4 * n)).sum(-1)
    room = estimate - least
    stuck = room <= 1e-15  # already at the end of the range
    start = np.log(np.sqrt(goal / widest)) - 1e-3
    end = np.log((goal + total) / np.where(stuck, 1.0, room)) + 1e-3

    def excess(log_multiplier: FloatArray) -> FloatArray:
        a = np.exp(log_multiplier)[..., None] * c
        p, q, _ = _path(x, n, a)
        # Nearly a straight line with slope between 1 and 2: few steps are needed.
        return np.log(np.maximum((a * a * p * q / n).sum(-1) / goal, 1e-300))  # type: ignore[no-any-return]

    multiplier = np.exp(_root(excess, start, np.where(stuck, start, end)))
    p, _, _ = _path(x, n, multiplier[..., None] * c)
    limit = np.where(stuck, least, (c * p).sum(-1))
    return np.asarray(limit[0]), np.asarray(-limit[1])


def ratio_statistic(successes: ArrayLike, trials: ArrayLike, ratio: ArrayLike, *, corrected: bool = True) -> FloatArray:
    """Return the score statistic of ``p_0 / p_1 == ratio``, standard normal when that is true.

    Parameters
    ----------
    successes, trials : array_like, shape (..., 2)
        Two independent binomials; every trial count at least 1.
    ratio : array_like, shape (...)
        The value under test, above 0.
    corrected : bool
        As in `score_statistic`.

    Returns
    -------
    ndarray, shape (...)
        Positive when the data lie above `ratio`.

    Examples
    --------
    >>> z = ratio_statistic([56, 48], [70, 80], 1.0, corrected=False)
    >>> round(float(z), 4)
    2.6502
    """
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    phi = np.asarray(ratio, dtype=np.float64)
    x0, x1, n0, n1 = x[..., 0], x[..., 1], n[..., 0], n[..., 1]
    # Under p_0 = phi p_1 the likelihood equation is a quadratic in p_1 (Koopman 1984).
    half = phi * (n0 + x1) + x0 + n1
    root = np.sqrt(np.maximum(half * half - 4 * (n0 + n1) * phi * (x0 + x1), 0.0))
    p1 = np.minimum(2 * (x0 + x1) / (half + root), 1.0)
    p0 = np.minimum(phi * p1, 1.0)
    variance = (p0 * (1 - p0) / n0 + phi**2 * p1 * (1 - p1) / n1) * _correction(n, corrected)
    return _standardise(x0 / n0 - phi * (x1 / n1), variance)


def ratio_interval(
    successes: ArrayLike, trials: ArrayLike, level: float, *, corrected: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return the values of ``p_0 / p_1`` that the score test does not reject.

    Parameters
    ----------
    successes, trials : array_like, shape (..., 2)
        Two independent binomials; every trial count at least 1.
    level : float
        Nominal coverage.
    corrected : bool
        As in `score_statistic`.

    Returns
    -------
    low, high : ndarray, shape (...)
        0 without successes in the first sample, infinite without any in the second.

    Examples
    --------
    >>> [round(float(end), 4) for end in ratio_interval([56, 48], [70, 80], 0.95)]
    [1.079, 1.6721]
    """
    x, n, _, _ = _together(successes, trials, 1.0, 0.0)
    # Both ends at once: the upper limit is one over the lower limit of the inverse ratio.
    x, n = np.stack([x, x[..., ::-1]]), np.stack([n, n[..., ::-1]])
    z = normal_quantile(level)
    none = x[..., 0] <= 0
    filled = np.where(none[..., None], n, x)
    rate = filled / n
    # Below this ratio the first sample alone rejects: n (rate - p)^2 / p > z^2 for every p <= ratio.
    start = np.minimum(rate[..., 0] / 2, n[..., 0] * rate[..., 0] ** 2 / (8 * z * z)) / 2

    def excess(log_ratio: FloatArray) -> FloatArray:
        return z - ratio_statistic(filled, n, np.exp(log_ratio), corrected=corrected)

    end = np.where(rate[..., 1] > 0, rate[..., 0] / np.where(rate[..., 1] > 0, rate[..., 1], 1.0), 1.0)
    for _ in range(200):  # without successes below the line the estimate is infinite: look for an end
        short = (rate[..., 1] <= 0) & (excess(np.log(end)) < 0)
        if not short.any():
            break
        end = np.where(short, 8 * end, end)
    # A much closer start, where the delta method on the log scale gives one.
    spread = np.sqrt(((1 - rate) / np.maximum(filled, 0.5)).sum(-1))
    guess = np.maximum(np.log(end) - 1.3 * z * spread - 1e-12, np.log(start))
    closer = np.where(excess(guess) < 0, guess, np.log(start))
    limit = np.where(none, 0.0, np.exp(_root(excess, closer, np.log(end))))
    with np.errstate(divide="ignore"):
        return np.asarray(limit[0]), np.asarray(1 / limit[1])


def wilson_interval(successes: ArrayLike, trials: ArrayLike, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the score (Wilson) limits of single proportions.

    Parameters
    ----------
    successes, trials : array_like
        Counts.
    z : array_like
        Normal quantile, such as 1.96.

    Examples
    --------
    >>> [round(float(end), 4) for end in wilson_interval(8, 10, 1.959964)]
    [0.4902, 0.9433]
    """
    x, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    z2 = np.asarray(z, dtype=np.float64) ** 2
    middle, half = x + z2 / 2, np.sqrt(z2 * (x * (n - x) / n + z2 / 4))
    # At 0 and n the exact limits are 0 and 1; rounding must not move them.
    low = np.where(x <= 0, 0.0, (middle - half) / (n + z2))
    high = np.where(x >= n, 1.0, (middle + half) / (n + z2))
    return low, high
