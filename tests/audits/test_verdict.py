from __future__ import annotations

import math

import numpy as np
import pytest

from evenhand.audits.verdict import settle
from evenhand.results import AuditResult, Evidence, Finding, Interval, Verdict


def result(*rows: tuple[float, float | None], margin: float | None = None) -> AuditResult:
    findings, evidence = [], []
    for pvalue, inside in rows:
        findings.append(Finding(audit="x", measure="m", groups=("a", "b"), estimate=0.1, pvalue=pvalue, margin=margin))
        evidence.append(Evidence(fact="A fact.", planning="A plan.", equivalence_pvalue=inside))
    return AuditResult(audit="x", findings=tuple(findings), evidence=tuple(evidence))


def margined(*rows: tuple[float, float, float]) -> AuditResult:
    """Findings with a margin of .05: p-values for inside it, outside it, and none."""
    findings = tuple(
        Finding(audit="group", measure="m", groups=("a", "b"), estimate=0.1, pvalue=p, margin=0.05) for p, _, _ in rows
    )
    evidence = tuple(Evidence(equivalence_pvalue=q, difference_pvalue=d) for _, q, d in rows)
    return AuditResult(audit="group", findings=findings, evidence=evidence)


def verdicts(*args, **options) -> list[Verdict]:
    return [f.verdict for r in settle(args, **options) for f in r]


def test_holm_over_all_results_together():
    one, two = settle([result((0.01, None)), result((0.03, None), (0.5, None))], alpha=0.05)
    assert [f.pvalue_adjusted for f in (*one, *two)] == pytest.approx([0.03, 0.06, 0.5])
    assert [f.verdict for f in (*one, *two)] == ["disparity", "inconclusive", "inconclusive"]


def test_margin_turns_no_rejection_into_equivalent_or_inconclusive():
    rows = result((0.8, 0.001), (0.8, 0.4), margin=0.05)
    assert verdicts(rows, alpha=0.05) == ["equivalent", "inconclusive"]


def test_with_a_margin_a_disparity_is_shown_beyond_it():
    rows = margined((0.001, 1.0, 1e-9), (0.4, 0.9, 1e-9), (1.0, 0.2, 0.001), (1.0, 0.3, 0.6), (1.0, 1e-5, 1e-4))
    judged = settle([rows], alpha=0.05)[0]
    assert [str(f.verdict) for f in judged] == [
        "disparity", "inconclusive", "inconclusive", "inconclusive", "equivalent"
    ]  # fmt: skip
    assert "shown to lie beyond the margin of 0.05" in judged[0].reason
    for row in judged[1:3]:
        assert "is shown to differ from 0" in row.reason
        assert "but not on which side of 0.05 it lies" in row.reason
    assert "not shown to lie beyond the margin of 0.05 (adjusted p 1.0000), nor to lie inside it" in judged[3].reason
    assert "although it is shown to differ from 0" in judged[4].reason
    assert judged.evidence[4].equivalence_pvalue_adjusted == pytest.approx(5e-5)


def test_a_ratio_names_the_end_of_its_margin():
    for estimate, end in ((0.843, "0.8"), (1.19, "1.25")):
        row = Finding(
            audit="group", measure="selection_rate_ratio", groups=("a", "b"), estimate=estimate, pvalue=1.0, margin=0.8,
            interval=Interval(low=0.765, high=0.917, level=0.95, kind="score"),
        )  # fmt: skip
        evidence = Evidence(equivalence_pvalue=0.12, difference_pvalue=0.002)
        (judged,) = settle([AuditResult(audit="group", findings=(row,), evidence=(evidence,))], alpha=0.05)[0]
        assert judged.verdict == "inconclusive"
        assert f"The ratio {estimate:.3f} [0.765, 0.917] is shown to differ from 1" in judged.reason
        assert f"but not on which side of {end} it lies" in judged.reason


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
    judged = settle([AuditResult(audit="x", findings=(dead, live), evidence=(Evidence(), Evidence()))], alpha=0.05)[0]
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
    joint = AuditResult(audit="x", findings=rows.findings, evidence=(Evidence(adjusted_pvalue=0.015), Evidence()))
    # Each half of the error serves one: the joint family is done first, then Holm's has all of it.
    assert [f.pvalue_adjusted for f in settle([joint], alpha=0.05, correction="max-t")[0]] == [0.03, 0.03]


def of(audit: str, *pvalues: float, **evidence) -> AuditResult:
    findings = tuple(Finding(audit=audit, measure="m", groups=("a", "b"), estimate=0.1, pvalue=p) for p in pvalues)
    return AuditResult(audit=audit, findings=findings, evidence=tuple(Evidence(**evidence) for _ in pvalues))


def test_gatekeeping_tests_what_explains_only_when_a_group_difference_is_shown():
    for order in ((0, 1), (1, 0)):  # the order of the audits does not matter
        results = [of("group", 0.5), of("proxy", 1e-9, 0.3)]
        group, proxy = (settle([results[i] for i in order], alpha=0.05, correction="gatekeeping")[i] for i in order)
        assert [str(f.verdict) for f in (*group, *proxy)] == ["inconclusive"] * 3
        assert "Not tested, because no group difference was shown" in proxy[0].reason
        assert "compatible with chance" in group[0].reason
    group, proxy = settle([of("group", 0.001), of("proxy", 0.02, 0.3)], alpha=0.05, correction="gatekeeping")
    assert [f.pvalue_adjusted for f in (*group, *proxy)] == pytest.approx([0.001, 0.04, 0.3])
    assert "compatible with chance" in proxy[1].reason


