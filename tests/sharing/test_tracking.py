"""Runs in MLflow, with a real store of files."""

from __future__ import annotations

import json
import sys

import mlflow
import pytest

import evenhand as eh
from evenhand.sharing.tracking import metrics_of

from .conftest import HOSTILE


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow.MlflowClient()
    while mlflow.active_run() is not None:
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


def _file(name, run_id):
    with open(mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path=name), encoding="utf-8") as file:
        return file.read()


def test_a_new_run_holds_numbers_questions_and_files(store, run):
    run_id = run.log_to_mlflow()
    assert mlflow.active_run() is None
    logged = store.get_run(run_id)
    assert logged.info.status == "FINISHED"
    finding = run["fnr"][0]
    name = "evenhand/group/fnr/group_A vs group_B"
    assert logged.data.metrics[f"{name}/estimate"] == finding.estimate
    assert logged.data.metrics[f"{name}/low"] == finding.interval.low
    assert logged.data.metrics[f"{name}/pvalue_adjusted"] == finding.pvalue_adjusted
    assert logged.data.metrics["evenhand/disparity"] == sum(f.verdict == "disparity" for f in run.findings) > 0
    assert logged.data.params["evenhand.alpha"] == "0.05"
    assert logged.data.params["evenhand.data_fingerprint"] == run.data["fingerprint"]
    assert logged.data.tags["evenhand.disparity_shown"] == "yes"
    assert json.loads(_file("evenhand/findings.json", run_id)) == run.to_dict()
    assert _file("evenhand/report.html", run_id).startswith("<!doctype html>")
    assert _file("evenhand/report.md", run_id).startswith("# Audit report")


def test_the_active_run_is_used_and_stays_active(store, run):
    with mlflow.start_run() as active:
        assert run.log_to_mlflow() == active.info.run_id
        assert mlflow.active_run().info.run_id == active.info.run_id
        run.log_to_mlflow(prefix="again")
    logged = store.get_run(active.info.run_id).data
    assert {"evenhand.seed", "again.seed"} <= logged.params.keys()


def test_two_audits_in_one_run_need_two_prefixes(store, run):
    other = eh.audit(eh.datasets.planted(rows=300, rng=1), rng=5)
    run_id = run.log_to_mlflow()
    assert run.log_to_mlflow(run_id=run_id) == run_id, "the same audit may be logged again"
    with pytest.raises(eh.UsageError, match=r"already holds another audit under `evenhand`.*`prefix` of its own"):
        other.log_to_mlflow(run_id=run_id)
    assert other.log_to_mlflow(run_id=run_id, prefix="second") == run_id


def test_hostile_and_equal_names_become_names_that_mlflow_takes(store, hostile_run):
    run_id = hostile_run.log_to_mlflow()
    logged = store.get_run(run_id).data.metrics
    pairs = [f for f in hostile_run.findings if len(f.groups) == 2]
    estimates = sorted(value for key, value in logged.items() if key.endswith("/estimate"))
    assert len(pairs) == len(HOSTILE) - 1
    assert len(estimates) == len(hostile_run.findings)
    assert {f.estimate for f in pairs} <= set(estimates)
    assert not [key for key in logged if ".." in key or "\n" in key]


def test_many_findings_are_bounded_and_nothing_infinite_is_logged():
    interval = eh.Interval(low=0.1, high=float("inf"), level=0.95, kind="score")
    rows = tuple(
        eh.Finding(audit="group", measure="fnr", groups=("g=" + "x" * 400, "g=b"), estimate=0.1, interval=interval)
        for _ in range(1000)
    )
    result = eh.AuditResult(audit="group", findings=rows, evidence=(eh.results.Evidence(),) * 1000)
    metrics = metrics_of(eh.AuditRun(results=(result,), plan={}, seed=0, data={}, versions={}), "evenhand")
    assert len(metrics) == 4 + 200 * 2
    assert max(map(len, metrics)) <= 250
    assert not [key for key in metrics if key.endswith(("/high", "pvalue_adjusted"))]


def test_a_run_that_is_not_there_and_a_missing_mlflow_are_said(run, monkeypatch):
    with pytest.raises(eh.UsageError, match=r"MLflow has no run `0123`.*leave `run_id` out"):
        run.log_to_mlflow(run_id="0123")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(eh.MissingDependencyError, match=r"pip install 'evenhand\[mlflow\]'"):
        run.log_to_mlflow()
