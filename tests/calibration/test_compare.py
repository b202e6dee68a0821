"""The short form of the calibration of comparisons, and what is stored of the long one."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from scipy import stats

CALIBRATION = Path(__file__).resolve().parents[2] / "calibration"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("compare_calibration", CALIBRATION / "compare.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_fresh_samples_hold_the_level_and_cover(calibration):
    for design in calibration.designs()[:8]:
        made = calibration.rates(design, 60, seed=99)
        n = made["computable"]
        assert made["size"][0] <= stats.binom.isf(1e-4, n, 0.05), design.name
        assert made["covered"] >= stats.binom.ppf(1e-4, n, 0.95), design.name


def test_the_stored_rates_keep_the_promise():
    stored = json.loads((CALIBRATION / "compare.json").read_text())
    assert len(stored["lines"]) >= 15
    for line in stored["lines"]:
        n = line["computable"]
        assert n > 0.9 * line["samples"], line["design"]
        assert line["covered"] >= stats.binom.ppf(1e-4, n, 0.94), line["design"]
        if not line["same"]:
            assert line["change"][0] > line["unpaired"][0], line["design"]
            continue
        for hits, alpha in zip(line["size"], stored["levels"], strict=True):
            assert hits <= stats.binom.isf(1e-4, n, alpha), (line["design"], alpha)
