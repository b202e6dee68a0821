"""From the gains of single bets to one capital: a mixture that learns, and one that forgets.

Three quarters of the capital are spread over the bets once and left there: the bet that is right soon holds most of it.
The rest may change its mind: before each batch one fiftieth of it is spread anew, and half of that keeps out of the
game. So a change after years of calm is seen soon, where bets that lost for years could not recover. Both are averages
of products of e-values whose weights are known before the batch: e-processes, as is their average.
"""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.inference.anytime.betting import EFFECTS

_LEFT = 0.75  # share of the capital that is spread once
_ANEW = 0.02  # share of the rest that is spread anew before each batch
_IDLE = 0.5  # share of that which is not bet


def prior(center: float = 0.4, spread: float = 0.7) -> FloatArray:
    """Return how the capital is spread over `EFFECTS` at first: by default most where disparities that matter lie.

    Parameters
    ----------
    center : float
        The size of bet that gets most.
    spread : float
        By how much the logarithm of the others differs from it, as a standard deviation.

    Returns
    -------
    ndarray, shape (bets,)

    Examples
    --------
    >>> round(float(prior().sum()), 12)
    1.0
    """
    weight = np.exp(-0.5 * (np.log(EFFECTS / center) / spread) ** 2)
    return np.asarray(0.95 * weight / weight.sum() + 0.05 / EFFECTS.size)


def log_capital(gains: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Return the logarithm of the capital after each batch.

    Parameters
    ----------
    gains : ndarray, shape (..., batches, bets)
        Log e-values.
    weight : ndarray, shape (bets,), optional
        How the capital is spread at first; `prior` by default.

    Returns
    -------
    ndarray, shape (..., batches)

    Examples
    --------
    >>> bool(np.allclose(log_capital(np.zeros((3, 28))), 0.0))
    True
    """
    weight = prior() if weight is None else weight
    fresh = np.concatenate([[_IDLE], (1 - _IDLE) * weight])
    left = np.broadcast_to(np.log(weight), (*gains.shape[:-2], weight.size)).copy()
    moved = np.broadcast_to(fresh, (*gains.shape[:-2], fresh.size)).copy()
    log_moved = np.zeros(gains.shape[:-2])
    out = np.empty(gains.shape[:-1])
    for t in range(gains.shape[-2]):
        gain = gains[..., t, :]
        left += gain
        top = np.maximum(gain.max(axis=-1, keepdims=True), 0.0)
        moved[..., :1] *= np.exp(-top)
        moved[..., 1:] *= np.exp(gain - top)
        total = moved.sum(axis=-1, keepdims=True)
        log_moved = log_moved + (np.log(total) + top)[..., 0]
        moved = (1 - _ANEW) * moved / total + _ANEW * fresh
        peak = left.max(axis=-1, keepdims=True)
        log_left = (np.log(np.exp(left - peak).sum(axis=-1, keepdims=True)) + peak)[..., 0]
        out[..., t] = np.logaddexp(np.log(_LEFT) + log_left, np.log(1 - _LEFT) + log_moved)
    return out
