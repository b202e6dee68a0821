"""Mixed columns to a matrix and back: what a model is fitted on, and the values a feature can take.

A block is what the user calls one feature: a number, a category (one 0/1 column per level but the first),
a yes/no, or several columns that belong together, such as the dummies of a one-hot coding. A number with
many values may bend: beside its own column it gets one that starts to rise at each quartile, since a linear
model that misses a curve lends the effect to innocent features. Missing numbers get the centre and a 0/1
column of their own; a missing category is a level. `levels` lists the
values a block takes on the sample at hand: all of them, or observed quantiles of a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.kernels.shared.ranks import weighted_ranks

QUANTILES = (0.05, 0.15, 0.25, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95)
RARE_QUANTILES = (0.25, 0.5, 0.75)
# A number with at most this many values is toggled over all of them, and does not bend.
FEW = 9
KNOTS = (0.25, 0.5, 0.75)
# Joined columns with more patterns than this are toggled over the most frequent ones.
MOST_PATTERNS = 32
# Grid points kept of a number in a pair, spread over its range.
JOINED = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """How one raw column becomes numbers."""

    name: str  # the raw column
    kind: str  # "number" or "category": numbers are shifted and scaled; categories become 0/1 columns
    # centre, scale: for numbers: stored as (value - centre) / scale.
    centre: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()  # for categories: all levels, the first without a column of its own
    missing: bool = False  # whether a 0/1 column marks missing numbers
    knots: tuple[float, ...] = ()  # for numbers: where the slope may change, on the stored scale

    @property
    def width(self) -> int:
        """Number of matrix columns."""
        return len(self.categories) - 1 if self.kind == "category" else 1 + len(self.knots) + self.missing

    def encode(self, values: NDArray[Any]) -> FloatArray:
        """Return the matrix columns, shape (rows, width); a value that was not there before is refused."""
        out, unseen = self.encode_new(values)
        strange = np.flatnonzero(unseen)
        if strange.size and self.kind == "category":
            name = _names(np.asarray(values)[strange[:1]])[0]
            raise DataError(
                f"Feature `{self.name}` has the value `{name}` in {strange.size} rows, which was not "
                f"there before. Known: {', '.join(f'`{c}`' for c in self.categories[:10])}. Leave these rows out."
            )
        if strange.size:
            raise DataError(
                f"Feature `{self.name}` is missing in {strange.size} rows, and it was never missing before. "
                "Leave these rows out, or fill them."
            )
        return out

    def encode_new(self, values: NDArray[Any]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the matrix columns, and the rows whose value was not there before: they count as the first one."""
        out = np.zeros((len(values), self.width), order="F")  # columns are written, and read again, one by one
        if self.kind == "category":
            names = _names(values)
            for k, category in enumerate(self.categories[1:]):
                out[:, k] = names == category
            return out, (out.sum(axis=1) == 0) & (names != self.categories[0])
        numbers = np.asarray(values, dtype=np.float64)
        absent = np.isnan(numbers)
        value = (numbers - self.centre) / self.scale
        value[absent] = 0.0
        out[:, 0] = value
        for k, knot in enumerate(self.knots):
            np.maximum(value - knot, 0.0, out=out[:, 1 + k])
        if self.missing:
            out[:, -1] = absent
            return out, np.zeros(len(out), dtype=bool)
        return out, absent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """One feature: its columns in the matrix and the values it takes."""

    name: str  # the user's name for it
    columns: tuple[str, ...]  # the raw columns
    where: tuple[int, ...]  # its matrix columns
    levels: FloatArray  # (levels, width): the values it is toggled over, coded
    labels: tuple[str, ...]  # the same values in words
    raw: tuple[tuple[Any, ...], ...]  # the same values as raw entries, one per raw column
    graded: bool = False  # whether `levels` are grid points of a number with values in between
    gaps: bool = False  # whether the last column marks missing numbers

    @property
    def binary(self) -> bool:
        """Whether it is a single 0/1 column."""
        return len(self.where) == 1 and self.levels[:, 0].tolist() == [0.0, 1.0]

    def part(self, X: FloatArray) -> FloatArray:
        """Return the block's columns of a matrix, in place where they stand together."""
        first, last = self.where[0], self.where[-1]
        return X[:, first : last + 1] if last - first == len(self.where) - 1 else X[:, list(self.where)]

    def places(self, part: FloatArray) -> tuple[IntArray, FloatArray, NDArray[np.bool_]]:
        """Say where rows stand among the levels.

        Parameters
        ----------
        part : ndarray, shape (rows, width)
            The block's columns.

        Returns
        -------
        low : ndarray of int, shape (rows,)
            The level where a row stands, or the grid point below it.
        above : ndarray, shape (rows,)
            How far it is from there to the next grid point, from 0 to 1; 0 but for numbers.
        known : ndarray of bool, shape (rows,)
            Whether there is such a level in the sample; `low` is 0 where not.
        """
        low, above, known = np.zeros(len(part), dtype=np.int64), np.zeros(len(part)), np.ones(len(part), dtype=bool)
        if not self.graded:
            known[:] = False
            for v, level in enumerate(self.levels):
                here = np.logical_and.reduce([part[:, j] == value for j, value in enumerate(level)])
                low[here] = v
                known |= here
            return low, above, known
        absent = self.levels[:, -1] == 1 if self.gaps else np.zeros(len(self.levels), dtype=bool)
        grid = self.levels[~absent, 0]
        if grid.size:
            value = np.maximum(part[:, 0], grid[0])
            # Comparing with each of a few dozen points takes a third of the time of searching.
            passed = np.zeros(len(part), dtype=np.uint8)
            for point in grid[1:]:
                passed += (value >= point).view(np.uint8)
            low, width = passed.astype(np.int64), np.append(np.diff(grid), np.inf)
            above = (value - grid[low]) / width[low]
        if self.gaps:
            missing = part[:, -1] == 1
            low[missing], above[missing] = np.flatnonzero(absent)[0] if absent.any() else 0, 0.0
            known = ~missing | absent.any()
        return low, above, known


