"""What a metric is: a name, what it needs, and how it is made from counts, values or rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import AnyArray, FloatArray

TableFunction = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]
RowFunction = Callable[[Mapping[str, AnyArray]], float]

# The four cells of a confusion table, in the order every table of counts uses.
TN, FP, FN, TP = 0, 1, 2, 3
CELLS = ("tn", "fp", "fn", "tp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of the catalogue, or one of the user's.

    Parameters
    ----------
    name : str
        As used in calls, findings and the report.
    kind : {"rate", "scoring", "table", "gaps", "mean", "auc", "calibration", "rows"}
        Which inference serves it.
    needs : tuple of str
        Roles it reads: ``"outcome"``, ``"decision"``, ``"score"``.
    outcome : {"binary", "any"}
        Whether the outcome must be binary.
    probability : bool
        Whether the score must be a probability.
    numerator, denominator : tuple of int
        For a rate: the cells counted, among the cells of its denominator.
    transform : {"identity", "f1"}
        For a rate: the value is this monotone function of the rate.
    value : str
        For a mean: the per-row value it averages.
    table : callable or None
        For a function of the table: takes tn, fp, fn, tp as arrays, returns the value.
    function : callable or None
        For a function of rows: takes a mapping of columns, returns one number.
    parts : tuple of str
        For gaps: the rates whose absolute differences are averaged.
    compare : {"", "difference", "ratio"}
        How two groups are compared, where the metric's name says so; empty: as the audit is asked.
    per_group : str
        What one group's value is called, where that is not the metric's name.
    low, high : float
        The metric's range.
    better : {"higher", "lower", "neither"}
        Which direction favours the model's user; fairness asks for equality either way.
    says : str
        What it is, in words.
    empty : str
        Why a group may have no value: the end of a sentence.
    """

    name: str
    kind: str
    needs: tuple[str, ...]
    outcome: str = "binary"
    probability: bool = False
    numerator: tuple[int, ...] = ()
    denominator: tuple[int, ...] = ()
    transform: str = "identity"
    value: str = ""
    table: TableFunction | None = None
    function: RowFunction | None = None
    parts: tuple[str, ...] = ()
    compare: str = ""
    per_group: str = ""
    low: float = 0.0
    high: float = 1.0
    better: str = "neither"
    says: str
    empty: str = "has no rows"

    def __call__(self, table: FloatArray) -> FloatArray:
        """Return the value from count tables.

        Parameters
        ----------
        table : array_like, shape (..., 4)
            Counts of true negatives, false positives, false negatives, true positives.

        Returns
        -------
        ndarray, shape (...)
            NaN where the denominator is empty.
        """
        cells = np.asarray(table, dtype=float)
        if self.table is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.asarray(self.table(*(cells[..., j] for j in range(4))), dtype=float)
        if self.kind != "rate":
            raise TypeError(f"Metric `{self.name}` is not a function of a confusion table.")
        top = cells[..., list(self.numerator)].sum(axis=-1)
        bottom = cells[..., list(self.denominator)].sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.where(bottom > 0, top / bottom, math.nan)
        return 2 * rate / (1 + rate) if self.transform == "f1" else rate


def cell_metric(name: str, function: TableFunction, *, low: float = 0.0, high: float = 1.0, says: str = "") -> Metric:
    """Make a metric from a function of the confusion table: the fast route for one's own metric.

    Parameters
    ----------
    name : str
        Its name in findings.
    function : callable
        ``function(tn, fp, fn, tp)`` on arrays of counts, elementwise, returning the value; NaN where
        it is undefined. It must not change when all counts are multiplied by one number.
    low, high : float
        Its range.
    says : str
        What it is, for the report.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import numpy as np
    >>> youden = cell_metric("youden", lambda tn, fp, fn, tp: tp / (tp + fn) + tn / (tn + fp) - 1, low=-1)
    >>> round(float(youden(np.array([80, 20, 10, 90]))), 3)
    0.7
    """
    return Metric(
        name=name,
        kind="table",
        needs=("outcome", "decision"),
        table=function,
        low=low,
        high=high,
        says=says or f"{name}, a function of the confusion table given by the user",
        empty="has no value: its confusion table leaves the metric undefined",
    )


def row_metric(
    name: str,
    function: RowFunction,
    *,
    needs: tuple[str, ...] = ("outcome", "decision"),
    outcome: str = "any",
    low: float = -math.inf,
    high: float = math.inf,
    says: str = "",
) -> Metric:
    """Make a metric from any function of rows: the general route, with a bootstrap variance.

    Parameters
    ----------
    name : str
        Its name in findings.
    function : callable
        Takes a mapping with the columns named in `needs` (and ``"weight"`` when there are sampling
        weights) as arrays, returns one number.
    needs : tuple of str
        Roles it reads.
    outcome : {"binary", "any"}
        Whether the outcome must be binary.
    low, high : float
        Its range.
    says : str
        What it is, for the report.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import numpy as np
    >>> spread = row_metric("median_score", lambda rows: float(np.median(rows["score"])), needs=("score",))
    >>> spread.kind
    'rows'
    """
    return Metric(
        name=name,
        kind="rows",
        needs=needs,
        outcome=outcome,
        function=function,
        low=low,
        high=high,
        says=says or f"{name}, a function of rows given by the user",
        empty="has no value: the metric's function gave none",
    )
