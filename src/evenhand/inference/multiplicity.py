"""Corrections for testing many hypotheses at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError, near_matches

FloatArray = NDArray[np.float64]

METHODS = ("holm", "bonferroni", "bh", "none")
# What a plan of several audits may ask for: the methods above, and two that know which audit a p-value is from.
CORRECTIONS = (*METHODS[:3], "gatekeeping", "max-t", "none")

_ROUNDING = 1e-12


def adjust(pvalues: ArrayLike, method: str = "holm") -> FloatArray:
    """Adjust p-values for their number; compare the result with the error rate of the whole family.

    Parameters
    ----------
    pvalues : array_like
        Raw p-values. NaN is a test that was not made: it stays NaN and does not count.
    method : {"holm", "bonferroni", "bh", "none"}
        Holm (1979) holds the family-wise error under any dependence and is never worse than
        Bonferroni; "bh" (Benjamini and Hochberg 1995) holds the false discovery rate, under
        independence or positive dependence.

    Returns
    -------
    ndarray
        Same shape, between the raw p-value and 1, in the same order as the raw ones.

    Examples
    --------
    >>> adjust([0.01, 0.04, float("nan"), 0.03]).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    if method not in METHODS:
        raise UsageError(f"Unknown correction `{method}`.{near_matches(method, METHODS)}")
    raw = np.asarray(pvalues, dtype=np.float64)
    if np.any((raw < 0) | (raw > 1)):
        raise ValueError("p-values must lie between 0 and 1.")
    out = raw.copy()
    made = ~np.isnan(raw)
    known = raw[made]
    m = known.size
    if method == "none" or m == 0:
        return out
    if method == "bonferroni":
        out[made] = np.minimum(known * m, 1.0)
        return out
    order = np.argsort(known, kind="stable")
    rank = np.arange(1, m + 1)
    if method == "holm":
        stepped = np.maximum.accumulate(known[order] * (m + 1 - rank))
    else:
        stepped = np.minimum.accumulate((known[order] * m / rank)[::-1])[::-1]
    result = np.empty(m)
    result[order] = np.minimum(stepped, 1.0)
    out[made] = result
    return out


def gatekeeping(pvalues: ArrayLike, family: ArrayLike, keep: float = 0.5) -> FloatArray:
    """Adjust p-values of families that are tested in order: a family opens as the ones before it reject.

    The graphical procedure of Bretz, Maurer, Brannath and Posch (2009) [bretz2009], with adjusted p-values: all
    error is first shared by the hypotheses of the first family. A rejected hypothesis keeps part of its share in its
    own family (so that it steps down as Holm's does) and hands the rest to the next; a family that is wholly rejected
    hands on all. This holds the family-wise error in the strong sense under any dependence.

    Parameters
    ----------
    pvalues : array_like, shape (m,)
        Raw p-values. NaN is a test that was not made: it stays NaN and does not count.
    family : array_like of int, shape (m,)
        Each one's family; smaller numbers come first.
    keep : float
        The part of a rejected hypothesis' share that stays in its family while others are left there.

    Returns
    -------
    ndarray, shape (m,)
        Compare with the error rate of all families together.

    Examples
    --------
    >>> gatekeeping([0.01, 0.04, 0.02], [0, 0, 1]).round(4).tolist()
    [0.02, 0.0533, 0.0533]
    """
    raw = np.asarray(pvalues, dtype=np.float64)
    code = np.asarray(family)
    out = raw.copy()
    names = [f for f in np.unique(code) if np.any(~np.isnan(raw[code == f]))]
    queues = [[i for i in np.argsort(raw, kind="stable") if code[i] == f and not np.isnan(raw[i])] for f in names]
    k = len(queues)
    # Members of a family are alike, so one number per family, and per pair of families, describes the graph.
    share = np.zeros(k)
    share[:1] = [1 / len(q) for q in queues[:1]]
    edge = np.zeros((k, k))  # from one member of a family to one member of another
    for f, queue in enumerate(queues):
        stays = 0.0 if len(queue) == 1 else 1.0 if f == k - 1 else keep
        if len(queue) > 1:
            edge[f, f] = stays / (len(queue) - 1)
        if f < k - 1:
            edge[f, f + 1] = (1 - stays) / len(queues[f + 1])
    reached = 0.0
    while any(queues):
        need = [raw[q[0]] / share[f] if q and share[f] > 0 else np.inf for f, q in enumerate(queues)]
        f = int(np.argmin(need))
        if not need[f] < np.inf:
            break
        reached = max(reached, min(float(need[f]), 1.0), float(raw[queues[f][0]]))
        out[queues[f].pop(0)] = reached
        share = share + share[f] * edge[f]
        back = 1 - edge[:, f] * edge[f]  # no way back to itself
        edge = (edge + np.outer(edge[:, f], edge[f])) / np.where(back > _ROUNDING, back, np.inf)[:, None]
    for queue in queues:
        out[queue] = 1.0
    return out


def share_out(adjusted: ArrayLike, block: ArrayLike) -> FloatArray:
    """Join blocks of p-values, each already adjusted inside its block, into one family.

    Each block gets error in proportion to its size. When a block is wholly rejected the others share its part,
    which is a closed test: the blocks that are left always have at least what they had. The family-wise error
    holds in the strong sense when it does inside each block, under any dependence between blocks.

    Parameters
    ----------
    adjusted : array_like, shape (m,)
        Adjusted inside the block; NaN does not count.
    block : array_like of int, shape (m,)
        Each one's block.

    Returns
    -------
    ndarray, shape (m,)

    Examples
    --------
    >>> share_out([0.01, 0.02, 0.03, 0.2], [0, 0, 1, 1]).tolist()
    [0.02, 0.04, 0.04, 0.2]
    """
    inner = np.asarray(adjusted, dtype=np.float64)
    code = np.asarray(block)
    made = ~np.isnan(inner)
    out = np.where(made, 1.0, np.nan)
    left = list(np.unique(code[made]))
    reached = 0.0
    while left:
        total = sum(np.sum(made & (code == b)) for b in left)
        done = {}
        for b in left:
            mine = made & (code == b)
            scaled = np.minimum(inner[mine] * (total / np.sum(mine)), 1.0)
            out[mine] = np.minimum(out[mine], np.maximum(scaled, reached))
            done[b] = float(scaled.max())
        first = min(left, key=lambda b: (done[b], b))
        reached = max(reached, done[first])
        left.remove(first)
    return out
