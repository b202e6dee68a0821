"""Changes of score of one group's members, added up over any division of the people.

Few people's changes are all kept. Of many, the largest are kept as they are, and all others are counted in bins so
narrow that each change is known within a stated share of its size; zero and the margin part bins, so that counts above
them are exact, and sums are those of the people.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.extremes.logit_peak import LogitShift
from evenhand.kernels.shared.descending import Descending
from evenhand.kernels.shared.value_bins import bin_places

EXACT_ROWS = 1 << 20  # up to here all changes are kept
LARGEST = 1 << 14  # of more people: the fit, its checks and the peak of a logistic model use at most a few hundred
DIGITS = 12  # of the other changes
_ROOM = 4  # times the largest may wait until those that are not among them are forgotten
_WAITING = 1 << 16  # lines of later tables that may wait until they join the first


class Changes:
    """What becoming a member of another group does to the scores of one group's members.

    Parameters
    ----------
    rows : int or None
        How many members there will be; None keeps all of them, however many.
    cuts : tuple of float
        Changes above which counts must be exact.

    Examples
    --------
    >>> changes = Changes.of(np.array([0.5, 0.4]), np.array([0.6, 0.4]))
    >>> changes.sample().values.round(2).tolist(), changes.rows
    ([0.1, 0.0], 2)
    """

    def __init__(self, rows: int | None = None, cuts: tuple[float, ...] = (0.0,)) -> None:
        self._binned = rows is not None and rows > EXACT_ROWS
        self._cuts = np.array(sorted(set(cuts)))
        self.rows = 0
        self.largest = 0.0  # the largest change either way
        self.shift = LogitShift()
        self._all: list[FloatArray] = []  # changes of everybody, where all are kept
        self._top: list[tuple[FloatArray, FloatArray]] = []  # the largest changes, and the scores before them
        self._floor = -math.inf  # smaller changes are not among the largest
        # Bins, rising, and of each, shape (bins, 4): people, sum, smallest and largest change. One table, and those of
        # people who came after it was made.
        self._tables: list[tuple[IntArray, FloatArray]] = []

    @classmethod
    def of(cls, before: FloatArray, after: FloatArray) -> Changes:
        """Take all members at once."""
        made = cls()
        made.add(before, after)
        return made

    @property
    def relative_error(self) -> float:
        """How much a change may differ from its person's own, as a share of its size; 0 where all are kept."""
        return 2.0**-DIGITS if self._binned else 0.0

    def add(self, before: FloatArray, after: FloatArray) -> None:
        """Take scores of some members as they are and as the other group's, higher is better."""
        change = 0.0 - (before - after)
        self.rows += before.size
        self.largest = max(self.largest, float(np.abs(change).max(initial=0.0)))
        self.shift.add(before, after)
        if not change.size:
            return
        near = np.flatnonzero(change >= self._floor)
        self._top.append((change[near], before[near]))
        self._keep_largest(_ROOM * LARGEST)
        if self._binned:
            self._tables.append(self._counted(change))
            self._join_tables(_WAITING)
        else:
            self._all.append(change)

    def merge(self, other: Changes) -> None:
        """Take the members of another part."""
        self.rows += other.rows
        self.largest = max(self.largest, other.largest)
        self.shift.merge(other.shift)
        self._all += other._all
        self._top += other._top
        self._keep_largest(_ROOM * LARGEST)
        self._tables += other._tables
        self._join_tables(_WAITING)

    def _counted(self, change: FloatArray) -> tuple[IntArray, FloatArray]:
        """Count changes in their bins. Larger ones never lie in lower bins, so that sorted each bin is one run."""
        change = np.sort(change)
        bins = self._bins(change)
        starts = _starts(bins)
        ends = np.append(starts[1:], change.size)
        sums = [ends - starts, np.add.reduceat(change, starts), change[starts], change[ends - 1]]
        return bins[starts], np.column_stack(sums)

    def _bins(self, change: FloatArray) -> IntArray:
        """Return each change's bin, which the cuts divide further."""
        below = np.searchsorted(self._cuts, change, side="left")
        return np.asarray(bin_places(change, DIGITS) * (len(self._cuts) + 1) + below)

    def _join_tables(self, most: int) -> None:
        """Make one table of all once those after the first have more lines than `most`."""
        if sum(bins.size for bins, _ in self._tables[1:]) <= most:
            return
        bins, sums = (np.concatenate(parts) for parts in zip(*self._tables, strict=True))
        order = np.argsort(bins, kind="stable")
        bins, sums = bins[order], sums[order]
        starts = _starts(bins)
        each = zip((np.add, np.add, np.minimum, np.maximum), sums.T, strict=True)
        self._tables = [(bins[starts], np.column_stack([add.reduceat(column, starts) for add, column in each]))]

    def _keep_largest(self, most: int) -> None:
        """Forget all but the largest changes once there are more than `most`."""
        if sum(change.size for change, _ in self._top) <= most:
            return
        change, before = (np.concatenate(parts) for parts in zip(*self._top, strict=True))
        top = np.argpartition(-change, LARGEST - 1)[:LARGEST]
        self._top, self._floor = [(change[top], before[top])], float(change[top].min())

    def __getstate__(self) -> dict[str, Any]:
        self._keep_largest(LARGEST)  # what travels is small
        self._join_tables(0)
        return self.__dict__

    def sample(self) -> Descending:
        """Return all changes, sorted downwards."""
        if not self.rows:
            return Descending(np.empty(0))
        if not self._binned:
            return Descending(0.0 - np.sort(np.concatenate([0.0 - change for change in self._all])))
        self._keep_largest(LARGEST)
        self._join_tables(0)
        top = 0.0 - np.sort(np.concatenate([0.0 - change for change, _ in self._top]))
        ((bins, sums),) = self._tables
        # What is kept is taken out of its bins; of a bin that is cut the rest lies below what is kept.
        at = np.searchsorted(bins, self._bins(top))
        people = sums[:, 0] - np.bincount(at, minlength=bins.size)
        total = sums[:, 1] - np.bincount(at, weights=top, minlength=bins.size)
        left = people > 0.5
        mean = total[left] / people[left]
        value = np.clip(mean, sums[left, 2], np.minimum(sums[left, 3], top[-1]))
        order = np.argsort(-value, kind="stable")
        counts = np.concatenate([np.ones(top.size, dtype=np.int64), people[left][order].astype(np.int64)])
        return Descending(np.concatenate([top, value[order]]), counts)

    def nearest_peak(self) -> FloatArray:
        """Return the scores before the largest changes: of a logistic model, those nearest to its peak."""
        self._keep_largest(LARGEST)
        return np.concatenate([before for _, before in self._top]) if self._top else np.empty(0)


def _starts(bins: IntArray) -> IntArray:
    """Return where each run of equal bins begins."""
    return np.concatenate([[0], np.flatnonzero(bins[1:] != bins[:-1]) + 1])
