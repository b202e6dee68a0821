"""A statistic of a count table against its law over permutations of the group labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.inference.pvalues import TestResult, extremes, monte_carlo, undefined
from evenhand.inference.samples import Draws
from evenhand.kernels.counts.deals import in_blocks
from evenhand.kernels.counts.permuted_tables import draw_tables, enumerate_tables

# Draws per block: part of the definition of a result, so it never depends on the machine.
BLOCK = 4096
# Tables listed without being asked to; beyond it random draws are cheaper.
AUTO_LIMIT = 50_000
EXACT_LIMIT = 2_000_000


def permutation_test(
    table: IntArray,
    strata: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    draws: Draws,
    *,
    words: str,
    alternative: str,
    limit: int = AUTO_LIMIT,
) -> TestResult:
    """Compare a statistic of a table with its law over permutations of the group labels.

    Parameters
    ----------
    table : ndarray of int, shape (K, C)
        The data.
    strata : ndarray of int, shape (C,)
        As in `evenhand.kernels.counts.permuted_tables.draw_tables`.
    statistic : callable
        Tables (n, K, C) to statistics (n,); NaN counts as extreme.
    draws : Draws
        How to make the law.
    words : str
        Names the statistic in the result's `method`.
    alternative : {"two-sided", "greater", "less"}
        Which values count as extreme.
    limit : int
        The most tables to list when `draws.method` is "auto".

    Examples
    --------
    >>> tea = np.array([[3, 1], [1, 3]])
    >>> first = lambda t: t[:, 0, 0].astype(float)
    >>> result = permutation_test(tea, np.zeros(2, int), first, Draws(), words="cups", alternative="greater")
    >>> round(result.pvalue, 4), result.exact
    (0.2429, True)
    """
    observed = float(statistic(table[None].astype(np.float64))[0])
    if math.isnan(observed):
        return undefined("The test's statistic is undefined on these data.")
    if draws.method in ("auto", "exact"):
        # Listing more tables than would be drawn costs more than it gains.
        most = min(limit, max(draws.n_resamples, 1000)) if draws.method == "auto" else EXACT_LIMIT
        listed = enumerate_tables(table, strata, limit=most)
        if listed is not None:
            tables, probability = listed
            null = statistic(tables.astype(np.float64))
            return _exact(null, probability, observed, alternative, words, draws.midp)
        if draws.method == "exact":
            raise UsageError(
                f"More than {EXACT_LIMIT:,} tables would have to be listed for an exact test. "
                "Use `method='auto'` or `method='permutation'`."
            )
    null = in_blocks(
        lambda rng, b: statistic(draw_tables(table, strata, b, rng).astype(np.float64)),
        draws.n_resamples,
        BLOCK,
        seed=draws.seed,
        name=draws.name,
    )
    result = monte_carlo(null, observed, alternative, method=f"random permutations, {words}")
    if not draws.midp:
        return result
    ties = int((extremes(null, observed, alternative) & ~extremes(null, observed, alternative, strictly=True)).sum())
    hits = result.pvalue * (null.size + 1) - ties / 2
    return replace(result, pvalue=hits / (null.size + 1), method=result.method + ", mid-p")


def _exact(
    null: FloatArray, probability: FloatArray, observed: float, alternative: str, words: str, midp: bool
) -> TestResult:
    """Sum the probability of all tables at least as extreme as the data."""

    def tail(at: float) -> float:
        whole = probability[extremes(null, at, alternative)].sum()
        if midp:
            whole = 0.5 * (whole + probability[extremes(null, at, alternative, strictly=True)].sum())
        return float(min(whole, 1.0))

    known = null[~np.isnan(null)]
    most = {"two-sided": np.abs(known).max(), "greater": known.max(), "less": known.min()}[alternative]
    return TestResult(
        statistic=observed,
        pvalue=tail(observed),
        method=f"all {len(null):,} permuted tables, {words}{', mid-p' if midp else ''}",
        exact=True,
        floor=tail(float(most)),
    )
