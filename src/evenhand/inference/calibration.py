"""Calibration error of scores in K samples.

The plain expected calibration error (count-weighted mean over bins of the distance between mean outcome
and mean score) is biased upwards by an amount that depends on the sample's size, so that a small sample
looks worse than a large one of the same quality. Compared here is its debiased root-mean-square form:
the squared distance of each bin is estimated without bias by leaving out each row's product with itself,
(sum e)^2 - sum e^2 over n (n - 1) with e = outcome - score; the count-weighted mean over bins is theta;
the value shown is sqrt(max(theta, 0)).

Hypothesis: two (or all) samples have one theta; their scores may be distributed otherwise.
Statistic: difference of the thetas over its standard error under the null, with the second-order term that
remains when both samples are perfectly calibrated.
Reference: two laws, of which the larger p-value counts. Permutations of all rows hold when the samples' scores are
distributed alike. Outcomes drawn anew, with one theta in all samples whose scores stay their own, hold when they are
not: near perfect calibration theta is a sum of squares, whose skewness depends on the bins that the scores fall into,
and permutations alone rejected at .001 in 4 % of data sets where outcomes were rare in the larger sample only.
Permuting inside bins would keep each group's scores in place and centre the permuted difference away from zero when
score distributions differ. Only the rows of groups of up to 1,000 are drawn one by one; of larger groups the rows of
each bin and outcome are drawn, and the sums of their residuals come from their own normal limit, given what the small
ones left. The cost then depends on the small groups and not on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.mover import Known, mover, reach
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.reference import Drawn, Reference
from evenhand.inference.resampling import ROWS_PER_RECORD, dealt_masks, drawn, refuse_exact
from evenhand.inference.samples import Draws, MarginSamples, coded_rows, laws_to_keep
from evenhand.kernels.counts.deals import block_size, random_counts, subset_sums
from evenhand.kernels.counts.group_lines import group_lines
from evenhand.kernels.counts.row_sums import weighted_spread
from evenhand.kernels.counts.sparse_draws import SHARE, random_picks

_Statistic = Callable[[FloatArray], FloatArray]

# Rows in all above which repeated records are not dealt out as counts any more.
LARGE = 10_000
# Rows of a group above which its bin sums of a permutation are drawn from their limit.
LARGE_GROUP = 1_000
# Standard errors that stand for limits without end.
FAR = 1e6
# Rows of the smallest group below which the test was not measured.
SMALL = 100
BOTH = " and outcomes drawn anew, the larger p-value"
NO_STATISTIC = "The test's statistic is undefined on these data."


class CalibrationSamples(MarginSamples):
    """K samples of probabilities with a 0/1 outcome, compared by their calibration error.

    Parameters
    ----------
    score : array_like, shape (R,)
        Probability of each record, between 0 and 1.
    outcome : array_like of bool, shape (R,)
        Outcome of each record.
    codes, n_groups, count
        As in `MeanSamples`.
    n_bins : int
        Equal-width bins on [0, 1].
    empty_reason : str
        Why a sample without rows has no value.

    Examples
    --------
    >>> samples = CalibrationSamples(score=[0.3] * 10, outcome=[1] * 5 + [0] * 5, codes=[0] * 10, n_groups=1)
    >>> round(float(samples.estimate[0]), 3)
    0.111
    """

    def __init__(
        self,
        *,
        score: ArrayLike,
        outcome: ArrayLike,
        codes: ArrayLike,
        n_groups: int,
        count: ArrayLike | None = None,
        n_bins: int = 10,
        empty_reason: str = "has no rows",
    ) -> None:
        s = np.asarray(score, dtype=np.float64)
        y = np.asarray(outcome).astype(np.bool_)
        g, c, _, keep = coded_rows(codes, n_groups, count)
        if not keep.all():
            s, y, g, c = s[keep], y[keep], g[keep], c[keep]
        self._n_bins = n_bins
        # One line per distinct score of each group and outcome, sorted: row order cannot matter.
        self._lines = group_lines(s, None, (c,), 2 * g + y, 2 * n_groups)
        side = np.repeat(np.arange(2 * n_groups), np.diff(self._lines.cuts))
        bins, residuals = self._contents(self._lines.values, side % 2)
        place, amount = side * n_bins + bins, self._lines.counts[0] * residuals
        columns = (self._lines.counts[0], amount, amount * residuals)
        sums = [np.bincount(place, weights=column, minlength=2 * n_groups * n_bins) for column in columns]
        self._cells = np.stack(sums, axis=-1, dtype=np.float64).reshape(
            n_groups, 2 * n_bins, 3
        )  # of each outcome and bin
        self._sums = _bin_sums(self._cells, n_bins)  # (K, bins, 3)
        self._theta, self._slope, self._rest = _squared_error(self._sums)  # (K,)
        self._variance = self._slope * np.maximum(self._theta, 0.0) + self._rest
        self._rows = self._sums[:, :, 0].sum(axis=1)  # (K,)
        self._most_laws = laws_to_keep(self._lines.values.size)
        self.estimate = np.sqrt(np.maximum(self._theta, 0.0))
        few = ["has no score bin with two rows" if math.isnan(v) else "" for v in self._theta]
        self.reason = tuple(why if n else empty_reason for why, n in zip(few, self._rows, strict=True))
        self.counts = tuple({"rows": int(s[:, 0].sum()), "bins": int((s[:, 0] > 1).sum())} for s in self._sums)

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        observed = self._statistic(a, b)
        if not math.isfinite(observed):
            return undefined(NO_STATISTIC)
        reference, words = self._reference(a, b, draws)
        return reference.result(observed, draws.alternative, method=words, warnings=self._warning([a, b]))

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        # Groups are dealt in an order that their labels cannot change.
        order = sorted(members, key=lambda k: (self._rows[k], self._theta[k]))

        def statistic(sums: FloatArray) -> FloatArray:
            theta, slope, rest = _squared_error(sums)
            return weighted_spread(theta, np.maximum(_null_variance(sums, theta, slope, rest), 1e-30))

        observed = float(statistic(self._sums[order]))
        if math.isnan(observed):
            return undefined(NO_STATISTIC)
        null, words = self._permuted(order, draws, statistic, "global")
        own = self._own_law(order, draws, statistic, "global")
        words += BOTH if own else ""
        return Reference(own, null).result(observed, "greater", method=words, warnings=self._warning(members))

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Combine the roots of each theta's score limits (MOVER), at the test's own quantiles."""
        scale = self._scale(a, b, ratio)
        if math.isnan(scale):
            return math.nan, math.nan, "root-mover"
        low, high = self._reference(a, b, draws)[0].critical(level)
        ends = [max(end / scale, 0.0) if math.isfinite(end) else FAR for end in (high, -low)]
        low, high = (mover(*self._limits(a, b, z), ratio=ratio)[side] for side, z in enumerate(ends))
        return low, high, "root-mover"

    def _standard_error(self, a: int, b: int) -> float:
        out = 0.0
        for k in (a, b):
            root, var = float(self.estimate[k]), float(self._variance[k])
            # Near 0 the root is not smooth; its error is then of the order of the fourth root.
            out += min(var / (4 * root**2), math.sqrt(var)) if root > 0 else math.sqrt(var)
        return math.sqrt(out)

    def _statistic(self, a: int, b: int) -> float:
        return float(_studentised(self._sums[[a, b]]))

    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        scale = self._scale(a, b, ratio)
        if math.isnan(scale):
            return math.nan
        statistic = scale * self._reach(a, b, margin, ratio)
        return self._reference(a, b, draws)[0].pvalue(statistic, draws.alternative)

    def _reach(self, a: int, b: int, value: float, ratio: bool) -> float:
        """How many standard errors the limits must be wide to reach this difference or ratio, signed."""
        above = self._point(a, b, ratio) > value
        return (1.0 if above else -1.0) * reach(lambda z: self._limits(a, b, z), value, above=above, ratio=ratio)

    def _scale(self, a: int, b: int, ratio: bool) -> float:
        """Return the statistic over the reach of no difference: with it limits and test agree there exactly."""
        statistic = self._statistic(a, b)
        if not math.isfinite(statistic) or math.isnan(self._point(a, b, ratio)):
            return math.nan
        reach = self._reach(a, b, 1.0 if ratio else 0.0, ratio)
        return statistic / reach if statistic * reach > 0 else 1.0

    def _reference(self, a: int, b: int, draws: Draws) -> tuple[Reference, str]:
        """Return the laws of the statistic, and their name."""

        def make() -> tuple[Reference, str]:
            small = int(self._rows[b] < self._rows[a])  # the group that is drawn; the first when they are equal
            sign = -1.0 if small else 1.0
            order = [(a, b)[small], (a, b)[1 - small]]

            def statistic(sums: FloatArray) -> FloatArray:
                return sign * _studentised(sums)

            null, words = self._permuted(order, draws, statistic, "pair")
            own = self._own_law(order, draws, statistic, "pair")
            return Reference(own, null), words + (BOTH if own else "")

        return self._law_once(a, b, draws, make)

    def _own_law(self, members: Sequence[int], draws: Draws, statistic: _Statistic, purpose: str) -> Drawn | None:
        """Law of the statistic when each sample's scores stay its own and outcomes are drawn anew, with one theta."""
        if draws.method != "auto":
            return None
        order = list(members)
        rows, theta = self._rows[order], self._theta[order]
        common = max(float(rows @ theta / rows.sum()), 0.0)
        laws = [_redrawn(cells, self._n_bins, common) for cells in self._cells[order]]

        def work(rng: np.random.Generator, b: int) -> FloatArray:
            return statistic(np.stack([law(rng, b) for law in laws], axis=1))

        moved = self._n_bins * len(order)
        return drawn(work, draws, moved, block_size(20 * moved), f"{purpose}/own")

    def _limits(self, a: int, b: int, z: float) -> tuple[Known, Known]:
        """Score limits of each value: those whose own variance puts the estimate z standard errors away."""
        limits = []
        for k in (a, b):
            theta, slope, rest = (float(v[k]) for v in (self._theta, self._slope, self._rest))
            centre = theta + z * z * slope / 2
            half = z * math.sqrt(max(slope * theta + rest + z * z * slope * slope / 4, 0.0))
            low, mid, high = (math.sqrt(max(v, 0.0)) for v in (centre - half, theta, centre + half))
            limits.append((mid, min(low, mid), max(high, mid)))
        return limits[0], limits[1]

    def _warning(self, members: Sequence[int]) -> tuple[str, ...]:
        if self._rows[list(members)].min() >= SMALL:
            return ()
        return (f"A group has fewer than {SMALL} rows: the calibration test was not measured there.",)

    def _contents(self, scores: FloatArray, outcome: IntArray | int) -> tuple[IntArray, FloatArray]:
        """Bin and residual of rows with these scores."""
        bins = np.clip(np.floor(scores * self._n_bins), 0, self._n_bins - 1).astype(np.int64)
        return bins, np.asarray(outcome - scores)

    def _pooled(self, members: Sequence[int]) -> tuple[IntArray, FloatArray, IntArray]:
        """Cells, residuals and counts of the distinct rows of some samples together, sorted by cell."""
        parts = []
        for side in (0, 1):
            scores, _, total = self._lines.together([2 * k + side for k in members], 0)
            bins, residuals = self._contents(scores, side)
            parts.append((side * self._n_bins + bins, residuals, total))
        cells, residuals, total = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cells, residuals, total

    def _permuted(self, members: Sequence[int], draws: Draws, statistic: _Statistic, purpose: str) -> tuple[Drawn, str]:
        """Return the law of the statistic over permutations of all rows; members are dealt in this order."""
        refuse_exact(draws, "the calibration error has no exact test")
        sizes = self._rows[list(members)].astype(np.int64).tolist()
        # Members come with the smaller first; the last one gets what is left.
        small = sum(n <= LARGE_GROUP for n in sizes[:-1]) if draws.method == "auto" else 0
        rows, single, words = sum(sizes), sum(sizes[:small]), "studentised permutation test"
        at_limit = draws.method == "limit" or (draws.method == "auto" and rows > LARGE)
        if not at_limit or small:
            cells, residuals, total = self._pooled(members)
            few = total.size * ROWS_PER_RECORD <= rows
            at_limit = at_limit or (draws.method == "auto" and sizes[-1] > LARGE_GROUP and not few)
        if at_limit:
            whole = self._cells[list(members)].sum(axis=0)  # (2 bins, 3)
            upto = np.cumsum(total) if small else np.empty(0)

            def work(rng: np.random.Generator, b: int) -> FloatArray:
                if not small:
                    return statistic(_bin_sums(_limit_sums(rng, whole, sizes, b), self._n_bins))
                picks = random_picks(rng, rows, single, b)
                line = picks if total.size == rows else np.searchsorted(upto, picks, side="right")
                if small > 1:  # picks are sorted: which of the small groups gets which row is drawn as well
                    line = rng.permuted(line, axis=1)
                first = _picked_sums(cells[line], residuals[line], sizes[:small], len(whole))  # (b, small, 2 bins, 3)
                rest = _limit_sums(rng, whole - first.sum(axis=1), sizes[small:], b)
                return statistic(_bin_sums(np.concatenate([first, rest], axis=1), self._n_bins))

            touched = single if single <= SHARE * rows else rows
            moved, size = self._n_bins + touched, block_size(self._n_bins * len(members) * 20 + 2 * touched)
            words += ", normal bin sums" if small < len(sizes) - 1 else ""
        elif few:
            lines, bins = np.zeros((total.size, self._n_bins, 3)), cells % self._n_bins
            lines[np.arange(total.size), bins] = np.stack([np.ones(bins.size), residuals, residuals**2], axis=-1)
            flat = lines.reshape(total.size, -1)

            def work(rng: np.random.Generator, b: int) -> FloatArray:
                dealt = random_counts(rng, total, sizes, b).transpose(0, 2, 1).astype(np.float64)
                return statistic((dealt @ flat).reshape(b, len(sizes), self._n_bins, 3))

            moved, size = total.size, block_size(total.size * len(members) * 8)
        else:
            place, e = np.repeat(cells, total), np.repeat(residuals, total)
            lines = np.stack([np.ones(rows), e, e * e], axis=-1)
            cuts = np.searchsorted(place, np.arange(2 * self._n_bins + 1))

            def work(rng: np.random.Generator, b: int) -> FloatArray:
                sums = np.zeros((b, len(sizes), 2 * self._n_bins, 3))
                masks = dealt_masks(rng, sizes, b)
                for j in range(2 * self._n_bins):
                    if cuts[j] < cuts[j + 1]:
                        for k, mask in enumerate(masks):
                            sums[:, k, j] = subset_sums(mask[:, cuts[j] : cuts[j + 1]], lines[cuts[j] : cuts[j + 1]])
                return statistic(_bin_sums(sums, self._n_bins))

            moved, size = rows, block_size(rows)
        return drawn(work, draws, moved, size, purpose), words


