"""Steps that the permutation tests of rows share: deal rows out, draw the law, or say that it cannot be listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.inference.reference import Drawn
from evenhand.inference.samples import Draws
from evenhand.kernels.counts.deals import Work, block_size, random_counts, random_labels, random_subsets, subset_sums
from evenhand.kernels.counts.sparse_draws import SHARE, random_picks

# Numbers touched by the largest full enumeration.
ENUMERATE = 4_000_000
NO_GLOBAL = "permutations of more than two groups are not listed"
# A distinct record costs about as much to draw as this many rows.
ROWS_PER_RECORD = 20


def dealt_sums(
    features: FloatArray,
    counts: IntArray,
    sizes: Sequence[int],
    draws: Draws,
    statistic: Callable[[FloatArray], FloatArray],
    purpose: str,
    small: int | None = None,
) -> Drawn:
    """Return the law of a statistic of group sums over random permutations of the rows.

    Parameters
    ----------
    features : ndarray, shape (D, p)
        What each distinct row adds to its group's sum.
    counts : ndarray of int, shape (D,)
        Rows equal to each distinct row.
    sizes : sequence of int, length K
        Rows of each group; of two groups the smaller comes first, and only its rows are drawn.
    draws : Draws
        Number, seed and name.
    statistic : callable
        Takes sums of shape (b, K, p), returns shape (b,).
    purpose : str
        Part of the random stream's name.
    small : int, optional
        Of more than two groups, so many at the front are drawn row by row; the sums of the others come from their
        normal limit, given what is left, or are what is left if there is one other. By default every row is dealt.

    Examples
    --------
    >>> law = dealt_sums(np.array([[1.0], [2.0]]), np.array([3, 3]), [2, 4], Draws(n_resamples=5, method="permutation"),
    ...                  lambda sums: sums.sum(axis=(1, 2)), "demo")
    >>> law.draws(5).tolist()
    [9.0, 9.0, 9.0, 9.0, 9.0]
    """
    rows = int(counts.sum())
    total = counts @ features  # (p,)
    few = counts.size * ROWS_PER_RECORD <= (sizes[0] if len(sizes) == 2 else rows)
    expanded = np.empty((0, 0)) if few else np.ascontiguousarray(np.repeat(features, counts, axis=0).T)  # (p, rows)
    single, starts = sum(sizes[:small]), np.cumsum([0, *sizes])[:small]
    root = np.empty((0, 0)) if small is None else _covariance_root(features, counts)

    def work(rng: np.random.Generator, b: int) -> FloatArray:
        sums = np.empty((b, len(sizes), features.shape[1]))
        if few:
            dealt = random_counts(rng, counts, sizes, b)  # (b, D, K)
            sums[...] = dealt.transpose(0, 2, 1).astype(np.float64) @ features
        elif len(sizes) == 2 and sizes[0] > SHARE * rows:
            sums[:, 0] = subset_sums(random_subsets(rng, rows, sizes[0], b), expanded.T)
            sums[:, 1] = total - sums[:, 0]
        elif len(sizes) == 2:
            picks = random_picks(rng, rows, sizes[0], b)  # (b, size of the first)
            for j, column in enumerate(expanded):
                sums[:, 0, j] = column[picks].sum(axis=1)
            sums[:, 1] = total - sums[:, 0]
        elif small is not None:
            left = np.broadcast_to(total, (b, total.size))
            if small:
                line = random_picks(rng, rows, single, b)
                if small > 1:  # picks are sorted: which of the small groups gets which row is drawn as well
                    line = rng.permuted(line, axis=1)
                for j, column in enumerate(expanded):
                    sums[:, :small, j] = np.add.reduceat(column[line], starts, axis=1)
                left = total - sums[:, :small].sum(axis=1)
            sums[:, small:] = _limit_sums(rng, left, root, sizes[small:])
        else:
            labels = random_labels(rng, sizes, b)
            for k in range(len(sizes)):
                sums[:, k] = subset_sums(labels == k, expanded.T)
        return statistic(sums)

    if few:
        cost, size = ROWS_PER_RECORD * counts.size, block_size(counts.size * len(sizes) * 8)
    elif len(sizes) == 2:
        cost = sizes[0] if sizes[0] <= SHARE * rows else rows
        size = block_size(2 * cost, 400_000)
    elif small is not None:
        cost = single if single <= SHARE * rows else rows
        size = block_size(2 * cost + 20 * len(sizes), 400_000)
    else:
        cost, size = rows * len(sizes), block_size(rows)
    return drawn(work, draws, cost, size, purpose)


def _covariance_root(features: FloatArray, counts: IntArray) -> FloatArray:
    """Return a matrix (p, p) that turns independent normal numbers into ones with the rows' covariance."""
    rows = counts.sum()
    centred = features - counts @ features / rows
    values, vectors = np.linalg.eigh((centred * counts[:, None]).T @ centred / rows)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


def _limit_sums(rng: np.random.Generator, left: FloatArray, root: FloatArray, sizes: Sequence[int]) -> FloatArray:
    """Return the sums (b, K, p) of groups among which rows with these sums (b, p) are dealt, by their normal limit."""
    n = np.array(sizes, dtype=np.float64)[:, None]  # (K, 1)
    share = n / n.sum()
    noise = np.sqrt(n) * (rng.standard_normal((left.shape[0], len(sizes), left.shape[1])) @ root)
    # Sums over all groups are fixed: take the noise's total back in proportion to the sizes.
    return np.asarray(share * (left[:, None] - noise.sum(axis=1, keepdims=True)) + noise)


def dealt_masks(rng: np.random.Generator, sizes: Sequence[int], b: int) -> list[BoolArray]:
    """Deal rows out at random to groups of these sizes, `b` times; one mask (b, rows) for each group."""
    if len(sizes) == 2:
        first = random_subsets(rng, sum(sizes), sizes[0], b)
        return [first, ~first]
    labels = random_labels(rng, sizes, b)
    return [labels == k for k in range(len(sizes))]


def drawn(work: Work, draws: Draws, cost: int, block: int, purpose: str) -> Drawn:
    """Return the law of a statistic by random draws, as many as are allowed when each touches `cost` rows."""
    return Drawn(work, cap=draws.most(cost), block=block, seed=draws.seed, name=f"{draws.name}/{purpose}")


def refuse_exact(draws: Draws, why: str = "there are too many permutations to list") -> None:
    """Raise when an exact test was asked for and random permutations are about to be drawn."""
    if draws.method == "exact":
        raise UsageError(f"`method` is `exact`, but {why}. Use `auto` or `permutation`.")


def welch_law(q: float, variances: FloatArray, rows: FloatArray) -> float:
    """Return the p-value of a weighted spread of K means by Welch's F law.

    Parameters
    ----------
    q : float
        The spread.
    variances, rows : ndarray, shape (K,)
        Variances of the means, and the (effective) rows behind each.

    Examples
    --------
    >>> round(welch_law(2.0, np.array([1.0, 1.0]), np.array([9.0, 9.0])), 4)
    0.1765
    """
    k, precision = variances.size, 1 / variances
    lost = float(((1 - precision / precision.sum()) ** 2 / np.maximum(rows - 1, 1)).sum())
    ratio = q / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * lost)
    freedom = 1e12 if lost == 0 else min((k**2 - 1) / (3 * lost), 1e12)  # no uncertainty of the variances at all
    return float(special.fdtrc(k - 1, freedom, ratio))
