"""``evenhand power`` on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evenhand.cli import run

DESIGN = ("power", "--metrics", "fnr", "--rows", "F=300,M=900", "--value", "0.2", "--base-rate", "0.4,0.3")


def pilot(path):
    rng = np.random.default_rng(0)
    lines = ["y,d,sex", *(f"{rng.integers(2)},{rng.integers(2)},{'FM'[i % 2]}" for i in range(200))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_design_numbers_to_a_table_and_a_file(tmp_path, capsys):
    out = tmp_path / "out"
    assert run([*DESIGN, "--difference", "0.1", "--margin", "0.1", "--curve", "rows", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "F vs M" in shown
    assert "rows for equivalence" in shown
    assert "reference rows 1800" in shown
    assert "Differences are shown with probability 0.8 at error rate 0.05." in shown
    (row,) = json.loads((out / "power.json").read_text())["power"]
    assert row["groups"] == ["F", "M"]
    assert len(row["curve"]) == 10


def test_json_on_standard_output_is_all_there_is(tmp_path, capsys):
    assert run([*DESIGN, "--json", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == json.loads((tmp_path / "power.json").read_text())
    assert "Wrote" in shown.err


def test_a_pilot_file(tmp_path, capsys):
    words = ("--data", pilot(tmp_path / "p.csv"), "--outcome", "y", "--decision", "d", "--group", "sex")
    assert run(["power", "--metrics", "fnr,fpr", *words, "--reference", "sex=F", "--findings", "4"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("sex=M vs sex=F") == 2
    assert "shared by 4 findings" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("power",), "metrics"),
        (("power", "--metrics", "fnr"), "`rows` must hold"),
        ((*DESIGN, "--difference", "x"), "x"),
        ((*DESIGN, "--difference", "0.95"), "outside 0 to 1"),
        ((*DESIGN[:3], "--rows", "F=300,M=x"), "`--rows F=300,M=x` is not understood"),
        ((*DESIGN[:3], "--rows", "F=300,M="), "is not understood"),
        ((*DESIGN, "--base-rate", "a,b"), "`--base-rate a,b` is not understood"),
        ((*DESIGN, "--outcome", "y"), "Give the pilot with `--data FILE`"),
        (
            (*DESIGN, "--data", "no-such-file.csv", "--group", "sex", "--outcome", "y", "--decision", "d"),
            "no-such-file",
        ),
        ((*DESIGN, "--alpha", "2"), "`alpha` must lie"),
    ],
)
def test_bad_input_gives_exit_code_2_and_one_sentence(tmp_path, capsys, words, says):
    out = tmp_path / "out"
    assert run([*words, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.strip().splitlines()) == 1
    assert not out.exists()
