"""What a search would have found: the smallest difference of a subgroup's rate that is shown in 8 of 10 cases."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from evenhand.kernels.scan.count_evidence import CountEvidence


def detectable_difference(size: int, rows: int, successes: int, critical: float, power: float = 0.8) -> float:
    """Return by how much a subgroup's rate must exceed the rest's to be shown with the given chance.

    The margins are held at what was seen; the subgroup's count is binomial.

    Parameters
    ----------
    size : int
        People of the subgroup.
    rows, successes : int
        Of everybody.
    critical : float
        The evidence (minus the logarithm of the p-value) that it must reach.
    power : float
        The chance.

    Returns
    -------
    float
        NaN where no rate is high enough.

    Examples
    --------
    >>> round(detectable_difference(500, 5000, 1500, 9.4), 2)
    0.11
    >>> detectable_difference(3, 5000, 1500, 9.4)
    nan
    """
    law = CountEvidence(np.array([size]), rows=rows, successes=successes)
    highest = min(size, successes)
    low, high = math.ceil(size * successes / rows), highest
    if not law(np.array([high]))[0] >= critical:
        return math.nan
    while low < high:  # the smallest count above the mean that is shown
        middle = (low + high) // 2
        low, high = (low, middle) if law(np.array([middle]))[0] >= critical else (middle + 1, high)
    rate = float(special.bdtri(low - 1, size, 1 - power)) if low >= 1 else 0.0  # P(count >= low) is the power
    others = (successes - size * rate) / (rows - size)
    return rate - max(others, 0.0)
