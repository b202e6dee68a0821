"""Power against brute force, textbook numbers and quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from evenhand.audits.margin import parse_margin
from evenhand.inference.auc import AucSamples
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.count_functions import balanced_accuracy
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.means import MeanSamples
from evenhand.inference.power.designs import (
    Aucs,
    Binomials,
    CalibrationErrors,
    Correlation,
    Means,
    auc_variance,
)
from evenhand.inference.power.detectable import detectable, rows_for
from evenhand.inference.power.listed import exact_power, pvalues
from evenhand.inference.power.pilot import design_of
from evenhand.inference.rates.equality import equality_pvalue
from evenhand.inference.rates.samples import RateSamples

RATE = ((1.0,), (1.0,))
SMOOTH = [
    (Binomials(RATE, exact=False), 0.3),
    (Binomials(((0.4, 0.6), (0.3, 0.7)), (0.5, 0.5)), 0.7),
    (Means((1.0, 2.0)), 5.0),
    (Aucs((0.4, 0.3)), 0.75),
    (CalibrationErrors((0.4, 0.45)), 0.3),
    (Correlation(), 0.0),
]
KINDS = [type(design).__name__ for design, _ in SMOOTH]


@pytest.mark.parametrize(("n", "m", "alpha"), [(7, 5, 0.05), (12, 12, 0.01), (9, 31, 0.05)])
def test_rejected_tables_are_those_of_the_test(n, m, alpha):
    listed = pvalues(n, m)
    found = listed <= alpha
    for x in range(n + 1):
        for y in range(m + 1):
            p = equality_pvalue((x, y), (n, m))[0]
            if p < 0.2:  # a range of common rates that ends between two of the list is taken a little wider
                assert listed[x, y] == pytest.approx(p, rel=0.005)
            if abs(p - alpha) > 0.005 * alpha:
                assert found[x, y] == (p <= alpha)


def test_exact_power_adds_up_their_probabilities():
    p, q = stats.binom.pmf(np.arange(13), 12, 0.8), stats.binom.pmf(np.arange(10), 9, 0.2)
    assert exact_power((12, 9), (0.8, 0.2), 0.05) == pytest.approx(np.outer(p, q)[pvalues(12, 9) <= 0.05].sum())


@pytest.mark.parametrize(
    ("n", "m", "p", "q"),
    [(300, 300, 0.2, 0.1), (1000, 200, 0.17, 0.1), (1000, 200, 0.1, 0.17), (30, 900, 0.2, 0.4), (100, 100, 0.4, 0.2)],
)
def test_approximation_is_near_the_exact_power(n, m, p, q):
    about = Binomials(RATE, exact=False).power((n, m), (p, q), 0.05)
    assert about == pytest.approx(exact_power((n, m), (p, q), 0.05), abs=0.02)


def test_textbook_numbers():
    # Student's t test, half a standard deviation, 64 rows each: .8015 (Cohen 1988, table 2.4.1; G*Power).
    assert Means((1.0, 1.0)).power((64, 64), (0.5, 0.0), 0.05) == pytest.approx(0.8015, abs=2e-4)
    # .2 against .1: (1.96 root(2 .15 .85) + .8416 root(.2 .8 + .1 .9))^2 / .1^2 = 198.96 rows each.
    design = Binomials(RATE, exact=False)
    assert rows_for(lambda n: design.power(n, (0.2, 0.1), 0.05), (50, 50), 0.8)[0] == pytest.approx(199, abs=1)
    # Two one-sided t tests, margin 1 standard deviation, 18 rows each, by quadrature over the estimated spread.
    n, bar = 18, stats.t.isf(0.05, 34)

    def inside(s):
        room = max(1 - bar * s * math.sqrt(2 / n), 0) / math.sqrt(2 / n)
        return (2 * stats.norm.cdf(room) - 1) * stats.chi2.pdf(34 * s * s, 34) * 68 * s

    found = Means((1.0, 1.0)).equivalence((n, n), (0.0, 0.0), parse_margin(1.0), 0.05)
    assert found == pytest.approx(integrate.quad(inside, 0, 3)[0], abs=0.01)


def test_auc_variance_by_quadrature_and_at_one_half():
    assert auc_variance(0.5, 7, 9) == pytest.approx((7 + 9 + 1) / (12 * 7 * 9))
    shift = math.sqrt(2) * stats.norm.ppf(0.8)
    both = integrate.quad(lambda y: stats.norm.sf(y - shift) ** 2 * stats.norm.pdf(y), -9, 9)[0]
    expected = (0.8 * 0.2 + (29 + 49) * (both - 0.64)) / (30 * 50)
    assert auc_variance(0.8, 30, 50) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("design", "value"), SMOOTH, ids=KINDS)
def test_detectable_difference_has_the_power_asked_for(design, value):
    for difference in detectable(design, (300.0, 500.0), value, 0.01, 0.9):
        power = design.power((300.0, 500.0), (value + difference, value), 0.01)
        assert power == pytest.approx(0.9, abs=2e-3)


@pytest.mark.parametrize(("design", "value"), SMOOTH, ids=KINDS)
def test_rows_have_the_power_asked_for_and_fewer_have_not(design, value):
    values = (value + 0.08, value)

    def chance(rows):
        return design.power(rows, values, 0.05)

    rows = rows_for(chance, (100.0, 300.0), 0.8)
    assert chance(rows) >= 0.8
    assert chance((rows[0] * 0.97, rows[1] * 0.97)) < 0.8
    assert rows[1] == pytest.approx(3 * rows[0], abs=3)


@pytest.mark.parametrize(("design", "value"), SMOOTH[:-1], ids=KINDS[:-1])
@pytest.mark.parametrize("margin", [0.1, "four-fifths"])
def test_rows_for_equivalence(design, value, margin):
    bounds = parse_margin(margin)

    def chance(rows):
        return design.equivalence(rows, (value, value), bounds, 0.05)

    rows = rows_for(chance, (100.0, 300.0), 0.8)
    assert chance(rows) >= 0.8
    assert chance((rows[0] * 0.95, rows[1] * 0.95)) < 0.8


def test_one_group_alone_may_not_suffice():
    def chance(rows):
        return Means((1.0, 1.0)).power(rows, (0.1, 0.0), 0.05)

    assert math.isnan(rows_for(chance, (100.0, 100.0), 0.8, only=0)[0])
    assert rows_for(chance, (100.0, 5000.0), 0.8, only=0)[1] == 5000
    assert math.isnan(rows_for(lambda rows: 0.5, (100.0, 100.0), 0.8)[0])


def test_a_rough_guess_does_not_change_the_answer():
    def chance(rows):
        return Means((1.0, 1.0)).power(rows, (0.3, 0.0), 0.05)

    plain = rows_for(chance, (40.0, 90.0), 0.8)
    for bias in (0.7, 0.9, 1.0, 1.2, 2.0):
        guessed = rows_for(chance, (40.0, 90.0), 0.8, rough=lambda n, b=bias: chance((b * n[0], b * n[1])))
        assert guessed[0] == pytest.approx(plain[0], abs=1)


def test_pilots_give_back_the_design_they_came_from():
    rng = np.random.default_rng(0)
    n = 40_000
    codes, y = np.repeat([0, 1], n), np.tile([0, 1], n)
    auc = design_of(AucSamples(score=rng.normal(size=2 * n) + y, outcome=y, codes=codes, n_groups=2), 0, 1)
    assert auc.factors == pytest.approx((1, 1), abs=0.02)
    assert auc.positives == (0.5, 0.5)
    means = design_of(MeanSamples(value=rng.normal(size=2 * n) * (1 + codes), codes=codes, n_groups=2), 0, 1)
    assert means.spreads == pytest.approx((1, 2), rel=0.02)
    raw = (np.arange(2 * n) * 7 % 10) / 10 * 0.9 + 0.045
    outcome = rng.random(2 * n) < np.maximum(raw - 0.04, 0)
    calibration = design_of(CalibrationSamples(score=raw, outcome=outcome, codes=codes, n_groups=2), 0, 1)
    expected = math.sqrt(np.mean((raw - 0.04) * (1.04 - raw)))
    assert calibration.spreads == pytest.approx((expected, expected), rel=0.05)
    table = [[40, 10, 5, 45], [120, 60, 20, 100]]
    balanced = design_of(TableSamples(table, balanced_accuracy()), 0, 1)
    error = math.sqrt((0.9 * 0.1 / 50 + 0.8 * 0.2 / 50) / 4)
    assert math.sqrt(balanced._row_variance(0, 0.85) / 100) == pytest.approx(error)
    f1 = RateSamples(table, numerator=(3,), denominator=(1, 2, 3), transform="f1")
    assert design_of(f1, 0, 1)._few((100.0, 300.0), (45 / 60, 100 / 180)) == (60, 180)
    assert design_of(RateSamples.from_counts([0, 1], [0, 4]), 0, 1) is None
