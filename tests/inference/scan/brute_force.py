"""A small table, and the adjusted p-values of a plain loop."""

from __future__ import annotations

import numpy as np

from evenhand.kernels.scan.lattice import Lattice, build_lattice, one_of_each


def small_table(rng: np.random.Generator, rows: int, fewest: int) -> tuple[Lattice, np.ndarray]:
    """Return the subgroups of three attributes with at least so many rows inside and outside, and each row's cell."""
    codes = np.stack([rng.integers(0, k, rows) for k in (2, 3, 2)], axis=1)
    cells, cell = np.unique(codes, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    lattice = build_lattice(cells, [np.eye(k, dtype=bool) for k in (2, 3, 2)], 3)
    count = np.bincount(cell)
    size = lattice.sums(count.astype(float))
    lattice = lattice.take(np.flatnonzero((size >= fewest) & (rows - size >= fewest)))
    return lattice.take(one_of_each(lattice, count)), cell


def masks(lattice: Lattice, cell: np.ndarray) -> list[np.ndarray]:
    """Return which rows each subgroup holds."""
    return [line.astype(bool)[cell] for line in lattice.members.toarray()]


def plain_step_down(seen: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Adjust by the definition: subgroup after subgroup, the largest evidence among it and those with less."""
    order = np.argsort(-seen, kind="stable")
    out, last = np.empty(seen.size), 0.0
    for place, i in enumerate(order):
        largest = drawn[:, order[place:]].max(axis=1)
        last = max(last, (1 + int((largest >= seen[i] - 1e-9).sum())) / (drawn.shape[0] + 1))
        out[i] = last
    return out
