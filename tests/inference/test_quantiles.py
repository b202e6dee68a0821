from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.quantiles import (
    difference_interval,
    difference_pvalue,
    level_interval,
    level_pvalues,
    sample_level,
)


def draws(n: int, seed: int, digits: int = 9) -> np.ndarray:
    return -np.sort(-np.round(np.random.default_rng(seed).normal(size=n), digits))


def test_level_is_hazens_quantile() -> None:
    x = draws(737, 0)
    for m in (10, 33, 100, 500):
        assert sample_level(x, 1 / m) == pytest.approx(np.quantile(x, 1 - 1 / m, method="hazen"))


@pytest.mark.parametrize("digits", [9, 1])
@pytest.mark.parametrize("value", [1.0, 2.1, 3.0, 9.0])
def test_level_pvalues_are_scipys_binomial_tests(value: float, digits: int) -> None:
    x = draws(900, 1, digits)
    over = int((x > value).sum())
    above, below = level_pvalues(x, 0.02, value)
    assert above == pytest.approx(stats.binomtest(over, 900, 0.02, alternative="greater").pvalue)
    assert below == pytest.approx(stats.binomtest(over, 900, 0.02, alternative="less").pvalue)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
@pytest.mark.parametrize("n", [60, 500, 3000])
def test_level_interval_inverts_the_test(n: int, level: float) -> None:
    for seed, digits in ((2, 9), (3, 1)):
        x = draws(n, seed, digits)
        for share in (0.1, 0.01):
            low, high = level_interval(x, share, level)
            for value in (*x[:60], *(x[:60] - 1e-6), x[0] + 1):
                above, below = level_pvalues(x, share, value)
                assert (value < low) == (above <= (1 - level) / 2)
                assert (value >= high) == (below <= (1 - level) / 2)


def test_level_interval_covers_by_the_binomial_law() -> None:
    n, share = 400, 0.05
    descending = np.arange(n, 0, -1.0)
    low, high = level_interval(descending, share, 0.95)
    few, many = np.flatnonzero(descending == high)[0], np.flatnonzero(descending == low)[0]
    # The quantile lies between them exactly when more than `few` and at most `many` values are above it.
    covered = stats.binom.cdf(many, n, share) - stats.binom.cdf(few, n, share)
    assert 0.95 <= covered < 0.97


def plain_pvalue(a: np.ndarray, b: np.ndarray, share: float, value: float) -> float:
    """Try every level that the second sample may have, between all values."""
    edges = np.unique(np.concatenate([b, a - value]))
    tried = np.concatenate([edges, (edges[1:] + edges[:-1]) / 2, [edges[0] - 1, edges[-1] + 1]])
    best = math.inf
    for x in tried:
        p = stats.binom.sf((a > x + value + 1e-12).sum() - 1, a.size, share)
        q = stats.binom.cdf((b >= x - 1e-12).sum(), b.size, share)
        best = min(best, sum(max(-stats.norm.ppf(v), 0.0) ** 2 if v < 1 else 0.0 for v in (p, q)))
    return float(stats.norm.sf(math.sqrt(best))) if best > 0 else 1.0


@pytest.mark.parametrize("value", [-0.6, 0.0, 0.4])
def test_difference_is_that_of_a_plain_search(value: float) -> None:
    for seed in range(6):
        a, b = draws(90, seed, 2) + 0.4, draws(150, seed + 50, 2)
        assert difference_pvalue(a, b, 0.05, value) == pytest.approx(plain_pvalue(a, b, 0.05, value), rel=1e-9)


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_difference_interval_inverts_the_test(level: float) -> None:
    for seed in range(10):
        a, b = draws(400, seed, 3) * 1.3, draws(700, seed + 90, 3)
        low, high = difference_interval(a, b, 0.02, level)
        for d in (low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6, 0.0, 0.3):
            assert (d < low) == (difference_pvalue(a, b, 0.02, d) <= (1 - level) / 2)
            assert (d > high) == (difference_pvalue(b, a, 0.02, -d) <= (1 - level) / 2)


def test_a_limit_of_what_is_possible_closes_the_interval() -> None:
    a, b = draws(400, 1), draws(400, 2)
    assert difference_interval(a, b, 0.001, 0.95) == (-math.inf, math.inf)
    low, high = difference_interval(a, b, 0.001, 0.95, highest=(4.0, 5.0))
    assert a[-1] - 5 < low < 0 < high < 4 - b[-1]
    assert difference_pvalue(a + 9, b, 0.001, 0.0, highest_b=5.0) < 1e-12  # all of a lie above what b can reach


def test_only_the_levels_need_to_agree() -> None:
    rng, share, pvalues = np.random.default_rng(5), 0.02, []
    for _ in range(400):
        a = -np.sort(-rng.exponential(size=500)) + math.log(share)
        b = -np.sort(-(1 - rng.random(2000) ** 2)) - (1 - share**2)
        pvalues.append(2 * min(difference_pvalue(a, b, share), difference_pvalue(b, a, share)))
    for alpha in (0.05, 0.01):
        assert np.sum(np.array(pvalues) <= alpha) <= stats.binom.ppf(1 - 1e-4, 400, alpha)
