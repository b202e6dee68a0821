"""Tails of weighted chi-squares against scipy, plain integration and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from evenhand.kernels.transport.weighted_chisquare import cone_sf, cone_value, weighted_isf, weighted_sf


@pytest.mark.parametrize("m", [1, 2, 3, 6, 20])
@pytest.mark.parametrize("x", [1e-6, 0.01, 0.5, 3.0, 12.0, 60.0, 400.0])
def test_equal_weights_are_a_chi_square_to_rounding_even_far_out(m, x):
    assert weighted_sf(0.7 * x, np.full(m, 0.7)) == pytest.approx(stats.chi2.sf(x, m), rel=1e-9)


@pytest.mark.parametrize("small", [0.5, 0.05, 0.003])
@pytest.mark.parametrize("x", [0.05, 0.7, 3.0, 9.0])
def test_two_weights_against_an_integral_over_the_first_square(small, x):
    def given(t):
        return 2 * stats.norm.pdf(t) * stats.chi2.sf((x - t * t) / small, 1)

    near = max(0.0, np.sqrt(x) - 30 * small)
    parts = [integrate.quad(given, a, b, epsabs=1e-13, limit=500)[0] for a, b in ((0, near), (near, np.sqrt(x)))]
    expected = sum(parts) + 2 * stats.norm.sf(np.sqrt(x))
    assert weighted_sf(x, [1.0, small]) == pytest.approx(expected, abs=1e-9)


def test_three_different_weights_against_imhof():
    lam, x = np.array([1.0, 0.6, 0.25]), 4.2

    def imhof(u):
        return np.sin(0.5 * np.arctan(lam * u).sum() - 0.5 * x * u) / (u * np.prod((1 + lam**2 * u**2) ** 0.25))

    value, _ = integrate.quad(imhof, 0, 2000, limit=4000)
    assert weighted_sf(x, lam) == pytest.approx(0.5 + value / np.pi, abs=1e-6)


def test_quantile_inverts_the_tail():
    lam = [1.3, 0.4, 0.1, 0.02]
    for q in (0.9, 0.05, 1e-8):
        assert weighted_sf(weighted_isf(q, lam), lam) == pytest.approx(q, rel=1e-9)


def test_limit_of_appendix_b1():
    # [si2021] appendix B.1: f(0) = 1 / sqrt(10 pi), phi^2 has mean 12.5 at the boundary, variance 12.5 / 4
    weight = 12.5 / 4 / (2 * 12.5 / np.sqrt(10 * np.pi))
    assert weight == pytest.approx(0.7006, abs=5e-5)
    assert weighted_isf(0.05, [weight]) == pytest.approx(weight * stats.chi2.isf(0.05, 1))


def test_bad_weights_are_refused():
    with pytest.raises(ValueError, match="positive finite"):
        weighted_sf(1.0, [1.0, 0.0])


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_independent_cone_is_the_binomial_chi_bar_square(m):
    # With S = Sigma = I each coordinate counts with probability 1/2: weights C(m, k) / 2^m.
    x = 1.7
    expected = sum(stats.binom.pmf(k, m, 0.5) * stats.chi2.sf(2 * x, k) for k in range(1, m + 1))
    assert cone_sf(x, np.eye(m), np.eye(m)) == pytest.approx(expected, abs=1e-3)


def test_cone_of_a_general_pair_against_simulation():
    rng = np.random.default_rng(3)
    S, covariance = (a @ a.T for a in rng.normal(size=(2, 3, 5)))
    value = cone_value(rng.multivariate_normal(np.zeros(3), covariance, 200_000), S)
    for x in (0.2, 1.0, 4.0):
        assert cone_sf(x, S, covariance) == pytest.approx((value > x).mean(), abs=4e-3)


def test_faces_and_iteration_agree(monkeypatch):
    from evenhand.kernels.transport import weighted_chisquare

    rng = np.random.default_rng(4)
    root = rng.normal(size=(4, 6))
    V, S = rng.normal(size=(300, 4)), root @ root.T
    faces = cone_value(V, S)
    monkeypatch.setattr(weighted_chisquare, "_FACES", 1)
    np.testing.assert_allclose(cone_value(V, S), faces, atol=1e-9)


def test_cone_value_is_a_maximum():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(3, 5))
    V, S = rng.normal(size=(20, 3)), root @ root.T
    tried = np.abs(rng.normal(size=(4000, 3)))
    values = tried @ V.T - 0.5 * np.einsum("ni,ij,nj->n", tried, S, tried)[:, None]
    assert np.all(values.max(axis=0) <= cone_value(V, S) + 1e-12)