def _bin_sums(cells: FloatArray, n_bins: int) -> FloatArray:
    """Add the sums of both outcomes, shape (..., 2 bins, 3), in each bin."""
    return np.asarray(cells[..., :n_bins, :] + cells[..., n_bins:, :])


def _picked_sums(cells: IntArray, residuals: FloatArray, sizes: Sequence[int], n_cells: int) -> FloatArray:
    """Return the sums (b, K, cells, 3) of groups that got these rows (b, rows), one group's rows after the other's."""
    shape = (cells.shape[0], len(sizes), n_cells)
    group = np.arange(shape[0])[:, None] * len(sizes) + np.repeat(np.arange(len(sizes)), sizes)
    place, e = (group * n_cells + cells).ravel(), residuals.ravel()
    columns = (np.bincount(place, weights, math.prod(shape)).reshape(shape) for weights in (None, e, e * e))
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)


def _limit_sums(rng: np.random.Generator, whole: FloatArray, sizes: Sequence[int], b: int) -> FloatArray:
    """Return sums of groups dealt at random: rows of each outcome and bin exactly, residuals by their normal limit.

    Within a bin and outcome residuals differ by at most the bin's width, so that nearly all that varies is exact.
    `whole`, of shape (cells, 3) or (b, cells, 3), holds the sums of all rows that are dealt; a single group
    gets them all.
    """
    n = whole[..., 0]  # (cells,) or (b, cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.where(n > 0, whole[..., 1] / n, 0.0)[..., None, :]
        square = np.where(n > 0, whole[..., 2] / n, 0.0)[..., None, :]
    deviation = np.sqrt(np.maximum(square - centre**2, 0.0))
    dealt = random_counts(rng, n.astype(np.int64), sizes, b).transpose(0, 2, 1).astype(np.float64)  # (b, K, cells)
    noise = rng.standard_normal(dealt.shape) * np.sqrt(dealt)
    # Sums over all groups are fixed: take the noise's total back in proportion to the counts.
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(dealt > 0, dealt / n[..., None, :], 0.0)
    noise = noise - share * noise.sum(axis=1, keepdims=True)
    return np.stack([dealt, dealt * centre + deviation * noise, dealt * square], axis=-1)


