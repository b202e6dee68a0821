"""A sample sorted downwards, as values or as values with their counts: order statistics and counts above a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Descending:
    """A sample sorted downwards.

    Examples
    --------
    >>> sample = Descending(np.array([3.0, 1.0]), np.array([2, 3]))
    >>> sample.size, sample.at(np.array([0, 1, 2])).tolist(), int(sample.above(1.0))
    (5, [3.0, 3.0, 1.0], 2)
    """

    values: FloatArray  # (records,): falling
    counts: IntArray | None = None  # (records,): rows of each; None when each is one

    @classmethod
    def of(cls, sample: FloatArray | Descending) -> Descending:
        """Take values sorted downwards, or a sample as it is."""
        return sample if isinstance(sample, Descending) else cls(np.asarray(sample, dtype=np.float64))

    @cached_property
    def ends(self) -> IntArray:
        """Rows before each record, and all rows at the end; shape (records + 1,)."""
        counts = np.ones(self.values.size, dtype=np.int64) if self.counts is None else self.counts
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def size(self) -> int:
        """Rows."""
        return int(self.values.size if self.counts is None else self.ends[-1])

    def at(self, place: Any) -> Any:
        """Return the value of the row at each place, the largest at 0."""
        if self.counts is None:
            return self.values[place]
        return self.values[np.searchsorted(self.ends, place, side="right") - 1]

    def above(self, value: Any) -> Any:
        """Return how many rows are larger than each value."""
        return self.ends[np.searchsorted(-self.values, -np.asarray(value), side="left")]

    def reaching(self, value: Any) -> Any:
        """Return how many rows are at least each value."""
        return self.ends[np.searchsorted(-self.values, -np.asarray(value), side="right")]

    def records(self, rows: int) -> FloatArray:
        """Return the values among the first rows, each once for every record."""
        return self.values[: int(np.searchsorted(self.ends[:-1], rows))]

    def head(self, rows: int) -> FloatArray:
        """Return the values of the first rows."""
        if self.counts is None:
            return self.values[:rows]
        held = int(np.searchsorted(self.ends[:-1], rows))
        return np.repeat(self.values[:held], self.counts[:held])[:rows]

    def changed(self, change: Callable[[FloatArray], FloatArray]) -> Descending:
        """Return the sample with other values in the same order."""
        return Descending(change(self.values), self.counts)

    def mean(self, power: int = 1, centre: float = 0.0) -> float:
        """Return the mean of a power of the values around a centre."""
        terms = self.values if power == 1 and centre == 0 else (self.values - centre) ** power
        return float(terms.mean() if self.counts is None else np.dot(self.counts, terms) / self.size)

    def deviation(self) -> float:
        """Return the standard deviation, with one row less than there are."""
        if self.counts is None:
            return float(self.values.std(ddof=1))
        return float(np.sqrt(self.mean(2, self.mean()) * self.size / (self.size - 1)))
