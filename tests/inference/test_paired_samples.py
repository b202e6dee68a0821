"""Changes of the same people under two models: score limits, McNemar, DeLong's paired test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from evenhand.audits.group.influence import influence
from evenhand.inference.paired_samples import InfluenceSamples, PairedRates, tango_limits, tango_statistic
from evenhand.inference.samples import Draws
from evenhand.intake import AuditData
from evenhand.metrics import METRICS

Z = 1.959963984540054


def test_limits_of_a_published_table() -> None:
    # Airway hyper-responsiveness before and after transplantation, 1, 1, 7, 12 of 21: Fagerland, Lydersen and Laake
    # (2014), table II, Tango's asymptotic score interval.
    assert tango_limits(1, 7, 21, Z) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_no_change_is_mcnemars_test() -> None:
    for gained, lost, n in ((7, 1, 34), (3, 12, 50), (0, 5, 40)):
        assert tango_statistic(gained, lost, n, 0.0) == pytest.approx((gained - lost) / math.sqrt(gained + lost))


def test_the_statistic_solves_the_restricted_likelihood() -> None:
    """The variance is that of the multinomial whose likelihood is largest among those with the given change."""
    gained, lost, n = 9, 4, 60
    for change in (-0.3, -0.05, 0.02, 0.2):
        grid = np.linspace(max(0.0, -change) + 1e-9, (1 - change) / 2 - 1e-9, 400_001)  # of the share that loses
        like = (
            gained * np.log(grid + change) + lost * np.log(grid) + (n - gained - lost) * np.log(1 - 2 * grid - change)
        )
        both = 2 * grid[np.argmax(like)] + change
        slow = (gained - lost - n * change) / math.sqrt(n * (both - change**2))
        assert tango_statistic(gained, lost, n, change) == pytest.approx(slow, rel=1e-4)


def test_nobody_changed_still_has_limits() -> None:
    low, high = tango_limits(0, 0, 30, Z)
    assert low == pytest.approx(-high)
    assert high == pytest.approx(Z**2 / (30 + Z**2), rel=1e-8)
    same = PairedRates([0, 0], [0, 0], [30, 5000])
    assert same.test(0, 1, Draws()).pvalue == 1.0
    assert same.equivalence(0, 1, low=-0.05, high=0.05, ratio=False, draws=Draws()) > 0.05


def test_test_interval_and_margins_agree() -> None:
    changes = PairedRates([12, 3], [2, 4], [100, 80])
    p = changes.test(0, 1, Draws()).pvalue
    low, high, _ = changes.interval(0, 1, level=1 - p, ratio=False, draws=Draws())
    assert low == pytest.approx(0.0, abs=1e-7)
    for end, side in ((low + 0.05, "greater"), (high + 0.05, "less")):
        one = changes.one_sided(0, 1, end, alternative=side, draws=Draws())
        two = changes.beyond(0, 1, low=min(end, -1), high=max(end, -1), ratio=False, draws=Draws())
        assert 0 < one < 1
        assert 0 < two <= 1
    above = changes.one_sided(0, 1, -0.02, alternative="greater", draws=Draws())
    below = changes.one_sided(0, 1, 0.30, alternative="less", draws=Draws())
    both = changes.equivalence(0, 1, low=-0.02, high=0.30, ratio=False, draws=Draws())
    assert both == pytest.approx(max(above, below))
    swapped = PairedRates([3, 12], [4, 2], [80, 100]).test(0, 1, Draws())
    assert swapped.pvalue == pytest.approx(p)


def slow_delong(y: np.ndarray, one: np.ndarray, two: np.ndarray) -> tuple[float, float]:
    """Return the difference of two paired AUCs and its variance, by all pairs of people."""
    placements = []
    for score in (one, two):
        above = (score[y == 1][:, None] > score[y == 0]) + 0.5 * (score[y == 1][:, None] == score[y == 0])
        placements.append((above.mean(axis=1), above.mean(axis=0), above.mean()))
    (x1, n1, auc1), (x2, n2, auc2) = placements
    variance = np.var(x2 - x1, ddof=1) / x1.size + np.var(n2 - n1, ddof=1) / n1.size
    return auc2 - auc1, float(variance)


def test_the_auc_is_delongs_paired_test() -> None:
    rng = np.random.default_rng(4)
    n = 400
    y = rng.integers(0, 2, n)
    one = np.round(y + rng.normal(size=n), 1)
    two = np.round(0.6 * one + 0.5 * y + 0.7 * rng.normal(size=n), 1)
    group = np.array(["a", "b"])[rng.integers(0, 2, n)]
    sides = [AuditData.from_arrays(outcome=y, score=s, groups={"g": group}) for s in (one, two)]
    attribute = sides[0].attributes[0]
    pulls = [influence(METRICS["auc"], side, attribute) for side in sides]
    assert pulls[0] is not None
    assert pulls[1] is not None
    slow = [slow_delong(y[group == g], one[group == g], two[group == g]) for g in ("a", "b")]
    samples = InfluenceSamples(
        [s[0] for s in slow], pulls[1] - pulls[0], attribute.codes, np.ones(n, dtype=int), ["", ""]
    )
    expected = math.sqrt(slow[0][1] + slow[1][1])
    assert samples.standard_error(0, 1) == pytest.approx(expected, rel=0.01)  # n / (n - 1) of all rows, not by outcome
    z = (slow[0][0] - slow[1][0]) / samples.standard_error(0, 1)
    assert samples.test(0, 1, Draws()).pvalue == pytest.approx(2 * special.ndtr(-abs(z)))
