"""Bins of relative width: values that differ by less than a given share of their size are counted together.

The bins do not depend on the data, so counts from any division of the rows can be added. A value's bin is the top of
its bits: sign, exponent and the first digits of what follows.
"""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray, IntArray


def bin_places(values: FloatArray, digits: int) -> IntArray:
    """Return each value's bin: larger values have larger numbers, 0 has the bin 0, and 1e-300 to 1e300 have bins alike.

    Parameters
    ----------
    values : ndarray
        No NaN; infinite values have bins of their own.
    digits : int
        Binary digits that count: a bin is at most ``2**-digits`` of its values wide.

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> places = bin_places(np.array([-1.0, 0.0, 1.0, 1.2, 1.3, 2.0]), 2)  # quarters between 1 and 2
    >>> (places - places[2]).tolist()[2:]
    [0, 0, 1, 4]
    >>> places[:3].tolist() == [-places[2], 0, places[2]]
    True
    """
    size = np.abs(values).astype(np.float64) + 0.0
    bits = (size.view(np.int64) >> np.int64(52 - digits)).astype(np.int64)
    return np.where(values < 0, -bits, bits)
