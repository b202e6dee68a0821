"""What the repair changed, on the people to certify on: disparities, and who pays, both models paired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.audits.group.samples import row_values
from evenhand.inference.multiplicity import adjust
from evenhand.inference.paired import Change, Values, paired_change
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import METRICS
from evenhand.results import AuditRun

#: Compared between groups, beside what was asked for.
METRICS_COMPARED = ("selection_rate", "fnr", "fpr", "precision", "accuracy")
#: Of each group: who pays.
PERFORMANCE = ("accuracy", "fnr", "fpr", "selection_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedChange:
    """One number under both models on the same people.

    Parameters
    ----------
    measure : str
        The metric.
    groups : tuple of str
        Two groups: the difference between them. One: its own value. None: everybody's.
    change : Change
        Before, after, and what is known of the difference.
    pvalue_adjusted : float
        By Holm's method over all changes of the table.
    """

    measure: str
    groups: tuple[str, ...]
    change: Change
    pvalue_adjusted: float = math.nan

    def shown(self, alpha: float) -> bool:
        """Tell whether a change is shown."""
        return self.pvalue_adjusted <= alpha

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain data."""
        low, high = self.change.interval()
        numbers = {
            "before": self.change.before,
            "after": self.change.after,
            "change": self.change.estimate,
            "low": low,
            "high": high,
            "pvalue": self.change.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted,
        }
        plain = {k: v if math.isfinite(v) else None for k, v in numbers.items()}
        return {
            "measure": self.measure,
            "groups": list(self.groups),
            **plain,
            "people_decided_otherwise": self.change.differ,
        }


def disparity_changes(
    part: AuditData, before: FloatArray, after: FloatArray, attributes: Sequence[Attribute], metrics: Sequence[str]
) -> tuple[PairedChange, ...]:
    """Return how the difference between any two groups changes, for each metric that is a mean over people.

    Parameters
    ----------
    part : AuditData
        The people both models judge.
    before, after : ndarray
        Their decisions.
    attributes : sequence of Attribute
        Whose groups are compared.
    metrics : sequence of str
        Asked for; `METRICS_COMPARED` are added.

    Returns
    -------
    tuple of PairedChange
    """
    made = []
    for metric in dict.fromkeys((*metrics, *METRICS_COMPARED)):
        a, b = _values(part, before, metric), _values(part, after, metric)
        if a is None or b is None:
            continue
        for attribute in attributes:
            codes = part.attribute(attribute.name).codes
            for j, k in combinations(range(len(attribute.labels)), 2):
                change = paired_change(a, b, codes == j, codes == k, part.weight)
                made.append(
                    PairedChange(
                        measure=metric,
                        groups=(attribute.group_name(j), attribute.group_name(k)),
                        change=change,
                    )
                )
    return _adjusted(made)


def performance_changes(
    part: AuditData, before: FloatArray, after: FloatArray, attributes: Sequence[Attribute]
) -> tuple[PairedChange, ...]:
    """Return how each group's own rates, and everybody's, change: who gains and who pays."""
    everyone: list[tuple[tuple[str, ...], BoolArray]] = [((), np.ones(before.size, dtype=bool))]
    for attribute in attributes:
        codes = part.attribute(attribute.name).codes
        everyone += [((attribute.group_name(j),), codes == j) for j in range(len(attribute.labels))]
    made = []
    for metric in PERFORMANCE:
        a, b = _values(part, before, metric), _values(part, after, metric)
        if a is not None and b is not None:
            for groups, members in everyone:
                change = paired_change(a, b, members, None, part.weight)
                made.append(PairedChange(measure=metric, groups=groups, change=change))
    return _adjusted(made)


def _values(part: AuditData, decision: FloatArray, metric: str) -> Values | None:
    if metric not in METRICS:
        return None
    values = row_values(METRICS[metric], replace(part, decision=decision))
    return None if values is None else Values(*values)


def _adjusted(changes: Sequence[PairedChange]) -> tuple[PairedChange, ...]:
    adjusted = adjust(np.array([c.change.pvalue for c in changes], dtype=np.float64), method="holm")
    return tuple(replace(c, pvalue_adjusted=float(p)) for c, p in zip(changes, adjusted, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """One finding of the audits before and after, matched by audit, measure and groups."""

    audit: str
    measure: str
    groups: tuple[str, ...]
    before: float
    after: float
    verdict_before: str
    verdict_after: str


def side_by_side(before: AuditRun, after: AuditRun) -> tuple[SideBySide, ...]:
    """Match the findings of two runs on the same people; what only one of them has is left out."""
    old = {(f.audit, f.measure, f.groups): f for f in before.findings}
    made = []
    for finding in after.findings:
        match = old.get((finding.audit, finding.measure, finding.groups))
        if match is not None:
            made.append(
                SideBySide(
                    audit=finding.audit,
                    measure=finding.measure,
                    groups=tuple(finding.groups),
                    before=match.estimate,
                    after=finding.estimate,
                    verdict_before=str(match.verdict),
                    verdict_after=str(finding.verdict),
                )
            )
    return tuple(made)
