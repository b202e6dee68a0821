"""The AUC in every subgroup: scores are dealt out at random among the rows of the same outcome.

Hypothesis of one subgroup: its AUC is that of everybody else. The statistic is that of `evenhand.inference.auc`: the
difference of the logits of the AUCs over its standard error by DeLong's variance, a little regularised, made anew in
every permutation; the evidence is that of Student's law with Satterthwaite's degrees of freedom.

All subgroups' AUCs come from counts of rows by score bin. Up to `BINS` distinct scores are a bin each, and nothing is
lost. More are put into `BINS` bins of about equal numbers of rows, decided by the scores alone; rows of one bin count
as ties, half right. The permutation test is exact with the scores as they are binned; what is lost is the order of two
rows that lie in the same bin, about three pairs of a hundred. Estimates, intervals and single p-values that are shown
for a subgroup use the scores themselves.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.auc_logit import regularised
from evenhand.inference.scan.family import Family
from evenhand.kernels.counts.auc import AucParts, auc_of_counts
from evenhand.kernels.counts.permuted_tables import draw_tables
from evenhand.kernels.scan.lattice import Lattice
from evenhand.kernels.scan.limit_evidence import student_evidence

# Score bins, at most.
BINS = 32
# Rows of each outcome that a subgroup, and the rest, must have.
FEWEST = 10
# Numbers (subgroups times bins times permutations) that are held at once.
_NUMBERS = 500_000
# A count of a cell costs about as much to draw as this many rows.
_ROWS_PER_COUNT = 8


def score_bins(score: FloatArray, count: IntArray) -> IntArray:
    """Return the bin of each record: its distinct score, or one of `BINS` parts of about equal numbers of rows.

    Examples
    --------
    >>> score_bins(np.array([0.5, 0.1, 0.5]), np.ones(3, int)).tolist()
    [1, 0, 1]
    >>> np.bincount(score_bins(np.arange(1000.0), np.ones(1000, int))).tolist()[:3]
    [31, 31, 31]
    """
    distinct, place = np.unique(score, return_inverse=True)
    place = place.reshape(-1)
    if distinct.size <= BINS:
        return np.asarray(place)
    upto = np.cumsum(np.bincount(place, weights=count))
    return np.asarray(np.minimum(np.floor(upto / upto[-1] * BINS), BINS - 1).astype(np.int64)[place])


class AucFamily(Family):
    """The AUC in every subgroup against the rest.

    Parameters
    ----------
    lattice : Lattice
        The subgroups, each with at least two rows of each outcome, as the rest.
    positive, negative : ndarray of int, shape (C, bins)
        Rows of each outcome in each cell by score bin, lowest scores first.

    Examples
    --------
    >>> from evenhand.kernels.scan.lattice import build_lattice
    >>> lattice = build_lattice(np.array([[0], [1]]), [np.eye(2, dtype=bool)], 1)
    >>> aucs = AucFamily(lattice, np.array([[0, 2], [1, 1]]), np.array([[2, 0], [1, 1]]))
    >>> aucs.value.tolist(), aucs.rest.tolist()
    ([1.0, 0.5], [0.5, 1.0])
    """

    def __init__(self, lattice: Lattice, positive: IntArray, negative: IntArray) -> None:
        self.lattice = lattice
        self._tables = positive, negative
        self._members = lattice.members.astype(np.float64)
        self.size = np.rint(self._members @ (positive + negative).sum(axis=1)).astype(np.int64)
        x, y = (self._members @ part.astype(np.float64) for part in self._tables)  # (S, bins)
        own, others = self._parts(x, y)
        self.value, self.rest = own.auc, others.auc
        self.evidence = auc_evidence(own, others)
        self.most = np.full(self.size.size, np.inf)
        self._rows = [_rows_of(part) for part in self._tables]

    def _parts(self, x: FloatArray, y: FloatArray) -> tuple[AucParts, AucParts]:
        """Return the parts of subgroups and rests from the subgroups' counts, shape (..., bins)."""
        all_x, all_y = (part.sum(axis=0) for part in self._tables)
        return auc_of_counts(x, y), auc_of_counts(all_x - x, all_y - y)

    def _dealt(self, rng: np.random.Generator, side: int, b: int) -> FloatArray:
        """Return the counts of one outcome in each subgroup in `b` permutations, shape (S, b, bins)."""
        table = self._tables[side]
        cells, bins = table.shape
        if table.sum() > _ROWS_PER_COUNT * np.count_nonzero(table):
            drawn = draw_tables(table, np.zeros(bins, np.int64), b, rng).transpose(1, 0, 2)  # (C, b, bins)
        else:
            cell, line = self._rows[side]
            permuted = rng.permuted(np.broadcast_to(line, (b, line.size)), axis=1)
            flat = (cell * b + np.arange(b)[:, None]) * bins + permuted
            drawn = np.bincount(flat.reshape(-1), minlength=cells * b * bins)
        sums = self._members @ drawn.reshape(cells, b * bins).astype(np.float64)
        return np.asarray(sums.reshape(-1, b, bins))

    def drawn(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups in `b` permutations, shape (b, S)."""
        out = np.empty((b, self.size.size))
        widest = max(self.size.size, self._members.shape[1]) * self._tables[0].shape[1]
        step = max(1, _NUMBERS // max(widest, 1))
        for first in range(0, b, step):
            x, y = (self._dealt(rng, side, min(step, b - first)) for side in (0, 1))
            out[first : first + step] = auc_evidence(*self._parts(x, y)).T
        return out

    def take(self, kept: IntArray) -> AucFamily:
        """Return the same AUC in some of the subgroups."""
        return AucFamily(self.lattice.take(kept), *self._tables)


def auc_evidence(one: AucParts, two: AucParts) -> FloatArray:
    """Return the evidence of differences of AUCs.

    Examples
    --------
    >>> same = auc_of_counts(np.array([2, 4, 5]), np.array([5, 4, 2]))
    >>> float(auc_evidence(same, same))
    0.0
    """
    logits, total, lost = [], np.zeros(one.auc.shape), np.zeros(one.auc.shape)
    for part in (one, two):
        auc, variance = regularised(part)
        slope = 1 / (auc * (1 - auc)) ** 2
        logits.append(special.logit(auc))
        total = total + variance * slope
        for (s0, s1, s2), n in ((part.positive, part.n_positive), (part.negative, part.n_negative)):
            side = np.maximum(s2 - 2 * part.auc * s1 + part.auc**2 * s0, 0.0) * n / (n - 1)
            lost = lost + (side * slope) ** 2 / (n - 1)
    rows = one.n_positive + one.n_negative + two.n_positive + two.n_negative
    df = total**2 / np.maximum(lost, total**2 / rows)
    return student_evidence((logits[0] - logits[1]) / np.sqrt(total), df)


def _rows_of(table: IntArray) -> tuple[IntArray, IntArray]:
    """Return the cell and the bin of each row."""
    cell, place = np.nonzero(table)
    count = table[cell, place]
    return np.repeat(cell, count), np.repeat(place, count)
