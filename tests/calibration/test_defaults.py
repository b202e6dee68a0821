"""What a user gets by default: a short run of the default plan on trained models here, and what the long one shows."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from scipy import stats

HERE = Path(__file__).resolve().parents[2] / "calibration"


@pytest.fixture(scope="module")
def defaults():
    spec = importlib.util.spec_from_file_location("defaults", HERE / "defaults.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["defaults"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored():
    return json.loads((HERE / "defaults.json").read_text())


@pytest.mark.parametrize(
    ("key", "runs"),
    [
        ("plan-logistic-blind", 12),
        ("plan-logistic-given", 12),
        ("plan-logistic-real-given", 6),
        ("plan-network-given", 4),
        ("plan-boosting-blind", 4),
        ("plan-logistic-batches-given", 3),
        ("plan-boosting-batches-blind", 3),
    ],
)
def test_default_plan_with_random_groups(defaults, key, runs):
    # Even seeds: real people are then those of Adult, which are on board.
    made = defaults.counted(defaults.one(key, 1_000_000 + 2 * seed) for seed in range(runs))
    yes, n = made["any disparity"]
    assert n == runs
    assert yes <= stats.binom.isf(1e-3, runs, 0.05)


def test_stored_shares_keep_their_promise(stored):
    assert set(stored["after"]) == set(stored["rows"])
    kept = []
    for key, row in stored["rows"].items():
        for question, promise in row["promised"].items():
            yes, runs = stored["after"][key][question]
            if promise is None or not runs:
                continue
            at_least = "cover" in question or "note" in question
            # One row in a thousand may be this far off by chance.
            far = stats.binom.cdf(yes, runs, promise) if at_least else stats.binom.sf(yes - 1, runs, promise)
            kept.append((key, question, yes, runs, far > 1e-3))
    assert len(kept) > 30
    assert [row for row in kept if not row[-1]] == []


def test_the_measurement_can_fail(stored):
    yes, runs = stored["before"]["plan-logistic-blind"]["any disparity"]
    assert yes / runs > 0.5
