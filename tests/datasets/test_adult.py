from __future__ import annotations

import hashlib
import importlib
from collections import Counter

import numpy as np
import pytest

from evenhand import datasets
from evenhand.datasets import registry
from evenhand.errors import UsageError


@pytest.fixture(scope="module")
def columns():
    return datasets.adult_table()


@pytest.fixture(scope="module")
def data():
    return datasets.adult()


def test_the_file_on_board_is_the_one_in_the_registry():
    path = registry.find(registry.source("adult"))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == registry.source("adult").sha256[0]
    assert path.stat().st_size < 600_000
    notice = path.with_name("NOTICE.md").read_text()
    for words in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0", "Changes"):
        assert words in notice


def test_the_table_has_the_published_counts(columns):
    assert len(columns) == 16
    assert Counter(columns["split"]) == {"train": 32561, "test": 16281}
    assert Counter(columns["income"]) == {"<=50K": 37155, ">50K": 11687}
    assert Counter(columns["sex"]) == {"Male": 32650, "Female": 16192}
    train = columns["split"] == "train"
    assert round(100 * float((columns["income"][train] == ">50K").mean()), 2) == 24.08


def test_missing_is_none_and_nothing_else_is(columns):
    texts = [c for c in columns.values() if c.dtype == object]
    complete = np.logical_and.reduce([[v is not None for v in c] for c in texts])
    assert int(complete.sum()) == 45222
    assert not any(v == "?" or v != v.strip() or v.endswith(".") for c in texts for v in set(c) - {None})
    race = Counter(columns["race"][complete])
    assert race == {
        "White": 38903,
        "Black": 4228,
        "Asian-Pac-Islander": 1303,
        "Amer-Indian-Eskimo": 435,
        "Other": 353,
    }


def test_rows_are_in_the_order_of_the_files(columns):
    assert columns["fnlwgt"][:3].tolist() == [77516, 83311, 215646]
    assert columns["fnlwgt"][32561:32563].tolist() == [226802, 89814]


def test_decisions_are_those_of_a_model_on_the_test_half(data, columns):
    test = columns["split"] == "test"
    assert data.rows.rows_in == data.rows.rows_used == 16281
    assert np.array_equal(data.outcome, (columns["income"][test] == ">50K").astype(float))
    assert np.array_equal(data.decision, (data.score >= 0.5).astype(float))
    assert data.score_kind == "probability"
    assert [a.name for a in data.attributes] == ["sex", "race"]
    sex = data.attribute("sex")
    assert np.array_equal(np.asarray(sex.labels)[sex.codes], columns["sex"][test].astype(str))
    assert set(data.features).isdisjoint({"sex", "race", "income", "fnlwgt"})


def test_the_model_is_as_good_as_scikit_learns(data, columns):
    linear_model = importlib.import_module("sklearn.linear_model")
    from evenhand.datasets.decided import _design, _known

    train = columns["split"] == "train"
    design = _design({k: _known(v) for k, v in columns.items()}, train)
    model = linear_model.LogisticRegression(C=1.0, tol=1e-10, max_iter=500, solver="newton-cholesky")
    model.fit(design[train], columns["income"][train] == ">50K")
    np.testing.assert_allclose(data.score, model.predict_proba(design[~train])[:, 1], rtol=0, atol=1e-6)
    assert float((data.decision == data.outcome).mean()) > 0.85


def test_two_calls_give_the_same_data(data):
    again = datasets.load("adult")
    assert again.fingerprint == data.fingerprint
    assert np.array_equal(again.score, data.score)


def test_an_unknown_model_is_refused():
    with pytest.raises(UsageError, match=r"no model called `forest`.*`logistic`"):
        datasets.adult(model="forest")
