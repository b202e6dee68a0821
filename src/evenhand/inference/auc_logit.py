"""The AUC on the logit scale: its regularised variance, and studentised differences of many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.kernels.counts.auc import AucParts
from evenhand.kernels.counts.row_sums import weighted_spread

# Rows' worth of the largest variance that an AUC can have, mixed into DeLong's: a small sample without a single pair in
# the wrong order shows none of its own.
PRIOR_ROWS = 1.0


def regularised(part: AucParts) -> tuple[FloatArray, FloatArray]:
    """Return the AUC moved off 0 and 1 by half a pair, and DeLong's variance with a little of the largest mixed in.

    Examples
    --------
    >>> from evenhand.kernels.counts.auc import auc_of_counts
    >>> auc, variance = regularised(auc_of_counts(np.array([0, 0, 5]), np.array([5, 0, 0])))
    >>> round(float(auc), 3), float(variance) > 0
    (0.981, True)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = 1 / part.positive[0], 1 / part.negative[0]  # effective rows where rows are weighted
        auc = (p * q * part.auc + 0.5) / (p * q + 1)
        n = np.minimum(p, q)
        most = auc * (1 - auc) / n  # Birnbaum and Klose (1957): each row of the rarer outcome wholly right or wrong
        own = part.variance()
        own = np.where(np.isnan(own) & (np.minimum(part.n_positive, part.n_negative) == 1), most, own)
        return auc, (n * own + PRIOR_ROWS * most) / (n + PRIOR_ROWS)


def logit_of(part: AucParts) -> tuple[FloatArray, FloatArray]:
    """Return the logit of the regularised AUC and its variance.

    Examples
    --------
    >>> from evenhand.kernels.counts.auc import auc_of_counts
    >>> float(logit_of(auc_of_counts(np.array([1, 1]), np.array([1, 1])))[0])
    0.0
    """
    auc, var = regularised(part)
    return np.asarray(special.logit(auc)), var / (auc * (1 - auc)) ** 2


def studentised(first: AucParts, second: AucParts, plain: bool) -> FloatArray:
    """Return the difference of two logits, or plainly of two AUCs, over its standard error.

    Plainly is without logit and regularisation, as printed in [diciccio2020].

    Examples
    --------
    >>> from evenhand.kernels.counts.auc import auc_of_counts
    >>> one = auc_of_counts(np.array([1, 2]), np.array([2, 1]))
    >>> float(studentised(one, one, False))
    0.0
    """
    if plain:
        gap, var = first.auc - second.auc, first.variance() + second.variance()
        return np.where(gap == 0, 0.0, gap / np.sqrt(np.maximum(var, 1e-12)))
    (one, v1), (two, v2) = logit_of(first), logit_of(second)
    return np.asarray((one - two) / np.sqrt(v1 + v2))


def spread(parts: Sequence[AucParts], plain: bool) -> FloatArray:
    """Return the weighted spread of the logits, or plainly of the AUCs, of several samples.

    Examples
    --------
    >>> from evenhand.kernels.counts.auc import auc_of_counts
    >>> one = auc_of_counts(np.array([1, 2]), np.array([2, 1]))
    >>> float(spread([one, one], False))
    0.0
    """
    if plain:
        values, variances = [p.auc for p in parts], [np.maximum(p.variance(), 1e-12) for p in parts]
    else:
        values, variances = map(list, zip(*(logit_of(p) for p in parts), strict=True))
    return weighted_spread(np.stack(values, axis=-1), np.stack(variances, axis=-1))
