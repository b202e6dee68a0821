"""A few cells in the short form; claims that follow from the stored results; the page."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evenhand import datasets
from evenhand.errors import DataError
from evenhand.inference.correlation import correlation_test
from evenhand.kernels.shared.seeds import stream
from evenhand.metrics import METRICS
from evenhand.report.html import html_page
from evenhand.reproductions import load_paper, stored_results
from evenhand.reproductions.diciccio2020.correlations import fairtest_pvalues, simulated, studentised_pvalues
from evenhand.reproductions.diciccio2020.false_negatives import bootstrap_pvalues, run_section_3_3, run_section_4_2
from evenhand.reproductions.diciccio2020.thresholds import permutation_bound, scored, tables_at
from evenhand.reproductions.page import compose_reproduction
from evenhand.reproductions.paper import Parts

DESIGN = "uncorrelated, errors over x squared"


def inside(rate: float, runs: int, expected: float) -> bool:
    low, high = stats.binom.ppf([5e-4, 1 - 5e-4], runs, expected) / runs
    return low <= rate <= high


@pytest.fixture(scope="module")
def stored():
    return stored_results("diciccio2020")


def studentised(x, error):
    """Mean of the products of standardised columns over its standard error, plainly."""
    u, v = ((z - z.mean()) / z.std() for z in (x, error))
    d = u * v
    return d.mean() / (d.std(ddof=1) / np.sqrt(d.size))


def test_batches_of_algorithm_1_are_plain_permutation_tests():
    x, error = simulated(DESIGN, 40, 3, stream(0, "test"))
    made = studentised_pvalues(x, error, 99, stream(1, "test"))
    rng = stream(1, "test")
    orders = [rng.permutation(40) for _ in range(99)]
    for k in range(3):
        observed = studentised(x[:, k], error[:, k])
        assert correlation_test(x[:, k], error[:, k])[1].statistic == pytest.approx(observed)
        extreme = sum(abs(studentised(x[:, k], error[order, k])) >= abs(observed) - 1e-9 for order in orders)
        assert made[k] == pytest.approx((1 + extreme) / 100)


def test_fairtest_joins_both_columns():
    x, error = simulated(DESIGN, 40, 3, stream(0, "test"))
    made = fairtest_pvalues(x, error, 99, stream(1, "test"))
    rng = stream(1, "test")
    orders = [rng.permutation(80) for _ in range(99)]
    for k in range(3):
        joined = np.concatenate([x[:, k], error[:, k]])
        observed = abs(np.corrcoef(x[:, k], error[:, k])[0, 1])
        shuffled = [joined[order] for order in orders]
        extreme = sum(abs(np.corrcoef(z[:40], z[40:])[0, 1]) >= observed - 1e-12 for z in shuffled)
        assert made[k] == pytest.approx((1 + extreme) / 100)


def test_fairtest_rejects_a_true_null_and_algorithm_1_does_not():
    x, error = simulated(DESIGN, 500, 40, stream(2, "test"))
    assert (fairtest_pvalues(x, error, 199, stream(3, "test")) <= 0.05).mean() > 0.5
    assert (studentised_pvalues(x, error, 199, stream(3, "test")) <= 0.05).sum() <= stats.binom.isf(1e-4, 40, 0.05)


def test_section_4_2_in_short():
    runs = 100
    rates = run_section_4_2({"simulations": runs, "n_resamples": 199}, Parts())["rates"]
    assert inside(rates["not studentised"], runs, 0.1216)
    assert inside(rates["null variance"], runs, 0.0486)
    assert inside(rates["unpooled variance, as printed"], runs, 0.080)
    assert inside(rates["bootstrap, one-sided"], runs, 0.1078)
    for name in ("default", "exact in the denominator"):
        assert rates[name] <= stats.binom.isf(5e-4, runs, 0.05) / runs


def test_the_printed_variance_rejects_when_a_few_positives_are_all_found():
    runs = 60
    (row,) = run_section_3_3({"simulations": runs, "n_resamples": 199, "positives": [4]}, Parts())["rates"]
    assert row["unpooled variance, as printed"] > 0.4
    assert row["null variance"] <= stats.binom.isf(1e-4, runs, 0.05) / runs


def test_the_bootstrap_sees_a_plain_difference():
    two, one = bootstrap_pvalues(np.array([[40, 10, 90, 60], [150, 10, 2, 38]]), 199, stream(0, "test"))
    assert two == one == 1 / 200


def test_a_bound_of_permutations_is_about_two_standard_errors():
    table = np.array([[0, 0, 100, 300], [0, 0, 100, 300]])
    error = np.sqrt(0.25 * 0.75 * 2 / 400)
    assert permutation_bound(table, METRICS["fnr"], 4000) == pytest.approx(1.96 * error, rel=0.1)


def test_the_model_of_adult_is_about_as_good_as_printed():
    data = scored("adult")  # travels with the package
    assert data.test.size == pytest.approx(7400, abs=100)
    for threshold in (0.0, 1.0):
        table = tables_at(data, data.test, threshold)
        assert table.sum() == data.test.size
        assert np.diff(METRICS["tpr"](table.astype(float)))[0] == 0


def test_claims_follow_from_what_is_stored(stored):
    paper = load_paper("diciccio2020")
    item, entry = paper.item("section-4.2"), stored["section-4.2"]
    changed = copy.deepcopy(dict(entry.result))
    changed["rates"]["not studentised"] = 0.3
    before, after = (
        {c.claim: c.reached for c in item.claims(result, entry.settings)} for result in (entry.result, changed)
    )
    assert before["Not studentised"] == "yes"
    assert after["Not studentised"] == "no"
    assert before["Studentised, unpooled variance of section 3.3"] == "no"
    assert before["Studentised, variance restricted to the null"] == "yes"


def test_what_is_stored_has_every_item_and_makes_a_page(stored):
    paper = load_paper("diciccio2020")
    assert set(stored) == {item.name for item in paper.items}
    page = html_page(compose_reproduction(paper, stored))
    assert "P-values: not studentised" in page
    assert "Figure 3, COMPAS" in page
    assert all(len(item.claims(stored[item.name].result, stored[item.name].settings)) >= 3 for item in paper.items)


def test_missing_data_leave_an_item_out_with_a_sentence(monkeypatch):
    item = load_paper("diciccio2020").item("figure-2")

    def absent(name):
        raise DataError(f"The file of {name} is absent.")

    monkeypatch.setattr(datasets, "table", absent)
    assert "figure-2" in item.lacks()
    assert replace(item, data=()).lacks() == ""
