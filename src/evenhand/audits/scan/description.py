"""Of all subgroups that are shown, those that say something of their own.

Subgroups are taken in the order of their evidence. One is kept when it still differs after those that are kept already:
its people outside them from all other people outside them, or, where it lies inside one of them, its people from the
others of that one. At the end each is asked again beside all others. So a shorter description stands for longer ones
that add nothing, and a longer one for shorter ones that differ through it alone. The level of each of these questions
is the error rate divided by the number of subgroups that are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import BoolArray
from evenhand.audits.scan.search import Search
from evenhand.inference.samples import Draws

# Beyond so many shown subgroups, those with the most evidence are described.
_MOST = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Described:
    """A subgroup, and the places of those shown subgroups that it stands for."""

    index: int
    stands_for: tuple[int, ...] = ()


def describe(searched: Search, shown: Sequence[int], alpha: float) -> list[Described]:
    """Return the shown subgroups that say something of their own, most evidence first.

    Parameters
    ----------
    searched : Search
        One metric.
    shown : sequence of int
        Places of the subgroups that are shown.
    alpha : float
        The error rate.
    """
    evidence = searched.family.evidence
    ranked = sorted(shown, key=lambda i: (-evidence[i], i))[:_MOST]
    level = alpha / max(len(ranked), 1)
    people = {i: cells_of_subgroup(searched, i) for i in ranked}
    kept: list[int] = []
    for i in ranked:
        if _remains(searched, people[i], [people[j] for j in kept], level):
            kept.append(i)
    for i in reversed(kept.copy()):  # one that came early may be explained by those that came later
        if not _remains(searched, people[i], [people[j] for j in kept if j != i], level):
            kept.remove(i)
    stands_for: dict[int, list[int]] = {i: [] for i in kept}
    for i in ranked:
        if i not in stands_for:
            stands_for[max(kept, key=lambda j: (_common(searched, people[i], people[j]), -j))].append(i)
    return [Described(index=i, stands_for=tuple(stands_for[i])) for i in kept]


def _remains(searched: Search, people: BoolArray, kept: Sequence[BoolArray], level: float) -> bool:
    """Say whether a subgroup differs beyond those that are kept."""
    if not kept:
        return True
    around = [other for other in kept if not (people & ~other).any()]
    if around:  # inside one of them: against the others of the smallest
        inner = min(around, key=lambda other: int(other.sum()))
        first, second = people, inner & ~people
    else:
        outside = ~np.logical_or.reduce(kept)
        first, second = people & outside, ~people & outside
    samples = searched.between(first, second)
    if any(samples.reason[:2]):
        return False
    return bool(samples.test(0, 1, Draws()).pvalue <= level)


def _common(searched: Search, one: BoolArray, two: BoolArray) -> float:
    """Return the share of people of either subgroup who belong to both."""
    count = searched.people
    return float(count[one & two].sum() / count[one | two].sum())


def cells_of_subgroup(searched: Search, index: int) -> BoolArray:
    """Return which cells a subgroup holds."""
    members = searched.family.lattice.members
    mask = np.zeros(members.shape[1], dtype=bool)
    mask[members.indices[members.indptr[index] : members.indptr[index + 1]]] = True
    return mask
