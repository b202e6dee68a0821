"""Rows asked about as they are and as members of another group, in memory or batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.tail.changes import Changes
from evenhand.audits.tail.options import TailSetting
from evenhand.errors import DataError
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

    def scores(self, columns: Columns) -> FloatArray:
        """Return scores of rows as they are, higher is better."""
        return self._favourable(self.scorer.score(columns))

    def scores_as(self, columns: Columns, other: IntArray) -> FloatArray:
        """Return scores of rows, each recorded as a member of another group."""
        score = np.empty(other.size)
        if callable(self.values):  # a user's function gets the rows that it is about and no others
            for code in np.unique(other).tolist():
                mine = other == code
                some = {name: column[mine] for name, column in columns.items()}
                score[mine] = self.scorer.score(recorded_as(some, self.attribute.labels[code], code, self.values))
            return self._favourable(score)
        changed = dict(columns)
        for code in np.unique(other).tolist():
            for name, column in recorded_as(columns, self.attribute.labels[code], code, self.values).items():
                if column is not columns[name]:
                    changed[name] = np.where(other == code, column, changed[name])
        return self._favourable(self.scorer.score(changed))

    def _favourable(self, score: FloatArray) -> FloatArray:
        return score if self.favourable == "high" else 1 - score

    def change(self, other: int, columns: Columns) -> FloatArray:
        """Return what becoming a member of another group does to the scores of rows. [monjezi2025] Definition III.1."""
        rows = len(next(iter(columns.values())))
        return self.scores_as(columns, np.full(rows, other)) - self.scores(columns)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One attribute, asked about both ways."""

    flipped: Flipped
    pairs: tuple[Pair, ...]  # each group and the reference
    changes: Mapping[Pair, Changes]  # also of the reference's members, recorded as each group


def ask_both_ways(
    data: AuditData, attributes: Sequence[Attribute], scorer: AuditedModel, flip: Flip | None, options: TailSetting
) -> list[Asked | str]:
    """Ask about the members of each group as they are and as members of another, for each attribute.

    Rows that stay where they are are walked over once: what the records of each group look like is taken from the rows
    that are first at hand and looked at again in the walk. Where it is different for all rows, they are walked over
    again.

    Parameters
    ----------
    data : AuditData
        With rows in memory, or batches.
    attributes : sequence of Attribute
        Of the data.
    scorer : AuditedModel
        Which is asked.
    flip : Flip, optional
        What is different in the records of another group, where the columns do not say it.
    options : TailSetting
        What the audit is asked.

    Returns
    -------
    list of Asked or str
        One for each attribute, or why nothing says which group it is. The changes of all rows in memory are kept.
    """
    rows = batches_of(data).plain
    names = {a.name: _recording(a.name, rows.features, flip) for a in attributes}

    def faces(told: Sequence[Values | str]) -> list[Flipped | str]:
        each = zip(attributes, told, strict=True)
        return [v if isinstance(v, str) else Flipped(scorer, a, v, options.favourable) for a, v in each]

    if data.batches is None:
        flipped = faces([flip_values(data.features, a.name, a.labels, a.codes, flip) for a in attributes])
        walk = rows.fold(partial(_Walk, {}, _makers(data, flipped, options)))
    else:
        recorded = _Recorded(names)
        recorded.add(rows.first())
        try:
            flipped = faces(_flips(recorded, attributes, rows.features, flip))
        except DataError:  # a group is not among the first rows, or its records differ: all rows say which
            recorded = rows.fold(partial(_Recorded, names))
            flipped = faces(_flips(recorded, attributes, rows.features, flip))
        walk = rows.fold(partial(_Walk, names, _makers(data, flipped, options)))
        if walk.recorded.rows != recorded.rows:
            flipped = faces(_flips(walk.recorded, attributes, rows.features, flip))
            walk = rows.fold(partial(_Walk, {}, _makers(data, flipped, options)))
    return [
        face if isinstance(face, str) else Asked(face, _pairs(face.attribute, options), walk.changes[i].changes)
        for i, face in enumerate(flipped)
    ]


