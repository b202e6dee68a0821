from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.tails import _permuted, levels_of, share_pvalues, tail_difference_test
from evenhand.kernels.pareto_tail import fit_tail
from evenhand.kernels.seeds import stream


def test_levels_of_many_tails_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    samples = rng.beta(2, 6, size=(5, 800))
    tails = [fit_tail(s, 50, upper=1.0) for s in samples]
    top = np.array([t.values[:51] for t in tails])
    level, variance = levels_of(top, 800, 2000.0, 1.0)
    np.testing.assert_allclose(level, [t.level(2000.0) for t in tails])
    alone = [levels_of(t[None], 800, 2000.0, 1.0)[1][0] for t in top]
    np.testing.assert_allclose(variance, alone)


def test_permuted_tops_are_those_of_whole_permutations() -> None:
    rng = np.random.default_rng(1)
    a, b = fit_tail(rng.random(900), 20), fit_tail(rng.random(300), 20)
    pooled = -np.sort(-np.concatenate([a.values, b.values]))
    top_a, top_b = _permuted(pooled, a, b, 4000, stream(0, "test"))
    assert top_a.shape == top_b.shape == (4000, 21)
    assert np.all(np.diff(top_a, axis=1) < 0)
    for row_a, row_b in zip(top_a[:50], top_b[:50], strict=True):
        assert not set(row_a) & set(row_b)
    # The overall largest value falls into a with a's share; compare the mean threshold with whole permutations.
    assert np.mean(top_a[:, 0] == pooled[0]) == pytest.approx(0.75, abs=0.025)
    whole = np.array([np.sort(rng.permutation(pooled)[:300])[-21] for _ in range(4000)])
    assert top_b[:, -1].mean() == pytest.approx(whole.mean(), abs=4 * whole.std() / np.sqrt(2000))


def test_a_planted_difference_is_found_and_order_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    a, b = fit_tail(rng.exponential(size=1500), 75), fit_tail(2 * rng.exponential(size=1000), 75)
    one = tail_difference_test(a, b, 1000.0, n_resamples=199, seed=0)
    two = tail_difference_test(b, a, 1000.0, n_resamples=199, seed=0)
    assert one.pvalue == two.pvalue == 1 / 200
    assert one.statistic == pytest.approx(-two.statistic)


def test_more_resamples_begin_with_the_same_draws() -> None:
    rng = np.random.default_rng(3)
    a, b = fit_tail(rng.random(600), 50), fit_tail(rng.random(600), 50)
    few = tail_difference_test(a, b, 1000.0, n_resamples=120, seed=4).null
    many = tail_difference_test(a, b, 1000.0, n_resamples=300, seed=4).null
    np.testing.assert_array_equal(few, many[:120])


def test_share_pvalues_are_binomial() -> None:
    more, fewer = share_pvalues(7, 2, 3000, 1e-3)
    assert more == pytest.approx(stats.binom.sf(6, 3000, 1e-3))
    assert fewer == pytest.approx(stats.binom.cdf(2, 3000, 1e-3))
    assert np.isnan(share_pvalues(7, None, 3000, 1e-3)[1])
    assert share_pvalues(0, 0, 3000, 1e-3)[0] == 1
    # The rule of three: none in 3 m rows shows, at 5 %, that fewer than one in m exceed.
    assert share_pvalues(0, 0, 3000, 1e-3)[1] == pytest.approx(0.05, abs=0.001)
