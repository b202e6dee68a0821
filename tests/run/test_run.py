"""Several audits in one run: what fails alone, what is refused at once, and what is written down."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow
import pytest

import evenhand as eh
from evenhand import AuditRun, DataError, Plan, UsageError

N = 400


def score(X: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-X[:, 0] - 0.5 * X[:, 1]))


def arrays(n: int = N, **more) -> dict:
    rng = np.random.default_rng(0)
    x, sex = rng.normal(size=n), rng.integers(0, 2, n)
    p = score(np.column_stack([x, sex]))
    given = {
        "outcome": (rng.random(n) < p).astype(int),
        "decision": (p >= 0.5).astype(int),
        "score": p,
        "groups": {"sex": sex},
        "features": {"x": x, "sex": sex},
    }
    return {k: v for k, v in (given | more).items() if v is not None}


def data(**more):
    return eh.AuditData.from_arrays(**arrays(**more))


def began(text: str) -> None:
    raise AssertionError(f"work began: {text}")


QUICK = {"individual": {"steps": 20, "refits": 0}, "tail": {"generator": "none", "n_resamples": 99}}


def two_columns(**more):
    """Return people with two group columns, decisions that differ in one corner, and an outcome."""
    rng = np.random.default_rng(3)
    sex, race = (rng.choice(list(values), 3000) for values in ("FM", "ABC"))
    outcome = rng.integers(0, 2, 3000)
    decision = (rng.random(3000) < np.where((sex == "F") & (race == "C"), 0.2, 0.5)).astype(int)
    given = {"outcome": outcome, "decision": decision, "groups": {"sex": sex, "race": race}}
    return eh.AuditData.from_arrays(**given | more)


def test_two_group_columns_are_scanned_by_default_and_one_is_not():
    assert Plan.default(two_columns()).audits == ("group", "scan")
    one = Plan.default(data())
    assert "scan" not in one.audits
    assert "the scan audit, which needs at least two group columns to combine" in one.notes[0]
    run = eh.audit(two_columns(), rng=0)
    shown = {f.groups[0] for f in run.findings if f.audit == "scan" and f.verdict == "disparity"}
    assert shown == {"sex=F & race=C"}


def test_a_reference_group_of_the_plan_is_not_the_scans():
    plan = Plan(audits=("group", "scan"), reference={"sex": "M"}, group={"metrics": ["fnr"]}, scan={"metrics": ["fnr"]})
    run = eh.audit(two_columns(), plan=plan, rng=0)
    assert {f.groups[1] for f in run.findings if f.audit == "scan"} == {"rest"}


def test_a_metric_that_the_scan_cannot_have_is_refused_before_work():
    plan = Plan(audits=("group", "scan"), scan={"metrics": ["brier"]})
    with pytest.raises(eh.EvenhandError, match="brier"):
        eh.audit(two_columns(), plan=plan, rng=0, progress=began)


def test_a_run_that_may_be_shared_holds_the_scan_back():
    run = eh.audit(two_columns(), rng=0, suppress=10)
    assert {f.audit for f in run.findings} == {"group"}
    assert any("rests on counts of many small subgroups: the scan audit" in note for note in run.data["notes"])
    assert "&" not in run.to_json()


def test_default_with_a_model_runs_all_of_one_column_on_one_family():
    run = eh.audit(data(), model=score, plan=Plan.default(data(), score, base=Plan(**QUICK)), rng=0)
    assert [r.audit for r in run.results] == ["group", "projection", "individual", "proxy", "tail"]
    raw = np.array([f.pvalue for f in run.findings])
    adjusted = np.array([f.pvalue_adjusted for f in run.findings])
    made = np.isfinite(raw)
    group = np.array([f.audit == "group" for f in run.findings]) & made
    smallest = int(np.flatnonzero(group)[np.argmin(raw[group])])
    assert adjusted[smallest] <= min(1.0, raw[smallest] * group.sum() / 0.5) * (1 + 1e-6)  # half the error, and Holm
    assert (adjusted[made] >= raw[made]).all()
    assert {r.options["correction"] for r in run.results} == {"gatekeeping"}


@pytest.mark.parametrize("correction", ["gatekeeping", "max-t", "bh", "none"])
def test_every_correction_takes_every_audit(correction):
    audits = ("group", "projection", "individual", "proxy", "tail", "scan")
    asked = {**QUICK, "scan": {"attributes": ["sex", "x"]}}
    run = eh.audit(data(), model=score, plan=Plan(audits=audits, correction=correction, **asked), rng=0)
    assert all(f.pvalue_adjusted >= f.pvalue for f in run.findings if np.isfinite(f.pvalue))
    assert {r.options["correction"] for r in run.results} == {correction}
    assert run.plan["correction"] == correction


def test_the_run_holds_its_plan_with_hash_and_seed():
    run = eh.audit(data(), plan=Plan(seed=5, group={"metrics": ["fnr"]}))
    assert run.seed == run.plan["seed"] == 5
    again = Plan.from_dict(run.plan)
    assert again.hash == run.plan["hash"]
    assert eh.audit(data(), plan=again).to_json() == run.to_json()
    assert eh.audit(data(), plan=again, rng=6).plan["seed"] == 6
    assert AuditRun.from_dict(run.to_dict()).to_json() == run.to_json()


def test_default_says_what_was_left_out():
    run = eh.audit(data(features=None), rng=0)
    assert [r.audit for r in run.results] == ["group"]
    assert any("the tail audit, which needs a model" in note for note in run.data["notes"])


def test_an_audit_that_fails_on_the_data_costs_only_itself():
    broken = arrays()
    broken["decision"] = broken["decision"].copy()
    broken["decision"][:40] = 1 - broken["decision"][:40]  # the model decided otherwise: projection cannot run
    rows = eh.AuditData.from_arrays(**broken)
    run = eh.audit(rows, model=score, plan=Plan(audits=("group", "projection"), group={"metrics": ["fnr"]}), rng=0)
    group, projection = run.results
    assert [f.measure for f in group] == ["fnr"]
    (lost,) = projection
    assert (lost.audit, lost.measure, lost.verdict) == ("projection", "projection", "not_computable")
    assert "disagree on 40 of 400 rows" in lost.reason
    assert any("differ on 40 of 400 rows (10.0%)" in note for note in run.data["notes"])
    assert group[0].pvalue_adjusted == group[0].pvalue  # what was not tested costs no error
    with pytest.raises(DataError, match="disagree"):
        eh.audit(rows, model=score, plan=Plan(audits=("projection",)), rng=0)


def test_a_model_that_contradicts_the_decisions_is_refused_before_any_work():
    turned = arrays()
    turned["decision"] = 1 - turned["decision"]
    with pytest.raises(DataError, match=r"contradicts the column of decisions: they differ on 400 of 400 rows"):
        eh.audit(eh.AuditData.from_arrays(**turned), model=score, plan=Plan(audits=("group",)), rng=0)


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan(audits=("group", "tail")), "`tail` needs a model"),
        (Plan(audits=("projection",)), "needs distances to the decision boundary"),
        (Plan(group={"metrics": ["fnr"]}, reference={"sex": "2"}), "`sex=2` is not a group"),
        (Plan(reference={"race": "2"}), "`race`, which is not audited"),
        (Plan(audits=("proxy",), proxy={"attribute": "race"}), "no attribute `race`"),
    ],
)
def test_what_cannot_be_met_is_refused_before_any_work(plan, says):
    with pytest.raises((UsageError, DataError), match=says):
        eh.audit(data(), plan=plan, rng=0, progress=began)


def test_metrics_are_checked_before_any_work():
    plan = Plan(audits=("proxy", "group"), group={"metrics": ["auc"]})
    with pytest.raises(DataError, match="`auc` needs a score column"):
        eh.audit(data(score=None), plan=plan, rng=0, progress=began)


def test_reference_and_resamples_serve_all_audits():
    plan = Plan(audits=("group", "proxy", "tail"), reference={"sex": "0"}, n_resamples=199, tail={"generator": "none"})
    run = eh.audit(data(), model=score, plan=plan, rng=0)
    assert {f.groups[-1] for f in run.findings if f.measure != "return_level"} == {"sex=0"}
    assert [r.options["n_resamples"] for r in run.results if "n_resamples" in r.options] == [199, 199, 199]


def test_a_model_decides_where_the_data_do_not():
    rows = data(decision=None, score=None)
    run = eh.audit(rows, model=score, plan=Plan(group={"metrics": ["selection_rate", "auc"]}), rng=0)
    given = eh.audit(data(), plan=Plan(group={"metrics": ["selection_rate", "auc"]}), rng=0)
    assert [f.estimate for f in run.findings] == [f.estimate for f in given.findings]
    assert any("are those of the model `score`" in note for note in run.data["notes"])


def test_a_column_that_identifies_people_is_no_group():
    with pytest.raises(DataError, match=r"has 400 groups for 400 rows.*identifier"):
        eh.audit(data(groups={"id": np.arange(N)}), plan=Plan(), rng=0)


def test_a_model_that_fails_says_so_in_one_sentence():
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    rows = data(features={"x": np.full(N, "a"), "sex": np.arange(N) % 2})
    frame = pd.DataFrame({"x": np.arange(10.0), "sex": np.arange(10.0) % 3})
    model = LogisticRegression().fit(frame, np.arange(10) % 2)
    with pytest.raises(DataError, match=r"raised ValueError .*could not convert"):
        eh.audit(rows, model=model, rng=0, progress=began)


def test_models_from_files_are_asked_by_their_columns_names(tmp_path):
    import pandas as pd
    import skops.io
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=300).astype(np.float32), "sex": np.tile(["F", "M"], 150)})
    y = (frame["age"] + (frame["sex"] == "M") + rng.normal(size=300) > 0).astype(int)
    encode = ColumnTransformer([("sex", OneHotEncoder(), ["sex"])], remainder="passthrough")
    pipeline = make_pipeline(encode, LogisticRegression()).fit(frame, y)
    skops.io.dump(pipeline, tmp_path / "m.skops")
    types = [("age", FloatTensorType([None, 1])), ("sex", StringTensorType([None, 1]))]
    (tmp_path / "m.onnx").write_bytes(to_onnx(pipeline, initial_types=types).SerializeToString())
    # Another order than the model's, and a column it does not know.
    features = {"sex": frame["sex"].to_numpy(), "id": np.arange(300), "age": frame["age"].to_numpy(dtype=float)}
    rows = eh.AuditData.from_arrays(outcome=y, groups={"sex": frame["sex"]}, features=features)
    plan = Plan(audits=("group", "tail"), tail=QUICK["tail"])
    found = [eh.audit(rows, model=tmp_path / name, plan=plan, rng=0) for name in ("m.skops", "m.onnx")]
    for one, two in zip(found[0].findings, found[1].findings, strict=True):
        assert one.estimate == pytest.approx(two.estimate, abs=1e-4, nan_ok=True)
    decided = pipeline.predict(frame)
    assert found[0].findings[0].estimate == pytest.approx(decided[1::2].mean() - decided[::2].mean())
    assert all("Not an input of the model" in " ".join(run.data["notes"]) for run in found)


@pytest.mark.parametrize("rows", ["keep", "batches"])
def test_a_model_without_a_number_for_everybody_is_named_as_the_cause(rows):
    x, sex = np.linspace(0, 1, 400), np.tile(["F", "M"], 200)
    table = pyarrow.table({"y": (x > 0.4).astype(int), "sex": sex, "x": x})
    data = eh.read(duckdb.from_arrow(table), outcome="y", groups="sex", features=["x"], rows=rows)
    with pytest.raises(DataError, match=r"gave 4 of 400 scores that are not finite numbers"):
        eh.audit(data, model=lambda X: np.where(X[:, 0] > 0.99, np.nan, X[:, 0]), rng=0)
