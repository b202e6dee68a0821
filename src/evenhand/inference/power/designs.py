"""How precisely a value is known from so many rows of two groups, and what its test does with that.

One class per kind of test: binomial rates and their averages, means, AUC, calibration error, correlation, and
anything else with a variance. Power is exact (all tables listed) for rates of few rows and a normal, or noncentral
t, approximation elsewhere; `calibration/power.py` compares both with simulated audits.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from evenhand.inference.limits import Margin
from evenhand.inference.mover import Known, mover
from evenhand.inference.power.listed import exact_power, listable
from evenhand.inference.rates.equivalence import chance_inside

Pair = tuple[float, float]

# Trials up to which the power of an equivalence test is exact: finding its critical counts is slow, and at 100 trials
# the approximation was right within .02.
LISTED_INSIDE = 60


class Design(ABC):
    """How a value is known from rows of two groups, and what the test does with it."""

    @property
    def range(self) -> Pair:
        """The smallest and largest value there is."""
        return 0.0, 1.0

    @abstractmethod
    def power(self, rows: Pair, values: Pair, alpha: float) -> float:
        """Return the chance that the two-sided test at `alpha` shows a difference."""

    @abstractmethod
    def equivalence(self, rows: Pair, values: Pair, bounds: Margin, alpha: float) -> float:
        """Return the chance that equivalence is shown at `alpha`."""


def _two_sided(effect: float, null_error: float, error: float, alpha: float) -> float:
    """Return the chance of an estimate beyond `null_error` times the normal quantile, on either side."""
    reach = float(special.ndtri(1 - alpha / 2)) * null_error
    if not error > 0:
        return float(abs(effect) > reach)
    return float(special.ndtr((effect - reach) / error) + special.ndtr((-effect - reach) / error))


def _between(below: float, above: float) -> float:
    """Return the chance of passing two one-sided tests that are hardly ever failed both."""
    return max(float(below) + float(above) - 1, 0.0)


def _inside(limits: Sequence[Known], errors: Pair, bounds: Margin) -> float:
    """Return the chance that an interval made of each value's limits by squares fits between the bounds."""
    (low, high), ends, error = mover(*limits, ratio=bounds.ratio), (bounds.low, bounds.high), math.hypot(*errors)
    if bounds.ratio:
        (a, *_), (b, *_) = limits
        if not (a > 0 and b > 0):
            return 0.0
        low, high = (math.log(min(max(end, 1e-300), 1e300)) for end in (low, high))
        error, ends = math.hypot(errors[0] / a, errors[1] / b), (math.log(bounds.low), math.log(bounds.high))
    if not error > 0:
        return float(low > ends[0] and high < ends[1])
    return _between(special.ndtr((low - ends[0]) / error), special.ndtr((ends[1] - high) / error))


