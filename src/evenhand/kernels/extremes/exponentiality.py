"""Is a tail exponential or lighter? The residual coefficient of variation of the largest values.

The excesses over the k-th largest value of an exponential tail have a coefficient of variation (standard deviation
over mean) near 1 whatever k is; a bounded tail has less, a heavy tail more. The test looks at every k from `kmin` to
`kmax` and fails when any of them lies above ``1 + c / sqrt(k)``. As printed c is 1.96, the limit for one k; over all
k at once a true exponential then fails in 7 to 13 % of cases. The calibrated c brings that to the stated level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray

PRINTED = 1.96

# The 95 % quantiles of max over k in [10, kmax] of sqrt(k) (CV_k - 1) for an exponential tail. The law does not depend
# on the data's scale or size, so one simulation serves all: calibration/tail.py, 400,000 samples, error about 0.01.
_KMAX = (20, 30, 40, 50, 75, 100, 150, 200, 300, 500)
_LIMITS = (1.779, 2.001, 2.129, 2.215, 2.349, 2.434, 2.531, 2.593, 2.669, 2.744)
_KMIN = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExponentialityTest:
    """Whether a tail passes as exponential or lighter, for every k in a range."""

    k: NDArray[np.int64]  # numbers of largest values looked at
    variation: FloatArray  # residual coefficient of variation at each k
    limit: FloatArray  # upper limit at each k
    passed: bool  # whether all values lie below their limits


def residual_variation(top: FloatArray, kmin: int = _KMIN) -> FloatArray:
    """Return the coefficient of variation of the excesses over the k-th largest value, for every k.

    Parameters
    ----------
    top : ndarray, shape (..., kmax)
        The largest values, sorted downwards.
    kmin : int
        First k; the k - 1 larger values have excesses.

    Returns
    -------
    ndarray, shape (..., kmax - kmin + 1)
        NaN where the larger values all equal the k-th.

    Examples
    --------
    >>> residual_variation(np.array([4.0, 2.0, 1.0]), kmin=3).round(4).tolist()  # excesses 3 and 1
    [0.7071]
    """
    kmax = top.shape[-1]
    k = np.arange(kmin, kmax + 1)
    # Centred on the last value: sums of squares of large numbers would lose digits.
    y = top - top[..., -1:]
    sums, squares = np.cumsum(y, axis=-1)[..., k - 2], np.cumsum(y * y, axis=-1)[..., k - 2]
    n = k - 1
    mean = sums / n
    variance = np.maximum(squares / n - mean**2, 0.0) * n / (n - 1)
    excess = mean - y[..., k - 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(excess > 0, np.sqrt(variance) / excess, np.nan))


def limit_constant(kmax: int) -> float:
    """Return the calibrated c of the limit ``1 + c / sqrt(k)`` over k from 10 to `kmax`.

    Parameters
    ----------
    kmax : int
        Between 20 and 500.

    Returns
    -------
    float

    Examples
    --------
    >>> round(limit_constant(50), 1)
    2.2
    """
    return float(np.interp(math.log(kmax), np.log(_KMAX), _LIMITS))


def exponentiality(values: FloatArray, *, kmax: int = 50, printed: bool = False) -> ExponentialityTest:
    """Test whether the tail of a sample is exponential or lighter.

    Parameters
    ----------
    values : ndarray
        The sample, in any order; at least `kmax` values.
    kmax : int
        The largest k; the smallest is 10.
    printed : bool
        Use 1.96 for every k, as [monjezi2025] prints it.

    Returns
    -------
    ExponentialityTest

    Examples
    --------
    >>> sample = -np.log((np.arange(1000) + 0.5) / 1000)
    >>> exponentiality(sample).passed, exponentiality(np.exp(2 * sample)).passed
    (True, False)
    """
    if values.size < kmax:
        raise ValueError(f"the test needs at least {kmax} values; got {values.size}")
    top = -np.sort(np.partition(-values, kmax - 1)[:kmax])
    k = np.arange(_KMIN, kmax + 1)
    variation = residual_variation(top)
    constant = PRINTED if printed else limit_constant(kmax)
    scores = np.sqrt(k) * (variation - 1)
    # Tied largest values have no spread to judge: such a k cannot fail, ties are caught elsewhere.
    defined = scores[~np.isnan(scores)]
    passed = bool(defined.size and defined.max() <= constant)
    return ExponentialityTest(k=k, variation=variation, limit=1 + constant / np.sqrt(k), passed=passed)
