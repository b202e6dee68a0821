from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

from evenhand.intake.summed_values import EPSILON, VALUES, value_names

Y = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
S = np.array([0.0, 1.0, 0.0, 1.0, 0.3, 0.7])


def by_hand(name: str, y: float, s: float) -> float:
    import math

    if name == "log_loss":
        s = min(max(s, 1e-15), 1 - 1e-15)
        return -math.log(s) if y == 1 else -math.log(1 - s)
    return {"score": s, "squared_error": (y - s) ** 2, "absolute_error": abs(y - s), "residual": y - s}[name]


@pytest.mark.parametrize("name", VALUES)
def test_numpy_form_is_the_definition(name: str) -> None:
    expected = [by_hand(name, y, s) for y, s in zip(Y, S, strict=True)]
    np.testing.assert_allclose(VALUES[name].array(Y, S), expected, rtol=1e-14)


@pytest.mark.parametrize("name", VALUES)
def test_duckdb_form_is_the_numpy_form(name: str) -> None:
    pairs = ", ".join(f"({y}::DOUBLE, {s}::DOUBLE)" for y, s in zip(Y, S, strict=True))
    with duckdb.connect() as connection:
        query = f"SELECT {VALUES[name].sql.format(y='y', s='s')} FROM (VALUES {pairs}) t(y, s)"
        found = [row[0] for row in connection.execute(query).fetchall()]
    np.testing.assert_allclose(found, VALUES[name].array(Y, S), rtol=1e-14)


def test_spark_form_is_the_numpy_form(spark: Any) -> None:
    from pyspark.sql import functions

    frame = spark.createDataFrame(list(zip(Y.tolist(), S.tolist(), strict=True)), ["y", "s"])
    found = frame.select(*(functions.expr(VALUES[n].sql.format(y="y", s="s")).alias(n) for n in VALUES)).collect()
    for name in VALUES:
        np.testing.assert_allclose([row[name] for row in found], VALUES[name].array(Y, S), rtol=1e-14)


def test_log_loss_of_a_certain_mistake_is_finite() -> None:
    assert VALUES["log_loss"].array(np.ones(1), np.zeros(1))[0] == pytest.approx(-np.log(EPSILON))


def test_names_follow_the_kinds() -> None:
    assert value_names("binary", "none") == ()
    assert value_names("none", "real") == ("score",)
    assert "log_loss" in value_names("binary", "probability")
    assert "log_loss" not in value_names("binary", "real")
    assert "log_loss" not in value_names("numeric", "probability")
