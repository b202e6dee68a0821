"""Max-T: many comparisons adjusted together, by the dependence between their statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import BoolArray, FloatArray
from evenhand.inference.multiplicity import adjust
from evenhand.inference.permutations import BLOCK
from evenhand.inference.samples import Draws
from evenhand.kernels.counts.deals import in_blocks

# Added to correlations of 1; large against rounding, so that the order of rows cannot be seen in the draws.
_RIDGE = 1e-9


def max_t(pvalues: ArrayLike, covariance: ArrayLike, draws: Draws) -> FloatArray:
    """Adjust p-values by step-down max-T: each is compared with the most extreme of itself and the less extreme ones.

    The statistics are jointly normal in the limit, with the covariance of their influence functions, whatever
    else differs between the groups; so the family-wise error holds in the strong sense in the limit (Hothorn,
    Bretz and Westfall 2008). Permuting labels for all statistics at once would not give that: studentising makes
    each statistic pivotal, not their joint law. The p-values keep their own, possibly exact, distribution: only
    their dependence is taken from the normal law (min-P of Westfall and Young 1993). No adjusted value exceeds
    Holm's.

    Parameters
    ----------
    pvalues : array_like, shape (m,)
        Raw p-values; NaN does not count.
    covariance : array_like, shape (m, m)
        Of the statistics, up to a factor for each; a variance of 0 makes a statistic independent of the others.
    draws : Draws
        Number, seed, name and alternative of the normal draws.

    Returns
    -------
    ndarray, shape (m,)
        Between the raw p-value and Holm's.

    Examples
    --------
    >>> twins = max_t([0.01, 0.012], [[1.0, 0.999], [0.999, 1.0]], Draws())
    >>> strangers = max_t([0.01, 0.012], [[1.0, 0.0], [0.0, 1.0]], Draws())
    >>> bool(twins[0] < 0.013 < 0.018 < strangers[0] <= 0.02)
    True
    """
    raw = np.asarray(pvalues, dtype=np.float64)
    out = raw.copy()
    order = np.argsort(raw, kind="stable")[: int((~np.isnan(raw)).sum())]
    if not order.size:
        return out
    root = _root(np.asarray(covariance, dtype=np.float64)[np.ix_(order, order)])
    # The bar a normal statistic must pass to have a p-value as small as the one seen.
    two_sided = draws.alternative == "two-sided"
    bar = -special.ndtri(raw[order] / 2 if two_sided else raw[order])
    sign = -1.0 if draws.alternative == "less" else 1.0

    def passed(rng: np.random.Generator, b: int) -> BoolArray:
        z = rng.standard_normal((b, len(root))) @ root
        z = np.abs(z) if two_sided else sign * z
        worst = np.maximum.accumulate(z[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(worst >= bar)

    hits = 1 + in_blocks(passed, draws.n_resamples, BLOCK, seed=draws.seed, name=draws.name).sum(axis=0)
    seen = np.maximum.accumulate(np.maximum(hits / (draws.n_resamples + 1), raw[order]))
    out[order] = np.minimum(seen, adjust(raw[order], "holm"))
    return out


def _root(covariance: FloatArray) -> FloatArray:
    """Return A with A' A the correlation matrix; a little is added to the diagonal, as it may be singular."""
    deviation = np.sqrt(np.diag(covariance))
    unit = np.where(deviation > 0, deviation, 1.0)
    correlation = covariance / np.outer(unit, unit)
    np.fill_diagonal(correlation, 1.0 + _RIDGE)
    return np.asarray(np.linalg.cholesky(correlation).T)
