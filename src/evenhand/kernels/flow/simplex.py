"""Shares of a whole: the nearest point whose parts are at least 0 and sum to one."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray


def to_simplex(x: FloatArray) -> FloatArray:
    """Return the nearest points whose parts, along the first axis, are at least 0 and sum to 1.

    For two parts it is half of what is missing to each; for more the rule of Held, Wolfe and Crowder (1974).

    Parameters
    ----------
    x : ndarray, shape (parts, ...)
        Points.

    Returns
    -------
    ndarray, shape (parts, ...)

    Examples
    --------
    >>> to_simplex(np.array([1.0, 0.5, 0.0])).tolist()
    [0.75, 0.25, 0.0]
    >>> to_simplex(np.array([[0.7, 1.5], [0.1, 0.25]])).round(12).tolist()
    [[0.8, 1.0], [0.2, 0.0]]
    """
    if len(x) == 2:
        first = np.minimum(np.maximum((1.0 + x[0] - x[1]) / 2.0, 0.0), 1.0)
        return np.stack([first, 1.0 - first])
    down = -np.sort(-x, axis=0)
    over = (np.cumsum(down, axis=0) - 1.0) / np.arange(1, len(x) + 1).reshape(-1, *(1,) * (x.ndim - 1))
    used = (down > over).sum(axis=0, keepdims=True)
    return np.maximum(x - np.take_along_axis(over, used - 1, axis=0), 0.0)
