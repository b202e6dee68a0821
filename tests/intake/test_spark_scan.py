"""A scan of a Spark frame: the cells are added up there, and everything after is the same."""

from __future__ import annotations

import numpy as np

import evenhand as eh


def test_a_scan_of_a_spark_frame_gives_the_findings_of_the_rows(spark):
    rng = np.random.default_rng(0)
    columns = {
        name: rng.choice(list(values), 1500).tolist() for name, values in {"a": "xy", "b": "uvw", "c": "pq"}.items()
    }
    inside = np.array(columns["a"]) == "x"
    columns["d"] = (rng.random(1500) < np.where(inside, 0.2, 0.45)).astype(int).tolist()
    frame = spark.createDataFrame(list(zip(*columns.values(), strict=True)), list(columns))
    asked = {"decision": "d", "groups": ["a", "b", "c"]}
    there, here = eh.read(frame, **asked), eh.read(columns, **asked)
    assert there.moments is not None
    one, two = (eh.audit_scan(data, rng=0) for data in (there, here))
    assert [f.to_dict() for f in one] == [f.to_dict() for f in two]
    assert [f.groups[0] for f in one if f.verdict == "disparity"] in (["a=x"], ["a=y"])
