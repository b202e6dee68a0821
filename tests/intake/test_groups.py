from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData, read


def of(groups: Any, **options: Any) -> AuditData:
    n = len(next(iter(groups.values())))
    return AuditData.from_arrays(outcome=np.arange(n) % 2, groups=groups, **options)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([2, 1, 1, 2], ("1", "2")),
        ([2.0, 1.0, 1.0, 2.0], ("1", "2")),
        ([0.5, 1.0, 1.0, 0.5], ("0.5", "1")),
        ([True, False, True, False], ("False", "True")),
        (["b", "a", "b", "a"], ("a", "b")),
        (np.array(["b", "a", "b", "a"]), ("a", "b")),
        (pd.Series([1, 2, None, 1]), ("1", "2")),
        (pd.Categorical(["x", "y", "x", "y"], categories=["z", "y", "x"]), ("x", "y")),
        (pd.Series(pd.Categorical([3, 4, 3, 4])), ("3", "4")),
        (pl.Series(["x", None, "y", "x"]), ("x", "y")),
        ([1, "1", "b", "b"], ("1", "b")),
        ([datetime.date(2020, 1, 2), datetime.date(2021, 1, 1)] * 2, ("2020-01-02", "2021-01-01")),
        (np.array(["2020-01-02", "2021-01-01"] * 2, dtype="datetime64[D]"), ("2020-01-02", "2021-01-01")),
        (pd.Series(pd.to_datetime(["2020-01-02", "2021-01-01"] * 2)), ("2020-01-02", "2021-01-01")),
    ],
)
def test_labels_are_texts_and_sorted(values: Any, labels: tuple[str, ...]) -> None:
    attribute = of({"g": values}).attribute("g")
    assert attribute.labels == labels
    assert attribute.group_name(0) == f"g={labels[0]}"


def test_codes_follow_the_labels() -> None:
    attribute = of({"g": ["b", "a", "c", "a"]}).attribute("g")
    assert [attribute.labels[c] for c in attribute.codes] == ["b", "a", "c", "a"]


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, "", "  "])
def test_missing_labels(gap: Any) -> None:
    values = ["a", gap, "b", "a"]
    dropped = of({"sex": values})
    assert dropped.rows.dropped == {"`sex` is missing": 1}
    kept = of({"sex": values}, missing="group")
    assert kept.attribute("sex").labels == ("(missing)", "a", "b")
    assert kept.attribute("sex").codes.tolist() == [1, 0, 2, 1]
    with pytest.raises(DataError, match=r"Column `sex` is missing in 1 row. Drop them with `missing='drop'`"):
        of({"sex": values}, missing="error")


def test_a_row_counts_under_its_first_reason() -> None:
    data = AuditData.from_arrays(
        outcome=[None, 1, 0, 1, 0, 1],
        groups={"sex": [None, None, "a", "b", "a", "b"], "race": [None, None, None, "x", "y", "x"]},
    )
    assert data.rows.dropped == {"`outcome` is missing": 1, "`sex` is missing": 1, "`race` is missing": 1}
    assert data.rows.rows_in == data.rows.rows_used + sum(data.rows.dropped.values())


def test_groups_without_rows_left_disappear() -> None:
    data = AuditData.from_arrays(outcome=[None, 1, 0], groups={"g": ["a", "b", "c"]})
    assert data.attribute("g").labels == ("b", "c")


@pytest.mark.parametrize("values", [[25, 24, 40, 39.5, None], np.array([25, 24.9, 1000, 39, np.nan])])
def test_cuts_are_closed_on_the_left_and_in_order(values: Any) -> None:
    attribute = of({"age": values}, cuts={"age": [25, 40]}).attribute("age")
    assert attribute.labels == ("<25", "25–40", ">=40")
    assert attribute.codes.tolist() == [1, 0, 2, 1]


def test_cut_intervals_without_rows_disappear() -> None:
    assert of({"age": [1, 50, 2, 60]}, cuts={"age": [25, 40]}).attribute("age").labels == ("<25", ">=40")


@pytest.mark.parametrize("points", [[40, 25], [], [1, 1], [float("nan")]])
def test_bad_cuts(points: list[float]) -> None:
    with pytest.raises(UsageError, match=r"`cuts=` for `age` must be increasing finite numbers"):
        of({"age": [1, 50]}, cuts={"age": points})


