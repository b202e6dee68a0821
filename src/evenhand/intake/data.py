"""`AuditData`: decisions about people, checked and coded, as arrays.

A record is one row, or a cell of identical rows that an engine counted; `count` says how many rows it
stands for. Everything after intake works on records, so a billion rows cost what their cells cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError, near_matches

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
    """

    name: str
    labels: tuple[str, ...]
    codes: IntArray  # (records,)

    def group_name(self, code: int) -> str:
        """Return a group as findings name it: ``"sex=Female"``."""
        return f"{self.name}={self.labels[code]}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    """Which original values of a column count as 1, and which as 0.

    Parameters
    ----------
    one, zero : tuple of str
        The values as texts, such as ``("approved",)`` and ``("denied",)``. Empty where none occurs.
    """

    one: tuple[str, ...]
    zero: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureType:
    """How a feature was kept in its source, where numbers as floats, or texts, do not say it.

    Parameters
    ----------
    kind : {"integer", "truth", "category"}
        Whole numbers, True and False, or one of fixed categories.
    categories : tuple
        The source's own values, in its order.
    ordered : bool
        Whether that order means something.
    """

    kind: str
    categories: tuple[Any, ...] = ()
    ordered: bool = False


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditData:
    """Checked decisions about people. Make one with `evenhand.read` or `AuditData.from_arrays`.

    Parameters
    ----------
    outcome : ndarray or None
        What really happened; 0.0 and 1.0 when `outcome_kind` is ``"binary"``.
    outcome_kind : {"binary", "numeric", "none"}
        Whether binary metrics apply.
    decision : ndarray or None
        What was decided, 0.0 or 1.0.
    score : ndarray or None
        The model's score; a probability when `score_kind` is ``"probability"``. When an engine
        binned it, each record carries its bin's middle.
    score_kind : {"probability", "real", "none"}
        Whether all scores lie in [0, 1].
    score_bins : int or None
        Number of bins when an engine binned the score, else None.
    attributes : tuple of Attribute
        The protected attributes, intersections included.
    continuous : mapping of str to ndarray
        Attributes tested as continuous, such as age.
    features : mapping of str to ndarray
        The model's inputs by column; empty when not given or not collected.
    feature_types : mapping of str to FeatureType
        How a feature was kept in its source, for models that were fitted on it so: whole numbers, True and False,
        categories. Floats and texts are not listed.
    labels : mapping of str to Labels
        By role (``"outcome"``, ``"decision"``): which original values count as 1 and which as 0. Under ``"model"``,
        when named with `positive`, the model's class that is decision 1.
    threshold : float or None
        The score from which on the decision is 1, when it was said.
    count : ndarray of int
        Rows each record stands for.
    weight : ndarray or None
        Sampling weight of each of a record's rows; None when all are equal. In cells made by an
        engine it is the mean weight, and `weight_square` holds the sum of squares.
    weight_square : ndarray or None
        Sum of squared sampling weights of each record's rows; None when `weight` is None.
    moments : mapping of str to Moments or None
        Sums by value name (see `evenhand.summaries`) when rows stayed on an engine, else None.
    columns : mapping of str to str
        Role to column name, for messages and the report.
    rows : RowCounts
        Rows in, used and dropped.
    notes : tuple of str
        What intake decided on the user's behalf, in sentences.
    fingerprint : str
        A hash of the data's content; row order does not matter.
    """

    outcome: FloatArray | None
    outcome_kind: str
    decision: FloatArray | None
    score: FloatArray | None
    score_kind: str
    score_bins: int | None = None
    attributes: tuple[Attribute, ...]
    continuous: Mapping[str, FloatArray] = field(default_factory=dict)
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    feature_types: Mapping[str, FeatureType] = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)
    threshold: float | None = None
    count: IntArray
    weight: FloatArray | None = None
    weight_square: FloatArray | None = None
    moments: Mapping[str, Moments] | None = None
    columns: Mapping[str, str]
    rows: RowCounts
    notes: tuple[str, ...] = ()
    fingerprint: str

    @classmethod
    def from_arrays(
        cls,
        *,
        outcome: ArrayLike | None = None,
        decision: ArrayLike | None = None,
        score: ArrayLike | None = None,
        groups: Mapping[str, ArrayLike],
        features: Any = None,
        weight: ArrayLike | None = None,
        **options: Any,
    ) -> AuditData:
        """Check and code plain arrays; the options are those of `evenhand.read`.

        Parameters
        ----------
        outcome, decision, score, weight : array-like, optional
            One value per row; arrays, lists or series. They are copied.
        groups : mapping of str to array-like
            Attribute name to one label per row; a frame is taken too.
        features : 2-D array, mapping or frame, optional
            The model's inputs; the columns of an array are called ``x0``, ``x1``, ...
        **options
            `weight_kind`, `positive`, `threshold`, `cuts`, `continuous`, `intersections`, `missing`,
            `rows`, `score_bins`: see `evenhand.read`.

        Returns
        -------
        AuditData

        Examples
        --------
        >>> data = AuditData.from_arrays(outcome=[1, 0, 1, 0], decision=[1, 0, 0, 0],
        ...                              groups={"sex": ["F", "M", "M", "F"]})
        >>> data.attribute("sex").codes.tolist()
        [0, 1, 1, 0]
        """
        from evenhand.intake.reader import read_arrays  # the reader makes objects of this class

        return read_arrays(
            outcome=outcome,
            decision=decision,
            score=score,
            groups=groups,
            features=features,
            weight=weight,
            **options,
        )

    def attribute(self, name: str) -> Attribute:
        """Return one attribute by name.

        Parameters
        ----------
        name : str
            Such as ``"sex"`` or ``"sex × race"``.

        Returns
        -------
        Attribute

        Raises
        ------
        UsageError
            When there is none of this name; near matches are offered.
        """
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        known = [a.name for a in self.attributes]
        raise UsageError(f"There is no attribute `{name}`.{near_matches(name, known)}")
