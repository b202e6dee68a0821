"""Findings as a data frame, of the library that is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from evenhand.errors import MissingDependencyError, UsageError, near_matches, optional_module
from evenhand.results.finding import Finding

KINDS = ("pandas", "polars")
_TEXTS = ("audit", "measure", "group", "reference", "verdict", "reason")
COLUMNS = (
    "audit", "measure", "group", "reference", "estimate", "low", "high", "level", "pvalue", "pvalue_adjusted", "margin",
    "verdict", "reason",
)  # fmt: skip


def frame_of(findings: Sequence[Finding], kind: str | None = None) -> Any:
    """Return findings as a data frame, one row each.

    Parameters
    ----------
    findings : sequence of Finding
        What was found.
    kind : {"pandas", "polars"}, optional
        The library; by default pandas where it is installed, else polars.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame

    Examples
    --------
    >>> row = Finding(audit="group", measure="fnr", groups=("sex=F", "sex=M"), estimate=0.1)
    >>> frame_of([row], "pandas")[["measure", "group", "reference"]].values.tolist()
    [['fnr', 'sex=F', 'sex=M']]
    """
    rows = [_row(finding) for finding in findings]
    columns = {name: [row[j] for row in rows] for j, name in enumerate(COLUMNS)}
    library = optional_module(
        chosen := _chosen(kind),
        f"A frame of {chosen} needs {chosen}, which is not installed: pip install 'evenhand[{chosen}]'.",
    )
    if chosen == "polars":
        kinds = {name: library.String if name in _TEXTS else library.Float64 for name in COLUMNS}
        return library.DataFrame(columns, schema=kinds).fill_nan(None)  # a missing number is null there
    frame = library.DataFrame(columns)
    return frame.astype({name: float for name in COLUMNS if name not in _TEXTS})


def _chosen(kind: str | None) -> str:
    if kind is None:
        installed = [name for name in KINDS if find_spec(name) is not None]
        if not installed:
            raise MissingDependencyError(
                "A frame needs pandas or polars, and neither is installed: pip install 'evenhand[pandas]' or "
                "'evenhand[polars]'. `to_rows()` gives plain dictionaries without either."
            )
        return installed[0]
    if kind not in KINDS:
        raise UsageError(f"`kind={kind!r}` is not a kind of frame.{near_matches(str(kind), KINDS)}")
    return kind


def _row(finding: Finding) -> tuple[Any, ...]:
    groups, interval = finding.groups, finding.interval
    pair = groups if len(groups) == 2 else (", ".join(groups), None)
    ends = (None, None, None) if interval is None else (interval.low, interval.high, interval.level)
    pvalues = (finding.pvalue, finding.pvalue_adjusted)
    said = (finding.margin, str(finding.verdict), finding.reason)
    return (finding.audit, finding.measure, *pair, finding.estimate, *ends, *pvalues, *said)