def test_cuts_of_text_and_of_unknown_columns() -> None:
    with pytest.raises(DataError, match=r"Column `age` is text .* cannot be cut"):
        of({"age": ["old", "young"]}, cuts={"age": [25]})
    with pytest.raises(UsageError, match=r"`agee`, which is not in `groups=` or `strata=`. Did you mean `age`"):
        of({"age": [1, 2]}, cuts={"agee": [25]})
    with pytest.raises(UsageError, match=r"`age` is in `cuts=` and in `continuous=`"):
        of({"age": [1, 2]}, cuts={"age": [25]}, continuous="age")


def test_continuous_attributes_stay_numbers() -> None:
    table = {"y": [0, 1, 0, 1], "age": [30, 40, None, 50], "sex": ["a", "b", "a", "b"]}
    for groups in (["sex", "age"], ["sex"]):
        data = read(table, outcome="y", groups=groups, continuous=["age"])
        assert [a.name for a in data.attributes] == ["sex"]
        assert data.continuous["age"].tolist() == [30, 40, 50]
        assert data.rows.dropped == {"`age` is missing": 1}
    alone = read(table, outcome="y", groups=[], continuous="age")
    assert alone.attributes == ()
    with pytest.raises(DataError, match=r"Continuous attribute `age` needs rows, not cells. Pass `rows='keep'`"):
        read(table, outcome="y", groups="sex", continuous="age", rows="cells")
    with pytest.raises(DataError, match=r"Column `sex` must hold numbers to be used as continuous; got text such as"):
        read(table, outcome="y", groups=[], continuous="sex")


def test_intersections_cross_what_occurs() -> None:
    groups = {"sex": ["F", "M", "F", "M"], "race": ["x", "y", "y", "y"], "old": [0, 1, 1, 0]}
    data = of(groups, intersections=True)
    assert [a.name for a in data.attributes] == ["sex", "race", "old", "sex × race × old"]
    crossed = of(groups, intersections=[("sex", "race")]).attribute("sex × race")
    assert crossed.labels == ("F & x", "F & y", "M & y")
    assert crossed.codes.tolist() == [0, 2, 1, 2]
    assert [a.name for a in of({"sex": groups["sex"]}, intersections=True).attributes] == ["sex"]
    with pytest.raises(UsageError, match=r"`intersections=` names `rase`.*Did you mean `race`"):
        of(groups, intersections=[("sex", "rase")])
    with pytest.raises(UsageError, match=r"at least 2 different columns"):
        of(groups, intersections=[("sex", "sex")])


def test_one_group_is_refused_with_the_reason() -> None:
    with pytest.raises(
        DataError, match=r"`g` has 1 group \(`a`\) after dropping 2 rows with missing labels; at least 2"
    ):
        of({"g": ["a", None, "a", None]})
    with pytest.raises(DataError, match=r"`g` has 1 group \(`a`\); at least 2 are needed. Check `groups=`\."):
        of({"g": ["a", "a"]})


def test_no_label_at_all_is_refused() -> None:
    for values in ([None, None], [float("nan"), float("nan")], ["", ""]):
        with pytest.raises(DataError, match=r"All 2 rows are dropped \(`g` is missing: 2\)"):
            of({"g": values})


def test_an_identifier_is_refused() -> None:
    for values in (list(range(1001)), [f"id{i}" for i in range(1001)]):
        with pytest.raises(DataError, match=r"Column `id` has 1,001 groups; at most 1,000 .* identifier"):
            of({"id": values})
    assert len(of({"id": list(range(1000))}).attribute("id").labels) == 1000


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.setattr("evenhand.intake.engines.one_pass.MOST_CELLS", 50)
    with duckdb.connect() as connection:
        table = connection.sql("SELECT i % 2 AS y, i % 3 AS g, 'n' || i AS id FROM range(100) r(i)")
        with pytest.raises(DataError, match=r"more than 50 cells; column `id` looks like an identifier"):
            read(table, outcome="y", groups=["g", "id"])


def test_attribute_by_name() -> None:
    data = of({"sex": ["a", "b"]})
    with pytest.raises(UsageError, match=r"no attribute `sexx`. Did you mean `sex`"):
        data.attribute("sexx")
