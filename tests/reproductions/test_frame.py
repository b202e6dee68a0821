"""The frame of reproductions: parts are computed once, missing data cost one item, words are checked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evenhand import reproductions
from evenhand.cli import run
from evenhand.reproductions.page import claims_table
from evenhand.reproductions.paper import Claim, Item, Paper, Parts, Settings, near

CALLS: list[int] = []


def _run(settings: Settings, parts: Parts) -> dict[str, object]:
    def make() -> list[int]:
        CALLS.append(settings["n"])
        return [settings["n"]]

    return {"values": [parts.keep(f"part-{j}", {"n": settings["n"], "part": j}, make) for j in range(3)]}


def _claims(result: dict[str, object], settings: Settings) -> list[Claim]:
    one = Claim(claim="n is 7", printed="7", ours=str(settings["n"]), reached=near(7, settings["n"], 0.1), rule="equal")
    return [one, Claim(claim="alone", printed="–", ours="3", reached="not claimed", rule="none")]


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Paper:
    """Return a paper with an item that runs and one whose data no folder holds."""
    item = Item(name="table-1", title="a table", run=_run, settings={"n": 7}, short={"n": 2}, minutes=1, claims=_claims)
    absent = Item(
        name="table-2", title="without data", run=_run, settings={}, short={}, minutes=1, data=("no-such-set",)
    )
    made = Paper(key="wang2019", title="A paper", items=(item, absent))
    module = ModuleType("evenhand.reproductions.wang2019")
    module.PAPER = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "evenhand.reproductions.wang2019", module)
    CALLS.clear()
    return made


def test_an_interrupted_item_goes_on_from_its_parts(paper: Paper, tmp_path: Path) -> None:
    first = reproductions.reproduce("wang2019", only=["table-1"], folder=tmp_path)
    assert CALLS == [7, 7, 7]
    parts = sorted((tmp_path / "parts" / "table-1").iterdir())
    parts[1].unlink()
    second = reproductions.reproduce("wang2019", only=["table-1"], folder=tmp_path)
    assert CALLS == [7] * 4
    assert first.results["table-1"].result == second.results["table-1"].result
    reproductions.reproduce("wang2019", only=["table-1"], short=True, folder=tmp_path)
    assert CALLS == [7] * 4 + [2] * 3
    stored = json.loads((tmp_path / "table-1.json").read_text())
    assert stored["settings"] == {"n": 2}


def test_an_item_without_its_data_says_so_and_the_others_run(paper: Paper) -> None:
    outcome = reproductions.reproduce("wang2019")
    assert list(outcome.results) == ["table-1"]
    assert "no-such-set" in outcome.problems["table-2"]


def test_claims_are_counted_by_code(paper: Paper) -> None:
    full = reproductions.reproduce("wang2019", only=["table-1"])
    short = reproductions.reproduce("wang2019", only=["table-1"], short=True)
    assert claims_table(paper, full.results).startswith("1 of 1 claims")
    assert claims_table(paper, short.results).startswith("0 of 1 claims")
    with pytest.raises(ValueError, match="reached"):
        Claim(claim="", printed="", ours="", reached="perhaps", rule="")


def test_the_command_writes_a_page_and_answers_bad_words_in_a_sentence(
    paper: Paper, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", "wang2019", "--short", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "0 of 1 claims are reached" in said.out
    assert "no-such-set" in said.err
    assert "A paper" in (tmp_path / "out" / "report.html").read_text()
    for words, sentence in (
        (["reproduce", "wang2091"], "Did you mean `wang2019`"),
        (["reproduce", "wang2019", "--only", "table-9"], "has no item `table-9`"),
        (["reproduce"], "Name a paper"),
    ):
        assert run([*words, "--out", str(tmp_path / "none")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_the_list_names_every_item(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--list"]) == 0
    said = capsys.readouterr().out
    for key in reproductions.KEYS:
        for item in reproductions.load_paper(key).items:
            assert item.name in said
