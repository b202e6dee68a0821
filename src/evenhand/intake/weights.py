"""Weights: rows that stand for several rows (frequency), or for a part of the population (sampling)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError
from evenhand.intake.options import Options
from evenhand.intake.wording import count_of

# A hundred times as many as people live; exact tests on more would not end.
MOST_COUNTED = 10**12
# Squares of weights, and sums of them, stay far from the ends of what a double holds.
SMALLEST, LARGEST = 1e-100, 1e100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightSums:
    """What must be known of the weights of each record's rows."""

    # (records,): sums of w and w².
    total: FloatArray
    square: FloatArray
    # (records,): smallest and largest positive weight.
    low: FloatArray
    high: FloatArray
    # (records,): rows whose weight is zero, is not whole, is NaN, infinite or negative.
    zero: IntArray
    broken: IntArray
    bad: IntArray

    @classmethod
    def of_rows(cls, weight: FloatArray) -> WeightSums:
        """Take one weight per row."""
        with np.errstate(invalid="ignore", over="ignore"):
            return cls(
                total=weight,
                square=weight * weight,
                low=weight,
                high=weight,
                zero=(weight == 0).astype(np.int64),
                broken=(weight != np.floor(weight)).astype(np.int64),
                bad=(~(np.isfinite(weight) & (weight >= 0))).astype(np.int64),
            )

    def span(self, live: BoolArray) -> tuple[float, float]:
        """Return the smallest and the largest positive weight of the marked records, NaN when there is none."""
        if not live.any():
            return math.nan, math.nan
        return float(np.fmin.reduce(self.low[live])), float(np.fmax.reduce(self.high[live]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Count and sampling weight of each record."""

    count: IntArray  # (records,): rows the record stands for
    # Sums of w and w² over these rows; None when all weights are equal.
    total: FloatArray | None = None
    square: FloatArray | None = None
    constant: float = 1.0  # the common weight when all are equal, for undoing it in sums an engine has made
    zero: IntArray | None = None  # rows of the source with weight zero
    notes: tuple[str, ...] = ()  # what was decided

    def take(self, keep: BoolArray) -> Weights:
        """Return the marked records."""
        return replace(
            self,
            count=self.count[keep],
            total=None if self.total is None else self.total[keep],
            square=None if self.square is None else self.square[keep],
            zero=None,
        )


def weight_kind(name: str, asked: str, sums: WeightSums, live: BoolArray) -> str:
    """Tell counts from sampling weights, from facts about the whole column; what could be either is refused.

    Parameters
    ----------
    name : str
        The weight's column.
    asked : {"auto", "frequency", "sampling"}
        The user's word.
    sums : WeightSums
        The facts.
    live : ndarray of bool, shape (records,)
        Records with a weight above 0.

    Returns
    -------
    {"frequency", "sampling"}

    Examples
    --------
    >>> weight_kind("w", "auto", WeightSums.of_rows(np.array([0.5, 2.0])), np.array([True, True]))
    'sampling'
    >>> weight_kind("w", "frequency", WeightSums.of_rows(np.array([1.0, 57.0])), np.array([True, True]))
    'frequency'
    """
    broken, bad, total = int(sums.broken.sum()), int(sums.bad.sum()), float(sums.total.sum())
    low, high = sums.span(live)
    if bad:
        raise DataError(
            f"Weight `{name}` is missing, NaN, infinite or negative in {count_of(bad, 'row')}; "
            f"weights must be finite and at least 0."
        )
    if asked == "frequency" and broken:
        raise DataError(
            f"Weight `{name}` is not a whole number in {count_of(broken, 'row')}; frequency weights "
            f"count rows. Use `weight_kind='sampling'`."
        )
    kind = asked if asked != "auto" else "sampling" if broken else "frequency"
    if kind == "sampling" and (low < SMALLEST or high > LARGEST):
        raise DataError(
            f"Weight `{name}` reaches from {low:.3g} to {high:.3g}; sampling weights must lie between {SMALLEST:g} "
            f"and {LARGEST:g}. Divide them by their mean: only their ratios matter."
        )
    # Zeros are dropped, and ones mean the same either way.
    if asked == "auto" and not broken and high > 1:
        held = f"from {low:,.0f} to {high:,.0f} that differ" if high > low else f"that all are {high:,.0f}"
        raise DataError(
            f"Column `{name}` holds whole numbers {held}: are they numbers of identical people, each of whom is one "
            f"more row (`weight_kind='frequency'`), or survey weights, by which each row is still one person "
            f"(`weight_kind='sampling'`)? The p-values depend on it, so it must be said."
        )
    if kind == "frequency" and total > MOST_COUNTED:
        raise DataError(
            f"Weight `{name}` counts {total:.3g} rows in all; at most {MOST_COUNTED:,} can be counted. "
            f"If these are survey weights, use `weight_kind='sampling'`."
        )
    return kind


def code_weights(sums: WeightSums | None, options: Options, rows: IntArray, kept: BoolArray) -> Weights:
    """Turn the weights of all records into counts or sampling weights.

    Parameters
    ----------
    sums : WeightSums or None
        None when no weight is given.
    options : Options
        What was asked.
    rows : ndarray of int, shape (records,)
        Rows of the source behind each record.
    kept : ndarray of bool, shape (records,)
        Records still in use; only they decide whether all weights are equal.

    Returns
    -------
    Weights
    """
    name = options.weight
    if sums is None or name is None:
        return Weights(count=rows)
    kind = weight_kind(name, options.weight_kind, sums, rows > sums.zero)
    live = kept & (rows > sums.zero)
    if kind == "frequency":
        total = int(sums.total[live].sum())
        note = f"`{name}` is taken as frequency weights; the rows used stand for {count_of(total, 'row')}."
        return Weights(count=sums.total.astype(np.int64), zero=sums.zero, notes=(note,))
    why = " because some are not whole numbers" if options.weight_kind == "auto" else ""
    note = f"`{name}` is taken as sampling weights{why}."
    low, high = sums.span(live)
    if not low < high:
        equal = f"All sampling weights in `{name}` are equal, so they change nothing."
        constant = low if low == low else 1.0
        return Weights(count=rows - sums.zero, constant=constant, zero=sums.zero, notes=(note, equal))
    return Weights(count=rows - sums.zero, total=sums.total, square=sums.square, zero=sums.zero, notes=(note,))
