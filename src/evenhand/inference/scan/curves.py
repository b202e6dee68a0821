"""Calibration in every subgroup: at the same score, does the outcome go with the score as it does for everybody else?

A row's residual is its outcome minus its score. Hypothesis of one subgroup: within each score bin its mean residual is
that of everybody else. Residuals are dealt out at random among the rows of a bin, so that each subgroup keeps its
scores: groups whose scores differ are compared fairly. The statistic is the sum over bins of the squared difference of
the mean residuals over its variance, which is that of the bin's residuals and the same in every permutation: given the
score, an outcome of 0 or 1 has no other variance when the means are equal. The evidence is that of the chi-square law.
Bins in which the subgroup or the rest has fewer than `FEWEST` rows are left out.

What is estimated is the distance D between the two calibration curves: the root of the mean squared difference over the
bins, each bin with the precision it is known with. Its debiased square is (statistic - bins) over the sum of the
precisions. The statistic has a noncentral chi-square law whose noncentrality is D^2 times that sum, which gives limits
of D. Both the test and the limits are two-sided: limits leave 0 out just when the test rejects.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.limits import crossing
from evenhand.inference.pvalues import TestResult
from evenhand.inference.samples import Draws, Samples
from evenhand.inference.scan.family import Family
from evenhand.kernels.scan.lattice import Lattice
from evenhand.kernels.scan.limit_evidence import chisquare_evidence

# Rows of a bin that a subgroup, and the rest, must have for the bin to count.
FEWEST = 5
# Score bins of equal width on [0, 1], as in `evenhand.inference.calibration`.
BINS = 10
# Rows times permutations that are held at once.
_ROW_NUMBERS = 1_000_000
WORDS = "chi-square test of the difference of two calibration curves"


def calibration_bins(score: FloatArray) -> IntArray:
    """Return the bin of each score between 0 and 1.

    Examples
    --------
    >>> calibration_bins(np.array([0.0, 0.25, 1.0])).tolist()
    [0, 2, 9]
    """
    return np.clip(np.floor(score * BINS), 0, BINS - 1).astype(np.int64)


class _Bin:
    """The rows of one score bin: what each subgroup's sum of residuals says."""

    def __init__(self, lattice: Lattice, cell: IntArray, residual: FloatArray, count: IntArray) -> None:
        # By cell and residual: neither the order of the records nor the way repeated rows are written matters.
        order = np.lexsort((residual, cell))
        rows, place = np.repeat(residual[order], count[order]), np.repeat(cell[order], count[order])
        present, self._start = np.unique(place, return_index=True)
        self._members = lattice.members[:, present].astype(np.float64)
        self.rows = rows - rows.mean()
        n = self._members @ np.diff(np.append(self._start, rows.size))
        spread = float((self.rows**2).sum()) / max(rows.size - 1, 1)
        self.used = (n >= FEWEST) & (rows.size - n >= FEWEST) & (spread > 0)
        # 1 / n + 1 / m, where the bin counts.
        parts = np.where(self.used, rows.size / np.maximum(n * (rows.size - n), 1.0), 0.0)
        self.precision = np.where(self.used, 1 / np.where(self.used, spread * parts, 1.0), 0.0)
        self._factor = parts / spread if spread > 0 else parts

    def squares(self, lines: FloatArray) -> FloatArray:
        """Return each subgroup's squared difference over its variance from permuted rows (b, rows), shape (S, b)."""
        own = self._members @ np.add.reduceat(lines, self._start, axis=1).T
        return np.asarray(own * own * self._factor[:, None])


