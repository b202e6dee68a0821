"""Two groups made ready for the proxy audit: records in a fixed order, dealt out to folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.kernels.influence.design import Block, Design, make_design
from evenhand.kernels.influence.nuisance import spread
from evenhand.kernels.influence.value_grids import refine
from evenhand.kernels.shared.seeds import stream

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """A group and its reference as records; identical rows are one record.

    Parameters
    ----------
    design : Design
        How features became columns.
    fine : tuple of Block
        The features over all their values, for what their distribution does; see `kernels.influence.value_grids`.
    own : tuple of str
        Features that are the group itself under any name: one value in the group, another in the reference.
    X : ndarray, shape (records, columns)
        Coded features.
    inside : ndarray of bool, shape (records,)
        Records of the group; the others are the reference's.
    y, h : ndarray, shape (records,)
        Outcome (NaN when there is none) and prediction.
    score : ndarray, shape (records,)
        The score behind a decision; the prediction itself when there is none.
    count : ndarray of int, shape (records,)
        Rows each record stands for.
    unit : ndarray, shape (records,)
        Sampling weight of each of its rows.
    origin : ndarray of int, shape (records,)
        A row of the data with these features.
    fold : ndarray of int, shape (records,)
        Fold of the record, sorted.
    """

    design: Design
    fine: tuple[Block, ...]
    own: tuple[str, ...]
    X: FloatArray
    inside: BoolArray
    y: FloatArray
    h: FloatArray
    score: FloatArray
    count: IntArray
    unit: FloatArray
    origin: IntArray
    fold: IntArray

    @property
    def weight(self) -> FloatArray:
        """Weight of each record."""
        out: FloatArray = self.count * self.unit
        return out


def make_pair(
    features: Mapping[str, NDArray[Any]],
    *,
    inside: BoolArray,
    used: BoolArray,
    y: FloatArray | None,
    h: FloatArray,
    score: FloatArray,
    count: IntArray,
    unit: FloatArray | None,
    n_folds: int,
    blocks: Mapping[str, Sequence[str]] | None,
    categorical: Sequence[str],
    own: Sequence[str] = (),
) -> Pair:
    """Code the rows of two groups, join identical ones and deal them out to folds.

    Parameters
    ----------
    features : mapping of str to ndarray
        Columns of all rows.
    inside, used : ndarray of bool, shape (rows,)
        Rows of the group; rows of the group or its reference.
    y, h, score : ndarray, shape (rows,)
        Outcome or None, prediction, and the score behind it.
    count : ndarray of int, shape (rows,)
        Rows each record stands for.
    unit : ndarray or None
        Sampling weight.
    n_folds : int
        Folds for cross-fitting. The deal is the same for any seed: estimates do not depend on it.
    blocks, categorical
        See `make_design`.
    own : sequence of str
        Columns that record the group.

    Returns
    -------
    Pair
    """
    rows = np.flatnonzero(used)
    columns = {name: np.asarray(v)[rows] for name, v in features.items()}
    weights = np.ones(len(rows)) if unit is None else unit[rows]
    design = make_design(columns, count[rows] * weights, inside[rows], blocks=blocks, categorical=categorical)
    if not design.blocks:
        raise DataError("No feature takes more than one value in these groups. Name features that vary in `features`.")
    X = design.encode(columns)
    itself = tuple(b.name for b in design.blocks if set(b.columns) & set(own) or _separates(b, X, inside[rows]))
    outcome = np.full(len(rows), -1.0) if y is None else y[rows]
    # Predictions part equal rows but do not order them: their last bits differ between machines.
    key = _keys(X, np.column_stack([outcome, weights, inside[rows]]))
    order = np.lexsort((score[rows], h[rows], key))
    parts = [values[order] for values in (key, h[rows], score[rows])]
    first = np.flatnonzero(np.concatenate(([True], np.any([v[1:] != v[:-1] for v in parts], axis=0))))
    counts = np.add.reduceat(count[rows][order], first)
    pick = order[first]
    stratum = 2 * inside[rows][pick].astype(np.int64) + (outcome[pick] > 0.5)
    record, fold, share = spread(counts, stratum, n_folds, stream(0, "proxy/folds"))
    chosen = pick[record]
    return Pair(
        design=design,
        fine=refine(design, columns, count[rows] * weights, inside[rows]),
        own=itself,
        X=X[chosen],
        inside=inside[rows][chosen],
        y=np.where(outcome[chosen] < 0, np.nan, outcome[chosen]),
        h=h[rows][chosen],
        score=score[rows][chosen],
        count=share,
        unit=weights[chosen],
        origin=rows[chosen],
        fold=fold,
    )


def _separates(block: Block, X: FloatArray, inside: BoolArray) -> bool:
    """Whether a feature has one value in the group and another one in the reference."""
    part = X[:, list(block.where)]
    first, other = part[inside], part[~inside]
    if not (len(first) and len(other)):
        return False
    one = bool((first == first[0]).all()) and bool((other == other[0]).all())
    return one and bool((first[0] != other[0]).any())


def _keys(X: FloatArray, extra: FloatArray) -> NDArray[np.uint64]:
    """Hash each row's content: rows with equal content meet, and sorting by it forgets their order."""
    out = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in (*X.T, *extra.T):
            bits = (np.ascontiguousarray(column) + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
            out = (out ^ (bits ^ (bits >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
            out ^= out >> np.uint64(32)
    return out
