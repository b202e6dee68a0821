"""Confidence sequences, change since a baseline, several questions: against definitions and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.anytime.betting import Stream
from evenhand.inference.anytime.family import adjust_evidence, dispersion
from evenhand.inference.anytime.sequence import Scale, estimates, log_change, log_evidence, sequence

DIFFERENCE = Scale(ratio=False)


def draw(rng, rates, batches=20, sizes=(60, 140)):
    size = np.tile(sizes, (batches, 1)).astype(float)
    total = rng.binomial(size.astype(int), rates).astype(float)
    return Stream(size=size, total=total, square=total, binary=True)


def test_less_is_greater_with_the_groups_swapped():
    stream = draw(np.random.default_rng(0), (0.4, 0.3), sizes=(80, 80))
    swapped = Stream(size=stream.size[:, ::-1], total=stream.total[:, ::-1], square=stream.square[:, ::-1], binary=True)
    values = np.array([-0.1, 0.0, 0.2])
    less = log_evidence(stream, DIFFERENCE, values, "less")
    assert less == pytest.approx(log_evidence(swapped, DIFFERENCE, -values, "greater"), abs=1e-9)


@pytest.mark.parametrize("ratio", [False, True])
def test_ends_are_where_the_evidence_passes_the_bar(ratio):
    scale = Scale(ratio=ratio)
    stream = draw(np.random.default_rng(1), (0.4, 0.3))
    low, high = sequence(stream, scale, 0.05, "two-sided", (scale.none,))[-1]
    middle = estimates(stream, scale)[-1]
    assert low < middle < high
    paths = log_evidence(stream, scale, np.array([low, middle]), "greater").max(axis=0)
    assert paths[0] >= math.log(40) > paths[1]
    # A value a little inside is kept: the grid is fine beside the width.
    inside = low + 0.08 * (middle - low)
    assert log_evidence(stream, scale, np.array([inside]), "greater").max() < math.log(40)


def test_intervals_shrink_and_one_sided_ones_have_one_end():
    stream = draw(np.random.default_rng(2), (0.35, 0.3))
    ends = sequence(stream, DIFFERENCE, 0.05, "two-sided", (0.0,))
    assert (np.diff(ends[:, 0]) >= 0).all()
    assert (np.diff(ends[:, 1]) <= 0).all()
    above = sequence(stream, DIFFERENCE, 0.05, "greater", (0.0,))
    assert (above[:, 1] == 1).all()
    assert above[-1, 0] >= ends[-1, 0]


def test_estimates_weigh_batches_as_mantel_and_haenszel_do():
    stream = draw(np.random.default_rng(3), (0.5, 0.2), batches=4, sizes=(30, 90))
    n, m = stream.size.T
    gap = stream.total[:, 0] / n - stream.total[:, 1] / m
    weight = n * m / (n + m)
    assert estimates(stream, DIFFERENCE)[-1] == pytest.approx((weight * gap).sum() / weight.sum())
    top, bottom = (stream.total[:, 0] * m / (n + m)).sum(), (stream.total[:, 1] * n / (n + m)).sum()
    assert estimates(stream, Scale(ratio=True))[-1] == pytest.approx(top / bottom)


def test_change_is_the_least_over_all_baselines():
    rng = np.random.default_rng(4)
    before, after = draw(rng, (0.3, 0.3), batches=5, sizes=(400, 600)), draw(rng, (0.5, 0.3), 5, (400, 600))
    both = {k: np.concatenate([getattr(before, k), getattr(after, k)]) for k in ("size", "total", "square")}
    stream = Stream(**both, binary=True)
    seen = log_change(stream, DIFFERENCE, 5, (0.0, 0.0))
    assert seen[-1] > math.log(20)
    calm = Stream(**{k: np.concatenate([getattr(before, k)] * 2) for k in ("size", "total", "square")}, binary=True)
    assert log_change(calm, DIFFERENCE, 5, (0.0, 0.0)).max() < 0
    # With a margin that holds the change, nothing is claimed.
    assert log_change(stream, DIFFERENCE, 5, (-0.3, 0.3)).max() < 0
    # A finer search finds nothing smaller, but for the size of its cells.
    from evenhand.inference.anytime import sequence as module

    fine = np.linspace(-0.2, 0.4, 601)
    up = [log_evidence(after, DIFFERENCE, fine, side)[-1] for side in ("greater", "less")]
    rows = (before.size.prod(axis=-1) / before.size.sum(axis=-1)).sum()
    weight = module.prior(2.5 / math.sqrt(0.15 * rows + 1), 0.3)
    base = [log_evidence(before, DIFFERENCE, fine, side, weight)[-1] for side in ("greater", "less")]
    least = (np.logaddexp(*up) + np.logaddexp(*base)).min() - 2 * math.log(2)
    assert seen[-1] <= least
    assert seen[-1] > least - 1.5


def test_adjusting_is_closed_testing_with_averages():
    rng = np.random.default_rng(5)
    log_e = rng.normal(0, 2, 5)
    rival = np.minimum(log_e, rng.normal(0, 2, 5))
    adjusted = np.exp(adjust_evidence(log_e, rival))
    for j in range(5):
        others = [i for i in range(5) if i != j]
        averages = [
            (math.exp(log_e[j]) + sum(math.exp(rival[i]) for i in chosen)) / (1 + len(chosen))
            for k in range(5)
            for chosen in itertools.combinations(others, k)
        ]
        assert adjusted[j] == pytest.approx(min(averages))


def test_dispersion_is_cochrans_q_and_sees_dependent_rows():
    stream = draw(np.random.default_rng(6), (0.3, 0.3), batches=30, sizes=(200, 300))
    assert dispersion(stream).pvalue > 0.01
    assert dispersion(stream).pvalue == pytest.approx(stats.chi2.sf(dispersion(stream).statistic, 29))
    # Each decision is made for families of five: successes come in fives.
    total = 5 * np.random.default_rng(7).binomial(np.tile([40, 60], (30, 1)), 0.3).astype(float)
    assert dispersion(Stream(size=stream.size, total=total, square=total, binary=True)).pvalue < 1e-6
    assert math.isnan(dispersion(stream.part(slice(0, 2))).pvalue)
