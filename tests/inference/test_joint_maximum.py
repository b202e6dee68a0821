"""Max-T against numbers from outside: the multivariate normal law, and Holm at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from evenhand.inference.joint_maximum import max_t
from evenhand.inference.multiplicity import adjust
from evenhand.inference.samples import Draws

DRAWS = Draws(n_resamples=40_000, name="families")
COV = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 1.0]])


def beyond(p, members, alternative):
    """Probability that some member of a normal family has a p-value this small, by scipy."""
    cov = COV[np.ix_(members, members)]
    bar = -special.ndtri(p / 2 if alternative == "two-sided" else p)
    low = -bar if alternative == "two-sided" else -np.inf
    inside = stats.multivariate_normal(np.zeros(len(members)), cov).cdf
    return 1 - float(inside(np.full(len(members), bar), lower_limit=np.full(len(members), low)))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_step_down_is_that_of_the_normal_law(alternative):
    p = np.array([0.02, 0.01, 0.04])
    scale = np.array([1.0, 20.0, 0.1])  # only correlations count
    found = max_t(p, COV * np.outer(scale, scale), Draws(n_resamples=40_000, alternative=alternative))
    expected = np.array([0.0, beyond(0.01, [0, 1, 2], alternative), 0.0])
    expected[0] = max(expected[1], beyond(0.02, [0, 2], alternative))
    expected[2] = max(expected[0], 0.04)
    assert found == pytest.approx(expected, abs=4 * np.sqrt(0.04 / 40_000))


def test_between_raw_and_holm():
    rng = np.random.default_rng(0)
    for _ in range(30):
        m = int(rng.integers(1, 9))
        root = rng.normal(size=(m, m + 1))
        p = rng.random(m) ** 3
        found = max_t(p, root @ root.T, Draws(n_resamples=999))
        assert (found >= p).all()
        assert (found <= adjust(p) + 1e-15).all()


def test_tiny_pvalues_are_not_held_up_by_the_number_of_draws():
    assert max_t([1e-12, 0.5], np.eye(2), Draws(n_resamples=99)).tolist() == pytest.approx([2e-12, 0.5], rel=1e-6)


def test_twins_cost_nothing_and_undefined_ones_do_not_count():
    twins = max_t([0.01, np.nan, 0.01], np.ones((3, 3)), DRAWS)
    assert twins[[0, 2]] == pytest.approx([0.01, 0.01], abs=0.002)
    assert np.isnan(twins[1])
    assert np.isnan(max_t([np.nan], [[0.0]], DRAWS)).all()
    assert max_t([], np.empty((0, 0)), DRAWS).size == 0


def test_a_statistic_without_variance_is_a_stranger_to_the_others():
    cov = np.array([[1.0, 0.0], [0.0, 0.0]])
    assert max_t([0.01, 0.02], cov, DRAWS)[0] == pytest.approx(0.0199, abs=0.002)
