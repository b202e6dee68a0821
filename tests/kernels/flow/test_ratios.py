from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from evenhand.kernels.flow.map_error import MapError
from evenhand.kernels.flow.ratios import MeanRatio, mean_ratio, rate_ratio

RNG = np.random.default_rng(0)
ONES = np.ones(200)


def test_mean_ratio_is_the_papers_statistic():
    r = np.exp(RNG.normal(size=200))
    found = mean_ratio(np.log(r), ONES)
    assert found.estimate == pytest.approx(r.mean())
    assert found.spread == pytest.approx(r.std(ddof=1))
    assert found.skewness == pytest.approx(stats.skew(r))
    assert found.bound(0.05) == pytest.approx(r.mean() - stats.norm.ppf(0.95) * r.std(ddof=1) / math.sqrt(200))
    low, high = found.interval(0.9, "normal")
    assert (low, high) == pytest.approx(stats.norm.interval(0.9, r.mean(), r.std(ddof=1) / math.sqrt(200)))
    assert found.above(1.5, "normal") == pytest.approx(
        stats.norm.sf((r.mean() - 1.5) / (r.std(ddof=1) / math.sqrt(200)))
    )


@pytest.mark.parametrize("method", ["skewness", "normal"])
def test_limits_and_tests_agree(method):
    found = mean_ratio(RNG.normal(size=200), ONES)
    low, high = found.interval(0.9, method)
    assert found.above(low, method) == pytest.approx(0.05, rel=1e-6)
    assert found.below(high, method) == pytest.approx(0.05, rel=1e-6)
    assert found.above(1.2, method) + found.below(1.2, method) == pytest.approx(1.0)


def test_skewness_moves_both_limits_up_for_right_skewed_ratios():
    found = mean_ratio(1.2 * RNG.normal(size=200), ONES)
    plain, corrected = found.interval(0.95, "normal"), found.interval(0.95)
    assert found.skewness > 0
    assert corrected[0] > plain[0]
    assert corrected[1] > plain[1]


def test_without_skewness_the_correction_vanishes():
    r = np.concatenate([1 - np.linspace(0, 0.5, 50), 1 + np.linspace(0, 0.5, 50)])
    found = mean_ratio(np.log(r), np.ones(100))
    assert found.interval(0.95) == pytest.approx(found.interval(0.95, "normal"), rel=1e-9)


def test_counts_are_repeated_rows_and_weights_are_scale_free():
    log_r = RNG.normal(size=30)
    count = RNG.integers(1, 5, size=30).astype(float)
    cells, rows = mean_ratio(log_r, count), mean_ratio(np.repeat(log_r, count.astype(int)), np.ones(int(count.sum())))
    for name in ("estimate", "spread", "skewness", "rows"):
        assert getattr(cells, name) == pytest.approx(getattr(rows, name))
    w = RNG.uniform(1, 3, size=30)
    a, b = mean_ratio(log_r, count, w), mean_ratio(log_r, count, 10 * w)
    assert a.estimate == pytest.approx(np.average(np.exp(log_r), weights=count * w))
    assert (a.estimate, a.spread) == pytest.approx((b.estimate, b.spread))
    equal = mean_ratio(log_r, count, np.full(30, 7.0))
    assert equal.spread == pytest.approx(cells.spread)


def test_huge_ratios_do_not_overflow_on_the_way():
    found = mean_ratio(np.array([600.0, 600.0, 599.0]), np.ones(3))
    assert math.isfinite(found.estimate)
    assert found.largest_share == pytest.approx(1 / (2 + math.exp(-1)))


def test_equal_ratios_have_no_spread_and_a_decided_side():
    found = mean_ratio(np.full(50, np.log(1.1)), np.ones(50))
    assert found.spread == 0.0
    assert (found.above(1.25), found.below(1.25)) == (1.0, 0.0)


def marks(gained, lost, kept, right):
    after = np.repeat([1.0, 0.0, 1.0, 0.0], [gained, lost, kept, right])
    before = np.repeat([0.0, 1.0, 1.0, 0.0], [gained, lost, kept, right])
    return after, before, np.ones(after.size)


