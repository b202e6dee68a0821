"""SARIF and annotations: what a pull request shows of a gate."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonschema
import pytest

import evenhand as eh
from evenhand.cli import run as command
from evenhand.sharing import github_annotations, to_sarif

# What SARIF 2.1.0 requires of the objects that are written here, and what GitHub asks of them beyond it.
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
RULE = {
    "type": "object",
    "required": ["id", "shortDescription"],
    "properties": {
        "id": {"type": "string"},
        "shortDescription": TEXT,
        "fullDescription": TEXT,
        "properties": {"type": "object"},
    },
}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~:/%-]+$"}},
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        }
    },
}
RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "level", "locations", "partialFingerprints"],
    "properties": {
        "message": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
SARIF = {"type": "object", "required": ["version", "runs"], "properties": {
    "$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
    "runs": {"type": "array", "items": {"type": "object", "required": ["tool", "results"], "properties": {
        "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
            "type": "object", "required": ["name", "rules"], "properties": {
                "name": {"type": "string"}, "rules": {"type": "array", "uniqueItems": True, "items": RULE}}}}},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT}}}}}}  # fmt: skip


def _results(text):
    content = json.loads(text)
    jsonschema.validate(content, SARIF)
    (one,) = content["runs"]
    rules = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in one["results"])
    return one["results"]


def test_sarif_has_a_result_for_each_disparity(run):
    shown = [f for f in run.findings if f.verdict == "disparity"]
    results = _results(to_sarif(run, place="data/my file.csv"))
    assert [r["ruleId"] for r in results] == [f"group/{f.measure}" for f in shown]
    assert {r["level"] for r in results} == {"error"}
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "data/my%20file.csv"
    assert shown[0].reason in results[0]["message"]["text"]
    marks = [r["partialFingerprints"]["finding/v1"] for r in results]
    assert len(set(marks)) == len(marks)
    assert marks == [r["partialFingerprints"]["finding/v1"] for r in _results(to_sarif(run))]


def test_what_fails_is_an_error_and_another_disparity_a_warning(run):
    levels = {r["ruleId"]: r["level"] for r in _results(to_sarif(run, fails=lambda f: f.measure == "fpr"))}
    assert levels == {"group/fpr": "error", "group/fnr": "warning"}
    lines = github_annotations(run, fails=lambda f: f.measure == "fpr")
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]


def test_hostile_names_make_no_commands_and_no_broken_files(hostile_run):
    results = _results(to_sarif(hostile_run))
    assert results
    for line in github_annotations(hostile_run, fails=lambda f: True):
        assert "\n" not in line
        assert "\r" not in line
        command_, properties, message = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line).groups()
        assert command_ == "error"
        assert properties.startswith("title=Evenhand%3A ")
        assert "%0A" not in message.replace("%25", "")


def test_annotations_are_as_many_as_are_shown(run):
    rows = (replace(run.findings[0], verdict=eh.Verdict.DISPARITY),) * 60
    result = replace(run.results[0], findings=rows, evidence=(run.results[0].evidence[0],) * 60)
    lines = github_annotations(replace(run, results=(result,)), place="audit.toml")
    assert len(lines) == 10
    assert "51 more findings are in the report" in lines[-1]
    assert ",file=audit.toml,line=1::" in lines[0]


@pytest.fixture
def decisions(tmp_path):
    lines = ["y,d,sex"]
    lines += [f"1,{int(j % 10 >= (5 if sex == 'F' else 1))},{sex}" for j in range(300) for sex in "FM"]
    path = tmp_path / "decisions.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_gate_writes_both(tmp_path, capsys, decisions, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["audit", "decisions.csv", "--outcome", "y", "--decision", "d", "--group", "sex", "--metrics", "fnr"]
    words += ["--fail-on", "disparity", "--annotations", "github", "--sarif", "out/evenhand.sarif", "--out", "out"]
    assert command(words) == 3
    (result,) = _results((tmp_path / "out" / "evenhand.sarif").read_text(encoding="utf-8"))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "decisions.csv"
    lines = capsys.readouterr().out.splitlines()
    token = re.fullmatch(r"::stop-commands::([0-9a-f]{32})", lines[0])[1]
    at = lines.index(f"::{token}::")
    assert any(line.startswith("Rows: 600") for line in lines[:at])
    assert [line[:40] for line in lines[at + 1 :]] == ["::error title=Evenhand%3A fnr%2C sex=M v"]


def test_several_periods_have_no_one_list(capsys, decisions):
    words = ["audit", str(decisions), "--outcome", "y", "--decision", "d", "--group", "sex", "--by", "y"]
    assert command([*words, "--sarif", "x.sarif"]) == 2
    assert "`--sarif` tells the findings of one run" in capsys.readouterr().err
