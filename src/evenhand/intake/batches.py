"""Batches: rows that stay where they are, and what is added up from them.

Whatever an audit wants of rows that do not fit in memory is a `Summary`: it takes batches with `add` and other
summaries with `merge`, and gives the same answer for any division and any order of the rows. A batch is an ordinary
`AuditData`, coded exactly as the whole. `AuditData` holds its batches, so this module cannot name its type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.intake.progress import Tell, paced
from evenhand.kernels.shared.row_hash import WordArray, mix, row_hash, unit_interval

# Rows of one batch: large enough for a model to be fast, small enough for any memory.
BATCH_ROWS = 65_536


class Summary(Protocol):
    """What is added up over batches: a monoid, so that any division and any order of the rows gives one answer."""

    def add(self, batch: Any, /) -> None:
        """Take the rows of one batch, an `AuditData` with features."""

    def merge(self, other: Self, /) -> None:
        """Take what another summary of the same kind has taken."""


S = TypeVar("S", bound=Summary)


class Batches(ABC):
    """Rows that stay where they are.

    Parameters
    ----------
    rows : int
        Rows that are used.
    features : tuple of str
        The model's inputs, which every batch has.

    Attributes
    ----------
    of_period : callable or None
        From a period and its number of rows to the batches of that period, where a column of periods was named.
    progress : callable or None
        Called with a short text that says how far a walk over the rows is.
    """

    of_period: Callable[[str, int], Batches] | None = None
    progress: Tell | None = None

    def __init__(self, rows: int, features: Sequence[str]) -> None:
        self.rows = rows
        self.features = tuple(features)
        self._drawn: dict[tuple[int, int], Any] = {}

    @property
    def plain(self) -> Batches:
        """The rows as they were read, without what a model made of them."""
        return self

    @abstractmethod
    def fold(self, make: Callable[[], S]) -> S:
        """Add up all batches where the rows are.

        Parameters
        ----------
        make : callable
            Returns a summary that has taken nothing. It and its summaries can be pickled.

        Returns
        -------
        Summary
            One that has taken all rows.
        """

    def sample(self, rows: int, *, seed: int) -> Any:
        """Return some rows, the same for any division and any order.

        Rows are drawn by the hash of their content. Rows of equal content, which no hash can tell apart, come together;
        where that makes more than were asked for, evenly spaced ones of them are drawn.

        Parameters
        ----------
        rows : int
            How many, at most; all of them when there are not more.
        seed : int
            Another seed gives other rows.

        Returns
        -------
        AuditData
            Records in the order of their hashes; equal rows are one record that counts them.
        """
        if (rows, seed) not in self._drawn:
            self._drawn = {(rows, seed): self.fold(partial(_Sample, rows, seed)).drawn()}
        return self._drawn[rows, seed]


class LocalBatches(Batches):
    """Batches on this machine, one after the other.

    Parameters
    ----------
    read : callable
        Returns the batches, as often as it is called.
    rows : int
        Rows that are used.
    features : sequence of str
        The model's inputs.
    """

    def __init__(self, read: Callable[[], Iterable[Any]], rows: int, features: Sequence[str]) -> None:
        super().__init__(rows, features)
        self._read = read

    @classmethod
    def of(cls, data: Any, size: int) -> LocalBatches:
        """Divide rows in memory into batches of `size` records."""
        return cls(partial(pieces, data, size), int(data.count.sum()), [*data.features])

    def fold(self, make: Callable[[], S]) -> S:
        """Add up all batches, one after the other."""
        return add_up(make(), paced(self._read(), self.rows, self.progress))


def add_up(summary: S, batches: Iterable[Any], where: str = "") -> S:
    """Let a summary take batches one after the other; what goes wrong in one says in which rows.

    Parameters
    ----------
    summary : Summary
        Which is changed.
    batches : iterable of AuditData
        Of one source or one part of it, in its order.
    where : str
        Names the part, such as ``" of partition 3"``.

    Returns
    -------
    Summary
        The same one.
    """
    seen = 0
    for batch in batches:
        try:
            if batch.count.size:
                summary.add(batch)
        except DataError as error:
            last = seen + batch.rows.rows_in
            raise type(error)(f"{error} This was in rows {seen + 1:,} to {last:,}{where}.") from error
        seen += batch.rows.rows_in
    return summary


class ChangedBatches(Batches):
    """Batches of which each is changed before it is added up, such as by a model that decides.

    Parameters
    ----------
    batches : Batches
        Where the rows are.
    change : callable
        From a batch to a batch with the same rows.
    """

    def __init__(self, batches: Batches, change: Callable[[Any], Any]) -> None:
        super().__init__(batches.rows, batches.features)
        self._batches, self._change = batches, change

    @property
    def plain(self) -> Batches:
        """The rows before the change."""
        return self._batches

    def fold(self, make: Callable[[], S]) -> S:
        """Add up the changed batches where the rows are."""
        return self._batches.fold(partial(_Changed, make, self._change)).summary

    def sample(self, rows: int, *, seed: int) -> Any:
        """Return some rows, changed; which ones is known before the change."""
        return self._change(self._batches.sample(rows, seed=seed))


class _Changed(Generic[S]):
    """A summary that is given changed batches."""

    def __init__(self, make: Callable[[], S], change: Callable[[Any], Any]) -> None:
        self.summary = make()
        self._change = change

    def add(self, batch: Any) -> None:
        """Change a batch and add it."""
        self.summary.add(self._change(batch))

    def merge(self, other: _Changed[S]) -> None:
        """Take what another one has taken."""
        self.summary.merge(other.summary)


class _OneBatch(Batches):
    """Rows in memory."""

    def __init__(self, data: Any) -> None:
        super().__init__(int(data.count.sum()), [*data.features])
        self._data = data

    def fold(self, make: Callable[[], S]) -> S:
        """Take all rows at once."""
        summary = make()
        summary.add(self._data)
        return summary


def batches_of(data: Any) -> Batches:
    """Return the batches of data whose rows stayed where they are, and one batch of those in memory."""
    held: Batches | None = data.batches
    return _OneBatch(data) if held is None else held


def pieces(data: Any, size: int) -> Iterator[Any]:
    """Divide rows in memory into batches of so many records."""
    for start in range(0, data.count.size, size):
        yield data.records(np.arange(start, min(start + size, data.count.size)))


def content(batch: Any) -> Mapping[str, NDArray[Any]]:
    """Return all that the source says of each record of a batch, by name, for `row_hash`.

    What a model said of a row is no part of it: it follows from the rest, and may differ in the last digit with the
    rows that the model was asked about together.
    """
    known: dict[str, NDArray[Any]] = {f"feature:{name}": values for name, values in batch.features.items()}
    for attribute in batch.attributes:
        known[f"group:{attribute.name}"] = np.array(attribute.labels, dtype=object)[attribute.codes]
    known |= {f"number:{name}": values for name, values in batch.continuous.items()}
    if batch.strata is not None:
        known["strata"] = np.array(batch.strata.labels, dtype=object)[batch.strata.codes]
    for role in ("outcome", "decision", "score", "weight"):
        values = getattr(batch, role)
        if values is not None and role in batch.columns:
            known[role] = values
    return known


class _Sample:
    """The distinct rows with the smallest hashes, and how often each occurs.

    A content that is among the smallest of all rows is among the smallest of each part in which it occurs, so that
    its number is exact although most rows are forgotten.
    """

    def __init__(self, rows: int, seed: int) -> None:
        self._rows = rows
        self._seed = seed
        self._words: WordArray = np.empty(0, dtype=np.uint64)  # increasing
        self._data: Any = None  # one record for each of them, which counts the rows

    def add(self, batch: Any) -> None:
        """Take the rows of one batch."""
        words = row_hash(content(batch), self._seed)
        if self._words.size == self._rows and self._rows:
            near = np.flatnonzero(words <= self._words[-1])
            words, batch = words[near], batch.records(near)
        self._take(words, batch)

    def merge(self, other: _Sample) -> None:
        """Take what another sample of the same size and seed holds."""
        if other._data is not None:
            self._take(other._words, other._data)

    def _take(self, words: WordArray, batch: Any) -> None:
        size = self._words.size
        distinct, first, place = np.unique(np.concatenate([self._words, words]), return_index=True, return_inverse=True)
        counts = batch.count if self._data is None else np.concatenate([self._data.count, batch.count])
        total = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(total, place, counts)
        kept, self._words = first[: self._rows], distinct[: self._rows]
        if self._data is not None:
            old = kept < size
            both = [self._data.records(kept[old]), batch.records(kept[~old] - size)]
            batch = both[0].joined(both)
            kept = np.argsort(np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)]))
        self._data = batch.records(kept, count=total[: self._rows])

    def drawn(self) -> Any:
        """Return the rows drawn: all that are held, or evenly spaced ones of them where there are more than asked."""
        counts = self._data.count
        held = int(counts.sum())
        if held <= self._rows:
            return self._data
        begin = float(unit_interval(mix(np.array([self._seed], dtype=np.uint64)))[0])
        places = ((np.arange(self._rows) + begin) * (held / self._rows)).astype(np.int64)
        record = np.searchsorted(np.cumsum(counts), np.minimum(places, held - 1), side="right")
        drawn = np.bincount(record, minlength=counts.size)
        some = np.flatnonzero(drawn)
        return self._data.records(some, count=drawn[some])
