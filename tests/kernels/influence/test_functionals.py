"""Closed forms against the definition: the perturbed distribution on a finite space."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from evenhand.errors import UsageError
from evenhand.kernels.influence.functionals import (
    TERMS,
    Sample,
    centre,
    functional,
    means,
    psi,
    psi_slopes,
    value,
)

SPACE = np.array(list(product([0, 1], repeat=4)), dtype=float)
MEASURES = [
    "sp",
    "fpr",
    "fnr",
    "fdr",
    "accuracy",
    "cal",
    "da",
    ("da", 0.3),
    {"fpr": 0.5, "fnr": -2.0},
    {"sp": 1.0, "cal": 0.4, "fdr": 0.2},
]


def world(seed):
    """Two distributions on 16 points, a model and each group's outcome probabilities."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(16)) + 0.002, rng.dirichlet(np.ones(16)) + 0.002
    h = expit(SPACE @ rng.normal(0, 1.5, 4))
    eta, eta1 = expit(SPACE @ rng.normal(0, 1, 4) - 0.3), expit(SPACE @ rng.normal(0, 1, 4))
    return p / p.sum(), q / q.sum(), h, eta, eta1


def definition(name, p, q, h, eta, eta1, penalty):
    """Table 1 of the paper, written out as sums over the space; p may be complex."""
    if name == "da":
        a, b = (p * h).sum(), (q * h).sum()
        kl = a * np.log(a / b) + (1 - a) * np.log((1 - a) / (1 - b))
        return kl + penalty * (p * np.log(p / q)).sum()

    def side(weight, e):
        joint = {(y, d): (weight * (e if y else 1 - e) * (h if d else 1 - h)).sum() for y in (0, 1) for d in (0, 1)}
        return {
            "sp": joint[0, 1] + joint[1, 1],
            "fpr": joint[0, 1] / (joint[0, 1] + joint[0, 0]),
            "fnr": joint[1, 0] / (joint[1, 0] + joint[1, 1]),
            "fdr": joint[0, 1] / (joint[0, 1] + joint[1, 1]),
            "accuracy": joint[0, 0] + joint[1, 1],
            "cal": (weight * np.abs(e - h)).sum(),
        }[name]

    return side(p, eta) - side(q, eta1)


def total(measure, *args, penalty):
    pairs = {measure: 1.0} if isinstance(measure, str) else measure
    return sum(c * definition(name, *args, penalty) for name, c in pairs.items())


def unpack(measure):
    return measure if isinstance(measure, tuple) else (measure, 0.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_closed_form_is_the_derivative_of_the_perturbed_measure(measure, seed):
    measure, penalty = unpack(measure)
    p, q, h, eta, eta1 = world(seed)
    form = functional(measure, penalty)
    reference = means(form, h, eta1, q)
    log_ratio = np.log(p / q)
    sample = Sample(h=h, eta=eta, weight=p, reference=reference, log_ratio=log_ratio)
    found = psi(centre(form, sample), h, eta, log_ratio)
    step = 1e-30  # complex step: exact to rounding
    for k in range(16):
        moved = p.astype(complex)
        moved += 1j * step * (np.eye(16)[k] - p)
        exact = total(measure, moved, q, h, eta, eta1, penalty=penalty).imag / step
        assert abs(found[k] - exact) < 1e-9
    assert abs(p @ found) < 1e-12
    here = value(form, sample)
    assert here == pytest.approx(total(measure, p, q, h, eta, eta1, penalty=penalty), abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_directional_derivative_is_the_inner_product_and_psi_is_steepest(measure):
    measure, penalty = unpack(measure)
    p, q, h, eta, eta1 = world(7)
    form = functional(measure, penalty)
    sample = Sample(h=h, eta=eta, weight=p, reference=means(form, h, eta1, q), log_ratio=np.log(p / q))
    at = centre(form, sample)
    found = psi(at, h, eta, np.log(p / q))
    best = -found / np.sqrt(p @ found**2)  # eq. (6); psi has mean 0
    steepest = p @ (best * found)
    rng = np.random.default_rng(0)
    for _ in range(20):
        f = rng.normal(size=16)
        f -= p @ f
        f /= np.sqrt(p @ f**2)
        slope = total(measure, p * (1 + 1e-30j * f), q, h, eta, eta1, penalty=penalty).imag / 1e-30
        assert slope == pytest.approx(p @ (f * found), abs=1e-9)
        assert slope >= steepest - 1e-12


def test_combination_is_linear():
    p, q, h, eta, eta1 = world(1)

    def of(measure):
        form = functional(measure)
        return psi(centre(form, Sample(h=h, eta=eta, weight=p, reference=means(form, h, eta1, q))), h, eta)

    assert of({"fpr": 0.5, "fnr": -2}) == pytest.approx(0.5 * of("fpr") - 2 * of("fnr"))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_slopes_agree_with_finite_differences(measure):
    measure, penalty = unpack(measure)
    p, q, h, eta, eta1 = world(2)
    form = functional(measure, penalty)
    sample = Sample(h=h, eta=eta, weight=p, reference=means(form, h, eta1, q), log_ratio=np.log(p / q))
    at = centre(form, sample)
    ratio = np.log(p / q)
    by_h, by_eta, by_ratio = psi_slopes(at, h, eta)
    t = 1e-6

    def numeric(a, b, c):
        up = psi(at, h + t * a, eta + t * b, ratio + t * c)
        return (up - psi(at, h - t * a, eta - t * b, ratio - t * c)) / (2 * t)

    assert by_h == pytest.approx(numeric(1, 0, 0), abs=1e-7)
    assert by_eta == pytest.approx(numeric(0, 1, 0), abs=1e-7)
    assert np.full(16, by_ratio) == pytest.approx(numeric(0, 0, 1), abs=1e-7)


def test_an_empty_denominator_is_nan_not_a_number():
    form = functional("fpr")
    sample = Sample(h=np.array([0.5]), eta=np.array([1.0]), weight=np.ones(1), reference=np.array([[0.1, 1.0]]))
    at = centre(form, sample)
    assert np.isnan(at.ratio[0])


@pytest.mark.parametrize(
    ("measure", "words"),
    [("fprr", "`fpr`"), ({"fpr": 0.0}, "other than 0"), ({"fpr": np.nan}, "finite"), ({}, "No measure")],
)
def test_bad_measures_are_refused(measure, words):
    with pytest.raises(UsageError, match=words):
        functional(measure)


def test_bad_penalty_is_refused():
    with pytest.raises(UsageError, match="alignment_penalty"):
        functional("da", -1.0)


def test_a_penalty_needs_the_ratio():
    form = functional("da", 1.0)
    half = np.array([0.5])
    with pytest.raises(UsageError, match="ratio"):
        centre(form, Sample(h=half, eta=half, weight=np.ones(1), reference=np.array([[0.1, 1.0]])))


def test_every_term_is_tested_above():
    assert set(TERMS) == {m for m in MEASURES if isinstance(m, str)}
