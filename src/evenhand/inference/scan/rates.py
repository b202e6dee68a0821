"""A rate in every subgroup: successes are dealt out at random among the people of the rate's denominator.

Hypothesis of one subgroup: its rate is that of everybody else. Given the margins its count of successes is then
hypergeometric. All subgroups are sums of the same cells, so one draw of the cells' counts serves all of them.
"""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.scan.family import Family
from evenhand.kernels.counts.permuted_tables import NUMPY_LIMIT, draw_tables
from evenhand.kernels.counts.sparse_draws import SHARE, random_picks
from evenhand.kernels.scan.count_evidence import CountEvidence
from evenhand.kernels.scan.lattice import Lattice

# A cell costs about as much to draw as this many rows.
_ROWS_PER_CELL = 5
# Whole numbers below this are exact in single precision, which is added up faster.
_SINGLE = 2**24
# Sums of marks below this are exact, in whatever order they are added.
_MARKS = 2**20


class RateFamily(Family):
    """A rate in every subgroup against the rest.

    Parameters
    ----------
    lattice : Lattice
        The subgroups.
    successes, trials : ndarray of int, shape (C,)
        Of each cell.

    Examples
    --------
    >>> from evenhand.kernels.scan.lattice import build_lattice
    >>> lattice = build_lattice(np.array([[0], [1]]), [np.eye(2, dtype=bool)], 1)
    >>> rates = RateFamily(lattice, np.array([3, 1]), np.array([4, 4]))
    >>> rates.difference.tolist(), np.exp(-rates.evidence).round(4).tolist()
    ([0.5, -0.5], [0.4857, 0.4857])
    """

    def __init__(self, lattice: Lattice, successes: IntArray, trials: IntArray) -> None:
        self.lattice = lattice
        self.successes, self.trials = (np.asarray(part, dtype=np.int64) for part in (successes, trials))
        self.rows, self.gained = int(self.trials.sum()), int(self.successes.sum())
        self.size = self._sums(self.trials)
        self.count = self._sums(self.successes)
        others = self.rows - self.size
        with np.errstate(invalid="ignore", divide="ignore"):
            self.value = self.count / self.size
            self.rest = (self.gained - self.count) / others
        self._law = CountEvidence(self.size, rows=self.rows, successes=self.gained)
        self.evidence = self._law(self.count)
        self.most = self._law.most()
        self._single = self.rows < _SINGLE
        self._order = self._named_by_numbers()
        in_order = np.repeat(self._order, self.trials[self._order]) if self._by_rows() else np.empty(0, np.int64)
        self._cell = in_order

    def _sums(self, values: IntArray) -> IntArray:
        return np.asarray(np.rint(self.lattice.sums(values.astype(np.float64))), dtype=np.int64)

    def _named_by_numbers(self) -> IntArray:
        """Return an order of the cells that their names do not decide: each cell is known by its subgroups' counts."""
        mark = (self.size * 7_919 + self.count * 104_729) * 2_654_435_761 % _MARKS
        key = self.lattice.members.T @ mark.astype(np.float64)
        return np.lexsort((key, self.successes, self.trials))

    def _by_rows(self) -> bool:
        """Whether choosing rows is cheaper than drawing the cells' counts."""
        fewer = min(self.gained, self.rows - self.gained)
        touched = 2 * fewer if fewer <= SHARE * self.rows else self.rows + fewer
        return touched < _ROWS_PER_CELL * self.trials.size and self.rows < 2**31

    def cells(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the successes of each cell in `b` permutations, shape (C, b)."""
        kind = np.float32 if self._single else np.float64
        if not self._by_rows():
            if self.rows < NUMPY_LIMIT:
                trials = self.trials[self._order]
                counts = rng.multivariate_hypergeometric(trials, self.gained, size=b, method="marginals")
            else:
                table = np.stack([self.successes, self.trials - self.successes], axis=1)[self._order]
                counts = draw_tables(table, np.zeros(2, np.int64), b, rng)[:, :, 0]
            placed = np.empty((self.trials.size, b), dtype=kind)
            placed[self._order] = counts.T
            return placed
        # The rarer of success and failure is placed.
        turned = self.gained > self.rows - self.gained
        chosen = self._cell[random_picks(rng, self.rows, self.rows - self.gained if turned else self.gained, b)]
        flat = chosen * b + np.arange(b)[:, None]
        counts = np.bincount(flat.reshape(-1), minlength=self.trials.size * b).reshape(-1, b)
        return (self.trials[:, None] - counts if turned else counts).astype(kind)

    def drawn(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups in `b` permutations, shape (b, S)."""
        return self._law(self.lattice.sums(self.cells(rng, b)).T)

    def take(self, kept: IntArray) -> RateFamily:
        """Return the same rate in some of the subgroups."""
        return RateFamily(self.lattice.take(kept), self.successes, self.trials)
