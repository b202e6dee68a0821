"""Size and coverage on hard designs with fixed seeds, inside exact binomial limits.

The full grid is run by ``python calibration/group.py``; these are one or two designs per metric.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "calibration"))

import group as calibration
from designs import Design, short

from evenhand import METRICS

DESIGNS = list(short())
# A right test fails one of these with probability one in a thousand over all designs together.
CHANCE = 1e-3 / (2 * len(DESIGNS))


def replications(design: Design) -> int:
    return 600 if METRICS[design.metric].kind in ("rate", "table") and design.kind != "weights" else 150


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_level_and_coverage(design):
    found = calibration.simulate(design, replications(design), n_resamples=199)
    tested = found["tested"]
    assert tested >= 0.9 * replications(design)
    assert found["rejected"] <= stats.binom.isf(CHANCE, tested, 0.05)
    assert found["covered"] >= stats.binom.ppf(CHANCE, tested, 0.95)


@pytest.mark.parametrize("metric", ["fnr", "selection_rate", "f1"])
def test_equivalence_is_rarely_claimed_on_the_margin(metric):
    found = calibration.margin_size(metric, (300, 150), (0.8, 0.4), 600)
    assert found["claimed"] <= stats.binom.isf(1e-4, found["tested"], 0.05)
    assert found["covered"] >= stats.binom.ppf(1e-4, found["tested"], 0.95)


def test_family_wise_error_of_six_weak_nulls():
    found = calibration.family("holm", 300)
    assert found["wrong"] <= stats.binom.isf(1e-4, 300, 0.05)


def test_the_printed_variance_would_fail_here():
    """The same harness rejects the unpooled form, so it can tell right from wrong."""
    import numpy as np

    from evenhand.inference.rates import RateSamples
    from evenhand.inference.samples import Draws

    hits = 0
    for i in range(300):
        rng = np.random.default_rng(i)
        table = np.array([rng.multinomial(400, [0.1, 0.1, 0.08, 0.72]), [90, 0, *rng.multinomial(10, [0.1, 0.9])]])
        samples = RateSamples(table, numerator=[2], denominator=[2, 3])
        draws = Draws(n_resamples=199, seed=i, name="x", permute="all", variance="unpooled", method="permutation")
        hits += samples.test(0, 1, draws).pvalue <= 0.05
    assert hits > 2 * stats.binom.isf(1e-4, 300, 0.05)
