"""Corrections for testing many hypotheses at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError, near_matches

METHODS = ("holm", "bonferroni", "bh", "none")
# What a plan of several audits may ask for: the methods above, and two that know which audit a p-value is from.
CORRECTIONS = (*METHODS[:3], "gatekeeping", "max-t", "none")

# Of a rejected hypothesis' part, what leaves a family that opens no other while members are left there; the "epsilon
# edges" of [bretz2009], by which all of it leaves with the last member.
_LAST = 1e-9


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
    order = np.argsort(known, kind="stable")
    rank = np.arange(1, m + 1)
    if method == "bonferroni":
        stepped = known[order] * m
    elif method == "holm":
        stepped = np.maximum.accumulate(known[order] * (m + 1 - rank))
    else:
        stepped = np.minimum.accumulate((known[order] * m / rank)[::-1])[::-1]
    out.flat[np.flatnonzero(made)[order]] = np.minimum(stepped, 1.0)
    return out


def gatekeeping(
    pvalues: ArrayLike,
    family: Sequence[str],
    *,
    shares: Mapping[str, float],
    opens: Mapping[str, Sequence[str]] | None = None,
    keep: float = 0.5,
) -> FloatArray:
    """Adjust p-values of families of which some begin with a share of the error and others must be opened.

    The graphical procedure of Bretz, Maurer, Brannath and Posch (2009) [bretz2009], with adjusted p-values. Each
    entry family begins with its share, split evenly over its hypotheses. A rejected hypothesis hands its part to the
    others of its family, as Holm's does; where its family opens others, a fraction ``1 - keep`` goes to those. A family
    that is wholly rejected hands on all it had: to the families it opens, an opened one to its fellows, and after
    them to the entry families. No error is lost. This holds the family-wise error in the strong sense under any
    dependence.

    Parameters
    ----------
    pvalues : array_like, shape (m,)
        Raw p-values. NaN is a test that was not made: it stays NaN and does not count.
    family : sequence of str, length m
        Each one's family.
    shares : mapping of str to float
        Entry families and their shares, in any unit: they are divided by the sum of those that have a p-value.
    opens : mapping of str to sequence of str, optional
        For an entry family, those that its rejections open.
    keep : float
        The fraction of a rejected hypothesis' part that stays in its family while others are left there.

    Returns
    -------
    ndarray, shape (m,)
        Compare with the error rate of all families together.

    Examples
    --------
    >>> gatekeeping([0.01, 0.04, 0.02], ["a", "a", "b"], shares={"a": 1}, opens={"a": ["b"]}).round(4).tolist()
    [0.02, 0.0533, 0.0533]
    """
    raw = np.asarray(pvalues, dtype=np.float64)
    out = raw.copy()
    order = [int(i) for i in np.argsort(raw, kind="stable") if not np.isnan(raw[i])]
    names = list(dict.fromkeys(family[i] for i in sorted(order)))
    queues = [[i for i in order if family[i] == name] for name in names]
    # Members of a family are alike, so one number per family, and per pair of families, describes the graph.
    share = np.array([shares.get(name, 0.0) / len(q) for name, q in zip(names, queues, strict=True)])
    total = sum(shares.get(name, 0.0) for name in names)
    share = share / total if total > 0 else share
    edge = _edges(names, [len(q) for q in queues], shares, opens or {}, keep)
    reached = 0.0
    while any(queues):
        need = [raw[q[0]] / share[f] if q and share[f] > 0 else np.inf for f, q in enumerate(queues)]
        f = int(np.argmin(need))
        if not need[f] < np.inf:
            break
        reached = max(reached, min(float(need[f]), 1.0), float(raw[queues[f][0]]))
        out[queues[f].pop(0)] = reached
        share = share + share[f] * edge[f]
        edge = _without(edge, f, np.array([len(q) for q in queues]))
    for queue in queues:
        out[queue] = 1.0
    return out


def _without(edge: FloatArray, f: int, left: IntArray) -> FloatArray:
    """Return what members hand on when one of family `f` is gone and its part goes where it would have handed it."""
    others = left[None, :] - np.eye(len(left))  # of whom a member of each family may give to, itself apart
    # One minus the way there and back, as a sum of what goes elsewhere: no digits are lost.
    elsewhere = (others * edge).sum(1) + edge[:, f] * (others * edge[f]).sum(1)
    return np.asarray((edge + np.outer(edge[:, f], edge[f])) / np.where(elsewhere > 0, elsewhere, np.inf)[:, None])


def _edges(
    names: Sequence[str],
    sizes: Sequence[int],
    shares: Mapping[str, float],
    opens: Mapping[str, Sequence[str]],
    keep: float,
) -> FloatArray:
    """Return what a rejected member of one family hands to one member of another, each row's total being 1."""
    k = len(names)
    edge = np.zeros((k, k))
    for f, name in enumerate(names):
        entry = shares.get(name, 0.0) > 0
        opened = [h for h in range(k) if names[h] in opens.get(name, ()) and h != f]
        if sizes[f] > 1:
            edge[f, f] = keep if opened else 1.0
        for h in opened:
            edge[f, h] = (1 - keep) / len(opened)
        for h in range(k):
            if h == f or opened:
                continue
            if (shares.get(names[h], 0.0) > 0) is entry:  # its fellows, once its own are done
                edge[f, h] = _LAST
            elif not entry:  # the entry families, once its fellows are done too
                edge[f, h] = _LAST**2
        if edge[f].sum() > 0:
            edge[f] /= edge[f].sum()
        edge[f] /= [max(n - (h == f), 1) for h, n in enumerate(sizes)]
    return edge


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
