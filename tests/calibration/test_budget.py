"""One error budget over five audits: a short run here, and what the stored long one shows."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from scipy import stats

HERE = Path(__file__).resolve().parents[2] / "calibration"


@pytest.fixture(scope="module")
def budget():
    spec = importlib.util.spec_from_file_location("budget", HERE / "budget.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["budget"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored():
    return json.loads((HERE / "budget.json").read_text())["rows"]


def test_family_wise_error_on_a_few_families(budget, stored):
    allowed = stored[0]["tolerance"]
    families = [budget.family(5_000_000 + i, budget.WORLDS[0], allowed) for i in range(12)]
    for row in budget.count(budget.WORLDS[0], allowed, iter(families)):
        assert row["tests"] >= 14  # all five audits take part
        if row["correction"] != "none":
            assert row["wrong"] <= stats.binom.isf(1e-3, 12, 0.05)


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "gatekeeping", "max-t", "bh"])
def test_stored_error_is_compatible_with_alpha(stored, correction):
    rows = [r for r in stored if r["correction"] == correction]
    if correction == "bh":  # it bounds the share of false disparities, which is their probability when all nulls hold
        rows = rows[:1]
    for row in rows:
        assert row["families"] >= 300
        assert row["low"] <= 0.05


def test_the_measurement_can_fail(stored):
    assert all(row["low"] > 0.05 for row in stored if row["correction"] == "none")
