"""An audit within strata on Spark's and DuckDB's sums: the answers of the rows."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import evenhand as eh


def test_engines_add_up_what_the_audit_within_strata_needs(spark: Any) -> None:
    rng = np.random.default_rng(3)
    n = 300
    table = pd.DataFrame({
        "y": rng.integers(0, 2, n), "d": rng.integers(0, 2, n), "p": rng.random(n).round(3),
        "sex": rng.choice(["F", "M"], n), "job": rng.choice(["cook", "driver", "clerk"], n),
        "age": rng.integers(18, 70, n),
    })  # fmt: skip
    asked: dict[str, Any] = {"outcome": "y", "decision": "d", "score": "p", "groups": "sex"}
    asked |= {"strata": ["job", "age"], "cuts": {"age": [30, 50]}}
    metrics = ["selection_rate", "fnr", "mean_score"]
    on_spark = spark.createDataFrame(table.values.tolist(), list(table))
    sources = (table, duckdb.from_df(table), on_spark)
    rows, *engines = (eh.audit_group(eh.read(s, **asked), metrics=metrics, method="limit", rng=0) for s in sources)
    for result in engines:
        assert [f.measure for f in result.findings] == [f"{m}_conditional" for m in metrics]
        assert [f.pvalue for f in result.findings] == pytest.approx([f.pvalue for f in rows.findings])
        assert [e.strata.compared for e in result.evidence] == [e.strata.compared for e in rows.evidence]  # type: ignore[attr-defined]
