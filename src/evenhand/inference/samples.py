"""The one shape of every test: K samples, one value each, compared two at a time or all at once.

Each kind of metric has a class of this shape: proportions, functions of a count table, means, AUC,
calibration, any function of rows. The group audit knows the shape and not the kinds. What is the same for all of them
is said here: a sample without a value makes every answer about it undefined, and tests at a margin ask the test.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.inference.pvalues import TestResult, undefined

T = TypeVar("T")

# Rows times permutations that "auto" spends on one test, and the permutations it never goes below.
WORK, LEAST = 20_000_000, 1999
# The same for a test whose p-value is so small that more are needed, and how many times as many are allowed then.
MORE_WORK, MORE = 50_000_000, 10
# Rows of all samples times laws that are kept of them, and laws at most.
KEPT_ROWS, MOST_LAWS = 4_000_000, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How a reference distribution is made."""

    # Random permutations where the distribution is not summed exactly. With method "auto" a small p-value gets up to
    # ten times as many, and many rows get fewer, at least 1999; the result says how many.
    n_resamples: int = 9999
    seed: int = 0  # see `evenhand.kernels.shared.seeds`
    name: str = ""  # names the random stream; the metric's name, never a group's
    alternative: str = "two-sided"  # "two-sided", "greater", "less": of the difference (first sample minus second)
    # "auto", "exact", "permutation", "limit": "auto" takes the best that holds its level: exact where it can be summed,
    # the limit law where its error is negligible, random permutations otherwise. For rates "auto" is the unconditional
    # test whose inversion is the interval, and "exact" the conditional one (permutations within the denominator,
    # summed).
    method: str = "auto"
    # "auto", "denominator", "outcome", "all": which rows may swap groups; "auto" is each metric's default.
    permute: str = "auto"
    # "auto", "null", "unpooled", "none": whether the studentising variance is restricted to the null; "unpooled" is the
    # form printed in the paper and "none" does not studentise: both are kept for reproduction only.
    variance: str = "auto"
    midp: bool = False  # count half of the probability of ties: less conservative, no longer guaranteed

    def number(self, rows: int) -> int:
        """Return how many permutations are drawn when each moves so many rows.

        Examples
        --------
        >>> Draws().number(500), Draws().number(100_000), Draws(method="permutation").number(100_000)
        (9999, 1999, 9999)
        """
        if self.method != "auto":
            return self.n_resamples
        return min(self.n_resamples, max(LEAST, WORK // max(rows, 1)))

    def most(self, rows: int) -> int:
        """Return how many permutations may be drawn, each moving so many rows, while a p-value is still too coarse.

        Examples
        --------
        >>> Draws().most(100), Draws().most(100_000), Draws(method="permutation").most(100)
        (99999, 1999, 9999)
        """
        if self.method != "auto":
            return self.n_resamples
        work = max(MORE_WORK, min(self.n_resamples * rows, 3 * MORE_WORK))
        return min(MORE * (self.n_resamples + 1) - 1, max(LEAST, work // max(rows, 1)))


class Samples(ABC):
    """K samples with one value each.

    Attributes
    ----------
    estimate : ndarray, shape (K,)
        The value in each sample; NaN where it is undefined.
    reason : tuple of str, length K
        Empty, or why the sample has no value, as the end of a sentence: "has no rows with outcome 1".
    counts : tuple of mapping, length K
        The whole numbers behind each value, such as ``{"rows": 200, "denominator": 40, "numerator": 12}``.
    """

    estimate: FloatArray
    reason: tuple[str, ...]
    counts: tuple[Mapping[str, float], ...]

    def _missing(self, *members: int) -> str:
        """Say which of these samples have no value; empty where all have one."""
        return " ".join(f"A group {why}." for why in dict.fromkeys(self.reason[k] for k in members) if why)

    def values(self, a: int, b: int) -> tuple[float, float]:
        """Return the values of two samples that are compared: their own, unless a class says otherwise."""
        return float(self.estimate[a]), float(self.estimate[b])

    def difference(self, a: int, b: int) -> float:
        """Return the difference that is tested: of the values, unless a class says otherwise."""
        return float(self.estimate[a]) - float(self.estimate[b])

    def test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Test that samples `a` and `b` have one value."""
        why = self._missing(a, b)
        return undefined(why) if why else self._test(a, b, draws)

    def test_global(self, members: Sequence[int], draws: Draws) -> TestResult:
        """Test that all these samples have one value."""
        why = self._missing(*members) if len(members) > 1 else "Fewer than two groups have a value."
        return undefined(why) if why else self._test_global(list(members), draws)

    def interval(self, a: int, b: int, *, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Return low, high and kind of the interval for value a minus b (or a over b)."""
        return (math.nan, math.nan, "none") if self._missing(a, b) else self._interval(a, b, level, ratio, draws)

    def equivalence(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "the difference (or ratio) lies outside (low, high)", of two one-sided tests."""
        return math.nan if self._missing(a, b) else self._equivalence(a, b, low, high, ratio, draws)

    def standard_error(self, a: int, b: int) -> float:
        """Return the standard error of the difference when both samples have one value, for planning."""
        return math.nan if self._missing(a, b) else self._standard_error(a, b)

    @abstractmethod
    def _test(self, a: int, b: int, draws: Draws) -> TestResult: ...

    @abstractmethod
    def _test_global(self, members: list[int], draws: Draws) -> TestResult: ...

    @abstractmethod
    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]: ...

    @abstractmethod
    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float: ...

    @abstractmethod
    def _standard_error(self, a: int, b: int) -> float: ...


class MarginSamples(Samples):
    """Samples with a test of every difference or ratio; its p-value counts at the ends of a margin too."""

    # Laws of pairs that are kept for further questions, and how many: few where each holds many rows.
    _pair_laws: dict[tuple[int, int, Draws], Any] | None = None
    _most_laws = 1

    @abstractmethod
    def _at(self, a: int, b: int, margin: float, ratio: bool, draws: Draws) -> float:
        """P-value against a difference, or ratio, of exactly `margin`."""

    def _point(self, a: int, b: int, ratio: bool) -> float:
        """Return the difference or ratio seen; NaN for a ratio to 0."""
        first, second = (float(v) for v in self.estimate[[a, b]])
        return (first / second if second != 0 else math.nan) if ratio else first - second

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        above = self._at(a, b, low, ratio, replace(draws, alternative="greater"))
        below = self._at(a, b, high, ratio, replace(draws, alternative="less"))
        return math.nan if math.isnan(above + below) else max(above, below)

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "it lies in [low, high]": two-sided at the nearest end, 1 inside."""
        point = math.nan if self._missing(a, b) else self._point(a, b, ratio)
        if math.isnan(point) or low <= point <= high:
            return math.nan if math.isnan(point) else 1.0
        return self._at(a, b, high if point > high else low, ratio, replace(draws, alternative="two-sided"))

    def one_sided(self, a: int, b: int, value: float, *, alternative: str, draws: Draws) -> float:
        """Return the p-value against "the difference is at most (for "greater") or at least (for "less") the value"."""
        if self._missing(a, b):
            return math.nan
        return self._at(a, b, value, False, replace(draws, alternative=alternative))

    def _law_once(self, a: int, b: int, draws: Draws, make: Callable[[], T]) -> T:
        """Return the law of a pair's statistic, made once for all questions about it, whatever the alternative."""
        key = (a, b, replace(draws, alternative="two-sided"))
        laws = {} if self._pair_laws is None else self._pair_laws
        if key not in laws:
            if len(laws) >= self._most_laws:
                laws.popitem()
            laws[key] = make()
        self._pair_laws = laws
        law: T = laws[key]
        return law


def laws_to_keep(rows: int) -> int:
    """Return how many laws of pairs may be kept when each may hold so many rows.

    Examples
    --------
    >>> laws_to_keep(1000), laws_to_keep(1_000_000), laws_to_keep(10**9)
    (32, 4, 1)
    """
    return max(1, min(MOST_LAWS, KEPT_ROWS // max(rows, 1)))


def coded_rows(
    codes: ArrayLike, n_groups: int, count: ArrayLike | None, weight: ArrayLike | None = None
) -> tuple[IntArray, IntArray, FloatArray, BoolArray]:
    """Return each record's sample, rows and weight (1 by default), and whether it has rows in one of the samples."""
    g = np.asarray(codes, dtype=np.int64)
    c = np.ones(g.shape, dtype=np.int64) if count is None else np.asarray(count, dtype=np.int64)
    w = np.ones(g.shape) if weight is None else np.asarray(weight, dtype=np.float64)
    return g, c, w, (c > 0) & (g >= 0) & (g < n_groups) & (w > 0)
