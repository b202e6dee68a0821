"""Grids over a number: fine enough that what its distribution does is integrated right."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.kernels.influence.design import make_design
from evenhand.kernels.influence.value_grids import ALL, refine


def grid(value, inside, weight=None, **other):
    weight = np.ones(len(value)) if weight is None else weight
    columns = {"x": value, **other}
    design = make_design(columns, weight, inside)
    return design, refine(design, columns, weight, inside)


@pytest.mark.parametrize(
    "curve", [np.log1p, lambda v: (v > 5000) * 1.0, lambda v: 1 / (1 + np.exp(-(v - 3000) / 800))], ids=range(3)
)
def test_means_of_a_curve_are_those_of_all_values(curve):
    # Most people have none of it and a few have much, like gains of capital: nine quantiles see one value.
    rng = np.random.default_rng(0)
    n = 4000
    inside = np.arange(n) % 3 == 0
    value = np.where(rng.random(n) < np.where(inside, 0.04, 0.12), rng.lognormal(8.5, 1.0, n).round(), 0.0)
    _, (block,) = grid(value, inside)
    raw = np.array([r[0] for r in block.raw], dtype=float)
    part = np.interp(value.clip(value[inside].min(), value[inside].max()), raw, curve(raw))
    exact = curve(value.clip(0, value[inside].max()))
    difference = [v[inside].mean() - v[~inside].mean() for v in (part, exact)]
    assert difference[0] == pytest.approx(difference[1], rel=0.1)


def test_few_values_are_all_there_and_categories_stay():
    rng = np.random.default_rng(0)
    inside = np.arange(600) % 2 == 0
    kind = rng.choice(np.array(["u", "v"], dtype=object), 600)
    design, (number, category) = grid(rng.integers(0, ALL, 600).astype(float), inside, kind=kind)
    assert [r[0] for r in number.raw] == list(range(ALL))
    assert category is design.blocks[1]


def test_the_grid_stays_in_the_range_of_the_sample_and_holds_the_usual_values():
    rng = np.random.default_rng(0)
    inside = np.arange(900) % 2 == 0
    value = rng.normal(size=900) + 3 * ~inside
    value[3] = np.nan
    value[4] = np.nan
    design, (block,) = grid(value, inside)
    found = np.array([r[0] for r in block.raw], dtype=float)
    assert np.isnan(found[-1])
    assert found[:-1].min() == np.nanmin(value[inside])
    assert found[:-1].max() == np.nanmax(value[inside])
    assert np.all(np.diff(found[:-1]) > 0)
    assert {r[0] for r in design.blocks[0].raw[:-1]} <= {r[0] for r in block.raw}


def test_rows_may_be_counted_instead_of_repeated_and_stand_in_any_order():
    rng = np.random.default_rng(0)
    value, count = rng.normal(size=300).round(2), rng.integers(1, 4, 300)
    inside = np.arange(300) % 2 == 0
    _, (counted,) = grid(value, inside, count.astype(float))
    rows = rng.permutation(np.repeat(np.arange(300), count))
    _, (repeated,) = grid(value[rows], inside[rows])
    assert counted.raw == repeated.raw
