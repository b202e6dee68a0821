"""The largest mean logistic loss of a linear score within a transport budget, exactly.

Rows may be moved at the price of a squared distance d'Sd, which may cost no more than a budget on average. The largest
mean loss is, by duality, that of a problem in one number,

    min over penalty >= 0 of  penalty budget + mean of the largest penalised loss,     # [maity2021] eqs. (2.4), (2.5)

and a linear score makes the largest penalised loss a problem in one number too: among all moves that change the score
by some amount the cheapest goes along the pseudo-inverse of S times the slope. So both are solved, not bounded.

=============  ==========================  ==========
code           [maity2021]                 shape
=============  ==========================  ==========
z              log-odds against the label  (rows,)
speed          sqrt(w' S^+ w)              one number
penalty        lambda                      one number
budget         epsilon                     one number
=============  ==========================  ==========
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

from evenhand.arrays import FloatArray

_HALVINGS = 60


def score_speed(slope: FloatArray, matrix: FloatArray) -> float:
    """Return by how much a score w'x can change per unit of distance; infinite when it changes along a free direction.

    Parameters
    ----------
    slope : ndarray, shape (inputs,)
        w.
    matrix : ndarray, shape (inputs, inputs)
        S, positive semi-definite.

    Returns
    -------
    float

    Examples
    --------
    >>> score_speed(np.array([3.0, 4.0]), np.eye(2)), score_speed(np.array([1.0, 0.0]), np.diag([0.0, 1.0]))
    (5.0, inf)
    """
    values, vectors = np.linalg.eigh(matrix)
    along = vectors.T @ slope
    free = values <= 1e-12 * max(float(values[-1]), 1e-300)
    if np.abs(along[free]).max(initial=0.0) > 1e-12 * max(float(np.linalg.norm(slope)), 1e-300):
        return math.inf
    return float(np.sqrt((along[~free] ** 2 / values[~free]).sum()))


def largest_penalised(z: FloatArray, speed: float, penalty: float) -> tuple[FloatArray, FloatArray]:
    """Return for each row the largest log(1 + exp(z + speed t)) - penalty t^2 over t >= 0, and that t^2.

    The derivative falls except where the sigmoid is steep, so there are at most two maxima, one on each side of the
    steep part; both are found by halving.

    Parameters
    ----------
    z : ndarray, shape (rows,)
        Log-odds of the wrong label.
    speed : float
        Finite, see `score_speed`.
    penalty : float
        Above 0.

    Returns
    -------
    value, cost : ndarray, shape (rows,)

    Examples
    --------
    >>> value, cost = largest_penalised(np.array([0.0]), 1.0, 1e6)
    >>> value.round(4).tolist(), cost.round(4).tolist()
    ([0.6931], [0.0])
    """
    if speed == 0:
        return np.logaddexp(0.0, z), np.zeros_like(z)
    price = penalty / speed**2  # of a squared change of the score
    steep = _edge(2 * price)
    far = z + 1 / (2 * price)
    maxima = [_falling_root(z, price, z, np.maximum(z, -steep)), _falling_root(z, price, np.maximum(z, steep), far)]
    values = np.stack([np.logaddexp(0.0, u) - price * (u - z) ** 2 for u in maxima])
    best = values.argmax(axis=0)
    rows = np.arange(z.size)
    at = np.stack(maxima)[best, rows]
    return values[best, rows], ((at - z) / speed) ** 2


def _edge(slope: float) -> float:
    """Return where the sigmoid's derivative has fallen to a value; 0 where it never exceeds it."""
    return 0.0 if slope >= 0.25 else float(2 * math.acosh(1 / (2 * math.sqrt(slope))))


def _falling_root(z: FloatArray, price: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return where sigmoid(u) - 2 price (u - z) passes 0 between two ends, or the end it does not reach."""
    low, high = low.copy(), np.maximum(low, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = special.expit(middle) > 2 * price * (middle - z)
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return (low + high) / 2


def worst_mean_loss(z: FloatArray, speed: float, budget: float) -> tuple[float, float]:
    """Return the largest mean loss within a budget of mean squared distance, and the penalty that it is reached at.

    Parameters
    ----------
    z : ndarray, shape (rows,)
        Log-odds of the wrong label.
    speed : float
        See `score_speed`.
    budget : float
        Mean squared distance, at least 0.

    Returns
    -------
    value, penalty : float
        The value is infinite when the score changes along a free direction, whatever the budget; the penalty is then
        NaN.

    Examples
    --------
    >>> z = np.array([-1.0, 0.0, 2.0])
    >>> [round(worst_mean_loss(z, 1.0, budget)[0], 4) for budget in (0.0, 1.0)]
    [1.0444, 1.7153]
    >>> worst_mean_loss(z, math.inf, 0.0)[0]
    inf
    """
    if math.isinf(speed):
        return math.inf, math.nan
    plain = float(np.logaddexp(0.0, z).mean())
    if budget == 0 or speed == 0:
        return plain, math.inf

    def dual(log_penalty: float) -> float:
        penalty = math.exp(log_penalty)
        return penalty * budget + float(largest_penalised(z, speed, penalty)[0].mean())

    # The sigmoid lies below 1, so that no penalty above speed / (2 sqrt(budget)) is worth it, up to unequal rows.
    centre = math.log(speed / (2 * math.sqrt(budget)))
    found = optimize.minimize_scalar(
        dual, bounds=(centre - 25, centre + 25), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.fun), math.exp(float(found.x))
