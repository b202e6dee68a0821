"""Clusters that lie in one group each swap groups whole; rates ask the trials that clusters leave as well."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.design.clustered import ClusteredSamples, rows_of
from evenhand.inference.design.contributions import Contributions
from evenhand.inference.design.effective_rates import EffectiveRates, trials_of
from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws

DRAWS = Draws(name="t", n_resamples=999)


def made(
    seed: int, sizes: tuple[int, int] = (15, 20), *, crossing: bool = False, rates: tuple[float, float] = (0.5, 0.3)
) -> ClusteredSamples:
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], sizes)
    n = rng.integers(1, 7, (group.size, 2)).astype(float) * (1.0 if crossing else np.eye(2)[group])
    x = rng.binomial(n.astype(int), np.clip(np.array(rates) + 0.2 * rng.normal(size=(group.size, 1)), 0, 1))
    return ClusteredSamples(Contributions.of_ratio(x, n), rows_of(n, x), rate=True, name="person")


def test_rows_that_are_their_own_clusters_have_the_plain_test():
    rng = np.random.default_rng(0)
    group, value = np.repeat([0, 1], [14, 19]), rng.exponential(size=33)
    n = np.eye(2)[group]
    parts = Contributions.of_ratio(n * value[:, None], n)
    samples = ClusteredSamples(parts, rows_of(n, n * value[:, None]), rate=False, name="row")
    plain = MeanSamples(value=value, codes=group, n_groups=2)
    for method in ("auto", "limit"):
        ours, theirs = (s.test(0, 1, Draws(method=method, name="t")) for s in (samples, plain))
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9)
        assert ours.pvalue == pytest.approx(theirs.pvalue, rel=1e-6 if method == "limit" else 0.15)


def test_clusters_are_weighted_means_and_their_variance_is_that_of_clusters():
    samples = made(1)
    error = math.sqrt(samples._apart.standard_error(0, 1) ** 2)
    group = samples.parts.present.argmax(axis=1)
    plain = 0.0
    for k in (0, 1):
        mine = group == k
        pulls = samples.parts.pull[mine, k]
        plain += mine.sum() / (mine.sum() - 1) * (pulls**2).sum()
    assert error == pytest.approx(math.sqrt(plain), rel=1e-9)


@pytest.mark.parametrize("crossing", [False, True])
@pytest.mark.parametrize("ratio", [False, True])
def test_the_interval_keeps_what_the_test_keeps(crossing, ratio):
    disagreements, rejected = 0, 0
    for seed in range(12):
        samples = made(seed, crossing=crossing)
        p = samples.test(0, 1, DRAWS).pvalue
        low, high, kind = samples.interval(0, 1, level=0.95, ratio=ratio, draws=DRAWS)
        assert "cluster" in kind
        disagreements += (p <= 0.05) != (not low <= (1.0 if ratio else 0.0) <= high)
        rejected += p <= 0.05
    assert disagreements == 0
    assert 0 < rejected < 12


@pytest.mark.parametrize("crossing", [False, True])
def test_margins_agree_with_the_interval(crossing):
    for seed in range(4):
        samples = made(seed, crossing=crossing)
        low, high, _ = samples.interval(0, 1, level=0.9, ratio=False, draws=DRAWS)
        at = {"ratio": False, "draws": DRAWS}
        # The exact test of plain rates on a margin asks for a little more than the interval does.
        assert samples.equivalence(0, 1, low=low - 0.1, high=high + 0.1, **at) <= 0.05
        assert samples.equivalence(0, 1, low=low + 1e-3, high=1.0, **at) > 0.05
        gap = samples.difference(0, 1)
        assert samples.beyond(0, 1, low=gap - 0.01, high=gap + 0.01, **at) == 1.0
        below = low - 0.05
        assert samples.beyond(0, 1, low=below - 0.1, high=below, **at) <= 0.1


def test_the_p_value_is_never_below_that_of_the_effective_trials():
    for seed in range(5):
        samples = made(seed)
        plain = samples._effective(0, 1)
        assert plain is not None
        assert samples.test(0, 1, DRAWS).pvalue >= plain.pvalue(DRAWS) - 1e-12
        n, m = plain.samples.trials.tolist()
        assert f"{n} and {m} independent trials" in samples.test(0, 1, DRAWS).method


def test_rates_of_zero_have_a_test_and_a_bound():
    n = np.kron(np.eye(2), np.ones((12, 1))) * 5
    samples = ClusteredSamples(Contributions.of_ratio(0 * n, n), rows_of(n, 0 * n), rate=True, name="person")
    assert samples.test(0, 1, DRAWS).pvalue == 1.0
    low, high, _ = samples.interval(0, 1, level=0.95, ratio=False, draws=DRAWS)
    # Twelve clusters of which nothing is known but that their rows may be alike.
    plain = RateSamples.from_counts([0, 0], [12, 12]).interval(0, 1, level=0.95, ratio=False, draws=DRAWS)
    assert low < plain[0] < 0 < plain[1] < high < 1


def test_trials_of_known_designs():
    rng = np.random.default_rng(2)
    # Clusters of five equal rows: as many trials as clusters.
    x = np.repeat(rng.integers(0, 2, 400), 1)[:, None] * 5.0
    parts = Contributions.of_ratio(x, np.full((400, 1), 5.0))
    trials = trials_of(parts.estimate, np.diag(parts.covariance()), np.array([2000.0]), np.array([5.0]))
    assert trials[0] == pytest.approx(399, rel=1e-6)
    samples = ClusteredSamples(parts, rows_of(np.full((400, 1), 5.0), x), rate=True, name="person")
    assert samples.counts[0]["effective_rows"] == pytest.approx(400, rel=0.01)
    assert samples.correlation[0] == pytest.approx(1.0, rel=0.01)
    assert samples.design_effect[0] == pytest.approx(5.0, rel=0.01)


def test_student_turns_normal_p_values():
    pair = EffectiveRates.of((0.3, 0.1), (40.0, 40.0), 9.0)
    plain = pair.samples.test(0, 1, Draws()).pvalue
    assert pair.pvalue(Draws()) == pytest.approx(2 * stats.t.sf(stats.norm.isf(plain / 2), 9), rel=1e-9)
    known = EffectiveRates.of((0.3, 0.1), (40.0, 40.0), 1e9)
    assert known.pvalue(Draws()) == pytest.approx(plain, rel=1e-6)
    assert known.interval(0.95, ratio=False) == pytest.approx(
        pair.samples.interval(0, 1, level=0.95, ratio=False, draws=Draws())[:2], rel=1e-6
    )


def test_one_cluster_is_not_computable_and_few_are_warned_of():
    n = np.array([[3.0, 0.0]] + [[0.0, 3.0]] * 12)
    x = np.minimum(n, 1.0)
    samples = ClusteredSamples(Contributions.of_ratio(x, n), rows_of(n, x), rate=True, name="person")
    assert samples.reason == ("has one cluster of `person` only, and a variance between clusters needs two", "")
    assert math.isnan(samples.test(0, 1, DRAWS).pvalue)
    few = made(3, sizes=(6, 20)).test(0, 1, DRAWS).warnings
    assert any("only 6 clusters of `person`" in text for text in few)
    assert not any("only" in text for text in made(3, sizes=(12, 20)).test(0, 1, DRAWS).warnings)


def test_the_order_of_clusters_does_not_matter():
    samples = made(4)
    turned = samples.parts
    order = np.random.default_rng(5).permutation(len(turned.mass))
    again = Contributions(
        estimate=turned.estimate, mass=turned.mass[order], pull=turned.pull[order], copies=turned.copies[order]
    )
    other = ClusteredSamples(again, samples.behind, rate=True, name="person")
    assert other.test(0, 1, DRAWS).pvalue == samples.test(0, 1, DRAWS).pvalue


def test_all_groups_at_once():
    rng = np.random.default_rng(6)
    group = np.repeat([0, 1, 2], 15)
    n = np.eye(3)[group] * 4
    x = rng.binomial(n.astype(int), np.array([0.2, 0.5, 0.8]))
    samples = ClusteredSamples(Contributions.of_ratio(x, n), rows_of(n, x), rate=True, name="person")
    assert samples.test_global([0, 1, 2], DRAWS).pvalue < 0.01
    alike = rng.binomial(n.astype(int), 0.5)
    plain = ClusteredSamples(Contributions.of_ratio(alike, n), rows_of(n, alike), rate=True, name="person")
    assert plain.test_global([0, 1, 2], DRAWS).pvalue > 0.01
