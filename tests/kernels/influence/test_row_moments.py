"""Sums over rows: the same for any split and order, and squares against the rows one by one."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from evenhand.kernels.influence.design import make_design
from evenhand.kernels.influence.functionals import Sample, centre, centre_at, functional, means, psi
from evenhand.kernels.influence.linearised import equation, score_covariance
from evenhand.kernels.influence.nuisance import LogisticFolds
from evenhand.kernels.influence.row_moments import Places, Population, RowMoments, integrands, psi_weights
from evenhand.kernels.influence.set_features import toggle
from evenhand.kernels.influence.shifted_features import level_means, shift, shift_variances
from evenhand.kernels.influence.shifted_predictions import Rows, Sources
from evenhand.kernels.influence.value_grids import refine
from evenhand.kernels.shared.logistic import fit_logistic

MEASURES = ["fpr", "sp", "da", {"accuracy": 1.0, "fnr": 0.5}, {"fdr": 2.0, "da": -1.0}]
PRODUCTS = ((0, 1),)


def draw(n=400, seed=0):
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.5
    number = (rng.normal(size=n) + 0.4 * inside).round(2)
    number[rng.random(n) < 0.1] = np.nan
    columns = {
        "yes": (rng.random(n) < np.where(inside, 0.7, 0.3)).astype(float),
        "number": number,
        "word": rng.choice(np.array(["u", "v", "w"], dtype=object), n),
    }
    columns["word"][(~inside) & (rng.random(n) < 0.1)] = "only outside"
    design = make_design(columns, np.ones(n), inside)
    X = design.encode(columns)
    h = expit(-0.5 + 1.2 * columns["yes"] + 0.6 * np.nan_to_num(number))
    people = Population(
        X=X, inside=inside, count=rng.integers(1, 4, n), unit=rng.choice([0.5, 1.0, 2.0], n), h=h, eta=rng.random(n)
    )
    return people, refine(design, columns, people.weight, inside)


def tables(sums):
    return [np.asarray(table, dtype=float) for table in sums._tables()]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 399), max_size=5), st.integers(0, 10_000), st.sampled_from(MEASURES))
def test_any_split_and_any_order_give_one_answer(cuts, seed, measure):
    people, blocks = draw()
    form = functional(measure)

    def empty():
        return RowMoments(form, blocks, 2 + people.X.shape[1], PRODUCTS, squares=True)

    whole = empty()
    whole.add(people)
    order = np.random.default_rng(seed).permutation(400)
    parts = []
    for rows in np.split(order, sorted(cuts)):
        part = empty()
        part.add(people.take(rows))
        parts.append(part)
    together = empty()
    for part in parts:
        together.merge(part)
    assert together.rows.tolist() == whole.rows.tolist()
    for one, other in zip(tables(whole), tables(together), strict=True):
        assert other == pytest.approx(one, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_means_shares_and_psi_are_those_of_the_rows(measure):
    people, blocks = draw()
    form = functional(measure)
    sums = RowMoments(form, blocks)
    sums.add(people)
    g, w = people.inside, people.weight
    for side, rows in enumerate((g, ~g)):
        assert sums.means(side) == pytest.approx(means(form, people.h[rows], people.eta[rows], w[rows]))
    reference = means(form, people.h[~g], people.eta[~g], w[~g])
    at = centre(form, Sample(h=people.h[g], eta=people.eta[g], weight=w[g], reference=reference))
    assert centre_at(form, sums.means(0), sums.means(1)).ratio == pytest.approx(at.ratio)
    z = integrands(form, people.h, people.eta)
    assert z @ psi_weights(at) == pytest.approx(psi(at, people.h, people.eta), abs=1e-12)
    word = people.X[:, list(blocks[2].where)]
    for v, level in enumerate(blocks[2].levels):
        at_level = (word == level).all(axis=1)
        known = np.any([(word == one).all(axis=1) for one in blocks[2].levels], axis=0)
        for side, rows in enumerate((g, ~g)):
            share = w[rows & at_level].sum() / w[rows & known].sum()
            assert sums.shares(2)[side, v] == pytest.approx(share)


def plainly_read(block, part, profile):
    """Give each row its level's value, interpolating between grid points; 0 for a level not in the sample."""
    if not block.graded:
        found = [np.flatnonzero((block.levels == row).all(axis=1)) for row in part]
        return np.array([profile[at[0]] if at.size else 0.0 for at in found])
    absent = block.levels[:, -1] == 1 if block.gaps else np.zeros(len(block.levels), dtype=bool)
    out = np.interp(part[:, 0], block.levels[~absent, 0], profile[~absent])
    if block.gaps:
        out = np.where(part[:, -1] == 1, profile[absent][0] if absent.any() else 0.0, out)
    return out


