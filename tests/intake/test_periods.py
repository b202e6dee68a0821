"""Dates cut into periods, alike in memory, on DuckDB and on Spark, and data divided by them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData, by_period, read

N = 500
START = datetime.date(2023, 12, 20)


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    days = [START + datetime.timedelta(days=int(d)) for d in rng.integers(0, 80, N)]
    return {
        "y": rng.integers(0, 2, N),
        "d": rng.integers(0, 2, N),
        "p": np.round(rng.random(N), 3),
        "sex": rng.choice(["F", "M"], N),
        "w": np.round(rng.random(N) + 0.5, 2),
        "person": rng.integers(0, 60, N),
        "job": rng.choice(["a", "b"], N),
        "x": rng.normal(size=N),
        "day": days,
    }


def options(**more: Any) -> dict[str, Any]:
    return {"outcome": "y", "decision": "d", "score": "p", "groups": "sex"} | more


def expected(day: datetime.date, unit: str) -> str:
    monday = day - datetime.timedelta(days=day.weekday())
    return {"day": str(day), "week": str(monday), "month": str(day)[:7], "year": str(day)[:4]}[unit]


@pytest.mark.parametrize("unit", ["day", "week", "month", "year"])
def test_units_alike_on_every_source(table: dict[str, Any], unit: str, tmp_path: Path, spark: Any) -> None:
    names = [expected(day, unit) for day in table["day"]]
    counted = {name: names.count(name) for name in sorted(set(names))}
    frame = pandas.DataFrame({**table, "day": pandas.to_datetime(pandas.Series(table["day"]))})
    duckdb.from_df(frame).project("* REPLACE (day::DATE AS day)").write_parquet(str(tmp_path / "a.parquet"))
    frame.to_csv(tmp_path / "a.csv", index=False)
    sources: list[tuple[Any, str]] = [(table, "keep"), (frame, "keep"), (frame, "cells")]
    sources += [(tmp_path / name, rows) for name in ("a.parquet", "a.csv") for rows in ("keep", "cells")]
    if unit in ("week", "month"):
        sources.append((spark.read.parquet(str(tmp_path / "a.parquet")), "cells"))
    for source, rows in sources:
        data = read(source, **options(period=f"day:{unit}", rows=rows))
        assert {name: part.rows.rows_used for name, part in by_period(data)} == counted, (type(source), rows)


def picked(table: dict[str, Any], month: str) -> dict[str, Any]:
    keep = [str(day)[:7] == month for day in table["day"]]
    return {name: [v for v, k in zip(values, keep, strict=True) if k] for name, values in table.items()}


MORE: dict[str, dict[str, Any]] = {
    "plain": {},
    "sampling weights": {"weight": "w", "weight_kind": "sampling"},
    "clusters": {"cluster": "person"},
    "strata": {"strata": ["job"]},
    "features": {"features": ["x", "job"]},
    "continuous": {"continuous": "x"},
    "crossed": {"groups": ["sex", "job"], "intersections": True},
}


@pytest.mark.parametrize("case", MORE)
def test_a_period_holds_what_its_rows_alone_hold(table: dict[str, Any], case: str) -> None:
    more = MORE[case]
    for name, part in by_period(read(table, **options(period="day:month", **more))):
        alone = read(picked(table, name), **options(**more))
        assert part.period is None
        for field in ("outcome", "decision", "score", "weight", "weight_square", "cluster", "count"):
            np.testing.assert_array_equal(getattr(part, field), getattr(alone, field), err_msg=field)
        for mine, theirs in zip(part.attributes, alone.attributes, strict=True):
            assert mine.labels == theirs.labels
            np.testing.assert_array_equal(mine.codes, theirs.codes)
        for values in ("features", "continuous"):
            for column, own in getattr(alone, values).items():
                np.testing.assert_array_equal(getattr(part, values)[column], own)
        if alone.strata is not None:
            np.testing.assert_array_equal(part.strata.codes, alone.strata.codes)  # type: ignore[union-attr]


def test_cells_and_batches_of_a_period(table: dict[str, Any], tmp_path: Path) -> None:
    frame = pandas.DataFrame({**table, "day": [str(day) for day in table["day"]]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    for unit in ("week", "month"):
        data = read(tmp_path / "a.csv", **options(period=f"day:{unit}", features=["x"], rows="batches"))
        for name, part in by_period(data):
            mine = [x for x, day in zip(table["x"], table["day"], strict=True) if expected(day, unit) == name]
            assert part.batches is not None
            assert part.moments is not None
            assert part.batches.rows == part.rows.rows_used == len(mine)
            np.testing.assert_array_equal(np.sort(part.batches.sample(N, seed=1).features["x"]), np.sort(mine))
            np.testing.assert_allclose(part.moments["score"].wv.sum(), sum_of_scores(table, unit, name), rtol=1e-10)


def sum_of_scores(table: dict[str, Any], unit: str, name: str) -> float:
    pairs = zip(table["p"], table["day"], strict=True)
    return float(sum(p for p, day in pairs if expected(day, unit) == name))


def test_batches_of_a_period_on_spark(table: dict[str, Any], spark: Any, tmp_path: Path) -> None:
    duckdb.from_df(pandas.DataFrame(table)).write_parquet(str(tmp_path / "a.parquet"))
    frame = spark.read.parquet(str(tmp_path / "a.parquet"))
    data = read(frame, **options(period="day:month", features=["x"], rows="batches"))
    for name, part in by_period(data):
        mine = [x for x, day in zip(table["x"], table["day"], strict=True) if str(day)[:7] == name]
        assert part.batches is not None
        np.testing.assert_array_equal(np.sort(part.batches.sample(N, seed=1).features["x"]), np.sort(mine))


def test_columns_that_name_periods_themselves(tmp_path: Path) -> None:
    years = {"y": [1, 0, 1, 0, 1], "sex": ["F", "M", "F", "M", "F"], "year": [2024.0, 2023, 2024, None, 2023]}
    duckdb.from_df(pandas.DataFrame(years)).write_parquet(str(tmp_path / "a.parquet"))
    for source in (years, tmp_path / "a.parquet"):
        for rows in ("keep", "cells"):
            data = read(source, outcome="y", groups="sex", period="year", rows=rows)
            assert [(name, part.rows.rows_used) for name, part in by_period(data)] == [("2023", 2), ("2024", 2)]
            assert dict(data.rows.dropped) == {"`year` is missing": 1}
    one = read({**years, "year": ["Q1"] * 5}, outcome="y", groups="sex", period="year")
    assert [name for name, _ in by_period(one)] == ["Q1"]


def test_order_of_rows_is_no_matter(table: dict[str, Any]) -> None:
    def marks(source: dict[str, Any]) -> list[str]:
        data: AuditData = read(source, **options(period="day:month", features=["x", "job"]))
        return [part.fingerprint for _, part in by_period(data)]

    order = np.random.default_rng(0).permutation(N)
    shuffled = {name: [values[i] for i in order] for name, values in table.items()}
    assert marks(table) == marks(shuffled)
    assert len(set(marks(table))) == len(marks(table))


@pytest.mark.parametrize("rows", ["keep", "cells"])
@pytest.mark.parametrize(
    ("value", "unit"), [("13/02/2024", "month"), ("2024-13-01", "month"), ("2024", "month"), ("2024-02", "day")]
)
def test_texts_that_are_no_dates(value: str, unit: str, rows: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"y,sex,day\n1,F,{value}\n0,M,2024-02-01\n")
    with pytest.raises(DataError, match=rf"Column `day` holds `.*` and cannot be cut into {unit}s; dates such as"):
        read(tmp_path / "a.csv", outcome="y", groups="sex", period=f"day:{unit}", rows=rows)


def test_periods_that_make_no_sense() -> None:
    rows = {"y": [1, 0], "sex": ["F", "M"], "day": ["2024-01-01", "2024-01-02"]}
    with pytest.raises(DataError, match=r"Column `sex` is used as group and as period"):
        read(rows, outcome="y", groups="sex", period="sex")
    with pytest.raises(DataError, match=r"Column `dya` is not in the table. Did you mean `day`"):
        read(rows, outcome="y", groups="sex", period="dya:month")
    with pytest.raises(UsageError, match=r"`period=` is 3; allowed"):
        read(rows, outcome="y", groups="sex", period=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"have no periods. Read them with `period="):
        next(by_period(read(rows, outcome="y", groups="sex")))


def test_a_column_of_moments_is_not_taken_for_a_name_of_periods(table: dict[str, Any], tmp_path: Path) -> None:
    moments = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(np.arange(N) % 101, unit="h")
    frame = pandas.DataFrame({**table, "day": moments})
    frame.to_csv(tmp_path / "a.csv", index=False)
    for source, rows in ((frame, "keep"), (tmp_path / "a.csv", "cells")):
        with pytest.raises(
            DataError, match=r"Column `day` names 101 periods, .* such as `day:month`, or name another column"
        ):
            read(source, **options(period="day", rows=rows))
    fewer = read(frame[moments < moments.max()], **options(period="day"))
    assert len(list(by_period(fewer))) == 100
    assert len(list(by_period(read(frame, **options(period="day:day"))))) == 5
