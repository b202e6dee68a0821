"""Coverage and size of the individual audit on a known population; the full grid is `calibration/individual.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

SCRIPT = Path(__file__).parents[2] / "calibration" / "individual.py"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("calibration_individual", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def within(share: float, nominal: float, trials: int, slack: float = 0.0) -> bool:
    """Say whether a share of hits is inside the 99.9 % limits of an exact binomial around nominal ± slack."""
    low = stats.binom.ppf(0.0005, trials, max(nominal - slack, 0.0)) / trials
    high = stats.binom.ppf(0.9995, trials, min(nominal + slack, 1.0)) / trials
    return low <= share <= high


@pytest.mark.parametrize(("n", "trials"), [(100, 600), (400, 400), (2000, 200)])
def test_intervals_cover_and_tests_hold_their_size(calibration, n, trials):
    row = calibration.simulate(calibration.DESIGNS[1], n, trials)
    assert row["true_loss_ratio"] == pytest.approx(1.25, abs=5e-4)
    for kind in ("normal", "skewness"):
        assert within(row[f"{kind}: coverage"], 0.95, trials, 0.01)
        assert within(row[f"{kind}: rejects truth"], 0.05, trials, 0.01)
    assert row["error ratio, binomial: coverage"] >= stats.binom.ppf(0.0005, trials, 0.95) / trials


def test_the_whole_audit_covers_too(calibration):
    trials = 80
    row = calibration.through_audit(calibration.DESIGNS[1], 100, trials, 1)
    assert row["loss_ratio"] == row["error_ratio"] == trials
    assert within(row["loss_ratio covered"], 0.95, trials, 0.01)
    assert within(row["loss_ratio rejects truth"], 0.05, trials, 0.01)
    assert row["error_ratio covered"] >= stats.binom.ppf(0.0005, trials, 0.95) / trials


def test_skewness_protects_the_claim_of_equivalence(calibration):
    """Where few people carry the tail, the normal upper limit is too low too often; the corrected one less so."""
    design = calibration.DESIGNS[3]
    row = calibration.simulate(design, 100, 600)
    assert row["normal: accepts truth"] > row["skewness: accepts truth"]
    assert row["normal: too low"] > 0.06
    assert row["skewness: rejects truth"] <= stats.binom.ppf(0.9995, 600, 0.06) / 600


def test_the_designs_truth_is_right(calibration):
    design = calibration.DESIGNS[3]
    rng = np.random.default_rng(0)
    n = 400_000
    x = rng.normal(size=n)
    s = np.where(rng.random(n) < 1 / (1 + np.exp(-design.truth * x)), 1, -1)
    slope = np.where(rng.random(n) < design.rare, design.rare_slope, design.slope)
    margin = s * slope * x
    ratio, errors = design.truths()
    sample = np.exp(design.log_ratio(margin, slope))
    assert sample.mean() == pytest.approx(ratio, abs=4 * sample.std() / np.sqrt(n))
    assert (design.moved(margin, slope) < 0).mean() / (margin < 0).mean() == pytest.approx(errors, rel=0.01)


def test_the_default_audit_on_random_groups_calls_nothing_a_disparity(calibration):
    for design in calibration.LEARNED[:2]:
        row = calibration.with_learned_metric(design, 300, 15, 5)
        assert row["disparity"] <= stats.binom.ppf(0.9995, 15, 0.05)
    assert row["computed"] == 15  # the group is an input, so its direction is known


def test_the_default_audit_holds_its_level_where_the_metric_is_learned(calibration):
    design = calibration.LEARNED[5]
    row = calibration.with_learned_metric(design, 400, 25, 5)
    assert row["computed"] == 25
    most = stats.binom.ppf(0.9995, 25, 0.05)
    assert max(row[k] for k in ("p .05", "equivalence .05", "too high", "too low", "errors too high")) <= most
    assert row["p .01"] <= stats.binom.ppf(0.9995, 25, 0.01)