@dataclass(frozen=True, slots=True, eq=False)
class Binomials(Design):
    """A rate, or a weighted mean of rates with disjoint denominators."""

    # Share of each group's rows in each denominator; for F1 the share of rows with outcome 1 plus that of rows with
    # decision 1, from which the denominator follows.
    shares: tuple[tuple[float, ...], tuple[float, ...]]
    weights: tuple[float, ...] = (1.0,)  # of the rates
    # Each rate minus the group's value; 0 by default.
    offsets: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    f1: bool = False  # whether the value is 2 J / (1 + J) of the rate J
    exact: bool = True  # whether tables are listed where they are few

    def _rate(self, value: float) -> float:
        return value / (2 - value) if self.f1 else value

    def _share(self, k: int, i: int, rate: float) -> float:
        share = self.shares[k][i]
        # Rows with outcome 1 or decision 1: both shares less the true positives, which are `rate` of those rows.
        return max(min(share / (1 + rate), 1.0) if self.f1 else share, 1e-12)

    def _few(self, rows: Pair, rates: Pair) -> tuple[int, int] | None:
        """Return the trials of a single rate when its tables can be listed."""
        n, m = (max(round(rows[k] * self._share(k, 0, rates[k])), 1) for k in (0, 1))
        return (n, m) if self.exact and len(self.weights) == 1 and listable(n, m) else None

    def _row_variance(self, k: int, rate: float) -> float:
        """Return the variance of group k's rate from one row, when it is `rate`."""
        out = 0.0
        for i, w in enumerate(self.weights):
            p = rate if self.offsets is None else min(max(rate + self.offsets[k][i], 0.0), 1.0)
            out += w * w * p * (1 - p) / self._share(k, i, rate)
        return out

    def _steps(self, rows: Pair, rates: Pair) -> Pair:
        """Return one over the trials behind each rate."""
        one, two = (
            sum(w * w / self._share(k, i, rates[k]) for i, w in enumerate(self.weights)) / rows[k] for k in (0, 1)
        )
        return one, two

    def _errors(self, rows: Pair, rates: Pair, factor: float, shift: float) -> Pair:
        """Return the error of rate a minus factor times rate b: when that is `shift`, and at the rates given."""
        one, two = self._steps(rows, rates)
        # The nearest rates on the line, first counted by their trials (that is the pooled rate where both are equal)
        # and then by their precision: four rounds come within a thousandth of the most likely rates.
        for _ in range(1 if (factor, shift) == (1.0, 0.0) else 4):
            b = (factor * (rates[0] - shift) / one + rates[1] / two) / (factor**2 / one + 1 / two)
            a = min(max(factor * b + shift, 0.0), 1.0)
            b = min(max(b, 0.0), 1.0)
            one = max(self._row_variance(0, a), 1e-6) / rows[0]
            two = max(self._row_variance(1, b), 1e-6) / rows[1]
        out = []
        for p, q in ((a, b), rates):
            first, second = self._row_variance(0, p) / rows[0], self._row_variance(1, q) / rows[1]
            out.append(math.sqrt(first + factor**2 * second))
        return out[0], out[1]

    def power(self, rows: Pair, values: Pair, alpha: float) -> float:
        """Return the chance that a difference is shown."""
        rates = (self._rate(values[0]), self._rate(values[1]))
        few = self._few(rows, rates)
        if few is not None:
            return exact_power(few, rates, alpha)
        null, own = self._errors(rows, rates, 1.0, 0.0)
        # The unconditional test loses next to nothing to discreteness: within .02 of its exact power in eight designs.
        return _two_sided(abs(rates[0] - rates[1]), null, own, alpha)

    def equivalence(self, rows: Pair, values: Pair, bounds: Margin, alpha: float) -> float:
        """Return the chance that equivalence is shown."""
        rates = (self._rate(values[0]), self._rate(values[1]))
        few = self._few(rows, rates)
        if few is not None and max(few) <= LISTED_INSIDE:
            return chance_inside(few, rates, bounds.low, bounds.high, alpha, ratio=bounds.ratio, f1=self.f1)
        z = float(special.ndtri(1 - alpha))
        if self.f1:
            errors = [
                2 / (1 + p) ** 2 * math.sqrt(self._row_variance(k, p) / n)
                for k, (p, n) in enumerate(zip(rates, rows, strict=True))
            ]
            limits = [(v, v - z * e, v + z * e) for v, e in zip(values, errors, strict=True)]
            return _inside(limits, (errors[0], errors[1]), bounds)
        passed = []
        for end, sign in ((bounds.low, 1.0), (bounds.high, -1.0)):
            factor, shift = (end, 0.0) if bounds.ratio else (1.0, end)
            gap = sign * (rates[0] - factor * rates[1] - shift)
            at_end, own = self._errors(rows, rates, factor, shift)
            passed.append(float(special.ndtr((gap - z * at_end) / own)) if own > 0 else float(gap > z * at_end))
        return _between(*passed)


