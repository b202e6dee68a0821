"""Audits that may be shared: nothing of what is held back is in them, whatever is written."""

from __future__ import annotations

import json
import re
import zipfile

import numpy as np
import pytest

import evenhand as eh
from evenhand.cli import run as command

# Each group's counts of (outcome, decision) = 00, 01, 10, 11. Those of c and d must not be seen anywhere.
GROUPS = {"a": (1310, 611, 420, 707), "b": (914, 333, 505, 812), "c": (8161, 4, 4027, 3), "d": (2203, 61, 73, 89)}


def _people(groups=GROUPS, **options):
    labels, outcome, decision, number = [], [], [], []
    for label, counts in groups.items():
        for cell, n in enumerate(counts):
            labels.append(label)
            outcome.append(cell // 2)
            decision.append(cell % 2)
            number.append(n)
    columns = {"outcome": outcome, "decision": decision, "weight": number, "weight_kind": "frequency"}
    return eh.AuditData.from_arrays(**columns, groups={"group": labels}, **options)


def _secrets():
    """Numbers that only somebody who has seen the groups held back can write."""
    for label in "cd":
        tn, fp, fn, tp = GROUPS[label]
        rows = tn + fp + fn + tp
        yield from (str(n) for n in (tn, fn, tp, tn + fp, fn + tp, fp + tp, rows) if n > 99)
        yield from (f"{n:,}" for n in (tn, fn, tp, tn + fp, fn + tp, fp + tp, rows) if n > 999)
        for rate in ((fp + tp) / rows, fn / (fn + tp), fp / (fp + tn)):
            yield f"{rate:.4f}"
            yield f"{rate:.3f}"


def _numbers(text):
    return set(re.findall(r"(?<![\d.#a-zA-Z])\d[\d,]*\.?\d*(?![\d])", text))


@pytest.mark.parametrize("form", ["report", "ll144"])
def test_no_file_and_no_word_tells_what_is_held_back(tmp_path, capsys, form):
    lines = ["group,outcome,decision"]
    for label, counts in GROUPS.items():
        for cell, n in enumerate(counts):
            lines += [f"{label},{cell // 2},{cell % 2}"] * n
    (tmp_path / "people.csv").write_text("\n".join(lines))
    out = tmp_path / "out"
    words = ["audit", str(tmp_path / "people.csv"), "--outcome", "outcome", "--decision", "decision", "--format", form]
    assert command([*words, "--group", "group", "--seed", "0", "--suppress", "10", "--out", str(out)]) == 0
    texts = {path.name: path.read_text() for path in out.iterdir() if path.suffix != ".xlsx"}
    for path in out.glob("*.xlsx"):
        with zipfile.ZipFile(path) as parts:
            texts[path.name] = "".join(parts.read(name).decode() for name in parts.namelist())
    texts["terminal"] = capsys.readouterr().out
    assert {"findings.json", "report.html", "report.md", "junit.xml", "terminal"} <= set(texts)
    assert ("bias-audit.xlsx" in texts) == (form == "ll144")
    scripts = re.compile(r"<script>.*?</script>|<style>.*?</style>|<svg.*?</svg>", re.S)
    for name, text in texts.items():
        told = set(_secrets()) & _numbers(scripts.sub("", text))
        assert told == set(), name
    # The attack has something to find: without the option the numbers are there.
    assert command([*words, "--group", "group", "--seed", "0", "--out", str(out), "--quiet"]) == 0
    assert len(set(_secrets()) & _numbers((out / "findings.json").read_text())) > 3


def test_what_is_shared_does_not_depend_on_what_is_held_back():
    """Other counts in the groups held back, the same sums over them: every file is the same to the byte."""
    other = {**GROUPS, "c": (8160, 0, 4099, 1), "d": (2204, 65, 1, 91)}
    assert np.sum(list(GROUPS.values()), axis=0).tolist() == np.sum(list(other.values()), axis=0).tolist()
    plan = eh.Plan(group={"margin": 0.05})
    runs = [eh.audit(_people(groups), plan=plan, rng=0, suppress=10) for groups in (GROUPS, other)]
    assert runs[0].data["suppression"]["groups"] == {"group": ["c", "d"]}
    assert runs[0].to_json() == runs[1].to_json()
    assert runs[0].to_html() == runs[1].to_html()
    assert eh.audit(_people(), plan=plan, rng=0).to_json() != eh.audit(_people(other), plan=plan, rng=0).to_json()


def test_the_findings_are_those_of_an_audit_of_the_published_groups():
    shared = eh.audit(_people(), rng=0, suppress=10)
    alone = eh.audit(_people({label: GROUPS[label] for label in "ab"}), rng=0)
    for one, other in zip(shared.findings, alone.findings, strict=True):
        assert (one.estimate, one.interval, one.pvalue, one.counts) == (
            other.estimate,
            other.interval,
            other.pvalue,
            other.counts,
        )


@pytest.mark.parametrize("margin", [None, 0.02])
def test_questions_about_groups_held_back_are_paid_for(margin):
    """Four groups make 3 comparisons and one of all together, of three metrics; 3 of these 12 are published."""
    plan = eh.Plan(group={"margin": margin} if margin else {}, correction="bonferroni")
    run = eh.audit(_people(), plan=plan, rng=0, suppress=10)
    assert len(run.findings) == 3
    for finding in run.findings:
        assert finding.pvalue_adjusted == pytest.approx(min(1, 12 * finding.pvalue))


def test_what_is_held_back_is_said():
    run = eh.audit(_people(), rng=0, suppress=10)
    assert run.data["suppression"] == {"threshold": 10, "groups": {"group": ["c", "d"]}, "cells": 8}
    assert "2 groups are held back, with 4 counts each and 14,621 rows together: `c`, `d`." in " ".join(
        run.data["notes"]
    )
    assert run.data["fingerprint"] == run.data["people"] == "not published"
    assert run.data["groups"] == {"group": {"a": 3048, "b": 2564}}


def test_nothing_small_changes_nothing():
    whole = {label: GROUPS[label] for label in "ab"}
    shared, plain = eh.audit(_people(whole), rng=0, suppress=10), eh.audit(_people(whole), rng=0)
    assert str(shared) == str(plain)
    assert [f.pvalue_adjusted for f in shared.findings] == [f.pvalue_adjusted for f in plain.findings]
    assert "Nothing had to be held back." in shared.data["notes"]


def test_dropped_rows_that_are_few_are_not_told():
    groups = ["a", "b"] * 100 + [None] * 3
    few = eh.AuditData.from_arrays(decision=[0, 0, 1, 1] * 50 + [1] * 3, groups={"g": groups})
    run = eh.audit(few, rng=0, suppress=10)
    assert (run.data["rows_in"], run.data["rows_used"], run.data["rows_dropped"]) == (200, 200, {})
    assert "Fewer than 10 rows of the file could not be used" in " ".join(run.data["notes"])
    many = eh.AuditData.from_arrays(decision=[0, 0, 1, 1] * 50 + [1] * 30, groups={"g": groups[:200] + [None] * 30})
    assert eh.audit(many, rng=0, suppress=10).data["rows_dropped"] == dict.fromkeys(many.rows.dropped, 30)


def test_crossed_attributes_protect_each_other():
    rng = np.random.default_rng(1)
    sex, race = rng.choice(["F", "M"], 3000), rng.choice(["A", "B", "C", "D"], 3000, p=[0.6, 0.3, 0.08, 0.02])
    data = eh.AuditData.from_arrays(
        decision=rng.random(3000) < 0.3, groups={"sex": sex, "race": race}, intersections=True
    )
    held = eh.audit(data, rng=0, suppress=20).data["suppression"]["groups"]
    # A small combination alone could be found from its race and its sex.
    assert all(len(groups) > 1 for groups in held.values())
    assert {"sex × race"} <= set(held)


def test_other_audits_are_left_out_and_said():
    rng = np.random.default_rng(0)
    score, group = rng.random(4000), rng.choice(["a", "b"], 4000)
    data = eh.AuditData.from_arrays(
        outcome=rng.integers(0, 2, 4000), score=score, decision=score > 0.5, groups={"g": group}, features={"x": score}
    )
    run = eh.audit(data, plan=eh.Plan(audits=("group", "proxy")), rng=0, suppress=10)
    assert [r.audit for r in run.results] == ["group"]
    assert "Not shared, because it rests on single people: the proxy audit." in run.data["notes"]
    assert not any(e.to_dict().get("thresholds") for e in run.results[0].evidence)


@pytest.mark.parametrize("threshold", [1, 0, -3, 10.5, True, 5000])
def test_a_strange_threshold_is_refused(threshold):
    with pytest.raises(eh.UsageError, match=r"`suppress=` is .*; allowed: a whole number from 2 to 1000"):
        eh.audit(_people(), rng=0, suppress=threshold)


def test_metrics_of_single_people_are_refused():
    data = eh.datasets.planted(rows=1000, rng=0)
    with pytest.raises(eh.UsageError, match="`auc` is made of single people's values"):
        eh.audit(data, plan=eh.Plan(group={"metrics": ["auc"]}), rng=0, suppress=10)


def test_sampling_weights_are_refused():
    data = eh.AuditData.from_arrays(decision=[0, 1] * 50, groups={"g": ["a", "b"] * 50}, weight=[0.5, 1.5] * 50)
    with pytest.raises(eh.UsageError, match="sampling weights"):
        eh.audit(data, rng=0, suppress=10)


def test_data_that_are_too_small_are_refused():
    data = eh.AuditData.from_arrays(decision=[0, 1] * 10, groups={"g": ["a", "a", "b", "b"] * 5})
    with pytest.raises(eh.DataError, match="held back no two groups"):
        eh.audit(data, rng=0, suppress=10)
    with pytest.raises(eh.DataError, match="too small to be shared"):
        eh.audit(data, rng=0, suppress=12)
    nobody = eh.AuditData.from_arrays(decision=[0] * 400, groups={"g": ["a", "b"] * 200})
    with pytest.raises(eh.DataError, match="too small to be shared"):
        eh.audit(nobody, rng=0, suppress=10)


def test_max_t_is_refused():
    with pytest.raises(eh.UsageError, match="`max-t` needs all of them"):
        eh.audit(_people(), plan=eh.Plan(correction="max-t"), rng=0, suppress=10)


@pytest.mark.parametrize("design", ["strata", "cluster"])
def test_designs_are_refused(design):
    values = ["x", "y"] * 50
    named = {"strata": {"job": values}} if design == "strata" else {"cluster": [j // 2 for j in range(100)]}
    data = eh.AuditData.from_arrays(decision=[0, 1, 1, 0] * 25, groups={"g": ["a", "b"] * 50}, **named)
    with pytest.raises(eh.UsageError, match=f"`{design}` asks for more"):
        eh.audit(data, rng=0, suppress=10)


def test_people_of_unknown_group_are_protected_too():
    groups = ["a"] * 100 + ["b"] * 100 + ["c"] * 60 + [None] * 5
    data = eh.AuditData.from_arrays(decision=([0, 1] * 130) + [1] * 5, groups={"g": groups}, missing="unknown")
    run = eh.audit(data, plan=eh.Plan(group={"reference": "highest", "ratio": True}), rng=0, suppress=10)
    assert run.data["suppression"]["groups"] == {"g": ["(missing)", "c"]}
    assert run.data["groups"] == {"g": {"a": 100, "b": 100}}


def test_a_reference_that_is_held_back_is_an_error_in_words():
    with pytest.raises(eh.UsageError, match="`group=c` is held back"):
        eh.audit(_people(), plan=eh.Plan(reference={"group": "c"}), rng=0, suppress=10)


def test_the_run_is_read_back_from_its_file():
    run = eh.audit(_people(), rng=0, suppress=10)
    assert eh.AuditRun.from_dict(json.loads(run.to_json())).to_json() == run.to_json()


@pytest.mark.parametrize("threshold", ["1", "-5", "ten"])
def test_the_command_says_in_one_sentence_what_is_wrong(tmp_path, capsys, threshold):
    (tmp_path / "people.csv").write_text("g,d\n" + "a,0\na,1\nb,0\nb,1\n" * 20)
    words = ["audit", str(tmp_path / "people.csv"), "--decision", "d", "--group", "g", "--suppress", threshold]
    assert command([*words, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "suppress" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_cells_of_an_engine_give_what_rows_give():
    rng = np.random.default_rng(2)
    columns = {"decision": rng.integers(0, 2, 3000), "outcome": rng.integers(0, 2, 3000)}
    groups = {"g": rng.choice(["a", "b", "c", "d"], 3000, p=[0.5, 0.46, 0.02, 0.02])}
    kept, cells = (
        eh.audit(eh.AuditData.from_arrays(**columns, groups=groups, rows=how), rng=0, suppress=10)
        for how in ("keep", "cells")
    )
    assert kept.to_json() == cells.to_json()
