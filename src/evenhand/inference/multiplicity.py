"""Corrections for testing many hypotheses at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError, near_matches

FloatArray = NDArray[np.float64]

METHODS = ("holm", "bonferroni", "bh", "none")


def adjust(pvalues: ArrayLike, method: str = "holm") -> FloatArray:
    """Adjust p-values for their number; compare the result with the error rate of the whole family.

    Parameters
    ----------
    pvalues : array_like
        Raw p-values. NaN is a test that was not made: it stays NaN and does not count.
    method : {"holm", "bonferroni", "bh", "none"}
        Holm (1979) holds the family-wise error under any dependence and is never worse than
        Bonferroni; "bh" (Benjamini and Hochberg 1995) holds the false discovery rate, under
        independence or positive dependence.

    Returns
    -------
    ndarray
        Same shape, between the raw p-value and 1, in the same order as the raw ones.

    Examples
    --------
    >>> adjust([0.01, 0.04, float("nan"), 0.03]).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    if method not in METHODS:
        raise UsageError(f"Unknown correction `{method}`.{near_matches(method, METHODS)}")
    raw = np.asarray(pvalues, dtype=np.float64)
    if np.any((raw < 0) | (raw > 1)):
        raise ValueError("p-values must lie between 0 and 1.")
    out = raw.copy()
    made = ~np.isnan(raw)
    known = raw[made]
    m = known.size
    if method == "none" or m == 0:
        return out
    if method == "bonferroni":
        out[made] = np.minimum(known * m, 1.0)
        return out
    order = np.argsort(known, kind="stable")
    rank = np.arange(1, m + 1)
    if method == "holm":
        stepped = np.maximum.accumulate(known[order] * (m + 1 - rank))
    else:
        stepped = np.minimum.accumulate((known[order] * m / rank)[::-1])[::-1]
    result = np.empty(m)
    result[order] = np.minimum(stepped, 1.0)
    out[made] = result
    return out
