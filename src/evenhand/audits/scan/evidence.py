"""What stands behind a finding of the scan."""

from __future__ import annotations

from evenhand.results.evidence import Evidence, Part

# Subgroups named in a list, at most.
MOST_NAMED = 12


class BeyondParent(Part):
    """A subgroup against the other people of a shorter description: what the last condition adds."""

    parent: str
    difference: float
    low: float
    high: float
    level: float
    pvalue: float


class Overlap(Part):
    """Another subgroup that is shown, and the share of this subgroup's people who belong to it."""

    group: str
    share: float


class Detectable(Part):
    """The difference from the rest that a search of this size shows in 8 of 10 cases, for subgroups of some size."""

    size: int
    difference: float


class ScanEvidence(Evidence):
    """Of one subgroup among all that were searched.

    How many people it has whom the metric is about, and how many more of them (or fewer, below 0) are counted than at
    the rest's rate; what it adds to shorter descriptions, which others it stands for, and with whom it overlaps; how
    many subgroups were described, had enough people and were tested.
    """

    conditions: tuple[str, ...]  # as they were tested, with all digits; the subgroup's name rounds numbers
    people: int
    more_people: float | None  # None where the metric counts nobody
    beyond_parents: tuple[BeyondParent, ...]
    stands_for: tuple[str, ...]
    stands_for_number: int
    overlaps: tuple[Overlap, ...]
    described: int
    considered: int
    tested: int
    permutations: int
    detectable: tuple[Detectable, ...]
    control: str
    confirmed_on: int | None = None  # people of the part that confirmed it, where it was found on another
