"""Both labels of outcome and decision, and the types of features, are kept whatever the source is."""

from __future__ import annotations

import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.intake.parts import FeatureType, Labels

TABLE = {
    "y": ["approved", "denied", "Denied.", "approved"] * 3,
    "d": [1, -1, 1, -1] * 3,
    "g": ["a", "b", "b", "a"] * 3,
}
WANTED = {
    "outcome": Labels(one=("approved",), zero=("Denied.", "denied")),
    "decision": Labels(one=("1",), zero=("-1",)),
}


def sources(folder):
    import duckdb
    import polars
    import pyarrow

    frame = pd.DataFrame(TABLE)
    path = folder / "rows.csv"
    frame.to_csv(path, index=False)
    return {
        "mapping": TABLE,
        "pandas": frame,
        "categories": frame.astype({"y": "category"}),
        "polars": polars.DataFrame(TABLE),
        "pyarrow": pyarrow.table(TABLE),
        "file": path,
        "duckdb": duckdb.sql("SELECT * FROM frame"),
    }


@pytest.mark.parametrize("rows", ["keep", "cells"])
def test_labels_are_kept_on_every_path(tmp_path, rows):
    for name, source in sources(tmp_path).items():
        data = eh.read(source, outcome="y", decision="d", groups="g", rows=rows)
        assert data.labels == WANTED, name
    arrays = eh.AuditData.from_arrays(outcome=TABLE["y"], decision=TABLE["d"], groups={"g": TABLE["g"]})
    assert arrays.labels == WANTED


def test_the_model_s_class_can_be_named():
    said = {"model": "keep", "outcome": "denied"}
    data = eh.AuditData.from_arrays(outcome=["approved", "denied"], groups={"g": ["a", "b"]}, positive=said)
    assert data.labels["model"] == Labels(one=("keep",))
    assert data.labels["outcome"].one == ("denied",)
    with pytest.raises(UsageError, match="allowed are `outcome`, `decision`, `model`"):
        eh.AuditData.from_arrays(outcome=[0, 1], groups={"g": ["a", "b"]}, positive={"modl": 1})


def test_types_of_features_are_kept():
    frame = pd.DataFrame(
        {
            "job": pd.Categorical(["x", "y", "x"], categories=["y", "x", "z"], ordered=True),
            "zone": pd.Categorical([3, 1, 3]),
            "member": [True, False, True],
            "n": [1, 2, 3],
            "v": [0.5, 1.5, 2.5],
        }
    )
    data = eh.AuditData.from_arrays(outcome=[0, 1, 1], groups={"g": ["a", "b", "a"]}, features=frame)
    assert data.feature_types == {
        "job": FeatureType(kind="category", categories=("y", "x", "z"), ordered=True),
        "zone": FeatureType(kind="category", categories=(1, 3)),
        "member": FeatureType(kind="truth"),
        "n": FeatureType(kind="integer"),
    }
    assert data.features["zone"].tolist() == ["3", "1", "3"]
