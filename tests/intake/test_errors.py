"""Bad input gets one clear sentence, whatever holds it."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData, read

G = {"g": ["a", "b", "a", "b"]}
NAN = float("nan")


def scored(scores: Any, where: str = "rows", **options: Any) -> AuditData:
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "s": scores, **G})
    options = {"outcome": "y", "score": "s", "groups": "g"} | options
    if where != "duckdb":
        return read(frame, rows="keep" if where == "rows" else "cells", **options)
    with duckdb.connect() as connection:
        return read(connection.from_df(frame), **options)


@pytest.mark.parametrize("where", ["rows", "cells", "duckdb"])
class TestScores:
    @pytest.mark.parametrize("bad", [NAN, None, float("inf"), -float("inf")])
    def test_scores_must_be_finite(self, where: str, bad: Any) -> None:
        with pytest.raises(DataError, match=r"Score `s` is missing, NaN or infinite in 2 rows of those used"):
            scored([0.1, bad, bad, 0.2], where)

    def test_scores_must_be_numbers(self, where: str) -> None:
        with pytest.raises(DataError, match=r"Column `s` must hold numbers to be used as score; got text"):
            scored(["high", "low", "low", "high"], where)

    def test_scores_outside_the_unit_interval_are_real(self, where: str) -> None:
        assert scored([0.0, 1.0, 0.5, 0.2], where).score_kind == "probability"
        assert scored([0.0, 1.2, 0.5, 0.2], where).score_kind == "real"
        assert scored([-0.1, 1.0, 0.5, 0.2], where).score_kind == "real"

    def test_a_constant_score(self, where: str) -> None:
        for value in (0.5, 7.0):
            data = scored([value] * 4, where, score_bins=2)
            assert data.score is not None
            assert set(data.score) <= {value, 0.75}, "0.75 is the middle of the second bin of [0, 1]"

    def test_a_score_missing_where_the_row_is_dropped_anyway(self, where: str) -> None:
        frame = pd.DataFrame({"y": [0, None, 0, 1, 1], "s": [0.1, NAN, 0.2, 0.3, 0.4], "g": [*"ababb"]})
        with duckdb.connect() as connection:
            source = connection.from_df(frame) if where == "duckdb" else frame
            mode = "keep" if where == "rows" else "cells"
            data = read(source, outcome="y", score="s", groups="g", rows=mode)
        assert data.rows.dropped == {"`y` is missing": 1}

    def test_threshold_makes_a_decision(self, where: str) -> None:
        data = scored([0.1, 0.5, 0.49, 0.9], where, threshold=0.5)
        assert data.decision is not None
        assert data.count[data.decision == 1].sum() == 2
        assert "Decision is 1 where `s` >= 0.5." in data.notes
        assert data.columns["decision"] == "s >= 0.5"


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"groups": []}, UsageError, "`groups=` is empty"),
        ({"outcome": None}, UsageError, "None of `outcome=`, `decision=` and `score=` is given"),
        ({"missing": "keep"}, UsageError, "`missing` must be one of `drop`, `group`, `unknown`, `error`; got 'keep'"),
        ({"rows": "all"}, UsageError, "`rows` must be one of"),
        ({"weight_kind": "survey"}, UsageError, "`weight_kind` must be one of"),
        ({"score_bins": 1}, UsageError, "`score_bins` must be a whole number from 2"),
        ({"threshold": 0.5}, UsageError, "`threshold=` needs a score to cut"),
        ({"threshold": 0.5, "score": "s", "decision": "d"}, UsageError, "drop one of them"),
        ({"threshold": NAN, "score": "s"}, UsageError, "`threshold=` must be a finite number"),
        ({"decision": "y"}, DataError, "Column `y` is used as outcome and as decision"),
        ({"score": "y"}, DataError, "Column `y` is used as outcome and as score"),
        ({"groups": ["g", "y"]}, DataError, "Column `y` is used as outcome and as group"),
        ({"weight": "g"}, DataError, "Column `g` is used as weight and as group"),
        ({"groups": ["g", "g"]}, DataError, "Column `g` is named 2 times in `groups=`"),
        ({"outcome": "z"}, DataError, "Column `z` is not in the table. Known: "),
        ({"features": ["ss"]}, DataError, "Column `ss` is not in the table. Did you mean `s`?"),
        ({"continuous": ["ages"]}, DataError, "Column `ages` is not in the table"),
    ],
)
def test_requests_that_make_no_sense(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    table = {"y": [0, 1, 0, 1], "d": [0, 1, 1, 1], "s": [0.1, 0.2, 0.3, 0.4], **G}
    with pytest.raises(kind, match=message):
        read(table, **({"outcome": "y", "groups": "g"} | options))


def test_a_decision_may_serve_as_score() -> None:
    data = read({"y": [0, 1, 0, 1], "d": [0, 1, 1, 1], **G}, outcome="y", decision="d", score="d", groups="g")
    assert data.score_kind == "probability"


@pytest.mark.parametrize("source", [42, object(), [1, 2], np.zeros((2, 2)), None])
def test_sources_that_are_no_tables(source: Any) -> None:
    with pytest.raises(DataError, match=rf"Cannot read a source of type `{type(source).__name__}`; allowed are"):
        read(source, outcome="y", groups="g")


def test_duplicated_names_in_frames() -> None:
    frame = pd.DataFrame([[1, "a", "b"], [0, "b", "a"]], columns=["y", "g", "g"])
    with pytest.raises(DataError, match=r"Column name `g` occurs more than once"):
        read(frame, outcome="y", groups="g")
    with duckdb.connect() as connection:
        whole = connection.from_df(pd.DataFrame({"y": [0, 1], "x": ["a", "b"]}))
        relation = whole.project('y, x AS g, x AS "G"')
        with pytest.raises(DataError, match=r"`g` occurs more than once when case is ignored"):
            read(relation, outcome="y", groups="g")


def test_duplicated_names_on_spark(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "a", "b")], ["y", "g", "g"])
    with pytest.raises(DataError, match=r"Column name `g` occurs more than once"):
        read(frame, outcome="y", groups="g")


def test_empty_tables() -> None:
    empty = pd.DataFrame({"y": pd.Series([], dtype=float), "g": pd.Series([], dtype=str)})
    with duckdb.connect() as connection:
        for source in (empty, {"y": [], "g": []}, connection.from_df(empty)):
            with pytest.raises(DataError, match=r"The table has no rows"):
                read(source, outcome="y", groups="g")


def test_names_that_are_numbers() -> None:
    frame = pd.DataFrame([[1, "a"], [0, "b"]])
    assert read(frame, outcome="0", groups="1").attribute("1").labels == ("a", "b")


class TestArrays:
    def test_lengths(self) -> None:
        with pytest.raises(DataError, match=r"must have one length; `g` has 4, `outcome` has 3"):
            AuditData.from_arrays(outcome=[0, 1, 0], groups=G)

    @pytest.mark.parametrize("bad", [np.zeros((4, 2)), [[0], [1], [0], [1]], np.float64(1), np.zeros((4, 1))])
    def test_dimensions(self, bad: Any) -> None:
        with pytest.raises(DataError, match=r"`outcome` must be (one-dimensional|an array)"):
            AuditData.from_arrays(outcome=bad, groups=G)

    @pytest.mark.parametrize("bad", ["text", 3, {"a": 1}])
    def test_what_is_no_array(self, bad: Any) -> None:
        with pytest.raises(DataError, match=r"`score` must be an array or a list"):
            AuditData.from_arrays(outcome=[0, 1, 0, 1], score=bad, groups=G)

    def test_values_of_a_strange_type(self) -> None:
        with pytest.raises(DataError, match=r"`outcome` has values of type complex128"):
            AuditData.from_arrays(outcome=np.zeros(4, dtype=complex), groups=G)
        with pytest.raises(DataError, match=r"`g` holds values that are not labels or numbers"):
            AuditData.from_arrays(outcome=[0, 1], groups={"g": np.array([{"a": 1}, {"b": 2}], dtype=object)})

    def test_groups_must_be_named(self) -> None:
        with pytest.raises(DataError, match=r"`groups` must be a mapping of names to arrays or a frame; got list"):
            AuditData.from_arrays(outcome=[0, 1, 0, 1], groups=G["g"])  # type: ignore[arg-type]

    def test_features_in_every_form(self) -> None:
        x = np.arange(8.0).reshape(4, 2)
        options: dict[str, Any] = {"outcome": [0, None, 0, 1], "groups": G}
        array = AuditData.from_arrays(features=x, **options)
        assert {k: v.tolist() for k, v in array.features.items()} == {"x0": [0, 4, 6], "x1": [1, 5, 7]}
        frame = AuditData.from_arrays(features=pd.DataFrame(x, columns=["a", "b"]), **options)
        assert list(frame.features) == ["a", "b"]
        words = AuditData.from_arrays(features={"job": ["x", "y", None, "x"]}, **options)
        assert words.features["job"].tolist() == ["x", None, "x"]
        with pytest.raises(DataError, match=r"`features` must be .* a frame or a 2-D array; got list"):
            AuditData.from_arrays(features=[1, 2, 3, 4], **options)

    def test_features_are_not_kept_in_cells_and_a_note_says_so(self) -> None:
        data = AuditData.from_arrays(outcome=[0, 1, 0, 1], groups=G, features=np.zeros((4, 1)), rows="cells")
        assert data.features == {}
        assert "Features are not collected" in data.notes[-1]

    def test_names_of_roles_may_be_names_of_groups_and_features(self) -> None:
        data = AuditData.from_arrays(
            outcome=[0, 1, 0, 1],
            score=[0.1, 0.2, 0.3, 0.4],
            groups={"outcome": G["g"]},
            features={"score": [1, 2, 3, 4]},
        )
        assert data.attribute("outcome").labels == ("a", "b")
        assert data.features["score"].tolist() == [1, 2, 3, 4]
        assert data.score is not None
        assert data.score.tolist() == [0.1, 0.2, 0.3, 0.4]

    def test_arrays_are_copied(self) -> None:
        outcome, x = np.array([0.0, 1.0, 0.0, 1.0]), np.zeros((4, 1))
        data = AuditData.from_arrays(outcome=outcome, groups=G, features=x)
        outcome[:] = x[:] = 1
        assert data.outcome is not None
        assert data.outcome.tolist() == [0, 1, 0, 1]
        assert data.features["x0"].tolist() == [0, 0, 0, 0]

    def test_masked_arrays(self) -> None:
        outcome = np.ma.masked_array([0, 1, 0, 1], mask=[False, True, False, False])
        assert AuditData.from_arrays(outcome=outcome, groups=G).rows.dropped == {"`outcome` is missing": 1}


@pytest.mark.parametrize("rows", ["keep", "cells"])
def test_a_vast_score_is_refused_on_an_engine_as_in_memory(rows) -> None:
    table = {"d": [1, 0, 1, 0], "p": [1e285, 9e288, 0.5, 1.0], "g": ["a", "b", "a", "b"]}
    with pytest.raises(DataError, match=r"Score `p` reaches 9e\+288; values beyond 1e\+100 cannot be squared"):
        read(duckdb.from_arrow(pyarrow.table(table)), decision="d", score="p", groups=["g"], rows=rows)
