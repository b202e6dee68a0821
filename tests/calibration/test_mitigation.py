"""The short form of the certificate's calibration, and what is stored of the long one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from scipy import stats

CALIBRATION = Path(__file__).resolve().parents[2] / "calibration"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("mitigation_calibration", CALIBRATION / "mitigation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_population_is_a_population(calibration):
    people = calibration.census()
    assert people.weight.sum() == pytest.approx(1)
    data = people.draw(4000, 0)
    # The share of the smaller group is .35 by construction.
    b = data.attribute("group").labels.index("b")
    assert (data.attribute("group").codes == b).mean() == pytest.approx(0.35, abs=0.03)


def test_fresh_repairs_seldom_exceed_the_margin(calibration):
    design, runs = calibration.DESIGNS[0], 12
    made = [calibration.one_run(design, 3000, seed) for seed in range(5000, 5000 + runs)]
    wrong = sum(r["certified"] is not None and r["certified"] > design[2] for r in made)
    assert wrong <= stats.binom.isf(1e-3, runs, 0.05)
    assert all(r["holdout"] is None or 0 <= r["holdout"] < 1 for r in made)


def test_the_stored_rates_keep_the_promise():
    stored = json.loads((CALIBRATION / "mitigation.json").read_text())
    assert stored["alpha"] == 0.05
    assert sum(made["runs"] for made in stored["designs"].values()) >= 3000
    for made in stored["designs"].values():
        assert made["certified"]["wrong"] * made["runs"] <= stats.binom.isf(0.005, made["runs"], stored["alpha"])
