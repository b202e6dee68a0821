"""Sums over rows from which means, their variances and their studentised differences follow.

A sum is a line of six numbers: rows, and sums of w, w^2, w r, w^2 r, w^2 r^2, where w is a row's weight
and r its value less a centre. The last axis holds the six, the axis before it the groups.
"""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray, IntArray

# Rows whose features are held at once.
CHUNK = 100_000


def distinct(
    values: FloatArray, weights: FloatArray, counts: IntArray, codes: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Count equal rows: one line per distinct (value, weight), sorted, with its rows in each group.

    Parameters
    ----------
    values, weights : ndarray, shape (R,)
        The rows' contents.
    counts, codes : ndarray of int, shape (R,)
        Rows per record, and the group of each record.
    n_groups : int
        K.

    Returns
    -------
    values, weights : ndarray, shape (D,)
    table : ndarray of int64, shape (D, K)

    Examples
    --------
    >>> count, code = np.array([1, 1, 3]), np.array([0, 0, 1])
    >>> distinct(np.array([2.0, 1.0, 2.0]), np.ones(3), count, code, 2)[2].tolist()
    [[1, 0], [1, 3]]
    """
    v, w, c, g = values, weights, counts, codes
    if v.size == 0:
        return v, w, np.zeros((0, n_groups), dtype=np.int64)
    # Records often come sorted: one sort then serves many groupings.
    if not ((v[1:] > v[:-1]) | ((v[1:] == v[:-1]) & (w[1:] >= w[:-1]))).all():
        order = np.lexsort((w, v))
        v, w, c, g = v[order], w[order], c[order], g[order]
    new = np.concatenate([[True], (v[1:] != v[:-1]) | (w[1:] != w[:-1])])
    line = np.cumsum(new) - 1
    lines = int(line[-1]) + 1
    table = np.bincount(g * lines + line, weights=c, minlength=lines * n_groups)  # exact below 2**53 rows
    return v[new], w[new], table.astype(np.int64).reshape(n_groups, lines).T  # each group's counts lie together


def features(values: FloatArray, weights: FloatArray, centre: float) -> FloatArray:
    """Return what each row adds to a sum.

    Parameters
    ----------
    values, weights : ndarray, shape (D,)
        The rows' contents.
    centre : float
        Subtracted from the values: sums of squares keep their digits.

    Returns
    -------
    ndarray, shape (D, 6)

    Examples
    --------
    >>> features(np.array([3.0]), np.array([2.0]), 1.0).tolist()
    [[1.0, 2.0, 4.0, 4.0, 8.0, 16.0]]
    """
    r = values - centre
    one = np.ones_like(r)
    square = weights * weights
    return np.stack([one, weights, square, weights * r, square * r, square * r * r], axis=-1)


def group_sums(values: FloatArray, weights: FloatArray, counts: IntArray, centre: float) -> FloatArray:
    """Return one group's sum without holding all its rows' features at once.

    Parameters
    ----------
    values, weights : ndarray, shape (D,)
        The rows' contents.
    counts : ndarray of int, shape (D,)
        How often the group has each row.
    centre : float
        Subtracted from the values.

    Returns
    -------
    ndarray, shape (6,)

    Examples
    --------
    >>> group_sums(np.array([3.0]), np.array([2.0]), np.array([2]), 1.0).tolist()
    [2.0, 4.0, 8.0, 8.0, 16.0, 32.0]
    """
    used = np.flatnonzero(counts)
    out = np.zeros(6)
    for start in range(0, used.size, CHUNK):
        part = used[start : start + CHUNK]
        out += counts[part] @ features(values[part], weights[part], centre)
    return out


def mean(sums: FloatArray) -> FloatArray:
    """Return the mean less the centre, NaN without rows.

    Parameters
    ----------
    sums : ndarray, shape (..., 6)
        See the module.

    Returns
    -------
    ndarray, shape (...,)

    Examples
    --------
    >>> float(mean(np.array([2.0, 2.0, 2.0, 3.0, 3.0, 5.0])))
    1.5
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums[..., 3] / sums[..., 1])


def variance(sums: FloatArray, centre: FloatArray | float | None = None) -> FloatArray:
    """Return the linearised variance of the mean.

    Parameters
    ----------
    sums : ndarray, shape (..., 6)
        See the module.
    centre : float or ndarray, optional
        The mean under the null; by default the sample's own, with the factor n / (n - 1).

    Returns
    -------
    ndarray, shape (...,)
        NaN with too few rows.

    Examples
    --------
    >>> float(variance(np.array([2.0, 2.0, 2.0, 3.0, 3.0, 5.0])))
    0.25
    """
    c = mean(sums) if centre is None else centre
    square = np.maximum(sums[..., 5] - 2 * c * sums[..., 4] + c * c * sums[..., 2], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = square / sums[..., 1] ** 2
        if centre is None:
            n = sums[..., 0]
            out = np.where(n > 1, out * n / (n - 1), np.nan)
    return np.asarray(out)


def studentised(sums: FloatArray, *, null: bool) -> FloatArray:
    """Return the difference of two means over its standard error.

    Parameters
    ----------
    sums : ndarray, shape (..., 2, 6)
        Of two groups, centred at their pooled mean.
    null : bool
        Whether the variance is taken around the pooled mean, or around each group's own.

    Returns
    -------
    ndarray, shape (...,)
        0 when nothing varies and the means agree.

    Examples
    --------
    >>> pair = np.stack([features(np.array([v, v + 2]), np.ones(2), 0.0).sum(axis=0) for v in (-2.0, 0.0)])
    >>> round(float(studentised(pair, null=False)), 6)
    -1.414214
    """
    gap = mean(sums[..., 0, :]) - mean(sums[..., 1, :])
    spread = variance(sums, 0.0 if null else None).sum(axis=-1)
    # A variance of exactly zero would make the statistic infinite; a relative floor keeps its order.
    floor = 1e-14 * sums[..., 5].sum(axis=-1) / sums[..., 1].sum(axis=-1) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0, 0.0, gap / np.sqrt(np.maximum(spread, floor)))


def spread(sums: FloatArray, *, null: bool) -> FloatArray:
    """Return the precision-weighted sum of squares of K means around their weighted mean.

    Parameters
    ----------
    sums : ndarray, shape (..., K, 6)
        Centred at the pooled mean.
    null : bool
        As in `studentised`.

    Returns
    -------
    ndarray, shape (...,)

    Examples
    --------
    >>> one = features(np.array([-1.0, 1.0]), np.ones(2), 0.0).sum(axis=0)
    >>> float(spread(np.stack([one, one, one]), null=True))
    0.0
    """
    own = variance(sums, 0.0 if null else None)
    floor = 1e-14 * sums[..., 5].sum(axis=-1, keepdims=True) / sums[..., 1].sum(axis=-1, keepdims=True) ** 2
    return weighted_spread(mean(sums), np.maximum(own, np.maximum(floor, 1e-300)))


def weighted_spread(values: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the precision-weighted sum of squares of K values (last axis) around their weighted mean.

    Examples
    --------
    >>> float(weighted_spread(np.array([0.0, 2.0]), np.array([1.0, 1.0])))
    2.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = 1 / variances
        centre = (precision * values).sum(axis=-1, keepdims=True) / precision.sum(axis=-1, keepdims=True)
        return np.asarray((precision * (values - centre) ** 2).sum(axis=-1))
