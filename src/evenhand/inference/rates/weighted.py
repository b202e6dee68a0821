"""Tests on rates with sampling weights: the tests of plain rates, on as many trials as the weights leave.

Unequal weights make a weighted rate as uncertain as a plain one from fewer rows (Kish 1965). With few successes the
variance that the data show is itself uncertain, and tests that rely on it claim far too much: equivalence on the margin
was claimed four times as often as stated. Here each group counts as a whole number of trials and of successes. The
trials, rounded down, are what all its weights are worth or, if that is less, the trials of a plain rate with the
variance of the weighted one. The successes keep the weighted rate as nearly as whole numbers can.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import IntArray
from evenhand.inference.means import MeanSamples
from evenhand.inference.pvalues import TestResult
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws, Samples


class WeightedRateSamples(Samples):
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

        self.estimate, self.reason = means.estimate, means.reason
        effective = self.trials.astype(float).tolist()
        self.counts = tuple({**c, "effective_rows": n} for c, n in zip(means.counts, effective, strict=True))

    def _test(self, a: int, b: int, draws: Draws) -> TestResult:
        """Make the test of plain rates; "permutation" and "limit" give the tests of a weighted mean."""
        if draws.method in ("permutation", "limit") or draws.permute != "auto" or draws.variance != "auto":
            return self._means.test(a, b, draws)
        plain = self._plain.test(a, b, draws)
        n, m = int(self.trials[a]), int(self.trials[b])
        words = f"{plain.method}; on the {n} and {m} trials that the weights are worth"
        return replace(plain, method=words, exact=False)

    def _test_global(self, members: list[int], draws: Draws) -> TestResult:
        return (
            self._test(members[0], members[1], draws) if len(members) == 2 else self._means.test_global(members, draws)
        )

    def _interval(self, a: int, b: int, level: float, ratio: bool, draws: Draws) -> tuple[float, float, str]:
        low, high, kind = self._plain.interval(a, b, level=level, ratio=ratio, draws=draws)
        return low, high, f"{kind}, effective rows"

    def beyond(self, a: int, b: int, *, low: float, high: float, ratio: bool, draws: Draws) -> float:
        """Return the p-value against "it lies in [low, high]", as for plain rates."""
        return self._plain.beyond(a, b, low=low, high=high, ratio=ratio, draws=draws)

    def _equivalence(self, a: int, b: int, low: float, high: float, ratio: bool, draws: Draws) -> float:
        return self._plain.equivalence(a, b, low=low, high=high, ratio=ratio, draws=draws)

    def _standard_error(self, a: int, b: int) -> float:
        return self._means.standard_error(a, b)
