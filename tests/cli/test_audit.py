"""The command line as a user meets it: good runs, bad input, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evenhand.cli import run

KEYS = {
    "audit", "measure", "groups", "estimate", "interval", "pvalue", "pvalue_adjusted", "margin", "counts",
    "verdict", "reason",
}  # fmt: skip


def csv(path: Path, rows: int = 600, fnr: tuple[float, float] = (0.1, 0.5), **columns) -> Path:
    rng = np.random.default_rng(0)
    sex = np.tile(["F", "M"], rows // 2)
    y = rng.random(rows) < 0.5
    d = rng.random(rows) < np.where(y, 1 - np.where(sex == "F", fnr[1], fnr[0]), 0.2)
    p = np.clip(0.3 * y + 0.3 * d + 0.4 * rng.random(rows), 0, 1).round(4)
    table = {"sex": sex, "race": rng.choice(["x", "y", "z"], rows), "age": rng.integers(18, 80, rows)}
    table |= {"y": y.astype(int), "d": d.astype(int), "p": p} | columns
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def audit(file: Path, out: Path, *words: str) -> int:
    return run(["audit", str(file), "--out", str(out), *words])


BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex")


def test_audit_writes_findings_with_the_agreed_keys(tmp_path, capsys):
    out = tmp_path / "out"
    assert audit(csv(tmp_path / "a.csv"), out, *BASIC, "--metrics", "fnr,fpr") == 0
    found = json.loads((out / "findings.json").read_text())
    assert found["schema"] == "evenhand/1"
    assert [f["measure"] for f in found["findings"]] == ["fnr", "fpr"]
    assert all(set(f) == KEYS for f in found["findings"])
    assert set(found["findings"][0]["interval"]) == {"low", "high", "level", "kind"}
    assert found["findings"][0]["verdict"] == "disparity"
    assert found["data"]["rows_in"] == 600
    assert {"plan", "seed", "versions"} <= set(found)
    shown = capsys.readouterr().out
    assert "disparity" in shown
    assert "sex=M vs sex=F" in shown
    assert not [name for name in os.listdir(out) if name.startswith(".")]


def test_same_seed_same_bytes(tmp_path):
    file = csv(tmp_path / "a.csv")
    for name in ("one", "two"):
        words = (*BASIC, "--score", "p", "--metrics", "auc,brier,fnr", "--resamples", "499")
        assert audit(file, tmp_path / name, *words) == 0
    one, two = ((tmp_path / name / "findings.json").read_bytes() for name in ("one", "two"))
    assert one == two


def test_fail_on_gives_exit_code_3_only_when_met(tmp_path):
    unequal, equal = csv(tmp_path / "a.csv"), csv(tmp_path / "b.csv", fnr=(0.3, 0.3))
    assert audit(unequal, tmp_path / "o", *BASIC, "--metrics", "fnr", "--fail-on", "disparity") == 3
    assert audit(equal, tmp_path / "o", *BASIC, "--metrics", "fnr", "--fail-on", "disparity") == 0
    assert (tmp_path / "o" / "findings.json").exists()


def test_options_reach_the_audit(tmp_path):
    words = (
        *BASIC, "--group", "race", "--reference", "sex=F", "--reference", "race=z", "--margin", "four-fifths",
        "--alpha", "0.1", "--metrics", "selection_rate", "--correction", "bh", "--intersections", "--quiet",
    )  # fmt: skip
    assert audit(csv(tmp_path / "a.csv"), tmp_path / "o", *words) == 0
    found = json.loads((tmp_path / "o" / "findings.json").read_text())
    rows = [f for f in found["findings"] if f["measure"] == "selection_rate_ratio"]
    assert {f["groups"][1] for f in rows} >= {"sex=F", "race=z"}
    assert all(f["margin"] == 0.8 for f in rows)
    assert found["plan"]["alpha"] == 0.1
    assert found["plan"]["correction"] == "bh"
    assert any("sex × race=" in f["groups"][0] for f in rows)


def test_age_cut_and_continuous(tmp_path):
    file = csv(tmp_path / "a.csv")
    words = (
        "--outcome",
        "y",
        "--decision",
        "d",
        "--group",
        "age",
        "--cut",
        "age=30,60",
        "--metrics",
        "error_rate",
    )
    assert audit(file, tmp_path / "cut", *words) == 0
    found = json.loads((tmp_path / "cut" / "findings.json").read_text())["findings"]
    assert {g for f in found for g in f["groups"]} == {"age=<30", "age=30–60", "age=>=60"}
    words = ("--outcome", "y", "--decision", "d", "--continuous", "age", "--metrics", "error_rate")
    assert audit(file, tmp_path / "con", *words) == 0
    (row,) = json.loads((tmp_path / "con" / "findings.json").read_text())["findings"]
    assert row["measure"] == "error_rate_correlation"


def test_plan_file_with_words_laid_over_it(tmp_path):
    plan = tmp_path / "audit.toml"
    plan.write_text('alpha = 0.01\n[group]\nmetrics = ["fnr"]\nmargin = 0.05\n')
    assert audit(csv(tmp_path / "a.csv"), tmp_path / "o", *BASIC, "--plan", str(plan), "--metrics", "fpr") == 0
    found = json.loads((tmp_path / "o" / "findings.json").read_text())
    assert found["plan"]["alpha"] == 0.01
    assert [(f["measure"], f["margin"]) for f in found["findings"]] == [("fpr", 0.05)]


def test_hostile_names_are_inert(tmp_path, capsys):
    nasty = '<script>alert("x")</script>\x1b[31m'
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(600) < 0.5, '"' + nasty.replace('"', '""') + '"', "'; DROP TABLE t; --")
    file = csv(tmp_path / "a.csv", evil=labels)
    assert audit(file, tmp_path / "o", "--outcome", "y", "--decision", "d", "--group", "evil") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    found = json.loads((tmp_path / "o" / "findings.json").read_text())
    assert f"evil={nasty}" in {g for f in found["findings"] for g in f["groups"]}


def test_module_and_version():
    shown = subprocess.run([sys.executable, "-m", "evenhand", "--version"], capture_output=True, text=True, check=True)
    assert "evenhand" in shown.stdout


def test_several_audits_from_one_plan_share_one_error_budget(tmp_path, capsys):
    file = csv(tmp_path / "a.csv", far=np.random.default_rng(1).exponential(size=600).round(4))
    plan = tmp_path / "audit.toml"
    plan.write_text('audits = ["group", "projection"]\n[group]\nmetrics = ["fnr"]\n[projection]\ndistance = "far"\n')
    assert audit(file, tmp_path / "o", *BASIC, "--features", "far", "--plan", str(plan)) == 0
    found = json.loads((tmp_path / "o" / "findings.json").read_text())["findings"]
    assert [f["audit"] for f in found] == ["group", "projection"]
    assert all(set(f) == KEYS for f in found)
    raw, adjusted = ([f[key] for f in found] for key in ("pvalue", "pvalue_adjusted"))
    # The group audit has all the error, and hands it on as it shows its difference.
    assert adjusted == pytest.approx([raw[0], max(raw)])
    assert "audit " in capsys.readouterr().out


def test_hostile_names_are_inert_in_errors_too(tmp_path, capsys):
    file = csv(tmp_path / "a.csv", **{"sexe\x1b[31m": np.full(600, "x")})
    assert audit(file, tmp_path / "out", *BASIC[:4], "--group", "sexee") == 2
    shown = capsys.readouterr().err
    assert "sexe" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("planned", [False, True])
def test_one_command_is_one_pass(tmp_path, monkeypatch, planned):
    """The plan is made once and each of its parts checked once, each audit asked once, verdicts settled once."""
    from evenhand import plan
    from evenhand import run as running
    from evenhand.audits.registry import AUDITS, Audit

    counts = Counter()

    def counted(owner, name, key):
        inner = getattr(owner, name)

        def call(*args, **named):
            counts[key(args)] += 1
            return inner(*args, **named)

        monkeypatch.setattr(owner, name, call)

    counted(plan.Plan, "__init__", lambda args: "plan")
    counted(plan, "_section", lambda args: f"check {args[0]}")
    counted(Audit, "lacks", lambda args: f"lacks {args[0].name}")
    counted(running, "settle", lambda args: "settle")
    words = ["--metrics", "fnr"]
    if planned:
        (tmp_path / "audit.toml").write_text('audits = ["group"]\n[group]\nmetrics = ["fnr"]\n')
        words = ["--plan", str(tmp_path / "audit.toml")]
    assert audit(csv(tmp_path / "a.csv"), tmp_path / "out", *BASIC, *words, "--quiet") == 0
    asked = ["group"] if planned else list(AUDITS)
    assert counts == {"plan": 1, "check group": 1, "settle": 1} | {f"lacks {name}": 1 for name in asked}


def test_a_scan_that_is_named_searches_the_metrics_that_are_named(tmp_path, capsys):
    out, two = tmp_path / "out", (*BASIC, "--group", "race")
    assert audit(csv(tmp_path / "a.csv"), out, *two, "--audits", "scan", "--metrics", "fnr") == 0
    findings = json.loads((out / "findings.json").read_text())["findings"]
    assert {(f["audit"], f["measure"]) for f in findings} == {("scan", "fnr")}
    assert "sex=F" in capsys.readouterr().out
    assert audit(tmp_path / "a.csv", out, *two, "--metrics", "selection_rate") == 0
    findings = json.loads((out / "findings.json").read_text())["findings"]
    assert {f["measure"] for f in findings if f["audit"] == "scan"} == {"fnr", "fpr"}  # its own, where it is not named
