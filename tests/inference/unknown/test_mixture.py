"""Rates from group probabilities: against a general optimiser, the answer with known groups, repeated draws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws
from evenhand.inference.unknown.mixture import Mixture
from evenhand.inference.unknown.proxy_bounds import ProxyRows


def drawn(seed, n, groups, rates, shares=None, sharp=0.7):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.arange(groups, 0, -1) / groups * sharp, n)
    group = (p.cumsum(1) > rng.random((n, 1))).argmax(1)
    place = np.where(rng.random(n) < np.asarray(rates)[group], 0, 1)
    if shares is not None:
        place = np.where(rng.random(n) < np.asarray(shares)[group], place, 2)
    return ProxyRows.of(p, place), group


def log_likelihood(people, theta):
    """Return the plain log-likelihood of the probabilities of each place in each group, shape (K, 3)."""
    return float(np.log((people.probability * theta[:, people.place].T).sum(1)).sum())


def by_optimiser(people, groups, held=None):
    """Maximise the log-likelihood with a general method, with the first two rates' difference held if asked."""

    def theta_of(x):
        share, rate = x[:groups], x[groups:]
        return np.stack([share * rate, share * (1 - rate), 1 - share], axis=1)

    outside = bool((people.place == 2).any())
    bounds = [(1e-6, 1 - 1e-6)] * (2 * groups) if outside else [(1.0, 1.0)] * groups + [(1e-6, 1 - 1e-6)] * groups
    constraints = [] if held is None else [{"type": "eq", "fun": lambda x: x[groups] - x[groups + 1] - held}]
    start = np.concatenate([np.full(groups, 0.5 if outside else 1.0), np.full(groups, 0.4)])
    solved = optimize.minimize(
        lambda x: -log_likelihood(people, theta_of(x)) / len(people.place),
        start,
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solved.success
    return solved.x[groups:], -solved.fun * len(people.place)


@pytest.mark.parametrize(("groups", "shares"), [(2, None), (2, [0.5, 0.6]), (3, None), (3, [0.4, 0.6, 0.5])])
def test_the_top_is_that_of_a_general_optimiser(groups, shares):
    people, _ = drawn(1, 1500, groups, np.linspace(0.3, 0.6, groups), shares)
    model = Mixture(people)
    rate, top = by_optimiser(people, groups)
    assert model.fit.log_likelihood >= top - 1e-4
    assert model.values == pytest.approx(rate, abs=5e-3)


@pytest.mark.parametrize("shares", [None, [0.4, 0.6, 0.5]])
@pytest.mark.parametrize("held", [0.0, 0.1, -0.25])
def test_the_root_is_that_of_a_general_optimiser(held, shares):
    people, _ = drawn(2, 1500, 3, [0.3, 0.5, 0.4], shares)
    model = Mixture(people)
    _, top = by_optimiser(people, 3)
    _, restricted = by_optimiser(people, 3, held)
    assert abs(model.root(0, 1, held)) == pytest.approx(math.sqrt(2 * (top - restricted)), abs=2e-3)


def test_certain_groups_give_the_two_sample_answer():
    """With probabilities of 0 and 1 the groups are known, and the likelihood is that of independent binomials."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 2, 4000)
    place = np.where(rng.random(group.size) < np.where(group == 0, 0.35, 0.3), 0, 1)
    model = Mixture(ProxyRows.of(np.eye(2)[group], place))
    x = [int(np.sum((group == k) & (place == 0))) for k in (0, 1)]
    n = [int(np.sum(group == k)) for k in (0, 1)]
    samples = RateSamples.from_counts(x, n)
    assert model.values == pytest.approx(np.divide(x, n), abs=1e-6)
    assert model.pvalue(0, 1, 0.0) == pytest.approx(samples.test(0, 1, Draws()).pvalue, rel=0.02)
    for ratio in (False, True):
        low, high, _ = samples.interval(0, 1, level=0.95, ratio=ratio, draws=Draws())
        assert model.interval(0, 1, 0.95, ratio=ratio) == pytest.approx((low, high), abs=2e-3)
    # Also the likelihood-ratio statistic of the table.
    table = np.stack([x, np.subtract(n, x)], axis=1)
    expected = stats.contingency.expected_freq(table)
    assert model.root(0, 1, 0.0) ** 2 == pytest.approx(2 * np.sum(table * np.log(table / expected)), rel=1e-4)


def test_the_interval_is_where_the_test_stops_keeping():
    people, _ = drawn(4, 3000, 3, [0.3, 0.5, 0.4], [0.4, 0.6, 0.5])
    model = Mixture(people)
    for ratio in (False, True):
        for end in model.interval(0, 1, 0.9, ratio=ratio):
            assert model.pvalue(0, 1, end, ratio=ratio) == pytest.approx(0.1, abs=2e-3)


def test_the_standard_error_is_the_spread_of_estimates():
    estimates, errors = [], []
    for seed in range(150):
        model = Mixture(drawn(100 + seed, 1500, 3, [0.3, 0.5, 0.4], [0.5, 0.6, 0.7])[0])
        estimates.append(model.value(1, 0, ratio=False))
        errors.append(model.standard_error(1, 0))
    assert np.mean(estimates) == pytest.approx(0.2, abs=0.02)
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.2)


def test_f1_is_a_function_of_its_rate():
    people, _ = drawn(5, 3000, 2, [0.3, 0.5])
    plain, f1 = Mixture(people), Mixture(people, f1=True)
    assert f1.values == pytest.approx(2 * plain.values / (1 + plain.values))
    assert f1.pvalue(0, 1, 0.0) == pytest.approx(plain.pvalue(0, 1, 0.0), rel=1e-3)


def test_weights_that_repeat_rows_and_clusters_widen():
    people, _ = drawn(6, 2000, 2, [0.3, 0.4])
    plain = Mixture(people)
    same = Mixture(replace(people, weight=3 * people.weight, square=9 * people.square))
    assert same.root(0, 1, 0.0) == pytest.approx(plain.root(0, 1, 0.0), abs=1e-3)
    # Every person twice in one cluster: the same estimate, the same error.
    twice = ProxyRows.of(np.repeat(people.probability, 2, axis=0), np.repeat(people.place, 2))
    clustered = Mixture(replace(twice, cluster=np.repeat(np.arange(2000), 2)))
    assert clustered.standard_error(0, 1) == pytest.approx(plain.standard_error(0, 1), rel=1e-3)
    assert clustered.root(0, 1, 0.0) == pytest.approx(plain.root(0, 1, 0.0), rel=1e-2)
    assert Mixture(twice).root(0, 1, 0.0) == pytest.approx(math.sqrt(2) * plain.root(0, 1, 0.0), rel=1e-2)


def test_equal_probabilities_identify_nothing():
    p = np.tile([0.3, 0.7], (500, 1))
    place = np.arange(500) % 3
    assert not Mixture(ProxyRows.of(p, place)).identified
    people, _ = drawn(7, 500, 3, [0.3, 0.5, 0.4])
    assert Mixture(people).identified


def test_a_proxy_that_matters_beyond_the_group_is_noticed():
    rng = np.random.default_rng(8)
    p = rng.beta(0.8, 0.8, 6000)
    group = rng.random(p.size) < p
    chance = 0.3 + 0.1 * group + 0.25 * np.sin(3 * np.pi * p) ** 2
    place = np.where(rng.random(p.size) < chance, 0, 1)
    assert Mixture(ProxyRows.of(np.stack([p, 1 - p], 1), place)).misfit(0, 1) < 1e-4
    kept = [Mixture(drawn(900 + s, 2000, 2, [0.3, 0.5])[0]).misfit(0, 1) for s in range(60)]
    assert np.mean(np.array(kept) < 0.05) <= stats.binom.isf(1e-3, 60, 0.05) / 60


def test_weighting_and_thresholds_pull_a_difference_towards_none():
    """The two shortcuts that are not offered, on people whose groups are known: why they are not."""
    people, group = drawn(9, 40_000, 2, [0.3, 0.5], sharp=1.0)
    chosen = people.place == 0
    truth = chosen[group == 1].mean() - chosen[group == 0].mean()
    p = people.probability
    weighted = [np.average(chosen, weights=p[:, k]) for k in (0, 1)]
    likely = p.argmax(1)
    model = Mixture(people)
    assert model.value(1, 0, ratio=False) == pytest.approx(truth, abs=0.03)
    assert weighted[1] - weighted[0] < 0.75 * truth
    assert chosen[likely == 1].mean() - chosen[likely == 0].mean() < 0.9 * truth
