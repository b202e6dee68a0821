"""Restricted binomial likelihood against closed forms, a general optimiser and published intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from evenhand.kernels.counts.binomial import (
    ratio_interval,
    ratio_statistic,
    restricted_proportions,
    score_interval,
    score_statistic,
    wilson_interval,
)

# The examples of Newcombe (1998), Statistics in Medicine 17: methods 5 (Mee) and 6 (Miettinen-Nurminen).
# The last row follows by hand: by symmetry z^2 = 2 n e / (1 - e), low = 1 - 2 e.
NEWCOMBE = [
    (56, 70, 48, 80, (0.0533, 0.3377), (0.0528, 0.3382)),
    (9, 10, 3, 10, (0.1821, 0.8370), (0.1700, 0.8406)),
    (5, 56, 0, 29, (-0.0313, 0.1926), (-0.0326, 0.1933)),
    (0, 10, 0, 20, (-0.1611, 0.2775), (-0.1658, 0.2844)),
    (10, 10, 0, 20, (0.7225, 1.0000), (0.7156, 1.0000)),
    (10, 10, 0, 10, (0.6777, 1.0000), (0.6636, 1.0000)),
]


@pytest.mark.parametrize(("x0", "n0", "x1", "n1", "mee", "corrected"), NEWCOMBE)
def test_published_difference_intervals(x0, n0, x1, n1, mee, corrected):
    plain = score_interval([x0, x1], [n0, n1], [1, -1], 0.95, corrected=False)
    assert np.round(plain, 4).tolist() == pytest.approx(mee, abs=1.1e-4)
    factor = score_interval([x0, x1], [n0, n1], [1, -1], 0.95)
    assert np.round(factor, 4).tolist() == pytest.approx(corrected, abs=1.1e-4)


# From statsmodels 0.15 confint_proportions_2indep(method="score", compare="ratio", correction=True).
STATSMODELS = [
    ([56, 48], [70, 80], (1.07904712, 1.672145359)),
    ([12, 4], [40, 40], (1.124198406, 8.363795345)),
    ([160, 20], [200, 35], (1.095172817, 1.971491116)),
    ([3, 1], [11, 12], (0.529103729, 21.968963894)),
]


@pytest.mark.parametrize(("x", "n", "ratio"), STATSMODELS)
def test_ratio_intervals_agree_with_statsmodels(x, n, ratio):
    assert [float(end) for end in ratio_interval(x, n, 0.95)] == pytest.approx(ratio, rel=1e-7)


def test_restricted_proportions_against_a_general_optimiser():
    rng = np.random.default_rng(2)
    c = np.array([0.5, 0.5, -0.5, -0.5])
    for _ in range(8):
        n = rng.integers(8, 40, 4).astype(float)
        x = np.array([rng.integers(1, m) for m in n]).astype(float)
        delta = float(rng.uniform(-0.4, 0.4))
        p = restricted_proportions(x, n, c, delta)
        assert (c * p).sum() == pytest.approx(delta, abs=1e-14)

        def loss(q, x=x, n=n):
            return -(x * np.log(q) + (n - x) * np.log(1 - q)).sum()

        found = optimize.minimize(
            loss,
            np.full(4, 0.5),
            method="SLSQP",
            bounds=[(1e-6, 1 - 1e-6)] * 4,
            constraints={"type": "eq", "fun": lambda q, d=delta: (c * q).sum() - d},
            options={"ftol": 1e-13, "maxiter": 300},
        )
        assert p == pytest.approx(found.x, abs=2e-5)
        assert loss(p) <= found.fun + 1e-7


def test_restriction_to_equality_is_pooling():
    x, n = np.array([[3, 9], [0, 0], [5, 5], [0, 7]]), np.array([[10, 40], [5, 9], [5, 5], [4, 9]])
    p = restricted_proportions(x, n, [1, -1], 0.0)
    assert p == pytest.approx((x.sum(1) / n.sum(1))[:, None] * np.ones(2), abs=1e-14)
    z = score_statistic(x, n, [1, -1], corrected=False)
    pooled = x.sum(1) / n.sum(1)
    with np.errstate(invalid="ignore"):
        expected = (x[:, 0] / n[:, 0] - x[:, 1] / n[:, 1]) / np.sqrt(pooled * (1 - pooled) * (1 / n).sum(1))
    assert z == pytest.approx(np.nan_to_num(expected))


def test_score_statistic_squared_is_pearson_chi_square():
    table = np.array([[12, 28], [4, 36]])
    expected = stats.chi2_contingency(table, correction=False).statistic
    assert score_statistic(table[:, 0], table.sum(1), [1, -1], corrected=False) ** 2 == pytest.approx(expected)
    corrected = score_statistic(table[:, 0], table.sum(1), [1, -1])
    assert corrected**2 == pytest.approx(expected * 79 / 80)


def test_infeasible_and_boundary_values():
    assert np.isnan(restricted_proportions([1, 1], [4, 4], [1, -1], 1.5)).all()
    assert restricted_proportions([1, 1], [4, 4], [1, -1], 1.0).tolist() == [1.0, 0.0]
    assert restricted_proportions([1, 1], [4, 4], [1, -1], -1.0).tolist() == [0.0, 1.0]
    assert score_statistic([1, 1], [4, 4], [1, -1], 1.0) == -np.inf
    assert score_statistic([1, 1], [4, 4], [1, -1], -1.0) == np.inf
    assert score_statistic([4, 0], [4, 4], [1, -1], 1.0) == 0


def test_interval_ends_are_where_the_test_turns():
    rng = np.random.default_rng(4)
    n = rng.integers(1, 60, (200, 4))
    x = rng.binomial(n, rng.uniform(0, 1, (200, 4)))
    c = np.array([0.5, 0.5, -0.5, -0.5])
    low, high = score_interval(x, n, c, 0.9)
    z = stats.norm.ppf(0.95)
    inner = (low > -1) & (high < 1)
    assert inner.sum() > 150
    assert score_statistic(x, n, c, low)[inner] == pytest.approx(z, rel=1e-6)
    assert score_statistic(x, n, c, high)[inner] == pytest.approx(-z, rel=1e-6)


def test_ratio_interval_ends_are_where_the_test_turns():
    rng = np.random.default_rng(5)
    n = rng.integers(2, 80, (200, 2))
    x = np.maximum(rng.binomial(n, rng.uniform(0, 1, (200, 2))), 1)
    low, high = ratio_interval(x, n, 0.95)
    assert ratio_statistic(x, n, low) == pytest.approx(1.959964, rel=1e-6)
    assert ratio_statistic(x, n, high) == pytest.approx(-1.959964, rel=1e-6)
    general = score_statistic(x, n, np.stack([np.ones(200), -low], 1), 0.0)
    assert general == pytest.approx(1.959964, rel=1e-5)


def test_ratio_interval_without_successes():
    assert [float(v) for v in ratio_interval([0, 0], [10, 20], 0.95)] == [0.0, np.inf]
    low, high = ratio_interval([0, 5], [10, 20], 0.95)
    assert low == 0
    assert 1 < high < 2
    low, high = ratio_interval([5, 0], [10, 20], 0.95)
    assert 2 < low < 4
    assert high == np.inf


def test_huge_counts_meet_wald():
    x, n = np.array([5e8, 5e8 + 4e4]), np.array([1e9, 1e9])
    low, high = score_interval(x, n, [1, -1], 0.95)
    half = 1.959963985 * np.sqrt(0.25 * 2 / 1e9)
    assert [float(low), float(high)] == pytest.approx([-4e-5 - half, -4e-5 + half], rel=1e-6)


def test_wilson_against_scipy():
    z = stats.norm.ppf(0.975)
    for x, n in [(0, 10), (3, 10), (10, 10), (17, 200)]:
        expected = stats.binomtest(x, n).proportion_ci(0.95, method="wilson")
        low, high = wilson_interval(x, n, z)
        assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-12)
