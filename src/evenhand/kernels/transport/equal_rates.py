"""Equal rates for any number of groups at the least cost: one unknown number, whatever the number of groups.

If the reference group ends at rate r, every other group must end inside [r - below, r + above], so each
group's cheapest move is known and the total is a convex, piecewise linear function of r alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.kernels.transport.projection import Cell, Projection


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """One group: those who can be moved up into the positive side, and down out of it."""

    # up, down: rows now negative and rows now positive.
    up: Cell
    down: Cell
    # positive, total: mass on the positive side, and of the whole group.
    positive: float
    total: float

    @property
    def rate(self) -> float:
        """The positive share."""
        return self.positive / self.total


def project_rates(groups: Sequence[Sides], *, reference: int = 0, below: float = 0.0, above: float = 0.0) -> Projection:
    """Bring the groups' rates together at the least cost.

    Parameters
    ----------
    groups : sequence of Sides
        The groups.
    reference : int
        The group whose rate the others are compared with; it matters only when `below` or `above` is not 0.
    below, above : float
        How far another group's rate may end below and above the reference's; infinite for no bound.

    Returns
    -------
    Projection
        `moved` has 2 values per group: up, then down. Its cost is NaN when infinitely distant rows make
        the conditions unreachable.

    Examples
    --------
    >>> group = lambda up, down: Sides(Cell(np.array(up)), Cell(np.array(down)), len(down), len(up) + len(down))
    >>> cheapest = project_rates([group([1.0, 2.0], [3.0, 4.0]), group([5.0], [0.5, 1.0, 2.0])])
    >>> cheapest.cost, cheapest.moved.tolist()
    (0.5, [0.0, 0.0, 0.0, 1.0])
    """

    def target(g: int, r: float) -> float:
        if g == reference:
            return r
        return min(max(groups[g].rate, r - below), r + above)

    def move(g: int, r: float) -> float:
        return target(g, r) * groups[g].total - groups[g].positive

    def cost(r: float) -> float:
        total = 0.0
        for g, group in enumerate(groups):
            need = move(g, r)
            total += group.up.cost(need) if need > 0 else group.down.cost(-need)
        return total

    def slope(r: float) -> float:
        """Right derivative of the cost."""
        total = 0.0
        for g, group in enumerate(groups):
            lower, upper = (r, r) if g == reference else (r - below, r + above)
            if group.rate > upper:
                total -= group.total * group.down.last_price(max(0.0, group.positive - upper * group.total))
            elif group.rate <= lower:
                total += group.total * group.up.price(max(0.0, lower * group.total - group.positive))
        return total

    low, high = _feasible(groups, reference, below, above)
    if low > high * (1 + 1e-12) + 1e-15:
        return Projection(math.nan, np.zeros(2 * len(groups)))
    high = max(low, high)
    r = _smallest_minimiser(slope, low, high)
    # Bisection ends a rounding error away from a break; take the break itself.
    near = [r, low, high]
    for g, group in enumerate(groups):
        for shift in (0.0,) if g == reference else (below, -above):
            if math.isfinite(shift):
                near += _breaks(group, r, shift)
    costs = [cost(v) if low <= v <= high else math.inf for v in near]
    best = min(costs)
    ties = [v for v, c in zip(near, costs, strict=True) if c <= best * (1 + 1e-13)]
    r = min(ties, key=lambda v: sum(abs(move(g, v)) for g in range(len(groups))))
    moved = np.array([side for g in range(len(groups)) for side in (max(move(g, r), 0.0), max(-move(g, r), 0.0))])
    moved[moved < 1e-9] = 0.0  # rounding of rate times mass
    return Projection(cost(r), moved)


def _feasible(groups: Sequence[Sides], reference: int, below: float, above: float) -> tuple[float, float]:
    low, high = 0.0, 1.0
    for g, group in enumerate(groups):
        lowest = group.rate - group.down.capacity / group.total
        highest = group.rate + group.up.capacity / group.total
        low = max(low, lowest - (0.0 if g == reference else above))
        high = min(high, highest + (0.0 if g == reference else below))
    return low, high


def _smallest_minimiser(slope: Callable[[float], float], low: float, high: float) -> float:
    if slope(low) >= 0:
        return low
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if slope(middle) >= 0:
            high = middle
        else:
            low = middle
    return high


def _breaks(group: Sides, r: float, shift: float) -> list[float]:
    """Return the values near r at which this group's move is a whole number of rows."""
    need = (r - shift) * group.total - group.positive
    cell, sign = (group.up, 1.0) if need >= 0 else (group.down, -1.0)
    k = cell.whole_rows(abs(need))
    return [
        (group.positive + sign * cell.mass_of(i)) / group.total + shift
        for i in (k - 1, k, k + 1)
        if 0 <= i <= cell.distance.size and abs(cell.mass_of(i) - abs(need)) <= 1e-6
    ]
