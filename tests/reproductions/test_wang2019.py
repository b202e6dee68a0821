"""The toy of section 4.1 runs; the stored values are those that the paper's own means lead to."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "reproductions" / "wang2019"


@pytest.fixture(scope="module")
def toy():
    spec = importlib.util.spec_from_file_location("wang2019_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.toy(25)


@pytest.fixture(scope="module")
def stored():
    return json.loads((FOLDER / "result.json").read_text(encoding="utf-8"))


def test_the_toy_loses_its_gap_in_about_twenty_steps(toy):
    found = toy["exact"]["0.1"]
    assert found["gap"] == pytest.approx(0.319, abs=5e-4)
    assert 18 <= found["iterations"] <= 21
    assert abs(found["end"]) <= 1e-3


def test_figure_2_audit_and_holdout_fall_together(toy):
    audit, holdout = toy["figure_2"]["audit"], toy["figure_2"]["holdout"]
    assert max(abs(a - b) for a, b in zip(audit, holdout, strict=True)) < 0.02
    assert abs(holdout[-1]) < 0.01
    assert toy["coefficients"] == pytest.approx([5, -2, -2], abs=0.15)


@pytest.mark.parametrize(
    ("name", "expected", "within"),
    [
        ("mean prediction, group", 0.125, 0.005),
        ("mean prediction, reference", 0.298, 0.005),
        ("da", 0.084, 0.004),
        ("sp", -0.170, 0.006),
        ("fpr", -0.112, 0.005),
        ("cal", 0.006, 0.008),
    ],
)
def test_values_of_section_5_on_adult(stored, name, expected, within):
    assert stored["adult"]["values"][name]["mean"] == pytest.approx(expected, abs=within)


def test_figure_3_and_table_2_on_adult(stored):
    fpr = stored["adult"]["measures"]["fpr"]
    features = [row for row in fpr["single"] if row.get("score") is not None]
    assert len(features) > 10
    assert max(features, key=lambda row: row["score"])["measure"] == "fpr:Married"
    for name, women, moved in (
        ("Married", 17, 42),
        ("HighestDegree_is_BS", 16, 25),
        ("Age_leq_30", 40, 23),
        ("WorkHrsPerWeek_lt_40", 39, 26),
    ):
        assert fpr["means"][name][1:] == pytest.approx([women, moved], abs=4)
