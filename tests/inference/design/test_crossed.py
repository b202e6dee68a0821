"""Clusters with rows of both groups: McNemar and the paired t test as special cases, and intervals that agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import UsageError
from evenhand.inference.design.contributions import Contributions
from evenhand.inference.design.crossed import CrossedSamples, joint_score
from evenhand.inference.reference import Reference
from evenhand.inference.samples import Draws


def pairs(more: int, less: int, alike: int) -> CrossedSamples:
    top = [[1.0, 0.0]] * more + [[0.0, 1.0]] * less + [[1.0, 1.0]] * alike
    return CrossedSamples(Contributions.of_ratio(top, [[1.0, 1.0]] * len(top)))


def crossing(seed: int, count: int = 30, groups: int = 2) -> CrossedSamples:
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 6, (count, groups)).astype(float)
    rate = np.clip(rng.beta(3, 5, count)[:, None] + np.array([0.25, 0.0, 0.1])[:groups], 0, 1)
    x = rng.binomial(n.astype(int), rate).astype(float)
    return CrossedSamples(Contributions.of_ratio(x, n))


@pytest.mark.parametrize(("more", "less", "alike"), [(6, 1, 5), (8, 2, 2), (5, 0, 4)])
def test_sign_flips_of_pairs_are_mcnemars_exact_test(more, less, alike):
    samples = pairs(more, less, alike)
    null = samples._flips(0, 1, Draws())
    statistic = (samples.estimate[0] - samples.estimate[1]) / samples.error(0, 1)
    exact = stats.binomtest(more, more + less).pvalue
    assert Reference(None, null).pvalue(statistic, "two-sided") == pytest.approx(exact, rel=1e-12)
    # The t law is asked too, and the larger p-value counts.
    assert samples.test(0, 1, Draws()).pvalue >= exact - 1e-12


def test_drawn_flips_of_pairs_approach_mcnemar():
    samples = pairs(14, 5, 21)
    null = samples._flips(0, 1, Draws(n_resamples=9999, method="auto", name="t"))
    statistic = (samples.estimate[0] - samples.estimate[1]) / samples.error(0, 1)
    assert Reference(None, null).pvalue(statistic, "two-sided") == pytest.approx(
        stats.binomtest(14, 19).pvalue, rel=0.3
    )


def test_the_t_law_of_pairs_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 2)) + rng.normal(size=(20, 1))
    samples = CrossedSamples(Contributions.of_ratio(values, np.ones((20, 2))))
    result = samples.test(0, 1, Draws(method="limit"))
    known = stats.ttest_rel(values[:, 0], values[:, 1])
    assert result.statistic == pytest.approx(known.statistic, rel=1e-10)
    assert result.pvalue == pytest.approx(known.pvalue, rel=1e-10)
    low, high, _ = samples.interval(0, 1, level=0.9, ratio=False, draws=Draws(method="limit"))
    assert (low, high) == pytest.approx(tuple(known.confidence_interval(0.9)), rel=1e-9)


def test_the_joint_score_of_one_difference_is_the_squared_t():
    values = np.random.default_rng(1).normal(0.2, 1.0, size=(18, 1))
    result = joint_score(values.sum(axis=0), values, np.ones(18, dtype=np.int64), 17.0, Draws(method="limit"))
    assert result.pvalue == pytest.approx(stats.ttest_1samp(values[:, 0], 0).pvalue, rel=1e-10)


def test_hotellings_test_of_three_groups():
    values = np.random.default_rng(2).normal(size=(25, 3)) + np.array([0.0, 0.4, 0.2])
    samples = CrossedSamples(Contributions.of_ratio(values, np.ones((25, 3))))
    gaps = values[:, 1:] - values[:, :1]
    mean, spread = gaps.mean(axis=0), np.cov(gaps.T) / 25
    square = mean @ np.linalg.solve(spread, mean)
    expected = stats.f.sf(square * 23 / (24 * 2), 2, 23)
    assert samples.test_global([0, 1, 2], Draws(method="limit")).pvalue == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("method", ["auto", "limit"])
def test_the_interval_ends_where_the_test_rejects(ratio, method):
    draws = Draws(method=method, name="t", n_resamples=999)
    for seed in range(6):
        samples = crossing(seed)
        low, high, _ = samples.interval(0, 1, level=0.9, ratio=ratio, draws=draws)
        width = high - low
        for end, out in ((low, -1), (high, 1)):
            inner = samples._at(0, 1, end - out * 1e-3 * width, ratio, draws)
            outer = samples._at(0, 1, end + out * 1e-3 * width, ratio, draws)
            assert inner > 0.1 >= outer
        null = samples.test(0, 1, draws).pvalue <= 0.1
        assert null == (not low <= (1.0 if ratio else 0.0) <= high)


def test_equivalence_is_shown_where_the_interval_lies_inside():
    samples, draws = crossing(3), Draws(method="limit")
    low, high, _ = samples.interval(0, 1, level=0.9, ratio=False, draws=draws)
    assert samples.equivalence(0, 1, low=low - 1e-6, high=high + 1e-6, ratio=False, draws=draws) <= 0.05
    assert samples.equivalence(0, 1, low=low + 1e-6, high=high + 1, ratio=False, draws=draws) > 0.05


def test_shared_clusters_enter_by_their_covariance():
    # The officer's level moves both groups alike: the difference is known better than the two values are.
    rng = np.random.default_rng(4)
    level = rng.normal(size=(40, 1))
    samples = CrossedSamples(
        Contributions.of_ratio(5 * (level + 0.1 * rng.normal(size=(40, 2))), np.full((40, 2), 5.0))
    )
    assert samples.error(0, 1) < 0.2 * np.sqrt(np.diag(samples._covariance).sum())
    assert samples.standard_error(0, 0) == pytest.approx(np.sqrt(2 * samples._covariance[0, 0]))


@pytest.mark.parametrize(
    "asked", [Draws(method="permutation"), Draws(method="exact"), Draws(permute="all")], ids=["drawn", "exact", "all"]
)
def test_whole_clusters_that_cross_cannot_swap(asked):
    with pytest.raises(UsageError, match=r"several groups, so whole clusters cannot swap groups and `(method|perm)"):
        crossing(5).test(0, 1, asked)


def test_nothing_that_varies_is_no_test():
    samples = CrossedSamples(Contributions.of_ratio(np.ones((8, 2)), np.ones((8, 2))))
    assert np.isnan(samples.test(0, 1, Draws()).pvalue)
    assert "Nothing varies" in samples.test(0, 1, Draws()).warnings[0]
    assert np.isnan(samples.test_global([0, 1], Draws()).pvalue)
