"""The gap itself, from observed outcomes: estimate, interval and test without nuisance models.

With the outcome y in place of its probability every measure but two is a difference of means or of ratios
of means, and the nuisance models drop out: this is what correcting the plug-in value to first order
leaves over. Calibration error keeps the sign of the cross-fitted difference, |eta - h| -> sign(eta - h)
(y - h), which can only err downwards, and gets twice its variance. Divergences are judged on the scale of
the signed root, sign(p - q) sqrt(2 KL), where they are smooth at 0.

All of it is a function of sums over rows (`GapMoments`), so that rows may stay where they are; the test of means alone
looks at the rows themselves where all of them are at hand, and takes the limit law where not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.audits.proxy.fits import Fits
from evenhand.audits.proxy.sample import Pair
from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.influence.functionals import Functional, divergence
from evenhand.kernels.influence.row_moments import Population, integrands
from evenhand.results import Interval

# A normal tail beyond this is not 0 but underflows.
LEAST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The measured gap."""

    estimate: float  # group minus reference
    values: tuple[float, float]  # the group's and the reference's value
    pvalue: float = math.nan  # for no gap
    method: str = ""  # how the p-value was made
    standard_error: float = math.nan  # for planning; NaN when not defined
    floor: float = 0.0  # the smallest p-value the test could have given
    draws: int = 0  # random permutations behind it; 0 where none were needed
    interval_at: Callable[[float], Interval] | None = None  # coverage in, interval out


class GapMoments:
    """Sums over the rows of the group (first) and of its reference (second): a monoid with `add` and `merge`.

    Of each row there are 1, numerator and denominator of each term with the outcome itself in place of its
    probability, and for a penalised divergence the logarithm of the ratio of densities, as one step needs it.
    """

    def __init__(self, form: Functional) -> None:
        size = 1 + 2 * len(form.terms) + form.uses_log_ratio
        self.form = form
        # rows, first (2, integrands): sums with the number of rows, and with their weight; second: of products.
        self.rows = np.zeros((2, size))
        self.first = np.zeros((2, size))
        self.second = np.zeros((2, size, size))

    def add(self, people: Population, y: FloatArray, log_ratio: FloatArray | None) -> None:
        """Add rows with their outcomes and their logarithm of the ratio of densities."""
        z = _integrands(self.form, people, y, log_ratio)
        for k, side in enumerate((people.inside, ~people.inside)):
            count, unit, here = people.count[side], people.unit[side], z[side]
            self.rows[k] += count @ here
            self.first[k] += (count * unit) @ here
            self.second[k] += here.T @ (here * (count * unit**2)[:, None])

    def merge(self, other: GapMoments) -> None:
        """Add the sums of other rows."""
        self.rows += other.rows
        self.first += other.first
        self.second += other.second

    @property
    def penalty(self) -> float:
        """The group's mean of the penalised logarithm; 0 without a penalty."""
        return self.form.penalty * float(self.first[0, -1] / self.first[0, 0]) if self.form.uses_log_ratio else 0.0

    def lines(self) -> tuple[FloatArray, ...]:
        """Return what the mean of a single term is made of: rows and sums of w, w², w v, w² v and w² v²."""
        n, d = 1, 2
        squares = (self.second[:, d, d], self.first[:, n], self.second[:, n, d], self.second[:, n, n])
        return (self.rows[:, d], self.first[:, d], *squares)


def _integrands(form: Functional, people: Population, y: FloatArray, log_ratio: FloatArray | None) -> FloatArray:
    """Return what each row adds to the sums, shape (rows, integrands)."""
    z = integrands(form, people.h, y)
    for t, (name, _) in enumerate(form.terms):
        if name == "cal":
            z[:, 1 + 2 * t] = np.sign(people.eta - people.h) * (y - people.h)
    if log_ratio is None:
        return z
    # One step from the plug-in value: E_P[l] + E_Q[1 - exp l], a lower bound in expectation.
    return np.column_stack([z, np.where(people.inside, log_ratio, 1 - np.exp(np.minimum(log_ratio, 50.0)))])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GapRows:
    """The rows at hand, and sums over all rows and over those that are not at hand."""

    pair: Pair
    z: FloatArray  # (records, integrands): of the rows at hand
    every: GapMoments
    rest: GapMoments

    @property
    def complete(self) -> bool:
        """Whether all rows are at hand."""
        return not self.rest.rows[:, 0].any()

    def squared(self, side: int, of_row: FloatArray) -> float:
        """Sum the squares of each row's part, linear in its integrands, with what rows count, over one side."""
        pair = self.pair
        here = pair.inside if side == 0 else ~pair.inside
        at_hand = (pair.count * pair.unit**2)[here] @ (self.z[here] @ of_row) ** 2
        return float(at_hand + of_row @ self.rest.second[side] @ of_row)


