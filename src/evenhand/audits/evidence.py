"""Which classes the evidence of each audit is made of, for who reads it back or writes its schema."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.results import Evidence


def kinds_of_evidence(audit: str) -> Sequence[type[Evidence]]:
    """Return the classes of an audit's evidence, the fullest first; its module is loaded when it is asked for."""
    if audit == "group":
        from evenhand.audits.group.evidence import GroupEvidence

        return (GroupEvidence,)
    if audit == "projection":
        from evenhand.audits.projection.evidence import ProjectionEvidence

        return (ProjectionEvidence,)
    if audit == "individual":
        from evenhand.audits.individual.evidence import IndividualEvidence

        return (IndividualEvidence,)
    if audit == "proxy":
        from evenhand.audits.proxy.evidence import FeatureEvidence, GapEvidence, NamedFeature

        return (FeatureEvidence, NamedFeature, GapEvidence, Evidence)
    if audit == "tail":
        from evenhand.audits.tail.evidence import DifferenceEvidence, LevelEvidence

        return (LevelEvidence, DifferenceEvidence)
    return (Evidence,)
