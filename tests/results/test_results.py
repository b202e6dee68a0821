from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.files import write_atomic
from evenhand.results import Evidence, plain, text_table


def run() -> eh.AuditRun:
    return eh.audit(eh.datasets.planted(rows=300, rng=0), rng=0)


def test_round_trip_through_json():
    text = run().to_json()
    assert eh.AuditRun.from_dict(json.loads(text)).to_json() == text


def test_json_has_no_nan_and_plain_keys():
    found = json.loads(run().to_json(), parse_constant=lambda name: pytest.fail(name))
    assert found["schema"] == "evenhand/1"
    assert set(found) >= {"plan", "seed", "versions", "data", "findings"}
    assert found["data"]["fingerprint"]


def test_unbounded_interval_ends_survive_the_round_trip():
    row = eh.Finding(
        audit="x", measure="m", groups=("a",), estimate=1.0,
        interval=eh.Interval(low=0.5, high=math.inf, level=0.95, kind="score"),
    )  # fmt: skip
    again = eh.Finding.from_dict(row.to_dict())
    assert row.to_dict()["interval"]["high"] is None
    assert again.interval.high == math.inf


def test_plain_turns_arrays_and_nan_into_json():
    assert plain({"a": np.array([1.0, np.nan]), "b": np.int64(3), "c": np.bool_(True), "d": eh.Verdict.DISPARITY}) == {
        "a": [1.0, None], "b": 3, "c": True, "d": "disparity",
    }  # fmt: skip


def test_html_table_escapes_names():
    row = eh.Finding(audit="x", measure="<b>", groups=("<script>alert(1)</script>", "b"), estimate=0.1)
    result = eh.AuditResult(audit="x", findings=(row,), evidence=(Evidence(),))
    shown = result._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_text_table_neutralises_control_characters():
    row = eh.Finding(audit="x", measure="m", groups=("\x1b[2Ja\n", "b"), estimate=math.nan)
    shown = text_table([row])
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 3
    assert "–" in shown


def test_findings_are_frozen():
    with pytest.raises(AttributeError):
        run().findings[0].estimate = 0.0


def test_write_atomic_leaves_the_old_file_when_it_fails(tmp_path: Path, monkeypatch):
    target = tmp_path / "a.txt"
    write_atomic(target, "old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
