"""Ratios to the highest rate: published limits of a pair, brute force on small tables, agreement of all parts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.best import Best, largest_pvalue
from evenhand.inference.rates.conditional import fisher_pvalues
from evenhand.inference.rates.equivalence import exact_equivalence
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.rates.weighted import WeightedRateSamples
from evenhand.kernels.counts.binomial import ratio_interval, ratio_statistic, score_interval


def best_of(successes, trials, *, ratio=True):
    return Best(RateSamples.from_counts(successes, trials), ratio=ratio)


def test_the_limits_of_a_pair_are_the_published_ones():
    # Miettinen and Nurminen for 7 of 34 against 1 of 34, and Koopman's for the ratio, as statsmodels gives them.
    assert score_interval([7, 1], [34, 34], [1, -1], 0.95) == pytest.approx((0.0270416, 0.3452912), abs=1e-7)
    found = ratio_interval([7, 1], [34, 34], 0.95, corrected=False)
    assert found == pytest.approx((1.220853, 42.575718), rel=1e-6)


def test_of_two_groups_it_is_the_comparison_of_the_pair():
    samples = RateSamples.from_counts([12, 70], [60, 175])
    for ratio, none in ((True, 1.0), (False, 0.0)):
        best = Best(samples, ratio=ratio)
        curve = samples._curve(0, 1, ratio=ratio)
        assert best.highest == 1
        assert best.pvalue(0, none) == pytest.approx(curve.pvalue(none), rel=1e-9)
        assert best.interval(0, 0.95)[:2] == pytest.approx(curve.interval(0.95), rel=1e-6)
    assert Best(samples, ratio=True).interval(1, 0.95)[1] == 1.0


@pytest.mark.parametrize("loads", [(0.0, 0.0, 0.0), (0.3, 0.5, 0.7), (0.9, 0.95, 0.6)])
@pytest.mark.parametrize("pvalue", [0.3, 0.02, 1e-4])
def test_the_law_of_the_largest_is_that_of_the_normal_distribution(loads, pvalue):
    load = np.array(loads)
    covariance = np.outer(load, load)
    np.fill_diagonal(covariance, 1.0)
    bar = stats.norm.isf(pvalue / 2)
    expected = 2 * (1 - stats.multivariate_normal.cdf(np.full(3, bar), cov=covariance, abseps=1e-9, releps=1e-9))
    assert largest_pvalue(pvalue, load) == pytest.approx(min(expected, 2 * pvalue, 1.0), rel=2e-3, abs=1e-8)


def test_what_is_shared_makes_the_choice_cheap_and_never_dearer_than_all_pairs():
    costs = [largest_pvalue(0.001, np.full(9, load)) / 0.001 for load in (0.0, 0.6, 0.9, 0.99)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == 5.0  # half of ten groups: with the other nine findings all 45 pairs
    assert costs[-1] < 2


def test_a_small_group_pays_less_for_the_choice_than_a_large_one():
    best = best_of([20, 1000, 1010, 990, 1005], [100, 2000, 2000, 2000, 2000])
    small, large = best._shared(0, 1.0), best._shared(1, 1.0)
    assert small.min() > 0.95
    assert large.max() < 0.75


SIZES = (4, 5, 6)
RATES = np.linspace(0.02, 0.98, 33)


@pytest.fixture(scope="module")
def tables():
    """All tables of three small groups, each with its p-values of no difference and its intervals."""
    listed = {}
    for x in itertools.product(*(range(n + 1) for n in SIZES)):
        if max(x):
            listed[x] = best_of(x, SIZES)
    return listed


def law(x, rates):
    """The chance of a table when the groups have these rates (groups, points)."""
    return np.prod([stats.binom.pmf(k, n, p) for k, n, p in zip(x, SIZES, rates, strict=True)], axis=0)


def test_of_equal_rates_a_false_finding_is_as_rare_as_stated(tables):
    smallest = {x: min(b.pvalue(a, 1.0) for a in range(3) if a != b.highest) for x, b in tables.items()}
    common = np.stack([RATES] * 3)
    for alpha in (0.2, 0.05, 0.01):
        chance = sum(law(x, common) for x, p in smallest.items() if 2 * p <= alpha)  # two findings, corrected
        assert np.max(chance) <= alpha
    assert min(smallest.values()) < 0.01  # and something can be found


@pytest.mark.parametrize("ratios", [(1.0, 1.0, 1.0), (1.0, 0.8, 0.8), (0.8, 1.0, 1.0), (0.5, 0.8, 1.0)])
def test_intervals_hold_together_whichever_group_is_best(tables, ratios):
    """All groups at once, each at level 1 - alpha / (K - 1): a limit misses exactly where its p-value is small."""
    alpha, points = 0.1, RATES[::4]
    rates = np.outer(ratios, points)
    missed = np.zeros(points.size)
    for x, best in tables.items():
        misses = False
        for a in range(3):
            if a != best.highest:
                misses |= best.pvalue(a, ratios[a]) <= alpha / 2
            if ratios[a] < 1:
                misses |= 2 * best.inside(a, ratios[a]) <= alpha / 2
        missed += law(x, rates) * misses
    assert missed.max() <= alpha


def test_interval_and_pvalues_agree():
    best = best_of([9, 30, 55, 0], [60, 90, 140, 35])
    for a in (0, 1, 3):
        low, high, kind = best.interval(a, 0.9)
        assert low <= best.estimate(a) <= high <= 1
        assert best.pvalue(a, high) > 0.1
        if high < 1:
            assert best.pvalue(a, high + 1e-6) <= 0.1 + 1e-6
            assert best.pvalue(a, 1.0) <= 0.1
        if low > 0:
            assert best.inside(a, low * (1 - 1e-4)) >= 0.05 - 1e-4
        assert kind == "exact, whichever group is highest"
    assert best.interval(0, 0.99)[1] >= best.interval(0, 0.9)[1]


def test_no_success_gives_an_upper_limit_and_no_success_anywhere_none():
    best = best_of([0, 12, 20], [40, 60, 80])
    low, high, _ = best.interval(0, 0.95)
    assert (best.estimate(0), low) == (0.0, 0.0)
    assert 0 < high < 1
    assert best.pvalue(0, 1.0) < 0.05
    assert math.isnan(best_of([0, 0], [5, 5]).estimate(0))


def test_a_group_without_trials_is_left_out():
    best = best_of([3, 0, 8], [10, 0, 10])
    assert best.members == (0, 2)
    assert best.highest == 2


def test_differences_from_the_highest():
    best = best_of([9, 30, 55], [60, 90, 140], ratio=False)
    assert best.estimate(0) == pytest.approx(9 / 60 - 55 / 140)
    low, high, _ = best.interval(0, 0.95)
    assert low < best.estimate(0) < high < 0
    assert best.pvalue(0, 0.0) == pytest.approx(best_of([9, 30, 55], [60, 90, 140]).pvalue(0, 1.0), rel=1e-6)


def test_weights_leave_fewer_trials():
    rng = np.random.default_rng(0)
    codes, weight = np.repeat([0, 1, 2], [80, 120, 200]), rng.uniform(0.2, 3, 400)
    value = rng.random(400) < np.array([0.2, 0.4, 0.6])[codes]
    w, ww = (np.bincount(codes, weights=part) for part in (weight, weight**2))
    wwv = np.bincount(codes, weights=weight**2 * value)
    means = MeanSamples(value=value.astype(float), weight=weight, codes=codes, n_groups=3)
    best = Best(WeightedRateSamples(means, w=w, ww=ww, wwv=wwv), ratio=True)
    plain = best_of(np.bincount(codes, weights=value).astype(int), [80, 120, 200])
    wide = np.subtract(*best.interval(0, 0.95)[1::-1]), np.subtract(*plain.interval(0, 0.95)[1::-1])
    assert wide[0] > wide[1]


@pytest.mark.parametrize(("n", "m"), [(12, 15), (15, 12)])
def test_one_sided_exact_pvalue_is_the_brute_force_one(n, m):
    low, q = 0.7, np.linspace(0, 1, 2001)
    x, y = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
    score = ratio_statistic(np.stack([x, y], -1), np.array([n, m]), low)
    first = stats.binom.pmf(np.arange(n + 1), n, low * q[:, None])
    second = stats.binom.pmf(np.arange(m + 1), m, q[:, None])
    for counts in ((9, 6), (11, 12), (12, 12)):
        chance = np.einsum("gi,gj,ij->g", first, second, score >= score[counts] - 1e-9)
        expected = max(chance.max(), stats.norm.sf(score[counts]))
        assert exact_equivalence(counts, (n, m), low, math.inf, ratio=True) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize(
    ("x", "n"), [((7, 1), (34, 34)), ((0, 9), (10, 40)), ((120, 200), (900, 1000)), ((5, 5), (9, 9))]
)
def test_fisher_is_that_of_scipy_and_half_of_the_table_seen_less(x, n):
    table = [[x[0], n[0] - x[0]], [x[1], n[1] - x[1]]]
    fisher, half = fisher_pvalues(x, n)
    assert fisher == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-8)
    assert fisher - half == pytest.approx(0.5 * stats.hypergeom.pmf(x[0], sum(n), n[0], sum(x)), rel=1e-7)
