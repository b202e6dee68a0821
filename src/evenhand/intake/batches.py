"""Batches: rows that stay where they are, and what is added up from them.

Whatever an audit wants of rows that do not fit in memory is a `Summary`: it takes batches with `add` and other
summaries with `merge`, and gives the same answer for any division and any order of the rows. A batch is an ordinary
`AuditData`, coded exactly as the whole. `AuditData` holds its batches, so this module cannot name its type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np

from evenhand.errors import DataError
from evenhand.intake.progress import Tell, paced
from evenhand.intake.row_sample import RowSample

# Rows of one batch: large enough for a model to be fast, small enough for any memory.
BATCH_ROWS = 65_536

# So many rows are drawn by their content while the rows are walked over for the first time: most audits that let rows
# stay where they are ask for some of them, and a walk of its own would cost as much as letting the model score.
DRAWN_ROWS = 50_000
FIRST_ROWS = 2_000  # that show what the columns look like
_DRAWN, _DRAWN_SEED = "drawn rows", 0


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
        Rows that are used; with frequency weights, those that they stand for.
    features : tuple of str
        The model's inputs, which every batch has.

    Attributes
    ----------
    of_period : callable or None
        From a period and its number of rows to the batches of that period, where a column of periods was named.
    progress : callable or None
        Called with a short text that says how far a walk over the rows is.
    drawn_rows : int or None
        How many rows the first walk draws, where fewer than usual are enough.
    """

    of_period: Callable[[str, int], Batches] | None = None
    progress: Tell | None = None
    drawn_rows: int | None = None
    _draws = True  # whether the first walk draws rows: not where they are at hand, or others draw them

    def __init__(self, rows: int, features: Sequence[str]) -> None:
        self.rows = rows
        self.features = tuple(features)
        self._expected: dict[str, Callable[[], Summary]] = {}  # what the next walk adds up for later, by name
        self._ahead: dict[str, Any] = {}  # what was added up so
        self._drawn: dict[int, RowSample] = {}  # by seed
        self._samples: dict[tuple[int, int], Any] = {}  # by rows and seed
        self._first: Any = None

    @property
    def plain(self) -> Batches:
        """The rows as they were read, without what a model made of them."""
        return self

    def fold(self, make: Callable[[], S]) -> S:
        """Add up all batches where the rows are, in one walk with what is expected; the first one draws some rows too.

        Parameters
        ----------
        make : callable
            Returns a summary that has taken nothing. It and its summaries can be pickled.

        Returns
        -------
        Summary
            One that has taken all rows.
        """
        further = dict(self._expected)
        if self._draws and _DRAWN_SEED not in self._drawn:
            further[_DRAWN] = RowSample.sparing(self.drawn_rows or DRAWN_ROWS, _DRAWN_SEED, of=self.rows)
        if not further:
            return self._walk(make)
        asked, *others = self._walk(partial(Several, make, *further.values())).summaries
        self._expected.clear()
        self._ahead |= dict(zip(further, others, strict=True))
        if _DRAWN in self._ahead:
            self._drawn[_DRAWN_SEED] = self._ahead.pop(_DRAWN)
        return cast(S, asked)

    def expect(self, name: str, make: Callable[[], Summary]) -> None:
        """Let the next walk over the rows add up something more, which is asked for later with `expected`.

        Parameters
        ----------
        name : str
            Whoever asks for it says the same name.
        make : callable
            As for `fold`.
        """
        self._expected[name] = make

    def expected(self, name: str, make: Callable[[], S]) -> S:
        """Return what a walk before has added up under a name, once; where none has, walk over the rows now.

        Parameters
        ----------
        name, make
            As for `expect`.

        Returns
        -------
        Summary
        """
        if name in self._ahead:
            return cast(S, self._ahead.pop(name))
        self._expected.pop(name, None)
        return self.fold(make)

    @abstractmethod
    def _walk(self, make: Callable[[], S]) -> S:
        """Walk over all batches once."""

    def first(self) -> Any:
        """Return some rows that are quickly at hand, `FIRST_ROWS` at most; which ones is left to where they are.

        Returns
        -------
        AuditData
        """
        if self._first is None:
            some = self._read_first()
            self._first = self.sample(FIRST_ROWS, seed=_DRAWN_SEED) if some is None else some
        return self._first

    def _read_first(self) -> Any:
        """Return the first rows that are used, or None where that says nothing or cannot be had."""
        return None

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
        if (rows, seed) not in self._samples:
            held = self._drawn.get(seed)
            if held is None or not held.holds(rows):
                most = max(rows, self.drawn_rows or DRAWN_ROWS) if seed == _DRAWN_SEED else rows
                held = self._walk(RowSample.sparing(most, seed, of=self.rows))
            if not held.holds(rows):  # many rows are equal, so that those with small hashes are few
                held = self._walk(partial(RowSample, rows, seed))
            self._drawn[seed] = held
            self._samples = {(rows, seed): held.drawn(rows)}
        return self._samples[rows, seed]


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
        made = cls(partial(pieces, data, size), int(data.count.sum()), [*data.features])
        made._draws = False
        return made

    def _read_first(self) -> Any:
        some = next((batch for batch in self._read() if batch.count.size), None)
        return None if some is None else some.records(np.arange(min(FIRST_ROWS, some.count.size)))

    def _walk(self, make: Callable[[], S]) -> S:
        # An error that ends a walk may be held while others begin, and an engine may allow one at a time.
        with closing(paced(self._read(), self.rows, self.progress)) as batches:
            return add_up(make(), batches)


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

    _draws = False

    def __init__(self, batches: Batches, change: Callable[[Any], Any]) -> None:
        super().__init__(batches.rows, batches.features)
        self._batches, self._change = batches, change

    @property
    def plain(self) -> Batches:
        """The rows before the change."""
        return self._batches

    def _walk(self, make: Callable[[], S]) -> S:
        return self._batches.fold(partial(_Changed, make, self._change)).summary

    def _read_first(self) -> Any:
        return self._change(self._batches.first())

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


class Several:
    """Summaries that take the same batches.

    Parameters
    ----------
    makes : callable
        Each returns a summary that has taken nothing.
    """

    def __init__(self, *makes: Callable[[], Summary]) -> None:
        self.summaries: list[Any] = [make() for make in makes]

    def add(self, batch: Any) -> None:
        """Add a batch to each."""
        for summary in self.summaries:
            summary.add(batch)

    def merge(self, other: Several) -> None:
        """Take what others have taken."""
        for mine, theirs in zip(self.summaries, other.summaries, strict=True):
            mine.merge(theirs)


class _OneBatch(Batches):
    """Rows in memory."""

    _draws = False

    def __init__(self, data: Any) -> None:
        super().__init__(int(data.count.sum()), [*data.features])
        self._data = data

    def _walk(self, make: Callable[[], S]) -> S:
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
