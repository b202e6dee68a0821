"""The group audit within strata: what is asked, what is shown beside it, from rows and from an engine's sums."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.group.evidence import GroupEvidence
from evenhand.errors import DataError, UsageError
from evenhand.report.sections.group import blocks

# Bickel, Hammel and O'Connell (1975): admitted and rejected men and women of Berkeley's six largest departments.
BERKELEY = {
    "A": ((512, 313), (89, 19)),
    "B": ((353, 207), (17, 8)),
    "C": ((120, 205), (202, 391)),
    "D": ((138, 279), (131, 244)),
    "E": ((53, 138), (94, 299)),
    "F": ((22, 351), (24, 317)),
}


def berkeley() -> pd.DataFrame:
    rows = [
        (name, sex, admitted, n)
        for name, both in BERKELEY.items()
        for sex, counts in zip(("Male", "Female"), both, strict=True)
        for admitted, n in zip((1, 0), counts, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["department", "sex", "admitted", "people"])
    return table.loc[table.index.repeat(table["people"])].drop(columns="people").reset_index(drop=True)


def people(n=3000, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    job, sex = rng.integers(0, 12, n), rng.integers(0, 3, n)
    y = (rng.random(n) < 0.3 + job / 30).astype(int)
    score = np.clip(rng.normal(0.3 + 0.3 * y + job / 40 + 0.03 * (sex == 1), 0.15), 0, 1).round(3)
    columns = {"y": y, "d": (score > 0.5).astype(int), "p": score, "sex": np.array(["a", "b", "c"])[sex]}
    return pd.DataFrame(columns | {"job": np.char.add("j", job.astype(str)), "w": rng.uniform(0.5, 2, n).round(2)})


ROLES = {"outcome": "y", "decision": "d", "score": "p", "groups": ["sex"], "strata": "job"}


def test_berkeley_shows_both_answers_and_warns_that_they_point_apart():
    data = eh.read(berkeley(), decision="admitted", groups=["sex"], strata="department")
    result = eh.audit_group(data, rng=0)
    (finding,), (evidence,) = result.findings, result.evidence
    assert finding.measure == "selection_rate_conditional"
    assert finding.groups == ("sex=Female", "sex=Male")
    assert finding.estimate == pytest.approx(0.01842519619)  # sum of W (p - q) over sum of W, by hand
    assert finding.interval.low < 0 < finding.interval.high
    assert finding.pvalue == pytest.approx(0.2278, abs=1e-4)
    assert isinstance(evidence, GroupEvidence)
    shown = evidence.strata
    assert shown.crude == pytest.approx(557 / 1835 - 1198 / 2691)
    assert shown.crude_interval.high < 0
    assert shown.reversed
    assert any("Simpson" in text for text in evidence.warnings)
    assert any("differ among themselves" in text for text in evidence.warnings)
    assert (shown.compared, shown.rows_compared, shown.homogeneity.df) == (6, 4526, 5)
    assert [part.label for part in shown.largest] == ["C", "D", "F", "E", "A", "B"]
    assert sum(part.share for part in shown.largest) == pytest.approx(1)


def test_the_evidence_survives_being_written_and_read():
    data = eh.read(berkeley(), decision="admitted", groups=["sex"], strata="department")
    evidence = eh.audit_group(data, rng=0).evidence[0]
    assert GroupEvidence.from_dict(evidence.to_dict()).to_dict() == evidence.to_dict()


def test_the_report_draws_the_strata_and_the_conditional_value_below():
    data = eh.read(berkeley(), decision="admitted", groups=["sex"], strata="department")
    drawn = blocks(eh.audit_group(data, rng=0))
    figure = next(block for block in drawn if block.__class__.__name__ == "Figure" and "stratum by" in block.title)
    assert [row[0] for row in figure.table.rows] == ["C", "D", "F", "E", "A", "B", "within strata", "without strata"]


def test_ratio_and_margin_ask_the_conditional_ratio():
    data = eh.read(berkeley(), decision="admitted", groups=["sex"], strata="department")
    finding = eh.audit_group(data, margin="four-fifths", rng=0).findings[0]
    assert finding.measure == "selection_rate_ratio_conditional"
    assert str(finding.verdict) == "equivalent"  # everybody's ratio of .68 would be a disparity
    crude = eh.read(berkeley(), decision="admitted", groups=["sex"])
    assert str(eh.audit_group(crude, margin="four-fifths", rng=0).findings[0].verdict) == "disparity"


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_and_an_engines_sums_give_the_same_answers(weighted):
    more = {"weight": "w", "weight_kind": "sampling"} if weighted else {}
    metrics = ["selection_rate", "fnr", "mean_score", "mse"] + ([] if weighted else ["f1", "balanced_accuracy"])
    kept = eh.read(people(), **ROLES, **more)
    summed = eh.read(duckdb.from_df(people()), **ROLES, **more)
    assert summed.moments is not None
    one, two = (eh.audit_group(data, metrics=metrics, method="limit", rng=0) for data in (kept, summed))
    for a, b in zip(one.findings, two.findings, strict=True):
        assert (a.measure, a.groups) == (b.measure, b.groups)
        assert a.estimate == pytest.approx(b.estimate, nan_ok=True)
        assert a.pvalue == pytest.approx(b.pvalue, nan_ok=True)
        if a.interval is not None:
            assert (a.interval.low, a.interval.high) == pytest.approx((b.interval.low, b.interval.high), rel=1e-6)


def test_three_groups_have_a_global_finding_within_strata():
    result = eh.audit_group(eh.read(people(), **ROLES), metrics=["selection_rate", "auc", "mean_score"], rng=0)
    measures = [f.measure for f in result.findings]
    assert measures[2::3] == [f"{m}_conditional_global" for m in ("selection_rate", "auc", "mean_score")]
    assert all(0 < f.pvalue <= 1 for f in result.findings)


def test_a_whole_weight_is_so_many_rows():
    table = people(400)
    table["n"] = np.random.default_rng(1).integers(1, 4, len(table))
    repeated = table.loc[table.index.repeat(table["n"])]
    asked = {"metrics": ["fnr", "auc", "mean_score"], "rng": 0, "n_resamples": 299}
    one = eh.audit_group(eh.read(table, **ROLES, weight="n", weight_kind="frequency"), **asked)
    two = eh.audit_group(eh.read(repeated, **ROLES), **asked)
    assert [f.pvalue for f in one.findings] == pytest.approx([f.pvalue for f in two.findings])


def test_strata_that_separate_the_groups_are_not_computable_in_one_sentence():
    data = eh.AuditData.from_arrays(
        decision=[0, 1, 1, 0, 1, 0], groups={"g": list("aaabbb")}, strata={"s": list("xxxyyy")}
    )
    finding = eh.audit_group(data, rng=0).findings[0]
    assert str(finding.verdict) == "not_computable"
    assert "No stratum has rows of both groups" in finding.reason


@pytest.mark.parametrize(("metric", "instead"), [("calibration_error", "mean_residual"), ("aod_abs", "aod")])
def test_a_metric_without_a_conditional_form_names_one_that_has(metric, instead):
    with pytest.raises(DataError, match=f"not compared within strata. Ask for `{instead}`"):
        eh.audit_group(eh.read(people(200), **ROLES), metrics=[metric])


def test_permutations_that_leave_the_strata_are_refused():
    with pytest.raises(UsageError, match="permuted within strata"):
        eh.audit_group(eh.read(people(200), **ROLES), metrics=["fnr"], permute="all")


def test_the_joint_correction_and_thresholds_leave_conditional_findings_alone():
    result = eh.audit_group(eh.read(people(600), **ROLES), metrics=["fnr"], correction="max-t", rng=0)
    assert all(e.thresholds is None and e.adjusted_pvalue is None for e in result.evidence)
    assert all(f.pvalue_adjusted >= f.pvalue for f in result.findings)
