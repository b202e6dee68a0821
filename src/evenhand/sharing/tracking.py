"""A run in MLflow: numbers to compare, what was asked, and the files."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evenhand.errors import UsageError, first_line, optional_module
from evenhand.report.detail import first_findings
from evenhand.report.document import compared
from evenhand.results import AuditRun, Finding, Verdict

_MOST_FINDINGS = 200  # with numbers of their own; all are in findings.json
_BATCH = 1000  # MLflow takes so many metrics at once
_LONGEST = 200  # characters of a metric's name; MLflow takes 250
_REFUSED = re.compile(r"[^\w\-. /]+")  # what older servers refuse in the name of a metric


def log_to_mlflow(run: AuditRun, *, run_id: str | None = None, prefix: str = "evenhand") -> str:
    """Log a run into MLflow.

    Parameters
    ----------
    run : AuditRun
        What was found.
    run_id : str, optional
        The MLflow run; by default the active one, or else a new one, which is ended again.
    prefix : str
        What all names begin with, to tell several audits in one MLflow run apart.

    Returns
    -------
    str
        The id of the MLflow run. Logged are, under the prefix: as metrics the number of findings by verdict and the
        estimate, interval and adjusted p-value of the first 200 findings, those that decide before the others; as
        parameters what was asked; as tags the versions and fingerprints; as files ``findings.json``, ``report.html``
        and ``report.md``.
    """
    mlflow = optional_module(
        "mlflow", "Logging into MLflow needs it installed: pip install 'evenhand[mlflow]', or the whole of `mlflow`."
    )
    files = {"findings.json": run.to_json(), "report.html": run.to_html(), "report.md": run.to_markdown()}
    with _target(mlflow, run_id) as used:
        client = mlflow.MlflowClient()
        asked = {f"{prefix}.{key}": value for key, value in _params(run).items()}
        there = client.get_run(used).data.params
        other = [key for key, value in asked.items() if there.get(key, value) != value]
        if other:
            raise UsageError(
                f"The MLflow run `{used}` already holds another audit under `{prefix}` (`{other[0]}` is "
                f"{there[other[0]]}, and {asked[other[0]]} now). Give this one a `prefix` of its own."
            )
        entities = mlflow.entities
        now = int(time.time() * 1000)
        metrics = [entities.Metric(key, value, now, 0) for key, value in metrics_of(run, prefix).items()]
        for start in range(0, len(metrics), _BATCH):
            client.log_batch(used, metrics=metrics[start : start + _BATCH])
        client.log_batch(
            used,
            params=[entities.Param(key, value) for key, value in asked.items()],
            tags=[entities.RunTag(f"{prefix}.{key}", value) for key, value in _tags(run).items()],
        )
        for name, text in files.items():
            client.log_text(used, text, f"{prefix}/{name}")
    return used


@contextmanager
def _target(mlflow: Any, run_id: str | None) -> Iterator[str]:
    """Give the id of the MLflow run to log into; only a run that is begun here is ended here."""
    active = mlflow.active_run()
    if run_id is not None:
        try:
            mlflow.MlflowClient().get_run(run_id)
        except mlflow.exceptions.MlflowException as error:
            raise UsageError(
                f"MLflow has no run `{run_id}` at {mlflow.get_tracking_uri()}: {first_line(error)}. Give the id of a "
                "run that is there, or leave `run_id` out."
            ) from None
        yield run_id
    elif active is not None:
        yield active.info.run_id
    else:
        with mlflow.start_run() as begun:
            yield begun.info.run_id


def metrics_of(run: AuditRun, prefix: str) -> dict[str, float]:
    """Return the metrics of a run by name; what is not a finite number is left out, because MLflow would refuse it.

    Parameters
    ----------
    run : AuditRun
        What was found.
    prefix : str
        What each name begins with.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> list(metrics_of(run, "audit"))[4]
    'audit/group/fnr/group_A vs group_B/estimate'
    """
    metrics = {f"{prefix}/{v}": float(sum(f.verdict is v for f in run.findings)) for v in Verdict}
    used: set[str] = set()
    for j in first_findings(run.findings, _MOST_FINDINGS):
        finding = run.findings[j]
        name = _unique(f"{prefix}/{finding.audit}/{finding.measure}/{compared(finding.groups)}", used)
        metrics |= {f"{name}/{key}": value for key, value in _numbers(finding).items() if math.isfinite(value)}
    return metrics


def _numbers(finding: Finding) -> Mapping[str, float]:
    interval = finding.interval
    ends = {} if interval is None else {"low": interval.low, "high": interval.high}
    return {"estimate": finding.estimate, **ends, "pvalue_adjusted": finding.pvalue_adjusted}


def _unique(name: str, used: set[str]) -> str:
    """Make a name of characters that MLflow takes, and of no parts that it would read as a path."""
    parts = [part.strip(". ") or "_" for part in _REFUSED.sub("_", name).split("/")]
    plain = "/".join(parts)[:_LONGEST].rstrip(". /")
    made, number = plain, 2
    while made in used:
        made, number = f"{plain}-{number}", number + 1
    used.add(made)
    return made


def _params(run: AuditRun) -> dict[str, str]:
    plan = run.plan
    return {
        "alpha": f"{plan.get('alpha', 0.05):g}",
        "correction": str(plan.get("correction", "")),
        "audits": ", ".join(result.audit for result in run.results),
        "seed": str(run.seed),
        "rows_used": str(run.data.get("rows_used", "")),
        "plan_hash": str(plan.get("hash", "")),
        "data_fingerprint": str(run.data.get("fingerprint", "")),
    }


def _tags(run: AuditRun) -> dict[str, str]:
    shown = any(finding.verdict is Verdict.DISPARITY for finding in run.findings)
    versions = {f"version.{name}": str(version) for name, version in run.versions.items()}
    return {"disparity_shown": "yes" if shown else "no", **versions}
