"""The step-down search against brute force: plain loops over subgroups, permutations and hypotheses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.inference.scan.detectable import detectable_difference
from evenhand.inference.scan.rates import RateFamily
from evenhand.inference.scan.step_down import Adjusted, could_be_shown, step_down
from evenhand.kernels.scan.lattice import build_lattice, one_of_each


def world(seed, rows, rate, levels=(2, 3, 2)):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, k, size=rows) for k in levels])
    hit = rng.random(rows) < rate
    cells, place = np.unique(codes, axis=0, return_inverse=True)
    trials = np.bincount(place.ravel(), minlength=len(cells))
    successes = np.bincount(place.ravel(), weights=hit, minlength=len(cells)).astype(int)
    lattice = build_lattice(cells, [np.eye(k, dtype=bool) for k in levels], 3)
    return lattice.take(one_of_each(lattice, trials)), successes, trials


def plain_pvalue(count, size, rows, successes):
    x = np.arange(max(0, size - rows + successes), min(size, successes) + 1)
    chance = stats.hypergeom.pmf(x, rows, successes, size)
    far = np.abs(x * rows - size * successes)
    return float(min(chance[far >= abs(count * rows - size * successes)].sum(), 1.0))


def plain_step_down(members, successes, trials, permuted):
    """Return adjusted p-values by the definition: for each hypothesis, the smallest p-value of those not before it."""
    rows, total = int(trials.sum()), int(successes.sum())

    def pvalues(counts):
        return [plain_pvalue(int(counts[m].sum()), int(trials[m].sum()), rows, total) for m in members]

    seen = pvalues(successes)
    drawn = [pvalues(counts) for counts in permuted]
    order = sorted(range(len(members)), key=lambda i: (seen[i], i))
    adjusted, reached = [0.0] * len(members), 0.0
    for at, i in enumerate(order):
        left = order[at:]
        hits = sum(min(line[j] for j in left) <= seen[i] * (1 + 1e-7) for line in drawn)
        reached = max(reached, (1 + hits) / (1 + len(drawn)))
        adjusted[i] = reached
    return adjusted


@pytest.mark.parametrize(("seed", "rows", "rate"), [(0, 24, 0.3), (1, 60, 0.1), (2, 90, 0.6), (3, 40, 0.9)])
def test_adjusted_pvalues_are_those_of_brute_force(seed, rows, rate):
    lattice, successes, trials = world(seed, rows, rate)
    family = RateFamily(lattice, successes, trials)
    kept = []

    def drawn(rng, b):
        counts = family.cells(rng, b)
        kept.extend(counts.T.astype(int))
        return family._law(family.lattice.sums(counts).T)

    found = step_down(family.evidence, drawn, n_resamples=99, seed=seed, name="oracle")
    members = [np.flatnonzero(row) for row in lattice.members.toarray()]
    expected = plain_step_down(members, successes, trials, kept)
    np.testing.assert_allclose(found.pvalue, expected, rtol=0, atol=1e-12)
    assert found.largest.size == 99


@pytest.mark.parametrize("rare", [False, True])
def test_draws_of_cells_follow_the_law_of_all_permutations(rare):
    trials = np.array([3, 2, 4, 1])
    successes = np.array([1, 0, 1, 0]) if rare else np.array([2, 1, 3, 1])
    lattice = build_lattice(np.arange(4)[:, None], [np.eye(4, dtype=bool)], 1)
    family = RateFamily(lattice, successes, trials)
    total, rows = int(successes.sum()), int(trials.sum())
    cell = np.repeat(np.arange(4), trials)
    listed: dict[tuple[int, ...], float] = {}
    for chosen in itertools.combinations(range(rows), total):
        key = tuple(np.bincount(cell[list(chosen)], minlength=4).tolist())
        listed[key] = listed.get(key, 0) + 1 / math.comb(rows, total)
    drawn = family.cells(np.random.default_rng(5), 40_000).astype(int).T
    keys, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(k) for k in keys.tolist()} == set(listed)
    chance = np.array([listed[tuple(k)] for k in keys.tolist()])
    assert stats.chisquare(counts, chance * 40_000).pvalue > 1e-4


def test_both_ways_of_drawing_cells_have_one_law():
    trials, rng = np.array([50, 400, 30, 8]), np.random.default_rng(0)
    lattice = build_lattice(np.arange(4)[:, None], [np.eye(4, dtype=bool)], 1)
    by_cells = RateFamily(lattice, np.array([20, 150, 10, 3]), trials)
    by_rows = RateFamily(lattice, np.array([1, 3, 0, 0]), trials)
    assert not by_cells._by_rows()
    assert by_rows._by_rows()
    for family in (by_cells, by_rows):
        drawn = family.cells(rng, 30_000)
        share = family.gained / family.rows
        np.testing.assert_array_equal(drawn.sum(axis=0), family.gained)
        variance = trials * share * (1 - share) * (family.rows - trials) / (family.rows - 1)
        np.testing.assert_allclose(drawn.mean(axis=1), trials * share, atol=5 * np.sqrt(variance.max() / 30_000))
        np.testing.assert_allclose(drawn.var(axis=1), variance, rtol=0.05)


def test_evidence_is_the_exact_test_of_two_rates():
    lattice, successes, trials = world(7, 300, 0.3, levels=(3, 4, 3))
    family = RateFamily(lattice, successes, trials)
    for i in range(0, family.size.size, 5):
        one, n = int(family.count[i]), int(family.size[i])
        expected, _ = exact_pvalue((one, family.gained - one), (n, family.rows - n))
        assert math.exp(-family.evidence[i]) == pytest.approx(expected, rel=1e-9)
        assert family.difference[i] == pytest.approx(one / n - (family.gained - one) / (family.rows - n))


def test_subgroups_that_could_not_be_shown_are_not_tested_and_rows_decide_nothing():
    floors = np.array([0.001, 0.004, 0.011, 0.02, 0.3, 0.9])
    alpha = 0.05
    chosen = could_be_shown(-np.log(floors), alpha)
    # The definition, by hand: the smallest k for which at most k floors lie at or below alpha / k.
    k = next(k for k in range(1, 7) if (floors <= alpha / k).sum() <= k)
    np.testing.assert_array_equal(chosen, floors <= alpha / k)
    assert could_be_shown(-np.log([0.2, 0.3]), 0.05).sum() == 0


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.2])
def test_critical_evidence_is_the_least_that_would_be_shown(alpha):
    largest = np.sort(np.random.default_rng(0).integers(0, 30, size=199).astype(float))
    critical = Adjusted(pvalue=np.ones(1), largest=largest).critical(alpha)

    def pvalue(evidence):
        return (1 + (largest >= evidence - 1e-9).sum()) / 200

    assert pvalue(critical) <= alpha
    assert pvalue(np.nextafter(critical, 0) - 1e-6) > alpha


def test_the_detectable_difference_is_found_so_often():
    size, rows, successes, critical = 300, 4000, 1000, 8.0
    gap = detectable_difference(size, rows, successes, critical)
    rng = np.random.default_rng(0)
    # Rates that keep the total: the subgroup higher by the gap.
    rest = (successes - size * gap) / rows
    count = rng.binomial(size, rest + gap, size=4000)
    shown = np.mean([plain_pvalue(int(x), size, rows, successes) <= math.exp(-critical) for x in count])
    assert shown == pytest.approx(0.8, abs=0.03)
