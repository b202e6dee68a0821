"""How a value that is a function of cell counts is studentised and bounded.

`Rate`: successes over trials inside a denominator. `Average`: a weighted mean of rates with disjoint
denominators, such as balanced accuracy. Anything else: `evenhand.inference.delta_method`. All take tables
with any leading axes, so a statistic on ten thousand permuted tables is one call.

Each statistic is asymptotically standard normal (or chi-square) when the *values* are equal, whatever else
differs between the groups: that is what makes its permutation distribution right under the weak null.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray
from evenhand.inference.mover import Known, Limits, mover, mover_equivalence
from evenhand.kernels.counts import binomial
from evenhand.kernels.counts.row_sums import weighted_spread

Cells = Sequence[int]


class Form(ABC):
    """What `TableSamples` needs to know about a value; `permute` says which rows may swap groups by default."""

    permute: ClassVar[str]

    @abstractmethod
    def value(self, tables: FloatArray) -> FloatArray:
        """Return the value of tables (..., C); NaN where undefined."""

    @abstractmethod
    def statistic(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the studentised difference of tables (..., 2, C); NaN where undefined."""

    @abstractmethod
    def spread(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the studentised spread of the K values of tables (..., K, C); NaN where undefined."""

    @abstractmethod
    def interval(self, tables: FloatArray, level: float, *, ratio: bool) -> tuple[float, float, str]:
        """Return limits and kind for the first of two groups minus (or over) the second."""

    @abstractmethod
    def equivalence(self, tables: FloatArray, low: float, high: float, *, ratio: bool) -> float:
        """Return the p-value of two one-sided tests."""

    @abstractmethod
    def standard_error(self, tables: FloatArray) -> float:
        """Return the standard error of the difference when both values are equal."""


def studentise(difference: FloatArray, variance: FloatArray) -> FloatArray:
    """Divide by the root of the variance: 0/0 is 0, anything else over 0 infinite, NaN stays NaN.

    Examples
    --------
    >>> studentise(np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 4.0])).tolist()
    [0.0, inf, 0.5]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / np.sqrt(np.maximum(variance, 0.0))
        flat = np.where(np.abs(difference) < 1e-12, 0.0, np.sign(difference) * np.inf)
    z = np.where(variance > 1e-20, z, flat)
    return np.where(np.isnan(difference) | np.isnan(variance), np.nan, z)


