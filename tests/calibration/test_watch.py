"""A watch does not cry wolf: a short run here, and what the stored long one shows."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

HERE = Path(__file__).resolve().parents[2] / "calibration"


@pytest.fixture(scope="module")
def watch():
    spec = importlib.util.spec_from_file_location("watch_calibration", HERE / "watch.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["watch_calibration"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored():
    return json.loads((HERE / "watch.json").read_text())


def most(streams, alpha):
    """Return the number of false alarms that a right procedure exceeds once in a thousand runs."""
    return stats.binom.isf(1e-3, streams, alpha)


@pytest.mark.parametrize("place", range(4))
def test_null_streams_are_seldom_alarmed(watch, place):
    row = watch.null(watch.DESIGNS[place], 120, 200, seed=77)
    for alpha, alarms in row["alarms"].items():
        assert alarms <= most(120, float(alpha))


def test_a_small_difference_is_seen_sooner_than_by_pairs(watch):
    row = watch.unequal(0.25, 0.2, (20, 80), streams=40, looks=60)
    assert row["ours_median_batches"] < row["chugg_median_batches"] < np.inf


def test_intervals_hold_on_a_few_streams(watch):
    row = watch.intervals(12, looks=12, seed=8)
    assert max(row["missed"].values()) <= most(12, 0.05)
    assert row["alarm_and_interval_disagree"] == 0


def test_stored_null_streams(stored):
    assert len(stored["null"]) >= 4
    for row in stored["null"]:
        assert row["streams"] >= 10_000
        assert row["looks"] >= 1000
        for alpha, alarms in row["alarms"].items():
            assert alarms <= float(alpha) * row["streams"]
        assert row["peeked_z_05"] > 0.2 * row["streams"]  # the measurement can fail


def test_stored_families_intervals_and_claims(stored):
    for row in stored["family"]:
        assert row["any_false_alarm"] <= most(row["streams"], 0.05)
    row = stored["intervals"]
    for missed in (*row["missed"].values(), row["equivalence_on_the_margin"], row["change_where_none"]):
        assert missed <= most(row["streams"], 0.05)
    assert row["alarm_and_interval_disagree"] == 0


def test_stored_delays_are_shorter_than_those_of_betting_on_pairs(stored):
    delay = stored["delay"]
    for row in (*delay["pairs"], *delay["census"]):
        assert row["ours_median_pairs"] < row["chugg_median_pairs"]
    for row in (*delay["unequal"], *stored["drift"]):
        assert row["ours_median_batches"] < row["chugg_median_batches"]
