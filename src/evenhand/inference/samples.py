"""The one shape of every test: K samples, one value each, compared two at a time or all at once.

Each kind of metric has a class of this shape: proportions, functions of a count table, means, AUC,
calibration, any function of rows. The group audit knows the shape and not the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evenhand.arrays import FloatArray
from evenhand.inference.pvalues import TestResult

# Rows times permutations that "auto" spends on one test, and the permutations it never goes below.
WORK, LEAST = 20_000_000, 1999
# The same for a test whose p-value is so small that more are needed, and how many times as many are allowed then.
MORE_WORK, MORE = 50_000_000, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How a reference distribution is made.

    Parameters
    ----------
    n_resamples : int
        Random permutations where the distribution is not summed exactly. With method "auto" a small p-value gets up
        to ten times as many, and many rows get fewer, at least 1999; the result says how many.
    seed : int
        See `evenhand.kernels.shared.seeds`.
    name : str
        Names the random stream; the metric's name, never a group's.
    alternative : {"two-sided", "greater", "less"}
        Of the difference (first sample minus second).
    method : {"auto", "exact", "permutation", "limit"}
        "auto" takes the best that holds its level: exact where it can be summed, the limit law where
        its error is negligible, random permutations otherwise. For rates "auto" is the unconditional test whose
        inversion is the interval, and "exact" the conditional one (permutations within the denominator, summed).
    permute : {"auto", "denominator", "outcome", "all"}
        Which rows may swap groups; "auto" is each metric's default.
    variance : {"auto", "null", "unpooled", "none"}
        Whether the studentising variance is restricted to the null; "unpooled" is the form printed
        in the paper and "none" does not studentise: both are kept for reproduction only.
    midp : bool
        Count half of the probability of ties: less conservative, no longer guaranteed.
    workers : int
        Threads; the answer does not depend on it.
    """

    n_resamples: int = 9999
    seed: int = 0
    name: str = ""
    alternative: str = "two-sided"
    method: str = "auto"
    permute: str = "auto"
    variance: str = "auto"
    midp: bool = False
    workers: int = 1

    def number(self, rows: int) -> int:
        """Return how many permutations of so many rows are drawn.

        Parameters
        ----------
        rows : int
            Rows that each permutation moves.

        Returns
        -------
        int

        Examples
        --------
        >>> Draws().number(500), Draws().number(100_000), Draws(method="permutation").number(100_000)
        (9999, 1999, 9999)
        """
        if self.method != "auto":
            return self.n_resamples
        return min(self.n_resamples, max(LEAST, WORK // max(rows, 1)))

    def most(self, rows: int) -> int:
        """Return how many permutations of so many rows may be drawn while a p-value is still too coarse.

        Parameters
        ----------
        rows : int
            Rows that each permutation moves.

        Returns
        -------
        int

        Examples
        --------
        >>> Draws().most(100), Draws().most(100_000), Draws(method="permutation").most(100)
        (99999, 1999, 9999)
        """
        if self.method != "auto":
            return self.n_resamples
        work = max(MORE_WORK, min(self.n_resamples * rows, 3 * MORE_WORK))
        return min(MORE * (self.n_resamples + 1) - 1, max(LEAST, work // max(rows, 1)))


class Samples(Protocol):
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

    @property
    def estimate(self) -> FloatArray:
        """The value in each sample."""
        ...

    @property
    def reason(self) -> tuple[str, ...]:
        """Why a sample has no value."""
        ...

    @property
    def counts(self) -> tuple[Mapping[str, float], ...]:
        """The whole numbers behind each value."""
        ...

    def test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Test that samples `a` and `b` have one value."""
        ...

    def test_global(self, members: Sequence[int], draws: Draws) -> TestResult:
        """Test that all these samples have one value."""
        ...

    def interval(self, a: int, b: int, *, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Return low, high and kind of the interval for value a minus b (or a over b)."""
        ...

    def equivalence(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value of two one-sided tests against a value outside (low, high)."""
        ...

    def standard_error(self, a: int, b: int) -> float:
        """Return the standard error of the difference when both samples have one value, for planning."""
        ...
