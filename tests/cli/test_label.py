"""A run says what it is called, and by what its model and its input can be recognised."""

from __future__ import annotations

import hashlib
import json

import evenhand as eh
from evenhand.cli import run


def _file(folder):
    file = folder / "people.csv"
    file.write_text("d,sex\n" + "approved,F\nrefused,M\n" * 40 + "refused,F\napproved,M\n" * 20)
    return file


def _audit(folder, *more):
    file = _file(folder)
    words = ["audit", str(file), "--decision", "d", "--group", "sex", "--positive", "approved", "--quiet"]
    assert run([*words, "--out", str(folder / "out"), *more]) == 0
    return file, json.loads((folder / "out" / "findings.json").read_text())


def test_label_title_and_hash_of_the_input(tmp_path):
    file, kept = _audit(tmp_path, "--label", "v<12>", "--title", "Credit & May")
    assert kept["label"] == "v<12>"
    assert kept["model"] is None
    assert kept["input"] == [
        {"name": "people.csv", "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "reason": None}
    ]
    assert kept["data"]["labels"] == {"decision": {"one": ["approved"], "zero": ["refused"]}}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>Credit &amp; May</h1>" in page
    assert "v&lt;12&gt;" in page
    assert eh.AuditRun.from_dict(kept).to_dict() == kept


def test_the_label_stands_in_the_title_where_none_is_given(tmp_path):
    _audit(tmp_path, "--label", "v12")
    assert "<h1>Audit report: v12</h1>" in (tmp_path / "out" / "report.html").read_text()


def test_a_hash_is_not_published_with_counts_held_back(tmp_path):
    _, kept = _audit(tmp_path, "--suppress", "5")
    assert kept["input"] == [{"name": "people.csv", "sha256": None, "reason": "It is not published."}]


def test_one_label_does_not_name_several_periods(tmp_path, capsys):
    file = _file(tmp_path)
    words = ["audit", str(file), "--decision", "d", "--group", "sex", "--by", "sex", "--label", "v12"]
    assert run([*words, "--out", str(tmp_path / "out")]) == 2
    assert "`--label` names one run" in capsys.readouterr().err


def test_a_model_in_memory_has_a_reason_in_place_of_a_hash():
    data = eh.datasets.planted(rows=400, rng=0)
    plan = eh.Plan(audits=("group",), group={"metrics": ["fnr"]})
    made = eh.audit(data, model=lambda X: X[:, 0], plan=plan, rng=0, label="v1")
    assert made.label == "v1"
    assert made.model["sha256"] is None
    assert "object in memory" in made.model["reason"]
