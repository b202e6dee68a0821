"""The short form of calibration/proxy.py: one design, fixed seeds, exact binomial limits."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from scipy import stats

SCRIPT = Path(__file__).parents[2] / "calibration" / "proxy.py"
SAMPLES = 40


@pytest.fixture(scope="module")
def line():
    spec = importlib.util.spec_from_file_location("calibration_proxy", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibration_proxy"] = module
    spec.loader.exec_module(module)
    # Statistical parity needs permutations for its gap; decisions are tested exactly and fast.
    return module.run(module.Design("fpr", 1000, "decisions"), SAMPLES, seed=11)


def limit(probability):
    """Return how often an event of this probability may happen before luck (1 in 1000) is ruled out."""
    return stats.binom.isf(0.001, SAMPLES, probability)


@pytest.mark.parametrize("feature", ["gap", "carrier", "bystander", "used", "noise", "noise_number", "noise_category"])
def test_intervals_cover(line, feature):
    assert SAMPLES - line["rows"][feature]["covered"] <= limit(0.05)


@pytest.mark.parametrize("feature", ["bystander", "used", "noise", "noise_number", "noise_category"])
def test_idle_features_are_rarely_named(line, feature):
    assert line["rows"][feature]["rejected"] <= limit(0.05)


def test_family_wise_error_is_held_and_the_carrier_is_found(line):
    assert line["false_discovery"] <= limit(0.05)
    assert line["rows"]["carrier"]["rejected"] >= 0.9 * SAMPLES


def test_scores_of_idle_features_are_small_and_of_the_carrier_right(line):
    rows = line["rows"]
    assert rows["carrier"]["score"] / SAMPLES == pytest.approx(rows["carrier"]["truth"] / SAMPLES, abs=0.02)
    assert rows["bystander"]["truth"] == 0
    assert rows["bystander"]["score"] < 0.1 * rows["carrier"]["score"]
