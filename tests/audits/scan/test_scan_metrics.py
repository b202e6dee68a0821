"""The scan of metrics beyond rates: what it finds, says and refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.scan.families import family_of
from evenhand.audits.scan.options import ScanOptions
from evenhand.audits.scan.subgroups import subgroups_of

PLANTED = "sex=F & race=B"
FOUND = ("brier", "log_loss", "mae", "mse", "mean_residual", "auc", "calibration_error", "balanced_accuracy")


def columns(rows: int = 3000, seed: int = 0) -> dict:
    """Draw people of whom one subgroup has outcomes that hardly go with the scores."""
    rng = np.random.default_rng(seed)
    groups = {a: rng.choice(list(values), rows) for a, values in (("sex", "FM"), ("race", "ABC"), ("job", "xyz"))}
    logit = rng.normal(size=rows) * 1.5
    planted = (groups["sex"] == "F") & (groups["race"] == "B")
    score = 1 / (1 + np.exp(-logit))
    outcome = rng.random(rows) < np.where(planted, 1 / (1 + np.exp(-(1 - 0.3 * logit))), score)
    return {"outcome": outcome.astype(int), "decision": (score > 0.5).astype(int), "score": score, "groups": groups}


@pytest.fixture(scope="module")
def people() -> eh.AuditData:
    """Return people of whom one subgroup is treated differently."""
    return eh.AuditData.from_arrays(**columns())


@pytest.mark.parametrize("metric", FOUND)
def test_a_planted_subgroup_is_found(people, metric):
    result = eh.audit_scan(people, [metric], rng=0, n_resamples=199, show=1)
    finding = result.findings[0]
    assert (finding.groups, str(finding.verdict)) == ((PLANTED, "rest"), "disparity")
    assert finding.pvalue <= finding.pvalue_adjusted
    assert finding.interval.low <= finding.estimate <= finding.interval.high
    assert not finding.interval.low <= 0 <= finding.interval.high
    evidence = result.evidence[0]
    assert evidence.more_people is None
    assert PLANTED in evidence.fact
    assert evidence.detectable == ()


@pytest.mark.parametrize("metric", [*FOUND, "mean_score", "scoring_rate", "f1", "aod"])
def test_estimate_and_p_value_are_those_of_the_group_audit(people, metric):
    inside = np.array(
        [s == "F" and r == "B" for s, r in zip(*(columns()["groups"][a] for a in ("sex", "race")), strict=True)]
    )
    data = eh.AuditData.from_arrays(**columns() | {"groups": {"set": np.where(inside, "in", "out")}})
    group = eh.audit_group(data, [metric], reference={"set": "out"}, rng=0).findings[0]
    subgroups = subgroups_of(people, ["sex", "race", "job"], ScanOptions())
    family, between = family_of(eh.METRICS[metric], people, subgroups, 20)
    place = next(i for i, c in enumerate(family.lattice.conditions) if subgroups.name(c) == PLANTED)
    members = family.lattice.members[place].toarray()[0] > 0
    pair = between(members, ~members)
    if metric == "calibration_error":  # the scan compares curves at the same scores, and shows both errors
        assert np.abs(np.subtract(*pair.values(0, 1))) == pytest.approx(abs(group.estimate), abs=1e-12)
        assert pair.difference(0, 1) == pytest.approx(family.difference[place], abs=1e-12)
        return
    assert pair.difference(0, 1) == pytest.approx(group.estimate, abs=1e-12)
    if metric == "f1":  # searched as successes over people with outcome 1 or decision 1
        assert (family.difference[place] > 0) == (group.estimate > 0)
    else:  # scores are binned for an AUC
        assert family.difference[place] == pytest.approx(group.estimate, abs=2e-3 if metric == "auc" else 1e-12)


def test_row_order_does_not_matter(people):
    plain = columns()
    order = np.random.default_rng(5).permutation(3000)
    shuffled = {k: v[order] for k, v in plain.items() if k != "groups"}
    shuffled["groups"] = {k: v[order] for k, v in plain["groups"].items()}
    metrics = ["log_loss", "auc", "calibration_error", "balanced_accuracy"]
    one, two = (
        eh.audit_scan(data, metrics, rng=1, n_resamples=99, show=2)
        for data in (people, eh.AuditData.from_arrays(**shuffled))
    )
    same = ("groups", "estimate", "pvalue", "pvalue_adjusted")
    for a, b in zip(one.findings, two.findings, strict=True):
        assert [getattr(a, k) for k in same] == [getattr(b, k) for k in same]


def test_means_are_compared_with_everybody_too(people):
    rest, overall = (
        eh.audit_scan(people, "brier", reference=word, rng=0, n_resamples=199, show=0).findings[0]
        for word in ("rest", "overall")
    )
    share = np.mean(
        [s == "F" and r == "B" for s, r in zip(*(columns()["groups"][a] for a in ("sex", "race")), strict=True)]
    )
    assert overall.estimate == pytest.approx(rest.estimate * (1 - share))


def test_what_cannot_be_searched_is_refused(people):
    with pytest.raises(eh.UsageError, match=r"`auc` is no average over people.*reference=\"rest\""):
        eh.audit_scan(people, "auc", reference="overall")
    with pytest.raises(eh.UsageError, match=r"`aod_abs` cannot be searched\. Allowed: .*`auc`.*`aod`\."):
        eh.audit_scan(people, "aod_abs")
    with pytest.raises(eh.UsageError, match="`di` cannot be searched"):
        eh.audit_scan(people, "di")


def test_an_auc_needs_ten_of_each_outcome():
    rng = np.random.default_rng(0)
    outcome, group = np.r_[np.ones(9), np.zeros(391)], np.r_[np.repeat("a", 200), np.repeat("b", 200)]
    data = eh.AuditData.from_arrays(outcome=outcome, score=rng.random(400), groups={"g": group})
    result = eh.audit_scan(data, "auc", rng=0, n_resamples=99)
    assert [str(f.verdict) for f in result.findings] == ["not_computable"]


def test_sums_of_an_engine_are_searched_or_refused():
    plain = columns(rows=12_000, seed=3)
    frame = pd.DataFrame({k: v for k, v in plain.items() if k != "groups"} | plain["groups"])
    roles = {"outcome": "outcome", "decision": "decision", "score": "score", "groups": list(plain["groups"])}
    cells, rows = (eh.read(frame, **roles, rows=how) for how in ("cells", "keep"))
    assert cells.moments is not None
    one, two = (eh.audit_scan(data, "mean_residual", rng=0, n_resamples=199, show=0) for data in (cells, rows))
    assert one.findings[0].groups == two.findings[0].groups == (PLANTED, "rest")
    assert one.findings[0].estimate == pytest.approx(two.findings[0].estimate, abs=1e-9)
    # Of sums the normal law is used, so that subgroups of fewer than a thousand people are left out.
    assert one.evidence[0].tested < two.evidence[0].tested
    assert min(e.people for e in one.evidence) >= 1000
    assert eh.audit_scan(cells, "auc", rng=0, n_resamples=99, show=0).findings[0].groups == (PLANTED, "rest")
    with pytest.raises(eh.DataError, match=r"searched row by row.*rows='keep'.*`mean_residual`"):
        eh.audit_scan(cells, "calibration_error")
