"""The projection audit of rows that stay where they are says what it says of rows in memory."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh
from evenhand.audits.projection import batched
from evenhand.audits.projection.batched import _Records
from evenhand.errors import DataError, UsageError
from evenhand.models import distances

FEATURES = ["x", "z", "job"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 5000
    sex = rng.choice(["F", "M"], n)
    x, z = rng.normal(size=n) + 0.3 * (sex == "M"), rng.normal(size=n)
    return pd.DataFrame(
        {
            "y": (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int),
            "sex": sex,
            "race": rng.choice(["a", "b", "c"], n),
            "x": x,
            "z": z,
            "job": rng.choice(["clerk", "smith"], n),
            "w": rng.choice([0.5, 1.0, 2.5], n),
            "times": rng.integers(1, 4, n),
            "far": np.abs(x),
            "d": (x > 0).astype(int),
        }
    )


def fitted(kind: str, table: pd.DataFrame) -> tuple[Any, list[str]]:
    if kind == "pipeline":
        encode = make_column_transformer((StandardScaler(), ["x", "z"]), (OneHotEncoder(), ["job"]))
        return make_pipeline(encode, LogisticRegression()).fit(table[FEATURES], table["y"]), FEATURES
    made = {
        "logistic": LogisticRegression(),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "forest": RandomForestClassifier(5, max_depth=3, random_state=0),
    }[kind]
    return made.fit(table[["x", "z"]], table["y"]), ["x", "z"]


def both(table: pd.DataFrame, rows: dict[str, Any], asked: dict[str, Any]) -> tuple[Any, Any]:
    source = duckdb.from_df(table)
    kept, batched = eh.read(source, **rows, rows="keep"), eh.read(source, **rows, rows="batches")
    return eh.audit_projection(kept, rng=0, **asked), eh.audit_projection(batched, rng=0, **asked)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.intake.engines.duck.BATCH_ROWS", 2048)


@pytest.mark.parametrize(
    ("kind", "more", "asked"),
    [
        ("logistic", {}, {}),
        ("logistic", {"groups": ["sex", "race"]}, {"criterion": "equalized_odds", "attribute": ["sex", "race"]}),
        ("logistic", {"weight": "w"}, {"criterion": "statistical_parity"}),
        ("logistic", {"weight": "times", "weight_kind": "frequency"}, {"distances": {"scale": "range", "norm": "l1"}}),
        ("logistic", {}, {"distances": {"cost": {"sex=F": 2.0}}}),
        ("pipeline", {}, {}),
        ("tree", {}, {"epsilon": 0.01}),
    ],
)
def test_numbers_are_those_of_rows_in_memory(
    table: pd.DataFrame, kind: str, more: dict[str, Any], asked: dict[str, Any]
) -> None:
    model, features = fitted(kind, table)
    rows = {"outcome": "y", "groups": "sex", "features": features, **more}
    kept, batched = both(table, rows, {"model": model, **asked})
    assert len(kept) == len(batched)
    for one, two, seen, told in zip(kept, batched, kept.evidence, batched.evidence, strict=True):
        assert (one.measure, one.groups, one.counts) == (two.measure, two.groups, two.counts)
        assert two.estimate == pytest.approx(one.estimate, rel=1e-9, nan_ok=True)
        assert two.pvalue == pytest.approx(one.pvalue, rel=1e-7, nan_ok=True)
        assert seen.changes is not None
        assert told.changes is not None
        assert told.changes.people == seen.changes.people
        assert told.changes.mean_distance == pytest.approx(seen.changes.mean_distance, rel=1e-9, nan_ok=True)
        assert [line.people for line in told.changes.by_group] == [line.people for line in seen.changes.by_group]


def test_a_search_takes_rows_that_are_drawn(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    model, features = fitted("forest", table)
    few = table.iloc[:400]
    rows = {"outcome": "y", "groups": "sex", "features": features}
    kept, batched = both(few, rows, {"model": model})
    # All rows are drawn, in another order.
    assert batched[0].estimate == pytest.approx(kept[0].estimate, rel=1e-9)
    assert not any("drawn by their content" in w for w in batched.evidence[0].warnings)
    monkeypatch.setattr("evenhand.audits.projection.batched.SEARCHED_ROWS", 150)
    monkeypatch.setattr("evenhand.models.adapter.ASKED_ROWS", 150)
    for where in ("batches", "keep"):
        drawn = eh.audit_projection(eh.read(duckdb.from_df(few), **rows, rows=where), model=model, rng=0)
        assert any("150 rows, drawn by their content, stand for all 400" in w for w in drawn.evidence[0].warnings)
    linear, features = fitted("logistic", table)
    data = eh.read(duckdb.from_df(few), **{**rows, "features": features}, rows="keep")
    assert not any("drawn" in w for w in eh.audit_projection(data, model=linear, rng=0).evidence[0].warnings)


def test_a_score_that_is_linear_on_the_first_rows_alone(table: pd.DataFrame) -> None:
    ordered = table.assign(x=np.sort(table["x"].to_numpy())).reset_index(drop=True)

    def bent(X: Any) -> Any:
        return np.where(X[:, 0] < 0.1, X[:, 0], X[:, 0] ** 3 + 0.099) + 0.5 * X[:, 1]

    rows = {"outcome": "y", "groups": "sex", "features": ["x", "z"]}
    asked = {"model": bent, "distances": {"threshold": 0.2}}
    data = eh.read(duckdb.from_df(ordered), **rows, rows="batches")
    first = data.batches.first()
    assert first.features["x"].max() < 0.1
    kept, batched = both(ordered, rows, asked)
    assert batched.evidence[0].distance["method"] == kept.evidence[0].distance["method"] == "search"
    assert batched[0].estimate == pytest.approx(kept[0].estimate, rel=1e-9)


def test_distances_of_a_linear_score_take_one_walk_in_any_norm_and_unit(table: pd.DataFrame) -> None:
    model, features = fitted("logistic", table)
    rows = {"outcome": "y", "groups": "sex", "features": features}
    for norm in ("l2", "l1", "linf"):
        for scale in ("std", "range", "none", (0.5, 2.0)):
            kept, batched = both(table, rows, {"model": model, "distances": {"norm": norm, "scale": scale}})
            assert batched[0].estimate == pytest.approx(kept[0].estimate, rel=1e-12)
            assert batched.evidence[0].distance["method"] == "linear"


def test_features_without_numbers(table: pd.DataFrame) -> None:
    words = table.assign(y=((table["job"] == "clerk") | (table["x"] > 1)).astype(int))
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(words[["job", "race"]], words["y"])
    rows = {"outcome": "y", "groups": "sex", "features": ["job", "race"]}
    kept, batched = both(words, rows, {"model": model})
    assert kept[0].counts == batched[0].counts
    assert (kept[0].verdict, kept[0].reason) == (batched[0].verdict, batched[0].reason)


def test_no_boundary_is_searched_to_see_that_a_score_is_not_linear(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, features = fitted("forest", table)
    searched: list[int] = []
    search = distances.search_boundary

    def counted(decide: Any, margin: Any, rows: Any, *rest: Any, **more: Any) -> Any:
        searched.append(len(rows))
        return search(decide, margin, rows, *rest, **more)

    monkeypatch.setattr(distances, "search_boundary", counted)
    monkeypatch.setattr(batched, "_TRIAL_ROWS", 100)
    few = duckdb.from_df(table.iloc[:400])
    data = eh.read(few, outcome="y", groups="sex", features=features, rows="batches")
    eh.audit_projection(data, model=model, rng=0)
    assert searched == [100, 400]  # some rows to see how, and then all


def test_a_column_of_distances(table: pd.DataFrame) -> None:
    rows = {"outcome": "y", "decision": "d", "groups": "sex", "features": ["far"]}
    kept, batched = both(table, rows, {"distance": "far", "criterion": "statistical_parity"})
    assert batched[0].estimate == pytest.approx(kept[0].estimate, rel=1e-12)
    assert batched[0].pvalue == pytest.approx(kept[0].pvalue, rel=1e-9)
    data = eh.read(duckdb.from_df(table), **rows, rows="batches")
    with pytest.raises(UsageError, match="`distance` must be the name of a feature column"):
        eh.audit_projection(data, distance=np.ones(5000))


def test_decisions_of_another_model_are_refused(table: pd.DataFrame) -> None:
    model, features = fitted("logistic", table)
    data = eh.read(duckdb.from_df(table), outcome="y", decision="d", groups="sex", features=features, rows="batches")
    with pytest.raises(DataError, match=r"disagree on \d+ of 5000 rows"):
        eh.audit_projection(data, model=model)


@pytest.mark.parametrize("criterion", ["equal_opportunity", "statistical_parity", "equalized_odds"])
def test_distances_counted_together_keep_their_bound(
    table: pd.DataFrame, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, features = fitted("logistic", table)
    rows = {"outcome": "y", "groups": ["sex", "race"], "features": features}
    kept, _ = both(table, rows, {"model": model, "criterion": criterion})
    monkeypatch.setattr("evenhand.audits.projection.batched.EXACT_ROWS", 1000)
    monkeypatch.setattr("evenhand.audits.projection.EXACT_ROWS", 1000)
    monkeypatch.setattr("evenhand.audits.projection.batched.DIGITS", 6)
    data = eh.read(duckdb.from_df(table), **rows, rows="batches")
    binned = eh.audit_projection(data, model=model, criterion=criterion, rng=0)
    assert any("were counted together at their mean" in note for note in binned.notes)
    for one, two, told in zip(kept, binned, binned.evidence, strict=True):
        assert one.estimate > 0
        assert abs(two.estimate / one.estimate - 1) <= 2**-6
        assert told.distance["largest_relative_error"] == 2**-6
        assert two.counts == one.counts
        assert two.pvalue == pytest.approx(one.pvalue, rel=0.05)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 90), min_size=1, max_size=8), st.sampled_from([None, 6]))
@settings(max_examples=25, deadline=None)
def test_records_do_not_depend_on_division_or_order(seed: int, sizes: list[int], digits: int | None) -> None:
    rng = np.random.default_rng(seed)
    n = sum(sizes) + 2
    data = eh.AuditData.from_arrays(
        outcome=rng.integers(0, 2, n),
        groups={"g": np.arange(n) % 2},
        features={"far": rng.exponential(size=n).round(1), "yes": rng.integers(0, 2, n)},
        weight=0.5 + np.arange(n) % 2,
        weight_kind="sampling",
    )

    def measure(batch: eh.AuditData) -> tuple[Any, Any]:
        return batch.features["yes"].astype(np.int64), batch.features["far"]

    whole, parts = _Records(measure, digits), []
    whole.add(data)
    for rows in np.split(rng.permutation(n), np.cumsum(sizes)):
        part = _Records(measure, digits)
        if rows.size:
            part.add(data.take(rows))
        parts.append(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched, "_WAITING", 10)
        while len(parts) > 1:
            last = parts.pop(int(rng.integers(len(parts))))
            parts[int(rng.integers(len(parts)))].merge(last)
    (one, near), (two, far) = whole.data(data), parts[0].data(data)
    np.testing.assert_array_equal(one.count, two.count)
    np.testing.assert_array_equal(one.attributes[0].codes, two.attributes[0].codes)
    np.testing.assert_array_equal(one.decision, two.decision)
    np.testing.assert_allclose(near, far, rtol=1e-12)
    np.testing.assert_allclose(one.weight_square, two.weight_square, rtol=1e-12)
    assert float(two.count @ two.weight) == pytest.approx(float(data.weight.sum()))
    # Against plain sums over rows.
    assert float(two.count * two.weight @ far) == pytest.approx(float(data.weight @ data.features["far"]))
