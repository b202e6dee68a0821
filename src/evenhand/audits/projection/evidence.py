"""What stands behind a finding of the projection audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.results.evidence import Evidence, Part


class WaldTest(Part):
    """Wald's test of all conditions."""

    statistic: float
    df: int
    pvalue: float


class WelchTest(Part):
    """Welch's test of two rates."""

    difference: float
    statistic: float
    pvalue: float


class GroupTest(Part):
    """The group audit's test of the same rates."""

    attribute: str
    metric: str
    test: str
    pvalue: float


class AtBandwidth(Part):
    """The limit law at one bandwidth, a multiple of the one used."""

    factor: float
    bandwidth: float
    pvalue: float
    weights: tuple[float, ...]


class GroupChanges(Part):
    """How many people of a group would have to change in one direction, and how far."""

    group: str
    outcome: int | None
    from_: int
    to: int
    people: int
    share_of_group: float
    mean_distance: float
    median_distance: float
    largest_distance: float


class Changes(Part):
    """How many people would have to change, and how far; one who moves in part counts as one."""

    people: int
    share_of_sample: float
    in_part: int
    mean_distance: float
    median_distance: float
    largest_distance: float
    by_group: tuple[GroupChanges, ...]


class ProjectedRate(Part):
    """A rate of decision 1 before and after the change."""

    group: str
    outcome: int | None
    reference: bool
    before: float
    after: float


class NearBoundary(Part):
    """One group's people by their signed distance to the boundary."""

    group: str
    outcome: int | None
    mass: tuple[float, ...]


class DistanceHistogram(Part):
    """How near the boundary people stand."""

    edges: tuple[float, ...]
    series: tuple[NearBoundary, ...]


class MovedRows(Part):
    """The records that would change: which share of each, from which decision, how far."""

    record: tuple[int, ...]
    share: tuple[float, ...]
    from_: tuple[int, ...]
    distance: tuple[float, ...]


class FeatureChange(Part):
    """How many of the people who would have to change need another value of a feature, and by how much."""

    feature: str
    from_: int
    people: int
    median_change: float  # in the feature's own units; not known for a category, not said of fewer than five people


class MovedPoints(Part):
    """The records that would change: the features that do, before and after."""

    record: tuple[int, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class ProjectionEvidence(Evidence):
    """Of the distance to data on which a criterion holds; how distances were made describes itself."""

    conditions: tuple[str, ...] | None = None
    tolerances: tuple[float, ...] | None = None  # of each condition, where they were given one by one
    distance: Mapping[str, Any] | None = None
    wald: WaldTest | None = None
    welch: WelchTest | None = None
    group_audit: tuple[GroupTest, ...] | None = None
    gap: float | None = None
    weights: tuple[float, ...] | None = None
    threshold: float | None = None
    bandwidth: float | None = None
    bandwidth_sensitivity: tuple[AtBandwidth, ...] | None = None
    changes: Changes | None = None
    projected: tuple[ProjectedRate, ...] | None = None
    figure: DistanceHistogram | None = None
    rows: MovedRows | None = None
    features: tuple[FeatureChange, ...] | None = None
    points: MovedPoints | None = None
