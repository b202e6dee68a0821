"""Where people of unknown group may belong: the assignments that make a difference as small or as large as possible.

A rate of group a rises with each person of its numerator who is put into a, and falls with each one who is in its
denominator only; the other group's rate does the same. So the difference and the ratio of a to b are largest when all
unknown people of the numerator belong to a and the others of the denominator to b: the two wishes never meet in one
person, and no third group is needed. The smallest values come from the opposite assignment. The same holds for every
function of the confusion table that rises in some cells and falls in the others, such as balanced accuracy.

For means the wishes can meet. Exchanging a person of a with one of b (or of elsewhere) who has a larger value raises
the mean of a and lowers that of b, so in the best assignment the people with the largest values belong to a, those
with the smallest to b, and those between, if anybody, elsewhere. Nobody is elsewhere whom either group wants: a wants
everybody above its mean, b everybody below. So either both groups take what they want and it does not meet, or, always
with two groups only, the unknown are divided in two at one value, and all such divisions are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray

A, B, ELSEWHERE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanParts:
    """Sums of two groups and the records of unknown group, for means."""

    weight: tuple[float, float]  # of the people known to be in a and in b
    total: tuple[float, float]  # weighted sums of their values
    value: FloatArray  # (U,): of each record of unknown group
    unknown: FloatArray  # (U,): its weight


def assign_cells(cells: IntArray, rising: tuple[int, ...], falling: tuple[int, ...]) -> IntArray:
    """Assign people so that a's value is largest and b's smallest, where values rise and fall with known cells.

    Parameters
    ----------
    cells : ndarray of int, shape (U,)
        The cell of the confusion table of each record of unknown group.
    rising, falling : tuple of int
        The cells that raise a group's value, and those that lower it; others do not matter.

    Returns
    -------
    ndarray of int, shape (U,)
        0 for a, 1 for b, 2 for elsewhere.

    Examples
    --------
    >>> assign_cells(np.array([0, 1, 2, 3]), (2,), (3,)).tolist()
    [2, 2, 0, 1]
    """
    return np.where(np.isin(cells, rising), A, np.where(np.isin(cells, falling), B, ELSEWHERE))


def assign_values(parts: MeanParts, *, elsewhere: bool, ratio: bool = False) -> IntArray:
    """Assign people so that the mean of a minus (or over) the mean of b is largest.

    Parameters
    ----------
    parts : MeanParts
        What is known, and the records of unknown group.
    elsewhere : bool
        Whether there are other groups to which they can belong.
    ratio : bool
        Whether the ratio is made largest and not the difference; values are at least 0 then.

    Returns
    -------
    ndarray of int, shape (U,)
        0 for a, 1 for b, 2 for elsewhere.

    Examples
    --------
    >>> parts = MeanParts(weight=(2.0, 2.0), total=(1.0, 1.0), value=np.array([0.9, 0.5, 0.1]), unknown=np.ones(3))
    >>> assign_values(parts, elsewhere=True).tolist(), assign_values(parts, elsewhere=False).tolist()
    ([0, 2, 1], [0, 1, 1])
    """
    order = np.argsort(-parts.value, kind="stable")
    w, wv = parts.unknown[order], (parts.unknown * parts.value)[order]
    # Means of a with its first t records, and of b with all but its first t, t = 0, ..., U.
    a = _means(parts.total[A], parts.weight[A], wv, w)
    b = _means(parts.total[B], parts.weight[B], wv[::-1], w[::-1])[::-1]
    first, last = int(np.argmax(a)), len(w) - int(np.argmax(-b[::-1]))
    if not elsewhere or first > last:
        with np.errstate(divide="ignore"):
            first = last = int(np.argmax(a / b if ratio else a - b))
    places = np.full(len(w), ELSEWHERE)
    places[:first], places[last:] = A, B
    assigned = np.empty(len(w), dtype=np.int64)
    assigned[order] = places
    return assigned


def _means(total: float, weight: float, more: FloatArray, of_weight: FloatArray) -> FloatArray:
    """Return the means after each number of further records."""
    sums = total + np.concatenate([[0.0], np.cumsum(more)])
    means: FloatArray = sums / (weight + np.concatenate([[0.0], np.cumsum(of_weight)]))
    return means
