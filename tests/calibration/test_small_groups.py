"""Error rates with a small group beside large ones: the designs are true nulls, and the stored rates hold."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "calibration"))

import small_groups as calibration

QUESTIONS = ("pair", "global", "difference", "ratio")


def check(row: dict[str, int], chance: float) -> None:
    """Hold the counts of every question against what chance allows."""
    for name in QUESTIONS:
        for alpha in calibration.ALPHAS if f"{name}_tested" in row else ():
            assert row[f"{name}_rejected_{alpha:g}"] <= stats.binom.isf(chance, row[f"{name}_tested"], alpha)


def test_the_stored_grid_holds():
    stored = json.loads(calibration.OUT.read_text())["designs"]
    assert {row["design"] for row in stored} == {design.name for design in calibration.grid()}
    for row in stored:
        check(row, 1e-2 / (6 * len(stored)))


@pytest.mark.parametrize("metric", ["log_loss", "brier", "auc"])
def test_groups_that_differ_otherwise_have_one_value(metric):
    worlds = {d.world for d in calibration.grid() if d.metric == metric and d.world != "apart"}
    for world in sorted(worlds):
        samples = calibration.draw(calibration.Design(metric, world, (60_000, 60_000)), np.random.default_rng(7))
        assert abs(samples.difference(0, 1)) < 4.5 * samples.standard_error(0, 1)


@pytest.mark.parametrize("world", ["rare small", "rare large"])
def test_calibration_with_outcomes_rare_in_one_group(world):
    check(calibration.simulate(calibration.Design("calibration_error", world, (200, 20_000)), 60, 0), 1e-4)