class CurveFamily(Family):
    """Calibration in every subgroup against the rest.

    Parameters
    ----------
    lattice : Lattice
        The subgroups.
    cell, place, count : ndarray of int, shape (records,)
        The cell and the score bin of each record, and the rows it stands for.
    residual : ndarray, shape (records,)
        Outcome minus score.

    Examples
    --------
    >>> from evenhand.kernels.scan.lattice import build_lattice
    >>> lattice = build_lattice(np.array([[0], [1]]), [np.eye(2, dtype=bool)], 1)
    >>> cell, place = np.repeat([0, 1], 10), np.zeros(20, int)
    >>> residual = np.r_[np.tile([0.7, -0.3], 5), np.full(9, -0.3), 0.7]
    >>> curves = CurveFamily(lattice, cell, place, residual, np.ones(20, int))
    >>> curves.bins.tolist(), np.exp(-curves.evidence).round(3).tolist()
    ([1, 1], [0.114, 0.114])
    """

    def __init__(self, lattice: Lattice, cell: IntArray, place: IntArray, residual: FloatArray, count: IntArray):
        self.lattice = lattice
        self._records = cell, place, residual, count
        there = [place == k for k in np.unique(place[count > 0])]
        self._in_bins = [_Bin(lattice, cell[rows], residual[rows], count[rows]) for rows in there]
        everyone = np.bincount(cell, weights=count, minlength=lattice.members.shape[1])
        self.size = np.rint(lattice.sums(everyone)).astype(np.int64)
        self.bins = np.sum([one.used for one in self._in_bins], axis=0)  # (S,) that count
        statistic = np.sum([one.squares(one.rows[None]) for one in self._in_bins], axis=0)[:, 0]
        precision = np.sum([one.precision for one in self._in_bins], axis=0)
        self.value = np.array([distance(*line) for line in zip(statistic, self.bins, precision, strict=True)])
        self.rest = np.zeros(self.value.size)
        self.evidence = self._evidence(statistic)
        self.most = np.full(self.size.size, np.inf)

    def _evidence(self, statistic: FloatArray) -> FloatArray:
        one_sided = np.where(self.bins > 0, chisquare_evidence(statistic, np.maximum(self.bins, 1)), 0.0)
        return np.maximum(one_sided - math.log(2), 0.0)

    def drawn(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups in `b` permutations, shape (b, S)."""
        out = np.empty((b, self.size.size))
        step = max(1, _ROW_NUMBERS // max(sum(one.rows.size for one in self._in_bins), 1))
        for first in range(0, b, step):
            many = min(step, b - first)
            dealt = [rng.permuted(np.broadcast_to(one.rows, (many, one.rows.size)), axis=1) for one in self._in_bins]
            squares = [one.squares(lines) for one, lines in zip(self._in_bins, dealt, strict=True)]
            out[first : first + step] = self._evidence(np.sum(squares, axis=0).T)
        return out

    def take(self, kept: IntArray) -> CurveFamily:
        """Return the same in some of the subgroups."""
        return CurveFamily(self.lattice.take(kept), *self._records)


def distance(statistic: float, bins: int, precision: float) -> float:
    """Return the debiased distance of two curves from the sum of squares.

    Examples
    --------
    >>> distance(14.0, 10, 100.0), distance(5.0, 10, 100.0)
    (0.2, 0.0)
    """
    return math.sqrt(max(statistic - bins, 0.0) / precision) if precision > 0 else math.nan


class CurveSamples(Samples):
    """Two samples of probabilities with a 0/1 outcome, compared by the distance of their calibration curves.

    Parameters
    ----------
    score, outcome : ndarray, shape (R,)
        Of each record.
    codes, count : ndarray of int, shape (R,)
        0 for the first sample, 1 for the second, others are left out; rows each record stands for.

    Examples
    --------
    >>> outcome = np.r_[np.tile([1.0, 0.0], 50), np.tile([1.0, 0.0, 0.0, 0.0], 25)]
    >>> coded = {"codes": np.repeat([0, 1], 100), "count": np.ones(200, int)}
    >>> both = CurveSamples(score=np.full(200, 0.3), outcome=outcome, **coded)
    >>> round(both.difference(0, 1), 3), both.test(0, 1, Draws()).pvalue < 0.001
    (0.24, True)
    """

    def __init__(self, *, score: FloatArray, outcome: FloatArray, codes: IntArray, count: IntArray) -> None:
        own = CalibrationSamples(score=score, outcome=outcome, codes=codes, n_groups=2, count=count, n_bins=BINS)
        self.estimate, self.counts = own.estimate, own.counts
        inside = np.flatnonzero((codes >= 0) & (codes < 2))
        # Added up in the order of residuals: that of the records cannot matter.
        order = inside[np.argsort((outcome - score)[inside], kind="stable")]
        cell = (codes * BINS + calibration_bins(score))[order]
        residual, rows = (outcome - score)[order], count[order].astype(np.float64)
        n, e, ee = (
            np.bincount(cell, weights=part, minlength=2 * BINS).reshape(2, BINS)
            for part in (rows, rows * residual, rows * residual**2)
        )
        whole = n.sum(axis=0)
        used = (n >= FEWEST).all(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = (ee.sum(axis=0) - e.sum(axis=0) ** 2 / whole) / (whole - 1)
            used &= spread > 1e-14
            precision = 1 / (spread * (1 / n).sum(axis=0))
            gap = e[0] / n[0] - e[1] / n[1]
        self._bins, self._precision = int(used.sum()), float(precision[used].sum())
        self._statistic = float((gap**2 * precision)[used].sum())
        apart = "" if self._bins else f"shares no score bin with {FEWEST} rows and different residuals with the other"
        self.reason = tuple(why or apart for why in own.reason)

    def difference(self, a: int, b: int) -> float:
        """Return the distance of the two curves."""
        return distance(self._statistic, self._bins, self._precision)

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        pvalue = min(1.0, 2 * float(special.chdtrc(self._bins, self._statistic)))
        return TestResult(statistic=self._statistic, pvalue=pvalue, method=WORDS, exact=False)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        return self._test(0, 1, draws)

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """All distances that the test at 1 - level keeps; two curves have no ratio."""
        if ratio:
            return math.nan, math.nan, "none"
        share = (1 - level) / 2
        point = math.sqrt(max(self._statistic, self._bins) / self._precision)
        far = 2 * point + 20 / math.sqrt(self._precision)
        low = high = 0.0
        if special.chdtrc(self._bins, self._statistic) <= share:
            low = crossing(lambda d: 1 - self._below(d) > share, point, 0.0, tolerance=1e-9)
        if self._below(0.0) > share:
            high = crossing(lambda d: self._below(d) > share, 0.0, far, tolerance=1e-9)
        return low, high, "noncentral chi-square"

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        return math.nan if ratio else self._below(high)

    def _standard_error(self, a: int, b: int) -> float:
        return math.nan  # near 0 a distance has no standard error

    def _below(self, value: float) -> float:
        """Return the chance of a smaller statistic when the distance is this."""
        return float(special.chndtr(self._statistic, self._bins, value**2 * self._precision))