def test_rows_between_grid_points_are_read_as_straight_lines():
    people, blocks = draw()
    rng = np.random.default_rng(1)
    for block in blocks:
        part = people.X[:, list(block.where)]
        profile = rng.normal(size=len(block.levels))
        plain = plainly_read(block, part, profile)
        assert Places(block, part).read(profile) == pytest.approx(plain, abs=1e-12)
        strange = rng.random(len(part)) < 0.3
        assert Places(block, part, strange).read(profile) == pytest.approx(np.where(strange, 0.0, plain), abs=1e-12)


def fitted(people, y, rows):
    """Return fits on some rows, with equations over all rows that are 0 outside them."""
    g = people.inside & rows
    Z = np.concatenate([people.X, people.X[:, [0]] * people.X[:, [1]]], axis=1)
    eta = LogisticFolds((), fit_logistic(Z[g], y[g], people.weight[g], 1e-3), 1e-3, PRODUCTS)
    twice = np.concatenate([people.weight * people.h, people.weight * (1 - people.h)]) * np.tile(rows, 2)
    both = fit_logistic(np.vstack([people.X, people.X]), np.repeat([1.0, 0.0], len(y)), twice, 1e-3)
    h = LogisticFolds((), both, 1e-3)
    people = replace(people, eta=np.where(people.inside, eta.whole(people.X), y))
    equations = {
        "eta": equation(people.X, y, eta.whole(people.X), people.weight * g, 1e-3, PRODUCTS),
        "h": equation(people.X, people.h, h.whole(people.X), people.weight * rows, 1e-3),
    }
    return people, Sources(h=h, eta=eta), equations


@pytest.mark.parametrize("measure", ["fpr", "da", {"accuracy": 1.0, "fnr": 0.5}, {"fdr": 2.0, "da": -1.0}], ids=str)
def test_variances_from_squares_are_those_of_the_rows_one_by_one(measure):
    people, blocks = draw()
    form, n = functional(measure), len(people.h)
    sampled = np.arange(n) < 250
    y = (np.random.default_rng(3).random(n) < 0.2 + 0.5 * people.h).astype(float)
    people, sources, equations = fitted(people, y, sampled)
    if not form.uses_eta:
        sources, equations = replace(sources, eta=None), {"h": equations["h"]}
    averaged = np.flatnonzero(people.inside & sampled)
    width = 2 + people.X.shape[1]

    def variances(some, sums):
        at = centre_at(form, sums.means(0), sums.means(1))
        rows = Rows(some.X, some.weight, np.zeros(len(some.h), dtype=np.int64), averaged)
        mine = {k: replace(e, residual=e.residual[: len(some.h)]) for k, e in equations.items()}
        toggles = toggle(blocks, rows, at, sources, linear=True)
        covariance = score_covariance(toggles, rows, some, at, mine, sums)
        shifts = shift(blocks, level_means(blocks, rows, form, sources), sums, at)
        return covariance, shift_variances(shifts, rows, some, at, sources, mine, sums), some

    every = RowMoments(form, blocks, width, PRODUCTS)
    every.add(people)
    plain = variances(people, every)
    sample = people.take(np.flatnonzero(sampled))
    sums, rest = (RowMoments(form, blocks, width, PRODUCTS, squares=s) for s in (False, True))
    sums.add(sample)
    rest.add(people.take(np.flatnonzero(~sampled)))
    sums.merge(rest)
    split = variances(sample, sums)
    # The allowance for coefficients counts the rows at hand, which differ.
    columns = {"fit": np.zeros((1, 1 + people.X.shape[1] + (form.uses_eta and len(PRODUCTS))))}
    allowances = [float(one[2].corrected(np.ones(1), columns)[0]) for one in (plain, split)]
    for k in (0, 1):
        assert split[k] / allowances[1] == pytest.approx(plain[k] / allowances[0], rel=1e-9, abs=1e-15)
    assert np.all(plain[1] > 0)


def test_fields_of_a_population_are_cut_together():
    people, _ = draw()
    some = people.take(np.array([3, 1]))
    for f in fields(Population):
        assert getattr(some, f.name).tolist() == getattr(people, f.name)[[3, 1]].tolist()
