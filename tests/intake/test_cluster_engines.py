"""Clusters and sampling strata are keys of an engine's group-by: the audit says the same as on rows."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd

import evenhand as eh


def test_engines_add_up_what_clusters_and_surveys_need(spark: Any) -> None:
    rng = np.random.default_rng(0)
    officer = np.repeat(np.arange(60), rng.integers(2, 8, 60))
    level = rng.random(60)[officer]
    table = pd.DataFrame(
        {
            "y": (rng.random(officer.size) < 0.5).astype(int),
            "d": (rng.random(officer.size) < level).astype(int),
            "sex": rng.choice(["F", "M"], officer.size),
            "officer": officer,
            "region": officer % 3,
        }
    )
    asked: dict[str, Any] = {"outcome": "y", "decision": "d", "groups": "sex", "cluster": "officer"}
    sources = (table, duckdb.from_df(table), spark.createDataFrame(table.values.tolist(), list(table)))
    for more in ({}, {"survey_strata": "region"}):
        answers = []
        for source in sources:
            data = eh.read(source, **asked, **more)
            result = eh.audit_group(data, metrics=["selection_rate", "fnr", "f1"], rng=0)
            answers.append([(round(f.estimate, 9), round(f.pvalue, 6), f.counts) for f in result])
        assert answers[0] == answers[1] == answers[2]
