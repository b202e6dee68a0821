"""Weights: rows that stand for several rows (frequency), or for a part of the population (sampling)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.intake.options import Options
from evenhand.intake.wording import count_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Counts of identical rows rarely average more than this; survey weights usually do.
LARGE_MEAN = 100.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightSums:
    """What must be known of the weights of each record's rows.

    Parameters
    ----------
    total, square : ndarray, shape (records,)
        Sums of w and w².
    low, high : ndarray, shape (records,)
        Smallest and largest positive weight.
    zero, broken, bad : ndarray of int, shape (records,)
        Rows whose weight is zero, is not whole, is NaN, infinite or negative.
    """

    total: FloatArray
    square: FloatArray
    low: FloatArray
    high: FloatArray
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Count and sampling weight of each record.

    Parameters
    ----------
    count : ndarray of int, shape (records,)
        Rows the record stands for.
    total, square : ndarray or None
        Sums of w and w² over these rows; None when all weights are equal.
    constant : float
        The common weight when all are equal, for undoing it in sums an engine has made.
    zero : ndarray or None
        Rows of the source with weight zero.
    notes : tuple of str
        What was decided.
    """

    count: IntArray
    total: FloatArray | None = None
    square: FloatArray | None = None
    constant: float = 1.0
    zero: IntArray | None = None
    notes: tuple[str, ...] = ()

    def take(self, keep: NDArray[np.bool_]) -> Weights:
        """Return the marked records."""
        return replace(
            self,
            count=self.count[keep],
            total=None if self.total is None else self.total[keep],
            square=None if self.square is None else self.square[keep],
            zero=None,
        )


def weight_kind(name: str, asked: str, *, broken: int, bad: int, mean: float) -> str:
    """Decide whether weights are counts or sampling weights, from facts about the whole column.

    Parameters
    ----------
    name : str
        The weight's column.
    asked : {"auto", "frequency", "sampling"}
        The user's word.
    broken, bad : int
        Rows whose weight is not whole; rows whose weight is not allowed at all.
    mean : float
        Mean weight.

    Returns
    -------
    {"frequency", "sampling"}

    Examples
    --------
    >>> weight_kind("w", "auto", broken=0, bad=0, mean=2.5)
    'frequency'
    """
    if bad:
        raise DataError(
            f"Weight `{name}` is missing, NaN, infinite or negative in {count_of(bad, 'row')}; "
            f"weights must be finite and at least 0."
        )
    if asked == "frequency" and broken:
        raise DataError(
            f"Weight `{name}` is not a whole number in {count_of(broken, 'row')}; frequency weights "
            f"count rows. Use weight_kind='sampling'."
        )
    if asked != "auto":
        return asked
    if broken:
        return "sampling"
    if mean > LARGE_MEAN:
        raise DataError(
            f"Weight `{name}` holds whole numbers with mean {mean:,.1f}, which look like survey weights "
            f"and could be counts. Pass weight_kind='sampling' or weight_kind='frequency'."
        )
    return "frequency"


def code_weights(sums: WeightSums | None, options: Options, rows: IntArray, kept: NDArray[np.bool_]) -> Weights:
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
    kind = weight_kind(
        name,
        options.weight_kind,
        broken=int(sums.broken.sum()),
        bad=int(sums.bad.sum()),
        mean=float(sums.total.sum()) / max(int(rows.sum()), 1),
    )
    decided = options.weight_kind == "auto"
    live = kept & (rows > sums.zero)
    if kind == "frequency":
        total = int(sums.total[live].sum())
        why = " because all are whole numbers" if decided else ""
        note = f"`{name}` is taken as frequency weights{why}; the rows used stand for {count_of(total, 'row')}."
        return Weights(count=sums.total.astype(np.int64), zero=sums.zero, notes=(note,))
    why = " because some are not whole numbers" if decided else ""
    note = f"`{name}` is taken as sampling weights{why}."
    low, high = (float(sums.low[live].min()), float(sums.high[live].max())) if live.any() else (1.0, 1.0)
    if low == high:
        equal = f"All sampling weights in `{name}` are equal, so they change nothing."
        return Weights(count=rows - sums.zero, constant=low, zero=sums.zero, notes=(note, equal))
    return Weights(count=rows - sums.zero, total=sums.total, square=sums.square, zero=sums.zero, notes=(note,))
