from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from evenhand.kernels.extremes.logit_peak import find_peak, largest_change, logit_shift


def test_the_shift_of_a_logistic_model_is_found_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    eta = rng.normal(-2, 1.5, size=500)
    for shift in (-1.3, 0.02, 0.8):
        assert logit_shift(special.expit(eta), special.expit(eta + shift)) == pytest.approx(shift, rel=1e-6)
    single = special.expit(eta).astype(np.float32), special.expit(eta + 0.5).astype(np.float32)
    assert logit_shift(*(v.astype(float) for v in single)) == pytest.approx(0.5, abs=1e-4)
    for other in (stats.norm.cdf(eta + 0.5), special.expit(eta + 0.5 + 0.01 * eta), np.round(special.expit(eta), 2)):
        assert math.isnan(logit_shift(special.expit(eta), other))
    assert math.isnan(logit_shift(eta, eta + 1))


def test_no_change_exceeds_the_largest() -> None:
    eta = np.linspace(-8, 8, 100_001)
    for shift in (-0.5, 0.1, 0.8, 3.0):
        change = special.expit(eta + shift) - special.expit(eta)
        assert largest_change(shift) == pytest.approx(max(change.max(), 0.0), abs=1e-4)
        assert change.max() <= largest_change(shift) + 1e-15


def test_the_peak_gives_the_level_beyond_the_sample() -> None:
    rng, covered, believed = np.random.default_rng(1), 0, 0
    shift, horizon = 0.8, 10_000
    law = stats.norm(-1, 1.2)

    def share(w: float) -> float:
        return float(law.cdf(-shift / 2 + w) - law.cdf(-shift / 2 - w)) - 1 / horizon

    from scipy.optimize import brentq

    w = brentq(share, 1e-9, 1)
    truth = special.expit(w + shift / 2) - special.expit(w - shift / 2)
    for _ in range(200):
        peak = find_peak(special.expit(law.rvs(1000, random_state=rng)), shift, rng, draws=99)
        assert peak is not None
        believed += peak.believed
        covered += truth <= peak.upper(horizon, 0.025)
        assert peak.upper(horizon, 0.025) <= largest_change(shift)
    assert believed >= 180
    assert covered >= stats.binom.ppf(1e-4, 200, 0.975)


def test_a_peak_outside_the_data_is_not_believed() -> None:
    rng = np.random.default_rng(2)
    peak = find_peak(special.expit(rng.normal(-4, 0.5, size=2000)), 0.5, rng)
    assert peak is None or not peak.believed
