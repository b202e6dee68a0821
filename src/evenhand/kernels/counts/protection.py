"""Which totals of a count table to hold back so that nobody can work out the small ones from the others.

A table has parts, counted by kind. Totals add up parts; the grand total is always known. A total of which some kind is
small is held back, and with it further ones, until each total that is held back could have many values: whoever knows
every published total, that counts are not negative and that no total held back is empty finds a range of at least
`threshold` for each of its kinds and for their sum. Ranges come from linear programmes, so they also hold for whole
numbers wherever the totals are margins of a two-way table; elsewhere the whole numbers may lie a little closer.

The further totals are those of the cheapest change that would make the range wide enough: a linear programme in which
changing a published total costs its size.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from evenhand.arrays import BoolArray, FloatArray, IntArray

_TINY = 1e-6  # of a count: what the solver leaves behind


def held_back(parts: IntArray, totals: BoolArray, threshold: int) -> BoolArray | None:
    """Choose the totals to hold back.

    Parameters
    ----------
    parts : ndarray of int, shape (parts, kinds)
        How many there are of each kind.
    totals : ndarray of bool, shape (totals, parts)
        Which parts each total adds up.
    threshold : int
        A total with a kind below it is held back, one with none of a kind too.

    Returns
    -------
    ndarray of bool, shape (totals,), or None
        None where no choice protects them: the whole table is too small.

    Examples
    --------
    >>> held_back(np.array([[40, 3], [30, 20], [50, 60]]), np.eye(3, dtype=bool), 10)
    array([ True,  True, False])
    """
    counts = totals.astype(np.int64) @ parts
    held: BoolArray = np.asarray((counts < threshold).any(axis=1))
    safe = np.zeros_like(held)
    while True:
        waiting = np.flatnonzero(held & ~safe)
        if not waiting.size:
            return held
        place = int(waiting[0])
        narrow = _narrow(parts, totals, held, place, threshold)
        if narrow is None:
            safe[place] = True
            continue
        more = _cheapest(parts, totals, held, place, *narrow)
        if not (more & ~held).any():
            if held.all():
                return None
            more = np.ones_like(held)
        held = held | more


def feasible_range(
    parts: IntArray, totals: BoolArray, held: BoolArray, place: int, kind: int | None
) -> tuple[int, int]:
    """Return the least and the largest value of a total that agree with everything that is published.

    Parameters
    ----------
    parts, totals : ndarray
        As for `held_back`.
    held : ndarray of bool, shape (totals,)
        Which totals are held back.
    place : int
        The total.
    kind : int or None
        Of one kind, or of all together.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> table, held = np.array([[40, 3], [30, 20], [50, 60]]), np.array([True, True, False])
    >>> feasible_range(table, np.eye(3, dtype=bool), held, 0, 1)
    (0, 23)
    """
    known = _known(parts, totals, held)
    aim = _aim(totals, place, kind, parts.shape[1])
    low, high = (linprog(sign * aim, **known, method="highs").fun for sign in (1, -1))
    return int(np.ceil(low - _TINY)), int(np.floor(-high + _TINY))


def _narrow(
    parts: IntArray, totals: BoolArray, held: BoolArray, place: int, threshold: int
) -> tuple[int | None, int] | None:
    """Return the first kind of a total whose range is too narrow, and the value it should be able to reach."""
    for kind in (*range(parts.shape[1]), None):
        low, high = feasible_range(parts, totals, held, place, kind)
        if high - low < threshold:
            return kind, low + threshold
    return None


def _cheapest(
    parts: IntArray, totals: BoolArray, held: BoolArray, place: int, kind: int | None, value: int
) -> BoolArray:
    """Choose the published totals that change in the cheapest table in which a total reaches a value."""
    kinds, open_ = parts.shape[1], np.flatnonzero(~held)
    counts = totals.astype(np.int64) @ parts
    sums = kron(csr_array(totals[open_].astype(float)), eye_array(kinds))
    size, slack = parts.size, len(open_) * kinds
    # A little dearer with each place, so that of two equal choices it is always the same one.
    price = (counts[open_].sum(axis=1) + 1.0) * (1 + 1e-4 * np.arange(len(open_)) / max(len(open_), 1))
    known = _known(parts, totals, np.ones_like(held), filled=held)
    apart, aim = counts[open_].ravel(), _aim(totals, place, kind, kinds)
    none = csr_array((known["A_ub"].shape[0], slack))
    answer = linprog(
        np.concatenate([np.zeros(size), np.repeat(price, kinds)]),
        A_ub=vstack(
            [
                hstack([known["A_ub"], none]),
                hstack([sums, -eye_array(slack)]),
                hstack([-sums, -eye_array(slack)]),
                hstack([csr_array(-aim[None, :]), csr_array((1, slack))]),
            ]
        ),
        b_ub=np.concatenate([known["b_ub"], apart, -apart, [-float(value)]]),
        A_eq=hstack([known["A_eq"], csr_array((known["A_eq"].shape[0], slack))]),
        b_eq=known["b_eq"],
        method="highs",
    )
    chosen = np.zeros_like(held)
    if answer.status == 0:
        chosen[open_] = (answer.x[size:].reshape(len(open_), kinds) > _TINY).any(axis=1)
    return chosen


def _known(
    parts: IntArray, totals: BoolArray, held: BoolArray, *, filled: BoolArray | None = None
) -> dict[str, csr_array | FloatArray]:
    """Return what everybody knows of the parts: published totals, the grand total, and which totals are not empty."""
    kinds = parts.shape[1]
    shown = np.vstack([totals[~held], np.ones((1, len(parts)), dtype=bool)])
    some = totals[held if filled is None else filled].astype(float)
    return {
        "A_eq": csr_array(kron(csr_array(shown.astype(float)), eye_array(kinds))),
        "b_eq": (shown.astype(np.int64) @ parts).ravel().astype(float),
        "A_ub": csr_array(-np.repeat(some, kinds, axis=1)),
        "b_ub": -np.ones(len(some)),
    }


def _aim(totals: BoolArray, place: int, kind: int | None, kinds: int) -> FloatArray:
    """Return the coefficients of a total's kind, or of all its kinds, in the table laid out part by part."""
    of = np.ones(kinds) if kind is None else np.eye(kinds)[kind]
    return np.outer(totals[place], of).ravel()
