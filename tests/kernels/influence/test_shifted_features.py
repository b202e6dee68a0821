"""A feature with another sample's distribution: against exact sums, and variances against the bootstrap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from evenhand.kernels.influence.design import make_design
from evenhand.kernels.influence.functionals import Sample, centre, functional, means, value
from evenhand.kernels.influence.linearised import equation
from evenhand.kernels.influence.nuisance import LogisticFolds
from evenhand.kernels.influence.row_moments import Population, RowMoments
from evenhand.kernels.influence.shifted_features import level_means, shift, shift_variances
from evenhand.kernels.influence.shifted_predictions import Rows, Sources
from evenhand.kernels.shared.logistic import fit_logistic

MEASURES = ["fpr", "fdr", "da", {"accuracy": 1.0, "fnr": 0.5}]


def draw(n=700, seed=0):
    rng = np.random.default_rng(seed)
    inside = np.arange(n) % 2 == 0
    columns = {
        "a": (rng.random(n) < np.where(inside, 0.7, 0.3)).astype(float),
        "b": (rng.normal(size=n) + 0.4 * inside).round(2),
        "c": rng.choice(np.array(["u", "v", "w"], dtype=object), n),
    }
    design = make_design(columns, np.ones(n), inside)
    X = design.encode(columns)
    h = expit(-0.5 + 1.2 * columns["a"] + 0.6 * columns["b"])
    y = (rng.random(n) < expit(-0.3 + 0.8 * columns["a"] - 0.4 * columns["b"])).astype(float)
    return design, X, h, y, inside, columns


def sums_of(people, form, blocks, coefficients=None):
    sums = RowMoments(form, blocks, coefficients)
    sums.add(people)
    return sums


def shifted(design, X, h, y, inside, weight, form, variance=False):
    g = inside
    fit = fit_logistic(X[g], y[g], weight[g], 1e-3)
    eta_fit = LogisticFolds((), fit, 1e-3)
    eta = np.where(g, eta_fit.whole(X), y)
    h_fit = LogisticFolds(
        (),
        fit_logistic(np.vstack([X, X]), np.repeat([1.0, 0.0], len(h)), np.r_[weight * h, weight * (1 - h)], 1e-6),
        1e-6,
    )
    reference = means(form, h[~g], eta[~g], weight[~g])
    at = centre(form, Sample(h=h[g], eta=eta[g], weight=weight[g], reference=reference))
    sources = Sources(h=h_fit, eta=eta_fit if form.uses_eta else None)
    rows = Rows(X, weight, np.zeros(len(h), dtype=int), np.flatnonzero(g))
    parts = level_means(design.blocks, rows, form, sources)
    people = Population(X=X, inside=g, count=weight, unit=np.ones(len(h)), h=h, eta=eta)
    sums = sums_of(people, form, design.blocks, 1 + X.shape[1])
    shifts = shift(design.blocks, parts, sums, at)
    if not variance:
        return shifts
    equations = {
        name: equation(X, target, p, w, penalty)
        for name, target, p, w, penalty in (
            ("eta", y, eta_fit.whole(X), weight * g, 1e-3),
            ("h", h, h_fit.whole(X), weight, 1e-6),
        )
    }
    return shifts, shift_variances(shifts, rows, people, at, sources, equations, sums)


def test_a_feature_takes_the_other_sample_s_shares():
    # Two independent features on a finite space: the shift of one is exact.
    p, q = np.array([0.7, 0.3]), np.array([0.2, 0.8])  # P(a) in the two samples
    other = np.array([0.5, 0.5])
    a, b = np.repeat([0.0, 1.0], 2), np.tile([0.0, 1.0], 2)
    cells = [np.repeat(s, 2) * np.tile(other, 2) * 1000 for s in (p, q)]
    columns = {"a": np.r_[a, a], "b": np.r_[b, b]}
    weight, inside = np.concatenate(cells), np.repeat([True, False], 4)
    design = make_design(columns, weight, inside)
    X = design.encode(columns)
    h, eta = expit(-1 + columns["a"] + columns["b"]), expit(0.2 - columns["a"] + 0.5 * columns["b"])
    for measure in MEASURES:
        form = functional(measure)
        reference = means(form, h[~inside], eta[~inside], weight[~inside])
        fits = [
            LogisticFolds((), fit_logistic(np.vstack([X, X]), np.repeat([1.0, 0.0], 8), np.r_[t, 1 - t], 1e-9), 1e-9)
            for t in (h, eta)
        ]
        sources = Sources(h=fits[0], eta=fits[1] if form.uses_eta else None)
        rows = Rows(X, weight, np.zeros(8, dtype=int), np.flatnonzero(inside))
        parts = level_means(design.blocks, rows, form, sources)
        people = Population(X=X, inside=inside, count=weight, unit=np.ones(8), h=h, eta=eta)
        sample = Sample(h=h[inside], eta=eta[inside], weight=weight[inside], reference=reference)
        moved, still = shift(design.blocks, parts, sums_of(people, form, design.blocks), centre(form, sample))
        before, after = value(form, sample), value(form, replace(sample, weight=weight[~inside]))
        assert moved.delta == pytest.approx(q - p)
        assert moved.change == pytest.approx(after - before, abs=1e-7)
        assert still.change == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_variance_agrees_with_the_bootstrap(measure):
    design, X, h, y, inside, _ = draw()
    form = functional(measure)
    shifts, variance = shifted(design, X, h, y, inside, np.ones(len(h)), form, variance=True)
    rng = np.random.default_rng(1)
    boot = []
    for _ in range(80):
        weight = np.zeros(len(h))
        for side in (inside, ~inside):
            rows = np.flatnonzero(side)
            weight[rows] = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)))
        boot.append([s.change for s in shifted(design, X, h, y, inside, weight, form)])
    assert np.sqrt(variance[:2]) == pytest.approx(np.std(boot, axis=0, ddof=1)[:2], rel=0.25)
    assert np.isfinite([s.change for s in shifts]).all()


def test_a_sample_without_the_feature_s_values_has_no_shift():
    design, X, h, y, inside, _ = draw()
    block = design.blocks[2]
    X[:, list(block.where)] = np.where(
        inside[:, None], X[:, list(block.where)], 7.0
    )  # nobody outside has a known level
    people = Population(X=X, inside=inside, count=np.ones(len(h)), unit=np.ones(len(h)), h=h, eta=y)
    one = np.ones(int(inside.sum()))
    at = centre(functional("sp"), Sample(h=h[inside], eta=y[inside], weight=one, reference=np.array([[0.3, 1.0]])))
    (found,) = shift([block], [np.zeros((3, 1, 2))], sums_of(people, functional("sp"), [block]), at)
    assert np.isnan(found.change)
    assert found.at is None
