"""Repeated values among the largest: how many, and how to treat them as rounded."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray

# With fewer distinct values the tail is a set of atoms: no density to fit. So it is when fewer than this share of the
# values are distinct or one value is this frequent, unless all lie on an even grid, as rounding makes it.
LEAST_DISTINCT = 10
LARGEST_ATOM = 0.25
LEAST_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Ties:
    """How often values repeat among the largest."""

    distinct: int  # distinct values among the largest
    of: int  # how many were looked at
    largest: int  # rows that share the most frequent value
    even: bool = False  # whether the distinct values lie on an even grid

    @property
    def atoms(self) -> bool:
        """Whether the tail is a set of points rather than a range."""
        if self.distinct < LEAST_DISTINCT or self.largest > self.of / 2:
            return True
        uneven = self.distinct < LEAST_SHARE * self.of or self.largest > LARGEST_ATOM * self.of
        return uneven and not self.even

    @property
    def spread(self) -> bool:
        """Whether tied values are spread over what rounding may have joined."""
        return self.tied and not self.atoms

    @property
    def tied(self) -> bool:
        """Whether enough values repeat that the fit must treat them as rounded."""
        return self.distinct < 0.95 * self.of


def count_ties(values: FloatArray, k: int) -> Ties:
    """Count repeated values among the k largest.

    Parameters
    ----------
    values : ndarray
        The sample, at least k values.
    k : int
        How many to look at.

    Returns
    -------
    Ties

    Examples
    --------
    >>> count_ties(np.array([1.0, 2.0, 2.0, 3.0]), 3)
    Ties(distinct=2, of=3, largest=2, even=True)
    """
    top = -np.partition(-values, k - 1)[:k]
    levels, counts = np.unique(_rounded(top), return_counts=True)
    gaps = np.diff(levels)
    steps = gaps / gaps.min() if gaps.size else gaps
    even = bool(np.all(np.abs(steps - np.round(steps)) < 1e-4) and steps.size and steps.max() < 1e3)
    return Ties(distinct=int(counts.size), of=k, largest=int(counts.max()), even=even)


def _rounded(values: FloatArray) -> FloatArray:
    # Two equal rows may differ in the last bits of a prediction.
    return np.asarray(np.round(values, 11))


def spread_ties(values: FloatArray, *, upper: float = math.inf) -> FloatArray:
    """Spread tied values evenly over the cell that rounding may have taken them from.

    A cell reaches half way to the nearer neighbouring value on both sides; fitting the spread values approximates the
    likelihood of interval-censored data.

    Parameters
    ----------
    values : ndarray
        The sample.
    upper : float
        No value moves beyond this.

    Returns
    -------
    ndarray
        Sorted downwards.

    Examples
    --------
    >>> spread_ties(np.array([0.0, 1.0, 1.0, 2.0])).tolist()
    [2.0, 1.25, 0.75, 0.0]
    """
    levels, counts = np.unique(_rounded(values), return_counts=True)
    if levels.size == values.size or levels.size < 2:
        return np.asarray(-np.sort(-values))
    gaps = np.diff(levels)
    below = np.minimum(np.concatenate([gaps[:1], gaps]), np.concatenate([gaps, gaps[-1:]])) / 2
    above = np.minimum(below, np.maximum(upper - levels, 0.0))
    start = np.repeat(np.cumsum(counts) - counts, counts)
    place = (np.arange(values.size) - start + 0.5) / np.repeat(counts, counts)
    low, width = np.repeat(levels - below, counts), np.repeat(below + above, counts)
    spread = np.where(np.repeat(counts, counts) == 1, np.repeat(levels, counts), low + place * width)
    return np.asarray(-np.sort(-spread))
