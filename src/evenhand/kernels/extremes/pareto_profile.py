"""Intervals for a generalised Pareto tail: profile likelihood, and draws from the fit where likelihood fails.

A profile interval of any number computed from the fit is its range over the parameters whose deviance stays
below the chi-square quantile. The parameters are theta = shape / scale, the shape, and the share of values above the
threshold. Given theta, the deviance in the shape is ``2 k (log r + 1 / r - 1)`` with r the shape over its best value
at that theta, so the edge of the region is known in closed form (Lambert's W), and a grid over theta and the share
suffices for all return levels at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray

_COARSE, _THETAS = 200, 600
_SHARES = 33
_NODES = 513


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Region:
    """The edge of a likelihood region."""

    # theta, shape (points,): points on the edge; theta is shape / scale.
    theta: FloatArray
    shape: FloatArray
    log_share: FloatArray  # (points,): logarithm of the share of values above the threshold over its estimate


def region(y: FloatArray, *, cutoff: float, room: float = math.inf) -> Region:
    """Return the edge of the region of parameters whose deviance is at most `cutoff`.

    Parameters
    ----------
    y : ndarray, shape (k,)
        Excesses, sorted upwards.
    cutoff : float
        Quantile of the deviance.
    room : float
        Largest possible excess.

    Returns
    -------
    Region

    Examples
    --------
    >>> edge = region(np.sort(-np.log(np.linspace(0.005, 0.995, 100))), cutoff=3.84)
    >>> bool(edge.shape.min() < 0 < edge.shape.max())
    True
    """
    k, largest = y.size, float(y[-1])
    top = 12.0 if math.isinf(room) else math.log1p(-1 / max(room / largest, 1 + 1e-12))
    bottom = min(-12.0, top - 1.0)
    s = top + (bottom - top) * np.linspace(0.0, 1.0, _COARSE) ** 1.5
    theta, best, value = _along(y / largest, s)
    good = np.isfinite(value) & (best >= -1.0)
    theta, best, value = theta[good], best[good], value[good]
    peak = float(value.max())
    # A second, finer grid over the part of the line that matters.
    inside = 2 * k * (peak - value) <= cutoff
    near = s[good][inside]
    step = np.abs(np.diff(s[good])).max() if s[good].size > 1 else 0.1
    fine = np.linspace(max(near.min() - step, bottom), min(near.max() + step, top), _THETAS)
    theta, best, value = _along(y / largest, fine)
    value = np.where(best >= -1.0, value, -math.inf)
    peak = max(peak, float(value.max()))
    left = cutoff / 2 - k * (peak - value)  # what theta leaves of the log-likelihood that may be lost
    keep = left >= 0
    theta, best, left = theta[keep], best[keep], left[keep]
    # The share: k (exp(v) - 1 - v) is its Poisson log-likelihood loss.
    reach = math.sqrt(cutoff / k)
    v = np.linspace(-1.3 * reach, 1.5 * reach, _SHARES)
    lost = k * (np.expm1(v) - v)
    rest = left[:, None] - lost  # (theta, share)
    at, share = np.nonzero(rest >= 0)
    rest = rest[at, share] / k
    shape = np.concatenate([best[at] * ratio for ratio in _ratios(rest)])
    theta, log_share = np.tile(theta[at], 2) / largest, np.tile(v[share], 2)
    allowed = shape >= -1.0
    return Region(theta=theta[allowed], shape=shape[allowed], log_share=log_share[allowed])


def _ratios(rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve ``log r + 1 / r - 1 = rest`` for its root r above 1 and its root below."""
    # log r is a smooth function of sqrt(rest): exact at nodes, straight lines between them (error below 1e-6).
    nodes = np.linspace(0.0, math.sqrt(float(rest.max())), _NODES)
    at = np.sqrt(rest)
    above, below = (
        # w exp(w) = -exp(-1 - rest) with w = -1 / r
        np.exp(np.interp(at, nodes, -np.log(-special.lambertw(-np.exp(-1 - nodes**2), branch).real)))
        for branch in (0, -1)
    )
    return above, below


def _along(rows: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    theta = np.expm1(s)
    theta = np.where(np.abs(theta) < 1e-7, 1e-7, theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.log1p(theta[:, None] * rows).mean(axis=-1)
        value = -np.log(best / theta) - best - 1
    return theta, best, np.where(np.isfinite(value), value, -math.inf)


def shape_range(edge: Region) -> tuple[float, float]:
    """Return the smallest and the largest shape of a region."""
    return float(edge.shape.min()), float(edge.shape.max())


def end_range(edge: Region) -> tuple[float, float]:
    """Return the smallest and the largest end point (as an excess) of a region; infinite when it has none."""
    ends = np.where(edge.theta < 0, -1 / np.where(edge.theta < 0, edge.theta, -1.0), math.inf)
    return float(ends.min()), float(ends.max())


def level_ranges(edge: Region, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the range of the return levels (as excesses) over a region.

    Parameters
    ----------
    edge : Region
        From `region`.
    expected : ndarray, shape (horizons,)
        Expected number of values above the threshold over each horizon.

    Returns
    -------
    low, high : ndarray, shape (horizons,)
    """
    log_count = np.log(expected)[:, None] + edge.log_share  # (horizons, points)
    with np.errstate(over="ignore"):
        levels = np.expm1(edge.shape * log_count) / edge.theta
    return levels.min(axis=1), levels.max(axis=1)


def pivotal_draws(y: FloatArray, draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw the parameters that could have made these excesses, for shapes at which the likelihood fails.

    The ratio of the two probability-weighted moments does not depend on the scale, and for fixed random numbers it
    grows with the shape. Each draw takes fresh random numbers and finds the shape at which they give the observed
    ratio, then the scale at which they give the observed mean. The spread of the shapes gives an exact interval.

    Parameters
    ----------
    y : ndarray, shape (k,)
        Excesses, sorted upwards.
    draws : int
        How many.
    rng : Generator
        From `evenhand.kernels.shared.seeds.stream`.

    Returns
    -------
    scale, shape, share : ndarray, shape (draws,)
        `share` is the true share above the threshold over its estimate k / n.

    Examples
    --------
    >>> scale, shape, _ = pivotal_draws(np.linspace(0.005, 0.995, 100), 200, np.random.default_rng(0))
    >>> bool(np.quantile(shape, 0.025) < -1 < np.quantile(shape, 0.975))
    True
    """
    k = y.size
    weights = np.arange(k - 1, -1, -1.0) / (k - 1)
    target = float((y * weights).mean() / y.mean())
    log_u = np.log(np.sort(rng.random((draws, k)), axis=1)[:, ::-1])  # sorted like the excesses
    low, high = np.full(draws, -12.0), np.full(draws, 1.5)
    for _ in range(24):
        shape = (low + high) / 2
        z = _standard(log_u, shape)
        above = (z * weights).mean(axis=1) / z.mean(axis=1) > target
        # A heavier tail puts more of the mean into the largest values, which have the smallest weights.
        low, high = np.where(above, shape, low), np.where(above, high, shape)
    shape = (low + high) / 2
    scale = y.mean() / _standard(log_u, shape).mean(axis=1)
    return scale, shape, rng.gamma(k, 1 / k, size=draws)


def _standard(log_u: FloatArray, shape: FloatArray) -> FloatArray:
    """Return excesses of scale 1 with survival probabilities exp(log_u)."""
    return np.asarray(-log_u * special.exprel(-shape[:, None] * log_u))