def test_many_explaining_tests_do_not_tax_the_group_audit():
    many = of("proxy", *[0.5] * 55)
    group, _ = settle([of("group", 0.03), many], alpha=0.05, correction="gatekeeping")
    assert group[0].pvalue_adjusted == pytest.approx(0.03)
    group, _ = settle([of("group", 0.03), many], alpha=0.05, correction="holm")
    assert group[0].pvalue_adjusted == 1.0


def test_shares_of_the_entry_audits():
    group, person, tail = settle(
        [of("group", 0.03), of("individual", 0.02), of("tail", 0.5)], alpha=0.05, correction="gatekeeping"
    )
    assert [group[0].pvalue_adjusted, person[0].pvalue_adjusted, tail[0].pvalue_adjusted] == pytest.approx(
        [0.06, 0.06, 0.5],
        rel=1e-5,  # twice .03; .02 of a half left by the group; all that is left
    )
    alone = settle([of("proxy", 0.02, 0.03)], alpha=0.05, correction="gatekeeping")[0]
    assert [f.pvalue_adjusted for f in alone] == pytest.approx([0.04, 0.04])


def test_without_a_group_audit_the_first_that_explains_takes_its_place():
    _, proxy = settle([of("projection", 0.5), of("proxy", 1e-9)], alpha=0.05, correction="gatekeeping")
    assert "Not tested, because the projection audit showed nothing" in proxy[0].reason
    opened = settle([of("projection", 0.001), of("proxy", 1e-9)], alpha=0.05, correction="gatekeeping")
    assert all(r[0].verdict == "disparity" for r in opened)


def test_equivalence_waits_for_no_gate():
    group = of("group", 1.0, equivalence_pvalue=0.9)
    proxy = of("proxy", 1.0, equivalence_pvalue=0.001)
    settled = settle([group, proxy], alpha=0.05, correction="gatekeeping")
    assert [str(r[0].verdict) for r in settled] == ["inconclusive", "equivalent"]


@pytest.mark.parametrize("exact", [True, False])
def test_a_p_value_at_its_floor_is_not_compatible_with_chance(exact):
    rows = of("tail", 0.001, *[0.9] * 99, pvalue_floor=0.001, n_resamples=999, exact=exact)
    judged = settle([rows], alpha=0.05)[0]
    assert judged[0].verdict == "inconclusive"
    assert "compatible with chance" not in judged[0].reason.replace("not said to be compatible with chance", "")
    assert ("at the floor of its simulation" in judged[0].reason) is not exact
    assert "compatible with chance" in judged[1].reason


def test_what_would_be_shown_alone_says_so():
    judged = settle([of("group", 0.03, 0.5)], alpha=0.05)[0]
    assert "Looked at alone it would be shown (p 0.0300), but not among all questions asked here" in judged[0].reason


def normal(audit: str, *z: float, margin: float | None = None) -> AuditResult:
    """Findings on the mean of one normal observation of variance 1, whose intervals and tests agree by construction."""
    from scipy import stats

    findings, evidence, makers = [], [], []
    for x in z:

        def at(level: float, x: float = x) -> Interval:
            half = stats.norm.isf((1 - level) / 2)
            return Interval(low=x - half, high=x + half, level=level, kind="normal")

        differs = 2 * stats.norm.sf(abs(x))
        more = {} if margin is None else {
            "difference_pvalue": differs,
            "equivalence_pvalue": max(stats.norm.sf(x + margin), stats.norm.cdf(x - margin)),
        }  # fmt: skip
        p = differs if margin is None else 1.0 if abs(x) <= margin else 2 * stats.norm.sf(abs(x) - margin)
        findings.append(
            Finding(audit=audit, measure="m", groups=("a",), estimate=x, pvalue=p, margin=margin, interval=at(0.95))
        )
        evidence.append(Evidence(**more))
        makers.append(at)
    return AuditResult(audit=audit, findings=tuple(findings), evidence=tuple(evidence), interval_at=tuple(makers))


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh", "gatekeeping", "max-t", "none"])
@pytest.mark.parametrize("margin", [None, 1.0, 4.0])
def test_the_interval_at_the_verdicts_level_says_what_the_verdict_says(correction, margin):
    rng = np.random.default_rng(0)
    for _ in range(20):
        results = [
            normal(name, *rng.normal(0, 3, rng.integers(1, 6)), margin=margin)
            for name in ("group", "proxy", "tail", "projection")
        ]
        for result in settle(results, alpha=0.05, correction=correction):
            for finding, evidence in zip(result.findings, result.evidence, strict=True):
                if "Not tested" in finding.reason:
                    assert evidence.verdict_interval is None
                    continue
                low, high = evidence.verdict_interval.low, evidence.verdict_interval.high
                edge = margin or 0.0
                beyond, inside = bool(low > edge or high < -edge), bool(-edge < low and high < edge)
                differs = "is shown to differ" in finding.reason
                assert beyond is (finding.verdict == "disparity")
                assert inside is (finding.verdict == "equivalent")
                if margin is not None and finding.verdict == "inconclusive":
                    assert bool(low > 0 or high < 0) is differs


def test_intervals_of_levels_are_not_written_and_a_second_verdict_replaces_the_first():
    raw = normal("group", 3.0, 0.1)
    once = settle([raw], alpha=0.05, correction="bonferroni")[0]
    assert once.evidence[0].verdict_interval.level == pytest.approx(0.975)
    assert "interval_at" not in once.to_dict()
    again = settle([once], alpha=0.05, correction="none")[0]
    assert again.evidence[0].verdict_interval == raw[0].interval
    assert settle([again], alpha=0.05, correction="none")[0].to_dict() == again.to_dict()
