"""The toy of section 4.1, and what a descent promises."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from evenhand.kernels.influence.descent import Pace, descend
from evenhand.kernels.influence.functionals import Sample, functional, means, value

SPACE = np.array(list(product([0, 1], repeat=3)), dtype=float)
P = np.prod(np.where(SPACE == 1, [0.9, 0.2, 0.2], [0.1, 0.8, 0.8]), axis=1)
Q = np.prod(np.where(SPACE == 1, [0.1, 0.5, 0.5], [0.9, 0.5, 0.5]), axis=1)
H = expit(SPACE @ [5.0, -2.0, -2.0])  # the paper prints logit and means its inverse


def toy(measure="fpr", penalty=0.0, **options):
    form = functional(measure, penalty)
    ratio = np.log(P / Q) if penalty else None
    sample = Sample(h=H, eta=H, weight=P, reference=means(form, H, H, Q), log_ratio=ratio)
    return form, sample, descend(form, sample, sample, Pace(**options))


@pytest.mark.parametrize(("step", "steps"), [(0.05, 39), (0.1, 20), (0.2, 11)])
def test_the_toy_of_section_4_1(step, steps):
    _, _, path = toy(step=step, max_steps=100)
    assert path.values[0] == pytest.approx(0.319, abs=5e-4)
    assert abs(path.values[-1]) <= 1e-3
    assert abs(len(path.steps) - steps) <= 1
    assert np.all(np.diff(np.abs(path.held_out)) < 0)


def test_sampled_toy_as_in_figure_2():
    rng = np.random.default_rng(0)
    cells = [rng.multinomial(6250, w) for w in (P, P, Q, Q)]  # audit and held-out halves of both groups
    form = functional("fpr")
    sample, held = (
        Sample(h=H, eta=H, weight=p.astype(float), reference=means(form, H, H, q.astype(float)))
        for p, q in zip(cells[:2], cells[2:], strict=True)
    )
    path = descend(form, sample, held, Pace(step=0.1))
    assert path.held_out[0] == pytest.approx(0.319, abs=0.03)
    assert abs(path.held_out[-1]) < 1e-3
    assert 15 <= len(path.steps) <= 25


def test_new_points_get_the_weight_of_their_like():
    form, sample, path = toy()
    c = path.multiplier(H, H)
    assert P @ c == pytest.approx(1)
    assert np.all(c >= 0)
    assert value(form, replace(sample, weight=P * c)) == pytest.approx(path.values[-1], abs=1e-12)
    pick = np.array([3, 3, 0])
    assert path.multiplier(H[pick], H[pick]) == pytest.approx(c[pick])


def test_a_penalised_divergence_leads_to_the_reference_itself():
    # Proposition 1, corrected: for lambda > 0 the only counterfactual distribution is P(X|S=1).
    _, _, path = toy("da", 1.0, step=0.1, max_steps=3000, tolerance=1e-9)
    moved = P * path.multiplier(H, H, np.log(P / Q))
    assert moved == pytest.approx(Q, abs=1e-3)


def test_a_negative_gap_is_raised():
    form = functional("sp")
    sample = Sample(
        h=np.array([0.1, 0.9]), eta=np.zeros(2), weight=np.array([9.0, 1.0]), reference=np.array([[0.5, 1.0]])
    )
    path = descend(form, sample, sample, Pace(step=0.5))
    assert path.values[0] == pytest.approx(-0.32)
    assert abs(path.values[-1]) <= 1e-3


def test_effective_size_falls_from_the_number_of_rows():
    form = functional("sp")
    sample = Sample(
        h=np.array([0.1, 0.9]), eta=np.zeros(2), weight=np.array([50.0, 50.0]), reference=np.array([[0.3, 1.0]])
    )
    path = descend(form, sample, sample)
    assert path.effective[0] == pytest.approx(100)
    c = path.multiplier(sample.h, sample.eta)
    expanded = np.repeat(c, 50)
    assert path.effective[-1] == pytest.approx(expanded.sum() ** 2 / (expanded**2).sum())


def test_a_step_that_overshoots_is_halved_and_factors_are_clipped_at_zero():
    form = functional("sp")
    sample = Sample(h=np.array([0.2, 0.5, 0.8]), eta=np.zeros(3), weight=np.ones(3), reference=np.array([[0.45, 1.0]]))
    path = descend(form, sample, sample, Pace(step=5.0))
    assert abs(path.values[-1]) <= 1e-3
    assert path.steps[0].size < 5
    _, _, wild = toy(step=50.0)
    assert np.all(wild.multiplier(H, H) >= 0)
    assert np.any(wild.multiplier(H, H) == 0)


def test_an_unreachable_reference_ends_with_a_reason():
    form = functional("sp")
    sample = Sample(h=np.array([0.6, 0.8]), eta=np.zeros(2), weight=np.ones(2), reference=np.array([[0.1, 1.0]]))
    path = descend(form, sample, sample, Pace(step=1.0, max_steps=500))
    assert path.values[-1] == pytest.approx(0.5, abs=0.01)  # all weight on the lowest point
    assert "no step" in path.stopped or "500 steps" in path.stopped


def test_no_gap_no_step():
    _, _, path = toy(tolerance=1.0)
    assert path.steps == ()
    assert "tolerance" in path.stopped
