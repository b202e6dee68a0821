"""What stands behind a finding of the individual audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.results.evidence import Evidence, OpenPart, Part


class MapUsed(Part):
    """How people were moved; `stability_limit` and `flow_error` only of a gradient flow."""

    kind: str
    model: str
    loss: str
    time: float
    stability_limit: float
    flow_error: Mapping[str, float]
    rows_moved: float | None = None
    rows_in_all: float | None = None


class GroupPredicted(Part):
    """How well the inputs predict an attribute, or one of its groups, on rows apart."""

    attribute: str
    group: int | None
    label: str
    auc: float
    pvalue: float


class MetricUsed(OpenPart):
    """Who counts as comparable, how that was learned and how much it varies; the metric describes the rest."""

    kind: str
    learned_on: str
    predicted: tuple[GroupPredicted, ...]
    reach: tuple[float, ...]
    sensitivity: Mapping[str, Any] | None = None
    angle_between_halves_degrees: float | None = None


class Ratios(Part):
    """Both ratios with one-sided limits; what cannot be computed is left out."""

    loss_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    T_n: float | None = None
    error_ratio: float | None = None
    error_low: float | None = None
    error_high: float | None = None
    T_n_error: float | None = None


class CurvePoint(Ratios):
    """The ratios at one flow time, or share of the range searched."""

    time: float


class PartRatios(Ratios):
    """The ratios of one class or group."""

    part: str
    name: str
    rows: float


class OffRange(Part):
    """The share of rows that ended outside the observed range, and of those held at its edge on the way."""

    directions: float
    columns: float
    either: float
    stopped: float


class MovedColumn(Part):
    """How far one column moved: a number in the user's units, a category by its weight."""

    column: str
    mean_change: float | None = None
    mean_size: float | None = None
    mean_weight_moved: float | None = None
    from_: str | None = None
    to: str | None = None


class Movement(Part):
    """Which columns moved, on average over so many rows with the largest ratios."""

    rows: float
    columns: tuple[MovedColumn, ...]


class ExamplePair(Part):
    """One person before and after; the model's view describes what moved."""

    ratio: float
    loss_before: float
    loss_after: float
    outcome: str | float
    rows: float
    moved: tuple[Mapping[str, Any], ...]


class IndividualEvidence(Evidence):
    """Of the mean ratio of losses, or of the ratio of error rates."""

    map: MapUsed | None = None
    metric: MetricUsed | None = None
    predicted: tuple[GroupPredicted, ...] | None = None
    curve: tuple[CurvePoint, ...] | None = None
    by_part: tuple[PartRatios, ...] | None = None
    off_range: OffRange | None = None
    movement: Movement | None = None
    pairs: tuple[ExamplePair, ...] | None = None
    T_n: float | None = None
    one_sided_high: float | None = None
    metric_error: float | None = None
    metric_bias: float | None = None
    error: float | None = None
    V_n: float | None = None
    skewness: float | None = None
    largest_share: float | None = None
    linear_form: float | None = None
