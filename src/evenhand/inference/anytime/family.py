"""Several questions at once, and batches that differ more than independent rows do."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

from evenhand.arrays import FloatArray
from evenhand.inference.anytime.betting import Stream

_MOST = 600.0  # larger logarithms are not told apart


def adjust_evidence(log_e: FloatArray, log_rival: FloatArray) -> FloatArray:
    """Adjust e-processes for their number: an alarm at 1 / alpha is false for any of them with probability alpha.

    Closed testing with averages [vovk2021]: the average of e-processes is one, whatever their dependence, and a claim
    is made when the average of its e-value and those of any others passes the bar.

    Parameters
    ----------
    log_e : ndarray, shape (..., questions)
        Logarithms of e-values at one time; leading axes are times.
    log_rival : ndarray, shape (..., questions)
        The smallest logarithm among all claims about each question, of which one at least is wrong.

    Returns
    -------
    ndarray, shape (..., questions)
        Logarithms of adjusted e-values, never above `log_e`.

    Examples
    --------
    >>> log_e = np.log([100.0, 1.0, 50.0])
    >>> np.exp(adjust_evidence(log_e, log_e)).round(1).tolist()
    [50.3, 1.0, 25.5]
    """
    e, rival = np.exp(np.minimum(log_e, _MOST)), np.exp(np.minimum(log_rival, _MOST))
    out = np.empty_like(e)
    for j in range(e.shape[-1]):
        others = np.sort(np.delete(rival, j, axis=-1), axis=-1)
        sums = e[..., j : j + 1] + np.concatenate([np.zeros((*e.shape[:-1], 1)), np.cumsum(others, axis=-1)], axis=-1)
        out[..., j] = (sums / np.arange(1, e.shape[-1] + 1)).min(axis=-1)
    with np.errstate(divide="ignore"):
        return np.log(out)


class Dispersion(NamedTuple):
    """How much the difference varies between batches, beside what independent rows give."""

    statistic: float  # chi-square
    freedom: int
    pvalue: float


def dispersion(stream: Stream) -> Dispersion:
    """Compare the spread of the batches' differences with that of independent rows.

    Parameters
    ----------
    stream : Stream
        Sums of shape (batches, 2).

    Returns
    -------
    Dispersion
        NaN where fewer than 3 batches have enough rows of both groups.

    Examples
    --------
    >>> size = np.full((4, 2), 1000.0)
    >>> total = np.array([[500.0, 500.0], [700.0, 300.0], [300.0, 700.0], [500.0, 500.0]])
    >>> dispersion(Stream(size=size, total=total, square=total, binary=True)).pvalue < 1e-10
    True
    """
    used = (stream.size >= 10).all(axis=-1)
    size, total, square = (a[used] for a in (stream.size, stream.total, stream.square))
    if len(size) < 3:
        return Dispersion(math.nan, 0, math.nan)
    mean = total / size
    # The variance that the groups have over all batches, around each batch's own mean.
    within = (square - size * mean**2).sum(axis=0) / (size - 1).sum(axis=0)
    if not (within > 0).any():
        return Dispersion(math.nan, 0, math.nan)
    gap, weight = mean[:, 0] - mean[:, 1], 1 / (within / size).sum(axis=-1)
    center = (weight * gap).sum() / weight.sum()
    statistic = float((weight * (gap - center) ** 2).sum())
    freedom = len(size) - 1
    return Dispersion(statistic, freedom, float(gammaincc(freedom / 2, statistic / 2)))
