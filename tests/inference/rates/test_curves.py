"""The curve of p-values of two rates: brute force, agreement with the interval, coverage added up over all tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.rates.curves import _summed, curve_of
from evenhand.inference.rates.equality import SPENT, equality_pvalue, possible_rates
from evenhand.kernels.counts.binomial import ratio_interval, restricted_proportions, score_interval
from evenhand.kernels.counts.rate_lines import Edge


def grid(n, m):
    return np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0), indexing="ij")


def test_restricted_rates_are_the_most_likely_ones():
    x, y = grid(9, 14)
    for at in (-0.6, -0.1, 0.0, 0.3):
        p, q = Edge(at).restricted(x, y, 9, 14)
        expected = restricted_proportions(np.stack([x, y], -1), [9, 14], [1, -1], np.full(x.shape, at))
        assert np.abs(np.stack([p, q], -1) - expected).max() < 1e-7
    q = np.linspace(0, 1, 100_001)[1:-1]
    for edge in (Edge(0.7, True), Edge(0.2, f1=True), Edge(1.6, True, True)):
        first = edge.first(q)
        rates = q[first < 1]
        first = first[first < 1]
        likely = 4 * np.log(first) + 5 * np.log1p(-first) + 6 * np.log(rates) + 8 * np.log1p(-rates)
        found = edge.restricted(np.array(4.0), np.array(6.0), 9, 14)
        assert float(found[1]) == pytest.approx(rates[likely.argmax()], abs=2e-5)


@pytest.mark.parametrize("edge", [Edge(0.0), Edge(0.2), Edge(1.7, True), Edge(0.6, True)])
def test_tail_is_near_the_probability_of_larger_scores(edge):
    """At the most likely rates, the chance of a larger score and half of that of an equal one."""
    n, m = 60, 80
    x, y = grid(n, m)
    score = np.abs(edge.statistic(x, y, n, m))
    for counts in ((40, 30), (20, 44), (33, 14)):
        at = (np.array(float(counts[0])), np.array(float(counts[1])))
        p, q = edge.restricted(*at, n, m)
        law = np.outer(stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(np.arange(m + 1), m, q))
        seen = score[counts]
        expected = law[score > seen + 1e-9].sum() + 0.5 * law[np.abs(score - seen) <= 1e-9].sum()
        assert float(edge.tails(*at, n, m)) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(("value", "ratio", "f1"), [(0.15, False, False), (0.8, True, False), (-0.1, False, True)])
def test_summed_pvalue_is_the_brute_force_one(value, ratio, f1):
    n, m = 9, 12
    edge = Edge(value, ratio, f1)
    x, y = grid(n, m)
    tail = edge.tails(x, y, n, m)
    q = np.linspace(0, 1, 4001)
    p = edge.first(q)
    known = (p >= 0) & (p <= 1)
    p, q = p[known], q[known]
    one, two = (stats.binom.pmf(np.arange(k + 1)[:, None], k, r) for k, r in ((n, p), (m, q)))
    for counts in ((8, 2), (1, 9), (5, 3)):
        chance = np.einsum("ig,ij,jg->g", one, (tail <= tail[counts] * (1 + 1e-9)).astype(float), two)
        limits = [possible_rates(k, size, SPENT / 2) for k, size in zip(counts, (n, m), strict=True)]
        left = (p >= limits[0][0]) & (p <= limits[0][1]) & (q >= limits[1][0]) & (q <= limits[1][1])
        found = _summed(np.array([value]), np.array([tail[counts]]), counts, (n, m), ratio, f1)
        assert float(found[0]) == pytest.approx(chance[left].max() + SPENT, rel=5e-3)


def test_interval_and_test_agree_on_random_tables():
    rng = np.random.default_rng(0)
    for _ in range(150):
        n, m = (int(k) for k in rng.integers(1, rng.choice([8, 40, 120]), 2))
        x, y = (int(k) for k in rng.binomial([n, m], np.clip(rng.random() + rng.normal(0, 0.2, 2), 0, 1)))
        f1 = bool(rng.random() < 0.2)
        p = equality_pvalue((x, y), (n, m))[0]
        for ratio in (False, True):
            curve = curve_of((x, y), (n, m), ratio=ratio, f1=f1)
            if not math.isnan(curve.estimate):
                assert curve.pvalue(1.0 if ratio else 0.0) == pytest.approx(p, rel=1e-9)
            for level in (0.9, 0.95, 0.99, 0.999):
                low, high = curve.interval(level)
                for value in (1.0, 0.8, 1.25) if ratio else (0.0, -0.1, 0.05):
                    assert (not low <= value <= high) == (curve.pvalue(value) <= 1 - level)


def test_the_table_that_contradicted_itself():
    curve = curve_of((7, 1), (34, 34))
    assert curve.pvalue(0.0) < 0.05  # by the conditional test .054, beside an interval from .027
    assert 0 < curve.interval(0.95)[0] < 0.03


def test_far_values_are_no_more_likely():
    for x, y, n, m in ((3, 9, 20, 30), (0, 4, 12, 9), (6, 0, 40, 11)):
        for ratio in (False, True):
            curve = curve_of((x, y), (n, m), ratio=ratio)
            values = np.exp(np.linspace(-6, 6, 101)) if ratio else np.linspace(-1, 1, 101)
            p = np.array([curve.pvalue(float(v)) for v in values])
            above = values >= curve.estimate
            assert (np.diff(p[above]) <= 1e-12).all()
            assert (np.diff(p[~above]) >= -1e-12).all()


def test_swapping_the_samples_turns_the_interval():
    for ratio in (False, True):
        one = curve_of((9, 4), (30, 22), ratio=ratio).interval(0.95)
        two = curve_of((4, 9), (22, 30), ratio=ratio).interval(0.95)
        turned = (1 / two[1], 1 / two[0]) if ratio else (-two[1], -two[0])
        assert one == pytest.approx(turned, rel=1e-12)


def test_without_successes_a_ratio_has_a_bound_on_one_side():
    assert curve_of((0, 0), (20, 20), ratio=True).interval(0.95) == (0.0, math.inf)
    low, high = curve_of((0, 8), (20, 20), ratio=True).interval(0.95)
    assert low == 0.0
    assert 0 < high < 1
    low, high = curve_of((8, 0), (20, 20), ratio=True).interval(0.95)
    assert high == math.inf
    assert low > 1


def test_large_samples_agree_with_the_score_interval():
    x, n = (4000, 4100), (10_000, 10_000)
    expected = score_interval(x, n, [1, -1], 0.95)
    assert curve_of(x, n).interval(0.95) == pytest.approx([float(end) for end in expected], abs=2e-5)
    expected = ratio_interval(x, n, 0.95)
    assert curve_of(x, n, ratio=True).interval(0.95) == pytest.approx([float(end) for end in expected], abs=1e-4)


@pytest.mark.parametrize(("n", "m", "ratio"), [(9, 9, False), (6, 14, False), (9, 9, True)])
def test_coverage_added_up_over_all_tables(n, m, ratio):
    found = np.array([[curve_of((x, y), (n, m), ratio=ratio).interval(0.95) for y in range(m + 1)]
                      for x in range(n + 1)])  # fmt: skip
    low, high = found[..., 0], found[..., 1]
    covered = []
    for p in np.linspace(0.05, 0.95, 19):
        for q in np.linspace(0.05, 0.95, 19):
            truth = p / q if ratio else p - q
            inside = (low <= truth + 1e-12) & (truth - 1e-12 <= high)
            covered.append(stats.binom.pmf(np.arange(n + 1), n, p) @ inside @ stats.binom.pmf(np.arange(m + 1), m, q))
    # Exact at equality and at the knots of the curve; between them interpolation may cost half a point.
    assert min(covered) > 0.94
    assert np.mean(np.array(covered) >= 0.95) > 0.9
