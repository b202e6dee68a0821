"""Scott-Knott against a slow plain version and examples whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.scott_knott import bootstrap_pvalue, cliffs_delta, scott_knott


def slow_delta(a, b):
    return sum(int(x > y) - int(x < y) for x in a for y in b) / (len(a) * len(b))


def slow_ranks(samples, split):
    """Recursion as the method is told, with another test for whether a cut stands."""
    order = sorted(range(len(samples)), key=lambda i: np.mean(samples[i]))
    ranks, following = {}, [0]

    def visit(part):
        best, where = -1.0, None
        everything = np.concatenate([samples[i] for i in part])
        for cut in range(1, len(part)):
            sides = [np.concatenate([samples[i] for i in side]) for side in (part[:cut], part[cut:])]
            value = sum(len(s) / len(everything) * (s.mean() - everything.mean()) ** 2 for s in sides)
            if value > best + 1e-15:
                best, where = value, (part[:cut], part[cut:], sides)
        if where is not None and split(*where[2]):
            visit(where[0])
            visit(where[1])
            return
        for i in part:
            ranks[i] = following[0]
        following[0] += 1

    visit(order)
    return [ranks[i] for i in range(len(samples))]


def test_cliffs_delta_is_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.integers(6, size=rng.integers(1, 9)), rng.integers(6, size=rng.integers(1, 9))
        assert cliffs_delta(a.astype(float), b.astype(float)) == pytest.approx(slow_delta(a, b))


def test_the_bootstrap_is_near_welch_on_normal_samples_and_holds_its_level():
    rng = np.random.default_rng(1)
    ours, welch = [], []
    for shift in np.linspace(0, 2, 12):
        a, b = rng.normal(size=20), rng.normal(size=25) * 1.5 + shift
        ours.append(bootstrap_pvalue(a, b, rng, 4000))
        welch.append(stats.ttest_ind(a, b, equal_var=False).pvalue)
    np.testing.assert_allclose(ours, welch, atol=0.03)
    false = sum(bootstrap_pvalue(rng.normal(size=15), rng.normal(size=15), rng, 199) <= 0.05 for _ in range(400))
    assert stats.binomtest(false, 400, 0.05).pvalue > 0.001


def test_samples_without_spread():
    rng = np.random.default_rng(2)
    same, other = np.full(5, 0.1), np.full(5, 0.3)
    assert bootstrap_pvalue(same, same.copy(), rng) == 1
    assert bootstrap_pvalue(same, other, rng, 99) == 0.01
    assert scott_knott([other, same, same.copy()], rng).tolist() == [1, 0, 0]


def test_ranks_are_those_of_the_slow_version():
    rng = np.random.default_rng(3)
    different = 0
    for _ in range(40):
        centres = rng.choice([0.0, 0.05, 4.0, 8.0], size=rng.integers(2, 7))
        samples = [c + rng.normal(size=12) for c in centres]
        # Cuts are either far above or far below what any test at this level calls different, or this says so.
        clear = []

        def split(low, high, clear=clear):
            p = stats.ttest_ind(low, high, equal_var=False).pvalue
            clear.append(not 0.005 < p < 0.2)
            return p <= 0.05 and abs(slow_delta(low, high)) >= 0.147

        expected = slow_ranks(samples, split)
        if all(clear):
            different += len(set(expected)) > 1
            assert scott_knott(samples, rng).tolist() == expected
    assert different > 15


def test_a_small_delta_keeps_a_significant_cut_from_standing():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=4000), rng.normal(size=4000) + 0.12
    assert bootstrap_pvalue(a, b, rng) < 0.01
    assert abs(cliffs_delta(a, b)) < 0.147
    assert scott_knott([a, b], rng).tolist() == [0, 0]
    assert scott_knott([a, b], rng, negligible=0.01).tolist() == [0, 1]
