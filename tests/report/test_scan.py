"""What the report shows of a scan: who differs, both ranks, overlaps, what was searched, and names that run nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

import evenhand as eh
from evenhand.report import compose
from evenhand.report.document import Figure, Table, Text
from evenhand.report.markdown import markdown_page
from evenhand.report.sections.scan import blocks


@pytest.fixture(scope="module")
def result():
    """Return a scan of people of whom one corner and one large group are decided otherwise."""
    rng = np.random.default_rng(7)
    sex, race, job = (rng.choice(list(values), 9000) for values in ("FM", "ABC", "xyz"))
    corner, large = (sex == "F") & (race == "C"), job == "x"
    decision = rng.random(9000) < 0.5 - 0.3 * corner - 0.12 * large
    data = eh.AuditData.from_arrays(decision=decision, groups={"sex": sex, "race": race, "job": job})
    return eh.audit_scan(data, metrics=["selection_rate"], rng=0)


def table(result, start):
    return next(b for b in blocks(result) if isinstance(b, Table) and b.title.startswith(start))


def test_shown_subgroups_stand_above_and_the_others_are_greyed(result):
    figure = next(b for b in blocks(result) if isinstance(b, Figure))
    rows = figure.spec["data"]["values"]
    verdicts = [row["verdict"] for row in rows]
    assert verdicts == sorted(verdicts, key=lambda verdict: verdict != "disparity")
    assert {row["name"] for row in rows if row["verdict"] == "disparity"} == {"sex=F & race=C", "job=x"}
    assert all((row["strength"] == 1.0) == (row["verdict"] == "disparity") for row in rows)
    places = [row["at"] for row in rows]
    assert places == sorted(places)
    assert places[-1] < figure.spec["height"]


def test_both_ranks_are_there_and_count_what_they_say(result):
    shown = table(result, "Subgroups by evidence")
    column = {name: j for j, name in enumerate(shown.head)}
    assert [row[column["Rank by evidence"]] for row in shown.rows] == list(range(1, len(shown.rows) + 1))
    people = [abs(row[column["People more or fewer"]]) for row in shown.rows]
    ranks = [row[column["Rank by people"]] for row in shown.rows]
    assert [people[ranks.index(k + 1)] for k in range(len(ranks))] == sorted(people, reverse=True)
    for row, finding in zip(shown.rows[:2], result.findings[:2], strict=True):
        value, rest = row[column["Its value"]], row[column["The rest"]]
        assert value - rest == pytest.approx(finding.estimate)
        assert row[column["People more or fewer"]] == round(row[column["People"]] * finding.estimate)


def test_the_overlap_is_the_share_of_people_in_both(result):
    overlap = table(result, "How the shown subgroups overlap")
    first, second = overlap.rows
    both = int(first[3].rstrip("%")) / 100 * first[1]
    assert both == pytest.approx(int(second[2].rstrip("%")) / 100 * second[1], abs=0.01 * max(first[1], second[1]))
    assert first[2] == second[3] == ""


def test_the_paragraph_says_what_was_searched(result):
    said = next(b.text for b in blocks(result) if isinstance(b, Text))
    evidence = result.evidence[0]
    for part in (f"{evidence.described:,} subgroups", f"{evidence.considered:,} of them", "had to reach a p-value of"):
        assert part in said
    assert "2 are shown to differ" in said


def test_names_of_strangers_are_values_only(hostile_run):
    scanned = next(r for r in hostile_run.results if r.audit == "scan")
    for block in blocks(scanned):
        if isinstance(block, Figure):
            marks = json.dumps([{**layer, "data": None} for layer in block.spec["layer"]])
            assert "pwned" not in marks


def test_markdown_tells_the_scan(full_run):
    text = markdown_page(compose(full_run))
    assert "Which combinations of attributes are treated differently from everybody else?" in text
    assert "subgroups can be described with at most 3 conditions" in text


def test_a_scan_without_a_subgroup_shows_its_reason_and_draws_nothing():
    groups = {"sex": list("FM") * 4, "race": list("AABB") * 2}
    result = eh.audit_scan(eh.AuditData.from_arrays(decision=[0, 1] * 4, groups=groups), rng=0)
    assert blocks(result) == []
    assert "No subgroup of at least 20 people" in result[0].reason


def test_a_rounded_cut_is_given_with_all_digits_below():
    rng = np.random.default_rng(10)
    age, sex = rng.uniform(20, 80, 4000), rng.choice(["F", "M"], 4000)
    decision = (rng.random(4000) < np.where(age >= 50, 0.55, 0.3)).astype(int)
    data = eh.AuditData.from_arrays(decision=decision, groups={"sex": sex}, features={"age": age})
    result = eh.audit_scan(data, attributes=["sex", "age"], rng=0)
    table = next(b for b in blocks(result) if isinstance(b, Table) and "all digits" in b.title)
    name, tested = table.rows[0]
    assert name in [f.groups[0] for f in result.findings]
    assert len(name) < len(tested)
    assert not [row for row in table.rows if row[0].startswith("sex") and "age" not in row[0]]
