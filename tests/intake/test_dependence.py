"""Rows of the same people are pointed out, and data in which equal rows are natural are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from evenhand.intake import AuditData, read
from evenhand.intake.dependence import identifier_names
from evenhand.intake.options import Options

PEOPLE, TIMES = 300, 5
NOTHING = Options(groups=())


def people(rng: np.random.Generator, n: int) -> dict[str, Any]:
    x = rng.normal(size=(n, 2))
    return {"g": rng.choice(["a", "b"], n), "x": x[:, 0], "z": x[:, 1], "c": rng.integers(0, 4, n)}


def decided(table: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    p = 1 / (1 + np.exp(-np.asarray(table["x"])))
    n = len(p)
    return table | {"p": p, "y": (rng.random(n) < p) * 1, "d": (rng.random(n) < p) * 1}


def several(identical: bool) -> dict[str, Any]:
    """300 people with five rows each; the outcome is drawn for every row, or once for the person."""
    rng = np.random.default_rng(0)
    table = people(rng, PEOPLE)
    if identical:
        table = decided(table, rng)
    table = {name: np.repeat(values, TIMES) for name, values in table.items()} | {
        "person_id": np.repeat(np.arange(PEOPLE), TIMES)
    }
    return table if identical else decided(table, rng)


def notes(data: AuditData) -> str:
    return " ".join(data.notes)


@pytest.mark.parametrize("source", ["mapping", "frame", "csv", "parquet", "csv cells", "duckdb"])
def test_a_repeated_identifier_is_seen_in_every_source(tmp_path: Path, source: str) -> None:
    frame = pd.DataFrame(several(identical=False))
    asked: dict[str, Any] = {"outcome": "y", "decision": "d", "groups": "g"}
    if source == "duckdb":
        with duckdb.connect() as connection:
            data = read(connection.from_df(frame), **asked)
    elif source in ("mapping", "frame"):
        data = read(frame if source == "frame" else frame.to_dict("list"), **asked)
    elif source == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
        data = read(tmp_path / "t.parquet", **asked)
    else:
        frame.to_csv(tmp_path / "t.csv", index=False)
        data = read(tmp_path / "t.csv", **asked, rows="cells" if "cells" in source else "auto")
    assert "`person_id` looks like an identifier of people and has 300 values in 1,500 rows" in notes(data)
    assert "one person" in notes(data)


@pytest.mark.parametrize("identical", [True, False])
def test_repeated_inputs_are_seen_without_an_identifier(identical: bool) -> None:
    table = several(identical)
    del table["person_id"]
    data = read(table, outcome="y", decision="d", groups="g", features=["x", "z", "c"])
    assert "1,200 rows of 1,500 repeat another row in `x`, `z`, far more than by chance" in notes(data)


def test_identical_records_are_seen_by_their_scores() -> None:
    table = several(identical=True)
    data = read({k: table[k] for k in ("g", "p", "y", "d")}, outcome="y", decision="d", score="p", groups="g")
    assert "repeat another row in every column, the outcome included" in notes(data)


def natural(kind: str) -> tuple[dict[str, Any], list[str]]:
    rng = np.random.default_rng(1)
    n = 1500
    table = people(rng, n)
    features = ["x", "z", "c"]
    if kind == "coarse":
        table |= {"x": rng.integers(0, 5, n), "z": rng.integers(0, 3, n)}
    elif kind == "ages and hours":
        age = rng.integers(18, 80, n)
        table |= {"x": age, "z": np.clip(40 + (age - 50) // 5 + rng.integers(-20, 20, n), 1, 99)}
    elif kind == "the same twice":
        table |= {"x": rng.integers(18, 80, n)}
        table |= {"z": np.asarray(table["x"]) * 2 + 1}
    elif kind == "rounded score":
        table |= {"x": np.round(table["x"], 1)}
        features = []
    elif kind == "many zeros":
        table |= {"x": np.where(rng.random(n) < 0.8, 0, rng.integers(0, 9999, n))}
        table |= {"z": np.where(rng.random(n) < 0.8, 0, rng.integers(0, 9999, n))}
    return decided(table | {"site_id": rng.integers(0, 4, n), "id": np.arange(n)}, rng), features


@pytest.mark.parametrize("kind", ["plain", "coarse", "ages and hours", "the same twice", "rounded score", "many zeros"])
def test_equal_rows_that_are_natural_are_not_pointed_out(kind: str) -> None:
    table, features = natural(kind)
    assert read(table, outcome="y", decision="d", score="p", groups="g", features=features).notes == ()


def test_counted_people_are_no_repeats() -> None:
    table = several(identical=True) | {"w": np.full(PEOPLE * TIMES, 2)}
    del table["person_id"]
    options: dict[str, Any] = {"outcome": "y", "groups": "g", "features": ["x", "z"], "weight": "w"}
    assert "repeat" not in notes(read(table, weight_kind="frequency", **options))


def test_names_of_identifiers() -> None:
    yes = ["id", "ID", "PersonID", "person id", "customer_no", "patient", "user-id", "case_number", "e.email"]
    no = ["width", "valid", "idle", "paid", "humidity", "y", "sex", "region", "income"]
    assert identifier_names(yes[:3], NOTHING) == yes[:3]
    for name in yes:
        assert identifier_names([name], NOTHING) == [name], name
    assert identifier_names(no, NOTHING) == []
