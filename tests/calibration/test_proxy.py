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
    assert line["rows"][feature]["rejected_01"] <= limit(0.01)


def test_family_wise_error_is_held_and_the_carrier_is_found(line):
    assert line["false_discovery"] <= limit(0.05)
    assert line["false_discovery_01"] <= limit(0.01)
    shown = line["rows"]["gap"]["disparity"]  # a feature is named only where the gap is shown
    assert shown >= 0.6 * SAMPLES
    assert line["rows"]["carrier"]["disparity"] >= 0.9 * shown


def test_the_carrier_carries_the_gap_and_the_others_nothing(line):
    rows = line["rows"]
    gap = rows["gap"]["truth"] / SAMPLES
    assert rows["carrier"]["estimate"] / SAMPLES == pytest.approx(gap, abs=0.01)
    for feature in ("bystander", "noise", "noise_number", "noise_category"):
        assert rows[feature]["estimate"] / SAMPLES == pytest.approx(0, abs=0.003)
    # The used number's means differ by chance (standard error .065) and matter (about .25): .0026 over 40 samples.
    assert rows["used"]["estimate"] / SAMPLES == pytest.approx(0, abs=3.3 * 0.0026)


def test_scores_of_idle_features_are_small_and_of_the_carrier_right(line):
    rows = line["rows"]
    assert rows["carrier"]["score"] == pytest.approx(rows["carrier"]["true_score"], abs=0.02 * SAMPLES)
    assert rows["bystander"]["true_score"] == 0
    assert rows["bystander"]["score"] < 0.1 * rows["carrier"]["score"]


@pytest.fixture(scope="module")
def trained():
    spec = importlib.util.spec_from_file_location("calibration_proxy_trained", SCRIPT.with_name("proxy_trained.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibration_proxy_trained"] = module
    spec.loader.exec_module(module)
    worlds = [module.World("synthetic", "logistic", "sp", groups, 800) for groups in ("real", "random")]
    return [module.run(world, 1, SAMPLES, seed=5) for world in worlds]


def test_a_trained_model_s_idle_features_are_not_named(trained):
    for line in trained:
        assert line["named"] <= limit(0.05)
        assert line["named_01"] <= limit(0.01)
        assert line["idle_named"] <= limit(0.05)
        for row in line["rows"].values():
            assert row["tested"] - row["covered"] <= limit(0.05)
    assert trained[0]["rows"]["x"]["disparity"] >= 0.9 * SAMPLES
