"""The cheapest way to move mass across a boundary until linear conditions hold. [si2021] eq. (7), (9).

Row i lies `distance` d_i from the boundary; moving its mass m_i across costs m_i d_i and changes the m
conditions by m_i t_i. The linear programme

    minimise  sum_i m_i d_i p_i   subject to   low <= sum_i m_i t_i p_i <= high,   0 <= p_i <= 1

has few distinct t_i. Rows that share one form a cell, and inside a cell the nearest rows move first. So one
sort per cell turns the programme into a separable convex one with as many unknowns as cells.

* `project_line` takes single rows and one condition: Algorithm 1, by sorting d_i / |t_i|.
* `evenhand.kernels.transport.equal_rates` makes the rates of any number of groups equal: one unknown.
* `evenhand.kernels.transport.dual` takes any conditions, and proves its answer by the dual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Rows that change the conditions alike, nearest first."""

    distance: FloatArray  # (n,): finite distances, ascending. Rows that cannot move (infinite distance) are left out.
    reach: FloatArray | None = None  # (n + 1,): mass of the first k rows; None when each row has mass one

    @property
    def capacity(self) -> float:
        """The mass that can move."""
        return float(self.distance.size) if self.reach is None else float(self.reach[-1])

    def mass_of(self, k: int) -> float:
        """Return the mass of the nearest `k` rows."""
        return float(k) if self.reach is None else float(self.reach[k])

    def whole_rows(self, mass: float) -> int:
        """Return how many of the nearest rows fit into a mass (a rounding error short of one more counts)."""
        slack = mass * (1 + 1e-13) + 1e-12
        if self.reach is None:
            return min(int(slack), self.distance.size)
        return int(np.searchsorted(self.reach, slack, side="right")) - 1

    def price(self, mass: float) -> float:
        """Return what the next unit costs after a mass has moved; infinite when nothing is left."""
        k = self.whole_rows(mass)
        return float(self.distance[k]) if k < self.distance.size else math.inf

    def last_price(self, mass: float) -> float:
        """Return what the last unit of a moved mass cost; 0 when nothing moved."""
        k = self.whole_rows(mass)
        whole = self.mass_of(k)
        if mass <= whole + 1e-12:
            return float(self.distance[k - 1]) if k > 0 else 0.0
        return float(self.distance[k]) if k < self.distance.size else math.inf

    def cost(self, mass: float) -> float:
        """Return the cost of moving a mass, nearest rows first."""
        k = self.whole_rows(mass)
        near = self.distance[:k]
        whole = float(near.sum() if self.reach is None else near @ np.diff(self.reach[: k + 1]))
        rest = mass - self.mass_of(k)
        if rest <= 0:
            return whole
        return whole + rest * float(self.distance[k]) if k < self.distance.size else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The cheapest move."""

    cost: float  # the optimal value; NaN when no move reaches the conditions
    moved: FloatArray  # (cells,): mass moved in each cell (or in each row for `project_line`)
    # Cost minus a proven lower bound, relative to the cost; 0 where the method is exact by construction.
    gap: float = 0.0


def cell_sums(place: IntArray, values: FloatArray, n_cells: int) -> FloatArray:
    """Return the sum of values in each cell; negative places are left out.

    Parameters
    ----------
    place : ndarray of int, shape (n,)
        Each row's cell.
    values : ndarray, shape (n,)
        What is summed.
    n_cells : int
        Number of cells.

    Returns
    -------
    ndarray, shape (n_cells,)

    Examples
    --------
    >>> cell_sums(np.array([0, 1, -1]), np.array([1.0, 2.0, 4.0]), 2).tolist()
    [1.0, 2.0]
    """
    used = place >= 0
    if not used.all():
        place, values = place[used], values[used]
    return np.bincount(place, weights=values, minlength=n_cells).astype(float)


def make_cells(distance: FloatArray, code: IntArray, n_cells: int, mass: FloatArray | None = None) -> tuple[Cell, ...]:
    """Sort rows into cells, nearest first.

    Parameters
    ----------
    distance : ndarray, shape (n,)
        Distances, at least 0; infinite for rows that cannot move.
    code : ndarray of int, shape (n,)
        Each row's cell; negative codes are left out.
    n_cells : int
        Number of cells.
    mass : ndarray, shape (n,), or None
        Row masses; None for one each.

    Returns
    -------
    tuple of Cell

    Examples
    --------
    >>> cells = make_cells(np.array([3.0, 1.0, 2.0]), np.array([0, 0, 1]), 2)
    >>> cells[0].distance.tolist(), cells[0].cost(1.5)
    ([1.0, 3.0], 2.5)
    """
    usable = np.isfinite(distance)
    labels = np.where(usable, code, -1) if not usable.all() else code
    # numpy sorts 16-bit integers by counting: much cheaper than one boolean mask per cell.
    small = labels.astype(np.int16) if n_cells < 32000 else labels
    order = np.argsort(small, kind="stable")
    bounds = np.searchsorted(small[order], np.arange(n_cells + 1))
    near = distance[order]
    weights = None if mass is None else mass[order]
    made = []
    for j in range(n_cells):
        part = slice(bounds[j], bounds[j + 1])
        if weights is None:
            made.append(Cell(np.sort(near[part])))
        else:
            inner = np.lexsort((weights[part], near[part]))  # ties by mass: row order must not matter
            reach = np.concatenate([[0.0], np.cumsum(weights[part][inner])])
            made.append(Cell(near[part][inner], reach))
    return tuple(made)


def project_line(
    distance: FloatArray, tilt: FloatArray, low: float, high: float, mass: FloatArray | None = None
) -> Projection:
    """Solve the programme with one condition by sorting rows. [si2021] Algorithm 1.

    Rows at distance 0 move for nothing and infinitely distant rows never move: both follow from sorting by
    d / |t| instead of the printed t / d.

    Parameters
    ----------
    distance : ndarray, shape (n,)
        Distances, at least 0, infinite allowed.
    tilt : ndarray, shape (n,)
        Change of the condition per unit of mass.
    low, high : float
        Bounds of the condition; equal for an equation, infinite for none.
    mass : ndarray, shape (n,), or None
        Row masses; None for one each.

    Returns
    -------
    Projection
        `moved` has one value per row.

    Examples
    --------
    >>> project_line(np.array([1.0, 2.0, 5.0]), np.array([1.0, 1.0, -1.0]), 1.5, 1.5).cost
    2.0
    """
    moved = np.zeros(distance.size)
    need = low if low > 0 else high if high < 0 else 0.0
    if need == 0.0:
        return Projection(0.0, moved)
    gain = tilt * math.copysign(1.0, need)
    if mass is not None:
        gain = gain * mass
    rows = np.flatnonzero((gain > 0) & np.isfinite(distance))
    ratio = distance[rows] / np.abs(tilt[rows])
    rows = rows[np.argsort(ratio, kind="stable")]
    total = np.cumsum(gain[rows])
    need = abs(need)
    if total.size == 0 or total[-1] < need * (1 - 1e-12):
        return Projection(math.nan, moved)
    k = int(np.searchsorted(total, need * (1 - 1e-14)))
    before = float(total[k - 1]) if k else 0.0
    unit = np.ones(rows.size) if mass is None else mass[rows]
    moved[rows[:k]] = unit[:k]
    moved[rows[k]] = unit[k] * min(1.0, max(0.0, (need - before) / float(gain[rows[k]])))
    return Projection(float(moved[rows[: k + 1]] @ distance[rows[: k + 1]]), moved)
