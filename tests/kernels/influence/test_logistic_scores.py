"""Fast scores: the same numbers as setting a feature and predicting anew."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.kernels.influence.design import join, make_design
from evenhand.kernels.influence.functionals import Sample, centre, functional, means, psi
from evenhand.kernels.influence.logistic_scores import bilinear
from evenhand.kernels.influence.nuisance import LogisticFolds
from evenhand.kernels.influence.set_features import toggle
from evenhand.kernels.influence.shifted_predictions import CHUNK, Rows, Sources
from evenhand.kernels.shared.logistic import LogisticFit

N = CHUNK + 700  # more than one chunk


def logistic(coef, intercept):
    fit = LogisticFit(coef=np.asarray(coef, dtype=float), intercept=intercept, iterations=1)
    return LogisticFolds((fit,), fit, 1.0)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    columns = {
        "yes": (rng.random(N) < 0.3).astype(float),
        "number": rng.normal(size=N),
        "kind": rng.choice(np.array(["u", "v", "w"], dtype=object), N),
        "few": rng.integers(0, 4, N).astype(float),
    }
    design = make_design(columns, np.ones(N), np.ones(N, dtype=bool))
    weight = rng.integers(1, 4, N).astype(float)
    sources = [logistic(rng.normal(0, 0.8, design.width), v) for v in (-0.4, 0.3)]
    return design, design.encode(columns), weight, sources


def brute(block, X, weight, at, h, eta):
    table = []
    for level in block.levels:
        Z = X.copy()
        Z[:, list(block.where)] = level
        table.append(psi(at, h.whole(Z), eta.whole(Z)))
    table = np.array(table)
    return weight @ (table.max(0) - table.min(0)) / weight.sum(), table @ weight / weight.sum()


def every(X, weight):
    return Rows(X, weight, np.zeros(N, dtype=int), np.arange(N))


MEASURES = ["fpr", "fnr", "fdr", "sp", "accuracy", "da", {"fpr": 1.0, "fdr": -0.7, "sp": 2.0}]


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_scores_are_those_of_new_predictions(sample, measure, weighted):
    design, X, weight, (h, eta) = sample
    weight = weight if weighted else np.ones(N)
    form = functional(measure)
    reference = means(form, np.full(3, 0.4), np.full(3, 0.5), np.ones(3))
    at = centre(form, Sample(h=h.whole(X), eta=eta.whole(X), weight=weight, reference=reference))
    blocks = [*design.blocks, join(design.blocks[0], design.blocks[2])]
    sources = Sources(h=h, eta=eta if form.uses_eta else None)
    found = toggle(blocks, every(X, weight), at, sources)
    for b, block in enumerate(blocks):
        score, profile = brute(block, X, weight, at, h, eta)
        assert found.score[b] == pytest.approx(score, abs=1e-12)
        assert found.profile[b] == pytest.approx(profile, abs=1e-12)


def test_huge_coefficients_go_the_slow_way(sample):
    design, X, weight, (_, eta) = sample
    form = functional("fpr")
    coef = np.zeros(design.width)
    coef[0], coef[1] = 900.0, 450.0
    h = logistic(coef, -450.0)
    at = centre(form, Sample(h=h.whole(X), eta=eta.whole(X), weight=weight, reference=np.array([[0.2, 0.5]])))
    found = toggle(design.blocks, every(X, weight), at, Sources(h=h, eta=eta))
    for b in (2, 3):  # the toggled block is not the huge one
        assert found.score[b] == pytest.approx(brute(design.blocks[b], X, weight, at, h, eta)[0], abs=1e-12)
    assert np.isfinite(found.score).all()


@pytest.mark.parametrize("coefficient", [-4.9, -12.0, 40.0])
def test_steep_coefficients_keep_their_digits(sample, coefficient):
    design, X, weight, (_, eta) = sample
    form = functional("fdr")
    coef = np.full(design.width, 0.1)
    coef[0] = coefficient
    h = logistic(coef, 0.2)
    at = centre(form, Sample(h=h.whole(X), eta=eta.whole(X), weight=weight, reference=np.array([[0.2, 0.5]])))
    found = toggle(design.blocks, every(X, weight), at, Sources(h=h, eta=eta))
    score, profile = brute(design.blocks[0], X, weight, at, h, eta)
    assert found.score[0] == pytest.approx(score, rel=1e-11)
    assert found.profile[0] == pytest.approx(profile, abs=1e-11)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_four_corners_give_the_whole_function(measure):
    form = functional(measure)
    rng = np.random.default_rng(1)
    h, eta = rng.random(50), rng.random(50)
    at = centre(form, Sample(h=h, eta=eta, weight=np.ones(50), reference=means(form, h / 2, eta, np.ones(50))))
    found = bilinear(at)
    u, v = 1 - h, 1 - eta
    expected = found.k + found.B * u + found.C * v + found.D * u * v
    assert psi(at, h, eta) == pytest.approx(expected, abs=1e-12)


def test_functions_with_a_kink_or_a_logarithm_are_not_bilinear():
    one = np.ones(2)
    sample = Sample(h=0.4 * one, eta=0.5 * one, weight=one, reference=np.array([[0.1, 1.0]]), log_ratio=one)
    for form in (functional("cal"), functional("da", 0.1)):
        assert bilinear(centre(form, sample)) is None
