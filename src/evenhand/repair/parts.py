"""Divide people into three parts: to train on, to choose on, to certify on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.arrays import IntArray
from evenhand.errors import DataError, UsageError
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.shared.seeds import stream

NAMES = ("train", "choose", "certify")


def check_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """Return the shares of the three parts, which must be positive and sum to 1.

    Examples
    --------
    >>> check_shares([0.5, 0.25, 0.25])
    (0.5, 0.25, 0.25)
    """
    made = tuple(float(s) for s in shares)
    if len(made) != 3 or min(made) <= 0 or abs(sum(made) - 1) > 1e-9:
        raise UsageError(
            f"`parts` is {list(shares)}. Give three positive shares that sum to 1, to train, to choose and to certify, "
            "such as 0.5, 0.25, 0.25."
        )
    return made


def three_parts(
    data: AuditData, attributes: Sequence[Attribute], shares: Sequence[float], seed: int
) -> tuple[AuditData, AuditData, AuditData]:
    """Divide people at random, the same share of each group and outcome.

    Parameters
    ----------
    data : AuditData
        With a binary outcome.
    attributes : sequence of Attribute
        Whose groups, and their intersections, are to be in every part.
    shares : sequence of float
        Of the three parts.
    seed : int
        Of the division.

    Returns
    -------
    tuple of AuditData
        To train, to choose and to certify on.

    Examples
    --------
    >>> import evenhand as eh
    >>> data = eh.datasets.planted(rows=400, rng=0)
    >>> [part.rows.rows_used for part in three_parts(data, data.attributes, (0.5, 0.25, 0.25), 0)]
    [200, 99, 101]
    """
    assert data.outcome is not None
    keys = np.column_stack([data.outcome, *(a.codes for a in attributes)])
    _, cell = np.unique(keys, axis=0, return_inverse=True)
    cell = np.repeat(cell.ravel(), data.count)
    part = np.empty(cell.size, dtype=np.int64)
    rng = stream(seed, "mitigate/parts")
    order = rng.permutation(cell.size)
    ends = np.cumsum(check_shares(shares))[:-1]
    for members in _by_value(cell, order):
        # A random start keeps the expected shares also in cells with few people.
        part[members] = np.searchsorted(ends, (np.arange(members.size) + rng.random()) / members.size, side="right")
    train, choose, certify = (data.take(np.flatnonzero(part == j)) for j in range(3))
    for name, made in zip(NAMES, (train, choose, certify), strict=True):
        _check(name, made, attributes)
    return train, choose, certify


def _by_value(cell: IntArray, order: IntArray) -> list[IntArray]:
    """Return the positions of each cell, in a random order."""
    by_cell = order[np.argsort(cell[order], kind="stable")]
    return np.split(by_cell, np.cumsum(np.bincount(cell))[:-1])


def _check(name: str, part: AuditData, attributes: Sequence[Attribute]) -> None:
    """Refuse a part in which nothing could be learned or shown."""
    if part.outcome is None or np.unique(part.outcome).size < 2:
        raise DataError(
            f"After the division only one outcome is left among the {part.rows.rows_used} people of the part to {name} "
            "on. Give more rows, or a larger share with `parts`."
        )
    for attribute in attributes:
        sizes = np.bincount(part.attribute(attribute.name).codes, minlength=len(attribute.labels))
        if not sizes.all():
            absent = attribute.group_name(int(np.flatnonzero(sizes == 0)[0]))
            raise DataError(
                f"After the division nobody of group `{absent}` is left in the part to {name} on. Join this group with "
                "another, leave it out, or give more rows."
            )
