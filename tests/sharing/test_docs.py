"""What the docs tell people to copy runs: the pages' Python, the workflow's steps, the pre-commit hook."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest
import yaml

ROOT = Path(__file__).parents[2]


def _blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make a repository with decisions and a plan, in which `evenhand` is this package's command."""
    rows = [f"1,{int(j % 10 >= (1 if sex == 'M' else 5))},{sex}" for j in range(300) for sex in "FM"]
    (tmp_path / "holdout.csv").write_text("\n".join(["y,d,sex", *rows]) + "\n", encoding="utf-8")
    plan = '[data]\noutcome = "y"\ndecision = "d"\ngroups = ["sex"]\n\n[group]\nmetrics = ["fnr"]\n'
    (tmp_path / "audit.toml").write_text(plan, encoding="utf-8")
    program = tmp_path / "bin" / "evenhand"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m evenhand "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", ["notebook.md", "tools.md"])
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    try:
        names = {}
        for block in _blocks(page, "python"):
            exec(compile(block, page, "exec"), names)
    finally:
        mlflow.set_tracking_uri(before)
    assert names["run"]["fnr"][0].verdict == "disparity"
    assert page != "tools.md" or (tmp_path / "README.md").read_text(encoding="utf-8").startswith("---\n")


def test_the_steps_of_the_workflow_run(place):
    (workflow,) = [text for text in _blocks("gate.md", "yaml") if "jobs:" in text]
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    scorer = "import duckdb\nduckdb.sql(\"COPY (FROM 'holdout.csv') TO 'decisions.parquet'\")\n"
    (place / "score_holdout.py").write_text(scorer, encoding="utf-8")
    summary = place / "summary.md"
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary)}
    codes = {}
    for step in job["steps"]:
        script = step.get("run", "")
        if not script or script.startswith("pip "):  # the package under test is there already
            continue
        script = script.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
        done = subprocess.run(
            ["bash", "-e", "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        codes[step["run"].split()[0]] = done.returncode
        if script.startswith("evenhand"):
            assert "\n::error title=Evenhand%3A fnr%2C sex=" in done.stdout
            assert "file=audit.toml" in done.stdout
    assert codes == {"python": 0, "evenhand": 3, "cat": 0}
    assert summary.read_text(encoding="utf-8").startswith("# ")
    named = [step["with"] for step in job["steps"] if "with" in step]
    assert (place / next(w["sarif_file"] for w in named if "sarif_file" in w)).exists()


def test_the_hook_runs_as_pre_commit_would_run_it(place):
    """Run the hook's entry with the page's arguments: pre-commit joins both and counts every code but 0 as failed."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (page,) = [text for text in _blocks("gate.md", "yaml") if "repos:" in text]
    (used,) = yaml.safe_load(page)["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    assert hook["language"] == "python"
    assert hook["pass_filenames"] is False
    for name in ("holdout.csv", "audit.toml"):
        assert re.search(used["files"], name)
    done = subprocess.run([*shlex.split(hook["entry"]), *used["args"]], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "is met by 1 finding" in done.stderr
    assert (place / ".fairness" / "findings.json").exists()
