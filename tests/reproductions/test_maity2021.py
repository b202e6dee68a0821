"""A few cells computed anew against what is stored; claims follow from the stored results; the page renders."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.report.html import html_page
from evenhand.reproductions import load_paper, stored_results
from evenhand.reproductions.maity2021.budget import claims_of_section_2, run_section_2
from evenhand.reproductions.maity2021.cells import PRINTED, claims_of_both, claims_of_means, values_of
from evenhand.reproductions.maity2021.people import adult, compas
from evenhand.reproductions.maity2021.simulation import claims_of_figure_1
from evenhand.reproductions.maity2021.tables import ADULT, COMPAS, group_values, row_of
from evenhand.reproductions.page import compose_reproduction
from evenhand.reproductions.paper import Parts

MEASURES = ("balanced accuracy", "AOD sex", "AOD race", "T_n", "T~_n")
# T_n of a network moves in the last digits with the processor's arithmetic; 500 steps enlarge that.
CLOSE = {"rel": 2e-3}


@pytest.fixture(scope="module")
def stored():
    return stored_results("maity2021")


def or_skip(make, *asked):
    try:
        return make(*asked)
    except DataError as error:
        pytest.skip(str(error))


def row(settings, data, kind, split):
    told = {**settings, "data": data, "classifier": kind, "split": split}
    return or_skip(row_of, {k: v for k, v in told.items() if k != "splits"})


def test_a_split_has_the_rows_and_inputs_of_the_paper():
    split = or_skip(adult, 3)
    assert split.train.y.size + split.test.y.size == 45222
    assert len(split.inputs) == split.train.X.shape[1] == 39
    assert np.allclose(split.train.X[:, :5].mean(axis=0), 0, atol=1e-9)
    assert np.allclose(split.train.X[:, :5].std(axis=0), 1)
    people = or_skip(compas, 0)
    assert people.train.y.size + people.test.y.size == 5278
    assert abs(people.train.y.mean() - people.test.y.mean()) < 0.01  # stratified


def test_group_values_by_hand():
    split = or_skip(compas, 0)
    decision = (split.test.X[:, 2] > 0).astype(float)
    y, privileged = split.test.y, split.test.race == 1
    rates = [[decision[(y == k) & (privileged == g)].mean() for k in (0, 1)] for g in (False, True)]
    by_hand = ((rates[0][0] - rates[1][0]) + (rates[0][1] - rates[1][1])) / 2  # F.5 with G = 1 unprivileged
    values = group_values(split, decision)
    assert values["AOD race"] == pytest.approx(by_hand, abs=1e-12)
    both = decision[y == 1].mean() + 1 - decision[y == 0].mean()
    assert values["balanced accuracy"] == pytest.approx(both / 2, abs=1e-12)


@pytest.mark.parametrize("kind", ["Baseline", "Project", "Reduction"])
def test_cells_of_table_4_computed_anew_are_what_is_stored(stored, kind):
    made, kept = row(COMPAS, "compas", kind, 2), stored["table-4"].result["rows"][kind][2]
    for measure in ("balanced accuracy", "AOD sex", "AOD race"):
        assert made[measure] == pytest.approx(kept[measure], abs=0.01)
    for measure in ("T_n", "T~_n"):
        assert made[measure] == pytest.approx(kept[measure], **CLOSE)


@pytest.mark.parametrize("kind", ["Baseline", "Reduction"])
def test_cells_of_table_1_computed_anew_are_what_is_stored(stored, kind):
    made, kept = row(ADULT, "adult", kind, 1), stored["table-1"].result["rows"][kind][1]
    assert made["balanced accuracy"] == pytest.approx(kept["balanced accuracy"], abs=0.002)
    assert made["T_n"] == pytest.approx(kept["T_n"], **CLOSE)


def test_section_2_computed_anew_is_what_is_stored(stored):
    settings = {**stored["section-2"].settings, "thetas": [1.2]}
    made, kept = run_section_2(settings, Parts()), stored["section-2"].result
    assert made["growth"]["1.2"] == pytest.approx(kept["growth"]["1.2"], rel=1e-6)
    assert made["reached"]["1.2"] == pytest.approx(kept["reached"]["1.2"], rel=1e-3)
    # A larger budget lets the loss grow more, and a flow never gains more than the maximum.
    assert all(values == sorted(values) for values in kept["growth"].values())
    assert max(max(shares) for shares in kept["reached"].values()) <= 1 + 1e-9
    assert [c.reached for c in claims_of_section_2(made, settings)] == ["yes", "yes", "not claimed"]


def test_tables_1_and_3_are_about_the_same_classifiers(stored):
    assert stored["table-1"].result == stored["table-3"].result
    assert stored["table-1"].settings == stored["table-3"].settings == ADULT
    assert stored["table-4"].settings == COMPAS


@pytest.mark.parametrize(("item", "data"), [("table-1", "adult"), ("table-4", "compas")])
def test_every_printed_cell_is_a_claim_and_is_judged_by_three_standard_errors(stored, item, data):
    made = claims_of_both(data)(stored[item].result, stored[item].settings)
    by_name = {c.claim: c for c in made}
    for kind, (means, shares) in PRINTED[data].items():
        for measure, (mean, deviation) in zip(MEASURES, means, strict=False):  # table 4 has no T~_n
            ours = values_of(stored[item].result, kind, measure)
            apart = abs(ours.mean() - mean) / math.sqrt((deviation**2 + ours.var(ddof=1)) / 10)
            claim = by_name[f"{kind}: {measure}"]
            assert claim.reached == ("yes" if apart <= 3 else "no")
            assert f"they are {apart:.1f} apart" in claim.rule
            assert f"{kind}: standard deviation of {measure} over splits" in by_name
        for test, share in zip(("T_n", "T~_n"), shares, strict=False):
            assert by_name[f"{kind}: splits on which {test} rejects"].printed == f"{round(10 * share)} of 10"


def test_the_three_misses_of_sex_on_compas_are_all_listed(stored):
    made = claims_of_means("compas")(stored["table-4"].result, stored["table-4"].settings)
    for kind in ("Project", "Reduction", "SenSR"):
        claim = next(c for c in made if c.claim == f"{kind}: AOD sex")
        assert claim.remark.startswith("Not explained")


def test_a_changed_result_changes_the_claims(stored):
    changed = copy.deepcopy(dict(stored["table-1"].result))
    for one in changed["rows"]["SenSR"]:
        one["T_n"] = 2.0
    made = {c.claim: c.reached for c in claims_of_means("adult")(changed, {})}
    assert made["SenSR: T_n"] == "no"
    assert made["SenSR: splits on which T_n rejects"] == "no"
    assert made["SenSR is never rejected, by either test"] == "no"
    figure = copy.deepcopy(dict(stored["figure-1"].result))
    figure["crossings"]["theta_1 > 0"] = [1.5, 1.52]
    assert claims_of_figure_1(figure, {})[0].reached == "yes"


def test_the_page_draws_every_figure(stored):
    paper = load_paper("maity2021")
    assert sorted(stored) == sorted(item.name for item in paper.items)
    page = html_page(compose_reproduction(paper, stored))
    for title in ("metric turned by 10 degrees", "T_n against the number of steps", "Figure 3: simulated data"):
        assert title in page
