from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.kernels.flow.ratio_sums import RateSums, RatioSums
from evenhand.kernels.flow.ratios import mean_of, mean_ratio, rate_of, rate_ratio


def plain_mean(log_ratio, count, weight):
    """Repeat each record as rows and take the moments of the linearised contributions, in the longest floats."""
    times = count.astype(int)
    r = np.exp(np.repeat(log_ratio, times).astype(np.longdouble))
    w = np.repeat(weight, times).astype(np.longdouble)
    n, total = r.size, w.sum()
    mean = (w * r).sum() / total
    u = w * (r - mean) * n / total
    return {
        "estimate": mean,
        "spread": np.sqrt((u**2).sum() / (n - 1)),
        "skewness": (u**3).mean() / (u**2).mean() ** 1.5,
        "largest_share": (w * r).max() / (w * r).sum(),
        "rows": n,
    }


def cut(n, cuts, order):
    """Divide shuffled places into pieces, some of them empty."""
    return np.split(order, sorted(c % (n + 1) for c in cuts))


@pytest.mark.parametrize("spread", [1e-5, 0.3, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 400), max_size=6))
@settings(max_examples=25, deadline=None)
def test_any_division_gives_the_moments_of_the_rows(spread, weighted, seed, cuts):
    rng = np.random.default_rng(seed)
    n = 300
    log_ratio, count = rng.gamma(2.0, spread, n), rng.integers(1, 4, n).astype(float)
    weight = rng.uniform(0.5, 3.0, n) if weighted else np.ones(n)
    given_weight = weight if weighted else None
    parts = cut(n, cuts, rng.permutation(n))
    sums = [RatioSums.of(log_ratio[p], count[p], None if given_weight is None else given_weight[p]) for p in parts]
    plain = plain_mean(log_ratio, count, weight)
    for found in (mean_of(reduce(add, sums)), mean_ratio(log_ratio, count, given_weight)):
        for name, value in plain.items():
            assert getattr(found, name) == pytest.approx(float(value), rel=1e-10)


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 200), max_size=5), weighted=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_division_gives_the_rates_of_the_rows(seed, cuts, weighted):
    rng = np.random.default_rng(seed)
    n = 150
    after, before = (rng.random(n) < 0.4).astype(float), (rng.random(n) < 0.2).astype(float)
    count = rng.integers(1, 4, n).astype(float)
    weight = rng.uniform(0.5, 3.0, n) if weighted else None
    parts = cut(n, cuts, rng.permutation(n))
    sums = [RateSums.of(after[p], before[p], count[p], None if weight is None else weight[p]) for p in parts]
    found = rate_of(reduce(add, sums))
    times = count.astype(int)
    a, b, w = (np.repeat(v, times) for v in (after, before, np.ones(n) if weight is None else weight))
    A, B = np.average(a, weights=w), np.average(b, weights=w)
    contributions = np.cov(w * (a - A) / w.mean(), w * (b - B) / w.mean())
    assert (found.after, found.before) == pytest.approx((A, B), rel=1e-12)
    assert found.spread == pytest.approx((contributions[0, 0], contributions[1, 1], contributions[0, 1]), rel=1e-10)
    assert (found.gained, found.lost, found.kept) == ((a > b).sum(), (b > a).sum(), (a * b).sum())
    assert found.rows == times.sum()
    assert found.weighted is weighted


def test_huge_ratios_in_one_part_do_not_overflow():
    parts = RatioSums.of(np.array([0.0, 1.0]), np.ones(2)) + RatioSums.of(np.array([690.0, 689.0]), np.ones(2))
    found = mean_of(parts)
    assert found.estimate == pytest.approx((math.exp(690) + math.exp(689)) / 4, rel=1e-12)
    assert found.largest_share == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-12)


def test_undefined_ratios_and_marks_are_counted_and_left_out():
    log_ratio, count = np.array([0.1, np.nan, 0.3, np.inf]), np.array([1.0, 2.0, 3.0, 4.0])
    sums = RatioSums.of(log_ratio, count)
    assert (sums.rows, sums.undefined) == (4.0, 6.0)
    assert mean_of(sums).estimate == pytest.approx((math.exp(0.1) + 3 * math.exp(0.3)) / 4)
    none = RatioSums.of(np.array([np.nan]), np.array([5.0]))
    assert ((none + sums).rows, (none + sums).undefined) == (4.0, 11.0)
    assert math.isnan(mean_of(none).estimate)
    marks = RateSums.of(np.array([1.0, np.nan, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([1.0, 2.0, 3.0]))
    assert (marks.rows, marks.undefined, marks.gained) == (4.0, 2.0, 1.0)


def test_equal_ratios_in_many_parts_have_no_spread():
    parts = [RatioSums.of(np.full(7, np.log(1.1)), np.ones(7)) for _ in range(50)]
    assert mean_of(reduce(add, parts)).spread == 0.0


def test_equal_marks_have_equal_variances_to_the_last_digit():
    rng = np.random.default_rng(0)
    wrong, weight = (rng.random(90) < 0.3).astype(float), rng.uniform(1, 2, 90)
    found = rate_ratio(wrong, wrong, np.ones(90), weight)
    assert len(set(found.spread)) == 1
