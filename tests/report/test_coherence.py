"""Every row of a report read by a stern reader: estimate, intervals, p-values, margin and verdict tell one story."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.audits.margin import is_ratio, margin_ends
from evenhand.report import to_markdown

N = 700


def _people(seed):
    """Rows of one model that is given the group; what people are depends on their group and so do their outcomes."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, N, p=[0.5, 0.4, 0.1])
    skill = rng.normal(size=N) + 0.8 * (group == 1)
    luck, is_b = rng.normal(size=N), (group == 1).astype(float)
    y = (rng.random(N) < 1 / (1 + np.exp(-skill - 0.5 * luck))).astype(int)
    features = {"skill": skill, "luck": luck, "is_b": is_b}
    inputs = np.column_stack(list(features.values()))
    model = LogisticRegression().fit(inputs[::2], y[::2])
    data = eh.AuditData.from_arrays(
        outcome=y,
        decision=model.predict(inputs),
        score=model.predict_proba(inputs)[:, 1],
        groups={"kind": np.array(["a", "b", "c"])[group]},
        features=features,
    )
    return data, model


@pytest.fixture(scope="module", params=["none", "0.05", "four-fifths"])
def run(request):
    data, model = _people(seed=5)
    margin = {} if request.param == "none" else {"margin": 0.05 if request.param == "0.05" else request.param}
    plan = eh.Plan(
        audits=("group", "projection", "individual", "proxy", "tail", "scan"),
        group={"metrics": ["selection_rate", "fnr", "fpr"], **margin},
        individual={"refits": 10, "steps": 50},
        tail={"flip": {"a": {"is_b": 0.0}, "b": {"is_b": 1.0}, "c": {"is_b": 0.0}}, "generator": "none"},
        scan={"attributes": ["kind", "skill", "luck"], "smallest": 10},
        n_resamples=999,
        seed=1,
    )
    return eh.audit(data, model=model, plan=plan, rng=0)


def _rows(run):
    return [(f, e) for r in run.results for f, e in zip(r.findings, r.evidence, strict=True)]


def _allowed(finding):
    """Return the values that are no disparity."""
    null = 1.0 if is_ratio(finding.measure) else 0.0
    if finding.margin is None:
        return null, null
    low, high = margin_ends(finding.measure, finding.margin)
    return (-math.inf, high) if finding.audit == "individual" or finding.measure == "return_level" else (low, high)


def _misses(interval, allowed):
    return interval.low > allowed[1] or interval.high < allowed[0]


def _told(finding):
    return f"{finding.audit} {finding.measure} {finding.groups}: {finding.reason}"


def test_the_run_has_every_audit_and_every_kind_of_row(run):
    assert {f.audit for f in run.findings} == {"group", "projection", "individual", "proxy", "tail", "scan"}
    assert {eh.Verdict.DISPARITY, eh.Verdict.INCONCLUSIVE} <= {f.verdict for f in run.findings}
    assert any(f.margin is not None for f in run.findings)


def test_no_number_is_missing_without_a_reason(run):
    for finding, _ in _rows(run):
        assert finding.reason, finding
        if finding.verdict is not eh.Verdict.NOT_COMPUTABLE:
            assert not math.isnan(finding.estimate), _told(finding)
            assert 0 <= finding.pvalue <= finding.pvalue_adjusted <= 1, _told(finding)


def test_interval_and_pvalue_agree(run):
    for finding, evidence in _rows(run):
        if finding.interval is None or finding.verdict is eh.Verdict.NOT_COMPUTABLE:
            continue
        assert finding.interval.low <= finding.estimate <= finding.interval.high, _told(finding)
        # An interval that holds for all that was searched is at the level of a single question.
        searched = evidence.critical_pvalue is not None
        rejects = finding.pvalue <= (evidence.critical_pvalue if searched else 1 - finding.interval.level) + 1e-9
        assert _misses(finding.interval, _allowed(finding)) == rejects, _told(finding)


def test_the_interval_at_the_verdicts_level_says_what_the_verdict_says(run):
    for finding, evidence in _rows(run):
        interval, allowed = evidence.verdict_interval, _allowed(finding)
        if interval is None:
            continue
        assert interval.low <= finding.estimate <= interval.high, _told(finding)
        inside = allowed[0] <= interval.low and interval.high <= allowed[1]
        if finding.verdict is eh.Verdict.DISPARITY:
            assert _misses(interval, allowed), _told(finding)
        elif finding.verdict is eh.Verdict.EQUIVALENT:
            assert inside, _told(finding)
        else:
            assert not _misses(interval, allowed), _told(finding)
            assert not inside or finding.margin is None, _told(finding)


def test_verdicts_follow_their_adjusted_pvalues(run):
    for finding, evidence in _rows(run):
        if finding.verdict is eh.Verdict.NOT_COMPUTABLE:
            continue
        inside = evidence.equivalence_pvalue_adjusted
        shown_inside = inside is not None and inside <= 0.05
        assert (finding.verdict is eh.Verdict.EQUIVALENT) == shown_inside, _told(finding)
        shown = finding.pvalue_adjusted <= 0.05 and not shown_inside
        assert (finding.verdict is eh.Verdict.DISPARITY) == shown, _told(finding)


def test_sentences_name_the_margin(run):
    for finding, _ in _rows(run):
        if finding.margin is None:
            assert finding.verdict is not eh.Verdict.EQUIVALENT
            continue
        if finding.verdict in (eh.Verdict.DISPARITY, eh.Verdict.EQUIVALENT):
            assert f"margin of {finding.margin:g}" in finding.reason, _told(finding)
        if finding.audit == "group" and is_ratio(finding.measure) and "margin" in finding.reason:
            assert "0.8 to 1.25" in finding.reason, _told(finding)


def test_each_note_on_the_data_stands_once_in_the_page(run):
    page = to_markdown(run)
    for note in run.data["notes"]:
        assert page.count(note.replace("_", "\\_")) <= 1, note
