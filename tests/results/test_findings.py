"""Picking findings, and findings as frames."""

from __future__ import annotations

import importlib.util
import math
import sys

import pandas as pd
import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import MissingDependencyError, UsageError
from evenhand.results import Evidence
from evenhand.results.frame import COLUMNS


def _finding(measure, *groups, audit="group", verdict="inconclusive", **more):
    return eh.Finding(
        audit=audit, measure=measure, groups=groups, estimate=0.1, verdict=eh.Verdict(verdict), reason="Why.", **more
    )


ROWS = (
    _finding("fnr", "sex=F", "sex=M", verdict="disparity"),
    _finding("fnr_ratio", "race=a", "race=b"),
    _finding("fnr_global", "race=a", "race=b", "race=c"),
    _finding("fnr:income", "sex=F", "sex=M", audit="proxy"),
    _finding("fpr", "sex=F", "sex=M"),
)


@pytest.fixture
def run():
    results = tuple(
        eh.AuditResult(
            audit=audit,
            findings=(own := tuple(f for f in ROWS if f.audit == audit)),
            evidence=tuple(Evidence(fact=f.measure) for f in own),
        )
        for audit in ("group", "proxy")
    )
    return eh.AuditRun(results=results, plan={}, seed=0, data={}, versions={})


@pytest.mark.parametrize(
    ("asked", "measures"),
    [
        ({"measure": "fnr"}, ["fnr", "fnr_ratio", "fnr_global", "fnr:income"]),
        ({"measure": "fnr_ratio"}, ["fnr_ratio"]),
        ({"group": "sex"}, ["fnr", "fpr", "fnr:income"]),
        ({"group": "race=c"}, ["fnr_global"]),
        ({"group": "F", "audit": "group"}, ["fnr", "fpr"]),
        ({"verdict": "disparity"}, ["fnr"]),
        ({"verdict": eh.Verdict.EQUIVALENT}, []),
        ({"measure": "fpr", "verdict": "disparity"}, []),
        ({}, ["fnr", "fnr_ratio", "fnr_global", "fpr", "fnr:income"]),
    ],
)
def test_find_takes_what_is_about_all_names(run, asked, measures):
    found = run.find(**asked)
    assert [f.measure for f in found] == measures
    assert [e.fact for e in found.evidence] == measures, "the evidence goes with its finding"


def test_brackets_take_a_measure_a_place_or_a_slice(run):
    assert [f.measure for f in run["fpr"]] == ["fpr"]
    result = run.results[0]
    assert result[0] is ROWS[0]
    assert [f.measure for f in result[1:3]] == ["fnr_ratio", "fnr_global"]
    assert [f.measure for f in result["fnr"].find(group="race")] == ["fnr_ratio", "fnr_global"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"measure": "fnrr"}, "No finding has the measure `fnrr`. Did you mean `fnr`"),
        ({"group": "sex=f"}, "Did you mean `sex=F`"),
        ({"audit": "groups"}, "Did you mean `group`"),
        ({"verdict": "disparate"}, "Did you mean `disparity`"),
        ({"group": "zzz"}, "Known: `sex=F`"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(run, asked, said):
    with pytest.raises(UsageError, match=said):
        run.find(**asked)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_has_the_numbers_of_json(kind):
    run = eh.audit(eh.datasets.planted(rows=3000, groups=("a", "b", "c"), rng=0), rng=0)
    frame = run.to_frame(kind)
    assert isinstance(frame, {"pandas": pd.DataFrame, "polars": pl.DataFrame}[kind])
    assert tuple(frame.columns) == COLUMNS
    rows = run.to_dict()["findings"]
    table = frame.to_dict("records") if kind == "pandas" else frame.to_dicts()
    for row, told in zip(table, rows, strict=True):
        ends = told["interval"] or {"low": None, "high": None, "level": None}
        wanted = {**told, **{key: ends[key] for key in ("low", "high", "level")}}
        for key in ("estimate", "low", "high", "level", "pvalue", "pvalue_adjusted", "margin"):
            missing = row[key] is None or math.isnan(row[key])
            assert missing if wanted[key] is None else row[key] == wanted[key], key
        assert [row[key] for key in ("audit", "measure", "verdict", "reason")] == [
            told[key] for key in ("audit", "measure", "verdict", "reason")
        ]
        if len(told["groups"]) == 2:
            assert [row["group"], row["reference"]] == told["groups"]


def test_an_empty_frame_keeps_its_columns():
    for kind in ("pandas", "polars"):
        assert tuple(eh.Findings(findings=(), evidence=()).to_frame(kind).columns) == COLUMNS


def test_without_a_library_the_sentence_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr("evenhand.results.frame.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"neither is installed: pip install 'evenhand\[pandas\]'"):
        run.to_frame()
    real = importlib.util.find_spec
    monkeypatch.setattr("evenhand.results.frame.find_spec", lambda name: None if name == "pandas" else real(name))
    assert isinstance(run.to_frame(), pl.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match="A frame of pandas needs pandas"):
        run.to_frame("pandas")
    with pytest.raises(UsageError, match=r"`kind='panda'` is not a kind of frame. Did you mean `pandas`"):
        run.to_frame("panda")


def test_plots_say_what_they_need(run, monkeypatch):
    with pytest.raises(UsageError, match="nothing to draw: no finding here has an interval"):
        run.plot()
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'evenhand\[plot\]'"):
        run.plot()
