"""The law of the projection's cost when the conditions hold in the population. [si2021] Theorems 1 and 2.

N times the projection distance tends to V' S^-1 V / 2, with V normal of covariance Sigma (the influence of a row
on the conditions, the phi_z correction included) and S the density of rows at the boundary weighted by the outer
square of phi. So it is a sum of independent chi-squares weighted by the eigenvalues of S^-1/2 Sigma S^-1/2 / 2.

Everything here is a sum over cells (value of phi, side of the boundary): rows are touched once, by the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.shared.ranks import weighted_ranks
from evenhand.kernels.transport.projection import Cell
from evenhand.kernels.transport.weighted_chisquare import cone_sf, weighted_isf, weighted_sf

_LEAST = 1e-300  # p-values are never 0
_SINGULAR = 1e-9  # smallest correlation eigenvalue of a matrix that is inverted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Law:
    """A limit law."""

    curvature: FloatArray  # (m, m): S
    covariance: FloatArray  # (m, m): Sigma
    weights: FloatArray  # (at most m,): of the chi-squares, largest first; empty when the law is not defined
    rows: float  # N

    def sf(self, statistic: float, *, below: float, above: float) -> float:
        """Return the p-value of a statistic.

        Parameters
        ----------
        statistic : float
            N times the projection distance.
        below, above : float
            The tolerance on each side; infinite for a side that is free.

        Returns
        -------
        float
            For an equation exact in the limit. For a tolerance, of the worst case inside it: exact in the
            limit for one condition; a bound for several conditions with two sides.
        """
        if self.weights.size == 0 or math.isnan(statistic):
            return math.nan
        return max(self._tail(statistic, below, above), _LEAST)

    def _tail(self, statistic: float, below: float, above: float) -> float:
        if below == above == 0:
            return weighted_sf(statistic, self.weights)
        if statistic <= 0:
            return 1.0
        if math.isinf(below) or math.isinf(above):
            return cone_sf(statistic, self.curvature, self.covariance)
        if self.weights.size > 1:
            # g.E - tolerance.|g| <= 0 for every E inside the tolerance, so the law of the equation is a bound.
            return weighted_sf(statistic, self.weights)
        # One condition at the end of its tolerance: beyond the near end, or all the way beyond the far one.
        z = math.sqrt(statistic / self.weights[0])
        band = (below + above) * math.sqrt(self.rows / self.covariance[0, 0])
        return 0.5 * math.erfc(z / math.sqrt(2)) + 0.5 * math.erfc((z + band) / math.sqrt(2))

    def threshold(self, alpha: float, *, below: float, above: float) -> float:
        """Return the statistic above which the p-value is below alpha; NaN where it is not offered."""
        if self.weights.size == 0 or not 0 < alpha < 1:
            return math.nan
        one_side = math.isinf(below) or math.isinf(above)
        if below == above == 0 or (self.weights.size > 1 and not one_side):
            return weighted_isf(alpha, self.weights)
        if self.weights.size > 1 or alpha >= 0.5:
            return math.nan
        from scipy.optimize import brentq

        top = weighted_isf(alpha, self.weights)  # both sides with no tolerance: never below the wanted value
        return float(brentq(lambda x: self.sf(x, below=below, above=above) - alpha, 1e-12 * top, top * (1 + 1e-9)))


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


def boundary_bandwidth(cells: Sequence[Cell], rows: float) -> float:
    """Return Silverman's bandwidth of the signed distance over all cells (even places: below the boundary).

    Parameters
    ----------
    cells : sequence of Cell
        Pairs of cells: rows below the boundary, rows above it.
    rows : float
        Independent rows the cells stand for.

    Returns
    -------
    float

    Examples
    --------
    >>> boundary_bandwidth([Cell(np.arange(1.0, 51.0)), Cell(np.arange(0.0, 50.0))], 100) > 0
    True
    """
    values = np.concatenate([c.distance if j % 2 else -c.distance for j, c in enumerate(cells)])
    plain = all(c.reach is None for c in cells)
    mass = None if plain else np.concatenate([np.diff(c.reach) for c in cells if c.reach is not None])
    return silverman(values, mass, rows=rows)


def boundary_curvature(cells: Sequence[Cell], phi: FloatArray, total: float, bandwidth: float) -> FloatArray:
    """Return S: the density at the boundary times the mean outer square of phi there. [si2021] sec. 5.2.

    Parameters
    ----------
    cells : sequence of Cell
        Pairs of cells, one pair for each row of `phi`.
    phi : ndarray, shape (pairs, m)
        The value of phi in each pair.
    total : float
        Mass of all rows, those outside the cells included.
    bandwidth : float
        Standard deviation of the Gaussian kernel.

    Returns
    -------
    ndarray, shape (m, m)

    Examples
    --------
    >>> boundary_curvature([Cell(np.zeros(1)), Cell(np.zeros(1))], np.array([[2.0]]), 2.0, 1.0).round(3).tolist()
    [[1.596]]
    """
    near = np.zeros(len(cells))
    for j, cell in enumerate(cells):
        kernel = np.exp(-0.5 * (cell.distance / bandwidth) ** 2) / (bandwidth * math.sqrt(2 * math.pi))
        near[j] = kernel.sum() if cell.reach is None else kernel @ np.diff(cell.reach)
    density = near.reshape(-1, 2).sum(axis=1) / total  # (pairs,)
    return np.asarray((phi * density[:, None]).T @ phi)


def influence_covariance(influence: FloatArray, square: FloatArray, rows: float) -> FloatArray:
    """Return Sigma, the covariance of a row's influence on the conditions (divisor rows - 1).

    Parameters
    ----------
    influence : ndarray, shape (cells, m)
        Influence of a row of each cell; its mean over all rows is 0.
    square : ndarray, shape (cells,)
        Sum of squared masses in each cell (the number of rows when masses are one).
    rows : float
        Number of rows.

    Returns
    -------
    ndarray, shape (m, m)

    Examples
    --------
    >>> influence_covariance(np.array([[-1.0], [1.0]]), np.array([2.0, 2.0]), 4).round(4).tolist()
    [[1.3333]]
    """
    return np.asarray((influence * square[:, None]).T @ influence / max(rows - 1, 1.0))


def limit_law(curvature: FloatArray, covariance: FloatArray, rows: float) -> Law:
    """Put a limit law together.

    Parameters
    ----------
    curvature, covariance : ndarray, shape (m, m)
        S and Sigma.
    rows : float
        N.

    Returns
    -------
    Law
        Without weights when S cannot be inverted or Sigma is 0.

    Examples
    --------
    >>> limit_law(np.eye(2), np.diag([2.0, 4.0]), 100).weights.tolist()
    [2.0, 1.0]
    """
    none = Law(curvature=curvature, covariance=covariance, weights=np.empty(0), rows=rows)
    size = np.sqrt(np.diag(curvature))
    if not np.all(size > 0):
        return none
    values, vectors = np.linalg.eigh(curvature / np.outer(size, size))
    if values[0] < _SINGULAR:
        return none
    root = (vectors / np.sqrt(values)).T / size  # root.T @ root = S^-1
    weights = np.linalg.eigvalsh(0.5 * root @ covariance @ root.T)[::-1]
    weights = weights[weights > 1e-12 * max(weights[0], 1e-300)]
    return none if weights.size == 0 else Law(curvature=curvature, covariance=covariance, weights=weights, rows=rows)
