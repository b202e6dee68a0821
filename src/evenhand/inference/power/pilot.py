"""The design of a comparison, with its variances taken from samples at hand."""

from __future__ import annotations

import math

import numpy as np

from evenhand.inference.auc import AucSamples
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.count_functions import Average
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.power.designs import Aucs, Binomials, CalibrationErrors, Design, Means, auc_variance
from evenhand.inference.rates.averages import RateAverage
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Samples
from evenhand.inference.strata.samples import StratifiedSamples


def design_of(samples: Samples, a: int, b: int, *, exact: bool = True) -> Design | None:
    """Return the design that has the variances of two samples.

    Parameters
    ----------
    samples : Samples
        What the audit compares.
    a, b : int
        The group and its reference.
    exact : bool
        Whether the power of rates is found by listing all tables where they are few.

    Returns
    -------
    Design or None
        None where a value or its variance is not known.

    Examples
    --------
    >>> pilot = RateSamples.from_counts([12, 4], [40, 40], [100, 80])
    >>> design_of(pilot, 0, 1).shares
    ((0.4,), (0.5,))
    """
    pair, counts = (a, b), [samples.counts[k] for k in (a, b)]
    if any(math.isnan(samples.estimate[k]) or samples.counts[k]["rows"] <= 0 for k in pair):
        return None
    if isinstance(samples, StratifiedSamples):
        # More rows of the same strata: the error of the conditional difference, half of its square from each group.
        error = samples.standard_error(a, b)
        halves = [error * math.sqrt(c["rows"] / 2) for c in counts]
        return Means((halves[0], halves[1])) if error > 0 else None
    if isinstance(samples, RateSamples):
        one, two = ((c["denominator"] / c["rows"],) for c in counts)
        if samples.transformed:
            one, two = (((c["denominator"] + c["numerator"]) / c["rows"],) for c in counts)
        return Binomials((one, two), f1=samples.transformed, exact=exact)
    whole = samples.tables if isinstance(samples, RateAverage) else samples
    if isinstance(whole, TableSamples) and isinstance(whole.form, Average):
        form, tables = whole.form, whole.table[[a, b]].astype(np.float64)
        trials = np.stack([tables[:, list(r.denominator)].sum(1) for r in form.rates], -1)  # (2, m)
        rates = np.stack([r.value(tables) for r in form.rates], -1)
        shares = (trials / tables.sum(1, keepdims=True)).tolist()
        offsets = (rates - samples.estimate[[a, b]][:, None]).tolist()
        return Binomials(
            (tuple(shares[0]), tuple(shares[1])), form.weights, (tuple(offsets[0]), tuple(offsets[1])), exact=exact
        )
    # The error of a sample's difference from another just like it is its own error times the root of 2.
    own = [samples.standard_error(k, k) ** 2 / 2 for k in pair]
    if not all(math.isfinite(v) and v > 0 for v in own):
        return None
    if isinstance(samples, AucSamples):
        positives = [c["positives"] / c["rows"] for c in counts]
        model = [
            auc_variance(min(max(float(samples.estimate[k]), 0.01), 0.99), c["positives"], c["negatives"])
            for k, c in zip(pair, counts, strict=True)
        ]
        return Aucs((positives[0], positives[1]), (own[0] / model[0], own[1] / model[1]))
    if isinstance(samples, CalibrationSamples):
        bins = max(round(sum(c["bins"] for c in counts) / 2), 1)
        spreads = [
            _residual_spread(float(samples.estimate[k]), v, c["rows"], bins)
            for k, v, c in zip(pair, own, counts, strict=True)
        ]
        return CalibrationErrors((spreads[0], spreads[1]), bins)
    spreads = [math.sqrt(v * c["rows"]) for v, c in zip(own, counts, strict=True)]
    return Means((spreads[0], spreads[1]))


def _residual_spread(root: float, own: float, rows: float, bins: int) -> float:
    """Return the spread of outcome minus score that explains the variance of a calibration error."""
    # `CalibrationSamples.standard_error` turns the variance of the squared error into one of its root.
    variance = 4 * root**2 * own if math.sqrt(own) <= 2 * root else own**2
    # variance = 2 bins s^4 / n^2 + 4 s^2 root^2 / n, solved for s^2.
    lead, slope = 2 * bins / rows**2, 4 * root**2 / rows
    return math.sqrt((math.sqrt(slope**2 + 4 * lead * variance) - slope) / (2 * lead))
