from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from evenhand.kernels.extremes.pareto import quantile
from evenhand.kernels.extremes.pareto_profile import level_ranges, region, shape_range
from evenhand.kernels.extremes.pareto_tail import (
    _cutoff,
    choose_k,
    fit_tail,
    quantile_plot,
    tail_intervals,
)
from evenhand.kernels.extremes.ties import count_ties, spread_ties


def test_point_process_form_matches_r_evd() -> None:
    # R evd 2.3.6.1, model = "pp", npp = 100: location, scale and shape for blocks of 100 observations.
    values = stats.expon.ppf((np.arange(500) + 0.5) / 500)
    tail = fit_tail(values, 50)
    assert tail.level(100) == pytest.approx(4.58465609710, rel=1e-5)
    assert tail.scale_at(100) == pytest.approx(0.94198606751, rel=1e-5)
    assert tail.shape == pytest.approx(-0.04748506723, abs=1e-5)


def test_point_process_form_is_the_same_tail_at_every_horizon() -> None:
    values = np.random.default_rng(1).beta(2, 5, size=3000)
    tail = fit_tail(values, 100, upper=1.0)
    x = tail.level(50_000)
    for m in (500, 5_000):
        rate = (1 + tail.shape * (x - tail.level(m)) / tail.scale_at(m)) ** (-1 / tail.shape)
        assert rate * 50_000 / m == pytest.approx(1.0)  # expected number above x in 50,000


def test_end_point_stays_inside_the_scores_range() -> None:
    values = np.minimum(np.random.default_rng(2).exponential(0.08, size=2000), 0.999)
    free, kept = fit_tail(values, 60), fit_tail(values, 60, upper=1.0)
    assert free.level(1e6) > 1
    assert kept.end <= 1 + 1e-9
    assert kept.level(1e6) <= 1
    found = tail_intervals(kept, np.array([1e3, 1e6]), level=0.95, rng=np.random.default_rng(0))
    assert np.all(found.high <= 1)
    assert found.type in {"I", "III"}


@pytest.mark.parametrize("shape", [-0.25, 0.0, 0.2])
def test_profile_intervals_match_a_search_over_all_parameters(shape: float) -> None:
    k, cutoff, expected = 80, 3.84, 20.0
    y = np.sort(quantile(np.random.default_rng(3).random(k), 1.0, shape))
    scales = np.linspace(0.4, 2.2, 181)[:, None, None]
    shapes = np.linspace(-0.9, 1.2, 211)[None, :, None] + 1e-9
    shares = np.linspace(-0.35, 0.35, 41)[None, None, :]
    inside = 1 + shapes[..., None] * y / scales[..., None]  # (scale, shape, 1, k)
    with np.errstate(invalid="ignore", divide="ignore"):
        pareto = -k * np.log(scales) - (1 + 1 / shapes) * np.log(inside).sum(axis=-1)
    pareto = np.where((inside > 0).all(axis=-1), pareto, -np.inf)
    total = pareto - k * (np.expm1(shares) - shares)
    region_ = 2 * (total.max() - total) <= cutoff
    levels = scales * np.expm1(shapes * (math.log(expected) + shares)) / shapes
    everywhere = np.broadcast_to(shapes, region_.shape)[region_]
    edge = region(y, cutoff=cutoff)
    # The search sees points of a grid, so its ranges are a little narrower.
    assert shape_range(edge) == pytest.approx((everywhere.min(), everywhere.max()), abs=0.03)
    low, high = level_ranges(edge, np.array([expected]))
    assert float(low[0]) == pytest.approx(levels[region_].min(), rel=0.015)
    assert float(high[0]) == pytest.approx(levels[region_].max(), rel=0.03)


