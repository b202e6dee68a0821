"""Short size checks of the projection audit; the full grid is `python calibration/projection.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from scipy import stats

HERE = Path(__file__).resolve().parents[2] / "calibration" / "projection.py"


@pytest.fixture(scope="module")
def grid():
    spec = importlib.util.spec_from_file_location("calibration_projection", HERE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def within(rate, samples, low, high):
    """Whether a rejection count is compatible with a true size between low and high (99.9 % limits)."""
    hits = round(rate * samples)
    return stats.binom.ppf(0.0005, samples, low) <= hits <= stats.binom.ppf(0.9995, samples, high)


@pytest.mark.parametrize("name", ["B.1 equal opportunity", "statistical parity", "equalized odds m=2"])
def test_size_at_five_percent(grid, name):
    design = next(d for d in grid.designs() if d.name == name)
    line = grid.rejections(design, 500, 150, seed=1)
    assert line["not_computable"] == 0
    assert within(line["projection"], 150, 0.02, 0.055)


def test_limit_of_appendix_b1(grid):
    # N times the distance tends to 0.7006 chi-square(1), whose mean is 0.7006 and deviation 0.99
    design = next(d for d in grid.designs() if d.name.startswith("B.1"))
    line = grid.rejections(design, 2000, 150, seed=2)
    assert line["mean_statistic"] == pytest.approx(0.7006, abs=4 * 0.99 / 150**0.5)


def test_power_follows_the_wald_test(grid):
    design = next(d for d in grid.designs() if d.name == "power: shift 0.4")
    line = grid.rejections(design, 2000, 40, seed=3)
    assert line["projection"] >= 0.9
    assert abs(line["projection"] - line["wald"]) <= 0.1


def test_squared_distances_never_reject_and_so_are_warned_about(grid):
    # [si2021] eq. (3b) as printed: the density at the boundary is infinite
    drawn = grid.rates((0.8, 0.2))
    squared = grid.Design("squared", lambda rng, n: {**(d := drawn(rng, n)), "distance": d["distance"] ** 2})
    assert grid.rejections(squared, 2000, 80, seed=4)["projection"] == 0.0
