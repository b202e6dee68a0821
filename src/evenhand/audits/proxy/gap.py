"""The gap itself, from observed outcomes: estimate, interval and test without nuisance models.

With the outcome y in place of its probability every measure but two is a difference of means or of ratios
of means, and the nuisance models drop out: this is what correcting the plug-in value to first order
leaves over. Calibration error keeps the sign of the cross-fitted difference, |eta - h| -> sign(eta - h)
(y - h), which can only err downwards, and gets twice its variance. Divergences are judged on the scale of
the signed root, sign(p - q) sqrt(2 KL), where they are smooth at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.audits.proxy.fits import Fits
from evenhand.audits.proxy.sample import Pair
from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.influence.functionals import TERMS, Functional, divergence
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


def gap_of(pair: Pair, fits: Fits, form: Functional, draws: Draws, *, weighted: bool) -> Gap:
    """Measure the gap between a group and its reference.

    Parameters
    ----------
    pair : Pair
        The two groups.
    fits : Fits
        Of calibration error and penalised divergence; other measures do without.
    form : Functional
        What is measured.
    draws : Draws
        How reference distributions are made.
    weighted : bool
        Whether sampling weights are in play.

    Returns
    -------
    Gap
    """
    name, coefficient = form.terms[0]
    if len(form.terms) == 1 and coefficient == 1 and name != "da":
        as_mean = _as_mean(pair, name)
        if as_mean is not None:
            return _by_samples(pair, *as_mean, draws, weighted)
    if len(form.terms) == 1 and coefficient > 0 and name == "da" and form.penalty == 0:
        return _divergence(pair, form)
    return _by_delta(pair, fits, form)


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


def _by_samples(pair: Pair, value: FloatArray, rows: NDArray[np.bool_], draws: Draws, weighted: bool) -> Gap:
    codes = (~pair.inside).astype(np.int64)
    samples: RateSamples | MeanSamples
    if not weighted and np.all((value[rows] == 0) | (value[rows] == 1)):
        trials = np.bincount(codes[rows], weights=pair.count[rows], minlength=2).astype(np.int64)
        hits = np.bincount(codes[rows], weights=(pair.count * value)[rows], minlength=2).astype(np.int64)
        samples = RateSamples.from_counts(hits, trials)
    else:
        samples = MeanSamples(
            value=value[rows],
            codes=codes[rows],
            n_groups=2,
            count=pair.count[rows],
            weight=pair.unit[rows] if weighted else None,
        )
    a, b = (float(v) for v in samples.estimate)
    if math.isnan(a) or math.isnan(b):
        return Gap(estimate=math.nan, values=(a, b))
    test = samples.test(0, 1, draws)
    # Means of values between 0 and 1 differ by 1 at most, however few rows say so.
    reach = 1.0 if value[rows].min() >= 0 and value[rows].max() <= 1 else math.inf

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


def _divergence(pair: Pair, form: Functional) -> Gap:
    weight = pair.weight
    mean, variance = [], []
    for rows in (pair.inside, ~pair.inside):
        w = weight[rows]
        m = float(w @ pair.h[rows] / w.sum())
        n = float(pair.count[rows].sum())
        spread = float((w * pair.unit[rows]) @ (pair.h[rows] - m) ** 2) / float(w.sum()) ** 2
        mean.append(m)
        variance.append(spread * n / max(n - 1, 1.0))
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


def _by_delta(pair: Pair, fits: Fits, form: Functional) -> Gap:
    """Linearise a ratio or a combination; y stands for its probability."""
    share = np.zeros(len(pair.h))  # each row's part in the gap, per unit of weight
    values = np.zeros(2)
    for name, coefficient in form.terms:
        sides, part = _divergence_parts(pair, fits, form) if name == "da" else _ratio_parts(pair, fits, name)
        values += coefficient * sides
        share += coefficient * part
    if form.kinked:
        # Where model and outcome agree, signs are learned from the same rows as the means they multiply, and
        # the folds' parts move together; at worst this doubles the variance.
        share *= math.sqrt(2)
    estimate = float(values[0] - values[1])
    n = float(min(pair.count[pair.inside].sum(), pair.count[~pair.inside].sum()))
    se = math.sqrt(float(np.sum(pair.count * pair.unit**2 * share**2)) * n / max(n - 1, 1.0))
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


def _ratio_parts(pair: Pair, fits: Fits, name: str) -> tuple[FloatArray, FloatArray]:
    """Return both groups' ratios and each row's part in their difference."""
    values, share = np.zeros(2), np.zeros(len(pair.h))
    if name == "cal":
        n, d = np.sign(fits.eta - pair.h) * (pair.y - pair.h), np.ones(len(pair.h))
    else:
        n, bottom = TERMS[name].parts(pair.h, pair.y)
        d = np.broadcast_to(np.asarray(bottom, dtype=np.float64), n.shape)
    for k, g in enumerate((pair.inside, ~pair.inside)):
        w = pair.weight[g]
        total = float(w @ d[g])
        values[k] = float(w @ n[g]) / total if total > 0 else math.nan
        share[g] = (1 - 2 * k) * (n - values[k] * d)[g] / (total if total > 0 else math.nan)
    return values, share


def _divergence_parts(pair: Pair, fits: Fits, form: Functional) -> tuple[FloatArray, FloatArray]:
    """Return the divergence (and 0) and each row's part in it."""
    sides = (pair.inside, ~pair.inside)
    totals = [float(pair.weight[g].sum()) for g in sides]
    p, q = (float(pair.weight[g] @ pair.h[g]) / t for g, t in zip(sides, totals, strict=True))
    total = divergence(p, q)
    slope = float(special.logit(p) - special.logit(q))
    share = np.where(pair.inside, slope * (pair.h - p) / totals[0], (q - p) / (q * (1 - q)) * (pair.h - q) / totals[1])
    if form.penalty > 0 and fits.log_ratio is not None:
        # One step from the plug-in value: E_P[l] + E_Q[1 - exp l], a lower bound in expectation.
        inner = np.where(pair.inside, fits.log_ratio, 1 - np.exp(np.minimum(fits.log_ratio, 50.0)))
        for g, t in zip(sides, totals, strict=True):
            middle = float(pair.weight[g] @ inner[g]) / t
            total += form.penalty * middle
            share[g] += form.penalty * (inner[g] - middle) / t
    return np.array([total, 0.0]), share