@dataclass(frozen=True, slots=True, eq=False)
class Means(Design):
    """A mean of row values, or any value whose variance is a number over the rows."""

    spreads: Pair  # standard deviation of one row's share of the value, in each group
    # low, high: the value's range.
    low: float = -math.inf
    high: float = math.inf

    @property
    def range(self) -> Pair:
        """The smallest and largest value there is."""
        return self.low, self.high

    def _error(self, rows: Pair, factor: float) -> tuple[float, float]:
        """Return the standard error of value a minus factor times value b and its degrees of freedom."""
        one, two = (
            s * s / max(n, 1e-9) for s, n in zip((self.spreads[0], factor * self.spreads[1]), rows, strict=True)
        )
        lost = one**2 / max(rows[0] - 1, 1e-9) + two**2 / max(rows[1] - 1, 1e-9)
        return math.sqrt(one + two), (one + two) ** 2 / lost if lost > 0 else 1.0

    def power(self, rows: Pair, values: Pair, alpha: float) -> float:
        """Return the chance that a difference is shown."""
        error, degrees = self._error(rows, 1.0)
        effect = abs(values[0] - values[1])
        if not error > 0:
            return float(effect > 0)
        bar = float(special.stdtrit(degrees, 1 - alpha / 2))
        return min(1.0, _above(degrees, effect / error, bar) + _above(degrees, -effect / error, bar))

    def equivalence(self, rows: Pair, values: Pair, bounds: Margin, alpha: float) -> float:
        """Return the chance that equivalence is shown."""
        passed = []
        for end, sign in ((bounds.low, 1.0), (bounds.high, -1.0)):
            factor, shift = (end, 0.0) if bounds.ratio else (1.0, end)
            error, degrees = self._error(rows, factor)
            gap = sign * (values[0] - factor * values[1] - shift)
            bar = float(special.stdtrit(degrees, 1 - alpha))
            passed.append(_above(degrees, gap / error, bar) if error > 0 else float(gap > 0))
        return _between(*passed)


def _above(degrees: float, shift: float, bar: float) -> float:
    """Return the chance that a t variable with this noncentrality exceeds `bar`."""
    if degrees > 200 or abs(shift) > 30:  # the noncentral t law loses digits there, and is nearly normal
        return float(special.ndtr((shift - bar) / math.sqrt(1 + bar * bar / (2 * degrees))))
    return 1.0 - float(special.nctdtr(degrees, shift, bar))


@dataclass(frozen=True, slots=True, eq=False)
class Aucs(Design):
    """The area under the ROC curve, by its variance for normal scores times a factor."""

    positives: Pair  # share of rows with outcome 1 in each group
    factors: Pair = (1.0, 1.0)  # a pilot's variance over the model's; 1 without a pilot

    def errors(self, rows: Pair, values: Pair) -> Pair:
        """Return the standard error of each group's AUC."""
        out = []
        for n, share, factor, auc in zip(rows, self.positives, self.factors, values, strict=True):
            out.append(math.sqrt(factor * auc_variance(auc, max(n * share, 1.0), max(n * (1 - share), 1.0))))
        return out[0], out[1]

    def power(self, rows: Pair, values: Pair, alpha: float) -> float:
        """Return the chance that a difference is shown."""
        a, b = (min(max(v, 1e-6), 1 - 1e-6) for v in values)
        one, two = self.errors(rows, (a, b))
        error = math.hypot(one / (a * (1 - a)), two / (b * (1 - b)))
        return _two_sided(abs(float(special.logit(a) - special.logit(b))), error, error, alpha)

    def equivalence(self, rows: Pair, values: Pair, bounds: Margin, alpha: float) -> float:
        """Return the chance that equivalence is shown."""
        a, b = (min(max(v, 1e-6), 1 - 1e-6) for v in values)
        errors, z, limits = self.errors(rows, (a, b)), float(special.ndtri(1 - alpha)), []
        for v, e in zip((a, b), errors, strict=True):
            middle, half = float(special.logit(v)), z * e / (v * (1 - v))
            limits.append((v, float(special.expit(middle - half)), float(special.expit(middle + half))))
        return _inside(limits, errors, bounds)


