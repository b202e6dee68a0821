"""Means and AUCs compared within strata, against plain versions, one stratum, and all permutations."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.auc import AucSamples
from evenhand.inference.samples import Draws
from evenhand.inference.strata.aucs import StratifiedAucs
from evenhand.inference.strata.means import StratifiedMeans

LIMIT = Draws(method="limit")


def rows(n=240, strata=6, groups=2, seed=0):
    rng = np.random.default_rng(seed)
    s, g = rng.integers(0, strata, n), rng.integers(0, groups, n)
    return rng.normal(size=n) + s + 0.2 * g, g, s


def means(v, g, s, **more):
    return StratifiedMeans(value=v, codes=g, strata=s, shape=(int(g.max()) + 1, int(s.max()) + 1), **more)


def test_one_stratum_is_welchs_t_test():
    v, g, _ = rows()
    samples = means(v, g, np.zeros(g.size, dtype=int))
    result, expected = samples.test(0, 1, LIMIT), stats.ttest_ind(v[g == 0], v[g == 1], equal_var=False)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.pvalue == pytest.approx(expected.pvalue)
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=LIMIT)
    assert (low, high) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_the_conditional_difference_is_that_of_the_plain_formula():
    v, g, s = rows()
    weight = gap = square = 0.0
    for k in range(6):
        one, two = v[(s == k) & (g == 0)], v[(s == k) & (g == 1)]
        w = len(one) * len(two) / (len(one) + len(two))
        weight, gap = weight + w, gap + w * (one.mean() - two.mean())
        square += w**2 * (one.var(ddof=1) / len(one) + two.var(ddof=1) / len(two))
    samples = means(v, g, s)
    assert samples.difference(0, 1) == pytest.approx(gap / weight)
    assert samples.standard_error(0, 1) == pytest.approx(math.sqrt(square) / weight)


def test_sums_and_rows_give_the_same_answer():
    v, g, s = rows()
    w = np.random.default_rng(1).uniform(0.5, 2, v.size)
    cell = g * 6 + s
    parts = {"n": np.ones_like(v), "w": w, "ww": w * w, "wv": w * v, "wwv": w * w * v, "wwvv": w * w * v * v}
    sums = {name: np.bincount(cell, weights=part, minlength=12).reshape(2, 6) for name, part in parts.items()}
    summed, kept = StratifiedMeans.from_moments(sums), means(v, g, s, weight=w)
    assert summed.difference(0, 1) == pytest.approx(kept.difference(0, 1))
    assert summed.test(0, 1, Draws()).pvalue == pytest.approx(kept.test(0, 1, LIMIT).pvalue)


def test_permutations_within_strata_are_those_listed_one_by_one():
    v, g, s = np.array([1.0, 4, 2, 7, 3, 9, 5, 8]), np.array([0, 0, 1, 1, 1, 0, 0, 1]), np.repeat([0, 1], 4)

    def statistic(first):
        gap = spread = total = 0.0
        for k, chosen in enumerate(first):
            part = v[s == k]
            one, two = part[list(chosen)], np.delete(part, list(chosen))
            w = len(one) * len(two) / len(part)
            gap, total = gap + w * (one.mean() - two.mean()), total + w
            spread += w**2 * (one.var(ddof=1) / len(one) + two.var(ddof=1) / len(two))
        return gap / math.sqrt(spread)

    every = [statistic(first) for first in product(combinations(range(4), 2), repeat=2)]
    seen = statistic([(0, 1), (1, 2)])
    near = np.mean([value >= seen - 1e-9 for value in every] if seen > 0 else [value <= seen + 1e-9 for value in every])
    samples = means(v, g, s)
    result = samples.test(0, 1, Draws(method="permutation", n_resamples=9999, seed=3))
    assert result.statistic == pytest.approx(seen)
    assert result.pvalue_low <= min(1, 2 * near) <= result.pvalue_high


@pytest.mark.parametrize("seed", range(4))
def test_interval_and_pvalue_agree(seed):
    v, g, s = rows(n=60, strata=4, seed=seed)
    samples, draws = means(v, g, s), Draws(n_resamples=999, seed=seed)
    p = samples.test(0, 1, draws).pvalue
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=draws)
    assert (low <= 0 <= high) == (p > 0.05)
    assert samples.test(1, 0, draws).pvalue == p


def test_strata_of_two_rows_are_the_paired_t_test():
    rng = np.random.default_rng(2)
    one, two = rng.normal(size=40) + 0.3, rng.normal(size=40)
    samples = means(np.concatenate([one, two]), np.repeat([0, 1], 40), np.tile(np.arange(40), 2))
    expected = stats.ttest_rel(one, two)
    assert samples.test(0, 1, LIMIT).statistic == pytest.approx(expected.statistic)
    assert samples.test(0, 1, LIMIT).pvalue == pytest.approx(expected.pvalue, rel=0.1)


def test_records_in_another_order_give_the_same_answer():
    v, g, s = rows(n=50, strata=3)
    order = np.random.default_rng(0).permutation(50)
    draws = Draws(n_resamples=499)
    assert means(v, g, s).test(0, 1, draws).pvalue == means(v[order], g[order], s[order]).test(0, 1, draws).pvalue


def test_three_groups_are_tested_by_their_gaps():
    v, g, s = rows(n=3000, groups=3, seed=5)
    samples = means(v, g, s)
    q = samples.test_global([0, 1, 2], Draws())
    assert q.pvalue < 0.01  # the groups are .2 apart
    same = means(v - 0.2 * g, g, s).test_global([0, 1, 2], Draws())
    assert same.pvalue > 0.01
    # Two groups: the square of the test of the pair.
    two = means(v[g < 2], g[g < 2], s[g < 2])
    assert two.test_global([0, 1], Draws()).statistic == pytest.approx(two.test(0, 1, LIMIT).statistic ** 2, rel=1e-6)


def test_homogeneity_sees_strata_that_differ():
    v, g, s = rows(n=2000, seed=6)
    assert means(v, g, s).homogeneity(0, 1, ratio=False).pvalue > 0.01
    assert means(v + (s == 2) * g, g, s).homogeneity(0, 1, ratio=False).pvalue < 1e-6


def auc_rows(n=300, strata=5, seed=0):
    rng = np.random.default_rng(seed)
    s, g, y = rng.integers(0, strata, n), rng.integers(0, 2, n), rng.random(n) < 0.4
    return np.round(rng.normal(size=n) + y + s, 1), y, g, s


@pytest.mark.parametrize("weighted", [False, True])
def test_each_cell_has_the_auc_and_error_of_the_unstratified_class(weighted):
    v, y, g, s = auc_rows()
    w = np.random.default_rng(1).uniform(0.5, 2, v.size) if weighted else None
    samples = StratifiedAucs(score=v, outcome=y, codes=g, strata=s, shape=(2, 5), weight=w)
    for k in range(5):
        at = s == k
        alone = AucSamples(score=v[at], outcome=y[at], codes=g[at], n_groups=2, weight=None if w is None else w[at])
        np.testing.assert_allclose(samples.cells.value[:, k], alone.estimate)
        error = math.sqrt(float(samples.cells.variance[:, k].sum()))
        assert error == pytest.approx(alone.standard_error(0, 1))


def test_scores_that_only_tell_strata_apart_give_no_conditional_auc():
    rng = np.random.default_rng(3)
    s, g = rng.integers(0, 4, 4000), rng.integers(0, 2, 4000)
    y = rng.random(4000) < (s + 1) / 6
    samples = StratifiedAucs(score=s + rng.normal(size=4000) / 100, outcome=y, codes=g, strata=s, shape=(2, 4))
    assert samples.values(0, 1) == (pytest.approx(0.5, abs=0.04), pytest.approx(0.5, abs=0.04))


def test_auc_pvalue_and_interval_agree_and_a_difference_is_seen():
    v, y, g, s = auc_rows(n=400, seed=2)
    draws = Draws(n_resamples=499, seed=1)
    samples = StratifiedAucs(score=np.where(g == 1, v + 3 * y, v), outcome=y, codes=g, strata=s, shape=(2, 5))
    p = samples.test(0, 1, draws).pvalue
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=draws)
    assert p <= 0.05
    assert low < samples.difference(0, 1) < high < 0
    assert samples.test(1, 0, draws).pvalue == p
