from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.correlation import correlation_interval, correlation_test
from evenhand.inference.samples import Draws
from evenhand.kernels.shared.seeds import stream

QUICK = Draws(n_resamples=99, method="permutation")
QUICK_AUTO = Draws(n_resamples=99)


def test_correlation_and_statistic() -> None:
    rng = stream(1, "r")
    x = rng.exponential(size=80)
    y = 0.3 * x + rng.normal(size=80)
    r, result = correlation_test(x, y, draws=Draws(method="limit"))
    assert r == pytest.approx(stats.pearsonr(x, y).statistic)
    u, v = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    t = math.sqrt(80) * r / np.std(u * v, ddof=1)
    assert result.statistic == pytest.approx(t)
    assert result.pvalue == pytest.approx(stats.ttest_1samp(u * v, 0).pvalue)


def test_permuted_law_by_hand() -> None:
    x, y = np.array([1.0, 2.0, 4.0, 7.0]), np.array([3.0, 1.0, 5.0, 6.0])
    from itertools import permutations

    every = [correlation_test(x, y[list(p)], draws=Draws(method="limit"))[1].statistic for p in permutations(range(4))]
    drawn = correlation_test(x, y, draws=Draws(n_resamples=1999, method="permutation"))[1]
    assert set(np.round(drawn.null, 9)) == set(np.round(every, 9))


def test_order_and_counts_do_not_matter() -> None:
    rng = stream(2, "order")
    x, y, c = rng.integers(0, 6, 90) / 5, rng.integers(0, 9, 90) / 3, rng.integers(0, 4, 90)
    base = correlation_test(x, y, c, QUICK)[1].null.tobytes()
    order = rng.permutation(90)
    assert correlation_test(x[order], y[order], c[order], QUICK)[1].null.tobytes() == base
    assert correlation_test(np.repeat(x, c), np.repeat(y, c), None, QUICK)[1].null.tobytes() == base
    told, written = correlation_interval(x, y, c), correlation_interval(np.repeat(x, c), np.repeat(y, c))
    assert told == written


def test_dependence_without_correlation_is_not_evidence() -> None:
    # After [diciccio2020] sec. 4.1: errors whose spread depends on the attribute.
    rng = stream(3, "size")
    runs, hits, plain = 200, 0, 0
    for r in range(runs):
        x = rng.uniform(1e-5, 1, 300)
        y = rng.normal(size=300) * x**2
        hits += correlation_test(x, y, draws=Draws(n_resamples=99, seed=r, method="permutation"))[1].pvalue <= 0.05
        plain += stats.pearsonr(x, y).pvalue <= 0.05
    assert hits <= stats.binom.ppf(0.9999, runs, 0.05)
    assert plain > stats.binom.ppf(0.9999, runs, 0.05)


def test_skewed_values_that_spread_along_the_attribute_hold_the_level() -> None:
    # With n - 1 degrees of freedom and 1.5 standard errors of doubt this rejected at .07 and .016.
    rng = stream(9, "spread")
    x = rng.exponential(size=(1000, 100))
    y = x * (rng.exponential(size=x.shape) - 1)
    p = np.array([correlation_test(a, b, draws=Draws(n_resamples=99))[1].pvalue for a, b in zip(x, y, strict=True)])
    assert (p <= 0.05).mean() <= 0.05


def test_large_values_for_few_rows_carry_a_warning() -> None:
    rng = stream(10, "warn")
    x, y = rng.exponential(size=60), rng.normal(size=60)
    assert "large values" in correlation_test(x, x * rng.exponential(size=60), draws=QUICK_AUTO)[1].warnings[0]
    assert correlation_test(rng.uniform(size=60), y, draws=QUICK_AUTO)[1].warnings == ()


def test_interval_covers() -> None:
    rng = stream(4, "cover")
    runs, inside = 200, 0
    for _ in range(runs):
        x = rng.normal(size=200)
        low, high, _ = correlation_interval(x, 0.75 * x + rng.normal(size=200), draws=Draws(n_resamples=99))
        inside += low <= 0.6 <= high
    assert inside >= stats.binom.ppf(0.0001, runs, 0.95)


def test_interval_keeps_zero_when_the_test_does_under_heavy_tails() -> None:
    # [diciccio2020] sec. 4.1, errors without a variance: the sandwich alone covers .57.
    rng = stream(6, "heavy")
    runs, inside = 200, 0
    for _ in range(runs):
        x = rng.uniform(1e-5, 1, 500)
        low, high, _ = correlation_interval(x, rng.normal(size=500) / x**2, draws=Draws(n_resamples=99))
        inside += low <= 0 <= high
    assert inside >= stats.binom.ppf(0.0001, runs, 0.95)


def test_large_calm_data_use_the_limit_law() -> None:
    rng = stream(5, "large")
    result = correlation_test(rng.normal(size=50_000), rng.normal(size=50_000), draws=Draws())[1]
    assert result.method == "skewness-corrected t test"


def test_the_pairing_does_not_choose_the_law() -> None:
    # Calm products of columns of which one has rare large values: another pairing would not be calm.
    rng = stream(7, "choose")
    x, y = rng.normal(size=400), np.zeros(400)
    y[np.argsort(np.abs(x))[:5]] = 1.0
    for pairing in (x, rng.permutation(x)):
        assert "permutation" in correlation_test(pairing, y, draws=Draws(n_resamples=199))[1].method


@pytest.mark.parametrize("slope", [0.0, 0.2, 0.25])
def test_interval_and_test_agree(slope: float) -> None:
    rng = stream(8, "agree")
    x = rng.lognormal(size=150)
    y = slope * x + rng.normal(size=150) * np.sqrt(x)
    for method in ("auto", "permutation", "limit"):
        draws = Draws(n_resamples=999, method=method)
        p = correlation_test(x, y, draws=draws)[1].pvalue
        for level in (0.9, 0.95, 0.99, 1 - p - 1e-6, 1 - p + 1e-6):
            if 0.8 <= level < 0.995:
                low, high, _ = correlation_interval(x, y, level=level, draws=draws)
                assert (low > 0 or high < 0) == (p <= 1 - level)


def test_constant_columns_have_no_correlation() -> None:
    r, result = correlation_test([1, 1, 1], [1, 2, 3])
    assert math.isnan(r)
    assert math.isnan(result.pvalue)
    assert math.isnan(correlation_interval([1, 2, 3], [4, 4, 4])[0])
    assert math.isnan(correlation_test([], [])[0])
    assert correlation_interval([1, 2, 3], [2, 4, 6])[:2] == pytest.approx((1, 1))
