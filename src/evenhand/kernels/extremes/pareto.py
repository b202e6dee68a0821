"""Generalised Pareto excesses: density, fit by likelihood or by moments, return levels.

An excess y over a threshold has survival function ``(1 + shape * y / scale) ** (-1 / shape)``; a negative shape
means an end point at ``-scale / shape``. With ``theta = shape / scale`` the likelihood's maximum over the shape is
``mean(log(1 + theta * y))``, so a fit is a search over one number, and an upper limit for the end point is an upper
limit for theta. All functions work on many samples at once: samples first, excesses last.

The same numbers in point-process form: over a horizon of m observations the number of values above x is Poisson
with mean ``(1 + shape * (x - location_m) / scale_m) ** (-1 / shape)``. The location at horizon m is the level
exceeded once in m observations on average, which is also the return level of m.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray

# Below -1/2 the likelihood is not regular, below -1 it has no maximum. Down to here its profile intervals still hold
# their level (calibration/tail.py); below, moments take over.
REGULAR = -0.75
_HOPELESS = -1.2
_TINY = 1e-6
_GRID = 25
_STEPS = 60


def survival(y: FloatArray | float, scale: FloatArray | float, shape: FloatArray | float) -> FloatArray:
    """Return the probability that an excess is larger than y, which is 0 or larger.

    Examples
    --------
    >>> survival(1.0, 2.0, -1.0).item()  # the uniform law on [0, 2]
    0.5
    """
    y, scale, shape = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (y, scale, shape)))
    small = np.abs(shape) < _TINY
    inside = np.where(small, 1.0, 1 + shape * y / scale)
    with np.errstate(divide="ignore"):
        power = -np.log(np.maximum(inside, 0.0)) / np.where(small, 1.0, shape)
    # A negative shape ends at -scale / shape, where the power is minus infinity.
    return np.asarray(np.exp(np.where(small, -y / scale + shape * (y / scale) ** 2 / 2, power)))


def quantile(p: FloatArray | float, scale: FloatArray | float, shape: FloatArray | float) -> FloatArray:
    """Return the excess that is exceeded with probability p; values above 1 extend the law below its threshold.

    Examples
    --------
    >>> quantile(0.5, 2.0, -1.0).item()
    1.0
    """
    # (p**-shape - 1) / shape, written so that shape 0 is no special case.
    x = -np.log(np.asarray(p, dtype=float))
    return np.asarray(np.asarray(scale, dtype=float) * x * special.exprel(np.asarray(shape, dtype=float) * x))


def moments_fit(y: FloatArray, *, room: FloatArray | float = math.inf) -> tuple[FloatArray, FloatArray]:
    """Fit by probability-weighted moments, which exist whatever the negative shape.

    Parameters
    ----------
    y : ndarray, shape (..., k)
        Excesses, sorted upwards along the last axis.
    room : array or float
        Largest possible excess; the end point lies between the largest excess and this.

    Returns
    -------
    scale, shape : ndarray, shape (...)

    Examples
    --------
    >>> scale, shape = moments_fit(np.linspace(0.005, 0.995, 100))
    >>> round(float(shape), 1), round(float(scale), 1)
    (-1.0, 1.0)
    """
    k = y.shape[-1]
    mean = y.mean(axis=-1)
    # Unbiased estimate of E[Y (1 - F(Y))]: [hosking1987] sec. 4.
    second = (y * (np.arange(k - 1, -1, -1.0) / (k - 1))).mean(axis=-1)
    spread = np.maximum(mean - 2 * second, mean * 1e-12)
    shape = 2 - mean / spread
    scale = 2 * mean * second / spread
    return _keep_end(scale, shape, mean, y[..., -1], np.asarray(room, dtype=float))


def _keep_end(
    scale: FloatArray, shape: FloatArray, mean: FloatArray, largest: FloatArray, room: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Move the end point into [largest excess, room], keeping the fitted mean ``scale / (1 - shape)``."""
    with np.errstate(divide="ignore"):
        end = np.where(shape < 0, -scale / np.where(shape < 0, shape, -1.0), math.inf)
    wanted = np.clip(end, largest, np.maximum(room, largest))
    # mean = scale / (1 - shape) and end = -scale / shape give shape = mean / (mean - end).
    moved = (end != wanted) & (wanted > mean)
    fixed = np.where(moved, mean / (mean - np.where(moved, wanted, mean + 1)), shape)
    return np.where(moved, mean * (1 - fixed), scale), fixed


