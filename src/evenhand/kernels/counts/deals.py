"""Many random ways to deal rows out to groups of fixed sizes, fast.

A labelling is drawn approximately (each row by itself) and then a few uniformly chosen rows change
place until every group has its size. No row is treated differently from another at any step, so every
labelling with these sizes is equally likely: the draw is exact.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from evenhand.arrays import AnyArray, BoolArray, FloatArray, IntArray
from evenhand.kernels.shared.seeds import stream

# Resamples from a generator: ``work(generator, b)`` returns an array with first axis `b`.
Work = Callable[[np.random.Generator, int], AnyArray]

# Below this number of rows a plain shuffle is faster than draw-and-repair.
SHUFFLE_BELOW = 2500
# Random numbers are made in pieces that stay in cache.
CHUNK = 32_768
# Rows times resamples in one block.
BLOCK_CELLS = 4_000_000


def block_size(cells: int, budget: int = BLOCK_CELLS) -> int:
    """Return how many resamples make one block; a function of the problem only.

    Parameters
    ----------
    cells : int
        Numbers touched per resample.
    budget : int
        Numbers touched per block.

    Returns
    -------
    int
        Between 1 and 1024.

    Examples
    --------
    >>> block_size(100_000), block_size(10**7)
    (40, 1)
    """
    return max(1, min(1024, budget // max(cells, 1)))


@functools.cache
def _libraries() -> ThreadpoolController:
    """Return the handle on BLAS threads; looking for the libraries takes longer than many a test."""
    return ThreadpoolController()


def in_blocks(work: Work, n: int, size: int, *, seed: int, name: str, first: int = 0) -> AnyArray:
    """Run resampling work in fixed blocks, each with its own random stream, and join the answers.

    Parameters
    ----------
    n : int
        Resamples in all.
    size : int
        Resamples per block, from `block_size`: part of the definition of a result, so never that of a machine.
    seed, name
        See `evenhand.kernels.shared.seeds.stream`.
    first : int
        Blocks that are there already and left out.

    Examples
    --------
    >>> some = in_blocks(lambda rng, b: rng.random(b), 8, 4, seed=1, name="demo")
    >>> more = in_blocks(lambda rng, b: rng.random(b), 12, 4, seed=1, name="demo")
    >>> more.shape, bool((some == more[:8]).all())
    ((12,), True)
    """

    def run(place: int) -> AnyArray:
        return work(stream(seed, name, place), min(size, n - place * size))

    places = range(first, -(-n // size))
    # Products of tall, thin matrices gain nothing from BLAS threads.
    with _libraries().limit(limits=1, user_api="blas"):
        return np.concatenate([run(place) for place in places])


def random_labels(rng: np.random.Generator, sizes: Sequence[int], n: int) -> NDArray[np.uint8]:
    """Deal rows out to groups of given sizes, `n` times, every way equally likely.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    sizes : sequence of int, length K
        Rows per group; they add up to the number of rows.
    n : int
        How many times.

    Returns
    -------
    ndarray of uint8, shape (n, rows)
        The group of each row.

    Examples
    --------
    >>> labels = random_labels(np.random.default_rng(0), [2, 3, 1], 4)
    >>> [np.bincount(row).tolist() for row in labels]
    [[2, 3, 1], [2, 3, 1], [2, 3, 1], [2, 3, 1]]
    """
    if len(sizes) > 255:
        raise ValueError(f"at most 255 groups can be dealt at once; got {len(sizes)}")
    want = np.asarray(sizes, dtype=np.int64)  # (K,)
    rows = int(want.sum())
    if rows < SHUFFLE_BELOW or want.size == 1:
        line = np.repeat(np.arange(want.size, dtype=np.uint8), want)
        return rng.permuted(np.broadcast_to(line, (n, rows)), axis=1)
    edges = np.round(np.cumsum(want)[:-1] / rows * 65536)  # (K-1,)
    labels = np.empty((n, rows), dtype=np.uint8)
    flat = labels.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        # Four 16-bit numbers from each 64-bit word.
        raw = rng.integers(0, 2**64 - 1, size=-(-part.size // 4), dtype=np.uint64, endpoint=True)
        draw = raw.view(np.uint16)[: part.size]
        np.greater_equal(draw, np.uint16(min(edges[0], 65535)), out=part.view(np.bool_))
        for edge in edges[1:]:
            np.add(part, draw >= np.uint16(min(edge, 65535)), out=part, casting="unsafe")
    for row in labels:
        _repair(rng, row, want)
    return labels


def _repair(rng: np.random.Generator, row: NDArray[np.uint8], want: IntArray) -> None:
    """Move uniformly chosen rows from groups that are too large to groups that are too small."""
    if want.size == 2:
        have = np.array([0, np.count_nonzero(row)])
        have[0] = row.size - have[1]
    else:
        have = np.bincount(row, minlength=want.size)
    surplus = have - want
    freed = []
    for group in np.flatnonzero(surplus > 0):
        left = int(surplus[group])
        while left:
            tries = rng.integers(0, row.size, size=int(1.2 * left * row.size / (want[group] + left)) + 4)
            taken = np.unique(tries[row[tries] == group][:left])
            row[taken] = 255  # out of the running until it gets its new group
            freed.append(taken)
            left -= taken.size
    if freed:
        moved = np.concatenate(freed)
        short = np.maximum(-surplus, 0)
        target = np.repeat(np.arange(want.size, dtype=np.uint8), short)
        row[moved] = rng.permutation(target) if np.count_nonzero(short) > 1 else target


def random_subsets(rng: np.random.Generator, rows: int, chosen: int, n: int) -> BoolArray:
    """Choose `chosen` of `rows` rows, `n` times, every choice equally likely.

    Returns
    -------
    ndarray of bool, shape (n, rows)

    Examples
    --------
    >>> random_subsets(np.random.default_rng(0), 3000, 7, 2).sum(axis=1).tolist()
    [7, 7]
    """
    return random_labels(rng, [rows - chosen, chosen], n).view(np.bool_)


def all_subsets(rows: int, chosen: int) -> BoolArray:
    """List every choice of `chosen` of `rows` rows.

    Returns
    -------
    ndarray of bool, shape (binomial(rows, chosen), rows)

    Examples
    --------
    >>> all_subsets(4, 2).shape
    (6, 4)
    """
    total = math.comb(rows, chosen)
    index = np.fromiter(
        itertools.chain.from_iterable(itertools.combinations(range(rows), chosen)), dtype=np.int64, count=total * chosen
    ).reshape(total, chosen)
    masks = np.zeros((total, rows), dtype=np.bool_)
    np.put_along_axis(masks, index, True, axis=1)
    return masks


def random_counts(rng: np.random.Generator, counts: IntArray, sizes: Sequence[int], n: int) -> IntArray:
    """Deal rows out to groups when only the counts of equal rows matter.

    The cost depends on the number of distinct rows and not on the number of rows.

    Parameters
    ----------
    counts : ndarray of int, shape (D,) or (n, D)
        How many rows are equal to each distinct row, always or each time.
    rng, sizes, n
        As in `random_labels`.

    Returns
    -------
    ndarray of int64, shape (n, D, K)

    Examples
    --------
    >>> drawn = random_counts(np.random.default_rng(0), np.array([5, 3]), [2, 6], 3)
    >>> drawn.sum(axis=1).tolist(), drawn.sum(axis=2).tolist()
    ([[2, 6], [2, 6], [2, 6]], [[5, 3], [5, 3], [5, 3]])
    """
    left = np.broadcast_to(counts, (n, counts.shape[-1])).astype(np.int64)  # (n, D)
    out = np.empty((*left.shape, len(sizes)), dtype=np.int64)
    for k in range(len(sizes) - 1):
        if (
            k == 0 and counts.ndim == 1
        ):  # every line has the same counts: numpy's own loop, whose cost per row is O(D), not O(N)
            out[:, :, k] = rng.multivariate_hypergeometric(counts, sizes[k], size=n, method="marginals")
        else:
            out[:, :, k] = _hypergeometric(rng, left, sizes[k])
        left = left - out[:, :, k]
    out[:, :, -1] = left
    return out


def _hypergeometric(rng: np.random.Generator, left: IntArray, chosen: int) -> IntArray:
    """Draw `chosen` rows from each line of counts, one distinct row after the other."""
    n, distinct = left.shape
    drawn = np.zeros((n, distinct), dtype=np.int64)
    todo = np.full(n, chosen, dtype=np.int64)
    rest = left.sum(axis=1)
    for d in range(distinct - 1):
        rest = rest - left[:, d]
        drawn[:, d] = rng.hypergeometric(left[:, d], rest, todo)
        todo = todo - drawn[:, d]
    drawn[:, -1] = todo
    return drawn


def subset_sums(masks: BoolArray, features: FloatArray) -> FloatArray:
    """Add up the features of the chosen rows.

    Parameters
    ----------
    masks : ndarray of bool, shape (n, rows)
        Which rows are chosen.
    features : ndarray, shape (rows, p)
        What is added up.

    Returns
    -------
    ndarray, shape (n, p)

    Examples
    --------
    >>> subset_sums(np.array([[True, False, True]]), np.array([[1.0], [2.0], [4.0]])).tolist()
    [[5.0]]
    """
    n, rows = masks.shape
    out = np.empty((n, features.shape[1]))
    step = max(1, 2 * CHUNK // max(rows, 1))
    lines = np.empty((min(step, n), rows))
    for start in range(0, n, step):
        part = masks[start : start + step]
        lines[: part.shape[0]] = part
        np.matmul(lines[: part.shape[0]], features, out=out[start : start + part.shape[0]])
    return out
