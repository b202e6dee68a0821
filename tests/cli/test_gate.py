"""``--fail-on``: which findings break a build."""

from __future__ import annotations

import pytest

from evenhand.cli import run
from evenhand.cli.gate import met, parse_gates
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
