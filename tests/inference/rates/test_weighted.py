"""Rates with sampling weights: equal weights are plain rates, and tests and equivalence hold with few events."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.rates.weighted import WeightedRateSamples
from evenhand.inference.samples import Draws, Samples

_: type[Samples] = WeightedRateSamples  # the protocol holds, says the type checker


def samples(value, weight, codes, n_groups=2):
    def total(part):
        return np.bincount(codes, weights=part, minlength=n_groups)

    means = MeanSamples(value=value, weight=weight, codes=codes, n_groups=n_groups)
    return WeightedRateSamples(means, w=total(weight), ww=total(weight**2), wwv=total(weight**2 * value))


def drawn(seed, sizes, rates, spread=1.0):
    rng = np.random.default_rng([seed, *sizes])
    codes = np.repeat([0, 1], sizes)
    value = (rng.random(codes.size) < np.repeat(rates, sizes)).astype(float)
    return samples(value, np.exp(spread * rng.normal(size=codes.size)), codes)


def test_equal_weights_are_plain_rates():
    codes = np.repeat([0, 1], [30, 40])
    value = np.r_[np.ones(9), np.zeros(21), np.ones(4), np.zeros(36)]
    found, plain = samples(value, np.full(70, 2.5), codes), RateSamples.from_counts([9, 4], [30, 40])
    assert found.trials.tolist() == [30, 40]
    assert found.estimate == pytest.approx(plain.estimate)
    assert found.test(0, 1, Draws()).pvalue == plain.test(0, 1, Draws()).pvalue
    for ratio, low, high in ((False, -0.1, 0.1), (True, 0.8, 1.25)):
        asked = {"ratio": ratio, "draws": Draws()}
        assert found.interval(0, 1, level=0.95, **asked)[:2] == plain.interval(0, 1, level=0.95, **asked)[:2]
        assert found.beyond(0, 1, low=low, high=high, **asked) == plain.beyond(0, 1, low=low, high=high, **asked)
        assert found.equivalence(0, 1, low=low, high=high, **asked) == plain.equivalence(
            0, 1, low=low, high=high, **asked
        )


def test_trials_are_those_of_a_plain_rate_with_the_same_variance():
    rng = np.random.default_rng(0)
    value, weight = (rng.random(500) < 0.4).astype(float), np.exp(rng.normal(size=500))
    weight = np.where(value == 1, 3 * weight, weight)  # successes stand for more people
    found = samples(value, weight, np.zeros(500, dtype=int), 1)
    p = float(found.estimate[0])
    variance = (weight**2 * (value - p) ** 2).sum() / weight.sum() ** 2
    kish = weight.sum() ** 2 / (weight**2).sum()
    assert found.trials[0] == int(min(kish, p * (1 - p) / variance))


def test_groups_without_rows_or_successes():
    found = samples(np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 1.0]), np.array([0, 0, 1]), 3)
    assert found.reason[2]
    assert np.isnan(found.test(0, 2, Draws()).pvalue)
    assert np.isnan(found.interval(0, 2, level=0.95, ratio=False, draws=Draws())[0])
    assert np.isnan(found.equivalence(0, 2, low=-0.1, high=0.1, ratio=False, draws=Draws()))
    assert np.isnan(found.beyond(0, 2, low=-0.1, high=0.1, ratio=False, draws=Draws()))
    assert 0 < found.test(0, 1, Draws()).pvalue <= 1
    assert found.trials.tolist() == [1, 1, 0]


def test_equivalence_on_the_margin_with_few_events():
    # By the variance that the data show it was claimed in .19 of such samples; 3.1 standard errors are allowed.
    claimed = [drawn(i, (150, 80), (0.12, 0.02)).equivalence(0, 1, low=-0.1, high=0.1, ratio=False, draws=Draws())
               for i in range(100)]  # fmt: skip
    assert np.mean(np.array(claimed) <= 0.05) <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / 100)


def test_size_with_few_events():
    p = np.array([drawn(i, (120, 60), (0.08, 0.08)).test(0, 1, Draws()).pvalue for i in range(250)])
    for alpha in (0.05, 0.01, 0.001):
        assert (p <= alpha).mean() <= alpha + 3.1 * np.sqrt(alpha * (1 - alpha) / p.size)
