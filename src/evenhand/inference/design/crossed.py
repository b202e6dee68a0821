"""K values whose clusters may have rows in several groups: score tests with the clusters' variance.

Hypothesis: two (or all) groups have one value; clusters are independent, rows of one cluster are not, and the values of
two groups depend on each other through the clusters they share (one loan officer decides over both).
Statistic: the difference over its standard error, from the sums of the clusters' pulls (`contributions`).
Reference: two laws, of which the larger p-value counts. Student's t with Satterthwaite's degrees of freedom, corrected
for skewness (`evenhand.inference.skewed_student`), holds in large samples. Random sign flips of the clusters'
contributions around the value under the null are exact, with any number of clusters, when these lie symmetrically
around 0, as they do for pairs of one row of each group: there they are McNemar's test. One set of flips answers for
every difference g - d of the value seen and the value under the null: the contributions under the null are e + (g - d)
q with shares q that add up to 1, so their flipped sum reaches g - d exactly when sum(sign e) / (1 - sum(sign q)) does.

All groups at once: the contributions' quadratic form under the null, by the F law and by the same flips.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.inference.design.contributions import Contributions, rounded
from evenhand.inference.limits import crossing
from evenhand.inference.means import CALM_KURTOSIS, CALM_SKEWNESS
from evenhand.inference.pvalues import TestResult, undefined
from evenhand.inference.reference import Drawn, Listed, Reference
from evenhand.inference.resampling import drawn
from evenhand.inference.samples import Draws, MarginSamples
from evenhand.inference.skewed_student import Lean, Shape, lean_of
from evenhand.kernels.counts.deals import block_size

LISTED = 12  # clusters up to which all sign flips are listed
SIGNS = "score test with the clusters' variance: skewness-corrected t law and sign flips, the larger p-value"
STUDENT = "score test with the clusters' variance: t law"
SKEWED = "score test with the clusters' variance: skewness-corrected t law"
NOTHING_VARIES = "Nothing varies between the clusters, so there is no test."


class CrossedSamples(MarginSamples):
    """K values, compared through the clusters behind them.

    Parameters
    ----------
    parts : Contributions
        What each cluster adds to each group's value.
    refusal : str
        Why whole clusters cannot swap groups, for requests to let them; the beginning of a sentence.

    Examples
    --------
    >>> pairs = Contributions.of_ratio([[1.0, 0.0]] * 6 + [[0.0, 1.0]] + [[1.0, 1.0]] * 5, [[1.0, 1.0]] * 12)
    >>> samples = CrossedSamples(pairs)
    >>> round(samples.test(0, 1, Draws()).pvalue, 3)  # McNemar's exact test of 6 and 1 discordant pairs: .125
    0.147
    """

    def __init__(self, parts: Contributions, refusal: str = "Some clusters have rows of several groups") -> None:
        self._parts, self._refusal = parts, refusal
        self._deviations, self._share = parts.deviations(), parts.share
        self._plain = parts.pull if parts.stratum is None else self._deviations  # flipped: exact needs no correction
        self._covariance = parts.covariance()
        self.estimate = parts.estimate
        self.reason = tuple("has no value" if math.isnan(v) else "" for v in parts.estimate)
        rows = parts.copies @ parts.mass
        self.counts = tuple({"rows": float(n)} for n in rows)

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        self._refuse(draws)
        error = self.error(a, b)
        if not error > 0:
            return undefined(NOTHING_VARIES)
        reference = self._reference(a, b, draws)
        words = SIGNS if reference.null is not None else STUDENT if draws.method == "limit" else SKEWED
        result = reference.result(self._point(a, b, False) / error, draws.alternative, method=words)
        return replace(result, null=np.empty(0))  # signs are flipped there, not labels, which a chart would claim

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        self._refuse(draws)
        own = np.diag(self._covariance)[members]
        if not own.max() > 0:
            return undefined(NOTHING_VARIES)
        precision = 1 / np.where(own > 0, own, own[own > 0].min())
        values, share = self.estimate[members], self._share[:, members]
        common = float(precision @ values / precision.sum())
        contrasts = np.eye(len(members))[1:] - np.eye(len(members))[0]  # (q, K)
        null = (self._plain[:, members] + (values - common) * share) @ contrasts.T  # (L, q)
        df = min(self._parts.freedom(members[0], k) for k in members[1:])
        return joint_score(contrasts @ values, null, self._parts.copies, df, draws)

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """All differences, or ratios, that the test at 1 - level keeps."""
        error = self.error(a, b)
        if not error > 0:
            return -math.inf, math.inf, "none"
        reference = self._reference(a, b, draws)
        kind = "cluster-flips" if reference.null is not None else "cluster-t"
        if not ratio:
            low, high = reference.critical(level)
            gap = self._point(a, b, False)
            return gap - high * error, gap - low * error, kind
        return *self._ratio_limits(a, b, level, draws, reference), f"fieller-{kind}"

    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        shift, factor = (0.0, margin) if ratio else (margin, 1.0)
        error = self.error(a, b, factor)
        if not error > 0:
            return math.nan
        gap = float(self.estimate[a] - shift - factor * self.estimate[b])
        return self._reference(a, b, draws, factor).pvalue(gap / error, draws.alternative)

    def _standard_error(self, a: int, b: int) -> float:
        # A value beside another just like it, for planning, shares no clusters with it.
        return self.error(a, b) if a != b else math.sqrt(2 * self._covariance[a, a])

    def error(self, a: int, b: int, factor: float = 1.0) -> float:
        """Return the standard error of value a minus factor times value b."""
        deviation = self._deviations[:, a] - factor * self._deviations[:, b]
        return math.sqrt(float(self._parts.copies @ deviation**2))

    def null_parts(self, a: int, b: int) -> FloatArray:
        """Return what each cluster adds to the difference of two values, around their common value; (L,)."""
        deviation, gap = self._plain[:, a] - self._plain[:, b], self.estimate[a] - self.estimate[b]
        return np.asarray(deviation + gap * self._moved(a, b))

    def _moved(self, a: int, b: int) -> FloatArray:
        """Return each cluster's part in moving both values to a common one; the value known worse moves more."""
        own = np.diag(self._covariance)[[a, b]]
        first = own[0] / own.sum() if own.sum() > 0 else 0.5
        return np.asarray(first * self._share[:, a] + (1 - first) * self._share[:, b])

    def _ratio_limits(self, a: int, b: int, level: float, draws: Draws, reference: Reference) -> tuple[float, float]:
        """All ratios that the test keeps; open where the denominator is not shown to differ from 0."""
        first, second = (float(v) for v in self.estimate[[a, b]])
        if second <= 0 or first < 0:
            return 0.0 if first >= 0 else -math.inf, math.inf
        share = (1 - level) / 2
        fixed = (-math.inf, math.inf) if reference.null is None else reference.null.critical(share)

        def keeps(ratio: float, side: str) -> bool:
            error = self.error(a, b, ratio)
            statistic = (first - ratio * second) / error if error > 0 else 0.0
            if reference.null is not None and (statistic <= fixed[1] if side == "greater" else statistic >= fixed[0]):
                return True
            return self._law(a, b, ratio, draws).tail(statistic, side) > share

        point, far = first / second, 1e9 * max(first / second, 1.0)
        low = 0.0 if point == 0 else crossing(lambda r: keeps(r, "greater"), point, 0.0, 1.0, tolerance=1e-9)
        high = crossing(lambda r: keeps(r, "less"), point, far, 1.0, tolerance=1e-9)
        return low, math.inf if high >= far else high

    def _reference(self, a: int, b: int, draws: Draws, factor: float = 1.0) -> Reference:
        """Return the laws of the statistic; the flips are those of the difference, whatever the factor."""
        law = self._law(a, b, factor, draws)
        if draws.method == "limit":
            return Reference(law, None)
        return Reference(law, self._law_once(a, b, draws, lambda: self._flips(a, b, draws)))

    def _law(self, a: int, b: int, factor: float, draws: Draws) -> Lean:
        df = self._parts.freedom(a, b, factor)
        if draws.method == "limit":
            return Lean(0.0, 0.0, df)
        return lean_of([(self._shape(a, b, factor), 1.0)], df)

    def _shape(self, a: int, b: int, factor: float = 1.0) -> Shape:
        deviation = self._deviations[:, a] - factor * self._deviations[:, b]
        copies = self._parts.copies
        # Deviations of a stratum add up to 0, those of all clusters nearly so.
        centred = deviation - float(copies @ deviation) / copies.sum()
        return Shape.of(centred, copies, float(copies.sum()), float(copies @ deviation**2))

    def _flips(self, a: int, b: int, draws: Draws) -> Drawn | Listed | None:
        """Law of the studentised difference over sign flips; None where the clusters are many and calm."""
        copies = self._parts.copies
        clusters = int(copies.sum())
        shape = self._shape(a, b)
        m2, _, m4, *_ = shape.moments
        calm = abs(shape.skewness) / math.sqrt(clusters) <= CALM_SKEWNESS and m4 / m2**2 / clusters <= CALM_KURTOSIS
        if calm and clusters > LISTED:
            return None
        deviation = self._plain[:, a] - self._plain[:, b]
        # Turned so that the difference seen is not negative, and sorted: neither the order of the clusters nor the
        # names of the groups can change a result.
        turn = -1.0 if self.estimate[a] < self.estimate[b] else 1.0
        lines = np.stack([turn * deviation / self.error(a, b), self._moved(a, b)], axis=-1)  # (L, 2)
        order = np.lexsort((copies, rounded(lines[:, 1]), rounded(lines[:, 0])))
        lines = lines[order]

        def statistic(signs: FloatArray) -> FloatArray:
            sums = signs @ lines
            rest = 1 - sums[:, 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(rest > 1e-9, turn * sums[:, 0] / rest, np.nan)  # all signs kept: as extreme as can be

        return flipped(statistic, copies[order], draws, "flips")

    def _refuse(self, draws: Draws) -> None:
        if draws.method in ("permutation", "exact") or draws.permute != "auto":
            asked = "method" if draws.permute == "auto" else "permute"
            said = draws.method if draws.permute == "auto" else draws.permute
            raise UsageError(
                f"{self._refusal}, so whole clusters cannot swap groups and `{asked}` cannot be `{said}`. Leave it at "
                "`auto`, which makes a score test with the clusters' variance."
            )


def flipped(
    statistic: Callable[[FloatArray], FloatArray], copies: IntArray, draws: Draws, purpose: str
) -> Drawn | Listed:
    """Return the law of a statistic of the clusters' signs, (b, L) to (b,): all of them where they are few."""
    alone = bool((copies == 1).all())
    if alone and copies.size <= LISTED:
        return Listed(statistic(np.array(list(product((-1.0, 1.0), repeat=copies.size)))))

    def work(rng: np.random.Generator, b: int) -> FloatArray:
        if alone:
            return statistic(2 * rng.integers(0, 2, size=(b, copies.size)).astype(np.float64) - 1)
        return statistic(2 * rng.binomial(copies, 0.5, size=(b, copies.size)).astype(np.float64) - copies)

    return drawn(work, draws, copies.size, block_size(2 * copies.size), purpose)


def joint_score(gaps: FloatArray, null: FloatArray, copies: IntArray, df: float, draws: Draws) -> TestResult:
    """Test that several differences are 0 at once.

    Parameters
    ----------
    gaps : ndarray, shape (q,)
        The differences.
    null : ndarray, shape (L, q)
        What each cluster adds to them, around values that do not differ; they add up to the differences.
    copies : ndarray of int, shape (L,)
        Clusters with these contributions.
    df : float
        Degrees of freedom with which the spread of the contributions is known.
    draws : Draws
        How flips are drawn; none with method "limit".

    Examples
    --------
    >>> lines = np.random.default_rng(0).normal(size=(40, 2))
    >>> one, limit = np.ones(40, dtype=np.int64), Draws(method="limit")
    >>> round(joint_score(lines.sum(axis=0), lines, one, 39.0, limit).pvalue, 3)
    0.518
    """
    q, clusters = gaps.size, float(copies.sum())
    spread = (null * copies[:, None]).T @ null
    if np.linalg.matrix_rank(spread, hermitian=True) < q:
        return undefined(NOTHING_VARIES)
    inverse = np.linalg.inv(spread)
    score = float(gaps @ inverse @ gaps)
    # The square of a mean over its spread around 0, as one over its spread around itself (Hotelling).
    hotelling = (clusters - 1) / clusters * score / max(1 - score / clusters, 1e-9)
    df = max(df, float(q))
    known = float(special.fdtrc(q, df - q + 1, hotelling * (df - q + 1) / (df * q)))
    words = "score test of all groups with the clusters' covariance: F law"
    if draws.method == "limit":
        return TestResult(statistic=score, pvalue=known, method=words, exact=False)

    # In an order that the names of clusters and groups cannot change.
    order = np.lexsort((copies, rounded(null @ inverse @ gaps), rounded(((null @ inverse) * null).sum(axis=1))))
    null, copies = null[order], copies[order]

    def statistic(signs: FloatArray) -> FloatArray:
        sums = signs @ null
        return np.asarray(((sums @ inverse) * sums).sum(axis=1))

    law = Reference(None, flipped(statistic, copies, draws, "global"))
    result = law.result(score, "greater", method=f"{words} and sign flips of clusters, the larger p-value")
    p, low, high = (max(known, x) for x in (result.pvalue, result.pvalue_low, result.pvalue_high))
    return replace(result, pvalue=p, pvalue_low=low, pvalue_high=high, exact=False, null=np.empty(0))
