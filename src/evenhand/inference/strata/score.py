"""Most likely rates of two groups in each stratum when all strata have one difference or one ratio, in closed form."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray


def restricted_rates(x: FloatArray, n: FloatArray, value: float, *, ratio: bool) -> FloatArray:
    """Return the most likely rates of both groups in each stratum that have this difference or ratio.

    Parameters
    ----------
    x, n : ndarray, shape (S, 2)
        Successes and trials.
    value : float
        First rate minus (or over) the second.
    ratio : bool
        Whether it is a ratio.

    Returns
    -------
    ndarray, shape (S, 2)

    Examples
    --------
    >>> restricted_rates(np.array([[8.0, 4.0]]), np.array([[10.0, 10.0]]), 0.2, ratio=False).round(3).tolist()
    [[0.71, 0.51]]
    """
    p, q, theta = x[:, 0] / n[:, 0], x[:, 1] / n[:, 1], n[:, 1] / n[:, 0]
    if ratio:
        if value == 0:
            return np.stack([np.zeros(len(p)), q], 1)
        # The smaller root of a quadratic, in the form without cancellation.
        half = (value * (1 + theta * q) + theta + p) / 2
        root = np.sqrt(np.maximum(half**2 - (1 + theta) * value * (p + theta * q), 0.0))
        first = value * (p + theta * q) / np.maximum(half + root, 1e-300)
        return np.clip(np.stack([first, first / value], 1), 0.0, 1.0)
    # The middle root of a cubic, by cosines: Farrington and Manning (1990).
    lead = 1 + theta
    b = -(1 + theta + p + theta * q + value * (theta + 2)) / (3 * lead)
    c = (value**2 + value * (2 * p + theta + 1) + p + theta * q) / (3 * lead)
    d = -p * value * (1 + value) / lead
    v = b**3 - 1.5 * b * c + d / 2
    u = np.where(v >= 0, 1.0, -1.0) * np.sqrt(np.maximum(b**2 - c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.arccos(np.clip(np.where(u == 0, 0.0, v / u**3), -1.0, 1.0))
    first = 2 * u * np.cos((np.pi + angle) / 3) - b
    first = np.clip(first, max(0.0, value), min(1.0, 1.0 + value))
    return np.asarray(np.clip(np.stack([first, first - value], 1), 0.0, 1.0))
