"""What stands behind a finding of the group audit."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.audits.detectable import SampleSize
from evenhand.results.evidence import Evidence, Part


class ThresholdCurve(Part):
    """A rate's difference, its interval and its p-value at each threshold; `used` is NaN where none explains all."""

    threshold: tuple[float, ...]
    difference: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    pvalue: tuple[float, ...]
    level: float
    used: float


class Clusters(Part):
    """The clusters behind a comparison; what is said of each group is by its name."""

    column: str
    clusters: int
    crossing: int  # clusters with rows of more than one of the groups
    design_effect: Mapping[str, float]  # variance between clusters over that of independent rows
    intraclass_correlation: Mapping[str, float]  # that explains the design effect
    sampling_strata: int | None = None
    single_cluster_strata: int | None = None  # sampling strata with one cluster


class GroupEvidence(Evidence):
    """Of a comparison of two groups, of all groups, or of a correlation."""

    sample_size: SampleSize | None = None
    margin_note: str | None = None
    correction_note: str | None = None
    design_note: str | None = None
    clusters: Clusters | None = None
    thresholds: ThresholdCurve | None = None