def _redrawn(cells: FloatArray, n_bins: int, theta: float) -> Callable[[np.random.Generator, int], FloatArray]:
    """Return what draws bin sums (b, bins, 3) of a sample with its scores, sums (2 bins, 3), and this theta."""
    none, ones = cells[:n_bins], cells[n_bins:]
    n = none[:, 0] + ones[:, 0]
    at_least = np.maximum(n, 1.0)
    # With outcome 0 a residual is minus the score, with outcome 1 it is 1 minus the score.
    score = (ones[:, 0] - ones[:, 1] - none[:, 1]) / at_least
    square = (ones[:, 0] - 2 * ones[:, 1] + ones[:, 2] + none[:, 2]) / at_least
    error = (none[:, 1] + ones[:, 1]) / at_least
    seen = float(n @ error**2 / n.sum())
    error = error * math.sqrt(theta / seen) if seen > 0 else error
    chance = np.clip(score + error, 0.0, 1.0)

    def draw(rng: np.random.Generator, b: int) -> FloatArray:
        rows = rng.multinomial(int(n.sum()), n / n.sum(), size=b)
        positive = rng.binomial(rows, chance)
        return np.stack([rows, positive - rows * score, rows * square + positive * (1 - 2 * score)], axis=-1)

    return draw


def _studentised(sums: FloatArray) -> FloatArray:
    """Difference of two thetas over its standard error under the null, from bin sums (..., 2, bins, 3)."""
    theta, slope, rest = _squared_error(sums)  # (..., 2)
    var = _null_variance(sums, theta, slope, rest)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = theta[..., 0] - theta[..., 1]
        return np.where(gap == 0, 0.0, gap / np.sqrt(var.sum(axis=-1)))


