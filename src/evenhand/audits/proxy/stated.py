"""The rows at hand: all of them, or a stated sample of many rows, in memory or where they stay.

Rows are drawn by a hash of their features, recorded score and weight, so many of each group: the sample does not depend
on how the rows are divided or ordered, nor on the names of groups, and a small group is in it as a whole. The outcome
has no part in the draw: people with the same features come together, whatever became of them, and what is learned about
P(Y|X) is not bent. Whether any other row is in the sample can be told from its own content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenhand.arrays import IntArray
from evenhand.audits.proxy.options import ProxyOptions
from evenhand.intake import AuditData
from evenhand.intake.batches import BATCH_ROWS, Batches, LocalBatches
from evenhand.intake.row_sample import content
from evenhand.kernels.shared.row_hash import WordArray, row_hash
from evenhand.summaries import group_sizes

_EVERY = np.uint64(2**64 - 1)
# Records that wait before the sample is cut to its size again.
_WAITING = 50_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtHand:
    """Rows in memory, and which of all rows they are."""

    data: AuditData
    words: WordArray | None = None  # (records,): the hash that drew them; None where nothing was drawn
    limits: Mapping[str, WordArray] | None = None  # by attribute and group: a row is at hand where its hash is below
    batches: Batches | None = None  # where all rows are, if not in memory

    @property
    def complete(self) -> bool:
        """Whether these are all rows."""
        return self.limits is None or all(bool((limit == _EVERY).all()) for limit in self.limits.values())

    def rows(self, attribute: str, code: int, base: int) -> IntArray:
        """Return the places of the rows at hand of two groups."""
        codes = self.data.attribute(attribute).codes
        two = (codes == code) | (codes == base)
        if self.words is not None and self.limits is not None:
            two &= self.words < self.limits[attribute][codes]
        return np.flatnonzero(two)


def at_hand(data: AuditData, size: int, *, asked: bool) -> AtHand:
    """Return all rows in memory, or a sample of them where a group has more, or of those that stay where they are.

    Parameters
    ----------
    data : AuditData
        All rows.
    size : int
        Different records drawn of each group.
    asked : bool
        Whether the audit asks a model itself, so that what others asked it before is not needed.

    Returns
    -------
    AtHand
    """
    if data.batches is None and data.count.size <= size:
        return AtHand(data=data)
    sparing, groups = GroupSample.sparing(data, size), _groups(data)
    if data.batches is None:
        batches: Batches = LocalBatches.of(data, BATCH_ROWS)
    else:
        batches = data.batches.plain if asked else data.batches
    sample = batches.expected(_name(size), sparing)
    if not sample.holds:  # many rows are equal, so that those with small hashes are few
        sample = batches.fold(partial(GroupSample, groups, size))
    drawn = replace(sample.drawn(), batches=batches)
    return AtHand(data=data) if data.batches is None and drawn.complete else drawn


def draw_ahead(data: AuditData, asked: ProxyOptions) -> None:
    """Let the first walk over rows that stay where they are draw the sample, whoever makes that walk.

    Parameters
    ----------
    data : AuditData
        Whose rows stay where they are.
    asked : ProxyOptions
        What the audit will be asked.
    """
    assert data.batches is not None
    data.batches.plain.expect(_name(asked.sample_rows), GroupSample.sparing(data, asked.sample_rows))


def _name(size: int) -> str:
    return f"proxy audit: {size} rows of each group"


def _groups(data: AuditData) -> dict[str, int]:
    return {a.name: len(a.labels) for a in data.attributes}


def words_of(batch: AuditData) -> WordArray:
    """Return the hash of each row by which it is drawn: what the source says of it, not what a model says."""
    columns = {f"feature:{name}": values for name, values in batch.features.items()}
    columns |= {"score": batch.score} if batch.score is not None and "score" in batch.columns else {}
    columns |= {} if batch.weight is None else {"weight": batch.weight}
    return row_hash(columns, seed=0)


class GroupSample:
    """Of each group the records with the smallest hashes, identical rows as one: a monoid with `add` and `merge`.

    A record that is among the smallest of all is among the smallest of each part in which it occurs, so that its
    number of rows is exact.

    Parameters
    ----------
    groups : mapping of str to int
        The number of groups of each attribute.
    size : int
        Records kept of each group.
    bounds : mapping of str to ndarray, optional
        By attribute and group: rows whose hash is not below are forgotten at once. Without it a part holds as many
        records as the whole.
    """

    def __init__(self, groups: Mapping[str, int], size: int, bounds: Mapping[str, WordArray] | None = None) -> None:
        self.size = size
        self._bounds = {name: np.full(n, _EVERY) for name, n in groups.items()} if bounds is None else bounds
        self.limits = {name: bound.copy() for name, bound in self._bounds.items()}
        self._held: tuple[WordArray, AuditData] | None = None  # hashes, and records that are all different
        self._waiting: list[tuple[WordArray, AuditData]] = []  # taken and not yet joined with them

    @classmethod
    def sparing(cls, data: AuditData, size: int) -> Callable[[], GroupSample]:
        """Return what makes samples that hold little more of each part than its share of the whole.

        Hashes are even over their range, so that enough different rows lie below the bound except with a probability of
        one in a billion; where rows are equal they may be fewer, and `holds` says it.
        """
        bounds = {}
        for attribute in data.attributes:
            share = (size + 6 * math.sqrt(size) + 50) / np.maximum(group_sizes(data, attribute), 1)
            bounds[attribute.name] = np.array([_EVERY if s >= 1 else int(s * 2**64) for s in share], dtype=np.uint64)
        return partial(cls, _groups(data), size, bounds)

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        words = words_of(batch)
        near = self._near(words, self._codes(batch, slice(None)))
        if near.size:
            self._take([(words[near], batch.records(near))])

    def merge(self, other: GroupSample) -> None:
        """Take what another sample of the same size and bounds holds."""
        for name, limit in self.limits.items():
            np.minimum(limit, other.limits[name], out=limit)
        self._take([*([] if other._held is None else [other._held]), *other._waiting])

    def _take(self, parts: Sequence[tuple[WordArray, AuditData]]) -> None:
        self._waiting += parts
        if sum(len(words) for words, _ in self._waiting) > _WAITING:
            self._settle()

    @property
    def holds(self) -> bool:
        """Whether it has as many records of each group as were asked for, or all there are."""
        self._settle()
        every = [(limit, self._bounds[name]) for name, limit in self.limits.items()]
        return all(bool(((limit < bound) | (bound == _EVERY)).all()) for limit, bound in every)

    def drawn(self) -> AtHand:
        """Return the sample."""
        self._settle()
        assert self._held is not None
        words, data = self._held
        return AtHand(data=data, words=words, limits=self.limits)

    def _near(self, words: WordArray, codes: Mapping[str, IntArray]) -> IntArray:
        near = np.zeros(len(words), dtype=bool)
        for name, limit in self.limits.items():
            near |= words < limit[codes[name]]
        return np.flatnonzero(near)

    def _settle(self) -> None:
        """Join identical records, find where each group's sample ends, and forget the records behind."""
        if not self._waiting:
            return
        words, parts = zip(*([] if self._held is None else [self._held]), *self._waiting, strict=True)
        self._held, self._waiting = None, []
        data = AuditData.joined(parts)
        del parts  # twice the sample would be held
        _, first, place = np.unique(row_hash(content(data), seed=1), return_index=True, return_inverse=True)
        count = np.zeros(first.size, dtype=np.int64)
        np.add.at(count, place, data.count)
        own_words, codes = np.concatenate(words)[first], self._codes(data, first)
        for name, limit in self.limits.items():
            for code in range(len(limit)):
                own = own_words[codes[name] == code]
                if own.size > self.size:
                    limit[code] = min(limit[code], np.partition(own, self.size)[self.size])
        near = self._near(own_words, codes)
        self._held = (own_words[near], data.records(first[near], count=count[near]))

    def _codes(self, data: AuditData, rows: IntArray | slice) -> dict[str, IntArray]:
        return {name: data.attribute(name).codes[rows] for name in self.limits}
