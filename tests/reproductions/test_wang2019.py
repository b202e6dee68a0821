"""The toy and a few cells computed anew; stored values that the paper's own means lead to; claims and page."""

from __future__ import annotations

import copy

import pytest

from evenhand.errors import DataError
from evenhand.report.html import html_page
from evenhand.reproductions import load_paper, stored_results
from evenhand.reproductions.page import compose_reproduction
from evenhand.reproductions.paper import Parts
from evenhand.reproductions.wang2019.counterfactuals import PRINTED, run_table_2
from evenhand.reproductions.wang2019.gaps import run_section_5
from evenhand.reproductions.wang2019.toy import claims_of_toy, run_toy


@pytest.fixture(scope="module")
def toy():
    return run_toy({"steps": [0.1], "iterations": 25}, Parts())


@pytest.fixture(scope="module")
def stored():
    return stored_results("wang2019")


def or_skip(run, settings):
    try:
        return run(settings, Parts())
    except DataError as error:
        pytest.skip(str(error))


def test_the_toy_loses_its_gap_in_about_twenty_steps(toy):
    exact = toy["exact"]["0.1"]
    assert exact["gap"] == pytest.approx(0.319, abs=5e-4)
    assert 18 <= exact["iterations"] <= 21
    assert abs(exact["end"]) <= 1e-3


def test_audit_and_holdout_fall_together(toy):
    assert max(abs(a - b) for a, b in zip(toy["audit"], toy["holdout"], strict=True)) < 0.03
    assert abs(toy["holdout"][-1]) < 0.01
    assert toy["coefficients"] == pytest.approx([5, -2, -2], abs=0.2)
    assert [c.reached for c in claims_of_toy(toy, {})] == ["yes", "yes", "yes", "yes", "no"]


def test_section_5_computed_anew_is_what_is_stored(stored):
    made = or_skip(run_section_5, {"splits": 1})
    assert made["base_rate"] == pytest.approx(0.241, abs=5e-4)
    for name in ("mean prediction, women", "da", "fpr", "sp"):
        spread = stored["section-5"].result["values"][name]
        assert made["values"][name]["mean"] == pytest.approx(spread["mean"], abs=4 * spread["sd"])


def test_table_2_computed_anew_is_what_is_stored(stored):
    made, kept = or_skip(run_table_2, dict(stored["table-2"].settings)), stored["table-2"].result
    assert made["rows"] == kept["rows"]
    assert sum(made["rows"].values()) == pytest.approx(4558, abs=1)
    for measure, column in kept["counterfactual"].items():
        for name, cell in column["cells"].items():
            assert made["counterfactual"][measure]["cells"][name]["mean"] == pytest.approx(cell["mean"], abs=1e-3)


@pytest.mark.parametrize(
    ("name", "expected", "within"),
    [
        ("mean prediction, women", 0.125, 0.005),
        ("mean prediction, men", 0.298, 0.005),
        ("da", 0.084, 0.004),
        ("sp", -0.170, 0.006),
        ("fpr", -0.112, 0.005),
        ("cal", 0.006, 0.008),
    ],
)
def test_values_of_section_5(stored, name, expected, within):
    assert stored["section-5"].result["values"][name]["mean"] == pytest.approx(expected, abs=within)


def test_every_cell_of_table_2_is_a_claim_that_follows_from_what_is_stored(stored):
    item, entry = load_paper("wang2019").item("table-2"), stored["table-2"]
    claims = {c.claim: c for c in item.claims(entry.result, entry.settings)}
    assert len(claims) == 2 + 48
    assert set(PRINTED) == set(entry.result["groups"])
    assert claims["FPR, Industry_is_SelfEmployed: change"].reached == "no"
    assert claims["FPR, Industry_is_SelfEmployed: change"].printed.startswith("+16.1")
    changed = copy.deepcopy(dict(entry.result))
    changed["counterfactual"]["fpr"]["cells"]["Industry_is_SelfEmployed"]["change"] = 0.161
    again = {c.claim: c for c in item.claims(changed, entry.settings)}
    assert again["FPR, Industry_is_SelfEmployed: change"].reached == "yes"


def test_what_is_stored_has_every_item_and_makes_a_page(stored):
    paper = load_paper("wang2019")
    assert set(stored) == {item.name for item in paper.items}
    page = html_page(compose_reproduction(paper, stored))
    assert "Figure 2: corrective descent on the toy" in page
    assert "Figure 3: proxy scores for FPR, single columns" in page