def gap_rows(pair: Pair, fits: Fits, form: Functional, rest: GapMoments | None = None) -> GapRows:
    """Put the rows at hand together with the sums over the others.

    Parameters
    ----------
    pair : Pair
        The two groups' rows at hand.
    fits : Fits
        Of calibration error and penalised divergence; other measures do without.
    form : Functional
        What is measured.
    rest : GapMoments, optional
        Sums over the rows that are not at hand; by default there are none.

    Returns
    -------
    GapRows
    """
    people, every = replace(pair, eta=fits.eta), GapMoments(form)
    every.add(people, pair.y, fits.log_ratio)
    rest = GapMoments(form) if rest is None else rest
    every.merge(rest)
    return GapRows(pair=pair, z=_integrands(form, people, pair.y, fits.log_ratio), every=every, rest=rest)


def gap_of(rows: GapRows, draws: Draws, *, weighted: bool) -> Gap:
    """Measure the gap between a group and its reference.

    Parameters
    ----------
    rows : GapRows
        The two groups.
    draws : Draws
        How reference distributions are made.
    weighted : bool
        Whether sampling weights are in play.

    Returns
    -------
    Gap
    """
    form = rows.every.form
    name, coefficient = form.terms[0]
    if len(form.terms) == 1 and coefficient == 1 and name != "da":
        as_mean = _as_mean(rows.pair, name)
        if as_mean is not None:
            return _by_samples(rows, *as_mean, draws, weighted)
    if len(form.terms) == 1 and coefficient > 0 and name == "da" and form.penalty == 0:
        return _divergence(rows)
    return _by_delta(rows)


def _as_mean(pair: Pair, name: str) -> tuple[FloatArray, NDArray[np.bool_]] | None:
    """Return the value whose mean over some rows is the measure, and those rows."""
    h, y, everyone = pair.h, pair.y, np.ones(len(pair.h), dtype=bool)
    means = {
        "sp": (h, everyone),
        "fpr": (h, y == 0),
        "fnr": (1 - h, y == 1),
        "accuracy": (np.where(y == 1, h, 1 - h), everyone),
    }
    return (1 - y, h == 1) if name == "fdr" and pair.hard else means.get(name)


def _by_samples(rows: GapRows, value: FloatArray, used: NDArray[np.bool_], draws: Draws, weighted: bool) -> Gap:
    pair, every = rows.pair, rows.every
    samples: RateSamples | MeanSamples
    yes_or_no = np.all((value[used] == 0) | (value[used] == 1)) and np.array_equal(
        every.second[:, 1, 1], every.rows[:, 1]
    )
    if not weighted and yes_or_no:
        samples = RateSamples.from_counts(every.rows[:, 1].astype(np.int64), every.rows[:, 2].astype(np.int64))
    elif rows.complete:
        samples = MeanSamples(
            value=value[used],
            codes=(~pair.inside).astype(np.int64)[used],
            n_groups=2,
            count=pair.count[used],
            weight=pair.unit[used] if weighted else None,
        )
    else:
        samples = MeanSamples.from_moments(*every.lines())
    a, b = (float(v) for v in samples.estimate)
    if math.isnan(a) or math.isnan(b):
        return Gap(estimate=math.nan, values=(a, b))
    test = samples.test(0, 1, draws)
    # Means of values between 0 and 1 differ by 1 at most, however few rows say so.
    reach = 1.0 if value[used].min() >= 0 and value[used].max() <= 1 else math.inf

    def at(wanted: float) -> Interval:
        low, high, kind = samples.interval(0, 1, level=wanted, ratio=False, draws=draws)
        return Interval(low=max(low, -reach), high=min(high, reach), level=wanted, kind=kind)

    return Gap(
        estimate=a - b,
        values=(a, b),
        pvalue=test.pvalue,
        method=test.method,
        standard_error=samples.standard_error(0, 1),
        floor=test.floor,
        draws=test.n_resamples,
        interval_at=at,
    )


