"""How a distance to the boundary is measured: length and unit of a move, what jumps, and the effort of a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError

NORMS = {"l2": 2.0, "l1": 1.0, "linf": math.inf}
METHODS = ("auto", "linear", "kernel", "tree", "search")
SCALES = ("std", "range", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """How people move towards the other decision.

    Examples
    --------
    >>> Moves(norm="l1").unit(np.array([[0.0], [4.0]]))
    (array([2.]), 'standard deviations of the audited data')
    """

    norm: str = "l2"  # "l2", "l1", "linf": length of a move
    # "std", "range", "none" or a number each: the unit of each feature: its standard deviation or range in the data,
    # one, or given numbers.
    scale: str | Sequence[float] = "std"
    # "auto", "linear", "kernel", "tree", "search": "auto" takes the formula that fits the model and searches otherwise.
    method: str = "auto"
    categorical: Sequence[str] = ()  # columns that jump at the price `delta` instead of moving; linear classifiers only
    delta: float = 1.0  # that price, in the units of the other features
    # "together" or "each": one price for all columns together, or one for each that changes; see
    # `evenhand.models.linear.plane_distance`.
    jumps: str = "together"
    # starts, rounds: effort of a search: rows to start towards, and rounds of improvement.
    starts: int = 3
    rounds: int = 2

    def __post_init__(self) -> None:
        for option, value, allowed in (("norm", self.norm, NORMS), ("method", self.method, METHODS)):
            if value not in allowed:
                raise UsageError(f"`{option}` is `{value}`; allowed: {', '.join(f'`{n}`' for n in allowed)}.")

    def unit(self, X: FloatArray, count: IntArray | None = None) -> tuple[FloatArray, str]:
        """Return the unit of each column that moves, and its name for reports; a row counts its people."""
        if isinstance(self.scale, str):
            if self.scale not in SCALES:
                allowed = ", ".join(f"`{s}`" for s in SCALES)
                raise UsageError(f"`scale` is `{self.scale}`; allowed: {allowed} or one number per feature.")
            if self.scale == "none":
                return np.ones(X.shape[1]), "the features' own units"
            X = X if count is None else np.repeat(X, count, axis=0)
            spread = X.std(axis=0) if self.scale == "std" else X.max(axis=0) - X.min(axis=0)
            words = "standard deviations" if self.scale == "std" else "ranges"
            return np.where(spread > 0, spread, 1.0), f"{words} of the audited data"
        unit = np.asarray(self.scale, dtype=float)
        if unit.shape != (X.shape[1],) or not np.all(unit > 0) or not np.isfinite(unit).all():
            raise DataError(f"`scale` must hold {X.shape[1]} positive numbers, one per feature; got {unit!r}.")
        return unit, "units given by the user"


def length(delta: FloatArray, norm: str) -> FloatArray:
    """Return the length of each row in a norm.

    Examples
    --------
    >>> length(np.array([[3.0, 4.0]]), "l2").tolist()
    [5.0]
    """
    return np.asarray(np.linalg.norm(delta, ord=NORMS[norm], axis=1), dtype=float)