def likelihood_fit(y: FloatArray, *, room: FloatArray | float = math.inf) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Fit by maximum likelihood among shapes of at least -3/4 and end points of at most `room`.

    Parameters
    ----------
    y : ndarray, shape (..., k)
        Excesses, sorted upwards along the last axis, the largest above 0.
    room : array or float
        Largest possible excess.

    Returns
    -------
    scale, shape : ndarray, shape (...)
    exists : ndarray of bool, shape (...)
        False where the likelihood has no maximum at a shape above -1/2; scale and shape are then NaN.

    Examples
    --------
    >>> scale, shape, exists = likelihood_fit(np.sort(-np.log(np.linspace(0.005, 0.995, 100))))
    >>> round(float(scale), 2), round(float(shape), 2), bool(exists)
    (1.02, -0.02, True)
    """
    lead = y.shape[:-1]
    largest = y[..., -1].reshape(-1)
    rows = y.reshape(-1, y.shape[-1]) / largest[:, None]  # largest excess 1
    reach = np.broadcast_to(np.asarray(room, dtype=float), lead).reshape(-1) / largest
    # s = log(1 + theta) with theta in units of the largest excess; the end point's limit is theta <= -1 / room.
    with np.errstate(divide="ignore"):
        top = np.where(np.isfinite(reach), np.log1p(-1 / np.maximum(reach, 1 + 1e-12)), 12.0)
    start_scale, start_shape = moments_fit(rows, room=reach)
    # One value far above many equal ones has scale 0 by moments.
    start = np.log1p(np.maximum(start_shape / np.maximum(start_scale, 1e-300), -0.99))
    s, done, lost = _newton(rows, np.minimum(start, top), top)
    # Where the moments point far below -1 the likelihood grows without limit: no search is needed.
    search = ~done & ~lost & (start_shape > _HOPELESS)
    if search.any():
        s[search] = _search(rows[search], top[search])
    shape, _ = _profile(rows, s)
    scale = _ratio(rows, np.expm1(s), shape) * largest
    exists = (shape >= REGULAR) & (done | search)
    scale, shape = np.where(exists, scale, math.nan), np.where(exists, shape, math.nan)
    return scale.reshape(lead), shape.reshape(lead), exists.reshape(lead)


def _newton(rows: FloatArray, s: FloatArray, top: FloatArray) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Climb from a good start on all rows at once; say which arrived at a maximum and which have none."""
    s, done = s.copy(), np.zeros(s.shape, dtype=bool)
    lost = np.zeros(s.shape, dtype=bool)
    for _ in range(15):
        active = np.flatnonzero(~(done | lost))
        if not active.size:
            break
        y, at, limit = rows[active] if active.size < s.size else rows, s[active], top[active]
        g, h, shape = _slopes(y, at)
        step = np.clip(np.where(h < 0, -g / np.where(h < 0, h, 1.0), np.sign(g) * 0.5), -1.0, 1.0)
        done[active] = ((np.abs(step) < 1e-9) & (h < 0) | ((at == limit) & (g >= 0))) & (shape > -1)
        # Below a shape of -1 the likelihood only grows on the way down.
        lost[active] = (shape < -1.1) & (step < 0)
        s[active] = np.where(done[active], at, np.clip(at + step, -11.0, limit))
    return s, done, lost


