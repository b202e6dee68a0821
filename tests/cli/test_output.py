"""The numbers are kept whatever happens to the report, and the report whatever happens to a chart."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

import evenhand as eh
import evenhand.cli.audit
import evenhand.cli.output
import evenhand.report
from evenhand.cli import run
from evenhand.report import charts, compose
from evenhand.report.library import library
from evenhand.report.stills import DrawingError

BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex", "--quiet")
ALL = ["findings.json", "junit.xml", "report.html", "report.md"]


def test_out_has_a_default(tmp_path, decisions, monkeypatch):
    file = decisions()
    monkeypatch.chdir(tmp_path)
    assert run(["audit", str(file), *BASIC]) == 0
    assert sorted(os.listdir(tmp_path / "evenhand-report")) == ALL


def test_a_page_that_fails_costs_only_the_page(tmp_path, capsys, decisions, monkeypatch):
    file, out = decisions(), tmp_path / "out"
    assert run(["audit", str(file), "--out", str(out), *BASIC]) == 0
    monkeypatch.setattr(evenhand.cli.output, "html_page", lambda page: 1 / 0)
    capsys.readouterr()
    assert run(["audit", str(file), "--out", str(out), "--seed", "1", *BASIC]) == 0
    assert (
        "`report.html` could not be made (division by zero); findings.json has all numbers." in capsys.readouterr().err
    )
    assert sorted(os.listdir(out)) == [n for n in ALL if n != "report.html"], "no page of another run stays"
    assert json.loads((out / "findings.json").read_text(encoding="utf-8"))["seed"] == 1


def test_a_command_composes_its_document_once(tmp_path, decisions, monkeypatch):
    made = []
    monkeypatch.setattr(evenhand.cli.audit, "compose", lambda run: made.append(compose(run)) or made[-1])
    monkeypatch.setattr(evenhand.report, "compose", lambda *a, **k: pytest.fail("composed again"))
    assert run(["audit", str(decisions()), "--out", str(tmp_path / "out"), *BASIC]) == 0
    assert len(made) == 1


def test_a_chart_that_fails_is_left_out_and_said(tmp_path, capsys, decisions, monkeypatch):
    def fail(spec, width):
        raise DrawingError("no paint")

    monkeypatch.setattr(charts, "picture", fail)
    out = tmp_path / "out"
    assert run(["audit", str(decisions()), "--out", str(out), *BASIC]) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "This chart could not be drawn: no paint. Its numbers stand below." in page
    assert "data-chart=" not in page
    assert "not drawn in the page: no paint" in capsys.readouterr().err


def test_little_memory_gives_a_page_of_still_pictures(tmp_path, decisions):
    """The process that builds the library gets so little memory that its engine ends it with a page of addresses."""
    code = (
        "import resource, sys\n"
        "import evenhand.report.library as library\n"
        "library._WORK = 'import resource; resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28))\\n' + library._WORK\n"
        "from evenhand.cli import main\n"
        "main()\n"
    )
    out = tmp_path / "out"
    words = [sys.executable, "-c", code, "audit", str(decisions()), "--out", str(out), *BASIC]
    nothing_kept = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "LOCALAPPDATA": str(tmp_path / "cache")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, env=nothing_kept)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "do not answer to the pointer" in done.stderr
    assert '<div class="still"' in (out / "report.html").read_text(encoding="utf-8")
    assert sorted(os.listdir(out)) == ALL


def test_a_disk_that_fills_up_after_the_numbers(tmp_path, decisions):
    out = tmp_path / "out"

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    words = [sys.executable, "-m", "evenhand", "audit", str(decisions()), "--out", str(out), *BASIC]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=full, check=False)
    assert done.returncode == 2, done.stderr
    assert "The numbers are in" in done.stderr
    assert os.listdir(out) == ["findings.json"]


def test_a_gate_that_looks_at_nothing_keeps_the_results(tmp_path, capsys, decisions, monkeypatch):
    monkeypatch.setattr("evenhand.cli.audit.check_gates", lambda *a: None)
    out = tmp_path / "out"
    words = ["audit", str(decisions()), "--out", str(out), *BASIC, "--metrics", "fpr", "--fail-on", "fnr:disparity"]
    assert run(words) == 2
    assert "looks at no finding" in capsys.readouterr().err
    assert sorted(os.listdir(out)) == ALL


def test_memory_that_runs_out_is_one_sentence(tmp_path, capsys, decisions, monkeypatch):
    def short(*a, **k):
        raise MemoryError("Unable to allocate 31.0 GiB for an array")

    monkeypatch.setattr("evenhand.cli.audit.perform", short)
    assert run(["audit", str(decisions()), "--out", str(tmp_path / "out"), *BASIC]) == 2
    assert "not enough memory for this audit (Unable to allocate 31.0 GiB for an array)" in capsys.readouterr().err


def test_a_model_needs_its_columns(tmp_path, capsys, decisions):
    words = ["audit", str(decisions()), "--outcome", "y", "--group", "sex", "--model", "m.onnx"]
    assert run([*words, "--out", str(tmp_path / "out")]) == 2
    assert "The model `m.onnx` is named but not its columns" in capsys.readouterr().err
    data = eh.AuditData.from_arrays(outcome=[0, 1, 0, 1], groups={"g": ["a", "b", "a", "b"]})
    with pytest.raises(eh.UsageError, match="cannot make them without its columns"):
        eh.audit(data, model=lambda X: X[:, 0])


def test_a_frame_is_no_data():
    with pytest.raises(eh.UsageError, match=r"got dict. Read it first.*eh.read"):
        eh.audit({"y": np.arange(3)})  # type: ignore[arg-type]


def test_names_that_load_later_are_listed():
    assert set(eh.__all__) <= set(dir(eh))
    assert "audit_proxy" in dir(eh)


def test_the_library_is_safe_inside_a_page():
    assert "</script" not in library().lower()
