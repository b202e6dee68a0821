"""The demo, as a newcomer runs it: two models, all six audits, a report on each."""

from __future__ import annotations

import json

from evenhand.cli import run

AUDITS = {"group", "projection", "individual", "proxy", "tail", "scan"}


def test_demo_writes_a_report_on_each_model(tmp_path, capsys):
    assert run(["demo", "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert str(tmp_path / "out" / "report.html") in told
    for folder in (tmp_path / "out", tmp_path / "out" / "network"):
        assert sorted(p.name for p in folder.iterdir() if p.is_file()) == [
            "findings.json",
            "junit.xml",
            "report.html",
            "report.md",
        ]
        findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))["findings"]
        assert {f["audit"] for f in findings} == AUDITS
        # Each audit answers something: a demo that shows only refusals shows nothing.
        answered = {f["audit"] for f in findings if f["verdict"] != "not_computable"}
        assert answered == AUDITS
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert all(f'<section id="{audit}">' in page for audit in AUDITS)
        assert len(page.encode()) < 2_000_000
