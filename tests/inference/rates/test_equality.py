"""The unconditional test of equal rates against brute force, scipy and the conditional test; its size added up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.rates.conditional import exact_pvalue
from evenhand.inference.rates.equality import SPENT, conditional_law, equality_pvalue, exact_sizes, possible_rates

RATES = np.sin(np.linspace(0, np.pi / 2, 402)[1:-1]) ** 2


def law(n, rates):
    return stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)


def tables(n, m, alternative="two-sided"):
    return np.array([[equality_pvalue((x, y), (n, m), alternative)[0] for y in range(m + 1)] for x in range(n + 1)])


@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 9), (8, 3)])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_order_is_that_of_the_conditional_midp_value(n, m, alternative):
    for total in range(n + m + 1):
        _, midp = conditional_law(np.array([total]), n, m, alternative)
        for x in range(max(0, total - m), min(n, total) + 1):
            expected = exact_pvalue((x, total - x), (n, m), alternative, midp=True)[0]
            assert midp[0, x] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "m"), [(7, 7), (5, 12)])
def test_pvalue_is_the_brute_force_one(n, m):
    midp = np.array([[exact_pvalue((x, y), (n, m), midp=True)[0] for y in range(m + 1)] for x in range(n + 1)])
    for x, y in ((5, 1), (0, 4), (3, 2), (n, 0)):
        rates = np.linspace(*possible_rates(x + y, n + m), 4001)
        one, two = law(n, rates), law(m, rates)
        chance = np.einsum("ig,ij,jg->g", one, (midp <= midp[x, y] * (1 + 1e-9)).astype(float), two)
        assert equality_pvalue((x, y), (n, m))[0] == pytest.approx(min(chance.max() + SPENT, 1.0), rel=2e-5)


def test_published_and_scipy_values_where_all_orders_agree():
    # The most extreme table of 2 x 2 with equal samples is the same in every order: 2 (1/2)^(n + m).
    for n in (3, 5, 8):
        expected = stats.barnard_exact([[n, 0], [0, n]], pooled=True).pvalue
        assert equality_pvalue((n, 0), (n, n))[0] == pytest.approx(expected, rel=1e-4)
        assert expected == pytest.approx(2 * 0.5 ** (2 * n), rel=1e-4)
    # The orders of scipy's two tests and ours differ by few tables.
    rng = np.random.default_rng(2)
    for _ in range(20):
        n = rng.integers(8, 25, 2)
        x = rng.binomial(n, rng.uniform(0.2, 0.8, 2))
        table = np.stack([x, n - x])
        scipy = [f(table, alternative="greater").pvalue for f in (stats.boschloo_exact, stats.barnard_exact)]
        ours = equality_pvalue(tuple(x.tolist()), tuple(n.tolist()), "greater")[0]
        assert 0.6 * min(scipy) <= ours <= 1.6 * max(scipy)


@pytest.mark.parametrize(("n", "m"), [(10, 10), (20, 20), (9, 31), (25, 14)])
def test_level_holds_at_every_rate_and_no_table_of_the_old_test_is_lost(n, m):
    p = tables(n, m)
    old = np.array([[exact_pvalue((x, y), (n, m))[0] for y in range(m + 1)] for x in range(n + 1)])
    one, two = law(n, RATES), law(m, RATES)
    for alpha in (0.05, 0.01, 0.001):
        chance = np.einsum("ig,ij,jg->g", one, (p <= alpha).astype(float), two)
        assert chance.max() <= alpha
        assert not ((old <= alpha) & (p > alpha)).any()


def test_one_sided_level():
    n, m = 12, 20
    one, two = law(n, RATES), law(m, RATES)
    for side in ("greater", "less"):
        p = tables(n, m, side)
        for alpha in (0.05, 0.01):
            assert np.einsum("ig,ij,jg->g", one, (p <= alpha).astype(float), two).max() <= alpha


def test_names_do_not_matter_and_large_samples_use_the_midp_value():
    assert equality_pvalue((7, 1), (34, 34)) == equality_pvalue((1, 7), (34, 34))
    assert equality_pvalue((7, 9), (34, 80), "less") == equality_pvalue((9, 7), (80, 34), "greater")
    assert not exact_sizes(2000, 2000)
    large = equality_pvalue((410, 350), (2000, 2000))
    assert large == (exact_pvalue((410, 350), (2000, 2000), midp=True)[0], False)
    assert equality_pvalue((3, 500), (10, 5000))[1]


def test_equal_rates_are_no_evidence():
    assert equality_pvalue((0, 0), (10, 20)) == (1.0, True)
    assert equality_pvalue((5, 10), (10, 20)) == (1.0, True)
