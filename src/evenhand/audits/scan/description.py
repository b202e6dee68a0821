"""Of all subgroups that are shown, those that say something of their own.

Subgroups are taken short descriptions first, and among equals most evidence first. One is kept when it differs beyond
those that are kept already: from other people who belong to the same of them, compared within these sets. Where there
are no such people because it is the meeting of some that are kept, it must differ by more than these together explain:
the difference between it and the others of the one must not be that between the others of the second and people
outside both. At the end each is asked again beside all others. So a shorter description stands for longer ones that add
nothing, and a longer one for shorter ones that differ through it alone. The level of each of these questions is the
error rate divided by the number of subgroups that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import BoolArray
from evenhand.audits.scan.search import Search
from evenhand.inference.samples import Draws

# Beyond so many shown subgroups, those with the most evidence are described.
_MOST = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Described:
    """A subgroup, whether it says something of its own, and the places of those shown subgroups that it stands for."""

    index: int
    own: bool = True
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
    for i in sorted(ranked, key=lambda i: (searched.family.lattice.depth[i], -evidence[i], i)):
        if _remains(searched, people[i], [people[j] for j in kept], level):
            kept.append(i)
    kept.sort(key=lambda i: (-evidence[i], i))
    explained: int | None = -1
    while explained is not None:  # one that came early may be explained by those that came later
        beside = {i: [people[j] for j in kept if j != i] for i in reversed(kept)}
        explained = next((i for i, others in beside.items() if not _remains(searched, people[i], others, level)), None)
        if explained is not None:
            kept.remove(explained)
    stands_for: dict[int, list[int]] = {i: [] for i in kept}
    for i in ranked:
        if i not in stands_for:
            stands_for[max(kept, key=lambda j: (_common(searched, people[i], people[j]), -j))].append(i)
    return [Described(index=i, stands_for=tuple(stands_for[i])) for i in kept]


def _remains(searched: Search, people: BoolArray, kept: Sequence[BoolArray], level: float) -> bool:
    """Say whether a subgroup differs beyond those that are kept."""
    if not kept:
        return True
    _, profile = np.unique(np.stack(kept, axis=1), axis=0, return_inverse=True)
    profile = profile.reshape(-1)
    there = searched.people > 0
    mixed = np.isin(profile, profile[people & there]) & np.isin(profile, profile[~people & there])
    if mixed.any():
        samples = searched.between(people & mixed, ~people & mixed, profile)
        return not any(samples.reason[:2]) and bool(samples.test(0, 1, Draws()).pvalue <= level)
    around = [other if not (people & ~other).any() else ~other for other in kept if _apart(people, other)]
    pairs = [(one, np.logical_and.reduce(around[:k] + around[k + 1 :])) for k, one in enumerate(around)]
    meets = [(one, two) for one, two in pairs if len(around) > 1 and not ((one & two) ^ people)[there].any()]
    return bool(meets) and all(_adds(searched, people, one, two, level) for one, two in meets)


def _apart(people: BoolArray, other: BoolArray) -> bool:
    """Say whether a subgroup lies wholly inside or wholly outside another."""
    return not (people & ~other).any() or not (people & other).any()


def _adds(searched: Search, people: BoolArray, one: BoolArray, two: BoolArray, level: float) -> bool:
    """Say whether the meeting of two subgroups differs by more than both together explain, by the normal law."""
    inner = searched.between(people, one & ~two)
    outer = searched.between(two & ~one, ~one & ~two)
    if any(inner.reason[:2]) or any(outer.reason[:2]):
        return False  # the two leave nobody to compare with: one of them says it already
    error = math.hypot(inner.standard_error(0, 1), outer.standard_error(0, 1))
    gap = abs(inner.difference(0, 1) - outer.difference(0, 1))
    return bool(2 * special.ndtr(-gap / error) <= level) if error > 0 else gap > 0


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
