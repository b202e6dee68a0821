"""The rows at hand: all of them, or a stated sample of many rows, in memory or where they stay.

Rows are drawn by a hash of their features, recorded score and weight, so many of each group: the sample does not depend
on how the rows are divided or ordered, nor on the names of groups, and a small group is in it as a whole. The outcome
has no part in the draw: people with the same features come together, whatever became of them, and what is learned about
P(Y|X) is not bent. Whether any other row is in the sample can be told from its own content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenhand.arrays import BoolArray, IntArray
from evenhand.intake import AuditData
from evenhand.intake.batches import BATCH_ROWS, Batches, LocalBatches
from evenhand.intake.row_sample import content
from evenhand.kernels.shared.row_hash import WordArray, row_hash

_EVERY = np.uint64(2**64 - 1)
# Records that wait before the sample is cut to its size again.
_WAITING = 100_000


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
    groups = {a.name: len(a.labels) for a in data.attributes}
    if data.batches is None:
        batches: Batches = LocalBatches.of(data, BATCH_ROWS)
    else:
        batches = data.batches.plain if asked else data.batches
    drawn = replace(batches.fold(partial(GroupSample, groups, size)).drawn(), batches=batches)
    return AtHand(data=data) if data.batches is None and drawn.complete else drawn


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
    """

    def __init__(self, groups: Mapping[str, int], size: int) -> None:
        self.size = size
        self.limits = {name: np.full(n, _EVERY) for name, n in groups.items()}
        self._parts: list[tuple[WordArray, AuditData]] = []

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        words = words_of(batch)
        near = np.flatnonzero(self._near(words, batch))
        if near.size:
            self._parts.append((words[near], batch.records(near)))
        if sum(len(words) for words, _ in self._parts[1:]) > _WAITING:
            self._settle()

    def merge(self, other: GroupSample) -> None:
        """Take what another sample of the same size holds."""
        for name, limit in self.limits.items():
            np.minimum(limit, other.limits[name], out=limit)
        self._parts += other._parts
        self._settle()

    def drawn(self) -> AtHand:
        """Return the sample."""
        self._settle()
        words, data = self._parts[0]
        return AtHand(data=data, words=words, limits=self.limits)

    def _near(self, words: WordArray, batch: AuditData) -> BoolArray:
        near = np.zeros(len(words), dtype=bool)
        for name, limit in self.limits.items():
            near |= words < limit[batch.attribute(name).codes]
        return near

    def _settle(self) -> None:
        """Join identical records, find where each group's sample ends, and forget the records behind."""
        if not self._parts:
            return
        words = np.concatenate([w for w, _ in self._parts])
        data = AuditData.joined([part for _, part in self._parts])
        identity, first, place = np.unique(row_hash(content(data), seed=1), return_index=True, return_inverse=True)
        count = np.zeros(identity.size, dtype=np.int64)
        np.add.at(count, place, data.count)
        words, data = words[first], data.records(first, count=count)
        for name, limit in self.limits.items():
            codes = data.attribute(name).codes
            for code in range(len(limit)):
                own = words[codes == code]
                if own.size > self.size:
                    limit[code] = min(limit[code], np.partition(own, self.size)[self.size])
        near = np.flatnonzero(self._near(words, data))
        self._parts = [(words[near], data.records(near))]
