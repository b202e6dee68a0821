"""`--reference` with a word in place of a group."""

from __future__ import annotations

import json

import pytest

from evenhand.cli import run

BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex", "--group", "race", "--metrics", "selection_rate")


def audit(decisions, tmp_path, *words):
    code = run(["audit", str(decisions()), "--out", str(tmp_path / "out"), *BASIC, *words])
    path = tmp_path / "out" / "findings.json"
    return code, json.loads(path.read_text()) if path.exists() else None


def test_a_word_alone_is_for_all_attributes(decisions, tmp_path):
    words = ("--reference", "highest", "--margin", "four-fifths", "--fail-on", "selection_rate:disparity")
    code, found = audit(decisions, tmp_path, *words)
    assert code == 3
    assert [f["groups"][1] for f in found["findings"] if f["audit"] == "group"] == [
        "sex=highest",
        "race=highest",
        "race=highest",
    ]
    assert found["plan"]["reference"] == "highest"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Ratio to the highest" in page
    assert "the margin of 0.8 to 1" in page
    assert "No group has a higher rate than this one" in page


def test_a_word_for_one_attribute_and_a_group_for_another(decisions, tmp_path):
    code, found = audit(decisions, tmp_path, "--reference", "race=rest", "--reference", "sex=F")
    assert code == 0
    of_group = [f for f in found["findings"] if f["audit"] == "group"]
    groups = [f["groups"] for f in of_group if not f["measure"].endswith("_global")]
    assert groups == [["sex=M", "sex=F"], *([f"race={label}", "race=rest"] for label in "xyz")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reference", "highest", "--reference", "sex=F"), "is for all attributes"),
        (("--reference", "tallest"), "is not understood"),
        (("--reference", "highest", "--compare", "pairs"), "pairs have no reference"),
    ],
)
def test_what_is_not_understood_is_one_sentence(decisions, tmp_path, capsys, words, says):
    code, found = audit(decisions, tmp_path, *words)
    assert (code, found) == (2, None)
    assert says in capsys.readouterr().err
