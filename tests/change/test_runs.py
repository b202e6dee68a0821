"""Finished runs compared, and the history of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.change.history import read_history
from evenhand.change.result import ChangeVerdict
from evenhand.change.runs import compare_runs, load_run
from evenhand.cli import run as command
from evenhand.errors import DataError


def made(fnr: float, seed: int = 0, rows: int = 4000, **plan: object) -> eh.AuditRun:
    data = eh.datasets.planted(rows=rows, fnr=(0.1, fnr), rng=seed)
    return eh.audit(data, plan=eh.Plan(group={"metrics": ["fnr", "fpr"]}, **plan), rng=0)  # type: ignore[arg-type]


def test_independent_runs_are_tested() -> None:
    old, new = made(0.1, 1), made(0.4, 2)
    found = compare_runs(old, new)
    assert len(found.lines) == 2, "the larger group is another one in the second run, and the pair is the same"
    fnr, fpr = found.lines
    assert (fnr.state, fnr.verdict) == ("changed verdict", ChangeVerdict.WORSE)
    assert fpr.verdict is ChangeVerdict.INCONCLUSIVE
    assert not found.same_people
    back = compare_runs(new, old)
    assert back.lines[0].verdict is ChangeVerdict.BETTER
    assert back.lines[0].pvalue == pytest.approx(fnr.pvalue)
    assert found.worse == (fnr,)


def test_the_same_people_are_not_tested_as_if_they_were_others() -> None:
    data = eh.datasets.planted(rows=1000, fnr=(0.1, 0.4), rng=0)
    other = eh.AuditData.from_arrays(
        outcome=data.outcome,
        decision=data.outcome,
        groups={a.name: [a.labels[c] for c in a.codes] for a in data.attributes},
    )
    plan = eh.Plan(group={"metrics": ["fnr"]})
    found = compare_runs(*(eh.audit(d, plan=plan, rng=0) for d in (data, other)))
    assert found.same_people
    assert found.lines[0].verdict is ChangeVerdict.NOT_COMPUTABLE
    assert "evenhand compare FILE" in found.notes[0]


def test_searched_subgroups_are_listed_and_not_tested() -> None:
    def scanned(seed: int) -> eh.AuditRun:
        rng = np.random.default_rng(seed)
        sex, race = (rng.choice(list(values), 3000) for values in ("FM", "AB"))
        decision = rng.random(3000) < np.where((sex == "F") & (race == "B"), 0.2 + 0.2 * seed, 0.5)
        data = eh.AuditData.from_arrays(decision=decision, groups={"sex": sex, "race": race})
        return eh.audit(data, plan=eh.Plan(audits=("group", "scan")), rng=0)

    found = compare_runs(scanned(0), scanned(1))
    searched = [line for line in found.lines if line.audit == "scan"]
    assert any(line.state in ("same verdict", "changed verdict") for line in searched)
    assert all(line.verdict is ChangeVerdict.NOT_COMPUTABLE for line in searched)
    assert any(line.verdict is not ChangeVerdict.NOT_COMPUTABLE for line in found.lines if line.audit == "group")
    assert "picked out for their size" in found.notes[-1]


def test_what_appeared_vanished_or_was_asked_otherwise_is_said() -> None:
    old = eh.audit(eh.datasets.planted(rows=500, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    new = eh.audit(eh.datasets.planted(rows=500, rng=1), plan=eh.Plan(alpha=0.01, group={"metrics": ["fpr"]}), rng=0)
    found = compare_runs(old, new)
    assert {line.measure: line.state for line in found.lines} == {"fnr": "vanished", "fpr": "appeared"}
    assert any("`alpha` was `0.05` and is `0.01`" in text for text in found.plan_changes)
    assert json.loads(found.to_json())["lines"][0]["before"] == found.lines[0].before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as findings"),
        ('{"schema": "other/9"}', "has the schema 'other/9'"),
        ("[]", "has the schema None"),
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, text: str, said: str) -> None:
    place = tmp_path / "findings.json"
    place.write_text(text)
    with pytest.raises(DataError, match=said):
        load_run(tmp_path)


def test_a_run_without_its_people_is_refused(tmp_path: Path) -> None:
    content = json.loads(made(0.1, rows=500).to_json())
    del content["data"]["people"]
    (tmp_path / "findings.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="does not say who its people are"):
        load_run(tmp_path)


def test_a_shared_run_stays_in_the_history(tmp_path: Path) -> None:
    data = eh.datasets.planted(rows=2000, fnr=(0.1, 0.4), rng=0)
    for name, suppress in (("own", None), ("shared", 10), ("later", None)):
        run = eh.audit(data, plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0, suppress=suppress)
        (tmp_path / name).mkdir()
        (tmp_path / name / "findings.json").write_text(run.to_json())
        os.utime(tmp_path / name / "findings.json", (len(name) * 1000, len(name) * 1000))
    history = read_history(tmp_path)
    assert [e.folder for e in history.entries] == ["own", "later", "shared"]
    assert history.entries[2].changed == ("Not compared with the run before.",)


def test_history_in_the_order_of_writing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for j, (name, run) in enumerate((("b", made(0.1)), ("a", made(0.4)), ("broken", None))):
        place = tmp_path / name / "findings.json"
        place.parent.mkdir()
        place.write_text("{" if run is None else run.to_json())
        os.utime(place, (1_700_000_000 + 86_400 * j, 1_700_000_000 + 86_400 * j))
    history = read_history(tmp_path)
    assert [e.folder for e in history.entries] == ["b", "a"]
    assert history.entries[0].date.startswith("2023-11-14")
    assert "1 verdicts changed." in history.entries[1].changed
    assert len(history.problems) == 1
    assert command(["history", str(tmp_path), "--out", str(tmp_path / "page")]) == 0
    assert (tmp_path / "page" / "report.html").exists()
    assert "disparity" in capsys.readouterr().out
    assert command(["history", str(tmp_path / "nothing")]) == 2
    assert command(["compare", str(tmp_path / "b"), str(tmp_path / "a"), "--out", str(tmp_path / "two")]) == 0


def test_runs_made_to_be_shared_are_not_compared():
    people = eh.datasets.planted(rows=4000, rng=0)
    shared, plain = eh.audit(people, rng=0, suppress=10), eh.audit(people, rng=0)
    with pytest.raises(eh.DataError, match="Run `b` was made to be shared"):
        compare_runs(plain, shared)
