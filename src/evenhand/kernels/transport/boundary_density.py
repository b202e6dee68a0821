"""Kernel weights at one point: how much probability lies at a boundary, in the data's own units."""

from __future__ import annotations

import math

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.shared.ranks import weighted_ranks


def weighted_quantile(values: FloatArray, mass: FloatArray | None, levels: tuple[float, ...]) -> tuple[float, ...]:
    """Return quantiles of weighted values (inverse of the distribution function).

    A value of mass 3 counts as three equal values, so counted records and repeated rows agree.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Finite values.
    mass : ndarray, shape (n,), or None
        Non-negative masses; None for one each.
    levels : tuple of float
        Levels between 0 and 1.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> weighted_quantile(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 1.0]), (0.5,))
    (2.0,)
    """
    if mass is None:
        ranks = [min(values.size - 1, max(0, math.ceil(q * values.size - 1e-9) - 1)) for q in levels]
        part = np.partition(values, sorted(set(ranks)))
        return tuple(float(part[k]) for k in ranks)
    order = np.argsort(values, kind="stable")
    return tuple(float(v) for v in values[order[weighted_ranks(mass[order], levels)]])


def silverman(values: FloatArray, mass: FloatArray | None = None, *, rows: float | None = None) -> float:
    """Return Silverman's bandwidth for a Gaussian kernel.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Values; infinite ones are left out of the spread.
    mass : ndarray, shape (n,), or None
        Non-negative masses; None for one each.
    rows : float, optional
        How many independent rows the values stand for; by default the total mass.

    Returns
    -------
    float
        0.0 when the values have no spread.

    Examples
    --------
    >>> round(silverman(np.linspace(-1.0, 1.0, 1001)), 3)
    0.131
    """
    finite = np.isfinite(values)
    if not finite.all():
        values = values[finite]
        mass = None if mass is None else mass[finite]
    if values.size == 0:
        return 0.0
    total = float(values.size) if mass is None else float(mass.sum())
    n = total if rows is None else rows
    mean = float(np.average(values, weights=mass))
    deviation = math.sqrt(float(np.average((values - mean) ** 2, weights=mass)))
    low, high = weighted_quantile(values, mass, (0.25, 0.75))
    spread = min(deviation, (high - low) / 1.349) if high > low else deviation
    return float(0.9 * spread * n**-0.2)


def gaussian_weights(values: FloatArray, bandwidth: float) -> FloatArray:
    """Return each value's contribution to the density at 0.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Values; infinite ones contribute nothing.
    bandwidth : float
        Standard deviation of the kernel, above 0.

    Returns
    -------
    ndarray, shape (n,)
        K(value / bandwidth) / bandwidth; their mean estimates the density at 0.

    Examples
    --------
    >>> gaussian_weights(np.array([0.0, np.inf]), 1.0).round(4).tolist()
    [0.3989, 0.0]
    """
    return np.exp(-0.5 * (values / bandwidth) ** 2) / (bandwidth * math.sqrt(2 * math.pi))
