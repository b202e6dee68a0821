"""Tails of weighted sums of chi-squares, and of quadratic programmes over a cone in Gaussian noise.

`weighted_sf` integrates the moment generating function along a parabola around its branch cut, through the
saddle point: the relative error stays near rounding far out in the tail, where sums of draws say 0.
`cone_sf` uses that the value of the programme grows with the square of the noise: given the direction of
the noise, the tail is an ordinary chi-square, and only directions need to be averaged.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray

_NODES = 400  # trapezoid nodes on the half contour
_REACH = 8.5  # in units of the contour's own width: exp(-reach^2 / 2) is below rounding
_DIRECTIONS = 1 << 14  # points on the sphere for three and more constraints
_FACES = 10  # up to this many constraints all faces of the cone are listed


def weighted_sf(x: float, weights: ArrayLike) -> float:
    """Return the probability that a weighted sum of independent chi-squares exceeds a value.

    Parameters
    ----------
    x : float
        The value.
    weights : array_like, shape (m,)
        Positive weights, each of a chi-square with one degree of freedom.

    Returns
    -------
    float

    Examples
    --------
    >>> round(weighted_sf(3.841458820694124, [1.0]), 12)
    0.05
    >>> round(weighted_sf(5.0, [0.5, 0.5]), 12) == round(float(np.exp(-5.0)), 12)
    True
    """
    lam = _checked(weights)
    if math.isnan(x):
        return math.nan
    if x <= 0:
        return 1.0
    if math.isinf(x):
        return 0.0
    if lam.size == 1:
        return float(special.chdtrc(1.0, x / lam[0]))
    scale = lam.max()
    lam, x = lam / scale, x / scale
    # Left of the mean the saddle point slides towards the pole at 0, where the integrand is stiff; the tail
    # is then of order one and any point in between gives it to rounding.
    c = max(_saddle(x, lam), 0.15)
    rest = 1 - 2 * lam * c
    second = float(np.sum(2 * lam**2 / rest**2)) + 1 / c**2
    third = float(np.sum(8 * lam**3 / rest**3)) - 2 / c**3
    width = 1 / math.sqrt(second)
    # The steepest path bends by third / (6 second); a path that does not bend to the right would oscillate.
    bend = max(third / (6 * second), 0.05 / width)
    # As much as exp(-s x) needs to fall below rounding, whatever the local width says.
    reach = max(_REACH * width, math.sqrt(40 / (bend * x)))
    reach = min(reach, math.sqrt(740 / (bend * x)))
    # Weights of very different size make the integrand live on several scales: space nodes geometrically.
    nodes = _NODES if x > 0.01 else 8 * _NODES
    v = np.linspace(0.0, math.asinh(reach / width), nodes + 1)
    u = width * np.sinh(v)
    s = c + bend * u**2 + 1j * u  # (nodes,)
    exponent = -s * x - 0.5 * np.log(1 - 2 * lam[:, None] * s).sum(axis=0)  # (nodes,)
    integrand = (np.exp(exponent) / s * (2 * bend * u + 1j)).imag * width * np.cosh(v)
    integrand[0] *= 0.5
    return float(min(1.0, max(0.0, integrand.sum() * v[1] / math.pi)))


def weighted_isf(q: float, weights: ArrayLike) -> float:
    """Return the value a weighted sum of chi-squares exceeds with a given probability.

    Parameters
    ----------
    q : float
        The probability, between 0 and 1.
    weights : array_like, shape (m,)
        Positive weights.

    Returns
    -------
    float

    Examples
    --------
    >>> round(weighted_isf(0.05, [0.7006]), 3)
    2.691
    """
    from scipy.optimize import brentq  # slow to import: only when needed

    lam = _checked(weights)
    if not 0 < q < 1:
        raise ValueError(f"`q` must lie between 0 and 1; got {q}.")
    if lam.size == 1:
        return float(lam[0] * special.chdtri(1.0, q))
    high = float(lam.max() * special.chdtri(lam.size, q))  # all weights at the largest: an upper bound
    low = float(lam.max() * special.chdtri(1.0, q))  # the largest weight alone: a lower bound
    return float(brentq(lambda x: weighted_sf(x, lam) - q, low * (1 - 1e-9), high * (1 + 1e-9), xtol=1e-12 * high))


def cone_sf(x: float, curvature: ArrayLike, covariance: ArrayLike) -> float:
    """Return the tail of max over g >= 0 of g.V - g.S.g / 2 with V normal.

    With S equal to the covariance of V this is half a chi-bar-square. [si2021] eq. (10).

    Parameters
    ----------
    x : float
        The value exceeded.
    curvature : array_like, shape (m, m)
        The positive definite matrix S.
    covariance : array_like, shape (m, m)
        The covariance of V.

    Returns
    -------
    float
        Exact for one constraint, by quadrature for two, over a fixed even set of directions for more
        (absolute error below 1e-3).

    Examples
    --------
    >>> cone_sf(0.0, [[1.0]], [[1.0]])
    1.0
    >>> round(cone_sf(0.5 * 2.705543454095404, [[1.0]], [[1.0]]), 12)
    0.05
    """
    S = np.atleast_2d(np.asarray(curvature, dtype=float))  # (m, m)
    cov = np.atleast_2d(np.asarray(covariance, dtype=float))  # (m, m)
    m = S.shape[0]
    if math.isnan(x):
        return math.nan
    if x <= 0:
        return 1.0  # the maximum is never below 0, and equals it with positive probability
    if m == 1:
        return float(0.5 * special.chdtrc(1.0, 2 * x * S[0, 0] / cov[0, 0]))
    eigenvalues, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))  # root @ root.T = cov
    value = cone_value(_directions(m) @ root.T, S)  # (directions,)
    with np.errstate(divide="ignore"):
        tails = special.chdtrc(float(m), x / value)
    return float(np.where(value > 0, tails, 0.0).mean())


def cone_value(V: FloatArray, S: FloatArray) -> FloatArray:
    """Return max over g >= 0 of g.V - g.S.g / 2, row by row.

    Parameters
    ----------
    V : ndarray, shape (n, m)
        The linear terms.
    S : ndarray, shape (m, m)
        The positive definite quadratic term.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> cone_value(np.array([[1.0, -1.0], [1.0, 2.0]]), np.eye(2)).tolist()
    [0.5, 2.5]
    """
    n, m = V.shape
    if m > _FACES:
        return _cone_value_iterated(V, S)
    best = np.zeros(n)
    for size in range(1, m + 1):
        for face in itertools.combinations(range(m), size):
            keep = list(face)
            part = V[:, keep]
            g = np.linalg.solve(S[np.ix_(keep, keep)], part.T).T  # (n, size)
            # Any feasible stationary point is a lower bound, and the maximum is one of them.
            worth = np.where((g >= 0).all(axis=1), 0.5 * (g * part).sum(axis=1), 0.0)
            np.maximum(best, worth, out=best)
    return best


def _cone_value_iterated(V: FloatArray, S: FloatArray) -> FloatArray:
    g = np.zeros_like(V)
    diagonal = np.diag(S)
    for _ in range(2000):
        largest = 0.0
        for k in range(V.shape[1]):
            new = np.maximum(0.0, g[:, k] + (V[:, k] - g @ S[k]) / diagonal[k])
            largest = max(largest, float(np.abs(new - g[:, k]).max()))
            g[:, k] = new
        if largest <= 1e-10 * max(1.0, float(np.abs(g).max())):
            break
    value: FloatArray = (g * V).sum(axis=1) - 0.5 * np.einsum("ni,ij,nj->n", g, S, g)
    return np.maximum(value, 0.0)


def _directions(m: int) -> FloatArray:
    """Spread points evenly over the sphere: a circle for two, a Kronecker sequence beyond."""
    from scipy.optimize import brentq  # slow to import: only when needed

    if m == 2:
        angle = (np.arange(_DIRECTIONS) + 0.5) * (2 * math.pi / _DIRECTIONS)
        return np.column_stack([np.cos(angle), np.sin(angle)])
    root = float(brentq(lambda z: z ** (m + 1) - z - 1, 1.0, 2.0))
    step = root ** -np.arange(1.0, m + 1.0)  # (m,)
    uniform = np.mod(0.5 + np.arange(1, _DIRECTIONS // 2 + 1)[:, None] * step, 1.0)  # (half, m)
    normal = special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    unit = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return np.concatenate([unit, -unit])  # antithetic: odd errors cancel


def _saddle(x: float, lam: FloatArray) -> float:
    """Return where the exponent of the inversion integral is smallest between the pole and the branch point."""
    from scipy.optimize import brentq  # slow to import: only when needed

    def slope(c: float) -> float:
        return float(np.sum(lam / (1 - 2 * lam * c))) - x - 1 / c

    high = 0.5 / float(lam.max())
    near = high * (1 - 1e-13)
    low = high * 1e-13
    while slope(low) > 0:
        low *= 1e-3
    return near if slope(near) < 0 else float(brentq(slope, low, near, xtol=1e-14 * high))


def _checked(weights: ArrayLike) -> FloatArray:
    lam = np.atleast_1d(np.asarray(weights, dtype=float))
    if lam.ndim != 1 or lam.size == 0 or not np.all(np.isfinite(lam)) or np.any(lam <= 0):
        raise ValueError(f"`weights` must be positive finite numbers; got {lam!r}.")
    return lam
