"""Every back end gives the same records and the same cells, and both agree with a plain loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from evenhand.intake import AuditData, read
from evenhand.intake.summed_values import value_names

Rows = dict[str, list[Any]]
LOCAL = (
    "mapping",
    "pandas",
    "pandas object",
    "pandas categorical",
    "polars",
    "polars lazy",
    "polars categorical",
    "pyarrow",
    "pyarrow dictionary",
    "duckdb",
    "csv",
    "tsv",
    "csv.gz",
    "parquet",
    "arrow",
    "arrow stream",
)
ENGINES = (*LOCAL, "spark")


@pytest.fixture
def make(rows: Rows, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Any]:
    def build(kind: str, table: Rows = rows) -> Any:
        arrow = pa.table(table)
        frame = pd.DataFrame(table)
        if kind == "spark":
            names = list(table)
            session = request.getfixturevalue("spark")
            return session.createDataFrame([list(r) for r in zip(*table.values(), strict=True)], names)
        if kind == "duckdb":
            connection = duckdb.connect()
            request.addfinalizer(connection.close)
            return connection.from_arrow(arrow)
        path = tmp_path / f"table.{kind.replace(' stream', '')}"
        if kind in ("csv", "csv.gz"):
            frame.to_csv(path, index=False)
        elif kind == "tsv":
            frame.to_csv(path, index=False, sep="\t")
        elif kind == "parquet":
            pyarrow.parquet.write_table(arrow, path)
        elif kind == "arrow":
            pyarrow.feather.write_feather(arrow, str(path))
        elif kind == "arrow stream":
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, arrow.schema) as writer:
                writer.write_table(arrow)
        else:
            text = [c for c in table if isinstance(next(v for v in table[c] if v is not None), str)]
            return {
                "mapping": lambda: table,
                "pandas": lambda: frame,
                "pandas object": lambda: pd.DataFrame({c: pd.Series(v, dtype=object) for c, v in table.items()}),
                "pandas categorical": lambda: frame.astype(dict.fromkeys(text, "category")),
                "polars": lambda: pl.DataFrame(table),
                "polars lazy": lambda: pl.LazyFrame(table),
                "polars categorical": lambda: pl.DataFrame(table).cast(dict.fromkeys(text, pl.Categorical)),
                "pyarrow": lambda: arrow,
                "pyarrow dictionary": lambda: pa.table(
                    {c: arrow[c].dictionary_encode() if c in text else arrow[c] for c in table}
                ),
            }[kind]()
        return path

    return build


RATES: dict[str, Any] = {"outcome": "income", "decision": "hired", "groups": ["sex", "race"]}
PROBABILITY = RATES | {"score": "p", "score_bins": 8}
CASES: dict[str, dict[str, Any]] = {
    "rates": RATES,
    "rates, missing kept": RATES | {"missing": "group"},
    "rates, counted": RATES | {"weight": "times", "weight_kind": "frequency"},
    "score": PROBABILITY,
    "score, counted": PROBABILITY | {"weight": "times", "weight_kind": "frequency"},
    "score, sampled": PROBABILITY | {"weight": "w"},
    "threshold": {"outcome": "income", "score": "p", "threshold": 0.5, "groups": "sex", "score_bins": 8},
    "cut": {"decision": "hired", "groups": ["age"], "cuts": {"age": [25, 40]}},
    "regression": {"outcome": "amount", "score": "p", "groups": "sex", "score_bins": 4},
    "real score": {"outcome": "hired", "score": "amount", "groups": "race", "score_bins": 5},
    "whole groups": {"decision": "hired", "groups": "times"},
    "positive": RATES | {"positive": {"outcome": "<=50K", "decision": False}, "score": "p", "score_bins": 8},
}


def plain_cells(rows: Rows, **o: Any) -> dict[tuple[Any, ...], dict[str, float]]:
    """Add up rows one at a time, with nothing of the code under test but the names of the values."""
    groups = [o["groups"]] if isinstance(o["groups"], str) else o["groups"]
    positive = o.get("positive", {})
    table: dict[tuple[Any, ...], dict[str, float]] = {}
    scores = []
    for i in range(len(rows["p"])):
        row = {c: v[i] for c, v in rows.items()}
        y = d = None
        if "outcome" in o:
            y = row[o["outcome"]]
            if y is None:
                continue
            if o["outcome"] != "amount":
                y = float(y == positive.get("outcome", ">50K") or y is True)
        if "decision" in o:
            d = float(row[o["decision"]] == positive.get("decision", True))
        key: list[Any] = []
        for g in groups:
            label = row[g]
            if g in o.get("cuts", {}):
                label = "<25" if label < 25 else "25–40" if label < 40 else ">=40"
            if label is None or label == "":
                label = "(missing)" if o.get("missing") == "group" else None
            key.append(None if label is None else str(label))
        w = row[o["weight"]] if "weight" in o else 1
        if None in key or w == 0:
            continue
        s = row[o["score"]] if "score" in o else None
        if "threshold" in o:
            d = float(s >= o["threshold"])
        scores.append(s)
        key += [y if o.get("outcome") != "amount" else None, d, s]
        table_key = (*key, i)
        table[table_key] = {"y": y, "s": s, "w": w}
    low, high = 0.0, 1.0
    if "score" in o and (min(scores) < 0 or max(scores) > 1):
        low, high = min(scores), max(scores)
    cells: dict[tuple[Any, ...], dict[str, float]] = {}
    counted = o.get("weight") == "times"
    for (*key, _), r in table.items():
        s, y = r["s"], r["y"]
        if s is not None:
            bins = o["score_bins"]
            key[-1] = min(math.floor((s - low) * (bins / (high - low))), bins - 1)
        cell = cells.setdefault(tuple(key), {})
        f, w = (r["w"], 1.0) if counted else (1, r["w"])

        def add(name: str, value: float, cell: dict[str, float] = cell) -> None:
            cell[name] = cell.get(name, 0.0) + value

        add("count", f)
        add("w", f * w)
        add("ww", f * w * w)
        if s is not None:
            v = {"score": s}
            if y is not None:
                v |= {"residual": y - s, "absolute_error": abs(y - s), "squared_error": (y - s) ** 2}
                if o["outcome"] != "amount" and low == 0 and high == 1:
                    c = min(max(s, 1e-15), 1 - 1e-15)
                    v["log_loss"] = -(y * math.log(c) + (1 - y) * math.log(1 - c))
            for name, x in v.items():
                add(f"{name} wv", f * w * x)
                add(f"{name} wwv", f * w * w * x)
                add(f"{name} wwvv", f * w * w * x * x)
    return cells


def cells_of(data: AuditData, options: dict[str, Any]) -> dict[tuple[Any, ...], dict[str, float]]:
    cells = {}
    for i in range(len(data.count)):
        key: list[Any] = [a.labels[a.codes[i]] for a in data.attributes]
        key.append(None if data.outcome is None or data.outcome_kind == "numeric" else data.outcome[i])
        key.append(None if data.decision is None else data.decision[i])
        count = int(data.count[i])
        cell: dict[str, float] = {"count": count, "w": count, "ww": count}
        if data.weight is not None:
            assert data.weight_square is not None
            cell |= {"w": data.weight[i] * count, "ww": data.weight_square[i]}
        place = None
        if data.score is not None:
            middles = np.unique(data.score)
            width = 1 / data.score_bins if data.score_kind == "probability" else None
            place = int(data.score[i] / width) if width else int(np.searchsorted(middles, data.score[i]))
        key.append(place)
        assert data.moments is not None
        for name, m in data.moments.items():
            cell |= {f"{name} wv": m.wv[i], f"{name} wwv": m.wwv[i], f"{name} wwvv": m.wwvv[i]}
        assert tuple(key) not in cells, "each cell comes once"
        cells[tuple(key)] = cell
    return cells


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_cells_agree_with_a_plain_loop(kind: str, case: str, rows: Rows, make: Callable[..., Any]) -> None:
    options = CASES[case]
    data = read(make(kind), rows="cells", **options)
    found, expected = cells_of(data, options), plain_cells(rows, **options)
    assert found.keys() == expected.keys()
    for key, cell in expected.items():
        assert found[key] == pytest.approx(cell, rel=1e-9, abs=1e-10), key
    kinds = (data.outcome_kind, data.score_kind)
    assert set(data.moments or {}) == set(value_names(*kinds))
    assert data.rows.rows_in == 400
    assert data.rows.rows_in == data.rows.rows_used + sum(data.rows.dropped.values())


@pytest.mark.parametrize("case", ["rates", "score, sampled", "regression"])
def test_all_sources_give_the_same_records(case: str, make: Callable[..., Any]) -> None:
    reference = read(make("mapping"), rows="keep", **CASES[case])
    for kind in ENGINES:
        data = read(make(kind), rows="keep", **CASES[case])
        assert data.fingerprint == reference.fingerprint, kind
        assert data.rows == reference.rows, kind
        assert data.notes == reference.notes, kind
        assert [a.labels for a in data.attributes] == [a.labels for a in reference.attributes]
        assert data.moments is None
        assert data.count.tolist() == reference.count.tolist()


def test_cells_have_one_fingerprint_and_order_whatever_the_engine(make: Callable[..., Any]) -> None:
    cells = [read(make(kind), rows="cells", **CASES["score, sampled"]) for kind in ("pandas", "duckdb", "spark")]
    assert len({c.fingerprint for c in cells}) == 1
    for other in cells[1:]:
        np.testing.assert_array_equal(other.score, cells[0].score)
        np.testing.assert_array_equal(other.attributes[0].codes, cells[0].attributes[0].codes)


def test_rates_have_one_fingerprint_in_rows_and_in_cells(make: Callable[..., Any]) -> None:
    prints = {read(make("duckdb"), rows=mode, **RATES).fingerprint for mode in ("keep", "cells")}
    assert len(prints) == 1


@pytest.mark.parametrize(("kind", "mode"), [("duckdb", "cells"), ("spark", "cells"), ("pandas", "rows")])
def test_auto_keeps_rows_in_memory_and_adds_up_on_engines(kind: str, mode: str, make: Callable[..., Any]) -> None:
    data = read(make(kind), **RATES)
    assert (data.moments is not None) == (mode == "cells")


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_file_above_the_limit_is_added_up(
    kind: str, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(kind)
    monkeypatch.setattr("evenhand.intake.paths.ROW_LIMIT", 399)
    large = read(path, **RATES)
    assert large.moments is not None
    assert "added up to cells" in " ".join(large.notes)
    monkeypatch.setattr("evenhand.intake.paths.ROW_LIMIT", 400)
    assert read(path, **RATES).moments is None
    assert read(path, rows="keep", **RATES).moments is None


@pytest.mark.parametrize("kind", ["duckdb", "spark"])
def test_an_engine_collects_rows_for_a_continuous_attribute(kind: str, make: Callable[..., Any]) -> None:
    data = read(make(kind), decision="hired", groups="sex", continuous="age")
    assert data.moments is None
    assert list(data.continuous) == ["age"]
    assert len(data.continuous["age"]) == data.rows.rows_used


@pytest.mark.parametrize("kind", ["duckdb", "spark"])
def test_an_outcome_that_only_looks_binary_at_first_is_numeric(
    kind: str, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.intake.engines.one_pass.PEEK", 2)
    table = {"y": [0.0, 1.0, 2.5, 7.0], "g": ["a", "b", "a", "b"], "s": [0.1, 0.2, 0.3, 0.4]}
    for extra in ({}, {"score": "s"}):
        data = read(make(kind, table), outcome="y", groups="g", **extra)
        assert data.outcome_kind == "numeric"
    assert data.moments is not None
    assert data.moments["residual"].wv.sum() == pytest.approx(10.5 - 1.0)


@pytest.mark.parametrize("kind", ["pandas", "duckdb", "spark", "csv"])
@pytest.mark.parametrize("mode", ["keep", "cells"])
def test_hostile_column_names(kind: str, mode: str, make: Callable[..., Any]) -> None:
    y, g, s = 'y"; DROP TABLE t; --', "<script>alert('1')</script>`", "π, \\ 'score'"
    table = {y: [0, 1, 1, 0], g: ["a'; --", 'b"', "a'; --", 'b"'], s: [0.1, 0.9, 0.8, 0.2]}
    data = read(make(kind, table), outcome=y, groups=g, score=s, rows=mode)
    assert data.attributes[0].name == g
    assert data.attributes[0].labels == ("a'; --", 'b"')
    assert data.count.sum() == 4


@pytest.mark.parametrize("kind", ["duckdb", "spark"])
def test_hostile_labels_of_the_outcome_are_compared_as_text(kind: str, make: Callable[..., Any]) -> None:
    bad = "it's \\ \"bad\" 'é"
    table = {"y": [bad, "fine", bad, "fine"], "g": ["a", "b", "b", "a"], "s": [0.1, 0.9, 0.8, 0.2]}
    data = read(make(kind, table), outcome="y", groups="g", score="s", positive=bad)
    assert data.moments is not None
    assert data.moments["residual"].wv.sum() == pytest.approx(2 - 2.0)
    assert data.moments["absolute_error"].wv.sum() == pytest.approx(0.9 + 0.9 + 0.2 + 0.2)


def test_the_users_connection_is_left_as_it_was() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i % 2 AS y, i % 3 AS g FROM range(60) r(i)")
        for mode in ("keep", "cells"):
            read(connection.table("t"), outcome="y", groups="g", rows=mode)
        assert connection.execute("SELECT table_name FROM information_schema.tables").fetchall() == [("t",)]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "mapping"])
def test_inputs_are_not_changed_and_results_cannot_be(kind: str, make: Callable[..., Any]) -> None:
    source = make(kind)
    before = pd.DataFrame(source if kind in ("mapping", "pandas") else source.to_pandas()).copy(deep=True)
    data = read(source, features=["age"], **(RATES | {"score": "p", "weight": "w"}))
    after = pd.DataFrame(source if kind in ("mapping", "pandas") else source.to_pandas())
    pd.testing.assert_frame_equal(before, after)
    for array in (data.outcome, data.decision, data.score, data.count, data.weight, data.features["age"]):
        assert array is not None
        with pytest.raises(ValueError, match=r"read-only"):
            array[0] = 1
    with pytest.raises(ValueError, match=r"read-only"):
        data.attributes[0].codes[0] = 1
