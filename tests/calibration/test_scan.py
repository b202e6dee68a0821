"""The scan's error rate with fixed seeds; the stored result of ``python calibration/scan.py`` is checked too."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "calibration"))

import scan

STORED = json.loads((scan.HERE / "scan.json").read_text())
BESIDE = json.loads((scan.HERE.parent / "benchmarks" / "scan.json").read_text())


@pytest.mark.parametrize("world", ["designs", "planted"])
def test_few_searches_report_a_false_subgroup(world):
    found = scan.simulate(world, 30)
    for alpha, wrong in zip(scan.ALPHAS, found["wrong"], strict=True):
        assert wrong <= stats.binom.isf(1e-4, found["samples"], alpha)
    assert found["tested"][1] > 500


@pytest.mark.parametrize("world", [w for w in STORED if "false discovery" not in w])
def test_the_stored_error_rate_holds(world):
    found = STORED[world]
    for alpha, wrong in zip(scan.ALPHAS, found["wrong"], strict=True):
        assert wrong <= stats.binom.isf(1e-3, found["samples"], alpha)


def test_the_stored_error_rate_is_used_and_not_wasted():
    found = STORED["designs"]
    assert found["wrong"][0] >= stats.binom.ppf(1e-3, found["samples"], 0.02)


def test_the_stored_share_of_false_discoveries_holds():
    found = STORED["planted, false discovery rate"]
    assert found["false_share"] <= 0.05 + 3 * np.sqrt(0.05 / found["samples"])


def test_other_tools_report_noise_and_find_no_more():
    for name, found in BESIDE["false"].items():
        assert found["runs_with_any"] <= stats.binom.isf(1e-3, found["runs"], 0.05) or name != "evenhand"
    assert min(one["runs_with_any"] for name, one in BESIDE["false"].items() if name != "evenhand") >= 10
    rows = BESIDE["found"]["rows"].values()
    totals = {name: sum(row["found"][name] for row in rows) for name in BESIDE["false"]}
    assert totals["evenhand"] >= 0.95 * max(totals.values())


def test_a_shuffled_sample_keeps_each_outcome_s_decisions():
    rng = np.random.default_rng(0)
    sample = scan.design(3, rng)
    mixed = scan.shuffled(sample, rng)
    for value in (0, 1):
        own = sample.outcome == value
        assert mixed.decision[own].sum() == sample.decision[own].sum()
    assert (mixed.decision != sample.decision).any()
