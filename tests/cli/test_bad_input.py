"""Kinds of bad input: exit code 2, one sentence that says what is wrong, and nothing written."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.cli import run

BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex")
SCORED = (*BASIC, "--score", "p")
MODELLED = (*BASIC, "--audits", "tail", "--features", "age,p", "--model")

# What is wrong in the words: the words, and what the sentence must say.
WORDS: dict[str, tuple[tuple[str, ...], str]] = {
    "missing column": ((*BASIC[:4], "--group", "sxe"), r"`sxe`.*Did you mean `sex`"),
    "missing feature": ((*BASIC, "--features", "agee"), r"`agee`.*Did you mean `age`"),
    "no group": (BASIC[:4], r"group"),
    "nothing to audit": (("--group", "sex"), r"outcome|decision|score"),
    "only an outcome": (("--outcome", "y", "--group", "sex"), r"needs a decision or a score"),
    "unknown metric": ((*BASIC, "--metrics", "fnrr"), r"`fnrr` is not known. Did you mean `fnr`"),
    "metric named twice": ((*BASIC, "--metrics", "fnr,fnr"), r"`fnr` is named twice"),
    "metric without its column": ((*BASIC, "--metrics", "auc"), r"`auc` needs a score column"),
    "unknown reference": ((*BASIC, "--reference", "sex=Male"), r"`sex=Male` is not a group"),
    "reference of another column": ((*BASIC, "--reference", "race=x"), r"`race`, which is not audited"),
    "reference without label": ((*BASIC, "--reference", "sex"), r"COLUMN=VALUE"),
    "unknown audit": ((*BASIC, "--audits", "grup"), r"`grup` is not known. Did you mean `group`"),
    "audit named twice": ((*BASIC, "--audits", "group,group"), r"named twice"),
    "outcome with many values": (("--outcome", "age", *BASIC[2:], "--metrics", "fnr"), r"outcome with two values"),
    "decision with many values": (("--outcome", "y", "--decision", "race", "--group", "sex"), r"`race`"),
    "score that is text": ((*BASIC, "--score", "race", "--metrics", "auc"), r"`race`"),
    "score out of range": ((*BASIC, "--score", "age", "--metrics", "brier"), r"scores between 0 and 1"),
    "bad alpha": ((*BASIC, "--alpha", "5"), r"`alpha` must lie between 0 and 1"),
    "alpha that is no number": ((*BASIC, "--alpha", "low"), r"'low' is not a valid float"),
    "bad margin": ((*BASIC, "--margin", "small"), r"Margin `small` is not understood"),
    "margin of nothing": ((*BASIC, "--margin", "0"), r"Margin `0.0` is not understood"),
    "negative margin": ((*BASIC, "--margin", "-0.1"), r"Margin `-0.1` is not understood"),
    "bad correction": ((*BASIC, "--correction", "hulm"), r"`correction` is `hulm`; allowed"),
    "bad verdict": ((*BASIC, "--fail-on", "unfair"), r"`unfair` is not a verdict"),
    "near verdict": ((*BASIC, "--fail-on", "disparty"), r"Did you mean `disparity`"),
    "gate on an unknown metric": ((*BASIC, "--fail-on", "fnrr:disparity"), r"`fnrr` is not a known metric.*`fnr`"),
    "gate on an audit that does not run": ((*BASIC, "--fail-on", "tail:disparity"), r"`tail` is not run"),
    "gate on a metric that is not tested": (
        (*BASIC, "--metrics", "fpr", "--fail-on", "fnr:disparity"),
        r"`fnr` is not audited",
    ),
    "weights that could be counts": (
        (*BASIC, "--weight", "age"),
        r"`age` holds whole numbers from 18 to 79 that differ: are they numbers of identical people",
    ),
    "bad cut": ((*BASIC, "--cut", "age=old"), r"numbers separated by commas"),
    "too few resamples": ((*BASIC, "--resamples", "5"), r"`n_resamples` must be a whole number of at least 99"),
    "negative seed": ((*BASIC, "--seed", "-1"), r"seed"),
    "unknown option": ((*BASIC, "--colour", "red"), r"No such option"),
    "missing plan": ((*BASIC, "--plan", "nowhere.toml"), r"Plan `nowhere.toml` cannot be read: No such file"),
    "audit without its model": ((*BASIC, "--audits", "individual"), r"needs a model and none was given"),
    "audit without distances": ((*BASIC, "--audits", "projection"), r"needs distances to the decision boundary"),
    "audit without features": ((*BASIC, "--audits", "proxy"), r"needs the model's features"),
    "one impossible audit of two": ((*BASIC, "--audits", "group,tail"), r"`tail` needs a model"),
    "model that is missing": ((*MODELLED, "nowhere.onnx"), r"`nowhere.onnx` does not exist"),
    "model in no module": ((*MODELLED, "no.such.module:model"), r"cannot be imported"),
    "model that is no name": ((*MODELLED, "model.txt"), r"`model.txt` is not understood"),
    "model that is a class": ((*MODELLED, "sklearn.linear_model:LogisticRegression"), r"is a type that does not look"),
    "model that is a module's number": ((*MODELLED, "math:pi"), r"is a float that does not look like a model"),
}


def refused(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    before = sorted(folder.rglob("*"))
    assert run(words) == 2
    shown = capsys.readouterr()
    lines = [line for line in shown.err.splitlines() if line.strip()]
    assert len(lines) == 1, shown.err
    assert lines[0].startswith("evenhand: ")
    assert re.search(says, lines[0]), lines[0]
    assert shown.out == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("words", "says"), WORDS.values(), ids=WORDS.keys())
def test_bad_words(tmp_path, capsys, decisions, words, says):
    file = decisions()
    refused(tmp_path, capsys, ["audit", str(file), "--out", str(tmp_path / "out"), *words], says)


def _bytes(content: bytes, name: str = "bad.csv") -> Callable[[Path, list[str]], Path]:
    def make(folder: Path, good: list[str]) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def _lines(change: Callable[[list[str]], list[str]]) -> Callable[[Path, list[str]], Path]:
    def make(folder: Path, good: list[str]) -> Path:
        path = folder / "changed.csv"
        path.write_text("\n".join(change(good)) + "\n", encoding="utf-8")
        return path

    return make


def _with(column: int, value: str, row: int = 17) -> Callable[[Path, list[str]], Path]:
    def change(good: list[str]) -> list[str]:
        cells = [line.split(",") for line in good]
        rows = range(1, len(cells)) if row < 0 else [row]
        for i in rows:
            cells[i][column] = value
        return [",".join(line) for line in cells]

    return _lines(change)


def _empty_folder(folder: Path, good: list[str]) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


# What is wrong in the file: how it is made, more words, and what the sentence must say.
FILES: dict[str, tuple[Callable[[Path, list[str]], Path], tuple[str, ...], str]] = {
    "missing file": (lambda folder, good: folder / "absent.csv", BASIC, r"does not exist"),
    "empty file": (_bytes(b""), BASIC, r"empty"),
    "header only": (_lines(lambda good: good[:1]), BASIC, r"no rows"),
    "one group": (_lines(lambda good: [good[0], *[r for r in good if r.startswith("F")]]), BASIC, r"1 group"),
    "column named twice": (_bytes(b"sex,y,d,y\nF,1,0,1\nM,0,1,0\n"), BASIC, r"`y`"),
    "not UTF-8": (_bytes("sex,y,d\nfémin,1,0\nM,0,1\n".encode("latin-1") * 20), BASIC, r"UTF-8"),
    "a picture": (_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8), BASIC, r"table|UTF-8"),
    "a false Parquet file": (_bytes(b"PAR0 not a parquet file", "bad.parquet"), BASIC, r"Parquet|table"),
    "an empty folder": (_empty_folder, BASIC, r"Folder `.*` holds no table"),
    "unknown ending": (_bytes(b"hello", "notes.docx"), BASIC, r"docx"),
    "all outcomes missing": (_with(3, "", row=-1), BASIC, r"`y`"),
    "all groups missing": (_with(0, "", row=-1), BASIC, r"`sex`"),
    "a score that is missing": (_with(5, "nan"), SCORED, r"`p`"),
    "a score that is text": (_with(5, "high"), SCORED, r"`p`"),
    "an infinite score": (_with(5, "inf"), SCORED, r"`p`"),
    "a negative weight": (_with(2, "-1"), (*BASIC, "--weight", "age"), r"`age`"),
    "a weight that is missing": (_with(2, "nan"), (*BASIC, "--weight", "age"), r"`age`"),
    "a group for every row": (
        _lines(lambda good: [good[0], *[f"{i},{r.partition(',')[2]}" for i, r in enumerate(good[1:])]]),
        BASIC,
        r"`sex` has 600 groups",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words", "says"), FILES.values(), ids=FILES.keys())
def test_bad_files(tmp_path, capsys, decisions, make, words, says):
    good = decisions().read_text(encoding="utf-8").splitlines()
    file = make(tmp_path, good)
    refused(tmp_path, capsys, ["audit", str(file), "--out", str(tmp_path / "out"), *words], says)


# What is wrong in a plan: its text, and what the sentence must say.
PLANS: dict[str, tuple[str, str]] = {
    "no TOML": ("alpha = = 1", r"cannot be read: .*line 1"),
    "unknown key": ("alpa = 0.05", r"`alpa`, which is not known. Did you mean `alpha`"),
    "unknown option": ('[group]\nmetrcs = ["fnr"]', r"has no option `metrcs`. Did you mean `metrics`"),
    "unknown word": ('[group]\ncompare = "pair"', r"`group.compare` is `pair`; allowed: .*Did you mean `pairs`"),
    "wrong type": ("[group]\nmetrics = 3", r"`group.metrics` is 3, which is a whole number; allowed: sequence of str"),
    "wrong type at the top": ('audits = "group"', r"`audits` is 'group'; allowed: a list"),
    "text for a number": ('alpha = "low"', r"`alpha` must lie between 0 and 1; got 'low'"),
    "a number for a table": ("group = 3", r"`group` is 3; allowed: a table"),
    "seed below 0": ("seed = -1", r"`seed` must be a whole number"),
    "option of the whole plan": ("[tail]\nalpha = 0.1", r"`alpha` belongs to the whole plan"),
    "unknown criterion": ('audits = ["projection"]\n[projection]\ncriterion = "parity"', r"no criterion `parity`"),
    "unknown measure": ('[proxy]\nmeasure = "fprr"', r"Measure `fprr` is not known"),
    "unknown data key": ('[data]\noutcom = "y"', r"has no option `outcom`. Did you mean `outcome`"),
    "a column that is not there": ('[data]\nscore = "q"', r"`q`"),
    "attribute that is not audited": (
        'audits = ["projection"]\n[projection]\nattribute = "race"\ndistance = "age"\n[data]\nfeatures = ["age"]',
        r"no attribute `race`",
    ),
}


@pytest.mark.parametrize(("text", "says"), PLANS.values(), ids=PLANS.keys())
def test_bad_plans(tmp_path, capsys, decisions, text, says):
    file = decisions()
    plan = tmp_path / "audit.toml"
    plan.write_text(text + "\n", encoding="utf-8")
    words = ["audit", str(file), "--out", str(tmp_path / "out"), *BASIC, "--plan", str(plan)]
    refused(tmp_path, capsys, words, says)


def _saved(folder: Path, name: str, model: object) -> str:
    path = folder / name
    path.write_bytes(pickle.dumps(model))
    return str(path)


def test_bad_models(tmp_path, capsys, decisions):
    import pandas as pd

    file = decisions()
    frame = pd.DataFrame({"age": np.arange(40.0), "income": np.arange(40.0) % 7})
    named = LogisticRegression().fit(frame, np.arange(40) % 2)
    plain = LogisticRegression().fit(frame.to_numpy()[:, :1], np.arange(40) % 2)
    garbage = tmp_path / "broken.onnx"
    garbage.write_bytes(b"not a model")
    broken = tmp_path / "broken.skops"
    broken.write_bytes(b"not a zip")
    base = ["audit", str(file), "--out", str(tmp_path / "out"), *BASIC, "--features", "age,p", "--model"]
    cases = [
        ([_saved(tmp_path, "m.pkl", named)], r"is a pickle: loading it runs whatever code"),
        ([_saved(tmp_path, "m.pkl", named), "--trust-pickle"], r"the data lack 1 of them: `income`"),
        ([_saved(tmp_path, "n.pkl", plain), "--trust-pickle"], r"takes 1 columns by position and the data have 2"),
        ([_saved(tmp_path, "u.pkl", LogisticRegression()), "--trust-pickle"], r"is not fitted"),
        ([str(garbage)], r"is not an ONNX model"),
        ([str(broken)], r"is not a skops model"),
    ]
    for words, says in cases:
        refused(tmp_path, capsys, [*base, *words], says)


def test_bad_places_to_write(tmp_path, capsys, decisions):
    file = decisions()
    taken = tmp_path / "taken"
    taken.write_text("here already")
    refused(tmp_path, capsys, ["audit", str(file), *BASIC, "--out", str(taken)], r"is a file, not a folder")
    refused(tmp_path, capsys, ["audit", str(file), *BASIC, "--out", str(taken / "sub")], r"is a file, not a folder")
    refused(tmp_path, capsys, ["plan", str(file), *BASIC, "--out", str(taken)], r"exists already")
    assert taken.read_text() == "here already"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda place, mode: mode != os.W_OK)  # root may write anywhere
        refused(tmp_path, capsys, ["audit", str(file), *BASIC, "--out", str(tmp_path / "o")], r"no permission to write")
    # No folder can be made there, by root neither.
    assert run(["audit", str(file), *BASIC, "--quiet", "--out", "/proc/evenhand/out"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_hostile_names_stay_inert_in_messages(tmp_path, capsys, decisions):
    file = decisions(**{"sexe\x1b[31m": np.full(600, "x")})
    words = ["audit", str(file), "--out", str(tmp_path / "out"), *BASIC[:4], "--group", "sexee\x1b[2J"]
    assert run(words) == 2
    shown = capsys.readouterr().err
    assert "sexe" in shown
    assert "\x1b" not in shown
