"""The mean of one sample and of its largest share, against scipy, full enumeration and a slow plain version."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from evenhand.inference.one_mean import OneMean, tail_rows
from evenhand.inference.samples import Draws


def down(values):
    return np.sort(np.asarray(values, dtype=float))[::-1]


def mean_of(values, share=1.0, *, low=-1.0, high=1.0, **draws):
    return OneMean(down(values), share, low, high, Draws(**draws))


@pytest.mark.parametrize("share", [0.05, 0.13, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["normal", "steps"])
def test_the_mean_of_the_largest_is_the_smallest_of_its_definition(share, kind):
    draw = np.random.default_rng(1)
    values = draw.normal(size=207) if kind == "normal" else draw.integers(4, size=207).astype(float)
    rows, above = tail_rows(down(values), share)

    def defined(t):
        return t + np.maximum(values - t, 0).mean() / share

    least = min(defined(t) for t in values)  # the minimum lies at a row
    assert rows.mean() == pytest.approx(least)
    assert defined(above) == pytest.approx(least)
    slow = optimize.minimize_scalar(defined, bounds=(values.min() - 1, values.max()), method="bounded").fun
    assert rows.mean() == pytest.approx(slow, abs=1e-4)


def test_flips_are_all_sign_flips_listed():
    values = np.array([0.31, 0.22, 0.14, 0.09, 0.05, -0.02, -0.11])
    mean = mean_of(values)
    for at in (0.0, 0.05, -0.07):
        shifted = down(values) - at
        sums = np.array([np.dot(signs, shifted) for signs in product((1, -1), repeat=len(values))])
        assert mean.flips.tail(at, "less") == pytest.approx(np.mean(sums >= shifted.sum() - 1e-12))


def test_symmetric_rows_have_the_t_interval_of_scipy_where_they_are_many():
    values = 0.1 + 0.05 * stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    mean = mean_of(values)
    assert mean.flips is None  # so many calm rows need no draws
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean.interval(0.95) == pytest.approx(tuple(expected), abs=2e-4)
    assert mean.two_sided(0.098) == pytest.approx(stats.ttest_1samp(values, 0.098).pvalue, rel=0.05)


@pytest.mark.parametrize("share", [1.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_the_interval_leaves_out_what_the_test_rejects(share, seed):
    draw = np.random.default_rng(seed)
    mean = mean_of(draw.exponential(0.1, 150) - 0.05, share, n_resamples=999, seed=seed)
    for level in (0.9, 0.99):
        low, high = mean.interval(level)
        assert low < mean.estimate < high
        for end, side in ((low, "greater"), (high, "less")):
            step = 1e-6 if side == "greater" else -1e-6
            assert mean.tail(end - step, side) <= (1 - level) / 2 + 1e-9
            assert mean.tail(end + step, side) >= (1 - level) / 2 - 1e-9


def test_the_error_of_the_worst_share_is_that_of_a_bootstrap():
    draw = np.random.default_rng(3)
    values = down(draw.beta(2, 5, 3000))
    mean = mean_of(values, 0.05)
    again = [tail_rows(down(draw.choice(values, values.size)), 0.05)[0].mean() for _ in range(800)]
    assert mean.standard_error == pytest.approx(np.std(again), rel=0.1)


def test_rows_that_are_all_alike_leave_what_was_not_seen():
    mean = mean_of(np.full(60, 0.2))
    low, high = mean.interval(0.95)
    unseen = 1 - 0.025 ** (1 / 60)  # so large a share of others is missed once in forty samples
    assert low == pytest.approx(0.2 - unseen * 1.2)
    assert high == pytest.approx(0.2 + unseen * 0.8)
    assert mean.tail(low, "greater") == pytest.approx(0.025)
    assert mean.tail(high, "less") == pytest.approx(0.025)
    zero = mean_of(np.zeros(60))
    assert zero.interval(0.95)[0] < 0 < zero.interval(0.95)[1]
    unbounded = mean_of(np.zeros(60), low=-math.inf, high=math.inf)
    assert unbounded.interval(0.95) == (-math.inf, math.inf)
    assert unbounded.tail(0.5, "less") == 1.0


def test_a_worst_share_that_is_all_alike_is_counted():
    """A step at 0.3 holds a tenth of the rows: twice the share, so the mean of the share is the step."""
    values = np.concatenate([np.full(40, 0.3), np.zeros(360)])
    mean = mean_of(values, 0.05)
    assert mean.estimate == pytest.approx(0.3)
    low, high = mean.interval(0.95)
    assert low == pytest.approx(0.3)
    assert high == pytest.approx(0.3 + (1 - 0.025 ** (1 / 400)) / 0.05 * 0.7)
    assert mean.tail(0.1, "greater") == pytest.approx(stats.binom.sf(39, 400, 0.05))
