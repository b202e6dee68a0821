"""What stands behind a finding of the group audit."""

from __future__ import annotations

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


class GroupEvidence(Evidence):
    """Of a comparison of two groups, of all groups, or of a correlation."""

    sample_size: SampleSize | None = None
    margin_note: str | None = None
    correction_note: str | None = None
    thresholds: ThresholdCurve | None = None
