"""What stands behind a finding of the group audit."""

from __future__ import annotations

from collections.abc import Mapping

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


class Clusters(Part):
    """The clusters behind a comparison; what is said of each group is by its name."""

    column: str
    clusters: int
    crossing: int  # clusters with rows of more than one of the groups
    design_effect: Mapping[str, float]  # variance between clusters over that of independent rows
    intraclass_correlation: Mapping[str, float]  # that explains the design effect
    sampling_strata: int | None = None
    single_cluster_strata: int | None = None  # sampling strata with one cluster


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
    """Of a comparison of two groups, of all groups, or of a correlation.

    Where groups are unknown or guessed: what is assumed about them, the lowest and highest value that the data allow,
    the value among people whose group is known, how many people's group is not, and how many of these may be placed as
    badly as possible before a disparity among the known is no longer shown.
    """

    sample_size: SampleSize | None = None
    margin_note: str | None = None
    correction_note: str | None = None
    design_note: str | None = None
    clusters: Clusters | None = None
    thresholds: ThresholdCurve | None = None
    strata: StrataEvidence | None = None
    # Where groups are compared with no single one: "highest", "rest" or "overall".
    reference: str | None = None
    highest_group: str | None = None
    # How many more successes would bring the rate to the margin, the highest one standing.
    shortfall: int | None = None
    # Of the 2 x 2 table with the highest group, as convention has it: they do not pay for its choice.
    fisher_pvalue_unadjusted: float | None = None
    midp_pvalue_unadjusted: float | None = None
    assumption: str | None = None
    lowest_possible: float | None = None
    highest_possible: float | None = None
    among_known: float | None = None
    unknown_rows: int | None = None
    unknown_tolerated: int | None = None
