"""The per-row values whose sums an engine makes: one definition for numpy and one for SQL, side by side.

Outcome is y, score is s. The SQL text runs on DuckDB and on Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray

# A score of exactly 0 or 1 would make the log loss infinite; every engine clips at the same distance.
EPSILON = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A per-row value: its numpy form, its SQL form and what it needs."""

    array: Callable[[FloatArray, FloatArray], FloatArray]  # outcome and score arrays to the value of each row
    sql: str  # the same as SQL text with ``{y}`` and ``{s}``
    outcome: bool = True  # whether it needs an outcome
    probability: bool = False  # whether it needs a binary outcome and a score in [0, 1]


def number_sql(value: float) -> str:
    """Return a number as SQL text that reads back as the same double on every engine."""
    # A bare 0.1 is a decimal in DuckDB and in Spark; the text of a double is read exactly.
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def _log_loss(y: FloatArray, s: FloatArray) -> FloatArray:
    clipped = np.clip(s, EPSILON, 1 - EPSILON)
    return -(y * np.log(clipped) + (1 - y) * np.log(1 - clipped))


_CLIPPED = f"least(greatest({{s}}, {number_sql(EPSILON)}), {number_sql(1 - EPSILON)})"

VALUES: dict[str, Value] = {
    "score": Value(array=lambda y, s: s, sql="{s}", outcome=False),
    "squared_error": Value(array=lambda y, s: (y - s) * (y - s), sql="(({y} - {s}) * ({y} - {s}))"),
    "log_loss": Value(
        array=_log_loss, sql=f"(-({{y}} * ln({_CLIPPED}) + (1 - {{y}}) * ln(1 - {_CLIPPED})))", probability=True
    ),
    "absolute_error": Value(array=lambda y, s: np.abs(y - s), sql="abs({y} - {s})"),
    "residual": Value(array=lambda y, s: y - s, sql="({y} - {s})"),
}


def value_names(outcome_kind: str, score_kind: str) -> tuple[str, ...]:
    """Return the names of the values that exist for this kind of outcome and score.

    Parameters
    ----------
    outcome_kind : {"binary", "numeric", "none"}
        As in `AuditData`.
    score_kind : {"probability", "real", "none"}
        As in `AuditData`.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> value_names("none", "probability")
    ('score',)
    >>> value_names("numeric", "real")
    ('score', 'squared_error', 'absolute_error', 'residual')
    """
    if score_kind == "none":
        return ()
    has_outcome = outcome_kind != "none"
    calibrated = outcome_kind == "binary" and score_kind == "probability"
    return tuple(
        name
        for name, value in VALUES.items()
        if (has_outcome or not value.outcome) and (calibrated or not value.probability)
    )
