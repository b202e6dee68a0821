"""``evenhand plan``: a file that is itself a plan, and finds what the defaults find."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

from evenhand import Plan
from evenhand.cli import run

BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex", "--group", "race")


def findings(folder):
    return json.loads((folder / "findings.json").read_text())["findings"]


@pytest.mark.parametrize("words", [BASIC, (*BASIC, "--score", "p", "--intersections", "--features", "age")])
def test_the_plan_finds_what_the_defaults_find(tmp_path, capsys, decisions, words):
    file, plan = decisions(), tmp_path / "audit.toml"
    assert run(["plan", str(file), *words, "--out", str(plan)]) == 0
    assert f"Wrote {plan}" in capsys.readouterr().out
    assert run(["audit", str(file), "--plan", str(plan), "--quiet", "--out", str(tmp_path / "a")]) == 0
    assert run(["audit", str(file), *words, "--quiet", "--out", str(tmp_path / "b")]) == 0
    assert findings(tmp_path / "a") == findings(tmp_path / "b")


def test_comments_say_what_is_there_and_what_is_not(capsys, decisions):
    file = decisions()
    assert run(["plan", str(file), *BASIC, "--out", "-"]) == 0
    text = capsys.readouterr().out
    assert "600 rows, 600 used" in text
    assert 'sex = "F"  # rows: F: 300, M: 300' in text
    assert 'metrics = ["selection_rate", "fnr", "fpr"]' in text
    assert "# not possible: auc, brier" in text
    assert "(needs a score column)" in text
    assert "# margin = 0.05" in text
    for line in [line for line in text.splitlines() if line.startswith("# ") and " = " in line]:
        tomllib.loads(line.removeprefix("# "))  # what is offered can be taken


def test_every_offer_is_a_valid_option(capsys, decisions):
    file = decisions()
    assert run(["plan", str(file), *BASIC, "--out", "-"]) == 0
    taken = [
        line.removeprefix("# ") if line.startswith("# ") and (" = " in line or line.startswith("# [")) else line
        for line in capsys.readouterr().out.splitlines()
    ]
    plan = Plan.from_dict(tomllib.loads("\n".join(taken)))
    assert all(getattr(plan, name) for name in ("group", "projection", "individual", "proxy", "tail", "scan"))


def test_an_edited_plan_is_not_lost(tmp_path, decisions):
    file, plan = decisions(), tmp_path / "audit.toml"
    plan.write_text("alpha = 0.01\n")
    assert run(["plan", str(file), *BASIC, "--out", str(plan)]) == 2
    assert plan.read_text() == "alpha = 0.01\n"
    assert run(["plan", str(file), *BASIC, "--out", str(plan), "--force"]) == 0
    assert "audits" in plan.read_text()


def test_hostile_names_cannot_leave_their_comment_or_their_quotes(capsys, decisions):
    evil = np.where(np.arange(600) % 2, '"a\nalpha = 0.9"', "b # ]")
    file = decisions(**{"s × \\": evil})
    assert run(["plan", str(file), "--decision", "d", "--group", "s × \\", "--out", "-"]) == 0
    plan = Plan.from_dict(tomllib.loads(capsys.readouterr().out))
    assert plan.alpha == 0.05
    assert plan.reference["s × \\"] in ("a\nalpha = 0.9", "b # ]")


def test_a_file_without_predictions_needs_a_model(tmp_path, capsys, decisions):
    file = decisions()
    assert run(["plan", str(file), "--outcome", "y", "--group", "sex", "--out", "-"]) == 2
    assert "needs a decision or a score column" in capsys.readouterr().err
    (tmp_path / "half.py").write_text("def model(X):\n    return X[:, 0] / 100\n")
    words = ["--outcome", "y", "--group", "sex", "--features", "age", "--model", "half:model"]
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        assert run(["plan", str(file), *words, "--out", "-"]) == 0
    finally:
        sys.path.remove(str(tmp_path))
    assert 'metrics = ["selection_rate", "fnr", "fpr", "auc"]' in capsys.readouterr().out
