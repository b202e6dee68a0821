"""Two groups made ready for the proxy audit: records in a fixed order, dealt out to folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.audits.proxy.options import ProxySetting
from evenhand.audits.proxy.stated import AtHand
from evenhand.errors import DataError
from evenhand.intake import Attribute
from evenhand.kernels.influence.design import Block, Design, make_design
from evenhand.kernels.influence.nuisance import spread
from evenhand.kernels.influence.row_moments import Population
from evenhand.kernels.influence.value_grids import refine
from evenhand.kernels.shared.seeds import stream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair(Population):
    """A group (inside) and its reference as records; identical rows are one record."""

    count: IntArray
    design: Design  # how features became columns
    # The features over all their values, for what their distribution does; see `kernels.influence.value_grids`.
    fine: tuple[Block, ...]
    # Features that are the group itself under any name: one value in the group, another in the reference.
    own: tuple[str, ...]
    y: FloatArray  # (records,): outcome, NaN when there is none
    score: FloatArray  # (records,): the score behind a decision; the prediction itself when there is none
    origin: IntArray  # (records,): a row of the data with these features
    fold: IntArray  # (records,): fold of the record, sorted

    @property
    def candidates(self) -> tuple[Block, ...]:
        """The features that may carry part of a gap: all but the group itself."""
        return tuple(b for b in self.design.blocks if b.name not in self.own)

    @property
    def fine_candidates(self) -> tuple[Block, ...]:
        """The same features over all their values."""
        return tuple(b for b in self.fine if b.name not in self.own)

    @property
    def own_columns(self) -> list[int]:
        """The matrix columns of the group itself."""
        return [j for b in self.design.blocks if b.name in self.own for j in b.where]

    @property
    def hard(self) -> bool:
        """Whether predictions are decisions rather than scores."""
        return bool(np.all((self.h == 0) | (self.h == 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predicted:
    """The rows at hand with what the model, or the data, say of each."""

    at_hand: AtHand
    # h, score (rows,): predictions, and the scores behind decisions.
    h: FloatArray
    score: FloatArray


def make_pair(people: Predicted, attribute: Attribute, code: int, base: int, options: ProxySetting) -> Pair:
    """Code the rows of two groups, join identical ones and deal them out to folds.

    Parameters
    ----------
    people : Predicted
        The rows at hand.
    attribute : Attribute
        The attribute audited.
    code, base : int
        Codes of the group and of its reference.
    options : ProxySetting
        Folds, blocks and categorical columns. The deal is the same for any seed: estimates do not depend on it.

    Returns
    -------
    Pair
    """
    data, rows = people.at_hand.data, people.at_hand.rows(attribute.name, code, base)
    inside, count = data.attribute(attribute.name).codes[rows] == code, data.count[rows]
    h, score = people.h[rows], people.score[rows]
    columns = {name: np.asarray(v)[rows] for name, v in data.features.items()}
    unit = np.ones(len(rows)) if data.weight is None else data.weight[rows]
    design = make_design(columns, count * unit, inside, blocks=options.blocks, categorical=options.categorical)
    if not design.blocks:
        raise DataError("No feature takes more than one value in these groups. Name features that vary in `features=`.")
    X = design.encode(columns)
    own = set(attribute.name.split(" × "))
    y = np.full(len(rows), -1.0)
    if data.outcome is not None and data.outcome_kind == "binary":
        y = data.outcome[rows]
    # Predictions part equal rows but do not order them: their last bits differ between machines.
    key = _keys(X, np.column_stack([y, unit, inside]))
    order = np.lexsort((score, h, key))
    parts = [values[order] for values in (key, h, score)]
    first = np.flatnonzero(np.concatenate(([True], np.any([v[1:] != v[:-1] for v in parts], axis=0))))
    pick = order[first]
    stratum = 2 * inside[pick].astype(np.int64) + (y[pick] > 0.5)
    record, fold, share = spread(np.add.reduceat(count[order], first), stratum, options.folds, stream(0, "proxy/folds"))
    chosen = pick[record]
    return Pair(
        design=design,
        fine=refine(design, columns, count * unit, inside),
        own=tuple(b.name for b in design.blocks if set(b.columns) & own or _separates(b, X, inside)),
        X=X[chosen],
        inside=inside[chosen],
        y=np.where(y[chosen] < 0, np.nan, y[chosen]),
        h=h[chosen],
        eta=np.zeros(len(chosen)),  # until it is learned
        score=score[chosen],
        count=share,
        unit=unit[chosen],
        origin=rows[chosen],
        fold=fold,
    )


def _separates(block: Block, X: FloatArray, inside: BoolArray) -> bool:
    """Whether a feature has one value in the group and another one in the reference."""
    part = X[:, list(block.where)]
    first = part[inside]
    if not len(first) or (first != first[0]).any():
        return False
    other = part[~inside]
    return len(other) > 0 and bool((other == other[0]).all()) and bool((first[0] != other[0]).any())


def distinct(X: FloatArray) -> int:
    """Count the different rows."""
    return int(np.unique(_keys(X, X[:, :0])).size)


def _keys(X: FloatArray, extra: FloatArray) -> NDArray[np.uint64]:
    """Hash each row's content: rows with equal content meet, and sorting by it forgets their order."""
    out = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in (*X.T, *extra.T):
            bits = (np.ascontiguousarray(column) + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
            out = (out ^ (bits ^ (bits >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
            out ^= out >> np.uint64(32)
    return out
