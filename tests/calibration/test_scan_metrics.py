"""Error rates of searches beyond rates with fixed seeds, inside exact binomial limits; the grid is stored."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "calibration"))

import scan_metrics as calibration

DESIGNS = list(calibration.short())
GRID = list(calibration.grid())


def check(found: dict[str, int], chance: float) -> None:
    """Hold the data sets in which something is shown against what chance allows."""
    for alpha in calibration.ALPHAS:
        assert found[f"shown_{alpha}"] <= stats.binom.isf(chance, found["tested"], alpha)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_error_rate(design):
    # A right search fails one of these with probability one in a thousand over all designs together.
    check(calibration.simulate(design, calibration.SHORT_RUNS), 1e-3 / (3 * len(DESIGNS)))


def test_the_stored_grid_holds():
    stored = json.loads((Path(calibration.__file__).parent / "scan_metrics.json").read_text())["designs"]
    assert [calibration.Design(**one["design"]) for one in stored] == GRID
    for one in stored:
        if one["design"]["world"] != "planted":
            check(one, 1e-2 / (3 * len(GRID)))
        else:
            # The search shows a planted subgroup about as often as its own test at the level that is left for each.
            alone, found = one["alone_bonferroni"] / one["alone_tested"], one["planted_0.05"] / one["tested"]
            assert found >= alone - 3 * (0.25 / one["alone_tested"] + 0.25 / one["tested"]) ** 0.5