def join(a: Block, b: Block) -> Block:
    """Make one block of two: all combinations of their levels, with few grid points of a number.

    Examples
    --------
    >>> columns = {"a": np.array([0.0, 1.0]), "b": np.array([1.0, 0.0])}
    >>> pair = join(*make_design(columns, np.ones(2), np.ones(2, dtype=bool)).blocks)
    >>> pair.name, pair.labels
    ('a × b', ('0, 0', '0, 1', '1, 0', '1, 1'))
    """
    kept = []
    for block in (a, b):
        n = len(block.labels)
        many = block.graded and n > JOINED
        kept.append(np.unique(np.linspace(0, n - 1, JOINED).round().astype(int)) if many else np.arange(n))
    pairs = [(i, j) for i in kept[0] for j in kept[1]]
    return Block(
        name=f"{a.name} × {b.name}",
        columns=a.columns + b.columns,
        where=a.where + b.where,
        levels=np.array([np.concatenate([a.levels[i], b.levels[j]]) for i, j in pairs]),
        labels=tuple(f"{a.labels[i]}, {b.labels[j]}" for i, j in pairs),
        raw=tuple(a.raw[i] + b.raw[j] for i, j in pairs),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Columns and blocks of a matrix."""

    columns: tuple[Column, ...]  # in the order of the matrix
    blocks: tuple[Block, ...]  # the features
    width: int  # number of matrix columns
    constant: tuple[str, ...] = ()  # features of one value only, which have no columns

    def encode(self, features: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return the matrix of given rows, shape (rows, width)."""
        for column in self.columns:
            if column.name not in features:
                raise UsageError(f"Feature `{column.name}` is missing.{near_matches(column.name, features)}")
        return np.concatenate([c.encode(np.asarray(features[c.name])) for c in self.columns], axis=1)

    def encode_new(self, features: Mapping[str, NDArray[Any]]) -> tuple[FloatArray, dict[str, NDArray[np.bool_]]]:
        """Return the matrix of new rows, and by feature those with a value that was not there before, if any."""
        X, unseen, at = np.empty((len(next(iter(features.values()))), self.width), order="F"), {}, 0
        for column in self.columns:
            X[:, at : at + column.width], strange = column.encode_new(np.asarray(features[column.name]))
            at += column.width
            if not np.isfinite(X[:, at - column.width]).all():
                raise DataError(f"Feature `{column.name}` is infinite in some rows. Make them missing, or cap them.")
            if strange.any():
                unseen[column.name] = strange
        marked: dict[str, NDArray[np.bool_]] = {}
        for block in self.blocks:
            of_block = [unseen[name] for name in block.columns if name in unseen]
            if of_block:
                marked[block.name] = np.any(of_block, axis=0)
        return X, marked


def make_design(
    features: Mapping[str, NDArray[Any]],
    weight: FloatArray,
    inside: NDArray[np.bool_],
    *,
    blocks: Mapping[str, Sequence[str]] | None = None,
    categorical: Sequence[str] = (),
) -> Design:
    """Decide how columns are coded and which values each feature takes.

    Parameters
    ----------
    features : mapping of str to ndarray
        Raw columns.
    weight : ndarray, shape (rows,)
        Row counts, for centres and quantiles.
    inside : ndarray of bool, shape (rows,)
        The rows whose values a feature is toggled over.
    blocks : mapping of str to sequence of str, optional
        Columns that are one feature.
    categorical : sequence of str
        Numeric columns that are codes of categories.

    Returns
    -------
    Design

    Examples
    --------
    >>> columns = {"age": np.array([20.0, 30.0, np.nan]), "job": np.array(["a", "b", "a"], dtype=object)}
    >>> design = make_design(columns, np.ones(3), np.ones(3, dtype=bool))
    >>> [(b.name, b.labels) for b in design.blocks]
    [('age', ('20', '30', 'missing')), ('job', ('a', 'b'))]
    """
    joined = _joined(features, blocks or {}, categorical)
    of = {name: _column(name, np.asarray(v), weight, name in categorical) for name, v in features.items()}
    columns: list[Column] = []
    made: list[Block] = []
    constant: list[str] = []
    at = 0
    for block_name, names in joined.items():
        group = [of[n] for n in names if of[n].width]
        if not group:
            constant.append(block_name)
            continue
        columns += group
        width = sum(c.width for c in group)
        part = np.concatenate([c.encode(np.asarray(features[c.name])[inside]) for c in group], axis=1)
        raw = [np.asarray(features[c.name])[inside] for c in group]
        graded = len(group) == 1 and group[0].kind == "number"
        w = weight[inside]
        picked = _grid(part, group[0].missing, w) if graded else _patterns(part, w)  # row numbers
        if len(group) == 1 and group[0].kind == "category":
            picked.sort(key=lambda i: _label(raw[0][i]))
        made.append(
            Block(
                name=block_name,
                columns=tuple(c.name for c in group),
                where=tuple(range(at, at + width)),
                levels=part[picked],
                labels=tuple(", ".join(_label(r[i]) for r in raw) for i in picked),
                raw=tuple(tuple(r[i] for r in raw) for i in picked),
                graded=graded and len(np.unique(part[:, 0])) > 2,
                gaps=graded and group[0].missing,
            )
        )
        at += width
    return Design(columns=tuple(columns), blocks=tuple(made), width=at, constant=tuple(constant))


def _joined(
    features: Mapping[str, NDArray[Any]], blocks: Mapping[str, Sequence[str]], categorical: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    owner: dict[str, str] = {}
    for name in categorical:
        if name not in features:
            raise UsageError(f"`categorical` names `{name}`, which is no feature.{near_matches(name, features)}")
    for block, names in blocks.items():
        if block in features and block not in names:
            raise UsageError(f"Block `{block}` has the name of another feature. Choose another name.")
        for name in names:
            if name not in features:
                raise UsageError(f"Block `{block}` names `{name}`, which is no feature.{near_matches(name, features)}")
            if name in owner:
                raise UsageError(f"Feature `{name}` is in the blocks `{owner[name]}` and `{block}`; one is allowed.")
            owner[name] = block
    return {owner.get(n, n): tuple(blocks[owner[n]]) if n in owner else (n,) for n in features}


def _column(name: str, values: NDArray[Any], weight: FloatArray, as_category: bool) -> Column:
    numeric = values.dtype.kind in "biuf"
    if not numeric or as_category:
        return Column(name=name, kind="category", categories=tuple(sorted(set(_names(values).tolist()))))
    numbers = values.astype(np.float64)
    absent = np.isnan(numbers)
    present, w = numbers[~absent], weight[~absent]
    if not np.isfinite(present).all():
        bad = int(np.count_nonzero(~np.isfinite(present)))
        raise DataError(f"Feature `{name}` is infinite in {bad} rows. Make them missing, or cap them.")
    distinct = np.unique(present)
    if distinct.size == 0 or (distinct.size == 1 and not absent.any()):
        return Column(name=name, kind="category", categories=("constant",))
    if distinct.size <= 2:
        return Column(
            name=name,
            kind="number",
            centre=float(distinct[0]),
            scale=float(distinct[-1] - distinct[0]) or 1.0,
            missing=bool(absent.any()),
        )
    mean = float(w @ present / w.sum())
    spread = float(np.sqrt(w @ (present - mean) ** 2 / w.sum()))
    # Rounded, so that the order of rows cannot show in the last digit; a power of two divides exactly.
    scale = float(2.0 ** np.round(np.log2(spread)))
    centre = float(np.round(mean / scale, 2) * scale)
    knots: tuple[float, ...] = ()
    if distinct.size > FEW:
        order = np.argsort(present, kind="stable")
        quartiles = np.unique(present[order][weighted_ranks(w[order], KNOTS)])
        inner = quartiles[(quartiles > distinct[0]) & (quartiles < distinct[-1])]
        knots = tuple(float(k) for k in (inner - centre) / scale)
    return Column(name=name, kind="number", centre=centre, scale=scale, missing=bool(absent.any()), knots=knots)


def _grid(part: FloatArray, gaps: bool, weight: FloatArray) -> list[int]:
    """Pick rows that carry the observed quantiles of a number, and one that misses it."""
    absent = part[:, -1] == 1 if gaps else np.zeros(len(part), dtype=bool)
    rows = np.flatnonzero(~absent)
    picked: list[int] = []
    if rows.size:
        order = rows[np.argsort(part[rows, 0], kind="stable")]
        values = part[order, 0]
        first = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
        if first.size <= FEW:
            picked = [int(order[i]) for i in first]
        else:
            chosen = np.unique(values[weighted_ranks(weight[order], QUANTILES)])
            if chosen.size == 1:  # nearly everybody has one value: take quantiles of the others beside it
                rest = values != chosen[0]
                rare = values[rest][weighted_ranks(weight[order][rest], RARE_QUANTILES)]
                chosen = np.union1d(chosen, rare)
            picked = [int(order[np.searchsorted(values, v)]) for v in chosen]
    if absent.any():
        picked.append(int(np.flatnonzero(absent)[0]))
    return picked


def _patterns(part: FloatArray, weight: FloatArray) -> list[int]:
    """Pick one row for each pattern of the columns, at most the most frequent ones."""
    _, first, code = np.unique(part, axis=0, return_index=True, return_inverse=True)
    if first.size > MOST_PATTERNS:
        mass = np.bincount(code.ravel(), weights=weight, minlength=first.size)
        keep = np.sort(np.argsort(-mass, kind="stable")[:MOST_PATTERNS])
        first = first[keep]
    return [int(i) for i in first]


def _names(values: NDArray[Any]) -> NDArray[np.str_]:
    if values.dtype.kind in "US":
        return values.astype(np.str_)
    entries = values.tolist()
    label = {v: _label(v) for v in set(entries)}  # each distinct entry once
    return np.array([label[v] for v in entries], dtype=np.str_)


def _label(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
