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
    """Of a comparison of two groups, of all groups, or of a correlation.

    Where groups are unknown or guessed: what is assumed about them, the lowest and highest value that the data allow,
    the value among people whose group is known, how many people's group is not, and how many of these may be placed as
    badly as possible before a disparity among the known is no longer shown.
    """

    sample_size: SampleSize | None = None
    margin_note: str | None = None
    correction_note: str | None = None
    thresholds: ThresholdCurve | None = None
    assumption: str | None = None
    lowest_possible: float | None = None
    highest_possible: float | None = None
    among_known: float | None = None
    unknown_rows: int | None = None
    unknown_tolerated: int | None = None
