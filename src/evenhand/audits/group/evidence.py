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
    # Where groups are compared with no single one: "highest", "rest" or "overall".
    reference: str | None = None
    highest_group: str | None = None
    # How many more successes would bring the rate to the margin, the highest one standing.
    shortfall: int | None = None
    # Of the 2 x 2 table with the highest group, as convention has it: they do not pay for its choice.
    fisher_pvalue_unadjusted: float | None = None
    midp_pvalue_unadjusted: float | None = None
