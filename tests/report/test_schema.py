"""findings.json says what its schema promises, and the way back gives the same run."""

from __future__ import annotations

import copy
import json
from importlib.resources import files

import jsonschema
import pytest

from evenhand.audits.registry import AUDITS
from evenhand.report.bibliography import SOURCES
from evenhand.report.schema import schema_texts
from evenhand.results import AuditRun

SCHEMA = json.loads(files("evenhand").joinpath("findings.schema.json").read_text(encoding="utf-8"))
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def test_runs_follow_the_schema(full_run, hostile_run):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for run in (full_run, hostile_run):
        CHECK.validate(json.loads(run.to_json()))


def test_the_schema_in_the_package_is_the_one_of_the_classes():
    for name, text in schema_texts().items():
        assert files("evenhand").joinpath(name).read_text(encoding="utf-8") == text, (
            "run `python -m evenhand.report.schema`"
        )


@pytest.mark.parametrize("audit", ["group", "projection", "individual", "proxy", "tail", "scan"])
def test_evidence_with_a_key_that_no_class_has_is_refused(full_run, audit):
    broken = json.loads(full_run.to_json())
    next(block for block in broken["audits"] if block["audit"] == audit)["evidence"][0]["unheard_of"] = 1
    with pytest.raises(jsonschema.ValidationError):
        CHECK.validate(broken)
    with pytest.raises(ValueError, match="not the evidence"):
        AuditRun.from_dict(broken)


@pytest.mark.parametrize("key", ["verdict", "reason", "interval"])
def test_the_schema_can_fail(full_run, key):
    broken = copy.deepcopy(json.loads(full_run.to_json()))
    broken["findings"][0][key] = "fair" if key != "reason" else ""
    with pytest.raises(jsonschema.ValidationError):
        CHECK.validate(broken)


def test_round_trip(full_run):
    data = full_run.to_dict()
    assert AuditRun.from_dict(data).to_dict() == data
    assert AuditRun.from_dict(json.loads(full_run.to_json())).to_json() == full_run.to_json()


def test_every_audit_has_its_words_and_sources():
    assert all(audit.question.endswith("?") and audit.method.endswith(".") for audit in AUDITS.values())
    assert {key for audit in AUDITS.values() for key in audit.sources} <= set(SOURCES)
