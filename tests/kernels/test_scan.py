"""Subgroups and the evidence of counts against plain loops and scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from evenhand.kernels.scan.count_evidence import LARGE, CountEvidence
from evenhand.kernels.scan.lattice import build_lattice, one_of_each, parents, sizes


def plain_subgroups(codes, memberships, depth):
    """Return each description that fits a cell, as items, with the set of its cells."""
    first = np.cumsum([0, *(m.shape[1] for m in memberships)])
    found = {}
    for length in range(1, depth + 1):
        for chosen in itertools.combinations(range(len(memberships)), length):
            for items in itertools.product(*(range(memberships[j].shape[1]) for j in chosen)):
                cells = {
                    c
                    for c in range(len(codes))
                    if all(
                        codes[c, j] >= 0 and memberships[j][codes[c, j], i] for j, i in zip(chosen, items, strict=True)
                    )
                }
                if cells:
                    found[tuple(int(first[j] + i) for j, i in zip(chosen, items, strict=True))] = cells
    return found


def random_world(seed, d=4):
    rng = np.random.default_rng(seed)
    levels = rng.integers(1, 5, size=d)
    codes = np.unique(
        np.column_stack([rng.integers(-1 if j == 2 else 0, k, size=30) for j, k in enumerate(levels)]), axis=0
    )
    memberships = [np.eye(k, dtype=bool) for k in levels]
    # One attribute has joined values and overlapping conditions.
    memberships[1] = np.concatenate([memberships[1], rng.random((levels[1], 2)) < 0.6], axis=1)
    return codes, memberships, rng


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_lattice_holds_every_description_and_its_cells(seed, depth):
    codes, memberships, _ = random_world(seed)
    lattice = build_lattice(codes, memberships, depth)
    expected = plain_subgroups(codes, memberships, depth)
    found = {
        tuple(int(i) for i in conditions if i >= 0): set(np.flatnonzero(row).tolist())
        for conditions, row in zip(lattice.conditions, lattice.members.toarray(), strict=True)
    }
    assert found == expected
    described, entries = sizes(memberships, depth)
    assert described == sum(
        np.prod([memberships[j].shape[1] for j in chosen])
        for length in range(1, depth + 1)
        for chosen in itertools.combinations(range(4), length)
    )
    assert lattice.members.nnz <= entries * len(codes)


@pytest.mark.parametrize("seed", range(8))
def test_each_question_is_asked_once(seed):
    codes, memberships, rng = random_world(seed)
    lattice = build_lattice(codes, memberships, 3)
    count = rng.integers(0, 4, size=len(codes))
    kept = one_of_each(lattice, count)
    there = frozenset(np.flatnonzero(count > 0).tolist())

    def people(row):
        return frozenset(np.flatnonzero(row).tolist()) & there

    sets = [people(row) for row in lattice.members.toarray()]
    questions = {frozenset({s, there - s}) for s in sets if s and s != there}
    asked = [frozenset({sets[i], there - sets[i]}) for i in kept]
    assert len(asked) == len(set(asked))
    assert set(asked) == questions
    total = int(count.sum())
    for i in kept:  # the smaller side where both sides have a description, and its shortest description
        other = there - sets[i]
        size = int(count[list(sets[i])].sum())
        if other in sets and 2 * size != total:
            assert size < total - size
        assert lattice.depth[i] == min(lattice.depth[j] for j, s in enumerate(sets) if s == sets[i])


def test_parents_leave_one_condition_out():
    codes, memberships, _ = random_world(0)
    lattice = build_lattice(codes, memberships, 3)
    last = lattice.conditions.shape[0] - 1
    own = set(lattice.conditions[last].tolist())
    assert sorted(own - set(p.tolist()) for p in parents(lattice, last)) == sorted({i} for i in own)


@pytest.mark.parametrize(("rows", "successes"), [(20, 5), (60, 59), (300, 3), (1000, 400), (40, 0), (40, 40)])
def test_evidence_is_the_hypergeometric_chance_of_a_count_as_far_from_its_mean(rows, successes):
    size = np.arange(1, rows)
    law = CountEvidence(size, rows=rows, successes=successes)
    for place in range(0, len(size), 7):
        m = int(size[place])
        x = np.arange(max(0, m - rows + successes), min(m, successes) + 1)
        chance = stats.hypergeom.pmf(x, rows, successes, m)
        far = np.abs(x * rows - m * successes)  # whole numbers: no rounding decides a tie
        expected = np.array([chance[far >= one].sum() for one in far])
        counts = np.zeros((x.size, size.size), dtype=np.int64) + np.clip(
            0, np.maximum(0, size - rows + successes), None
        )
        counts[:, place] = x
        seen = np.exp(-law(counts)[:, place])
        assert law.spread[place] ** 2 <= LARGE
        np.testing.assert_allclose(seen, np.minimum(expected, 1), rtol=1e-9, atol=1e-38)


def test_large_variances_take_the_normal_law_and_agree_with_the_sum():
    law = CountEvidence(np.array([20_000]), rows=100_000, successes=30_000)
    assert law.spread[0] ** 2 > LARGE
    for x in (6000, 6100, 6200, 6300):
        exact = stats.hypergeom.sf(x - 1, 100_000, 30_000, 20_000) + stats.hypergeom.cdf(
            12_000 - x, 100_000, 30_000, 20_000
        )
        assert float(law(np.array([x]))[0]) == pytest.approx(-np.log(min(exact, 1)), rel=0.02, abs=0.01)


def test_most_evidence_is_that_of_the_farthest_count():
    size = np.array([1, 5, 20, 50])
    law = CountEvidence(size, rows=100, successes=10)
    for place, m in enumerate(size.tolist()):
        counts = np.zeros((min(m, 10) + 1, 4), dtype=np.int64)
        counts[:, place] = np.arange(min(m, 10) + 1)
        assert law.most()[place] == law(counts)[:, place].max()
