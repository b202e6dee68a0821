"""Places of quantiles among weighted values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.arrays import FloatArray, IntArray


def weighted_ranks(mass: FloatArray, levels: Sequence[float]) -> IntArray:
    """Return the place of each quantile (inverse of the distribution function) among sorted values of given masses.

    A value of mass 3 counts as three equal values, so counted records and repeated rows agree.

    Examples
    --------
    >>> weighted_ranks(np.array([1.0, 2.0, 1.0]), (0.25, 0.5, 1.0)).tolist()
    [0, 1, 2]
    """
    total = np.cumsum(mass)
    places: IntArray = np.searchsorted(total, np.asarray(levels) * total[-1] * (1 - 1e-12)).astype(np.int64)
    return np.minimum(places, mass.size - 1)
