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
CHANCE = 1e-3 / (4 * len(DESIGNS))


def replications(design: Design) -> int:
    # Size and power of two rates are added up exactly by calibration/rates.py; here the whole audit runs.
    return 200 if METRICS[design.metric].kind in ("rate", "table", "gaps") and design.kind != "weights" else 150


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_level_and_coverage(design):
    found = calibration.simulate(design, replications(design), intervals=replications(design), n_resamples=199)
    tested = found["tested"]
    assert tested >= 0.9 * replications(design)
    assert found["rejected"] <= stats.binom.isf(CHANCE, tested, 0.05)
    assert found["rejected_01"] <= stats.binom.isf(CHANCE, tested, 0.01)
    assert found["rejected_001"] <= stats.binom.isf(CHANCE, tested, 0.001)
    assert found["covered"] >= stats.binom.ppf(CHANCE, tested, 0.95)


def _rejections(draw, runs):
    """Count rejections at .05, .01 and .001 of the test of all groups that `draw` returns."""
    import numpy as np

    from evenhand.inference.means import MeanSamples
    from evenhand.inference.samples import Draws

    found = []
    for i in range(runs):
        parts = draw(np.random.default_rng([i, 5]))
        codes = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
        samples = MeanSamples(value=np.concatenate(parts), codes=codes, n_groups=len(parts))
        draws = Draws(n_resamples=199, seed=i)
        found.append((samples.test(0, 1, draws) if len(parts) == 2 else samples.test_global(range(6), draws)).pvalue)
    return [(level, int((np.array(found) <= level).sum())) for level in (0.05, 0.01, 0.001)]


def test_log_loss_of_a_rare_outcome_holds_out_in_the_tail():
    """A group of 250 rows with two positives in a hundred: Welch's test rejects at .001 in one run of twenty."""
    import numpy as np

    def loss(rng, n):
        p = 1 / (1 + np.exp(4.8 - np.round(rng.normal(size=n), 1)))
        return np.where(rng.random(n) < p, -np.log(p), -np.log1p(-p))

    for level, hits in _rejections(lambda rng: [loss(rng, 1500), loss(rng, 250)], 150):
        assert hits <= stats.binom.isf(1e-4, 150, level)


def test_six_skewed_groups_hold_their_level():
    """Exponential values in groups of 30 to 300 rows, the small ones three times as wide."""
    shape = ((30, 3.0), (40, 2.0), (60, 1.0), (80, 1.0), (120, 1.0), (300, 1.0))
    for level, hits in _rejections(lambda rng: [c * (rng.exponential(size=n) - 1) for n, c in shape], 120):
        assert hits <= stats.binom.isf(1e-4, 120, level)


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

    from evenhand.inference.rates.samples import RateSamples
    from evenhand.inference.samples import Draws

    hits = 0
    for i in range(300):
        rng = np.random.default_rng(i)
        table = np.array([rng.multinomial(400, [0.1, 0.1, 0.08, 0.72]), [90, 0, *rng.multinomial(10, [0.1, 0.9])]])
        samples = RateSamples(table, numerator=[2], denominator=[2, 3])
        draws = Draws(n_resamples=199, seed=i, name="x", permute="all", variance="unpooled", method="permutation")
        hits += samples.test(0, 1, draws).pvalue <= 0.05
    assert hits > 2 * stats.binom.isf(1e-4, 300, 0.05)
