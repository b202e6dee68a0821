"""The short form of the reproduction: section 4.2 must come out as in print, within simulation error."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

PATH = Path(__file__).resolve().parents[2] / "reproductions" / "diciccio2020" / "run.py"


@pytest.fixture(scope="module")
def reproduction():
    spec = importlib.util.spec_from_file_location("diciccio2020_run", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inside(rate: float, runs: int, expected: float) -> bool:
    low, high = stats.binom.ppf([5e-4, 1 - 5e-4], runs, expected) / runs
    return low <= rate <= high


def test_section_4_2(reproduction):
    runs = 1000
    found = reproduction.section_4_2(runs, 199)
    assert inside(found["not studentised"], runs, 0.1216)
    assert inside(found["null variance"], runs, 0.0486)
    assert inside(found["unpooled variance, as printed"], runs, 0.080)
    assert found["exact in the denominator"] <= stats.binom.isf(5e-4, runs, 0.05) / runs


def test_table_1_fairtest_rejects_a_true_null_and_the_studentised_test_does_not(reproduction):
    found = reproduction.table_1(500, 40, 199)
    assert found["uncorrelated, errors over x squared: FairTest"] > 0.5
    assert found["uncorrelated, errors over x squared: studentised"] <= stats.binom.isf(1e-4, 40, 0.05) / 40


def test_figure_2_is_equal_at_both_ends(reproduction):
    found = reproduction.figure_2("adult", np.array([0.0, 0.5, 1.01]))
    first, middle, last = found["curve"]
    assert found["test_auc"] == pytest.approx(0.9087, abs=0.01)
    assert first["tpr"]["difference"] == last["tpr"]["difference"] == 0
    assert middle["fpr"]["pvalue"] < 0.05
