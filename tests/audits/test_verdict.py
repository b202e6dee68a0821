from __future__ import annotations

import math

import pytest

from evenhand.audits.verdict import settle
from evenhand.results import AuditResult, Finding, Verdict


def result(*rows: tuple[float, float | None], margin: float | None = None) -> AuditResult:
    findings, evidence = [], []
    for pvalue, inside in rows:
        findings.append(Finding(audit="x", measure="m", groups=("a", "b"), estimate=0.1, pvalue=pvalue, margin=margin))
        evidence.append(
            {"fact": "A fact.", "planning": "A plan."} | ({} if inside is None else {"equivalence_pvalue": inside})
        )
    return AuditResult(audit="x", findings=tuple(findings), evidence=tuple(evidence))


def verdicts(*args, **options) -> list[Verdict]:
    return [f.verdict for r in settle(args, **options) for f in r]


def test_holm_over_all_results_together():
    one, two = settle([result((0.01, None)), result((0.03, None), (0.5, None))], alpha=0.05)
    assert [f.pvalue_adjusted for f in (*one, *two)] == pytest.approx([0.03, 0.06, 0.5])
    assert [f.verdict for f in (*one, *two)] == ["disparity", "inconclusive", "inconclusive"]


def test_margin_turns_no_rejection_into_equivalent_or_inconclusive():
    rows = result((0.8, 0.001), (0.8, 0.4), margin=0.05)
    assert verdicts(rows, alpha=0.05) == ["equivalent", "inconclusive"]


def test_a_shown_but_negligible_difference_is_equivalent_and_says_so():
    (judged,) = settle([result((0.001, 0.001), margin=0.05)], alpha=0.05)[0]
    assert judged.verdict == "equivalent"
    assert "although it differs" in judged.reason


def test_equivalence_pvalues_are_adjusted_too():
    rows = result((0.8, 0.03), (0.8, 0.04), margin=0.05)
    assert verdicts(rows, alpha=0.05) == ["inconclusive", "inconclusive"]
    assert verdicts(rows, alpha=0.05, correction="none") == ["equivalent", "equivalent"]


def test_not_computable_neither_counts_nor_changes():
    dead = Finding(
        audit="x",
        measure="m",
        groups=("a",),
        estimate=math.nan,
        verdict=Verdict.NOT_COMPUTABLE,
        reason="Why.",
    )
    live = Finding(audit="x", measure="m", groups=("a",), estimate=0.2, pvalue=0.04)
    judged = settle([AuditResult(audit="x", findings=(dead, live), evidence=({}, {}))], alpha=0.05)[0]
    assert judged[0] is dead
    assert judged[1].pvalue_adjusted == 0.04
    assert judged[1].verdict == "disparity"


def test_inconclusive_is_never_good_news():
    (judged,) = settle([result((0.9, None))], alpha=0.05)[0]
    assert "does not show that there is no disparity" in judged.reason
    assert judged.reason.startswith("A fact.")
    assert judged.reason.endswith("A plan.")


def test_joint_adjustment_is_taken_where_there_is_one():
    rows = result((0.01, None), (0.02, None))
    joint = AuditResult(audit="x", findings=rows.findings, evidence=({"adjusted_pvalue": 0.015}, {}))
    # Each half of the error serves one: the joint family is done first, then Holm's has all of it.
    assert [f.pvalue_adjusted for f in settle([joint], alpha=0.05, correction="max-t")[0]] == [0.03, 0.03]


def test_gatekeeping_follows_the_order_of_the_audits():
    first, second = result((0.5, 0.001), margin=0.05), result((0.0001, 0.03), margin=0.05)
    for order, verdict in (((first, second), "inconclusive"), ((second, first), "disparity")):
        judged = settle(order, alpha=0.05, correction="gatekeeping")
        strong = judged[[r is second for r in order].index(True)][0]
        assert strong.pvalue_adjusted == (0.5 if verdict == "inconclusive" else 0.0001)
    closed, opened = settle([first, second], alpha=0.05, correction="gatekeeping")
    assert (closed[0].verdict, opened[0].verdict) == ("equivalent", "equivalent")  # margins are a family of their own
