"""Promised power and simulated audits, and equivalence on the margin, with fixed seeds.

The full grids are run by ``python calibration/power.py`` and ``python calibration/margin.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "calibration"))

import margin as on_margin
import power as promises

# What an approximation may be off by; the stored table says by how much it is.
SLACK = 0.04


@pytest.mark.parametrize("promise", list(promises.short()), ids=lambda p: p.name)
def test_promised_power_is_kept(promise):
    replications = 300 if promises.cheap(promise) else 60
    found = promises.simulate(promise, replications, n_resamples=199)
    low = stats.binom.ppf(1e-4, replications, max(found["promised"] - SLACK, 0.0))
    high = stats.binom.isf(1e-4, replications, min(found["promised"] + SLACK, 1.0))
    assert low <= found["shown"] <= high
    assert 0.4 < found["promised"] < 0.99


@pytest.mark.parametrize("design", list(on_margin.short()), ids=lambda d: d.name)
def test_equivalence_is_rarely_claimed_on_the_margin(design):
    found = on_margin.simulate(design, 200, n_resamples=199)
    assert found["tested"] >= 150
    assert found["claimed"] <= stats.binom.isf(1e-4, found["tested"], 0.05)


def test_no_rate_on_the_margin_is_claimed_too_often_and_the_score_test_would():
    found = on_margin.worst((50, 20), "0.2")
    assert found["exact"] <= 0.05 + 1e-6
    assert found["score"] > 0.065
