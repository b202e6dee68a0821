"""Changes of score of one group's members, added up over any division of the people.

Few people's changes are all kept. Of many, the largest are kept as they are, and all others are counted in bins so
narrow that each change is known within a stated share of its size; zero and the margin part bins, so that counts above
them are exact, and sums are those of the people.
"""

from __future__ import annotations

import math

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.extremes.logit_peak import LogitShift
from evenhand.kernels.shared.descending import Descending
from evenhand.kernels.shared.value_bins import bin_places

EXACT_ROWS = 1 << 20  # up to here all changes are kept
LARGEST = 1 << 14  # of more people: the fit, its checks and the peak of a logistic model use at most a few hundred
DIGITS = 12  # of the other changes


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
        # Kept changes and the scores before them: all, or the largest, falling.
        self._kept: list[tuple[FloatArray, FloatArray]] = []
        self._bins: IntArray = np.empty((0, 2), dtype=np.int64)  # (bins, 2): place, and how many cuts lie below
        self._sums: FloatArray = np.empty((0, 4))  # (bins, 4): people, sum, smallest and largest change

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
        self._kept.append((change, before))
        if self._binned and change.size:
            place, segment = bin_places(change, DIGITS), np.searchsorted(self._cuts, change, side="left")
            keys = np.column_stack([place, segment.astype(np.int64)])
            self._take(keys, np.column_stack([np.ones(change.size), change, change, change]))
            self._keep_largest()

    def merge(self, other: Changes) -> None:
        """Take the members of another part."""
        self.rows += other.rows
        self.largest = max(self.largest, other.largest)
        self.shift.merge(other.shift)
        self._kept += other._kept
        if self._binned and len(other._bins):
            self._take(other._bins, other._sums)
            self._keep_largest()

    def _take(self, keys: IntArray, sums: FloatArray) -> None:
        keys, sums = np.vstack([self._bins, keys]), np.vstack([self._sums, sums])
        wide = len(self._cuts) + 1
        distinct, at = np.unique(keys[:, 0] * wide + keys[:, 1], return_inverse=True)
        self._bins = np.column_stack([distinct // wide, distinct % wide])
        made = np.empty((distinct.size, 4))
        made[:, 0], made[:, 1] = (np.bincount(at, weights=sums[:, j], minlength=distinct.size) for j in (0, 1))
        made[:, 2], made[:, 3] = math.inf, -math.inf
        np.minimum.at(made[:, 2], at, sums[:, 2])
        np.maximum.at(made[:, 3], at, sums[:, 3])
        self._sums = made

    def _keep_largest(self) -> None:
        change, before = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        if change.size > LARGEST:
            top = np.argpartition(-change, LARGEST - 1)[:LARGEST]
            change, before = change[top], before[top]
        self._kept = [(change, before)]

    def sample(self) -> Descending:
        """Return all changes, sorted downwards."""
        if not self._kept:
            return Descending(np.empty(0))
        top = 0.0 - np.sort(np.concatenate([0.0 - change for change, _ in self._kept]))
        if not self._binned or top.size == self.rows:
            return Descending(top)
        # What is kept is taken out of its bins; of a bin that is cut the rest lies below what is kept.
        place, segment = bin_places(top, DIGITS), np.searchsorted(self._cuts, top, side="left")
        wide = len(self._cuts) + 1
        own = self._bins[:, 0] * wide + self._bins[:, 1]
        at = np.searchsorted(own, place * wide + segment)
        people = self._sums[:, 0] - np.bincount(at, minlength=own.size)
        total = self._sums[:, 1] - np.bincount(at, weights=top, minlength=own.size)
        left = people > 0.5
        mean = total[left] / people[left]
        value = np.clip(mean, self._sums[left, 2], np.minimum(self._sums[left, 3], top[-1]))
        order = np.argsort(-value, kind="stable")
        counts = np.concatenate([np.ones(top.size, dtype=np.int64), people[left][order].astype(np.int64)])
        return Descending(np.concatenate([top, value[order]]), counts)

    def nearest_peak(self) -> FloatArray:
        """Return the scores before the changes that are kept: the nearest to the peak of a logistic model."""
        return np.concatenate([before for _, before in self._kept]) if self._kept else np.empty(0)