def test_intervals_at_the_limit_of_the_end_point_use_the_mixture_of_chi_squares() -> None:
    k = 100
    plain, limited = (_cutoff(0.95, k, limited=b) / (1 + 10 / k) for b in (False, True))
    assert plain == pytest.approx(stats.chi2.ppf(0.95, 1))
    assert (stats.chi2.sf(limited, 1) + stats.chi2.sf(limited, 2)) / 2 == pytest.approx(0.05)
    y = np.sort(1 - np.random.default_rng(9).random(2000) ** 0.2)  # beta(1,5): ends at 1
    horizons = np.array([2e3, 2e5])
    rng = np.random.default_rng(0)
    near, far = (tail_intervals(fit_tail(y, k, upper=u), horizons, level=0.95, rng=rng) for u in (1.0, 1e6))
    wide = region(fit_tail(y, k).excesses, cutoff=_cutoff(0.95, k, limited=True), room=1.0 - fit_tail(y, k).threshold)
    low, _ = level_ranges(wide, horizons * k / 2000)
    np.testing.assert_allclose(near.low, fit_tail(y, k).threshold + low)
    assert np.all(near.high <= 1.0)
    assert far.high[1] > 1.0


def test_same_law_gives_the_same_answer_at_one_horizon_whatever_the_sample() -> None:
    rng = np.random.default_rng(4)
    small = [fit_tail(rng.beta(2, 6, size=500), 50, upper=1.0) for _ in range(60)]
    large = [fit_tail(rng.beta(2, 6, size=5000), 100, upper=1.0) for _ in range(60)]
    truth = stats.beta.isf(1e-3, 2, 6)
    means = [np.mean([t.level(1_000) for t in tails]) for tails in (small, large)]
    assert means[0] == pytest.approx(truth, abs=0.025)
    assert means[1] == pytest.approx(truth, abs=0.025)
    # The location as printed depends on the sample's size instead: it moves with n.
    own = [np.mean([t.level(t.n) for t in tails]) for tails in (small, large)]
    assert own[1] - own[0] > 0.08


def test_choose_k_takes_as_much_tail_as_passes() -> None:
    rng = np.random.default_rng(5)
    assert choose_k(rng.random(150))[0] == 0
    assert choose_k(rng.random(150))[1] is None
    assert choose_k(rng.random(500))[0] == 50
    assert choose_k(rng.random(5000))[0] == 200
    k, test = choose_k(rng.pareto(1.0, size=5000))
    assert k == 0
    assert test is not None
    assert not test.passed


def test_ties_are_counted_and_steps_told_from_rounding() -> None:
    rng = np.random.default_rng(6)
    fine = rng.random(5000)
    assert not count_ties(fine, 50).tied
    rounded = np.round(rng.beta(2, 6, size=5000), 2)
    assert count_ties(rounded, 50).tied
    assert not count_ties(rounded, 50).atoms
    steps = rng.choice(rng.random(30), size=5000)
    assert count_ties(steps, 200).atoms


def test_spread_ties_fits_like_an_interval_censored_likelihood() -> None:
    raw = np.random.default_rng(7).beta(2, 6, size=4000)
    rounded = np.round(raw, 2)
    spread = spread_ties(rounded, upper=1.0)
    assert np.abs(np.sort(spread) - np.sort(rounded)).max() <= 0.005 + 1e-9
    u = 0.505  # between two cells
    tail = fit_tail(spread, int((rounded > u).sum()), upper=1.0)
    assert tail.threshold == pytest.approx(u, abs=0.001)
    levels, counts = np.unique(rounded[rounded > u], return_counts=True)

    def loss(v: np.ndarray) -> float:
        scale, shape = math.exp(v[0]), v[1]
        cell = stats.genpareto.cdf(levels + 0.005 - u, shape, scale=scale) - stats.genpareto.cdf(
            levels - 0.005 - u, shape, scale=scale
        )
        return -float((counts * np.log(np.maximum(cell, 1e-300))).sum())

    censored = optimize.minimize(loss, [math.log(tail.scale), tail.shape], method="Nelder-Mead").x
    found = tail_intervals(tail, np.array([1e3, 1e5]), level=0.95, rng=np.random.default_rng(0))
    for i, m in enumerate((1e3, 1e5)):
        other = u + float(quantile(1 / tail.expected(m), math.exp(censored[0]), censored[1]))
        assert tail.level(m) == pytest.approx(other, abs=0.06 * (found.high[i] - found.low[i]))


def test_quantile_plot_of_a_good_fit_is_a_line() -> None:
    tail = fit_tail(np.random.default_rng(8).random(2000), 100, upper=1.0)
    fitted, observed, correlation = quantile_plot(tail)
    assert correlation > 0.99
    assert fitted.shape == observed.shape == (100,)
