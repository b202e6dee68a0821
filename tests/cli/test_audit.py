"""The command line as a user meets it: good runs, bad input, exit codes."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
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
    assert os.listdir(out) == ["findings.json"]


def test_same_seed_same_bytes_on_any_number_of_workers(tmp_path):
    file = csv(tmp_path / "a.csv")
    for name, workers in (("one", "1"), ("two", "2")):
        words = (
            *BASIC,
            "--score",
            "p",
            "--metrics",
            "auc,brier,fnr",
            "--resamples",
            "499",
            "--workers",
            workers,
        )
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


def one_sentence(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1]


BAD = {
    "missing column": ((*BASIC[:4], "--group", "sxe"), r"`sxe`.*Did you mean `sex`"),
    "no group": (BASIC[:4], r"group"),
    "unknown metric": ((*BASIC, "--metrics", "fnrr"), r"`fnrr` is not known. Did you mean `fnr`"),
    "unknown reference": ((*BASIC, "--reference", "sex=Male"), r"`sex=Male` is not a group"),
    "reference of another column": ((*BASIC, "--reference", "race=x"), r"`race`, which is not audited"),
    "reference without label": ((*BASIC, "--reference", "sex"), r"COLUMN=VALUE"),
    "unknown audit": ((*BASIC, "--audits", "grup"), r"`grup` is not known. Did you mean `group`"),
    "metric without its column": ((*BASIC, "--metrics", "auc"), r"`auc` needs a score column"),
    "outcome with many values": (
        ("--outcome", "age", *BASIC[2:], "--metrics", "fnr"),
        r"needs an outcome with two values",
    ),
    "decision with many values": (("--outcome", "y", "--decision", "race", "--group", "sex"), r"`race`"),
    "score that is text": ((*BASIC, "--score", "race", "--metrics", "auc"), r"`race`"),
    "score out of range": ((*BASIC, "--score", "age", "--metrics", "brier"), r"scores between 0 and 1"),
    "bad alpha": ((*BASIC, "--alpha", "5"), r"`alpha` must lie between 0 and 1"),
    "bad margin": ((*BASIC, "--margin", "small"), r"Margin `small` is not understood"),
    "bad correction": ((*BASIC, "--correction", "hulm"), r"`correction` is `hulm`; allowed"),
    "bad verdict": ((*BASIC, "--fail-on", "unfair"), r"`--fail-on unfair` is not a verdict"),
    "bad cut": ((*BASIC, "--cut", "age=old"), r"numbers separated by commas"),
    "too few resamples": ((*BASIC, "--resamples", "5"), r"`n_resamples` must be a whole number"),
    "missing plan": ((*BASIC, "--plan", "nowhere.toml"), r"Plan `nowhere.toml` cannot be read"),
    "unknown option": ((*BASIC, "--colour", "red"), r"No such option"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD.keys())
def test_bad_words_give_exit_code_2_one_sentence_and_no_file(tmp_path, capsys, words, says):
    assert audit(csv(tmp_path / "a.csv"), tmp_path / "out", *words) == 2
    shown = capsys.readouterr()
    assert re.search(says, one_sentence(shown.err)), shown.err
    assert "Traceback" not in shown.err
    assert not (tmp_path / "out").exists()


def bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    good = csv(folder / "good.csv").read_text().splitlines()

    def text(name: str, lines: list[str]) -> Path:
        (folder / name).write_text("\n".join(lines) + "\n")
        return folder / name

    empty = folder / "empty.csv"
    empty.write_bytes(b"")
    latin = folder / "latin.csv"
    latin.write_bytes("sex,y,d\nfémin,1,0\nM,0,1\n".encode("latin-1") * 20)
    picture = folder / "picture.csv"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    fake = folder / "fake.parquet"
    fake.write_bytes(b"PAR0 not a parquet file at all")
    (folder / "dir.csv").mkdir()
    return {
        "empty": (empty, "empty"),
        "header only": (text("header.csv", good[:1]), "no rows"),
        "one group": (text("one.csv", [good[0], *[r for r in good[1:] if r.startswith("F")]]), "1 group"),
        "twice": (text("twice.csv", ["sex,y,d,y", "F,1,0,1", "M,0,1,0"]), "`y`"),
        "latin": (latin, "UTF-8"),
        "picture": (picture, "table|UTF-8"),
        "fake": (fake, "Parquet|table"),
        "folder": (folder / "dir.csv", "folder"),
        "absent": (folder / "absent.csv", "does not exist"),
        "ending": (text("notes.docx", ["hello"]), "docx"),
    }


@pytest.mark.parametrize(
    "kind",
    ["empty", "header only", "one group", "twice", "latin", "picture", "fake", "folder", "absent", "ending"],
)
def test_bad_files_give_exit_code_2_one_sentence_and_no_file(tmp_path, capsys, kind):
    file, says = bad_files(tmp_path)[kind]
    assert audit(file, tmp_path / "out", *BASIC) == 2
    shown = capsys.readouterr()
    assert re.search(says, one_sentence(shown.err)), shown.err
    assert "Traceback" not in shown.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [("p", "nan", "score|`p`"), ("w", "-1", "weight|`w`"), ("w", "nan", "weight|`w`")],
)
def test_bad_cells_are_refused(tmp_path, capsys, column, value, says):
    values = np.full(600, "0.5", dtype=object)
    values[17] = value
    file = csv(tmp_path / "a.csv", **{column: values})
    words = (*BASIC, "--score" if column == "p" else "--weight", column)
    assert audit(file, tmp_path / "out", *words) == 2
    assert re.search(says, one_sentence(capsys.readouterr().err))
    assert not (tmp_path / "out").exists()


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


def test_interrupt_leaves_no_file(tmp_path):
    file = csv(tmp_path / "a.csv")
    out = tmp_path / "out"
    words = [*BASIC, "--group", "race", "--metrics", "balanced_accuracy", "--resamples", "50000000"]
    command = [sys.executable, "-m", "evenhand", "audit", str(file), "--out", str(out), *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    time.sleep(3)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"interrupted" in err
    assert not out.exists()


def test_full_disk_leaves_no_broken_file(tmp_path, monkeypatch, capsys):
    file, out = csv(tmp_path / "a.csv"), tmp_path / "out"
    assert audit(file, out, *BASIC) == 0
    before = (out / "findings.json").read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "findings.json")

    monkeypatch.setattr(os, "fsync", full)
    assert audit(file, out, *BASIC, "--seed", "1") == 2
    assert "No space left" in capsys.readouterr().err
    assert (out / "findings.json").read_bytes() == before
    assert os.listdir(out) == ["findings.json"]


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
    assert min(adjusted) == pytest.approx(2 * min(raw))
    assert "audit " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--audits", "individual"), "needs a model and none was given"),
        (("--audits", "projection"), "needs distances to the decision boundary"),
        (("--audits", "proxy"), "needs the model's features"),
        (("--audits", "tail", "--model", "m.pkl"), "m.pkl"),
        (("--audits", "tail", "--model", "nowhere.onnx"), "does not exist"),
        (("--audits", "tail", "--model", "no.such.module:model"), "cannot be imported"),
    ],
)
def test_audits_that_lack_something_say_so(tmp_path, capsys, words, says):
    assert audit(csv(tmp_path / "a.csv"), tmp_path / "out", *BASIC, *words) == 2
    assert says in one_sentence(capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_hostile_names_are_inert_in_errors_too(tmp_path, capsys):
    file = csv(tmp_path / "a.csv", **{"sexe\x1b[31m": np.full(600, "x")})
    assert audit(file, tmp_path / "out", *BASIC[:4], "--group", "sexee") == 2
    shown = capsys.readouterr().err
    assert "sexe" in shown
    assert "\x1b" not in shown
