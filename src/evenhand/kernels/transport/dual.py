"""The general programme: several conditions, cells that share rows of several groups, exact with a proof.

With F_j the cost of moving mass out of cell j (convex, piecewise linear, one break per row), the programme is

    minimise  sum_j F_j(q_j)   subject to   low <= sum_j q_j t_j <= high.

A few breaks of each F_j give a small linear programme whose value is an upper bound; its prices g give a lower
bound, because sum_j max_q (g.t_j q - F_j(q)) needs one search per cell. Breaks are added where the two bounds
disagree, until they agree. A damped Newton ascent of the dual says where to begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.transport.projection import Cell, Projection, cell_sums

_GAP = 1e-11  # relative distance of the bounds at which the answer is called exact
_ROUNDS = 40


class _Costs:
    """The cells' cost functions and their conjugates, laid end to end so that all cells are asked at once."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = cells
        self.size = np.array([c.distance.size for c in cells], dtype=np.int64)  # (cells,)
        self._lay_out(np.minimum(self.size, 4096 + self.size // 8))  # few rows of a large cell ever move

    def _lay_out(self, depth: IntArray) -> None:
        self.depth = depth  # rows of each cell that are laid out
        self.first = np.concatenate([[0], np.cumsum(depth + 2)])  # 0 rows, 1 row, ..., depth rows, all rows
        self._cost, self._mass, self._distance = (np.zeros(self.first[-1]) for _ in range(3))
        for j, cell in enumerate(self.cells):
            a, b, k = int(self.first[j]), int(self.first[j + 1]) - 1, int(depth[j])
            near = cell.distance[:k]
            # Cumulated inside the cell only: a sum over all rows would drown the nearest ones in rounding.
            np.cumsum(near if cell.reach is None else near * np.diff(cell.reach[: k + 1]), out=self._cost[a + 1 : b])
            self._mass[a:b] = np.arange(k + 1) if cell.reach is None else cell.reach[: k + 1]
            self._distance[a : b - 1] = near
            self._distance[b - 1] = cell.distance[k] if k < cell.distance.size else np.inf
            far = cell.distance[k:]
            rest = far.sum() if cell.reach is None else far @ np.diff(cell.reach[k:])
            self._cost[b], self._mass[b], self._distance[b] = self._cost[b - 1] + rest, cell.capacity, np.inf

    def _at(self, place: IntArray) -> IntArray:
        """Return where places, (cells,) or (cells, breaks), are laid out; lay out more where they are not."""
        depth, size = (self.depth, self.size) if place.ndim == 1 else (self.depth[:, None], self.size[:, None])
        if np.any((place > depth) & (place < size)):
            self._lay_out(self.size)
            depth = self.depth if place.ndim == 1 else self.depth[:, None]
        first = self.first[:-1] if place.ndim == 1 else self.first[:-1, None]
        return np.asarray(first + np.minimum(place, depth + (place > depth)))

    def place(self, price: FloatArray) -> IntArray:
        """Return how many rows of each cell are cheaper than the cell's price; (cells,)."""
        place = np.zeros(price.size, dtype=np.int64)
        for j in np.flatnonzero(price > 0).tolist():
            place[j] = self.cells[j].distance.searchsorted(price[j])
        return place

    def mass(self, place: IntArray) -> FloatArray:
        """Return the mass of each cell's nearest rows; (cells,)."""
        return np.asarray(self._mass[self._at(place)])

    def cost(self, place: IntArray) -> FloatArray:
        """Return the cost of moving each cell's nearest rows; (cells,)."""
        return np.asarray(self._cost[self._at(place)])

    def distance(self, place: IntArray) -> FloatArray:
        """Return the distance of each cell's next row, infinite behind the last; (cells,)."""
        return np.asarray(self._distance[self._at(place)])

    def pieces(self, breaks: IntArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return lengths, slopes and cells of the costs' pieces between breaks, (cells, breaks) ascending."""
        at = self._at(breaks)
        length, rise = np.diff(self._mass[at], axis=1), np.diff(self._cost[at], axis=1)
        used = length > 0
        return length[used], rise[used] / length[used], np.nonzero(used)[0]

    def total(self, moved: FloatArray) -> float:
        """Return the true cost of moved masses."""
        return float(sum(c.cost(float(q)) for c, q in zip(self.cells, moved, strict=True) if q > 0))


def project_cells(cells: Sequence[Cell], tilt: FloatArray, low: FloatArray, high: FloatArray) -> Projection:
    """Solve the programme with any number of conditions.

    Parameters
    ----------
    cells : sequence of Cell
        Rows by cell, nearest first; masses of order one.
    tilt : ndarray, shape (cells, m)
        Change of the conditions per unit of mass moved out of each cell.
    low, high : ndarray, shape (m,)
        Bounds; equal for equations, infinite for none.

    Returns
    -------
    Projection
        With the proven relative gap. Its cost is NaN when no move reaches the conditions.

    Examples
    --------
    >>> cells = [Cell(np.array([1.0, 2.0])), Cell(np.array([0.5, 4.0]))]
    >>> cheapest = project_cells(cells, np.array([[1.0], [2.0]]), np.array([3.0]), np.array([3.0]))
    >>> cheapest.cost, cheapest.moved.tolist()
    (1.5, [1.0, 1.0])
    """
    m = tilt.shape[1]
    if np.all((low <= 0) & (high >= 0)):
        return Projection(0.0, np.zeros(len(cells)))
    scale = np.maximum(np.abs(tilt).max(axis=0), 1e-300)  # (m,) conditions of one size
    programme = _Programme(_Costs(cells), tilt / scale, low / scale, high / scale)
    costs, equations = programme.costs, np.array_equal(programme.low, programme.high)
    price = programme.tilt @ (programme.newton() if equations else np.zeros(m))  # (cells,)
    breaks = _around(costs.place(price), costs.size, wide=not equations)
    unit = float(np.max(price, initial=0.0)) or _typical(cells)
    best = Projection(math.nan, np.zeros(len(cells)), gap=math.inf)
    for _ in range(_ROUNDS):
        solved = programme.with_breaks(breaks, unit)
        if solved is None:
            return best
        moved, dual = solved
        value = costs.total(moved)
        bound, place = programme.dual_value(dual)
        best = Projection(value, moved, gap=max(0.0, value - bound) / max(value, 1e-300))
        if best.gap <= _GAP:
            break
        unit = float(np.max(programme.tilt @ dual, initial=0.0)) or unit
        here = np.array([c.whole_rows(float(q)) for c, q in zip(cells, moved, strict=True)])
        more = [_around(k, costs.size, wide=True) for k in (here, place)]
        breaks = np.sort(np.hstack([breaks, *more]), axis=1)
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Programme:
    """The programme with conditions of one size; tilt has shape (cells, m), low and high (m,)."""

    costs: _Costs
    tilt: FloatArray
    low: FloatArray
    high: FloatArray

    def with_breaks(self, breaks: IntArray, unit: float) -> tuple[FloatArray, FloatArray] | None:
        """Solve the programme with few breaks; return the moved masses and the conditions' prices."""
        from scipy.optimize import linprog

        length, slope, owner = self.costs.pieces(breaks)
        rows, low, high = self.tilt[owner].T, self.low, self.high  # (m, pieces)
        equal = low == high
        over, under = np.isfinite(high) & ~equal, np.isfinite(low) & ~equal
        answer = linprog(
            # Costs of order one: tolerances of the solver are absolute, and a literal d / N would drown in them.
            slope / unit,
            A_eq=rows[equal],
            b_eq=high[equal],
            A_ub=np.vstack([rows[over], -rows[under]]),
            b_ub=np.concatenate([high[over], -low[under]]),
            bounds=np.column_stack([np.zeros(length.size), length]),
            method="highs-ds",
            options={"presolve": False, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if answer.status != 0:
            return None
        dual = np.zeros(low.size)
        n_over = int(over.sum())
        dual[equal] = answer.eqlin.marginals
        dual[over] += answer.ineqlin.marginals[:n_over]
        dual[under] -= answer.ineqlin.marginals[n_over:]
        moved = cell_sums(owner, np.clip(answer.x, 0.0, length), len(self.costs.cells))
        return self._polished(moved) if equal.all() else moved, dual * unit

    def _polished(self, moved: FloatArray) -> FloatArray:
        """Remove the solver's rounding of equations: whole rows exactly whole, the few others from the equations."""
        costs, tilt, low = self.costs, self.tilt, self.low
        whole = costs.mass(np.array([c.whole_rows(float(q) + 1e-7) for c, q in zip(costs.cells, moved, strict=True)]))
        snapped = np.where(np.abs(moved - whole) <= 1e-6 * np.maximum(1.0, 1e-9 * whole), whole, moved)
        loose = snapped != whole
        if not loose.any():
            return snapped if np.allclose(tilt.T @ snapped, low, rtol=0, atol=1e-9) else moved
        rest = low - tilt[~loose].T @ snapped[~loose]
        trial = snapped.copy()
        trial[loose] = np.linalg.lstsq(tilt[loose].T, rest, rcond=None)[0]
        close = np.abs(trial - moved).max() <= 1e-5 and np.abs(tilt.T @ trial - low).max() <= 1e-8
        return trial if close else moved

    def dual_value(self, dual: FloatArray) -> tuple[float, IntArray]:
        """Return the lower bound that prices prove, and the rows each cell would move at them."""
        price = self.tilt @ dual
        place = self.costs.place(price)
        worth = float(np.sum(price * self.costs.mass(place) - self.costs.cost(place)))
        with np.errstate(invalid="ignore"):
            gain = np.where(dual > 0, dual * self.low, np.where(dual < 0, dual * self.high, 0.0))
        return float(gain.sum()) - worth, place

    def newton(self) -> FloatArray:
        """Climb the dual of equations until the breaks nearest to its top are found, roughly."""
        costs, tilt, m = self.costs, self.tilt, self.tilt.shape[1]
        dual = np.zeros(m)
        value, place = self.dual_value(dual)
        for _ in range(30):
            slope = self.low - tilt.T @ costs.mass(place)  # (m,)
            density = _density(costs, tilt @ dual, place)  # (cells,)
            hessian = (tilt * density[:, None]).T @ tilt
            hessian[np.diag_indices(m)] += 1e-12 * max(float(np.trace(hessian)), 1e-300)
            try:
                step = np.linalg.solve(hessian, slope)
            except np.linalg.LinAlgError:
                break
            size = 1.0
            while size > 1e-3:
                trial = dual + size * step
                new, new_place = self.dual_value(trial)
                if new > value:
                    break
                size *= 0.5
            else:
                break
            gained = new - value
            still = int(np.abs(new_place - place).max()) <= 2
            dual, value, place = trial, new, new_place
            if still or gained <= 1e-9 * abs(value):
                break
        return dual


def _density(costs: _Costs, price: FloatArray, place: IntArray) -> FloatArray:
    """Return rows per unit of price near each cell's price (half of it where the price just reaches 0)."""
    width = np.maximum(8, place // 4)
    a, b = np.maximum(0, place - width), np.minimum(costs.size - 1, place + width)
    usable = b > a
    b = np.maximum(a, b)
    span = np.where(usable, costs.distance(np.where(usable, b, 0)), 1.0) - np.where(a > 0, costs.distance(a), 0.0)
    usable &= (span > 0) & (price >= -0.5 * span)
    density = np.where(usable, costs.mass(b) - costs.mass(a), 0.0) / np.where(usable, span, 1.0)
    return np.asarray(np.where(price > 0.5 * span, 1.0, 0.5) * density)


def _around(place: IntArray, size: IntArray, *, wide: bool) -> IntArray:
    """Return breaks at and around each cell's place, close together near it, with both ends; (cells, breaks)."""
    doublings = max(1, int(size.max(initial=1)).bit_length())
    steps = 1 << np.arange(doublings) if wide else np.array([1, 2, 4, 16, 128, 1024])
    inner = np.clip(place[:, None] + np.concatenate([-steps[::-1], [0], steps]), 0, size[:, None])
    return np.hstack([np.zeros((place.size, 1), dtype=np.int64), inner, size[:, None]])


def _typical(cells: Sequence[Cell]) -> float:
    near = [float(c.distance[min(c.distance.size - 1, 8)]) for c in cells if c.distance.size]
    positive = [v for v in near if v > 0]
    return float(np.median(positive)) if positive else 1.0
