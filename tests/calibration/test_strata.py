"""Level and coverage within strata with fixed seeds, inside exact binomial limits; the grid is stored."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "calibration"))

import strata as calibration

DESIGNS = list(calibration.short())
# A right test fails one of these with probability one in a thousand over all designs together.
CHANCE = 1e-3 / (5 * len(DESIGNS))


def check(design: calibration.Design, found: dict[str, int]) -> None:
    """Hold what was counted against what chance allows."""
    if design.truth in ("null", "skewed", "unequal"):
        for alpha in calibration.ALPHAS:
            assert found[f"rejected_{alpha}"] <= stats.binom.isf(CHANCE, found["tested"], alpha)
    if found["intervals"]:
        assert found["covered_difference"] >= stats.binom.ppf(CHANCE, found["intervals"], 0.95)
    if found["intervals_ratio"]:
        assert found["covered_ratio"] >= stats.binom.ppf(CHANCE, found["intervals_ratio"], 0.95)
    assert found["contradictions"] == 0


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_level_and_coverage(design):
    check(design, calibration.simulate(design))


def test_the_stored_grid_holds():
    stored = json.loads((Path(calibration.__file__).parent / "strata.json").read_text())["designs"]
    assert len(stored) == len(list(calibration.grid()))
    for found in stored:
        design = calibration.Design(**found.pop("design"))
        check(design, found)
