"""Fair metrics for the individual audit: who counts as similar to whom. One file each."""

from __future__ import annotations

from evenhand.similarity.comparable_pairs import ComparablePairs
from evenhand.similarity.expert import Discounted, ExpertMatrix
from evenhand.similarity.matched_pairs import MatchedPairs
from evenhand.similarity.metric import FairMetric, MetricRows, Similarity
from evenhand.similarity.subspace import SensitiveSubspace

__all__ = [
    "ComparablePairs",
    "Discounted",
    "ExpertMatrix",
    "FairMetric",
    "MatchedPairs",
    "MetricRows",
    "SensitiveSubspace",
    "Similarity",
]
