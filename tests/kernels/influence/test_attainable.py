"""The least gap that weights can leave, against a search over weights; the bound of counting, against draws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evenhand.kernels.influence.attainable import attainable, counting_bound
from evenhand.kernels.influence.functionals import Sample, functional, value

H, ETA = np.array([0.2, 0.5, 0.7]), np.array([0.3, 0.6, 0.65])
GRID = [np.array([a, b, 20 - a - b]) / 20 for a, b in product(range(21), repeat=2) if a + b <= 20]


@pytest.mark.parametrize("measure", ["fnr", "fpr", "fdr", "cal", "sp", "accuracy", "da"])
@pytest.mark.parametrize("reference", [0.02, 0.42, 0.98])
def test_the_least_gap_is_the_one_that_a_search_over_weights_finds(measure, reference):
    form = functional(measure)
    there = np.array([[0.5 * reference, 0.5]]) if measure != "da" else np.array([[reference, 1.0]])
    sample = Sample(h=H, eta=ETA, weight=np.ones(3), reference=there)
    made = attainable(form, sample)
    gaps = [value(form, Sample(h=H, eta=ETA, weight=w, reference=there)) for w in GRID]
    best = min(gaps, key=abs)
    assert abs(made.gap) <= abs(best) + 1e-12
    assert made.gap == pytest.approx(best, abs=0.03)  # the grid's step
    if made.nearest != made.reference:  # on the edge the best weights are on the grid
        assert made.gap == pytest.approx(best)
    assert made.low <= made.nearest <= made.high


def test_a_reference_above_every_point_is_clipped_too():
    sample = Sample(h=H, eta=ETA, weight=np.ones(3), reference=np.array([[0.9, 1.0]]))
    made = attainable(functional("cal"), sample)
    assert made.nearest == pytest.approx(0.1)
    assert made.gap == pytest.approx(-0.8)


def test_combinations_and_penalties_have_no_closed_form():
    sample = Sample(h=H, eta=ETA, weight=np.ones(3), reference=np.array([[0.9, 1.0], [0.9, 1.0]]))
    assert attainable(functional({"fpr": 1, "fnr": 1}), sample) is None
    assert attainable(functional("da", 0.5), sample) is None


def test_points_without_weight_or_denominator_do_not_count():
    h, eta = np.array([0.1, 0.5, 0.9]), np.array([0.0, 0.5, 0.5])
    sample = Sample(h=h, eta=eta, weight=np.array([1.0, 1.0, 0.0]), reference=np.array([[0.3, 0.5]]))
    made = attainable(functional("fnr"), sample)
    assert (made.low, made.high) == (0.5, 0.5)


def test_counting_stays_within_its_bound():
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.ones(12))
    drawn = rng.multinomial(400, law, size=2000) / 400
    apart = np.abs(drawn - law).sum(axis=1)
    assert (apart > counting_bound(6, 400)).mean() <= 0.05
    assert counting_bound(6, 400) == pytest.approx(np.sqrt(2 / 400 * (12 - np.log(0.05))))


def test_the_penalised_divergence_is_eq_42():
    member = np.array([0.3, 0.6, 0.8])  # P(S=1|x) on the group's points
    share = 0.55  # mean of P(S=1|x) over both groups
    p, q = H.mean(), 0.4
    printed = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    printed += 0.7 * (np.mean(np.log((1 - member) / member)) + np.log(share / (1 - share)))
    ratio = np.log((1 - member) / member) + np.log(share / (1 - share))
    sample = Sample(h=H, eta=ETA, weight=np.ones(3), reference=np.array([[q, 1.0]]), log_ratio=ratio)
    assert value(functional("da", 0.7), sample) == pytest.approx(printed)
