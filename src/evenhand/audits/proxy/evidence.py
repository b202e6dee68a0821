"""What stands behind a finding of the proxy audit: of the gap itself, and of what each feature carries of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.results import Interval
from evenhand.results.evidence import Ends, Evidence, Part


class Rank(Part):
    """A feature's rank by its proxy score, the ranks it may have, and how often it comes first."""

    rank: int
    rank_low: int | None
    rank_high: int | None
    first: float


class LevelInfluence(Part):
    """The influence of people at one level of a feature; shares only of levels that are categories."""

    level: str
    influence: float
    share_group: float | None = None
    share_reference: float | None = None


class FeatureRow(Part):
    """One feature in the table of all; `measure` names its finding."""

    measure: str
    feature: str
    carried: float
    carried_share: float
    interval: Interval | None
    pvalue: float
    score: float
    score_interval: Ends | None
    signed_score: float
    association: float
    association_pvalue: float
    ranking: Rank


class PairScore(Part):
    """The proxy score of two features together, and by how much it exceeds the larger of theirs."""

    features: tuple[str, ...]
    score: float
    beyond_the_larger: float


class CounterfactualMean(Part):
    """The mean of a column, or of one of its levels, in three populations."""

    feature: str
    level: str
    group: float
    counterfactual: float
    reference: float


class GapPath(Part):
    """The gap step by step as the group is reweighted."""

    gap: tuple[float, ...]
    held_out: tuple[float, ...]
    effective_rows: tuple[float, ...]
    steps: tuple[float, ...]


class LeastGap(Part):
    """The values that any reweighting of the group can have, the one nearest to the reference, and the gap left."""

    low: float
    high: float
    reference: float
    nearest: float
    gap: float


class Counterfactual(Part):
    """The population that would show no gap, how far the descent towards it came, and how far any could come."""

    means: tuple[CounterfactualMean, ...]
    path: GapPath
    effective_rows: float
    rows: int
    stopped: str
    attainable: LeastGap | None = None


class StatedSample(Part):
    """Rows of each group from which was learned, of all its rows; those with a value that no learned row has."""

    sampled: Mapping[str, int]
    rows: Mapping[str, int]
    unseen: Mapping[str, int]
    fact: str


class GapEvidence(Evidence):
    """Of the gap; how the fitted models are calibrated describes itself."""

    kind: str
    nuisance: Mapping[str, Any] | None = None
    features: tuple[FeatureRow, ...] | None = None
    pairs: tuple[PairScore, ...] | None = None
    counterfactual: Counterfactual | None = None
    records_averaged: int | None = None
    sample: StatedSample | None = None


class NamedFeature(Evidence):
    """Of a feature about which nothing can be computed."""

    kind: str
    feature: str


class FeatureEvidence(NamedFeature):
    """Of what a feature carries."""

    carried: float
    carried_share: float
    interval: Interval | None
    standard_error: float
    pvalue: float
    carried_pvalue: float
    gap_pvalue: float
    score: float
    score_interval: Ends | None
    signed_score: float
    ranking: Rank
    no_interval: str
    association: float
    association_pvalue: float
    levels: tuple[LevelInfluence, ...]
