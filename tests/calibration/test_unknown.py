"""The short form of the calibration with unknown and guessed groups, and what is stored of the long one."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from scipy import stats

CALIBRATION = Path(__file__).resolve().parents[2] / "calibration"
STORED = json.loads((CALIBRATION / "unknown.json").read_text())


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("unknown_calibration", CALIBRATION / "unknown.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def at_most(share, n, level):
    """Say whether a share of n runs is compatible with a probability of at most `level`."""
    return round(share * n) <= stats.binom.isf(1e-4, n, level)


def test_fresh_runs_hold(calibration):
    for design in calibration.SHORT:
        made = calibration.run(design, 10, first=50_000)
        n = made["replications"]
        covered = made["coverage"]
        if made["design"]["kind"] == "missing":
            assert at_most(1 - covered, n, 0.05)
            assert made["design"]["rates"][0] != made["design"]["rates"][1] or at_most(
                made["rejected"]["0.05"], n, 0.05
            )
        else:
            assert at_most(1 - covered["bounds"], n // calibration.EVERY, 0.05)
            assert made["design"]["kind"] == "contradicted" or at_most(1 - covered["em"], n, 0.05)


@pytest.mark.parametrize("made", STORED, ids=lambda made: made["design"]["name"])
def test_the_stored_intervals_cover_and_the_tests_hold_their_level(made):
    n, kind = made["replications"], made["design"]["kind"]
    covered = {"": made["coverage"]} if kind == "missing" else made["coverage"]
    promised = {"missing": ("",), "proxy": ("em", "bounds"), "contradicted": ("bounds",)}[kind]
    for way in promised:
        assert at_most(1 - covered[way], n // 5 if way == "bounds" else n, 0.05), way
    no_difference = made["design"]["rates"] == [0.3, 0.3] if kind == "missing" else made["true_difference"] == 0
    if no_difference:
        rejected = [made["rejected"]] if kind == "missing" else [made["rejected"][way] for way in promised]
        for shares in rejected:
            assert all(at_most(share, n, float(level)) for level, share in shares.items())


def test_the_stored_sizes_hold_over_all_designs_together():
    """Single designs have few runs; pooled they tell .06 from .05."""
    none = [m for m in STORED if m["design"]["kind"] == "proxy" and m["true_difference"] == 0]
    n = sum(m["replications"] for m in none)
    assert n > 1000
    for level in ("0.05", "0.01", "0.001"):
        rejected = sum(m["rejected"]["em"][level] * m["replications"] for m in none)
        assert rejected <= stats.binom.isf(1e-3, n, float(level))


def test_the_shortcuts_do_not_cover():
    """What is refused is refused for a reason that the stored runs show."""
    biased = [
        m for m in STORED if m["design"]["kind"] == "proxy" and m["design"]["apart"] and m["design"]["rows"] >= 2000
    ]
    assert biased
    assert min(m["coverage"]["weighting"] for m in biased) < 0.6
    assert all(m["mean_estimate"]["weighting"] < 0.85 * m["true_difference"] for m in biased)


def test_a_contradicted_assumption_is_noticed_where_it_matters():
    """Where the proxy tells groups apart well and people are many; elsewhere the docs say that it may not be."""
    contradicted = [m for m in STORED if m["design"]["kind"] == "contradicted"]
    wrong = [m for m in contradicted if m["coverage"]["em"] < 0.9]
    assert wrong, "the designs must be able to fail"
