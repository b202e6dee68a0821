"""``--fail-on``: which findings break a build."""

from __future__ import annotations

import json

import numpy as np
import pytest

import evenhand as eh
from evenhand.cli import run
from evenhand.cli.gate import check_gates, met, parse_gates
from evenhand.errors import UsageError
from evenhand.results import AuditResult, AuditRun, Evidence, Finding, Verdict

BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex", "--metrics", "fnr,fpr", "--quiet")


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["disparity"], 3),
        (["group:disparity"], 3),
        (["fnr:disparity"], 3),
        (["group:fnr:disparity"], 3),
        (["fpr:disparity"], 0),
        (["fpr:inconclusive"], 3),
        (["not_computable"], 0),
        (["fpr:disparity", "fnr:disparity"], 3),
    ],
)
def test_exit_code_and_the_sentence(tmp_path, capsys, decisions, gates, code):
    words = [word for gate in gates for word in ("--fail-on", gate)]
    assert run(["audit", str(decisions()), *BASIC, *words, "--out", str(tmp_path / "out")]) == code
    shown = capsys.readouterr().err
    assert ("is met by 1 finding: group" in shown) == (code == 3)
    assert (tmp_path / "out" / "findings.json").exists()
    assert ("<failure" in (tmp_path / "out" / "junit.xml").read_text()) == (code == 3)


def test_the_names_of_comparisons_are_words_of_the_command_line(tmp_path, capsys, decisions):
    words = ["--metrics", "spd,di,aod", "--fail-on", "di:disparity", "--out", str(tmp_path / "out")]
    assert run(["audit", str(decisions()), *BASIC, *words]) in (0, 3)
    found = json.loads((tmp_path / "out" / "findings.json").read_text())["findings"]
    assert [f["measure"] for f in found if not f["measure"].endswith("_global")] == ["spd", "di_ratio", "aod"]
    capsys.readouterr()
    assert run(["audit", str(decisions()), *BASIC, "--metrics", "aodd", "--out", str(tmp_path / "other")]) == 2
    assert "Did you mean `aod`" in capsys.readouterr().err


def made(*rows: tuple[str, str, str]) -> AuditRun:
    results = tuple(
        AuditResult(
            audit=audit,
            findings=(Finding(audit=audit, measure=m, groups=("a", "b"), estimate=0.1, verdict=Verdict(v)),),
            evidence=(Evidence(),),
        )
        for audit, m, v in rows
    )
    return AuditRun(results=results, plan={}, seed=0, data={}, versions={})


def test_a_metric_covers_its_ratio_its_global_test_and_its_features():
    run = made(
        ("group", "fnr_ratio", "disparity"), ("group", "fnr_global", "disparity"), ("proxy", "fnr:age", "disparity")
    )
    (told,) = met(parse_gates(["fnr:disparity"]), run)
    assert "3 findings" in told
    (told,) = met(parse_gates(["proxy:fnr:disparity"]), run)
    assert "1 finding: proxy fnr:age" in told
    (told,) = met(parse_gates(["proxy:fnr:age:disparity"]), run)
    assert "1 finding" in told


def test_a_metric_does_not_cover_another_that_begins_with_its_name():
    run = made(("group", "aod", "inconclusive"), ("group", "aod_abs", "disparity"), ("group", "di_ratio", "disparity"))
    assert not met(parse_gates(["aod:disparity"]), run)
    (told,) = met(parse_gates(["aod_abs:disparity"]), run)
    assert "1 finding: group aod_abs" in told
    (told,) = met(parse_gates(["di:disparity"]), run)
    assert "1 finding: group di_ratio" in told


def test_a_gate_on_a_mean_of_the_tail_audit_needs_it_to_be_asked_for():
    data = eh.datasets.planted(rows=100, rng=0)
    gates = parse_gates(["tail:acd:disparity", "tail:return_level:disparity"])
    check_gates(gates, eh.Plan(audits=["tail"], tail={"measures": ["ecd", "acd"]}), data)
    with pytest.raises(UsageError, match="`acd` is not audited, so it could never be met"):
        check_gates(gates, eh.Plan(audits=["tail"]), data)


def test_many_findings_are_counted_not_listed():
    (told,) = met(parse_gates(["disparity"]), made(*[("group", "fnr", "disparity")] * 9))
    assert "9 findings" in told
    assert told.endswith("and 4 more.")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("", "`` is not a verdict"),
        ("fnr", "`fnr` is not a verdict"),
        ("group:", "`` is not a verdict"),
        ("grup:disparity", "Did you mean `group`"),
        ("group:fnrr:disparity", "Did you mean `fnr`"),
        ("group:tail:disparity", "`tail` is not a known metric"),
    ],
)
def test_names_are_checked(word, says):
    with pytest.raises(UsageError, match=says):
        parse_gates([word])


def test_a_gate_that_looks_at_nothing_is_refused():
    with pytest.raises(UsageError, match=r"could never be met\. Found: `group`, `fpr`"):
        met(parse_gates(["fnr:disparity"]), made(("group", "fpr", "disparity")))


def test_a_gate_on_the_scan_is_checked_against_what_it_searches():
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(["a", "b"], 200) for name in ("sex", "race")}
    coin = rng.integers(0, 2, 200)
    data = eh.AuditData.from_arrays(outcome=coin, decision=coin[::-1], groups=columns)
    plan = eh.Plan(audits=("group", "scan"))
    check_gates(parse_gates(["scan:fnr:disparity", "scan:disparity"]), plan, data)
    with pytest.raises(UsageError, match="`selection_rate` is not audited"):
        check_gates(parse_gates(["scan:selection_rate:disparity"]), plan, data)
