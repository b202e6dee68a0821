"""What `AuditData` is made of: attributes, labels, types of features, sums and row counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribute:
    """A protected attribute: its name, the labels of its groups and each record's group.

    Parameters
    ----------
    name : str
        The column, such as ``"sex"``, or ``"sex × race"`` for an intersection.
    labels : tuple of str
        The groups, sorted (or in the order of the cut points).
    codes : ndarray of int, shape (records,)
        Each record's place in `labels`.
    unknown : int or None
        The place of the label that people have whose group is not known, where they were kept as such; they are not a
        group to be compared.
    """

    name: str
    labels: tuple[str, ...]
    codes: IntArray  # (records,)
    unknown: int | None = None

    def group_name(self, code: int) -> str:
        """Return a group as findings name it: ``"sex=Female"``."""
        return f"{self.name}={self.labels[code]}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Probabilities:
    """An attribute that is not known but guessed: each record's probability of every group.

    Parameters
    ----------
    name : str
        The attribute, such as ``"race"``.
    labels : tuple of str
        The groups.
    values : ndarray, shape (records, groups)
        Probabilities that add up to 1 in each record.
    """

    name: str
    labels: tuple[str, ...]
    values: FloatArray  # (records, groups)

    def group_name(self, code: int) -> str:
        """Return a group as findings name it: ``"race=White"``."""
        return f"{self.name}={self.labels[code]}"

    def take(self, keep: BoolArray | IntArray) -> Probabilities:
        """Return some of the records."""
        return replace(self, values=self.values[keep])


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums of one per-row value over the rows of each record, made by the engine that holds the rows.

    Parameters
    ----------
    wv, wwv, wwvv : ndarray, shape (records,)
        Sums of w v, w² v and w² v², where w is the sampling weight or 1.
    """

    wv: FloatArray
    wwv: FloatArray
    wwvv: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Which original values of a column count as 1, and which as 0."""

    # The values as texts, such as ``("approved",)`` and ``("denied",)``. Empty where none occurs.
    one: tuple[str, ...]
    zero: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, list[str]]:
        """Return them as plain data.

        Examples
        --------
        >>> Labels(one=("approved",), zero=("denied",)).to_dict()
        {'one': ['approved'], 'zero': ['denied']}
        """
        return {"one": list(self.one), "zero": list(self.zero)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureType:
    """How a feature was kept in its source, where numbers as floats, or texts, do not say it."""

    kind: str  # whole numbers, True and False, or one of fixed categories; one of "integer", "truth", "category"
    categories: tuple[Any, ...] = ()  # the source's own values, in its order
    ordered: bool = False  # whether that order means something


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """How many rows came in, how many are used, and why the others are not.

    Parameters
    ----------
    rows_in, rows_used : int
        Before and after checking.
    dropped : mapping of str to int
        Reason to number of rows; the numbers add up to the difference.
    """

    rows_in: int
    rows_used: int
    dropped: Mapping[str, int] = field(default_factory=dict)
