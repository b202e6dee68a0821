"""K groups whose rows come in clusters: one class for every metric that has an influence function.

Where no cluster has rows of both groups (several rows of one person), whole clusters swap groups: a group's value is
the mean of its clusters' values, weighted by their sizes, and `MeanSamples` compares such means by studentised
permutation of the clusters and the skewness-corrected t law. Where clusters have rows of both groups (one loan officer
decides over all), or a survey was stratified, whole clusters cannot swap, and `CrossedSamples` makes the score test
with the clusters' variance. Rates ask the plain rates of `effective_rates` beside either, and the larger p-value
counts. Intervals are all values that these tests keep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.inference.design.contributions import Contributions, rounded
from evenhand.inference.design.crossed import CrossedSamples
from evenhand.inference.design.effective_rates import EffectiveRates, trials_of
from evenhand.inference.means import PERMUTED, MeanSamples
from evenhand.inference.pvalues import TestResult
from evenhand.inference.samples import Draws, MarginSamples, Samples

FEW = 10  # clusters of a group below which a warning is given


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Behind:
    """The rows behind the values of K groups; each of shape (K,)."""

    rows: FloatArray  # all rows of the group
    # Rows behind the value (of a rate: those of its denominator), were they independent; fewer where weights differ.
    worth: FloatArray
    variance: FloatArray  # of the value, were the rows independent
    largest: FloatArray  # rows of the largest cluster
    cluster_size: FloatArray  # rows of the cluster that a row drawn at random belongs to, on average


class ClusteredSamples(Samples):
    """K groups of clustered rows, compared by their values.

    Parameters
    ----------
    parts : Contributions
        What each cluster adds to each group's value.
    behind : Behind
        How many rows stand behind the values.
    rate : bool
        Whether the value is a share of rows.
    name : str
        What a cluster is called in sentences: the column's name.
    reason : sequence of str
        Empty, or why a group has no value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat([0, 1], 15)
    >>> n = np.where(group[:, None] == [0, 1], 4.0, 0.0)
    >>> x = np.where(n > 0, rng.binomial(4, 0.2 + 0.6 * group)[:, None], 0.0)
    >>> samples = ClusteredSamples(Contributions.of_ratio(x, n), rows_of(n, x), rate=True, name="person")
    >>> samples.test(0, 1, Draws()).pvalue < 0.001
    True
    >>> samples.counts[0]["clusters"]
    15
    """

    def __init__(
        self,
        parts: Contributions,
        behind: Behind,
        *,
        rate: bool,
        name: str,
        reason: Sequence[str] | None = None,
    ) -> None:
        self.parts, self.behind, self.name, self._rate = parts, behind, name, rate
        given = [""] * len(parts.estimate) if reason is None else list(reason)
        single = f"has one cluster of `{name}` only, and a variance between clusters needs two"
        clusters = parts.clusters
        self.reason = tuple(why or (single if n < 2 else "") for why, n in zip(given, clusters, strict=True))
        self.estimate = np.where([not why for why in self.reason], parts.estimate, np.nan)
        self._variance = np.diag(parts.covariance())
        with np.errstate(divide="ignore", invalid="ignore"):
            # Design effect: the variance between clusters over that of independent rows.
            effect = self._variance / behind.variance
            correlation = (effect - 1) / (behind.cluster_size - 1)
        self.design_effect = np.where((self._variance > 0) & (behind.variance > 0), effect, np.nan)
        self.correlation = np.where(behind.cluster_size > 1, np.where(np.isfinite(effect), correlation, np.nan), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.effective = np.where(np.isnan(self.design_effect), np.nan, behind.worth / self.design_effect)
        self.counts = tuple(
            {
                "rows": int(behind.rows[k]),
                "clusters": int(clusters[k]),
                "largest_cluster": int(behind.largest[k]),
                "effective_rows": round(float(self.effective[k]), 3),
            }
            for k in range(len(given))
        )

    @cached_property
    def _apart(self) -> MeanSamples:
        """Clusters as rows of one group each: a cluster's value, with its mass as weight."""
        line, group = np.nonzero(self.parts.mass)
        mass, share = self.parts.mass[line, group], self.parts.share[line, group]
        value = np.nan_to_num(self.parts.estimate)[group] + self.parts.pull[line, group] / share
        # Rounded, so that equal clusters are counted together; weights of mean 1 in all.
        value, weight = rounded(value), rounded(mass / mass.mean() if mass.size else mass)
        copies = self.parts.copies[line]
        return MeanSamples(value=value, codes=group, n_groups=len(self.reason), count=copies, weight=weight)

    @cached_property
    def _crossed(self) -> CrossedSamples:
        return CrossedSamples(self.parts, self._refusal())

    def _refusal(self) -> str:
        if self.parts.stratum is not None:
            return "The clusters were drawn from sampling strata"
        crossed, clusters = self.parts.crossing(list(range(len(self.reason)))), int(self.parts.copies.sum())
        return f"{crossed:,} of {clusters:,} clusters of `{self.name}` have rows of more than one group"

    def crosses(self, members: Sequence[int]) -> bool:
        """Whether these groups are compared by the score test: they share clusters, or a survey was stratified."""
        return self.parts.stratum is not None or self.parts.crossing(list(members)) > 0

    def _engine(self, *members: int) -> MarginSamples:
        return self._crossed if self.crosses(members) else self._apart

    def _effective(self, a: int, b: int) -> EffectiveRates | None:
        if not self._rate:
            return None
        trials = trials_of(self.estimate, self._variance, self.behind.worth, self.behind.cluster_size)[[a, b]]
        # Groups that share clusters: as many trials as give the difference its variance.
        apart, gap = float(self._variance[[a, b]].sum()), self._crossed.error(a, b) ** 2
        if self.parts.crossing([a, b]) and apart > 0 and gap > 0:
            trials = trials * (apart / gap)
        rates = (float(self.estimate[a]), float(self.estimate[b]))
        return EffectiveRates.of(rates, (float(trials[0]), float(trials[1])), self.parts.freedom(a, b))

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        result = self._engine(a, b).test(a, b, draws)
        plain = self._effective(a, b) if draws.method == "auto" else None
        if plain is not None:
            p = plain.pvalue(draws)
            known = not math.isnan(result.pvalue)
            trials = plain.samples.trials.tolist()
            words = f"plain rates on the {trials[0]:,} and {trials[1]:,} independent trials that the clusters leave"
            if known:
                low, high = max(result.pvalue_low, p), max(result.pvalue_high, p)
                words = f"{result.method}; not below the p-value of {words}"
                result = replace(result, pvalue=max(result.pvalue, p), pvalue_low=low, pvalue_high=high, method=words)
            else:
                result = TestResult(statistic=0.0, pvalue=p, method=words, exact=False)
        return self._said(result, [a, b])

    def null_parts(self) -> FloatArray:
        """Return what each cluster adds to the difference of the first two values, were they equal; (L,)."""
        return self._crossed.null_parts(0, 1)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        return self._said(self._engine(*members).test_global(members, draws), members)

    def _said(self, result: TestResult, members: list[int]) -> TestResult:
        """Say what was done with the clusters, and warn of few."""
        words = result.method
        if not self.crosses(members) and not math.isnan(result.pvalue):
            swapped = PERMUTED in words
            words = f"{'whole clusters swap groups' if swapped else 'clusters in place of rows'}: {words}"
        fewest, warnings = int(self.parts.clusters[members].min()), list(result.warnings)
        if fewest < FEW:
            warnings.append(
                f"A group has only {fewest} clusters of `{self.name}`: with fewer than {FEW} the test was measured to "
                "hold its level but to show little, and the interval is wide."
            )
        return replace(result, method=words, warnings=tuple(warnings))

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        low, high, kind = self._engine(a, b).interval(a, b, level=level, ratio=ratio, draws=draws)
        plain = self._effective(a, b) if draws.method == "auto" else None
        if plain is None:
            return low, high, kind if "cluster" in kind else f"{kind} of clusters"
        ends = plain.interval(level, ratio=ratio)
        if kind == "none":
            return *ends, "effective trials of clusters"
        if math.isnan(low + high):
            return low, high, kind
        return min(low, ends[0]), max(high, ends[1]), f"{kind if 'cluster' in kind else f'{kind} of clusters'}"

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "it lies in [low, high]"."""
        if self._missing(a, b):
            return math.nan
        p = self._engine(a, b).beyond(a, b, low=low, high=high, ratio=ratio, draws=draws)
        plain = self._effective(a, b)
        return p if plain is None else _larger(p, plain.beyond(low, high, ratio=ratio))

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        p = self._engine(a, b).equivalence(a, b, low=low, high=high, ratio=ratio, draws=draws)
        plain = self._effective(a, b)
        return p if plain is None else _larger(p, plain.equivalence(low, high, ratio=ratio))

    def _standard_error(self, a: int, b: int) -> float:
        return self._crossed.standard_error(a, b)


def _larger(p: float, other: float) -> float:
    """Return the larger p-value; the other one where one is not known."""
    return other if math.isnan(p) else p if math.isnan(other) else max(p, other)


def rows_of(rows: FloatArray, top: FloatArray) -> Behind:
    """Return what stands behind plain rates of clusters.

    Parameters
    ----------
    rows, top : ndarray, shape (C, K)
        Rows and successes of each cluster in each group.

    Examples
    --------
    >>> rows_of(np.array([[2.0], [4.0]]), np.array([[1.0], [2.0]])).cluster_size.round(3).tolist()
    [3.333]
    """
    n, x = np.asarray(rows, dtype=np.float64), np.asarray(top, dtype=np.float64)
    whole = n.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = x.sum(axis=0) / whole
        size = (n * n).sum(axis=0) / whole
        variance = p * (1 - p) / np.maximum(whole - 1, 1)
    return Behind(rows=whole, worth=whole, variance=variance, largest=n.max(axis=0), cluster_size=size)