def test_rate_ratio_bound_is_the_papers_formula_with_uncentred_moments():
    after, before, ones = marks(30, 4, 50, 116)
    found = rate_ratio(after, before, ones)
    n, a, b = 200, after.mean(), before.mean()
    V = np.array([[np.mean(after), np.mean(after * before)], [np.mean(after * before), np.mean(before)]])
    inner = a**2 * V[1, 1] + b**2 * V[0, 0] - 2 * a * b * V[0, 1]  # not centred, as printed
    printed = a / b - stats.norm.ppf(0.95) / b**2 * math.sqrt(inner / n)
    assert found.bound(0.05) == pytest.approx(printed, rel=2e-3)  # n against n - 1
    assert found.method == "fieller"


def test_fieller_inverts_the_linear_form():
    after, before, ones = marks(30, 4, 50, 116)
    found = rate_ratio(after, before, ones)
    low, high = found.interval(0.9)

    def pvalue(limit):  # a plain t-like statistic of after - limit * before
        d = after - limit * before
        return stats.norm.sf(d.mean() / (d.std(ddof=1) / math.sqrt(d.size)))

    assert low == pytest.approx(optimize.brentq(lambda t: pvalue(t) - 0.05, 0.5, found.estimate))
    assert high == pytest.approx(optimize.brentq(lambda t: pvalue(t) - 0.95, found.estimate, 9.0))
    assert found.above(1.25) == pytest.approx(pvalue(1.25))


def test_exact_test_when_no_error_was_repaired():
    found = rate_ratio(*marks(6, 0, 9, 85))
    assert found.method == "binomial"
    assert found.above(1.25) == pytest.approx(stats.binomtest(6, 15, 0.2, alternative="greater").pvalue)
    assert found.below(1.25) == pytest.approx(stats.binomtest(6, 15, 0.2, alternative="less").pvalue)
    low, high = stats.binomtest(6, 15).proportion_ci(0.95, method="exact")
    assert found.interval(0.95) == pytest.approx((1 / (1 - low), 1 / (1 - high)))


def test_few_errors_give_wide_or_open_intervals_never_a_number_from_nothing():
    none = rate_ratio(*marks(0, 0, 0, 50))
    assert math.isnan(none.estimate)
    assert math.isnan(none.above(1.25))
    only_new = rate_ratio(*marks(5, 0, 0, 45))
    assert only_new.estimate == math.inf
    low, high = only_new.interval(0.95)
    assert 1.25 < low < high == math.inf
    assert only_new.above(1.25) == pytest.approx(0.2**5)
    one = rate_ratio(*marks(3, 1, 0, 46))
    assert one.interval(0.95)[1] == math.inf


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=4, max_size=4))
def test_rate_ratio_never_lies(cells):
    after, before, ones = marks(*cells)
    if after.size < 2:
        return
    found = rate_ratio(after, before, ones)
    if math.isnan(found.estimate):
        assert before.sum() == after.sum() == 0
        return
    low, high = found.interval(0.95)
    assert 0 <= low <= found.estimate * (1 + 1e-12)
    assert high >= found.estimate or math.isclose(high, found.estimate)


@pytest.mark.parametrize("size", [1e10, 1e80, 1e160, 1e300])
def test_huge_ratios_have_a_limit_or_none_and_raise_nothing(size):
    variance = size * size if size < 1e150 else math.inf
    found = MeanRatio(
        estimate=size, spread=3 * size, skewness=5.0, rows=500.0, largest_share=0.5,
        map=MapError(variance=variance, covariance=(0.0,), freedom=29.0),
    )  # fmt: skip
    values = [found.lower(0.05), found.upper(0.05), found.above(1.25), found.below(1.25)]
    assert all(math.isfinite(v) for v in values) if size < 1e150 else all(math.isnan(v) for v in values)
    known = MeanRatio(estimate=size, spread=3 * size, skewness=5.0, rows=500.0, largest_share=0.5)
    assert math.isnan(known.lower(0.05)) == (size > 1e150)


def test_rows_that_stay_wrong_alike_have_the_ratio_one_and_no_limit_raises():
    wrong = np.array([1.0, 0.0])
    found = rate_ratio(wrong, wrong, np.array([20.0, 80.0]), np.array([1.5, 1.0]))
    found = replace(found, map=MapError(variance=0.0, covariance=(0.0, 0.0), freedom=29.0))
    assert (found.method, found.estimate) == ("fieller", 1.0)
    for tail in (0.025, 0.5):  # at one half the search asks for the ratio 1 itself, where the statistic is 0 / 0
        assert (found.lower(tail), found.upper(tail)) == pytest.approx((1.0, 1.0), rel=1e-8)
