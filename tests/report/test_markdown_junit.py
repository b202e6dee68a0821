"""Markdown and JUnit: readable by their parsers, whole, and deaf to hostile names."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import pytest

import evenhand as eh
from evenhand.report import to_junit, to_markdown
from evenhand.results import Verdict


def test_markdown_has_a_row_per_finding(full_run):
    text = to_markdown(full_run)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for finding in full_run.findings:
        name = finding.measure.replace("_", "\\_")
        assert any(line.startswith(f"| {name} | ") for line in rows)


def test_markdown_tables_are_even(full_run, hostile_run):
    for run in (full_run, hostile_run):
        width = None
        for line in to_markdown(run).splitlines():
            if not line.startswith("| "):
                width = None
                continue
            cells = line.replace("\\|", "").count("|")
            assert width in (None, cells)
            width = cells


def test_markdown_keeps_hostile_names_inert(hostile_run):
    text = to_markdown(hostile_run)
    assert "<script" not in text
    assert "<img" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "\x1b" not in text


@pytest.fixture(scope="module")
def suites(full_run):
    return ElementTree.fromstring(to_junit(full_run))


def test_junit_counts_what_it_holds(suites, full_run):
    assert suites.tag == "testsuites"
    assert int(suites.get("tests")) == len(full_run.findings) == len(suites.findall(".//testcase"))
    for suite in suites:
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(key)) == len(suite.findall(f".//{tag}"))


def test_junit_follows_the_verdicts(suites, full_run):
    kinds = {Verdict.DISPARITY: "failure", Verdict.NOT_COMPUTABLE: "error", Verdict.INCONCLUSIVE: "skipped"}
    for case, finding in zip(suites.findall(".//testcase"), full_run.findings, strict=True):
        wanted = kinds.get(finding.verdict)
        assert [child.tag for child in case] == ([wanted] if wanted else [])
        if wanted:
            assert case[0].get("message") == finding.reason


def test_junit_failures_follow_the_gate(full_run):
    only_tail = ElementTree.fromstring(to_junit(full_run, fails=lambda f: f.audit == "tail"))
    assert {s.get("name") for s in only_tail if int(s.get("failures"))} == {"evenhand.tail"}


def test_junit_with_hostile_names_is_still_xml(hostile_run):
    root = ElementTree.fromstring(to_junit(hostile_run))
    assert len(root.findall(".//testcase")) == len(hostile_run.findings)


def test_same_bytes(full_run):
    assert to_junit(full_run) == to_junit(full_run)
    assert to_markdown(full_run) == to_markdown(full_run)


def test_every_reason_is_in_the_markdown(full_run):
    text = full_run.to_markdown()
    lines = [line for line in text.splitlines() if line.startswith("- **")]
    assert any(f.verdict == "inconclusive" for f in full_run.findings)
    for finding in full_run.findings:
        start = re.escape(finding.measure.replace("_", "\\_"))
        assert any(re.match(rf"- \*\*{start}, ", line) and finding.reason[-20:-1] in line.replace("\\", "")
                   for line in lines)  # fmt: skip


def test_p_values_read_the_same_everywhere():
    row = eh.results.Finding(
        audit="group", measure="fnr", groups=("a", "b"), estimate=0.1, pvalue=1e-300, pvalue_adjusted=3.2e-7
    )
    result = eh.results.AuditResult(audit="group", findings=(row,), evidence=(eh.results.Evidence(),))
    data = {"rows_in": 1, "rows_used": 1, "rows_dropped": {}, "columns": {}, "groups": {}, "notes": []}
    run = eh.AuditRun(results=(result,), plan={"correction": "holm"}, seed=0, data=data, versions={})
    markdown = run.to_markdown().replace("&lt;", "<")
    for text in (str(run), run._repr_html_().replace("&lt;", "<"), markdown):
        assert "< 1e-16" in text
        assert "3.2e-07" in text
        assert "e-300" not in text


def test_no_escape_is_shown_between_backticks(full_run):
    noted = dataclasses.replace(full_run, data={**full_run.data, "notes": ["`>50K` of `a_b` counts as 1, `yes` too."]})
    page = to_markdown(noted)
    assert '"&gt;50K" of "a\\_b" counts as 1, `yes` too.' in page
    assert not [code for code in re.findall(r"`([^`\n]+)`", page) if re.search(r"\\[_*|#~!]|&[lg]t;", code)]
