"""The interval of a value between two estimated ends: the equation, its limits, coverage, and the test it inverts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from evenhand.inference.unknown.identified import End, IdentifiedSet, critical_value


def normal_end(estimate, error):
    law = stats.norm(estimate, error)

    def pvalue(value):
        return float(2 * special.ndtr(-abs(value - estimate) / error))

    return End(estimate=estimate, interval=lambda level: tuple(map(float, law.interval(level))), pvalue=pvalue)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("width", [1e-3, 0.1, 0.5, 1.0, 2.0, 5.0])
def test_the_critical_value_solves_the_published_equation(width, level):
    # Imbens and Manski (2004): Phi(c + sqrt(N) Delta / max(sd)) - Phi(-c) = level.
    c = critical_value(width, level)
    assert stats.norm.cdf(c + width) - stats.norm.cdf(-c) == pytest.approx(level, abs=1e-10)


def test_the_critical_value_goes_from_the_two_sided_to_the_one_sided_quantile():
    # 1.96 without missing groups and 1.645 far apart, the two limits that the paper names.
    assert critical_value(0.0, 0.95) == pytest.approx(stats.norm.isf(0.025))
    assert critical_value(50.0, 0.95) == pytest.approx(stats.norm.isf(0.05))
    assert critical_value(math.inf, 0.95) == pytest.approx(stats.norm.isf(0.05))
    c = [critical_value(width, 0.95) for width in np.linspace(0, 6, 40)]
    assert np.all(np.diff(c) < 0)


@pytest.mark.parametrize("width", [0.0, 0.3, 1.0, 4.0])
def test_both_ends_of_the_set_are_covered_as_often_as_said(width):
    # Two ends with one error of 1, estimated with one draw each: the case of the paper's derivation.
    draws = np.random.default_rng(3).normal(size=200_000)
    c = critical_value(width, 0.95)
    for truth in (0.0, width):
        covered = (draws - c <= truth) & (truth <= draws + width + c)
        assert covered.mean() == pytest.approx(0.95, abs=0.002)


@pytest.mark.parametrize(
    ("low", "high"), [((0.04, 0.02), (0.05, 0.03)), ((0.1, 0.05), (0.1, 0.05)), ((0.02, 0.01), (0.4, 0.1))]
)
@pytest.mark.parametrize("sides", ["two-sided", "greater"])
def test_the_pvalue_is_where_the_interval_begins_to_miss(low, high, sides):
    values = IdentifiedSet(low=normal_end(*low), high=normal_end(*high))
    p = values.beyond(0.0, 0.0, sides)
    assert values.interval(1 - p, sides)[0] == pytest.approx(0.0, abs=1e-9)
    mirrored = IdentifiedSet(low=normal_end(-high[0], high[1]), high=normal_end(-low[0], low[1]))
    other = {"two-sided": "two-sided", "greater": "less"}[sides]
    assert mirrored.beyond(0.0, 0.0, other) == pytest.approx(p)


def test_equal_ends_are_an_ordinary_test_and_interval():
    end = normal_end(0.3, 0.1)
    values = IdentifiedSet(low=end, high=end)
    assert values.beyond(0.0, 0.0) == pytest.approx(2 * stats.norm.sf(3))
    assert values.interval(0.95) == pytest.approx(stats.norm(0.3, 0.1).interval(0.95))


def test_a_possible_value_inside_is_never_refused():
    values = IdentifiedSet(low=normal_end(-0.1, 0.001), high=normal_end(0.1, 0.001))
    assert values.beyond(0.0, 0.0) == 1.0
    assert values.nearest(0.0) == 0.0
    assert values.beyond(-0.3, -0.05) == 1.0


def test_a_ratio_counts_in_logarithms():
    def end(estimate, error):
        def interval(level):
            half = stats.norm.isf((1 - level) / 2) * error
            return estimate * math.exp(-half), estimate * math.exp(half)

        return End(
            estimate=estimate,
            interval=interval,
            pvalue=lambda v: 2 * stats.norm.sf(abs(math.log(estimate / v)) / error),
        )

    values = IdentifiedSet(low=end(1.2, 0.1), high=end(1.8, 0.1), log=True)
    assert values.width == pytest.approx(math.log(1.5) / 0.1)
    open_end = IdentifiedSet(
        low=end(1.2, 0.1),
        high=End(estimate=math.inf, interval=lambda _: (math.inf, math.inf), pvalue=lambda _: 1.0),
        log=True,
    )
    assert open_end.width == 0.0
    assert open_end.interval(0.95)[1] == math.inf
