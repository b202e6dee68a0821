from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from evenhand.kernels.extremes.pareto import (
    fit,
    likelihood_fit,
    moments_fit,
    quantile,
    survival,
)

SHAPES = (-2.0, -1.0, -0.4, 0.0, 1e-9, 0.3, 1.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_survival_and_quantile_agree_with_scipy(shape: float) -> None:
    p = np.array([0.999, 0.5, 0.01, 1e-6])
    np.testing.assert_allclose(quantile(p, 2.0, shape), stats.genpareto.isf(p, shape, scale=2.0), rtol=1e-7)
    y = stats.genpareto.isf(p, shape, scale=2.0)
    # Next to an end point y itself has lost the digits.
    np.testing.assert_allclose(survival(y, 2.0, shape), p, rtol=1e-4)
    if shape < 0:
        assert survival(3.0 / -shape, 2.0, shape) == 0


@pytest.mark.parametrize("shape", [-0.45, -0.2, 0.0, 0.3, 0.8])
def test_likelihood_fit_is_at_least_as_likely_as_scipys_and_close_to_it(shape: float) -> None:
    y = np.sort(stats.genpareto.rvs(shape, scale=2.0, size=150, random_state=np.random.default_rng(1)))
    scale, found, exists = likelihood_fit(y)
    assert exists
    other, _, other_scale = stats.genpareto.fit(y, floc=0)

    def total(c: float, s: float) -> float:
        return float(stats.genpareto.logpdf(y, c, scale=s).sum())

    assert total(float(found), float(scale)) >= total(other, other_scale) - 1e-6
    assert float(found) == pytest.approx(other, abs=2e-4)
    assert float(scale) == pytest.approx(other_scale, rel=2e-4)


def test_fit_matches_r_evd() -> None:
    # R 4 evd 2.3.6.1: fpot(qexp(ppoints(500)), u = 450th value) and the same for qbeta(., 2, 5), reltol 1e-14.
    p = (np.arange(500) + 0.5) / 500
    for law, scale, shape, exact in (
        (stats.expon.ppf(p), 1.05082008374, -0.04748408073, 2e-6),
        (stats.beta.ppf(p, 2, 5), 0.1180423408, -0.2985635459, 5e-4),  # evd stops early here: ours is likelier
    ):
        y = law[450:] - law[449]
        found = likelihood_fit(y)
        assert float(found[0]) == pytest.approx(scale, rel=exact)
        assert float(found[1]) == pytest.approx(shape, abs=exact)
        mine, theirs = (stats.genpareto.logpdf(y, c, scale=v).sum() for v, c in (found[:2], (scale, shape)))
        assert mine >= theirs - 1e-9


def test_many_samples_are_fitted_like_each_alone() -> None:
    rng = np.random.default_rng(2)
    y = np.sort(np.concatenate([quantile(rng.random((20, 60)), 1.0, s) for s in (-2.0, -1.0, -0.3, 0.2)]), axis=1)
    together = fit(y)
    for i in range(len(y)):
        alone = fit(y[i])
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-7)


def test_fit_is_a_maximum_under_the_end_points_limit() -> None:
    y = np.sort(np.random.default_rng(3).exponential(0.05, size=80))
    room = 0.6
    scale, shape, exists = likelihood_fit(y, room=room)
    assert exists
    assert float(-scale / shape) <= room * (1 + 1e-9)

    # Brute force over the allowed region: shape < 0, end point between the largest excess and the room.
    def loss(v: np.ndarray) -> float:
        end = y[-1] + (room - y[-1]) / (1 + math.exp(-v[0]))
        c = -math.exp(v[1])
        return -float(stats.genpareto.logpdf(y, c, scale=-c * end).sum()) if c > -1 else 1e9

    best = min(optimize.minimize(loss, [a, b], method="Nelder-Mead").fun for a in (-2, 2, 6) for b in (-2.0, -1.0))
    mine = -float(stats.genpareto.logpdf(y, float(shape), scale=float(scale)).sum())
    assert mine <= best + 1e-4


@pytest.mark.parametrize("shape", [-2.0, -1.0])
def test_moments_take_over_where_likelihood_has_no_maximum(shape: float) -> None:
    y = np.sort(quantile(np.random.default_rng(4).random((300, 200)), 1.0, shape), axis=1)
    scale, found, likely = fit(y)
    assert likely.mean() < 0.05
    assert found.mean() == pytest.approx(shape, abs=0.08)
    assert scale.mean() == pytest.approx(1.0, abs=0.05)
    assert np.all(-scale / found >= y[:, -1] * (1 - 1e-9))  # no observed value beyond the end


def test_moments_follow_their_definition() -> None:
    y = np.sort(np.random.default_rng(5).exponential(size=40))
    k = y.size
    second = sum(y[i] * (k - 1 - i) / (k - 1) for i in range(k)) / k
    scale, shape = moments_fit(y)
    assert float(shape) == pytest.approx(2 - y.mean() / (y.mean() - 2 * second))
    assert float(scale) == pytest.approx(2 * y.mean() * second / (y.mean() - 2 * second))
