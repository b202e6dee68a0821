"""Rates compared within strata: exact permutation within strata, and the stratified score interval in one curve.

Hypothesis: the conditional difference of the rates is 0 (or their conditional ratio 1).
Test: the weighted difference is, but for a factor, the number of successes of the first group less its mean given the
margins of each stratum. When labels are permuted within strata this number is a sum of independent hypergeometric
counts, whose tails are summed (`counts.hypergeometric_sums`). That is the exact form of Cochran's, Mantel's and
Haenszel's test, and it holds its level whatever the strata's rates and however few rows they have. It assumes that no
stratum has a difference. Where strata differ in opposite directions the variance of the sum may be larger than
permutations say: it is estimated with only the mean over strata held at no difference, and where it is more than 5 %
larger the normal deviate of the p-value is reduced accordingly.
Interval: the score statistic of Miettinen and Nurminen (1985) over strata, all rates restricted to one difference (or
ratio), half a count taken off as the exact test does. At no difference its variance is that of the sum of
hypergeometric counts. On the side of the estimate where no difference lies, its deviate is scaled so that the p-value
there is the exact one: so a two-sided interval leaves 0 (or 1) out just when the p-value is at most one minus its
level.

F1 is 2 J / (1 + J) of the rate J = true positives / rows with outcome 1 or decision 1: equal F1 is equal J. Limits of J
become limits of F1 around the mean of both groups' J.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.reference import Reference
from evenhand.inference.resampling import NO_GLOBAL, drawn, refuse_exact
from evenhand.inference.samples import Draws
from evenhand.inference.strata.samples import Coverage, Homogeneity, Pair, StratifiedSamples, spread_test, tail_of
from evenhand.inference.strata.score import restricted_rates
from evenhand.kernels.counts import binomial
from evenhand.kernels.counts.deals import block_size
from evenhand.kernels.counts.hypergeometric_sums import HypergeometricSum

# Deviates of no difference below this are too near to the estimate to scale the curve by.
_NEAR = 0.5
# Beyond this the exact tail is below what can be summed, and the deviates are the normal law's.
_FAR = 6.5
# Variances that are larger by less are taken as they are: at .05 a test that ignores this rejects .056 of the time.
_IGNORED = 1.05
# Rows of each group that a stratum needs to take part in the test of homogeneity, whose law is a limit.
_HOMOGENEITY_ROWS = 5
# Variance of each group's successes from which the chi-square limit of the test of all groups is used.
_GLOBAL_VARIANCE = 25.0

_SUMMED = "exact permutation within strata (sum of independent hypergeometric counts)"
_NORMAL = "permutation within strata; normal limit of the sum of counts with continuity and skewness corrections"
_UNEQUAL = "; its normal deviate is reduced for the larger variance that differences between the strata make"


class StratifiedRates(StratifiedSamples):
    """K groups and a rate, compared within strata.

    Parameters
    ----------
    successes, trials : array_like of int, shape (K, S)
        Rows of the numerator and of the denominator by group and stratum.
    rows : array_like of int, shape (K,), optional
        All rows of each group; by default those of the denominator.
    f1 : bool
        Whether the value shown is 2 J / (1 + J) of the rate J.
    empty_reason : str
        Why a group with an empty denominator has no value, as the end of a sentence.

    Examples
    --------
    >>> samples = StratifiedRates([[8, 2], [5, 1]], [[10, 20], [10, 20]])
    >>> round(samples.difference(0, 1), 4)  # ((.8 - .5) 5 + (.1 - .05) 10) / 15
    0.1333
    >>> result = samples.test(0, 1, Draws())
    >>> round(result.pvalue, 4), result.exact
    (0.2723, True)
    """

    def __init__(
        self,
        successes: ArrayLike,
        trials: ArrayLike,
        *,
        rows: ArrayLike | None = None,
        f1: bool = False,
        empty_reason: str = "has no rows in the denominator",
    ) -> None:
        self.successes, self.trials = (np.asarray(part, dtype=np.int64) for part in (successes, trials))
        self.f1 = f1
        everyone = self.trials.sum(1) if rows is None else np.asarray(rows, dtype=np.int64)
        total, gained = self.trials.sum(1), self.successes.sum(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = self.trials * (self.successes.sum(0) / self.trials.sum(0))[None]
            rate = (gained - np.nansum(expected, 1)) / total + gained.sum() / total.sum()
        self.estimate = self._shown(rate)
        self.reason = tuple("" if n else empty_reason for n in total)
        sizes = zip(everyone.tolist(), total.tolist(), gained.tolist(), strict=True)
        self.counts = tuple({"rows": r, "denominator": n, "numerator": x} for r, n, x in sizes)
        self._pairs: dict[tuple[int, int], tuple[Pair, FloatArray, FloatArray]] = {}
        self._laws: dict[tuple[int, int], HypergeometricSum] = {}
        self._inflations: dict[tuple[int, int], float] = {}
        self._known: dict[tuple[int, int, bool], float] = {}

    def _shown(self, rate: FloatArray) -> FloatArray:
        return np.asarray(2 * rate / (1 + rate) if self.f1 else rate)

    def _both(self, a: int, b: int) -> tuple[Pair, FloatArray, FloatArray]:
        """Return the pair, with the successes and trials (S, 2) in its strata."""
        if (a, b) not in self._pairs:
            strata = np.flatnonzero((self.trials[[a, b]] > 0).all(0))
            x, n = (part[[a, b]][:, strata].T.astype(np.float64) for part in (self.successes, self.trials))
            p = x / n
            pair = Pair(strata, n.prod(1) / n.sum(1), p[:, 0], p[:, 1], n[:, 0], n[:, 1])
            self._pairs[a, b] = (pair, x, n)
        return self._pairs[a, b]

    def pair(self, a: int, b: int) -> Pair:
        """Return two groups' rates in the strata that have both."""
        return self._both(a, b)[0]

    def values(self, a: int, b: int) -> tuple[float, float]:
        """Return both groups' rates (or F1), averaged over the strata they share."""
        one, two = self._shown(np.array(self.pair(a, b).values)).tolist()
        return one, two

    def coverage(self, a: int, b: int) -> Coverage:
        """Count strata and rows of the denominator with and without both groups."""
        n = self.trials[[a, b]]
        both = (n > 0).all(0)
        return Coverage(
            strata=int((n > 0).any(0).sum()),
            compared=int(both.sum()),
            rows=int(n.sum()),
            rows_compared=int(n[:, both].sum()),
        )

    def _law(self, a: int, b: int) -> tuple[HypergeometricSum, int, bool]:
        """Return the law of the successes of one of two groups, the count seen, and whether it is the first."""
        _, x, n = self._both(a, b)
        # One order for both namings: the same digits.
        turned = (n[:, 0].sum(), x[:, 0].sum()) > (n[:, 1].sum(), x[:, 1].sum())
        key = (b, a) if turned else (a, b)
        if key not in self._laws:
            own, other = (1, 0) if turned else (0, 1)
            self._laws[key] = HypergeometricSum(*np.rint([n[:, own], n[:, other], x.sum(1)]).astype(np.int64))
        return self._laws[key], int(x[:, 1 if turned else 0].sum()), not turned

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        law, _, first = self._law(a, b)
        p, wide = self._equality(a, b, draws)
        words = _NORMAL if draws.method == "limit" or not law.exact else _SUMMED
        words += ", ties counted half (mid-p)" if draws.midp else ""
        floor = law.floor(draws.alternative if first else _turned(draws.alternative))
        warnings = (f"With these counts no result could give a p-value below {floor:.3g}.",) if floor > 0.05 else ()
        return TestResult(
            statistic=self._score(a, b, 0.0, False, 0.0),
            pvalue=p,
            method=words + (_UNEQUAL if wide else ""),
            exact=law.exact and not wide and draws.method != "limit",
            floor=floor,
            warnings=warnings,
        )

    def _equality(self, a: int, b: int, draws: Draws) -> tuple[float, bool]:
        """Return the p-value of no difference, and whether the larger variance of unequal strata decided it."""
        law, at, first = self._law(a, b)
        sides = draws.alternative if first else _turned(draws.alternative)
        taken = 0.0 if draws.midp else 0.5
        factor = math.sqrt(self._inflation(a, b))
        if draws.method == "limit":
            return tail_of(self._score(a, b, 0.0, False, taken) / factor, draws.alternative), factor > 1
        known = law.pvalue(at, sides, midp=draws.midp)
        if factor == 1 or known >= 0.5:
            return known, False
        ways = 2 if draws.alternative == "two-sided" else 1
        return ways * float(special.ndtr(special.ndtri(known / ways) / factor)), True

    def _score(self, a: int, b: int, value: float, ratio: bool, taken: float) -> float:
        """Return the deviate of a difference or ratio; `taken` is taken off the count of the first group."""
        pair, x, n = self._both(a, b)
        gap = float(pair.weight @ (pair.first - (value * pair.second if ratio else pair.second + value)))
        factor = value if ratio else 1.0
        share = float(pair.weight @ ((n[:, 1] + factor * n[:, 0]) / n.sum(1))) / pair.total
        gap = math.copysign(max(abs(gap) - taken * share, 0.0), gap)
        p = restricted_rates(x, n, value, ratio=ratio)
        variance = float(pair.weight**2 @ ((p * (1 - p) * (1.0, factor**2) / n).sum(1) * self._more(n)))
        return gap / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, gap) if gap else 0.0

    @staticmethod
    def _more(n: FloatArray) -> FloatArray:
        """Return N / (N - 1) of each stratum: with it the variance is right on average where nothing differs."""
        return np.asarray(n.sum(1) / np.maximum(n.sum(1) - 1, 1))

    def _inflation(self, a: int, b: int) -> float:
        """Return how many times larger the variance is when only the mean over strata is held at no difference.

        1 where it is hardly larger: strata that do not differ leave it at that but for chance.
        """
        if (a, b) not in self._inflations:
            pair, x, n = self._both(a, b)
            able = n.min(1) > 1  # a single row shows no variance of its own
            x, n, w = x[able], n[able], pair.weight[able]
            ratio = 1.0
            if w.size:
                p = binomial.restricted_proportions(x.ravel(), n.ravel(), np.outer(w, (1.0, -1.0)).ravel(), 0.0)
                p = p.reshape(x.shape)
                own = (p * (1 - p) / n).sum(1) * n.sum() / max(n.sum() - 2 * w.size + 1, 1.0)
                law, _, _ = self._law(a, b)
                share = x.sum(1) / n.sum(1)
                common = w * share * (1 - share) * self._more(n)
                whole = law.variance
                ratio = (whole + float(w**2 @ own) - float(common.sum())) / whole if whole > 0 else 1.0
            self._inflations[a, b] = ratio if ratio > _IGNORED else 1.0
        return self._inflations[a, b]

    def _deviate(self, a: int, b: int, value: float, ratio: bool, draws: Draws) -> float:
        if self.f1:
            value, ratio = self._rate_value(a, b, value, ratio), False
        taken = 0.0 if draws.midp else 0.5
        deviate = self._score(a, b, value, ratio, taken) / math.sqrt(self._inflation(a, b))
        none = self._score(a, b, 0.0, False, taken) / math.sqrt(self._inflation(a, b))
        if not _NEAR <= abs(none) <= _FAR or deviate * none <= 0 or draws.method == "limit":
            return deviate
        return deviate * self._scale(a, b, none, draws)

    def _scale(self, a: int, b: int, none: float, draws: Draws) -> float:
        """Return by what the deviates are multiplied so that the one of no difference is the test's."""
        p = self._two_sided(a, b, draws.midp)
        return float(-special.ndtri(p / 2)) / abs(none)

    def _two_sided(self, a: int, b: int, midp: bool) -> float:
        if (a, b, midp) not in self._known:
            self._known[a, b, midp] = self._equality(a, b, Draws(midp=midp))[0]
        return self._known[a, b, midp]

    def _rate_value(self, a: int, b: int, value: float, ratio: bool) -> float:
        """Return the difference of rates J at which F1 has a difference or ratio, around the mean of both J."""
        middle = sum(self.pair(a, b).values) / 2
        far = 2 * min(middle, 1 - middle)

        def excess(difference: float) -> float:
            one, two = (float(v) for v in self._shown(np.array([middle + difference / 2, middle - difference / 2])))
            return one - (value * two if ratio else two + value)

        low, high = -far, far
        if excess(low) >= 0 or excess(high) <= 0:
            return low if excess(low) >= 0 else high
        for _ in range(60):
            at = (low + high) / 2
            low, high = (low, at) if excess(at) > 0 else (at, high)
        return (low + high) / 2

    def _kind(self, draws: Draws) -> str:
        return "stratified score" + (" around the mean" if self.f1 else "")

    def _standard_error(self, a: int, b: int) -> float:
        pair, x, n = self._both(a, b)
        share = (x.sum(1) + 0.5) / (n.sum(1) + 1) if not self._law(a, b)[0].variance > 0 else x.sum(1) / n.sum(1)
        more = n.sum(1) / np.maximum(n.sum(1) - 1, 1)
        error = math.sqrt(float(pair.weight @ (share * (1 - share) * more))) / pair.total
        return error * (2 / (1 + sum(pair.values) / 2) ** 2 if self.f1 else 1.0)

    def homogeneity(self, a: int, b: int, *, ratio: bool) -> Homogeneity | None:
        """Test that strata with at least five rows of each group have one difference or ratio (of J for F1)."""
        pair, x, n = self._both(a, b)
        use = (n >= _HOMOGENEITY_ROWS).all(1) & (x.sum(1) > 0) & (not ratio or x[:, 1].sum() > 0)
        point = float(pair.weight @ pair.first / (pair.weight @ pair.second)) if ratio and use.any() else 0.0
        if use.sum() < 2 or (ratio and not point > 0):
            return None
        if ratio:
            squares = binomial.ratio_statistic(x[use], n[use], np.full(int(use.sum()), point)) ** 2
        else:
            point = float(pair.weight @ (pair.first - pair.second)) / pair.total
            squares = binomial.score_statistic(x[use], n[use], [1, -1], np.full(int(use.sum()), point)) ** 2
        known = np.isfinite(squares)
        q, df = float(squares[known].sum()), int(known.sum()) - 1
        return Homogeneity(statistic=q, df=df, pvalue=float(special.chdtrc(df, q))) if df > 0 else None

    def stratum_limits(
        self, a: int, b: int, strata: IntArray, level: float, *, ratio: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return score limits of each stratum (of the rate J for F1)."""
        x, n = (part[[a, b]][:, strata].T.astype(float) for part in (self.successes, self.trials))
        return binomial.ratio_interval(x, n, level) if ratio else binomial.score_interval(x, n, [1, -1], level)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        """By the generalised form of Cochran's, Mantel's and Haenszel's test."""
        x, n = self.successes[members], self.trials[members]  # (K, S)
        use = ((n > 0).sum(0) > 1) & (x.sum(0) > 0) & (x.sum(0) < n.sum(0))
        x, n = x[:, use], n[:, use]
        everyone, total = n.sum(0), x.sum(0)
        expected = n * (total / everyone)
        scale = total * (everyone - total) / (everyone**2 * np.maximum(everyone - 1, 1.0))
        covariance = np.diag((scale * everyone * n).sum(1)) - (scale * n) @ n.T
        q, df = spread_test((x - expected).sum(1), covariance)
        if df < 1:
            return undefined("In every stratum with several groups all rows have the same result.")
        statistic = functools.partial(_spread, expected=expected.sum(1), covariance=covariance)
        if draws.method == "limit" or (draws.method == "auto" and covariance.diagonal().min() >= _GLOBAL_VARIANCE):
            words = "permutation within strata of all groups, chi-square limit"
            return TestResult(statistic=q, pvalue=float(special.chdtrc(df, q)), method=words, exact=False)
        refuse_exact(draws, NO_GLOBAL)
        # Groups are dealt in an order that their labels cannot change.
        order = np.lexsort((x.sum(1), n.sum(1)))
        expected, covariance = expected[order], covariance[np.ix_(order, order)]
        statistic = functools.partial(_spread, expected=expected.sum(1), covariance=covariance)

        def work(rng: np.random.Generator, b: int) -> FloatArray:
            return statistic(_dealt(rng, total, n[order], b))

        cost = 10 * n.size
        null = drawn(work, draws, cost, block_size(cost), "strata")
        words = "permutation within strata of all groups"
        return Reference(None, null).result(q, "greater", method=words)


def _turned(alternative: str) -> str:
    return {"greater": "less", "less": "greater"}.get(alternative, alternative)


def _spread(counts: FloatArray, *, expected: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the quadratic forms of successes by group, (b, K)."""
    inverse = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
    gap = counts - expected
    return np.asarray(np.einsum("bi,ij,bj->b", gap, inverse, gap))


def _dealt(rng: np.random.Generator, total: IntArray, n: IntArray, b: int) -> FloatArray:
    """Deal the successes of each stratum out to the groups at random; return their sums over strata, (b, K)."""
    left = np.broadcast_to(total, (b, total.size)).copy()
    rows = n.sum(0)
    out = np.empty((b, len(n)))
    for k in range(len(n) - 1):
        rows = rows - n[k]
        # Of n[k] + rows rows, n[k] go to this group; `left` of them are successes.
        own = rng.hypergeometric(left, np.maximum(n[k] + rows - left, 0), np.broadcast_to(n[k], left.shape))
        out[:, k] = own.sum(1)
        left = left - own
    out[:, -1] = left.sum(1)
    return out