def _slopes(y: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the first and second derivative of the mean log-likelihood along s, and the best shape at s."""
    q = np.exp(s)
    theta = q - 1
    inverse = 1 / (1 + theta[:, None] * y)
    shape = -np.log(inverse).mean(axis=-1)
    part = y * inverse
    first, second = part.mean(axis=-1), (part * part).mean(axis=-1)
    near = np.abs(theta) < 1e-4
    t, x = np.where(near, 1.0, theta), np.where(near, 1.0, shape)
    slope, bend = 1 / t - first / x, -1 / t**2 + (second * x + first**2) / x**2
    if near.any():  # the differences cancel there: their series
        mean, square, cube = y.mean(axis=-1), (y**2).mean(axis=-1), (y**3).mean(axis=-1)
        bend_zero = square**2 / (4 * mean**2) - 2 * cube / (3 * mean)
        slope = np.where(near, square / (2 * mean) + theta * bend_zero, slope)
        bend = np.where(near, bend_zero, bend)
    slope, bend = slope - first, bend + second
    return slope * q, bend * q * q + slope * q, shape


def _search(rows: FloatArray, top: FloatArray) -> FloatArray:
    """Find the best s among shapes of at least -1 on a grid, then by golden section."""
    bottom = np.minimum(-12.0, top - 1.0)
    best, value = top.copy(), np.full(top.shape, -math.inf)
    for step in np.linspace(0.0, 1.0, _GRID):
        # Denser near the top, where good fits lie when an end point is known.
        s = top + (bottom - top) * step**1.5
        here = _inside(rows, s)
        better = here > value
        best, value = np.where(better, s, best), np.where(better, here, value)
    width = (top - bottom) * 1.6 / (_GRID - 1)
    # The best shape grows with s: where even the upper neighbour's is not regular, no maximum near here is.
    near = _profile(rows, np.minimum(best + width, top))[0] >= REGULAR
    if near.any():
        best[near] = _refine(rows[near], best[near], width[near], bottom[near], top[near])
    return best


def _ratio(rows: FloatArray, theta: FloatArray, shape: FloatArray) -> FloatArray:
    """Return shape / theta, by its series where theta is near 0."""
    near = np.abs(theta) < _TINY
    if not near.any():
        return shape / theta
    mean, square = rows.mean(axis=-1), (rows**2).mean(axis=-1)
    return np.where(near, mean - theta * square / 2, shape / np.where(near, 1.0, theta))


def _profile(rows: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the best shape at theta = expm1(s) and the mean log-likelihood there."""
    theta = np.expm1(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = np.log1p(theta[:, None] * rows).mean(axis=-1)
        value = -np.log(_ratio(rows, theta, shape)) - shape - 1
    return shape, np.where(np.isfinite(value), value, -math.inf)


def _refine(rows: FloatArray, s: FloatArray, width: FloatArray, bottom: FloatArray, top: FloatArray) -> FloatArray:
    """Golden-section search around the best grid point, on all rows at once."""
    golden = (math.sqrt(5) - 1) / 2
    low, high = np.maximum(s - width, bottom), np.minimum(s + width, top)
    a, b = high - golden * (high - low), low + golden * (high - low)
    value_a, value_b = _inside(rows, a), _inside(rows, b)
    for _ in range(_STEPS):
        left = value_a >= value_b
        low, high = np.where(left, low, a), np.where(left, b, high)
        a, b, old_a, old_b = high - golden * (high - low), low + golden * (high - low), a, b
        fresh = _inside(rows, np.where(left, a, b))
        value_a, value_b = np.where(left, fresh, value_b), np.where(left, value_a, fresh)
        a, b = np.where(left, a, old_b), np.where(left, old_a, b)
        if float(np.max(high - low)) < 1e-8:
            break
    middle = (low + high) / 2
    # The grid point itself wins where the maximum lies on the edge of what is allowed.
    return np.where(_inside(rows, s) > _inside(rows, middle), s, middle)


def _inside(rows: FloatArray, s: FloatArray) -> FloatArray:
    shape, value = _profile(rows, s)
    return np.where(shape >= -1.0, value, -math.inf)


def fit(y: FloatArray, *, room: FloatArray | float = math.inf) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Fit by likelihood where it is regular, by probability-weighted moments elsewhere.

    Parameters
    ----------
    y : ndarray, shape (..., k)
        Excesses, sorted upwards along the last axis.
    room : array or float
        Largest possible excess.

    Returns
    -------
    scale, shape : ndarray, shape (...)
    likely : ndarray of bool, shape (...)
        True where likelihood was used.

    Examples
    --------
    >>> scale, shape, likely = fit(np.linspace(0.005, 0.995, 100))
    >>> bool(likely), round(float(shape), 1)
    (False, -1.0)
    """
    scale, shape, likely = likelihood_fit(y, room=room)
    if likely.all():
        return scale, shape, likely
    other_scale, other_shape = moments_fit(y, room=room)
    return np.where(likely, scale, other_scale), np.where(likely, shape, other_shape), likely