def spread_of(values: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the weighted spread of values (..., K); variances of 0 count as tiny ones."""
    return weighted_spread(values, np.maximum(variances, 1e-20))


def _count(tables: FloatArray, cells: Cells) -> FloatArray:
    return np.asarray(tables[..., list(cells)].sum(-1), dtype=np.float64)


def _divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top / bottom)


def _inside(z: FloatArray) -> float:
    """Return the larger p-value of being above the lower and below the upper end, at these distances from them."""
    return float(max(special.ndtr(-z[0]), special.ndtr(z[1])))


@dataclass(frozen=True, slots=True, eq=False)
class Rate(Form):
    """Successes over trials: the cells of the numerator over those of the denominator."""

    permute = "denominator"

    numerator: Cells
    denominator: Cells

    def value(self, tables: FloatArray) -> FloatArray:
        """Return the rate; NaN where the denominator is empty."""
        return _divide(*self._counts(tables))

    def _counts(self, tables: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _count(tables, self.numerator), _count(tables, self.denominator)

    def _variances(self, tables: FloatArray, variance: str) -> FloatArray:
        x, n = self._counts(tables)
        if variance == "none":
            return np.where(n > 0, 1 / n.shape[-1], np.nan)
        # Unpooled is [diciccio2020] sec. 3.3 as printed; the default is restricted to the null, one rate for all.
        pooled = _divide(x.sum(-1, keepdims=True), n.sum(-1, keepdims=True))
        p = _divide(x, n) if variance == "unpooled" else pooled
        return _divide(p * (1 - p), n)

    def statistic(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the difference over its standard error."""
        value, v = self.value(tables), self._variances(tables, variance)
        return studentise(value[..., 0] - value[..., 1], v.sum(-1))

    def spread(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return Pearson's chi-square of the rates (with the null variance)."""
        value, v = self.value(tables), self._variances(tables, variance)
        even = np.where(v.sum(-1, keepdims=True) > 0, v, 1.0)
        return spread_of(value, even)

    def interval(self, tables: FloatArray, level: float, *, ratio: bool) -> tuple[float, float, str]:
        """Return score limits."""
        x, n = self._counts(tables)
        low, high = binomial.ratio_interval(x, n, level) if ratio else binomial.score_interval(x, n, [1, -1], level)
        return float(low), float(high), "score"

    def equivalence(self, tables: FloatArray, low: float, high: float, *, ratio: bool) -> float:
        """Return the larger of two one-sided score p-values."""
        x, n = self._counts(tables)
        ends = np.array([low, high])
        z = binomial.ratio_statistic(x, n, ends) if ratio else binomial.score_statistic(x, n, [1, -1], ends)
        return _inside(z)

    def standard_error(self, tables: FloatArray) -> float:
        """Return the pooled standard error; a pooled rate of 0 or 1 is moved off the edge by half a row."""
        x, n = self._counts(tables)
        successes, trials = float(x.sum()), float(n.sum())
        if successes in (0.0, trials):
            successes, trials = successes + 0.5, trials + 1
        p = successes / trials
        return math.sqrt(p * (1 - p) * float((1 / n).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Average(Form):
    """A weighted mean of rates with disjoint denominators, such as balanced accuracy."""

    permute = "outcome"

    rates: tuple[Rate, ...]
    weights: tuple[float, ...]

    def _binomials(self, tables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return successes and trials, (..., K, m)."""
        x = np.stack([_count(tables, rate.numerator) for rate in self.rates], -1)
        return x, np.stack([_count(tables, rate.denominator) for rate in self.rates], -1)

    def _whole(self, tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Return successes, trials (where a denominator is empty, 0 of 1), weights, and where no denominator is."""
        x, n = self._binomials(tables)
        whole = np.asarray((n > 0).all((-1, -2)))
        x, n = np.where(whole[..., None, None], x, 0.0), np.where(whole[..., None, None], n, 1.0)
        return x, n, np.asarray(self.weights), whole

    def _flat(self, tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return successes and trials of all rates of two groups, and the contrast of their values."""
        x, n = self._binomials(tables)
        return x.reshape(-1), n.reshape(-1), np.concatenate([self.weights, np.negative(self.weights)])

    def value(self, tables: FloatArray) -> FloatArray:
        """Return the mean of the rates; NaN where a denominator is empty."""
        x, n = self._binomials(tables)
        return np.asarray((_divide(x, n) * np.asarray(self.weights)).sum(-1))

    def _variances(self, p: FloatArray, n: FloatArray) -> FloatArray:
        return np.asarray((np.asarray(self.weights) ** 2 * p * (1 - p) / n).sum(-1))

    def statistic(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the score statistic of equal values: all rates restricted to that, nothing else pooled."""
        x, n, w, whole = self._whole(tables)
        if variance in ("unpooled", "none"):
            p = x / n
            v = self._variances(p, n).sum(-1) if variance == "unpooled" else np.ones(x.shape[:-2])
            difference = (w * (p[..., 0, :] - p[..., 1, :])).sum(-1)
            return np.where(whole, studentise(difference, v), np.nan)
        flat = (*x.shape[:-2], -1)
        z = binomial.score_statistic(x.reshape(flat), n.reshape(flat), np.concatenate([w, -w]), 0.0, corrected=False)
        return np.where(whole, z, np.nan)

    def spread(self, tables: FloatArray, variance: str) -> FloatArray:
        """Return the spread with variances restricted to one common value."""
        x, n, w, whole = self._whole(tables)
        value = (w * x / n).sum(-1)
        if variance == "none":
            v = np.ones_like(value)
        elif variance == "unpooled":
            v = self._variances(x / n, n)
        else:
            v = self._variances((x + 1) / (n + 2), n)
            for _ in range(2):  # the common value, then its variances, twice is enough
                mean = (value / v).sum(-1) / (1 / v).sum(-1)
                p = binomial.restricted_proportions(x, n, w, np.broadcast_to(mean[..., None], value.shape))
                v = np.maximum(self._variances(p, n), 1e-20)
        return np.where(whole, spread_of(value, v), np.nan)

    def _limits(self, tables: FloatArray) -> Limits:
        x, n = self._binomials(tables)
        a, b = (float(v) for v in self.value(tables))

        def limits(z: float) -> tuple[Known, Known]:
            level = 1 - 2 * float(special.ndtr(-max(z, 1e-9)))
            low, high = binomial.score_interval(x, n, list(self.weights), min(level, 1 - 1e-15), corrected=False)
            return (a, float(low[0]), float(high[0])), (b, float(low[1]), float(high[1]))

        return limits

    def interval(self, tables: FloatArray, level: float, *, ratio: bool) -> tuple[float, float, str]:
        """Return score limits for the difference, MOVER limits from score limits for the ratio."""
        if ratio:
            return *mover(*self._limits(tables)(binomial.normal_quantile(level)), ratio=True), "mover-score"
        low, high = binomial.score_interval(*self._flat(tables), level)
        return float(low), float(high), "score"

    def equivalence(self, tables: FloatArray, low: float, high: float, *, ratio: bool) -> float:
        """Return the larger of two one-sided p-values."""
        if ratio:
            return mover_equivalence(self._limits(tables), low, high, ratio=True)
        return _inside(binomial.score_statistic(*self._flat(tables), np.array([low, high])))

    def standard_error(self, tables: FloatArray) -> float:
        """Return the standard error restricted to one common value."""
        x, n = self._binomials(tables)
        p = binomial.restricted_proportions(*self._flat(tables), 0.0).reshape(x.shape)
        v = float(self._variances(p, n).sum())
        return math.sqrt(v if v > 0 else float(self._variances((x + 0.5) / (n + 1), n).sum()))


def balanced_accuracy() -> Average:
    """Return the form of balanced accuracy on four cells: true negatives, false positives, false negatives, true ones.

    Examples
    --------
    >>> balanced_accuracy().value(np.array([40.0, 10.0, 5.0, 45.0])).round(3).tolist()
    0.85
    """
    return Average((Rate((3,), (2, 3)), Rate((0,), (0, 1))), (0.5, 0.5))


def average_odds() -> Average:
    """Return the form of the mean of true and false positive rate, in the same four cells.

    Examples
    --------
    >>> average_odds().value(np.array([40.0, 10.0, 5.0, 45.0])).round(3).tolist()
    0.55
    """
    return Average((Rate((3,), (2, 3)), Rate((1,), (0, 1))), (0.5, 0.5))


def f1_limits(successes: FloatArray, trials: FloatArray) -> Limits:
    """Return limits of two F1 values from Wilson limits of their Jaccard rates: F1 = 2 J / (1 + J).

    Parameters
    ----------
    successes, trials : ndarray, shape (2,)
        True positives, and rows with outcome 1 or decision 1.

    Examples
    --------
    >>> limits = f1_limits(np.array([8.0, 4.0]), np.array([10.0, 10.0]))(1.96)
    >>> [[round(end, 3) for end in known] for known in limits]
    [[0.889, 0.643, 0.973], [0.571, 0.276, 0.823]]
    """
    total = float(trials.sum())
    widen = math.sqrt(total / max(total - 2, 1.0))

    def limits(z: float) -> tuple[Known, Known]:
        # Like N / (N - 1) in the score interval; without it 95 % limits cover down to .88 with 5 rows each.
        shown = (successes / trials, *binomial.wilson_interval(successes, trials, z * widen))
        first, second = np.stack([2 * rate / (1 + rate) for rate in shown], -1).tolist()
        return (first[0], first[1], first[2]), (second[0], second[1], second[2])

    return limits
