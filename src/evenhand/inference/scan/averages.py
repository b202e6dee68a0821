"""A mean of two rates in every subgroup, such as balanced accuracy: decisions are dealt out within each outcome.

Hypothesis of one subgroup: the mean of its two rates is that of everybody else; each rate may differ. The statistic is
the difference over its standard error, made anew in every permutation. Each rate's variance is that of a rate moved off
0 and 1 by one success and one failure, so that a small subgroup without an error does not look certain. The evidence is
that of Student's law with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.scan.family import Family
from evenhand.inference.scan.rates import RateFamily
from evenhand.kernels.scan.lattice import Lattice
from evenhand.kernels.scan.limit_evidence import student_evidence


class AverageFamily(Family):
    """The mean of two rates with separate denominators in every subgroup against the rest.

    Parameters
    ----------
    lattice : Lattice
        The subgroups, each with people in both denominators, as the rest.
    successes, trials : ndarray of int, shape (2, C)
        Of each rate in each cell.

    Examples
    --------
    >>> from evenhand.kernels.scan.lattice import build_lattice
    >>> lattice = build_lattice(np.array([[0], [1]]), [np.eye(2, dtype=bool)], 1)
    >>> both = AverageFamily(lattice, np.array([[8, 4], [6, 6]]), np.full((2, 2), 10))
    >>> both.value.tolist(), both.difference.round(2).tolist()
    ([0.7, 0.5], [0.2, -0.2])
    """

    def __init__(self, lattice: Lattice, successes: IntArray, trials: IntArray) -> None:
        self.lattice = lattice
        self._tables = successes, trials
        self._parts = [RateFamily(lattice, x, n) for x, n in zip(successes, trials, strict=True)]
        self.size = np.sum([part.size for part in self._parts], axis=0)
        self.value = np.mean([part.value for part in self._parts], axis=0)
        self.rest = np.mean([part.rest for part in self._parts], axis=0)
        self.evidence = self._evidence([part.count.astype(np.float64) for part in self._parts])
        self.most = np.full(self.size.size, np.inf)

    def _evidence(self, counts: list[FloatArray]) -> FloatArray:
        """Return the evidence of each rate's successes in the subgroups, shape (..., S)."""
        gap, variance, lost = (np.zeros(counts[0].shape) for _ in range(3))
        for part, x in zip(self._parts, counts, strict=True):
            n, m = part.size, part.rows - part.size
            others = part.gained - x
            gap += (x / n - others / m) / 2
            for hits, size in ((x, n), (others, m)):
                moved = (hits + 1) / (size + 2)
                own = moved * (1 - moved) / size / 4
                variance += own
                lost += own * own / np.maximum(size - 1, 1)
        return student_evidence(gap / np.sqrt(variance), variance * variance / lost)

    def drawn(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups in `b` permutations, shape (b, S)."""
        dealt = [part.cells(rng, b) for part in self._parts]
        return self._evidence([self.lattice.sums(cells).T.astype(np.float64) for cells in dealt])

    def take(self, kept: IntArray) -> AverageFamily:
        """Return the same mean in some of the subgroups."""
        return AverageFamily(self.lattice.take(kept), *self._tables)
