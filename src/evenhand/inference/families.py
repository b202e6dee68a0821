"""Max-T: many comparisons of rates adjusted together, with permutations they all share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.inference.forms import Rate
from evenhand.inference.permutations import BLOCK
from evenhand.inference.pvalues import TIE
from evenhand.inference.samples import Draws
from evenhand.kernels.seeds import stream
from evenhand.kernels.tables import draw_tables

FloatArray = NDArray[np.float64]


def max_t(
    table: ArrayLike,
    rates: Sequence[tuple[Sequence[int], Sequence[int]]],
    pairs: Sequence[tuple[int, int]],
    draws: Draws,
) -> tuple[FloatArray, FloatArray]:
    """Test every rate on every pair of groups and adjust by the step-down max-T of Westfall and Young (1993).

    Labels are permuted over all rows and all groups; each statistic is studentised under its null.
    One permutation serves all statistics, so their dependence is used and the adjustment is milder than
    Holm's when they are strongly related.

    Studentising makes each statistic pivotal, not their joint law. So the family-wise error holds when
    groups are exchangeable, and is *not guaranteed* when only the rates are equal (the weak null). Holm on
    the exact p-values of `RateSamples` is guaranteed; prefer it unless the gain matters.

    Parameters
    ----------
    table : array_like of int, shape (K, C)
        Counts, groups by cells.
    rates : sequence of (numerator, denominator)
        Cells of each rate.
    pairs : sequence of (a, b)
        Groups compared.
    draws : Draws
        Number, seed, name and alternative.

    Returns
    -------
    raw, adjusted : ndarray, shape (rates, pairs)
        NaN where a group has no value; such a test does not count.

    Examples
    --------
    >>> table = [[40, 10, 5, 45], [30, 20, 25, 25]]
    >>> raw, adjusted = max_t(table, [([2], [2, 3]), ([1], [0, 1])], [(0, 1)], Draws(n_resamples=999))
    >>> raw.shape, bool((adjusted >= raw).all())
    ((2, 1), True)
    """
    counts = np.asarray(table, dtype=np.int64)
    forms = [Rate(tuple(top), tuple(bottom)) for top, bottom in rates]

    def statistics(tables: FloatArray) -> FloatArray:
        """Return (n, rates * pairs), turned so that large is extreme."""
        columns = [form.statistic(tables[:, [a, b]], "null") for form in forms for a, b in pairs]
        z = np.stack(columns, 1)
        return {"two-sided": np.abs(z), "greater": z, "less": -z}[draws.alternative]

    shape = (len(forms), len(pairs))
    observed = statistics(counts[None].astype(np.float64))[0]
    made = np.flatnonzero(~np.isnan(observed))
    # Most extreme first; step-down compares each with the maximum over itself and the less extreme ones.
    order = made[np.argsort(-observed[made], kind="stable")]
    seen = observed[order]
    bar = seen - TIE * np.maximum(1.0, np.where(np.isfinite(seen), np.abs(seen), 0.0))
    hits = np.ones((2, order.size))
    for block in range(-(-draws.n_resamples // BLOCK)):
        size = min(BLOCK, draws.n_resamples - block * BLOCK)
        rng = stream(draws.seed, draws.name, block)
        tables = draw_tables(counts, np.zeros(counts.shape[1], dtype=np.int64), size, rng)
        null = statistics(tables.astype(np.float64))[:, order]
        null = np.where(np.isnan(null), np.inf, null)  # an undefined statistic counts as extreme
        hits[0] += (null >= bar).sum(0)
        worst = np.maximum.accumulate(null[:, ::-1], axis=1)[:, ::-1]
        hits[1] += (worst >= bar).sum(0)
    out = np.full((2, observed.size), np.nan)
    out[0, order] = hits[0] / (draws.n_resamples + 1)
    out[1, order] = np.maximum.accumulate(hits[1] / (draws.n_resamples + 1))
    return out[0].reshape(shape), out[1].reshape(shape)
