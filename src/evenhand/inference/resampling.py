"""Steps that every resampling test shares: deal rows out, turn a null distribution into an answer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.errors import UsageError
from evenhand.inference.pvalues import TestResult, extremes
from evenhand.inference.samples import Draws
from evenhand.kernels.subsets import (
    block_size,
    in_blocks,
    random_counts,
    random_labels,
    random_subsets,
    subset_sums,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Numbers touched by the largest full enumeration.
ENUMERATE = 4_000_000
NO_GLOBAL = "permutations of more than two groups are not listed"
# A distinct record costs about as much to draw as this many rows.
ROWS_PER_RECORD = 20


def permuted_sums(
    features: FloatArray,
    counts: IntArray,
    sizes: Sequence[int],
    draws: Draws,
    statistic: Callable[[FloatArray], FloatArray],
    purpose: str,
    enough: Callable[[FloatArray], bool] | None = None,
) -> FloatArray:
    """Return a statistic of group sums on random permutations of the rows.

    Parameters
    ----------
    features : ndarray, shape (D, p)
        What each distinct row adds to its group's sum.
    counts : ndarray of int, shape (D,)
        Rows equal to each distinct row.
    sizes : sequence of int, length K
        Rows of each group.
    draws : Draws
        Number, seed, name and workers.
    statistic : callable
        Takes sums of shape (b, K, p), returns shape (b,).
    purpose : str
        Part of the random stream's name.
    enough : callable, optional
        See `evenhand.kernels.subsets.in_blocks`.

    Returns
    -------
    ndarray, shape (n_resamples,)

    Examples
    --------
    >>> null = permuted_sums(np.array([[1.0], [2.0]]), np.array([3, 3]), [2, 4], Draws(n_resamples=5),
    ...                      lambda sums: sums.sum(axis=(1, 2)), "demo")
    >>> null.tolist()
    [9.0, 9.0, 9.0, 9.0, 9.0]
    """
    rows = int(counts.sum())
    total = counts @ features  # (p,)
    few = counts.size * ROWS_PER_RECORD <= rows
    expanded = np.empty((0, 0)) if few else np.repeat(features, counts, axis=0)

    def work(rng: np.random.Generator, b: int) -> FloatArray:
        sums = np.empty((b, len(sizes), features.shape[1]))
        if few:
            dealt = random_counts(rng, counts, sizes, b)  # (b, D, K)
            sums[...] = dealt.transpose(0, 2, 1).astype(np.float64) @ features
        elif len(sizes) == 2:
            sums[:, 0] = subset_sums(random_subsets(rng, rows, sizes[0], b), expanded)
            sums[:, 1] = total - sums[:, 0]
        else:
            labels = random_labels(rng, sizes, b)
            for k in range(len(sizes)):
                sums[:, k] = subset_sums(labels == k, expanded)
        return statistic(sums)

    size = block_size(counts.size * len(sizes) * 8 if few else rows)
    return in_blocks(
        work,
        draws.number(counts.size if few else rows),
        size,
        seed=draws.seed,
        name=f"{draws.name}/{purpose}",
        workers=draws.workers,
        enough=enough,
    )


def enumerated(null: FloatArray, observed: float, alternative: str, warnings: tuple[str, ...] = ()) -> TestResult:
    """Turn the statistic on every permutation into an exact p-value.

    Parameters
    ----------
    null : ndarray
        The statistic on each permutation, the data as they are among them.
    observed : float
        The statistic on the data.
    alternative : {"two-sided", "greater", "less"}
        Which side counts.
    warnings : tuple of str
        Passed through.

    Returns
    -------
    TestResult

    Examples
    --------
    >>> enumerated(np.array([-2.0, -1.0, 1.0, 2.0]), 2.0, "two-sided").pvalue
    0.5
    """
    p = float(extremes(null, observed, alternative).mean())
    finite = null[~np.isnan(null)]
    top = (
        finite.min() if alternative == "less" else np.abs(finite).max() if alternative == "two-sided" else finite.max()
    )
    return TestResult(
        statistic=observed,
        pvalue=p,
        method="studentised permutation test, all permutations",
        exact=True,
        floor=float(extremes(null, float(top), alternative).mean()),
        pvalue_low=p,
        pvalue_high=p,
        null=null[:: max(1, null.size // 2000)][:2000].copy(),
        warnings=warnings,
    )


def refuse_exact(draws: Draws, why: str = "there are too many permutations to list") -> None:
    """Raise when an exact test was asked for and random permutations are about to be drawn.

    Parameters
    ----------
    draws : Draws
        What was asked for.
    why : str
        Why it cannot be had, as the end of a sentence.

    Examples
    --------
    >>> refuse_exact(Draws(method="auto"))
    """
    if draws.method == "exact":
        raise UsageError(f"`method` is `exact`, but {why}. Use `auto` or `permutation`.")


def limit_result(
    statistic: float,
    alternative: str,
    *,
    method: str,
    df: float = math.inf,
    warnings: tuple[str, ...] = (),
) -> TestResult:
    """Turn a studentised value into a p-value by the normal law, or Student's with `df`.

    Parameters
    ----------
    statistic : float
        The studentised value.
    alternative : {"two-sided", "greater", "less"}
        Which side counts.
    method : str
        Words for the reader.
    df : float
        Degrees of freedom.
    warnings : tuple of str
        Passed through.

    Returns
    -------
    TestResult

    Examples
    --------
    >>> round(limit_result(1.959964, "two-sided", method="normal limit").pvalue, 6)
    0.05
    """
    upper, lower = (
        (float(special.ndtr(-statistic)), float(special.ndtr(statistic)))
        if math.isinf(df)
        else (float(special.stdtr(df, -statistic)), float(special.stdtr(df, statistic)))
    )
    p = {"greater": upper, "less": lower}.get(alternative, min(1.0, 2 * min(upper, lower)))
    return TestResult(
        statistic=statistic,
        pvalue=p,
        method=method,
        exact=False,
        pvalue_low=p,
        pvalue_high=p,
        warnings=warnings,
    )


def undefined(*warnings: str) -> TestResult:
    """Return the answer of a test that cannot be made.

    Parameters
    ----------
    *warnings : str
        Why.

    Returns
    -------
    TestResult

    Examples
    --------
    >>> undefined().pvalue
    nan
    """
    return TestResult(statistic=math.nan, pvalue=math.nan, method="none", exact=False, warnings=warnings)


def at_margins(test: Callable[[float, Draws], float], low: float, high: float, draws: Draws) -> float:
    """Return the larger p-value of the two one-sided tests at the ends of a margin.

    Parameters
    ----------
    test : callable
        ``test(margin, draws)`` is a one-sided p-value against a true value of exactly `margin`.
    low, high : float
        The margin's ends.
    draws : Draws
        Their `alternative` is replaced.

    Returns
    -------
    float
        NaN where one of the tests is undefined.

    Examples
    --------
    >>> at_margins(lambda margin, draws: 0.01 if draws.alternative == "greater" else 0.2, -1, 1, Draws())
    0.2
    """
    above = test(low, dataclasses.replace(draws, alternative="greater"))
    below = test(high, dataclasses.replace(draws, alternative="less"))
    return math.nan if math.isnan(above + below) else max(above, below)


def wald_spread(values: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the precision-weighted sum of squares of K values around their weighted mean.

    Parameters
    ----------
    values, variances : ndarray, shape (..., K)
        Independent estimates and their variances.

    Returns
    -------
    ndarray, shape (...,)

    Examples
    --------
    >>> float(wald_spread(np.array([0.0, 2.0]), np.array([1.0, 1.0])))
    2.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = 1 / variances
        centre = (precision * values).sum(axis=-1, keepdims=True) / precision.sum(axis=-1, keepdims=True)
        return np.asarray((precision * (values - centre) ** 2).sum(axis=-1))


def welch_f(values: FloatArray, variances: FloatArray, rows: FloatArray) -> tuple[float, float]:
    """Return the weighted spread of K means and its p-value by Welch's F law.

    Parameters
    ----------
    values, variances, rows : ndarray, shape (K,)
        Means, their variances, and the (effective) rows behind each.

    Returns
    -------
    spread, pvalue : float

    Examples
    --------
    >>> round(welch_f(np.array([0.0, 2.0]), np.array([1.0, 1.0]), np.array([9.0, 9.0]))[1], 4)
    0.1765
    """
    k, precision = values.size, 1 / variances
    q = float(wald_spread(values, variances))
    lost = float(((1 - precision / precision.sum()) ** 2 / np.maximum(rows - 1, 1)).sum())
    ratio = q / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * lost)
    return q, float(special.fdtrc(k - 1, min((k**2 - 1) / (3 * lost), 1e12), ratio))
