"""The short form of the calibration of clustered rows, and what is stored of the long one."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

CALIBRATION = Path(__file__).resolve().parents[2] / "calibration"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("clusters_calibration", CALIBRATION / "clusters.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["clusters_calibration"] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["within", "crossing"])
def test_clusters_have_the_correlation_that_was_asked_for(calibration, kind):
    rows = calibration.Design(kind, 4000, 2, 0.3).draw(np.random.default_rng(0))
    first, second = rows["decision"].reshape(4000, 2).T
    assert np.corrcoef(first, second)[0, 1] == pytest.approx(0.3, abs=0.05)
    assert rows["decision"].mean() == pytest.approx(0.3, abs=0.02)


def test_fresh_data_without_a_difference_are_seldom_rejected(calibration):
    for kind in ("within", "crossing"):
        design = calibration.Design(kind, 40, 6, 0.4)
        pvalues = np.array([calibration.one_size(design, 9000 + seed) for seed in range(60)])
        assert (pvalues[:, 0] <= 0.05).sum() <= stats.binom.isf(1e-3, 60, 0.05)
    within = calibration.Design("within", 20, 20, 0.5)
    ignored = np.array([calibration.one_size(within, seed)[1] for seed in range(30)])
    assert (ignored <= 0.05).mean() > 0.2  # what clusters are for


def test_the_stored_rates_keep_the_promise():
    stored = json.loads((CALIBRATION / "clusters.json").read_text())
    assert {row["kind"] for row in stored["size"]} == {"within", "crossing", "pairs"}
    assert {row["metric"] for row in stored["size"]} >= {"selection_rate", "auc", "mean_score", "f1"}
    for row in stored["size"]:
        for level, (ours, _) in row["rejected"].items():
            # One of some 130 rates may be a little high by chance alone.
            assert ours * row["runs"] <= stats.binom.isf(1e-3 / 2, row["runs"], float(level)), row
    for row in stored["coverage"]:
        assert row["covered"][0] * row["runs"] >= stats.binom.ppf(5e-3, row["runs"], 0.95), row
