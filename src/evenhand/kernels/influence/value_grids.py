"""Values at which the mean over a sample is read off as a function of one feature, close enough to integrate it.

A score runs a number through a few usual values. To say what a *distribution* of the number does, its whole range
counts: the rare large values as well as the usual ones. A grid holds all values where there are few, and otherwise
the frequent values, quantiles of the others from the smallest to the largest, and the usual values of the score (so
that a model is asked once for both). Between grid points the function is taken as straight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.kernels.influence.design import Block, Design
from evenhand.kernels.shared.ranks import weighted_ranks

# A number with at most this many values is read at all of them.
ALL = 32
# A value that has this part of the rows is a grid point of its own.
FREQUENT = 1 / 16
SPOTS = (0.0, 0.005, 0.015, 0.03, *(k / 32 for k in range(2, 31)), 0.97, 0.985, 0.995, 1.0)


def refine(
    design: Design, features: Mapping[str, NDArray[Any]], weight: FloatArray, inside: NDArray[np.bool_]
) -> tuple[Block, ...]:
    """Return the blocks of a design with the levels of numbers fine enough to integrate over.

    Parameters
    ----------
    design : Design
        The blocks, with the levels that scores use.
    features : mapping of str to ndarray
        Raw columns, the sample's and the one it is compared with.
    weight : ndarray, shape (rows,)
        Weights of the rows.
    inside : ndarray of bool, shape (rows,)
        Rows of the sample; a grid stays inside the range they have.

    Returns
    -------
    tuple of Block
        In the order of ``design.blocks``; blocks that are no numbers as they are.

    Examples
    --------
    >>> from evenhand.kernels.influence.design import make_design
    >>> gain = {"gain": np.concatenate([np.zeros(300), np.arange(1.0, 101.0)])}
    >>> inside = np.ones(400, dtype=bool)
    >>> design = make_design(gain, np.ones(400), inside)
    >>> len(design.blocks[0].levels), len(refine(design, gain, np.ones(400), inside)[0].levels) > 16
    (3, True)
    """
    half = np.zeros(len(weight))
    for side in (inside, ~inside):  # both samples count alike
        if weight[side].sum() > 0:
            half[side] = weight[side] / weight[side].sum()
    of = {c.name: c for c in design.columns}
    out = []
    for block in design.blocks:
        if not block.graded:
            out.append(block)
            continue
        (name,) = block.columns
        raw = np.asarray(features[name])
        part = of[name].encode(raw)
        absent = part[:, -1] == 1 if block.gaps else np.zeros(len(part), dtype=bool)
        within = part[inside & ~absent, 0]
        usable = np.flatnonzero(~absent & (part[:, 0] >= within.min()) & (part[:, 0] <= within.max()))
        usual = block.levels[block.levels[:, -1] == 0, 0] if block.gaps else block.levels[:, 0]
        rows = _grid(part[:, 0], usable, half, usual).tolist()
        if block.gaps and (absent & inside).any():
            rows.append(int(np.flatnonzero(absent & inside)[0]))
        out.append(
            replace(
                block, levels=part[rows], labels=tuple(f"{raw[i]:g}" for i in rows), raw=tuple((raw[i],) for i in rows)
            )
        )
    return tuple(out)


def _grid(value: FloatArray, rows: NDArray[np.int64], weight: FloatArray, usual: FloatArray) -> NDArray[np.int64]:
    """Pick one row for each grid point, in rising order."""
    distinct, first, code = np.unique(value[rows], return_index=True, return_inverse=True)
    if distinct.size > ALL:
        mass: FloatArray = np.bincount(code.ravel(), weights=weight[rows], minlength=distinct.size).astype(np.float64)
        kept = (mass >= FREQUENT * mass.sum()) | np.isin(distinct, usual)
        rest = np.flatnonzero(mass < FREQUENT * mass.sum())
        if rest.size:
            kept[rest[weighted_ranks(mass[rest], SPOTS)]] = True
        first = first[kept]
    return rows[first]
