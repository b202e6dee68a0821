"""Tests on rates with sampling weights: the tests of plain rates, on as many trials as the weights leave.

Unequal weights make a weighted rate as uncertain as a plain one from fewer rows (Kish 1965). With few successes the
variance that the data show is itself uncertain, and tests that rely on it claim far too much: equivalence on the margin
was claimed four times as often as stated. Here each group counts as a whole number of trials and of successes. The
trials, rounded down, are what all its weights are worth or, if that is less, the trials of a plain rate with the
variance of the weighted one. The successes keep the weighted rate as nearly as whole numbers can.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.inference.means import MeanSamples
from evenhand.inference.permutations import not_computable
from evenhand.inference.pvalues import TestResult
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws


class WeightedRateSamples:
    """K groups and a weighted rate.

    Parameters
    ----------
    means : MeanSamples
        The rate as a weighted mean of 0 and 1 over the rows of its denominator: for estimates, the test of several
        groups and planning.
    w, ww, wwv : array_like, shape (K,)
        Sums of the weights and of their squares over each group's rows, and of their squares over its successes.

    Examples
    --------
    >>> value, weight, codes = [1, 0, 0, 1, 1, 0], [1.0, 2.0, 1.0, 1.0, 1.0, 2.0], [0, 0, 0, 1, 1, 1]
    >>> means = MeanSamples(value=value, weight=weight, codes=codes, n_groups=2)
    >>> samples = WeightedRateSamples(means, w=[4, 4], ww=[6, 6], wwv=[1, 2])
    >>> samples.trials.tolist(), samples.estimate.tolist()
    ([2, 2], [0.25, 0.5])
    """

    def __init__(self, means: MeanSamples, *, w: ArrayLike, ww: ArrayLike, wwv: ArrayLike) -> None:
        self._means = means
        everyone, squares, one_squares = (np.asarray(part, dtype=np.float64) for part in (w, ww, wwv))
        rate = means.estimate
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = everyone**2 / squares
            # The variance of the weighted rate: squared weights times squared distances from it.
            variance = (one_squares * (1 - rate) ** 2 + (squares - one_squares) * rate**2) / everyone**2
            alike = rate * (1 - rate) / variance
        trials = np.where((rate > 0) & (rate < 1), np.minimum(worth, alike), worth)
        whole = np.where(np.isnan(rate), 0.0, np.maximum(np.floor(np.nan_to_num(trials) + 1e-9), 1.0))
        self.trials: IntArray = whole.astype(np.int64)
        self.successes: IntArray = np.rint(np.nan_to_num(rate) * whole).astype(np.int64)
        self._plain = RateSamples.from_counts(self.successes, self.trials)

    @property
    def estimate(self) -> FloatArray:
        """The weighted rate of each group; NaN where the denominator is empty."""
        return self._means.estimate

    @property
    def reason(self) -> tuple[str, ...]:
        """Empty, or why a group has no value."""
        return self._means.reason

    @property
    def counts(self) -> tuple[Mapping[str, float], ...]:
        """Rows of each group, and how many trials they count as."""
        return tuple(
            {**found, "effective_rows": float(n)} for found, n in zip(self._means.counts, self.trials, strict=True)
        )

    def _missing(self, a: int, b: int) -> bool:
        return bool(np.isnan(self.estimate[[a, b]]).any())

    def test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Test that groups `a` and `b` have one rate.

        Parameters
        ----------
        a, b : int
            Groups.
        draws : Draws
            "permutation" and "limit" give the tests of a weighted mean.

        Returns
        -------
        TestResult
        """
        if self._missing(a, b):
            return not_computable(" ".join(filter(None, (self.reason[a], self.reason[b]))))
        if draws.method in ("permutation", "limit") or draws.permute != "auto" or draws.variance != "auto":
            return self._means.test(a, b, draws)
        found = self._plain.test(a, b, draws)
        n, m = int(self.trials[a]), int(self.trials[b])
        return replace(
            found, method=f"{found.method}; on the {n} and {m} trials that the weights are worth", exact=False
        )

    def test_global(self, members: Sequence[int], draws: Draws) -> TestResult:
        """Test that all these groups have one rate, as weighted means.

        Parameters
        ----------
        members : sequence of int
            Groups.
        draws : Draws
            As for means.

        Returns
        -------
        TestResult
        """
        if len(members) == 2 and not any(self.reason[k] for k in members):
            return self.test(members[0], members[1], draws)
        return self._means.test_global(members, draws)

    def interval(self, a: int, b: int, *, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        """Return low, high and kind of the interval for value a minus b (or a over b).

        Parameters
        ----------
        a, b : int
            Groups.
        level : float
            Nominal coverage.
        ratio : bool
            Whether the ratio is wanted.
        draws : Draws
            Not used.

        Returns
        -------
        low, high : float
        kind : str
        """
        if self._missing(a, b):
            return math.nan, math.nan, "none"
        low, high, kind = self._plain.interval(a, b, level=level, ratio=ratio, draws=draws)
        return low, high, f"{kind}, effective rows"

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "the difference (or ratio) lies between low and high".

        Parameters
        ----------
        a, b : int
            Groups.
        low, high : float
            Margins.
        ratio : bool
            Whether they bound the ratio.
        draws : Draws
            Not used.

        Returns
        -------
        float
        """
        if self._missing(a, b):
            return math.nan
        return self._plain.beyond(a, b, low=low, high=high, ratio=ratio, draws=draws)

    def equivalence(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "the difference (or ratio) lies outside (low, high)".

        Parameters
        ----------
        a, b : int
            Groups.
        low, high : float
            Margins.
        ratio : bool
            Whether they bound the ratio.
        draws : Draws
            Not used.

        Returns
        -------
        float
        """
        if self._missing(a, b):
            return math.nan
        return self._plain.equivalence(a, b, low=low, high=high, ratio=ratio, draws=draws)

    def standard_error(self, a: int, b: int) -> float:
        """Return the standard error of the difference when both groups have one rate.

        Parameters
        ----------
        a, b : int
            Groups.

        Returns
        -------
        float
        """
        return self._means.standard_error(a, b)
