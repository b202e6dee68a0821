"""Some rows, drawn by the hash of their content: the same for any division and any order of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.kernels.shared.row_hash import Coded, WordArray, mix, row_hash, unit_interval


def content(batch: Any) -> Mapping[str, NDArray[Any] | Coded]:
    """Return all that the source says of each record of a batch, by name, for `row_hash`.

    What a model said of a row is no part of it: it follows from the rest, and may differ in the last digit with the
    rows that the model was asked about together.
    """
    known: dict[str, NDArray[Any] | Coded] = {f"feature:{name}": values for name, values in batch.features.items()}
    for attribute in batch.attributes:
        known[f"group:{attribute.name}"] = Coded(attribute.codes, attribute.labels)
    known |= {f"number:{name}": values for name, values in batch.continuous.items()}
    if batch.strata is not None:
        known["strata"] = Coded(batch.strata.codes, batch.strata.labels)
    for role in ("outcome", "decision", "score", "weight"):
        values = getattr(batch, role)
        if values is not None and role in batch.columns:
            known[role] = values
    return known


class RowSample:
    """The distinct rows with the smallest hashes, and how often each occurs.

    A content that is among the smallest of all rows is among the smallest of each part in which it occurs, so that
    its number is exact although most rows are forgotten.

    Parameters
    ----------
    rows : int
        How many distinct rows are held, at most.
    seed : int
        Another seed gives other rows.
    bound : int, optional
        Rows whose hash is not below are forgotten at once. Without it a part holds as many rows as the whole.
    """

    def __init__(self, rows: int, seed: int, bound: int | None = None) -> None:
        self._rows, self._seed, self._bound = rows, seed, bound
        self._words: WordArray = np.empty(0, dtype=np.uint64)  # increasing
        self._data: Any = None  # one record for each of them, which counts the rows
        self._waiting: list[tuple[WordArray, Any]] = []  # taken and not yet sorted in

    @classmethod
    def sparing(cls, rows: int, seed: int, *, of: int) -> Callable[[], RowSample]:
        """Return what makes samples that hold little more of each part than its share of the whole.

        Hashes are even over their range. So many distinct rows as are asked for lie below the bound except with a
        probability of one in a billion; where rows are equal they may be fewer, and `holds` says it.
        """
        share = (rows + 6 * math.sqrt(rows) + 50) / max(of, 1)
        return partial(cls, rows, seed, None if share >= 1 else int(share * 2**64))

    def add(self, batch: Any) -> None:
        """Take the rows of one batch."""
        words = row_hash(content(batch), self._seed)
        near = np.ones(words.size, dtype=np.bool_)
        if self._bound is not None:
            near = words < np.uint64(self._bound)
        if self._words.size == self._rows and self._rows:
            near &= words <= self._words[-1]
        kept = np.flatnonzero(near)
        if kept.size:
            self._take(words[kept], batch if kept.size == words.size else batch.records(kept))

    def merge(self, other: RowSample) -> None:
        """Take what another sample of the same size, seed and bound holds."""
        other._sort()
        if other._data is not None:
            self._take(other._words, other._data)

    def holds(self, rows: int) -> bool:
        """Say whether so many rows can be drawn, or all there are."""
        self._sort()
        return rows <= self._rows and (self._bound is None or rows <= self._words.size)

    def drawn(self, rows: int) -> Any:
        """Return so many rows: those with the smallest hashes, evenly spaced ones of them where contents repeat."""
        self._sort()
        counts = self._data.count[:rows]
        held = int(counts.sum())
        if held <= rows:
            return self._data if counts.size == self._data.count.size else self._data.records(np.arange(counts.size))
        begin = float(unit_interval(mix(np.array([self._seed], dtype=np.uint64)))[0])
        places = ((np.arange(rows) + begin) * (held / rows)).astype(np.int64)
        record = np.searchsorted(np.cumsum(counts), np.minimum(places, held - 1), side="right")
        drawn = np.bincount(record, minlength=counts.size)
        some = np.flatnonzero(drawn)
        return self._data.records(some, count=drawn[some])

    def _take(self, words: WordArray, batch: Any) -> None:
        self._waiting.append((words, batch))
        if sum(waiting.size for waiting, _ in self._waiting) > self._rows // 2:
            self._sort()

    def _sort(self) -> None:
        """Bring all that was taken into increasing order, each content once, and forget what is too many."""
        if not self._waiting:
            return
        held = [] if self._data is None else [(self._words, self._data)]
        words, batches = zip(*held, *self._waiting, strict=True)
        self._waiting = []
        batch = batches[0].joined(batches) if len(batches) > 1 else batches[0]
        distinct, first, place = np.unique(np.concatenate(words), return_index=True, return_inverse=True)
        total = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(total, place, batch.count)
        self._words = distinct[: self._rows]
        self._data = batch.records(first[: self._rows], count=total[: self._rows])
