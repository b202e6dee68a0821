"""A finding: one row of an audit's answer, with its verdict."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from evenhand.results.display import Displayed

# What the name of a group audit's measure may end with, the last first: all groups at once; within strata; bounds, and
# an estimate under an assumption, where groups are unknown or guessed.
FORMS = ("_global", "_conditional", "_bounds", "_em")


class Verdict(enum.StrEnum):
    """The four words an audit can end with, and no others."""

    DISPARITY = "disparity"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPUTABLE = "not_computable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval: its ends, its level and how it was made.

    Parameters
    ----------
    low, high : float
        The ends; infinite where the data do not bound the value.
    level : float
        Nominal coverage, such as 0.95.
    kind : str
        The construction, such as ``"score"`` or ``"welch-t"``.

    Examples
    --------
    >>> Interval(low=-0.1, high=0.2, level=0.95, kind="score").to_dict()
    {'low': -0.1, 'high': 0.2, 'level': 0.95, 'kind': 'score'}
    """

    low: float
    high: float
    level: float
    kind: str

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as plain data."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Interval:
        """Rebuild an interval from plain data, where an end without limit is None."""
        ends = {"low": _number(data["low"], -math.inf), "high": _number(data["high"], math.inf)}
        return cls(**{f.name: data[f.name] for f in fields(cls)} | ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Displayed):
    """One row of an audit's answer.

    Parameters
    ----------
    audit : str
        Which audit found it: ``"group"``, ``"projection"``, ...
    measure : str
        What was measured, such as ``"fnr"`` (a difference), ``"fnr_ratio"``, ``"fnr_global"``.
    groups : tuple of str
        The groups compared, as ``"sex=Female"``; the reference comes last.
    estimate : float
        The value found; NaN where it cannot be computed.
    interval : Interval or None
        Its uncertainty; None where none is defined.
    pvalue, pvalue_adjusted : float
        Raw, and after the multiplicity correction; NaN where not computed.
    margin : float or None
        The largest difference (or the smallest ratio) the user calls negligible.
    counts : mapping
        Group name to the whole numbers behind the estimate.
    verdict : Verdict
        One of the four words.
    reason : str
        One sentence that says why this verdict.

    Examples
    --------
    >>> row = Finding(audit="group", measure="fnr", groups=("sex=F", "sex=M"), estimate=float("nan"),
    ...               reason="Group `sex=F` has no positives.", verdict=Verdict.NOT_COMPUTABLE)
    >>> row.to_dict()["estimate"] is None
    True
    """

    audit: str
    measure: str
    groups: tuple[str, ...]
    estimate: float
    interval: Interval | None = None
    pvalue: float = math.nan
    pvalue_adjusted: float = math.nan
    margin: float | None = None
    counts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    verdict: Verdict = Verdict.INCONCLUSIVE
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data, NaN as None."""
        row: dict[str, Any] = plain({f.name: getattr(self, f.name) for f in fields(self)})
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Finding:
        """Rebuild a finding from `to_dict`."""
        interval = None if row["interval"] is None else Interval.from_dict(row["interval"])
        typed = {"groups": tuple(row["groups"]), "interval": interval, "verdict": Verdict(row["verdict"])}
        numbers = {name: _number(row[name]) for name in ("estimate", "pvalue", "pvalue_adjusted")}
        return cls(**{f.name: row[f.name] for f in fields(cls)} | typed | numbers)


def without_form(measure: str) -> str:
    """Return a measure's name without what says how it was compared.

    Examples
    --------
    >>> without_form("fnr_ratio_global"), without_form("fnr_bounds"), without_form("fnr")
    ('fnr_ratio', 'fnr', 'fnr')
    """
    for form in FORMS:
        measure = measure.removesuffix(form)
    return measure


def plain(value: Any) -> Any:
    """Turn arrays, numpy numbers and mappings into JSON-ready data; a number that is not finite is None.

    Parameters
    ----------
    value : object
        Anything; what has no plain form becomes its text.

    Returns
    -------
    object

    Examples
    --------
    >>> plain({"a": np.array([1.0, np.nan]), "b": np.int64(2)})
    {'a': [1.0, None], 'b': 2}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Interval):
        return plain(value.to_dict())
    if isinstance(value, str | bool) or value is None:
        return str(value) if isinstance(value, enum.Enum) else value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Sequence):
        return [plain(v) for v in value]
    return str(value)


def _number(value: float | None, missing: float = math.nan) -> float:
    return missing if value is None else float(value)
