from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.kernels.extremes.pareto import quantile
from evenhand.kernels.extremes.pareto_checks import anderson_darling, check_fit
from evenhand.kernels.extremes.pareto_tail import fit_tail


def test_anderson_darling_is_scipys() -> None:
    x = np.sort(np.random.default_rng(0).exponential(size=40))
    u = 1 - np.exp(-x / x.mean())
    assert float(anderson_darling(u)) == pytest.approx(stats.anderson(x, "expon", method="interpolate").statistic)


@pytest.mark.parametrize("shape", [-1.0, -0.3, 0.0])
def test_true_tails_are_doubted_about_as_often_as_stated(shape: float) -> None:
    rng, pvalues = np.random.default_rng(1), []
    for _ in range(60):
        values = quantile(rng.random(1000), 1.0, shape)
        found = check_fit(fit_tail(values, 60), 5000, draws=59, rng=rng)
        pvalues.append((found.fits, found.stable))
    for p in np.array(pvalues).T:
        assert stats.kstest(p, "uniform").pvalue > 1e-4


def test_a_tail_with_a_kink_is_doubted() -> None:
    rng, doubted = np.random.default_rng(2), 0
    for _ in range(20):
        # A body that ends, and a few above its end.
        values = np.concatenate([rng.random(1900), 1 + 0.3 * rng.random(60)])
        doubted += not check_fit(fit_tail(values, 150), 20_000, draws=99, rng=rng).believed
    assert doubted >= 18


def test_levels_of_fewer_excesses_are_those_of_a_fit_of_their_own() -> None:
    values = np.random.default_rng(3).exponential(size=2000)
    found = check_fit(fit_tail(values, 100), 50_000, draws=19, rng=np.random.default_rng(0))
    for k, level in found.levels:
        # The smaller tail starts at the next value, which is one of the larger tail's excesses.
        assert level == pytest.approx(fit_tail(values, k).level(50_000), rel=1e-6)
