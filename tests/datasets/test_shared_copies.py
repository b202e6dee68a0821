"""The known data sets as they are, where a copy is at hand."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand import datasets

HERE = {row.name: row for row in datasets.known() if row.where.startswith("found")}


def needs(name):
    return pytest.mark.skipif(name not in HERE, reason=f"no copy of `{name}` in the data folders")


@pytest.mark.parametrize("name", [pytest.param(r.name, marks=needs(r.name)) for r in datasets.known()[1:]])
def test_every_copy_is_the_known_one(name):
    columns = datasets.table(name)
    assert {len(c) for c in columns.values()} == {HERE[name].rows}


def _rates(data, label):
    race = data.attribute("race")
    inside = race.codes == race.labels.index(label)
    positive = data.outcome == 1
    fpr = data.decision[inside & ~positive].mean()
    fnr = 1 - data.decision[inside & positive].mean()
    return round(100 * fpr, 2), round(100 * fnr, 2)


@needs("compas")
def test_compas_gives_the_published_error_rates_on_all_rows():
    # ProPublica 2016: 44.9 and 23.5 % false positives, 28.0 and 47.7 % false negatives.
    data = datasets.compas(filtered=False)
    assert data.rows.rows_used == 7214
    assert _rates(data, "African-American") == (44.85, 27.99)
    assert _rates(data, "Caucasian") == (23.45, 47.72)


@needs("compas")
def test_compas_filtered_as_published():
    data = datasets.load("compas")
    assert data.rows.rows_used == 6172
    assert round(100 * data.outcome.mean(), 2) == 45.51
    race, sex = data.attribute("race"), data.attribute("sex")
    counts = dict(zip(race.labels, np.bincount(race.codes), strict=True))
    assert counts == {
        "African-American": 3175,
        "Caucasian": 2103,
        "Hispanic": 509,
        "Other": 343,
        "Asian": 31,
        "Native American": 11,
    }
    assert dict(zip(sex.labels, np.bincount(sex.codes), strict=True)) == {"Female": 1175, "Male": 4997}
    assert np.array_equal(data.decision, (data.score >= 0.5).astype(float))


@needs("compas-violent")
def test_compas_violent_filtered_as_published():
    data = datasets.load("compas-violent")
    assert data.rows.rows_used == 4020
    assert round(100 * data.outcome.mean(), 2) == 16.22
