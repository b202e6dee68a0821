"""The one maker of findings that an audit hands over: raw ones, and those that cannot be computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.results import Evidence, Finding, Interval, Verdict

IntervalAt = Callable[[float], Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A finding before it is judged, with what stands behind it."""

    finding: Finding  # without adjusted p-value and verdict, unless it is not computable
    evidence: Evidence  # see `evenhand.audits.verdict`
    interval_at: IntervalAt | None = None  # from a level to the finding's interval at that level
    # Metric, attribute and the codes compared; the key for a joint adjustment in the group audit.
    pair: tuple[str, str, int, int] | None = None


def not_computable(
    audit: str,
    measure: str,
    groups: Sequence[str],
    reason: str,
    *,
    counts: Mapping[str, Mapping[str, float]] | None = None,
    margin: float | None = None,
    evidence: Evidence | None = None,
) -> Raw:
    """Return the finding of a question that these data cannot answer, with the reason.

    Examples
    --------
    >>> not_computable("tail", "ecd", ("sex=F", "sex=M"), "The model cannot see `sex`.").finding.verdict
    <Verdict.NOT_COMPUTABLE: 'not_computable'>
    """
    finding = Finding(
        audit=audit,
        measure=measure,
        groups=tuple(groups),
        estimate=math.nan,
        margin=margin,
        counts=counts or {},
        verdict=Verdict.NOT_COMPUTABLE,
        reason=reason,
    )
    return Raw(finding=finding, evidence=evidence or Evidence())


def columns_of(raw: Iterable[Raw]) -> dict[str, Any]:
    """Return raw findings as the columns of an `AuditResult`."""
    rows = list(raw)
    return {
        "findings": tuple(r.finding for r in rows),
        "evidence": tuple(r.evidence for r in rows),
        "interval_at": tuple(r.interval_at for r in rows),
    }