def _makers(
    data: AuditData, flipped: Sequence[Flipped | str], options: TailSetting
) -> dict[int, Callable[[], _PairChanges]]:
    """Return what makes the changes of each attribute that can be asked about, by its place."""
    cuts = (0.0, options.margin or 0.0)
    out: dict[int, Callable[[], _PairChanges]] = {}
    for i, face in enumerate(flipped):
        if not isinstance(face, str):
            pairs = _pairs(face.attribute, options)
            kept = data.batches is None  # all changes, however many
            sizes = [None if kept else int(n) for n in group_sizes(data, face.attribute)]
            out[i] = partial(_PairChanges, face, (*pairs, *(pair[::-1] for pair in pairs)), sizes, cuts)
    return out


def _pairs(attribute: Attribute, options: TailSetting) -> tuple[Pair, ...]:
    reference = attribute.labels.index(options.reference[attribute.name])
    return tuple((own, reference) for own in range(len(attribute.labels)) if own != reference)


class _Walk:
    """The changes of the pairs of some attributes, and what the records of each group look like."""

    def __init__(self, names: Mapping[str, tuple[str, ...]], makers: Mapping[int, Callable[[], _PairChanges]]) -> None:
        self.recorded = _Recorded(names)
        self.changes = {i: make() for i, make in makers.items()}

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        self.recorded.add(batch)
        for changes in self.changes.values():
            changes.add(batch)

    def merge(self, other: _Walk) -> None:
        """Take the rows of another part."""
        self.recorded.merge(other.recorded)
        for i, changes in self.changes.items():
            changes.merge(other.changes[i])


class _PairChanges:
    """The changes of some pairs of groups."""

    def __init__(
        self, flipped: Flipped, pairs: Sequence[Pair], sizes: Sequence[int | None], cuts: tuple[float, ...]
    ) -> None:
        self._flipped = flipped
        self.changes = {pair: Changes(sizes[pair[0]], cuts) for pair in pairs}
        # In each turn a row is recorded as one other group: in the first everybody, then the reference's members again.
        self._turns: list[dict[int, int]] = []
        for own, other in pairs:
            turn = next((turn for turn in self._turns if own not in turn), None)
            if turn is None:
                self._turns.append(turn := {})
            turn[own] = other

    def add(self, batch: AuditData) -> None:
        """Ask about the rows of one batch."""
        attribute = batch.attribute(self._flipped.attribute.name)
        before = self._flipped.scores(batch.features)
        for turn in self._turns:
            others = np.array([turn.get(own, -1) for own in range(len(attribute.labels))])[attribute.codes]
            some = np.flatnonzero(others >= 0)
            if not some.size:
                continue
            rows = batch if some.size == others.size else batch.records(some)
            after = self._flipped.scores_as(rows.features, others[some])
            for own, other in turn.items():
                mine = np.flatnonzero(attribute.codes[some] == own)
                times = rows.count[mine]
                self.changes[own, other].add(np.repeat(before[some[mine]], times), np.repeat(after[mine], times))

    def merge(self, other: _PairChanges) -> None:
        """Take the rows of another part."""
        for pair, changes in self.changes.items():
            changes.merge(other.changes[pair])


def _flips(
    recorded: _Recorded,
    attributes: Sequence[Attribute],
    features: Sequence[str],
    flip: Flip | None,
) -> list[Values | str]:
    """Return what each group's records look like in the columns that say which group it is, or why nothing does."""
    blank: dict[str, NDArray[Any]] = {name: np.empty(0) for name in features}
    told = []
    for a in attributes:
        lines = [(code, *values) for code, kinds in sorted(recorded.rows[a.name].items()) for values in kinds]
        codes = np.array([line[0] for line in lines], dtype=np.int64)
        columns = {
            n: np.array([line[1 + j] for line in lines], dtype=object) for j, n in enumerate(recorded.names[a.name])
        }
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
        self.names = names
        self.rows: dict[str, dict[int, dict[tuple[Any, ...], None]]] = {name: {} for name in names}

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        for attribute, names in self.names.items():
            codes, columns = batch.attribute(attribute).codes, [batch.features[n] for n in names]
            news = np.ones(codes.size, dtype=np.bool_)
            for code, kinds in self.rows[attribute].items():
                # Most rows look like the first of their group, which is quickly seen.
                first = next(iter(kinds))
                news &= ~np.logical_and.reduce([codes == code, *(c == v for c, v in zip(columns, first, strict=True))])
            lines = set(zip(codes[news].tolist(), *(c[news].tolist() for c in columns), strict=True))
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