def _divergence(rows: GapRows) -> Gap:
    every, form = rows.every, rows.every.form
    mean, variance = [], []
    for side in (0, 1):
        total, n = float(every.first[side, 0]), float(every.rows[side, 0])
        m = float(every.first[side, 1]) / total
        part = np.zeros(every.first.shape[1])
        part[:2] = -m / total, 1 / total
        mean.append(m)
        variance.append(rows.squared(side, part) * n / max(n - 1, 1.0))
    p, q = mean
    kl = divergence(p, q)
    root = math.copysign(math.sqrt(2 * kl), p - q)
    if abs(root) > 1e-6:
        by_p = (special.logit(p) - special.logit(q)) / root
        by_q = (q - p) / (q * (1 - q)) / root
    else:
        by_p = 1 / math.sqrt(q * (1 - q))
        by_q = -by_p
    se = math.sqrt(by_p**2 * variance[0] + by_q**2 * variance[1])
    scale = form.terms[0][1]

    def at(wanted: float) -> Interval:
        z = float(special.ndtri(0.5 + wanted / 2))
        low, high = root - z * se, root + z * se
        least = 0.0 if low <= 0 <= high else min(low**2, high**2) / 2
        most = max(low**2, high**2) / 2
        return Interval(low=scale * least, high=scale * most, level=wanted, kind="signed-root-delta")

    pvalue = max(float(2 * special.ndtr(-abs(root) / se)), LEAST) if se > 0 else float(p == q)
    return Gap(
        estimate=scale * kl,
        values=(p, q),
        pvalue=pvalue,
        method="normal test of the signed root of the divergence",
        interval_at=at,
    )


def _by_delta(rows: GapRows) -> Gap:
    """Linearise a ratio or a combination; y stands for its probability."""
    every, form = rows.every, rows.every.form
    parts = np.zeros_like(every.first)  # what a row's integrands do to the gap, per unit of weight
    values = np.zeros(2)
    for t, (name, coefficient) in enumerate(form.terms):
        sides, part = _divergence_parts(every, t) if name == "da" else _ratio_parts(every, t)
        values += coefficient * sides
        parts += coefficient * part
    if form.kinked:
        # Where model and outcome agree, signs are learned from the same rows as the means they multiply, and
        # the folds' parts move together; at worst this doubles the variance.
        parts *= math.sqrt(2)
    estimate = float(values[0] - values[1])
    n = float(every.rows[:, 0].min())
    se = math.sqrt(sum(rows.squared(side, parts[side]) for side in (0, 1)) * n / max(n - 1, 1.0))
    one_sided = all(name == "da" for name, _ in form.terms)  # a divergence is never below 0

    def at(wanted: float) -> Interval:
        # The one-sided test of a divergence has its own end of the interval.
        z = float(special.ndtri(wanted if one_sided else 0.5 + wanted / 2))
        low, high = estimate - z * se, math.inf if one_sided else estimate + z * se
        return Interval(low=max(low, 0.0) if one_sided else low, high=high, level=wanted, kind="delta")

    pvalue = math.nan
    if se > 0:
        tail = float(special.ndtr(-estimate / se))
        pvalue = max(tail if one_sided else 2 * min(tail, 1 - tail), LEAST)
    return Gap(
        estimate=estimate,
        values=(float(values[0]), float(values[1])),
        pvalue=pvalue,
        method="normal test of the linearised difference" + (", one-sided" if one_sided else ""),
        standard_error=se,
        interval_at=at,
    )


def _ratio_parts(every: GapMoments, t: int) -> tuple[FloatArray, FloatArray]:
    """Return both groups' ratios and what a row's integrands do to their difference."""
    values, parts = np.zeros(2), np.zeros_like(every.first)
    for k in (0, 1):
        top, bottom = every.first[k, 1 + 2 * t : 3 + 2 * t]
        values[k] = top / bottom if bottom > 0 else math.nan
        sign = (1 - 2 * k) / (bottom if bottom > 0 else math.nan)
        parts[k, 1 + 2 * t : 3 + 2 * t] = sign, -sign * values[k]
    return values, parts


def _divergence_parts(every: GapMoments, t: int) -> tuple[FloatArray, FloatArray]:
    """Return the divergence (and 0) and what a row's integrands do to it."""
    weight, n, form = every.first[:, 0], 1 + 2 * t, every.form
    p, q = (float(v) for v in every.first[:, n] / weight)
    total, parts = divergence(p, q), np.zeros_like(every.first)
    parts[0, n] = float(special.logit(p) - special.logit(q))
    parts[1, n] = (q - p) / (q * (1 - q))
    if form.uses_log_ratio:
        parts[:, -1] = form.penalty
        total += form.penalty * float((every.first[:, -1] / weight).sum())
    for k in (0, 1):
        parts[k, 0] = -(every.first[k] @ parts[k]) / weight[k]  # each part has mean 0
        parts[k] /= weight[k]
    return np.array([total, 0.0]), parts
