"""What stands behind a finding of the group audit."""

from __future__ import annotations

from evenhand.audits.detectable import SampleSize
from evenhand.results.evidence import Ends, Evidence, Part


class ThresholdCurve(Part):
    """A rate's difference, its interval and its p-value at each threshold; `used` is NaN where none explains all."""

    threshold: tuple[float, ...]
    difference: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    pvalue: tuple[float, ...]
    level: float
    used: float


class StratumEvidence(Part):
    """Two groups in one stratum: values, rows (or summed weights), difference or ratio, its share of the weights."""

    label: str
    first: float
    second: float
    first_rows: float
    second_rows: float
    estimate: float
    low: float
    high: float
    share: float


class HomogeneityEvidence(Part):
    """Whether strata with enough rows have one difference or ratio."""

    statistic: float
    df: int
    pvalue: float


class StrataEvidence(Part):
    """What stands beside a comparison within strata.

    Strata and rows of the two groups, in all and where both are; the crude value with its interval, and whether it
    points the other way; the strata that count most.
    """

    name: str
    strata: int
    compared: int
    rows: int
    rows_compared: int
    crude: float
    crude_interval: Ends
    reversed: bool
    agreement: str
    largest: tuple[StratumEvidence, ...]
    homogeneity: HomogeneityEvidence | None = None


class GroupEvidence(Evidence):
    """Of a comparison of two groups, of all groups, or of a correlation."""

    sample_size: SampleSize | None = None
    margin_note: str | None = None
    correction_note: str | None = None
    thresholds: ThresholdCurve | None = None
    strata: StrataEvidence | None = None
