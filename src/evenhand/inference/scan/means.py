"""A mean in every subgroup: the rows' values are dealt out at random among all rows.

Hypothesis of one subgroup: its mean is that of everybody else; spread and shape may differ. The statistic is Welch's,
the difference of the means over its standard error with each side's own variance, made anew in every permutation.
Hall's transformation takes out the lean that the skewness of all rows together gives it: without it a small subgroup
that happens to hold no row of the long tail would have the largest statistic in most permutations, and large subgroups
would be hard to show. It is never allowed to add evidence. The evidence is that of Student's law with Welch's degrees
of freedom. The skewness of all rows is the same in every permutation, so that the test is exact when values do not
depend on who belongs where.

Where the spread differs between groups, permutations mix it: their statistics have other tails than those of a
subgroup of one spread. So there is a second reference, in which every row stays and its distance from the mean of all
gets a random sign (a wild bootstrap). A subgroup is shown when both references say so; its p-value is the larger one.

`MomentFamily` does the same with sums that an engine made. The sums of permuted cells are then drawn from the normal
law with the mean and covariance that they have, and the studentising variance is held. That law is right for large
subgroups only: those of fewer than `FEWEST` people are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.scan.family import Drawn, Family
from evenhand.kernels.scan.lattice import Lattice
from evenhand.kernels.scan.limit_evidence import normal_evidence, student_evidence

Totals = tuple[FloatArray, FloatArray]  # of values and of their squares

# Rows times permutations that are held at once.
_ROW_NUMBERS = 1_000_000
# People of a subgroup, and of the rest, from which on sums of rows are taken to be normal.
FEWEST = 1000


class MeanFamily(Family):
    """A mean in every subgroup against the rest.

    Parameters
    ----------
    lattice : Lattice
        The subgroups, each with at least two rows, as the rest.
    cell, count : ndarray of int, shape (records,)
        The cell of each record, and the rows it stands for.
    record_value : ndarray, shape (records,)
        The value of each of its rows.

    Examples
    --------
    >>> from evenhand.kernels.scan.lattice import build_lattice
    >>> lattice = build_lattice(np.array([[0], [1]]), [np.eye(2, dtype=bool)], 1)
    >>> means = MeanFamily(lattice, np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 2, 3, 6, 7, 8]), np.ones(6, int))
    >>> means.value.tolist(), means.rest.tolist(), np.exp(-means.evidence).round(4).tolist()
    ([2.0, 7.0], [7.0, 2.0], [0.0036, 0.0036])
    """

    def __init__(self, lattice: Lattice, cell: IntArray, record_value: FloatArray, count: IntArray) -> None:
        self.lattice = lattice
        self._records = cell, record_value, count
        # By cell and value: neither the order of the records nor the way repeated rows are written can change a result.
        order = np.lexsort((record_value, cell))
        rows, place = np.repeat(record_value[order], count[order]), np.repeat(cell[order], count[order])
        present, self._start = np.unique(place, return_index=True)
        self._members = lattice.members[:, present].astype(np.float64)
        self._centre = float(rows.mean()) if rows.size else 0.0
        # In units of their spread, so that neither very large nor very small values lose digits.
        self._unit = float(rows.std()) if np.ptp(rows) > 0 else 0.0
        self._rows = (rows - self._centre) / self._unit if self._unit > 0 else np.zeros(rows.size)
        skewness = float((self._rows**3).mean())
        n = self._members @ np.diff(np.append(self._start, rows.size))
        self._sides = Sides(n, rows=rows.size, skewness=skewness)
        self.size = np.rint(n).astype(np.int64)
        own, whole = self._sums(self._rows[None])
        self.value = self._centre + self._unit * own[0][:, 0] / n
        self.rest = self._centre + self._unit * (whole[0] - own[0])[:, 0] / (rows.size - n)
        self.evidence = self._sides.evidence(own, whole)[:, 0]
        self.most = np.full(self.size.size, np.inf)

    def _sums(self, lines: FloatArray) -> tuple[Totals, Totals]:
        """Add up values of the rows, shape (b, rows), and their squares over each subgroup and over all rows."""
        cells = [np.add.reduceat(part, self._start, axis=1) for part in (lines, lines * lines)]  # (b, C)
        plain, square = (self._members @ part.T for part in cells)
        return (plain, square), (cells[0].sum(axis=1), cells[1].sum(axis=1))

    def _repeated(self, b: int, lines: Callable[[int], FloatArray]) -> FloatArray:
        """Return the evidence of so many sets of values of the rows, shape (b, S)."""
        out = np.empty((b, self.size.size))
        step = max(1, _ROW_NUMBERS // max(self._rows.size, 1))
        for first in range(0, b, step):
            out[first : first + step] = self._sides.evidence(*self._sums(lines(min(step, b - first)))).T
        return out

    def drawn(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups in `b` permutations, shape (b, S)."""
        rows = self._rows
        return self._repeated(b, lambda many: rng.permuted(np.broadcast_to(rows, (many, rows.size)), axis=1))

    def flipped(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups when each row's distance from the mean gets a random sign."""

        def signed(many: int) -> FloatArray:
            size = self._rows.size
            bits = np.unpackbits(rng.integers(0, 256, (many, -(-size // 8)), dtype=np.uint8), axis=1)[:, :size]
            return np.where(bits, self._rows, -self._rows)

        return self._repeated(b, signed)

    @property
    def references(self) -> tuple[Drawn, ...]:
        """Permutations, and signs that leave every row's spread where it is."""
        return self.drawn, self.flipped

    def take(self, kept: IntArray) -> MeanFamily:
        """Return the same mean in some of the subgroups."""
        return MeanFamily(self.lattice.take(kept), *self._records)


class Sides:
    """Subgroups and their rests, of fixed sizes.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Rows of each subgroup.
    rows, skewness : float
        Of all rows: how many, and their skewness.
    """

    def __init__(self, n: FloatArray, *, rows: float, skewness: float) -> None:
        self.n, self.others = n, rows - n
        # Skewness of the difference of two means of independent rows of one shape.
        self.lean = skewness * (1 / n**2 - 1 / self.others**2) / (1 / n + 1 / self.others) ** 1.5

    def welch(self, own: Totals, whole: Totals) -> tuple[FloatArray, FloatArray]:
        """Return Welch's statistic and its degrees of freedom from sums over subgroups (S, b) and all rows (b,)."""
        n, m = self.n[:, None], self.others[:, None]
        sides = [(n, *own), (m, *(everyone - part for everyone, part in zip(whole, own, strict=True)))]
        (one, first), (two, second) = (
            (total / rows, np.maximum(square - total * total / rows, 0.0) / (rows * (rows - 1)))
            for rows, total, square in sides
        )
        gap = one - two
        # A variance of 0 would make the statistic infinite; a relative floor keeps its order.
        variance = np.maximum(first + second, np.maximum(1e-14 * gap * gap, 1e-300))
        df = variance**2 / np.maximum(first**2 / (n - 1) + second**2 / (m - 1), 1e-300)
        return gap / np.sqrt(variance), np.clip(df, 1.0, n + m - 2)

    def evidence(self, own: Totals, whole: Totals) -> FloatArray:
        """Return the evidence of sums and sums of squares, shape (S, b)."""
        t, df = self.welch(own, whole)
        lean = self.lean[:, None]
        # Hall (1992): monotone in t, and t itself where nothing leans.
        straight = t + lean * (t * t / 3 + 1 / 6) + lean * lean * t * t * t / 27
        return student_evidence(np.minimum(np.abs(t), np.abs(straight)), df)


class MomentFamily(Family):
    """A mean in every subgroup against the rest, from sums over rows that stayed on an engine.

    Parameters
    ----------
    lattice : Lattice
        The subgroups, each with at least `FEWEST` people, as the rest.
    n, total, squares : ndarray, shape (C,)
        Rows of each cell, and the sums of their values and of their squared values.

    Examples
    --------
    >>> from evenhand.kernels.scan.lattice import build_lattice
    >>> lattice = build_lattice(np.array([[0], [1]]), [np.eye(2, dtype=bool)], 1)
    >>> sums = np.array([2000.0, 2000]), np.array([400.0, 500]), np.array([400.0, 500])
    >>> means = MomentFamily(lattice, *sums)
    >>> means.value.tolist(), np.exp(-means.evidence).round(4).tolist()
    ([0.2, 0.25], [0.0002, 0.0002])
    """

    def __init__(self, lattice: Lattice, n: FloatArray, total: FloatArray, squares: FloatArray) -> None:
        self.lattice = lattice
        self._moments = n, total, squares
        self._members = lattice.members.astype(np.float64)
        rows = float(n.sum())
        centre = float(total.sum()) / rows
        own, square = total - n * centre, squares - 2 * centre * total + n * centre**2
        self._spread = float(square.sum()) / (rows - 1)
        members = self._members
        # The third moment is not known, so that no lean is taken out.
        sides = Sides(members @ n, rows=rows, skewness=0.0)
        sums = (members @ own)[:, None], (members @ square)[:, None]
        self.size = np.rint(sides.n).astype(np.int64)
        self.value, self.rest = centre + sums[0][:, 0] / sides.n, centre - sums[0][:, 0] / sides.others
        self.evidence = sides.evidence(sums, (np.zeros(1), np.array([square.sum()])))[:, 0]
        self.most = np.full(self.size.size, np.inf)
        self._error = np.sqrt(self._spread * sides.n * sides.others / rows)  # of a subgroup's sum

    def drawn(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups in `b` draws of the cells' sums, shape (b, S)."""
        n = self._moments[0]
        noise = rng.standard_normal((b, n.size)) * np.sqrt(self._spread * n)
        noise -= noise.sum(axis=1, keepdims=True) * (n / n.sum())  # the sum of all cells is fixed
        return normal_evidence((self._members @ noise.T).T / self._error)

    def take(self, kept: IntArray) -> MomentFamily:
        """Return the same mean in some of the subgroups."""
        return MomentFamily(self.lattice.take(kept), *self._moments)
