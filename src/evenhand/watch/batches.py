"""One batch as the sums that a watch keeps of it: nothing about single people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.group.samples import check_needs
from evenhand.errors import DataError
from evenhand.intake import Attribute, AuditData
from evenhand.intake.summed_values import VALUES
from evenhand.metrics import Metric
from evenhand.summaries import Sums

# What a watch does not take, and why: the beginning of a sentence.
_REFUSED = {
    "weight": "Sampling weights",
    "cluster": "Clusters",
    "strata": "Strata",
    "survey_strata": "Survey strata",
    "probabilities": "Group probabilities",
    "continuous": "Continuous attributes",
}
# How the note begins that rows were added up, which is what a watch wants.
_EXPECTED = "Rows were added up to cells"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """What is kept of a batch."""

    name: str
    fingerprint: str  # of its rows
    # rows, used: how many came in, and how many were counted.
    rows: int
    used: int
    # Attribute to label to the counts of true negatives, false positives, false negatives, true positives.
    tables: Mapping[str, Mapping[str, Sequence[int]]]
    # Attribute to metric to label to the number, the sum and the sum of squares of values scaled to [0, 1].
    means: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]] = field(default_factory=dict)
    # Role to the texts that count as 1 and those that count as 0.
    labels: Mapping[str, tuple[Sequence[str], Sequence[str]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the batch as plain data."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Batch:
        """Rebuild a batch from `to_dict`."""
        return cls(**{f.name: data[f.name] for f in fields(cls)} | {"notes": tuple(data["notes"])})

    def sums(self, metric: Metric, attribute: str, label: str) -> tuple[float, float, float]:
        """Return number, sum and sum of squares of a metric's values in one group; zeros where it has no rows."""
        if metric.kind == "mean":
            size, total, square = self.means.get(attribute, {}).get(metric.name, {}).get(label, (0.0, 0.0, 0.0))
            return size, total, square
        cells = self.tables.get(attribute, {}).get(label, (0, 0, 0, 0))
        top, bottom = sum(cells[j] for j in metric.numerator), sum(cells[j] for j in metric.denominator)
        return float(bottom), float(top), float(top)


def range_of(metric: Metric) -> tuple[float, float]:
    """Return the ends between which each row's value lies, for scores that are probabilities."""
    return (-1.0, 1.0) if metric.value == "residual" else (0.0, 1.0)


def batch_of(data: AuditData, name: str, metrics: Sequence[Metric]) -> Batch:
    """Add up a batch.

    Parameters
    ----------
    data : AuditData
        Its rows, or cells.
    name : str
        What the batch is called, such as a month.
    metrics : sequence of Metric
        What is watched.

    Returns
    -------
    Batch

    Examples
    --------
    >>> from evenhand.metrics import resolve
    >>> data = AuditData.from_arrays(outcome=[0, 1, 1], decision=[0, 0, 1], groups={"g": ["a", "a", "b"]})
    >>> dict(batch_of(data, "May", resolve("fnr")).tables["g"])
    {'a': [1, 0, 1, 0], 'b': [0, 0, 0, 1]}
    """
    _check(data, metrics)
    sums = Sums(data)
    tables = {a.name: dict(_by_label(a, sums.confusion(a).tolist())) for a in data.attributes}
    averaged = [m for m in metrics if m.kind == "mean"]
    means: dict[str, dict[str, Any]] = {a.name: {} for a in data.attributes} if averaged else {}
    for metric in averaged:
        size, total, square = _value_sums(data, metric)
        for attribute in data.attributes:
            rows = np.stack([_add(attribute, part) for part in (size, total, square)], axis=-1)
            means[attribute.name][metric.name] = dict(_by_label(attribute, rows.tolist()))
    return Batch(
        name=name,
        fingerprint=data.fingerprint,
        rows=data.rows.rows_in,
        used=data.rows.rows_used,
        tables=tables,
        means=means,
        labels={role: (list(data.labels[role].one), list(data.labels[role].zero)) for role in _coded(data)},
        notes=tuple(note for note in data.notes if not note.startswith(_EXPECTED)),
    )


def _coded(data: AuditData) -> list[str]:
    return [role for role in ("outcome", "decision") if role in data.labels]


def _check(data: AuditData, metrics: Sequence[Metric]) -> None:
    for role, word in _REFUSED.items():
        given = getattr(data, role)
        if given is not None and len(given if role != "strata" else given.labels):
            raise DataError(
                f"{word} cannot be watched: the evidence needs rows that count alike and do not depend on each other. "
                f"Leave `{role.replace('probabilities', 'group_probability')}` out, or audit each batch with "
                "`evenhand.audit_group`."
            )
    for metric in metrics:
        check_needs(metric, data)
        if metric.kind == "mean" and (data.score_kind != "probability" or data.outcome_kind == "numeric"):
            raise DataError(
                f"Metric `{metric.name}` can be watched for scores between 0 and 1 and an outcome of two values only: "
                "its values must have known ends. Rescale the score, or watch rates of decisions."
            )


def _by_label(attribute: Attribute, rows: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(label, rows[j]) for j, label in enumerate(attribute.labels) if j != attribute.unknown]


def _add(attribute: Attribute, amounts: FloatArray) -> FloatArray:
    sums = np.bincount(attribute.codes, weights=amounts, minlength=len(attribute.labels))
    return np.asarray(sums, dtype=np.float64)


def _value_sums(data: AuditData, metric: Metric) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each record's number of rows, and the sums of its values scaled to [0, 1] and of their squares."""
    count = data.count.astype(float)
    if data.moments is not None:
        total, square = data.moments[metric.value].wv, data.moments[metric.value].wwvv
    else:
        score = np.full(count.shape, math.nan) if data.score is None else data.score
        value = VALUES[metric.value].array(np.zeros_like(score) if data.outcome is None else data.outcome, score)
        total, square = count * value, count * value**2
    low, high = range_of(metric)
    span = high - low
    return count, (total - low * count) / span, (square - 2 * low * total + low**2 * count) / span**2