def auc_variance(auc: float, positives: float, negatives: float) -> float:
    """Return the variance of an AUC when scores are normal with one spread for both outcomes.

    The formula of Hanley and McNeil (1982); the chance that two positives beat one negative is that of two normal
    variables with correlation 1/2 both being above a point, by Owen's T.

    Parameters
    ----------
    auc : float
        Its true value.
    positives, negatives : float
        Rows of each outcome.

    Examples
    --------
    >>> round(auc_variance(0.5, 10, 10), 5)  # that of the rank sum, 21 / 1200
    0.0175
    """
    pairs = auc * (1 - auc) + (positives + negatives - 2) * (_two_above(auc) - auc**2)
    return max(pairs, 0.0) / (positives * negatives)


@functools.lru_cache(maxsize=64)  # a search for the rows needed asks for one value over and over
def _two_above(auc: float) -> float:
    return auc - 2 * float(special.owens_t(special.ndtri(auc), 1 / math.sqrt(3)))


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationErrors(Design):
    """The calibration error over score bins that are filled evenly."""

    spreads: Pair  # standard deviation of outcome minus score within a bin, in each group
    bins: int = 10  # bins in use

    def variance(self, k: int, rows: float, squared: float) -> float:
        """Return the variance of the squared error of group `k` when it is `squared`."""
        s2 = self.spreads[k] ** 2
        return 4 * s2 * squared / rows + 2 * self.bins * s2 * s2 / rows**2

    def power(self, rows: Pair, values: Pair, alpha: float) -> float:
        """Return the chance that a difference is shown."""
        rows = (max(rows[0], 2.0), max(rows[1], 2.0))
        a, b = values[0] ** 2, values[1] ** 2
        common = (rows[0] * a + rows[1] * b) / (rows[0] + rows[1])
        null = math.sqrt(sum(self.variance(k, rows[k], common) for k in (0, 1)))
        own = math.sqrt(self.variance(0, rows[0], a) + self.variance(1, rows[1], b))
        return _two_sided(abs(a - b), null, own, alpha)

    def equivalence(self, rows: Pair, values: Pair, bounds: Margin, alpha: float) -> float:
        """Return the chance that equivalence is shown."""
        z, limits, errors = float(special.ndtri(1 - alpha)), [], []
        for k, (n, value) in enumerate(zip(rows, values, strict=True)):
            n, theta = max(n, 2.0), value**2
            slope, own = 4 * self.spreads[k] ** 2 / n, self.variance(k, n, theta)
            # The limits that the audit uses: values whose own variance puts the estimate z errors away.
            middle, half = theta + z * z * slope / 2, z * math.sqrt(own + (z * slope / 2) ** 2)
            limits.append((value, math.sqrt(max(middle - half, 0.0)), math.sqrt(middle + half)))
            root = own / (4 * theta) if theta > 0 else math.inf
            errors.append(math.sqrt(min(root, math.sqrt(own))))
        return _inside(limits, (errors[0], errors[1]), bounds)


@dataclass(frozen=True, slots=True, eq=False)
class Correlation(Design):
    """Pearson's correlation in one sample; the second group is not used."""

    # Root of the mean product of squares of both standardised columns; that of a normal pair when None.
    tau: float | None = None

    @property
    def range(self) -> Pair:
        """The smallest and largest value there is."""
        return -1.0, 1.0

    def power(self, rows: Pair, values: Pair, alpha: float) -> float:
        """Return the chance that the two-sided test at `alpha` shows a correlation."""
        n, r = max(rows[0], 4.0), values[0] - values[1]
        tau = math.sqrt(1 + 2 * r * r) if self.tau is None else self.tau
        return _two_sided(abs(r), tau / math.sqrt(n), max(1 - r * r, 1e-9) / math.sqrt(n), alpha)

    def equivalence(self, rows: Pair, values: Pair, bounds: Margin, alpha: float) -> float:
        """Return NaN: the audit has no equivalence test of a correlation."""
        return math.nan
