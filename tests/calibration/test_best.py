"""Ratios to the highest rate with fixed seeds; the full grid is run by ``python calibration/best.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "calibration"))

import best as ratios

STORED = json.loads((ratios.HERE / "best.json").read_text())


@pytest.mark.parametrize("design", list(ratios.short()), ids=lambda d: d.name)
def test_few_audits_have_a_false_finding_or_an_interval_that_misses(design):
    found = ratios.simulate(design, 200)
    for counted in (found["wrong"], found["missed"], found.get("claimed", [0, 0, 0])):
        for alpha, number in zip(ratios.ALPHAS, counted, strict=True):
            assert number <= stats.binom.isf(1e-4, found["used"], alpha)


def test_a_false_finding_can_happen_and_the_bare_rule_flags_equal_rates():
    found = ratios.simulate(ratios.Design("5 small", 0.2, "equal", 1.0), 200)
    assert found["wrong"][0] > 0
    assert found["flagged"] > 150  # four fifths without a test


def test_over_all_tables_of_small_groups_the_level_holds():
    found = ratios.exact_tables((3, 4, 4), np.linspace(0.05, 0.95, 19))
    assert all(largest <= float(alpha) for alpha, largest in found["largest"].items())
    assert found["largest"]["0.05"] > 0.002


@pytest.mark.parametrize("key", ["wrong", "missed", "claimed"])
def test_the_stored_grid_holds_its_level(key):
    """Each design and all of them together, within what chance allows."""
    rows = [row for row in STORED["rows"] if key in row]
    used = np.array([row["used"] for row in rows])
    counted = np.array([row[key] for row in rows])
    for i, alpha in enumerate(ratios.ALPHAS):
        assert (counted[:, i] <= stats.binom.isf(1e-3 / len(rows), used, alpha)).all()
        assert counted[:, i].sum() <= stats.binom.isf(1e-2, used.sum(), alpha)


def test_in_many_large_tables_the_level_holds_far_out():
    for row in STORED["many"]:
        for alpha, wrong in zip(ratios.ALPHAS, row["wrong"], strict=True):
            assert wrong <= stats.binom.isf(1e-3, row["tables"], alpha)
    assert max(row["wrong"][0] / row["tables"] for row in STORED["many"]) > 0.02  # and no more is paid than needed
