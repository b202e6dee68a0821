"""Area under the ROC curve in K samples.

Hypothesis: two (or all) samples have one AUC; score distributions and base rates may differ otherwise.
Statistic: difference of the logits of the AUCs over its standard error by DeLong's variance, ties counted
half. The logit and a regularised variance (one row's worth of the variance that an exponential model has
at this AUC) keep the statistic finite and less skewed when a small sample has an AUC near 0 or 1. The
plain difference over DeLong's error, as printed in [diciccio2020] sec. 3.2, is kept as
``variance="unpooled"``.
Reference: permutations of the rows within each outcome ([diciccio2020] sec. 3.1; ``permute="all"`` moves
all rows); the normal law when every group has more than 5000 rows of each outcome.

When it fails: an AUC near 0 or 1 in a sample with so few rows of one outcome that hardly any pair is in
the wrong order, and score distributions of different shape. The result then carries a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand.inference.limits import mover_difference, mover_ratio, onesided_from_limits
from evenhand.inference.pvalues import TestResult, far_from_rejecting, monte_carlo
from evenhand.inference.resampling import (
    ENUMERATE,
    NO_GLOBAL,
    ROWS_PER_RECORD,
    at_margins,
    enumerated,
    limit_result,
    refuse_exact,
    undefined,
    wald_spread,
)
from evenhand.inference.samples import Draws
from evenhand.kernels.auc import AucParts, PooledScores, auc_of_counts
from evenhand.kernels.moments import distinct
from evenhand.kernels.subsets import (
    all_subsets,
    block_size,
    in_blocks,
    random_counts,
    random_labels,
    random_subsets,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_Statistic = Callable[[Sequence[AucParts]], FloatArray]

# Expected misordered rows (rows of the rarer outcome times the AUC's distance from 0 or 1) in the smallest group:
# from here on the normal law is used (measured at 20 to 25: size .051 to .059 with opposite shapes) ...
MANY_ERRORS = 50.0
# ... and below this the test is known to be less reliable.
FEW_ERRORS = 5.0
# Rows' worth of model variance mixed into DeLong's.
PRIOR_ROWS = 1.0


class AucSamples:
    """K samples of scores with a 0/1 outcome, compared by their AUCs.

    Parameters
    ----------
    score : array_like, shape (R,)
        Score of each record.
    outcome : array_like of bool, shape (R,)
        Outcome of each record.
    codes : array_like of int, shape (R,)
        Sample of each record, 0 to n_groups - 1; records with other codes are left out.
    n_groups : int
        K.
    count : array_like of int, shape (R,), optional
        Rows each record stands for; 1 by default.
    weight : array_like, shape (R,), optional
        Sampling weight of each row.
    empty_reason : str
        Why a sample has no AUC; by default it names the missing outcome.

    Examples
    --------
    >>> samples = AucSamples(score=[1, 2, 3, 4, 1, 2, 2, 3], outcome=[0, 1, 0, 1, 0, 0, 1, 1],
    ...                      codes=[0, 0, 0, 0, 1, 1, 1, 1], n_groups=2)
    >>> samples.estimate.tolist()
    [0.75, 0.875]
    """

    def __init__(
        self,
        *,
        score: ArrayLike,
        outcome: ArrayLike,
        codes: ArrayLike,
        n_groups: int,
        count: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        empty_reason: str = "",
    ) -> None:
        s = np.asarray(score, dtype=np.float64)
        y = np.asarray(outcome).astype(np.bool_)
        g = np.asarray(codes, dtype=np.int64)
        c = np.ones(s.shape, dtype=np.int64) if count is None else np.asarray(count, dtype=np.int64)
        w = np.ones(s.shape) if weight is None else np.asarray(weight, dtype=np.float64)
        keep = (c > 0) & (g >= 0) & (g < n_groups) & (w > 0)
        self._weighted = weight is not None
        self._n_groups = n_groups
        self._empty_reason = empty_reason
        # One line per distinct (score, weight) of each outcome, sorted: row order cannot matter.
        self._sides = tuple(
            distinct(s[keep & side], w[keep & side], c[keep & side], g[keep & side], n_groups) for side in (y, ~y)
        )
        self._observed = [self._parts_of(k) for k in range(n_groups)]

    @property
    def estimate(self) -> FloatArray:
        """AUC of each sample, NaN where an outcome is missing."""
        return np.array([float(part.auc) for part in self._observed])

    @property
    def reason(self) -> tuple[str, ...]:
        """Why a sample has no AUC."""
        out = []
        for k in range(self._n_groups):
            positive, negative = (int(side[2][:, k].sum()) for side in self._sides)
            lacks = [text for n, text in ((positive, "1"), (negative, "0")) if n == 0]
            why = self._empty_reason or f"has no rows with outcome {' or '.join(lacks)}"
            out.append(why if lacks else "")
        return tuple(out)

    @property
    def counts(self) -> tuple[Mapping[str, float], ...]:
        """Rows, and rows of each outcome."""
        out = []
        for k in range(self._n_groups):
            positive, negative = (int(side[2][:, k].sum()) for side in self._sides)
            out.append({"rows": positive + negative, "positives": positive, "negatives": negative})
        return tuple(out)

    def test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Test that samples `a` and `b` have one AUC."""
        if np.isnan(self.estimate[[a, b]]).any():
            return undefined()
        plain = draws.variance == "unpooled"
        observed = float(_studentised(self._observed[a], self._observed[b], plain))
        if math.isnan(observed):
            return undefined("DeLong's variance needs two rows of each outcome in each group.")
        sizes = self._sizes([a, b])  # (2 outcomes, 2 groups)
        if draws.method == "limit" or (draws.method == "auto" and self._errors([a, b]) >= MANY_ERRORS):
            return limit_result(observed, draws.alternative, method="normal limit", warnings=self._warning([a, b]))
        small = int(sizes[:, 1].sum() < sizes[:, 0].sum())  # the group that is drawn; the first when equal
        drawn = [(a, b)[small], (a, b)[1 - small]]
        sign = -1.0 if small else 1.0
        within = draws.permute != "all"
        ways = math.prod(math.comb(int(n.sum()), int(n[small])) for n in sizes) if sizes.sum() < 2000 else ENUMERATE
        if within and draws.method in ("auto", "exact") and ways * int(sizes.sum()) <= ENUMERATE:
            x, y = (all_subsets(int(n.sum()), int(n[small])) for n in sizes)
            pair = self._pooled(drawn).split(np.repeat(x, len(y), axis=0), np.tile(y, (len(x), 1)))
            return enumerated(sign * _studentised(*pair, plain), observed, draws.alternative, self._warning([a, b]))
        warnings = self._warning([a, b])
        refuse_exact(draws)
        null = self._permuted(
            drawn,
            draws,
            lambda parts: sign * _studentised(parts[0], parts[1], plain),
            "pair",
            far_from_rejecting(observed, draws.alternative),
        )
        words = "studentised permutation test" + (" within outcome" if within else "")
        return monte_carlo(null, observed, draws.alternative, method=words, warnings=warnings)

    def test_global(self, members: Sequence[int], draws: Draws) -> TestResult:
        """Test that all these samples have one AUC, by the weighted spread of their logits."""
        if np.isnan(self.estimate[list(members)]).any():
            return undefined()
        # Groups are dealt in an order that their labels cannot change.
        order = sorted(members, key=lambda k: (*self._sizes([k]).sum(axis=1), self.estimate[k]))
        plain = draws.variance == "unpooled"
        observed = float(_spread([self._observed[k] for k in order], plain))
        if math.isnan(observed):
            return undefined("DeLong's variance needs two rows of each outcome in each group.")
        if draws.method == "limit" or (draws.method == "auto" and self._errors(order) >= MANY_ERRORS):
            p = float(special.chdtrc(len(order) - 1, observed))
            return TestResult(
                statistic=observed,
                pvalue=p,
                method="chi-square limit",
                exact=False,
                pvalue_low=p,
                pvalue_high=p,
            )
        refuse_exact(draws, NO_GLOBAL)
        null = self._permuted(
            order, draws, lambda parts: _spread(parts, plain), "global", far_from_rejecting(observed, "greater")
        )
        words = "studentised permutation test" + (" within outcome" if draws.permute != "all" else "")
        return monte_carlo(null, observed, "greater", method=words, warnings=self._warning(order))

    def interval(self, a: int, b: int, *, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Return the interval that combines each AUC's logit limits by squares (MOVER)."""
        if np.isnan(self.estimate[[a, b]]).any():
            return math.nan, math.nan, "logit-mover"
        low, high = self._bounds(a, b, float(special.ndtri(1 - (1 - level) / 2)), ratio)
        return low, high, "logit-mover"

    def equivalence(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the larger one-sided p-value at the margins, by inverting the interval."""
        if np.isnan(self.estimate[[a, b]]).any():
            return math.nan

        first, second = self.estimate[[a, b]]
        point = (first / second if second > 0 else math.nan) if ratio else first - second

        def one(margin: float, side: Draws) -> float:
            lower = side.alternative == "greater"
            return onesided_from_limits(lambda z: self._bounds(a, b, z, ratio), point, margin, lower=lower)

        return at_margins(one, low, high, draws)

    def standard_error(self, a: int, b: int) -> float:
        """Return DeLong's standard error of the difference."""
        return math.sqrt(float(_regularised(self._observed[a])[1] + _regularised(self._observed[b])[1]))

    def _bounds(self, a: int, b: int, z: float, ratio: bool) -> tuple[float, float]:
        limits = []
        for k in (a, b):
            auc, var = (float(v) for v in _regularised(self._observed[k]))
            middle, half = special.logit(auc), z * math.sqrt(var) / (auc * (1 - auc))
            value = float(self.estimate[k])
            low, high = float(special.expit(middle - half)), float(special.expit(middle + half))
            limits.append((value, min(low, value), max(high, value)))
        return mover_ratio(*limits) if ratio else mover_difference(*limits)

    def _sizes(self, members: Sequence[int]) -> IntArray:
        """Rows of each outcome and member, shape (2, members)."""
        return np.stack([table[:, list(members)].sum(axis=0) for _, _, table in self._sides])

    def _errors(self, members: Sequence[int]) -> float:
        sizes = self._sizes(members).min(axis=0)
        auc = self.estimate[list(members)]
        pooled = float((sizes * auc).sum() / sizes.sum())
        return float(sizes.min()) * min(pooled, 1 - pooled)

    def _warning(self, members: Sequence[int]) -> tuple[str, ...]:
        if self._errors(members) >= FEW_ERRORS:
            return ()
        return (
            "A group has so few rows of one outcome at this AUC that hardly any pair is in the wrong order: "
            "this test may reject up to twice as often as stated when score distributions differ in shape.",
        )

    def _parts_of(self, k: int) -> AucParts:
        if self._weighted:
            masks = [np.ones((1, int(table[:, k].sum())), dtype=np.bool_) for _, _, table in self._sides]
            part = self._pooled([k]).group(*masks)
            take = [tuple(v[0] for v in side) for side in (part.positive, part.negative)]
            return AucParts(part.auc[0], take[0], take[1], part.n_positive[0], part.n_negative[0])
        x, y = self._aligned([k])
        return auc_of_counts(x[:, 0], y[:, 0])

    def _aligned(self, members: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Rows of each outcome over the distinct scores in use, shapes (D, members)."""
        (s1, _, x), (s0, _, y) = ((s, w, t[:, list(members)]) for s, w, t in self._sides)
        s1, x, s0, y = s1[x.any(axis=1)], x[x.any(axis=1)], s0[y.any(axis=1)], y[y.any(axis=1)]
        scores = np.union1d(s1, s0)
        out = []
        for s, table in ((s1, x), (s0, y)):
            line = np.zeros((scores.size, len(members)), dtype=np.int64)
            line[np.searchsorted(scores, s)] = table
            out.append(line)
        return out[0], out[1]

    def _pooled(self, members: Sequence[int]) -> PooledScores:
        total = [table[:, list(members)].sum(axis=1) for _, _, table in self._sides]
        scores = [np.repeat(s, n) for (s, _, _), n in zip(self._sides, total, strict=True)]
        if not self._weighted:
            return PooledScores(*scores)
        return PooledScores(*scores, *(np.repeat(w, n) for (_, w, _), n in zip(self._sides, total, strict=True)))

    def _permuted(
        self,
        members: Sequence[int],
        draws: Draws,
        statistic: _Statistic,
        purpose: str,
        enough: Callable[[FloatArray], bool],
    ) -> FloatArray:
        """Return the statistic on permutations; the members are dealt in this order."""
        sizes = self._sizes(members)  # (2, K)
        whole = sizes.sum(axis=0).tolist()
        within = draws.permute != "all"
        x, y = (t.sum(axis=1) for t in self._aligned(members)) if not self._weighted else (None, None)
        if x is not None and y is not None and x.size * ROWS_PER_RECORD <= sizes.sum():

            def work(rng: np.random.Generator, b: int) -> FloatArray:
                if within:
                    px, py = (
                        random_counts(rng, x, sizes[0].tolist(), b),
                        random_counts(rng, y, sizes[1].tolist(), b),
                    )
                else:
                    both = random_counts(rng, np.concatenate([x, y]), whole, b)
                    px, py = both[:, : x.size], both[:, x.size :]
                return statistic([auc_of_counts(px[:, :, k], py[:, :, k]) for k in range(len(members))])

            size, moved = block_size(x.size * len(members) * 16), x.size
        else:
            pooled = self._pooled(members)
            cut = int(sizes[0].sum())

            def work(rng: np.random.Generator, b: int) -> FloatArray:
                if len(members) == 2:
                    if within:
                        chosen = [random_subsets(rng, int(n.sum()), int(n[0]), b) for n in sizes]
                    else:
                        rows = random_subsets(rng, sum(whole), whole[0], b)
                        chosen = [rows[:, :cut], rows[:, cut:]]
                    return statistic(list(pooled.split(chosen[0], chosen[1])))
                if within:
                    labels = [random_labels(rng, n.tolist(), b) for n in sizes]
                else:
                    every = random_labels(rng, whole, b)
                    labels = [every[:, :cut], every[:, cut:]]
                return statistic([pooled.group(labels[0] == k, labels[1] == k) for k in range(len(members))])

            size, moved = block_size(sum(whole)), sum(whole) * (len(members) - 1)
        return in_blocks(
            work,
            draws.number(moved),
            size,
            seed=draws.seed,
            name=f"{draws.name}/{purpose}",
            workers=draws.workers,
            enough=enough,
        )


def _regularised(part: AucParts) -> tuple[FloatArray, FloatArray]:
    """AUC moved off 0 and 1 by half a pair, and DeLong's variance with a little of a model's mixed in."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = 1 / part.positive[0], 1 / part.negative[0]  # effective rows where rows are weighted
        auc = (p * q * part.auc + 0.5) / (p * q + 1)
        # Variance of the AUC of two exponential distributions (Hanley and McNeil 1982).
        q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
        model = (auc * (1 - auc) + (p - 1) * (q1 - auc**2) + (q - 1) * (q2 - auc**2)) / (p * q)
        own, n = part.variance(), np.minimum(p, q)
        own = np.where(np.isnan(own) & (np.minimum(part.n_positive, part.n_negative) == 1), model, own)
        return auc, (n * own + PRIOR_ROWS * model) / (n + PRIOR_ROWS)


def _logit(part: AucParts) -> tuple[FloatArray, FloatArray]:
    auc, var = _regularised(part)
    return np.asarray(special.logit(auc)), var / (auc * (1 - auc)) ** 2


def _studentised(first: AucParts, second: AucParts, plain: bool) -> FloatArray:
    if plain:
        gap, var = first.auc - second.auc, first.variance() + second.variance()
        return np.where(gap == 0, 0.0, gap / np.sqrt(np.maximum(var, 1e-12)))
    (one, v1), (two, v2) = _logit(first), _logit(second)
    return np.asarray((one - two) / np.sqrt(v1 + v2))


def _spread(parts: Sequence[AucParts], plain: bool) -> FloatArray:
    if plain:
        values, variances = [p.auc for p in parts], [np.maximum(p.variance(), 1e-12) for p in parts]
    else:
        values, variances = map(list, zip(*(_logit(p) for p in parts), strict=True))
    return wald_spread(np.stack(values, axis=-1), np.stack(variances, axis=-1))
