"""Rows asked about as they are and as members of another group, in memory or batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.audits.tail.changes import Changes
from evenhand.audits.tail.options import TailSetting
from evenhand.intake import Attribute, AuditData
from evenhand.intake.batches import batches_of
from evenhand.models import AuditedModel
from evenhand.models.counterfactual import Columns, Flip, flip_values, recorded_as
from evenhand.summaries import group_sizes

Values = list[dict[str, Any]] | Callable[[Columns, str], Columns]  # what each group's records look like
Pair = tuple[int, int]  # a group, and the group its members are recorded as

_MOST_VALUES = 1000  # values of a column within a group, of which there should be one


@dataclass(frozen=True, slots=True, eq=False)
class Flipped:
    """A model asked about rows as they are and as members of another group."""

    scorer: AuditedModel
    attribute: Attribute
    values: Values
    favourable: str

    def scores(self, columns: Columns, other: int) -> tuple[FloatArray, FloatArray]:
        """Return scores of rows in both records, higher is better. [monjezi2025] Definition III.1."""
        if not len(next(iter(columns.values()))):
            return np.empty(0), np.empty(0)
        before = self.scorer.score(columns)
        after = self.scorer.score(recorded_as(columns, self.attribute.labels[other], other, self.values))
        return (before, after) if self.favourable == "high" else (1 - before, 1 - after)

    def change(self, other: int, columns: Columns) -> FloatArray:
        """Return what becoming a member of another group does to the scores of rows."""
        before, after = self.scores(columns, other)
        return after - before


def changes_of(
    data: AuditData, attribute: Attribute, flipped: Flipped, pairs: Sequence[Pair], options: TailSetting
) -> dict[Pair, Changes]:
    """Return the changes of each group's members, all kept where the rows are in memory."""
    sizes: list[int | None] = [None] * len(attribute.labels)
    if data.batches is not None:
        sizes = [int(n) for n in group_sizes(data, attribute)]
    cuts = (0.0, options.margin or 0.0)
    return batches_of(data).plain.fold(partial(_PairChanges, flipped, tuple(pairs), tuple(sizes), cuts)).changes


class _PairChanges:
    """The changes of some pairs of groups."""

    def __init__(
        self, flipped: Flipped, pairs: Sequence[Pair], sizes: Sequence[int | None], cuts: tuple[float, ...]
    ) -> None:
        self._flipped = flipped
        self.changes = {pair: Changes(sizes[pair[0]], cuts) for pair in pairs}

    def add(self, batch: AuditData) -> None:
        """Ask about the rows of one batch."""
        codes = batch.attribute(self._flipped.attribute.name).codes
        for (own, other), changes in self.changes.items():
            mine = codes == own
            before, after = self._flipped.scores({n: c[mine] for n, c in batch.features.items()}, other)
            times = batch.count[mine]
            changes.add(np.repeat(before, times), np.repeat(after, times))

    def merge(self, other: _PairChanges) -> None:
        """Take the rows of another part."""
        for pair, changes in self.changes.items():
            changes.merge(other.changes[pair])


def flips(data: AuditData, attributes: Sequence[Attribute], flip: Flip | None) -> list[Values | str]:
    """Return what each group's records look like in the columns that say which group it is, or why nothing does."""
    if data.batches is None:
        return [flip_values(data.features, a.name, a.labels, a.codes, flip) for a in attributes]
    names = {a.name: _recording(a.name, data.batches.features, flip) for a in attributes}
    seen = data.batches.plain.fold(partial(_Recorded, names)).rows
    blank: dict[str, NDArray[Any]] = {name: np.empty(0) for name in data.batches.features}
    told = []
    for a in attributes:
        lines = [(code, *values) for code, kinds in sorted(seen[a.name].items()) for values in kinds]
        codes = np.array([line[0] for line in lines], dtype=np.int64)
        columns = {n: np.array([line[1 + j] for line in lines], dtype=object) for j, n in enumerate(names[a.name])}
        plain = {n: c.astype(np.float64) if all(isinstance(v, float) for v in c) else c for n, c in columns.items()}
        told.append(flip_values({**blank, **plain}, a.name, a.labels, codes, flip))
    return told


def _recording(attribute: str, features: Sequence[str], flip: Flip | None) -> tuple[str, ...]:
    """Return the feature columns that record an attribute, as far as they are known by name."""
    if callable(flip) or isinstance(flip, Mapping):
        return ()
    named = [flip] if isinstance(flip, str) else list(flip) if flip is not None else []
    named = named or ([attribute] if attribute in features else attribute.split(" × "))
    return tuple(n for n in named if n in features)


class _Recorded:
    """The distinct values that the rows of each group have in some columns."""

    def __init__(self, names: Mapping[str, tuple[str, ...]]) -> None:
        self._names = names
        self.rows: dict[str, dict[int, dict[tuple[Any, ...], None]]] = {name: {} for name in names}

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        for attribute, names in self._names.items():
            codes = batch.attribute(attribute).codes
            lines = set(zip(codes.tolist(), *(batch.features[n].tolist() for n in names), strict=True))
            self._take(attribute, sorted(lines, key=repr))

    def merge(self, other: _Recorded) -> None:
        """Take the rows of another part."""
        for attribute, groups in other.rows.items():
            self._take(attribute, [(code, *values) for code, kinds in groups.items() for values in kinds])

    def _take(self, attribute: str, lines: Sequence[tuple[Any, ...]]) -> None:
        for code, *values in lines:
            kinds = self.rows[attribute].setdefault(code, {})
            if len(kinds) < _MOST_VALUES:
                kinds[tuple(values)] = None
