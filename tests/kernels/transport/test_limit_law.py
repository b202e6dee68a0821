"""The limit law's parts against formulas of the paper and plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.kernels.transport.limit_law import (
    Law,
    boundary_bandwidth,
    boundary_curvature,
    influence_covariance,
    limit_law,
    silverman,
    weighted_quantile,
)
from evenhand.kernels.transport.projection import make_cells
from evenhand.kernels.transport.weighted_chisquare import weighted_sf


def test_silverman_is_the_textbook_rule():
    values = np.random.default_rng(0).normal(3, 2, 4001)
    low, high = np.quantile(values, [0.25, 0.75])
    expected = 0.9 * min(values.std(), (high - low) / 1.349) * 4001**-0.2
    assert silverman(values) == pytest.approx(expected, rel=1e-3)


def test_bandwidth_follows_the_unit_of_the_distance():
    values = np.random.default_rng(0).normal(size=500)
    assert silverman(1000 * values) == pytest.approx(1000 * silverman(values))


def test_counted_values_equal_repeated_ones():
    rng = np.random.default_rng(1)
    values, mass = rng.normal(size=200), rng.integers(1, 5, 200)
    repeated = np.repeat(values, mass)
    assert silverman(values, mass.astype(float)) == pytest.approx(silverman(repeated), rel=1e-12)
    assert weighted_quantile(values, mass.astype(float), (0.1, 0.5)) == weighted_quantile(repeated, None, (0.1, 0.5))


def test_curvature_is_the_plain_kernel_sum():
    rng = np.random.default_rng(2)
    code, decision, distance = rng.integers(0, 3, 400), rng.integers(0, 2, 400), np.abs(rng.normal(size=400))
    phi = rng.normal(size=(3, 2))
    cells = make_cells(distance, 2 * code + decision, 6)
    h = boundary_bandwidth(cells, 400)
    assert h == pytest.approx(silverman(np.where(decision == 1, distance, -distance)))
    plain = sum(stats.norm.pdf(d / h) / h * np.outer(phi[c], phi[c]) for d, c in zip(distance, code, strict=True)) / 400
    np.testing.assert_allclose(boundary_curvature(cells, phi, 400.0, h), plain, rtol=1e-12)


def test_weights_against_a_simulation_of_the_quadratic_form():
    rng = np.random.default_rng(3)
    S, covariance = (a @ a.T for a in rng.normal(size=(2, 3, 6)))
    law = limit_law(S, covariance, 100)
    V = rng.multivariate_normal(np.zeros(3), covariance, 200_000)
    value = 0.5 * np.einsum("ni,ij,nj->n", V, np.linalg.inv(S), V)
    assert law.weights.sum() == pytest.approx(value.mean(), rel=0.02)
    x = np.quantile(value, 0.95)
    assert law.sf(x, below=0, above=0) == pytest.approx(0.05, abs=0.003)
    assert law.threshold(0.05, below=0, above=0) == pytest.approx(x, rel=0.03)


def test_corollary_one_read_rightly():
    # [si2021] Corollary 1: sigma^2 chi2 / (2 f(0) (mu2^2 E[U1|0] + mu1^2 E[U2|0])), the chi2 not squared
    mu1, mu2, rate, f0, at1, at2 = 0.3, 0.2, 0.6, 0.25, 0.35, 0.15
    sigma2 = rate * (1 - rate) * (mu2**2 * mu1 + mu1**2 * mu2)
    printed = sigma2 / (2 * f0 * (mu2**2 * at1 + mu1**2 * at2))
    S = np.array([[f0 * (at1 / mu1**2 + at2 / mu2**2)]])
    covariance = np.array([[rate * (1 - rate) * (1 / mu1 + 1 / mu2)]])
    assert limit_law(S, covariance, 100).weights[0] == pytest.approx(printed)


def test_covariance_divides_by_one_less():
    values = np.array([0.0, 1.0, 1.0, 4.0])
    centred = (values - values.mean())[:, None]
    assert influence_covariance(centred, np.ones(4), 4)[0, 0] == pytest.approx(values.var(ddof=1))


def test_tolerance_of_one_condition_joins_both_tests():
    law = Law(curvature=np.eye(1), covariance=np.eye(1), weights=np.array([0.5]), rows=400.0)
    x = 1.2
    assert law.sf(x, below=1e-9, above=1e-9) == pytest.approx(weighted_sf(x, [0.5]), abs=1e-6)  # no room: two-sided
    assert law.sf(x, below=5.0, above=5.0) == pytest.approx(0.5 * weighted_sf(x, [0.5]))  # much room: one-sided
    # z-test at the end of the tolerance, by hand
    z, band = math.sqrt(x / 0.5), 2 * 0.03 * 20
    assert law.sf(x, below=0.03, above=0.03) == pytest.approx(stats.norm.sf(z) + stats.norm.sf(z + band))
    assert law.sf(law.threshold(0.05, below=0.03, above=0.03), below=0.03, above=0.03) == pytest.approx(0.05)


def test_statistic_of_zero_inside_a_tolerance_says_nothing():
    law = Law(curvature=np.eye(1), covariance=np.eye(1), weights=np.array([0.5]), rows=400.0)
    assert law.sf(0.0, below=math.inf, above=0.1) == 1.0


def test_singular_curvature_has_no_law():
    assert limit_law(np.ones((2, 2)), np.eye(2), 10).weights.size == 0
    assert limit_law(np.zeros((1, 1)), np.eye(1), 10).weights.size == 0
    assert math.isnan(limit_law(np.ones((2, 2)), np.eye(2), 10).sf(1.0, below=0, above=0))


def test_pvalues_are_never_zero():
    law = Law(curvature=np.eye(1), covariance=np.eye(1), weights=np.array([0.5]), rows=10.0)
    assert 0 < law.sf(1e6, below=0, above=0) < 1e-200