def _squared_error(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Unbiased mean squared calibration error from bin sums (..., bins, 3), and its variance.

    The variance is ``slope * theta + rest``: it grows with the error itself. `theta` is put in by the
    caller, either the sample's own or the common one under the null. With the own one a perfectly
    calibrated sample that looks bad by chance would also look noisy, and the statistic could not grow.
    """
    n, e, ee = sums[..., 0], sums[..., 1], sums[..., 2]
    two = n > 1
    pairs, rows_in = np.where(two, n * (n - 1), 1.0), np.maximum(n, 1.0)
    gap = np.where(two, (e * e - ee) / pairs, 0.0)  # squared distance of each bin
    spread = np.where(two, np.maximum(ee - e * e / rows_in, 0.0) / np.maximum(n - 1, 1.0), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.where(two, n, 0.0)
        rows = inside.sum(axis=-1)
        share = inside / rows[..., None]
        theta = (share * gap).sum(axis=-1)
        known, noise = np.maximum(gap, 0.0), 2 * spread**2 / pairs
        weight = share * known
        second = (share**2 * noise).sum(axis=-1)
        # Residual variance where the error is; the plain mean over bins while no error is visible.
        doubt = 2 * np.sqrt(second)
        where = (weight * spread).sum(axis=-1) + doubt * (share * spread).sum(axis=-1)
        slope = 4 * where / (weight.sum(axis=-1) + doubt) / rows
        # Which bins a new sample would fall into; squares of estimates less their own noise.
        clean = gap**2 - noise - 4 * known * spread / rows_in
        mixture = np.maximum((share * clean).sum(axis=-1) - theta**2, 0.0) / rows
        return theta, np.where(second > 0, slope, 0.0), second + mixture


def _null_variance(sums: FloatArray, theta: FloatArray, slope: FloatArray, rest: FloatArray) -> FloatArray:
    """Variance of each theta when all samples (last axis) have the pooled one."""
    rows = sums[..., 0].sum(axis=-1)
    common = (rows * theta).sum(axis=-1, keepdims=True) / rows.sum(axis=-1, keepdims=True)
    return np.asarray(slope * np.maximum(common, 0.0) + rest)
