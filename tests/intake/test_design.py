"""Strata, clusters, unknown groups and probabilities of groups: alike from every source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli import run
from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData, read


def table(rows: int = 200) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    share = rng.random(rows)
    return {
        "y": rng.integers(0, 2, rows),
        "d": rng.integers(0, 2, rows),
        "sex": rng.choice(["F", "M"], rows),
        "race": [None if v < 0.2 else "A" if v < 0.6 else "B" for v in rng.random(rows)],
        "job": rng.choice(["clerk", "cook", "driver"], rows),
        "age": rng.integers(18, 70, rows).astype(float),
        "officer": rng.integers(0, 20, rows),
        "region": rng.choice(["north", "south"], rows),
        "p_a": share,
        "p_b": 1 - share,
    }


ASKED: dict[str, Any] = {"outcome": "y", "decision": "d", "groups": "sex"}
SOURCES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "duckdb": lambda columns: duckdb.from_df(pd.DataFrame(columns)),
}


def cells(data: AuditData) -> dict[tuple[Any, ...], int]:
    """Rows by group, stratum, cluster, sampling stratum, outcome and decision."""
    assert data.strata is not None
    assert data.cluster is not None
    assert data.survey_strata is not None
    assert data.outcome is not None
    assert data.decision is not None
    sums: dict[tuple[Any, ...], int] = {}
    for i, count in enumerate(data.count):
        key = (
            data.attributes[0].labels[data.attributes[0].codes[i]],
            data.strata.labels[data.strata.codes[i]],
            int(data.cluster[i]),
            int(data.survey_strata[i]),
            data.outcome[i],
            data.decision[i],
        )
        sums[key] = sums.get(key, 0) + int(count)
    return sums


def test_every_source_gives_the_same_strata_and_clusters() -> None:
    asked = ASKED | {"strata": ["job", "age"], "cuts": {"age": [30, 50]}, "cluster": "officer"}
    found = {n: read(make(table()), **asked, survey_strata="region") for n, make in SOURCES.items()}
    first = found["mapping"]
    assert first.strata is not None
    assert first.cluster is not None
    assert first.strata.name == "job × age"
    assert len(first.strata.labels) == 9
    assert first.columns["cluster"] == "officer"
    assert int(first.cluster.max()) == 19
    for name, data in found.items():
        assert cells(data) == cells(first), name
        assert (data.moments is not None) == (name == "duckdb")


def test_cells_of_rows_keep_the_design() -> None:
    asked = ASKED | {"strata": "job", "cluster": "officer", "survey_strata": "region"}
    kept, summed = (read(table(), **asked, rows=rows) for rows in ("keep", "cells"))
    assert cells(kept) == cells(summed)
    assert len(summed.count) < len(kept.count)
    assert read(table(), **asked, rows="keep").fingerprint == kept.fingerprint
    assert read(table(), **ASKED).fingerprint != kept.fingerprint


def test_arrays_take_the_same_roles() -> None:
    columns = table()
    data = AuditData.from_arrays(
        outcome=columns["y"],
        decision=columns["d"],
        groups={"sex": columns["sex"]},
        strata={"job": columns["job"]},
        cluster=columns["officer"],
        survey_strata=columns["region"],
        group_probability={"race": {"A": columns["p_a"], "B": columns["p_b"]}},
    )
    read_too = read(
        columns,
        **ASKED,
        strata="job",
        cluster="officer",
        survey_strata="region",
        group_probability={"race": {"A": "p_a", "B": "p_b"}},
    )
    assert cells(data) == cells(read_too)
    assert data.probabilities["race"].labels == ("A", "B")
    np.testing.assert_allclose(data.probabilities["race"].values, read_too.probabilities["race"].values)
    some = data.take(np.array([3, 5]))
    assert some.strata is not None
    assert some.cluster is not None
    assert some.strata.codes.tolist() == data.strata.codes[[3, 5]].tolist()  # type: ignore[union-attr]
    assert some.cluster.tolist() == data.cluster[[3, 5]].tolist()  # type: ignore[index]
    assert some.probabilities["race"].values.shape == (2, 2)


def test_missing_strata_and_clusters_are_dropped_and_counted() -> None:
    columns = table()
    columns["job"] = [None, None, *columns["job"][2:]]
    columns["officer"] = [*columns["officer"][:-1].astype(float), np.nan]
    data = read(columns, **ASKED, strata="job", cluster="officer", missing="unknown")
    assert data.rows.dropped == {"`job` is missing": 2, "`officer` is missing": 1}
    kept = read(columns, **ASKED, strata="job", missing="group")
    assert kept.strata is not None
    assert "(missing)" in kept.strata.labels


def test_people_of_unknown_group_stay() -> None:
    columns = table()
    data = read(columns, outcome="y", decision="d", groups=["race", "sex"], missing="unknown", intersections=True)
    race, sex, both = data.attributes
    many = sum(v is None for v in columns["race"])
    assert race.unknown is not None
    assert race.labels[race.unknown] == "(missing)"
    assert int((race.codes == race.unknown).sum()) == many
    assert sex.unknown is None
    assert both.unknown is not None
    assert int((both.codes == both.unknown).sum()) == many
    assert both.labels == ("A & F", "A & M", "B & F", "B & M", "(missing)")
    assert data.rows.rows_used == 200


@pytest.mark.parametrize(
    ("changed", "asked", "kind", "said"),
    [
        ({}, {"strata": "nobody"}, DataError, "Column `nobody` is not in the table"),
        ({"id": np.arange(200)}, {"strata": "id"}, DataError, "`id` makes 200 strata of 200 rows, so nearly every row"),
        ({}, {"strata": "sex"}, DataError, "Column `sex` is used as group and as stratum"),
        ({}, {"strata": "y"}, DataError, "Column `y` is used as outcome and as stratum"),
        ({}, {"strata": ["job", "job"]}, DataError, "Column `job` is used as stratum and as stratum"),
        ({"one": np.zeros(200)}, {"cluster": "one"}, DataError, "Column `one` has one value"),
        ({}, {"cluster": "sex"}, DataError, "Column `sex` is used as group and as cluster"),
        ({}, {"group_probability": {"race": ["p_a"]}}, UsageError, "names 1 column; at least 2 are needed"),
        ({}, {"group_probability": {"sex": ["p_a", "p_b"]}}, DataError, "`sex` is in `groups=` and in"),
        ({}, {"group_probability": {"race": ["p_a", "job"]}}, DataError, "`job` must hold numbers"),
        ({}, {"group_probability": {"race": ["p_a", "age"]}}, DataError, "lies outside 0 to 1 in 200 rows"),
        ({"p_b": np.full(200, 0.2)}, {"group_probability": {"race": ["p_a", "p_b"]}}, DataError, "do not add up to 1"),
        (
            {"p_b": np.full(200, np.nan)},
            {"group_probability": {"race": ["p_a", "p_b"]}},
            DataError,
            "is missing in 2",
        ),
        ({}, {"group_probability": {"race": ["p_a", "p_b"]}, "rows": "cells"}, DataError, "need rows, not cells"),
        ({"sex": ["F", *[None] * 199]}, {"missing": "unknown"}, DataError, "has 1 group beside the people whose group"),
    ],
)
def test_bad_columns_are_refused(changed: dict[str, Any], asked: dict[str, Any], kind: type, said: str) -> None:
    with pytest.raises(kind, match=said):
        read(table() | changed, **(ASKED | asked))


def test_audits_that_need_independent_people_say_so() -> None:
    columns = table()
    inputs = {"features": ["age"], "outcome": "y", "decision": "d"}
    for asked, said in (
        ({"groups": "sex", "cluster": "officer"}, "takes each row for one person"),
        ({"groups": "sex", "strata": "job"}, "does not compare within strata"),
        ({"groups": "race", "missing": "unknown"}, "needs the group of every person, and `race` is unknown for some"),
    ):
        data = read(columns, **inputs, **asked)
        with pytest.raises(DataError, match=f"The proxy audit {said}"):
            eh.audit_proxy(data)
        assert said in eh.Plan.default(data).notes[0]


def test_a_named_cluster_silences_the_advice_about_identifiers() -> None:
    columns = table() | {"person_id": np.repeat(np.arange(50), 4)}
    assert any("`person_id`" in note for note in read(columns, **ASKED).notes)
    assert not any("`person_id`" in note for note in read(columns, **ASKED, cluster="person_id").notes)


def test_the_command_line_has_them_and_refuses_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pd.DataFrame(table() | {"id": np.arange(200)}).to_csv(tmp_path / "people.csv", index=False)
    words = ["audit", str(tmp_path / "people.csv"), "--decision", "d", "--group", "sex", "--out", str(tmp_path / "out")]
    for more in (["--strata", "id"], ["--group-probability", "race=p_a,age"], ["--cluster", "nobody"]):
        assert run([*words, *more]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
