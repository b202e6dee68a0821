"""Evidence against its definition: expectations summed over all outcomes, row by row, and by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.anytime.betting import EFFECTS, Stream, log_gains
from evenhand.inference.anytime.mixture import log_capital, prior


def binary(size, total):
    size, total = np.asarray(size, dtype=float), np.asarray(total, dtype=float)
    return Stream(size=size, total=total, square=total, binary=True)


def expectation(sizes, past, offset, slope, rates):
    """Add up the e-value of the last batch over all its tables."""
    n, m = sizes
    x, y = (a.ravel() for a in np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij"))
    size = np.array([*[p[0] for p in past], sizes])
    total = np.stack([np.array([*[p[1] for p in past], (a, b)]) for a, b in zip(x, y, strict=True)])
    stream = binary(np.broadcast_to(size, total.shape), total)
    gains = log_gains(stream, np.array(offset), np.array(slope))[:, -1]  # (tables, bets)
    law = stats.binom.pmf(x, n, rates[0]) * stats.binom.pmf(y, m, rates[1])
    return law @ np.exp(gains)


PAST = [((20, 30), (9, 5))]


@pytest.mark.parametrize("past", [[], PAST], ids=["first batch", "later"])
@pytest.mark.parametrize(("offset", "slope"), [(0.0, 1.0), (0.1, 1.0), (-0.2, 1.0), (0.0, 0.8), (0.0, 1.25)])
@pytest.mark.parametrize("rate", [0.02, 0.3, 0.75])
def test_a_batch_is_an_e_value_on_the_line_and_below_it(past, offset, slope, rate):
    for lower in (0.0, 0.07):
        first = slope * rate + offset - lower
        if 0 <= first <= 1:
            means = expectation((4, 9), past, offset, slope, (first, rate))
            assert means.max() <= 1 + 1e-12
    beyond = min(slope * rate + offset + 0.2, 1.0)
    assert expectation((4, 9), past, offset, slope, (beyond, rate)).max() > 1


def test_rows_that_are_not_alike_are_allowed():
    """Row means differ within the groups and only their averages are equal: summed over all 2^7 outcomes."""
    first, second = np.array([0.1, 0.5, 0.9]), np.array([0.3, 0.3, 0.6, 0.8])
    rates = np.concatenate([first, second])
    mean = np.zeros(EFFECTS.size)
    for outcome in itertools.product([0, 1], repeat=7):
        rows = np.array(outcome)
        law = np.prod(np.where(rows == 1, rates, 1 - rates))
        mean += law * np.exp(
            log_gains(binary([[3, 4]], [[rows[:3].sum(), rows[3:].sum()]]), np.array(0.0), np.array(1.0))[0]
        )
    assert mean.max() <= 1 + 1e-12
    assert mean.min() > 0.3


def test_bounded_values_never_get_more_than_their_rows_earn():
    rng = np.random.default_rng(0)
    values = [rng.beta(2, 3, 50), rng.beta(1, 4, 80)]
    size, total = np.array([[50.0, 80.0]]), np.array([[v.sum() for v in values]])
    stream = Stream(size=size, total=total, square=np.array([[(v**2).sum() for v in values]]), binary=False)
    lower = log_gains(stream, np.array(0.0), np.array(1.0))[0]
    # The same bets row by row, with each of the centers, shared as in the first batch.
    exact = []
    for center in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98):
        most = min(0.9 / (80 / 130 * center), 0.9 / (50 / 130 * (1 - center)))
        bet = np.minimum(EFFECTS, most)[:, None]
        gain = np.log1p(bet * 80 / 130 * (values[0] - center)).sum(axis=1)
        exact.append(gain + np.log1p(-bet * 50 / 130 * (values[1] - center)).sum(axis=1))
    exact = np.log(np.exp(exact).mean(axis=0))
    assert (lower <= exact + 1e-9).all()
    # Small bets lose next to nothing by it, the best one half: only sums are kept of a batch.
    small = EFFECTS < 0.3
    assert (lower[small] > 0.97 * exact[small]).all()
    assert lower.max() > exact.max() / 2


def test_zero_and_one_are_counted_exactly_row_by_row():
    stream = binary([[7, 5]], [[4, 1]])
    gains = log_gains(stream, np.array(0.1), np.array(1.0), np.array([0.8]))[0, 0]
    parts = []
    for middle in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98):
        center_b = middle - 7 / 12 * 0.1
        center_a = center_b + 0.1
        bet = min(0.8, 0.9 / (5 / 12 * center_a), 0.9 / (7 / 12 * (1 - center_b)))
        capital = 1.0
        for x in (1, 1, 1, 1, 0, 0, 0):
            capital *= 1 + bet * 5 / 12 * (x - center_a)
        for x in (1, 0, 0, 0, 0):
            capital *= 1 - bet * 7 / 12 * (x - center_b)
        parts.append(capital)
    assert gains == pytest.approx(math.log(np.mean(parts)), rel=1e-12)


def test_a_batch_without_one_of_the_groups_says_nothing():
    gains = log_gains(binary([[5, 5], [0, 9], [3, 0]], [[1, 2], [0, 4], [1, 0]]), np.array(0.0), np.array(1.0))
    assert (gains[1:] == 0).all()
    assert (gains[0] != 0).any()


def test_capital_is_the_mixture_written_out():
    rng = np.random.default_rng(1)
    gains = rng.normal(0, 0.5, (4, EFFECTS.size))
    weight = prior()
    left = (weight * np.exp(gains.cumsum(axis=0))).sum(axis=1)
    # The part that may change its mind, as a sum over all ways to spread anew before batches 2, 3 and 4.
    bets = np.concatenate([np.zeros((4, 1)), gains], axis=1)
    fresh = np.concatenate([[0.5], 0.5 * weight])
    total = 0.0
    for anew in itertools.product([False, True], repeat=3):
        chance = np.prod([0.02 if a else 0.98 for a in anew])
        capital, run = 1.0, bets[0].copy()
        for t, again in enumerate(anew, 1):
            if again:
                capital *= (fresh * np.exp(run)).sum()
                run = np.zeros_like(run)
            run = run + bets[t]
        total += chance * capital * (fresh * np.exp(run)).sum()
    assert log_capital(gains)[-1] == pytest.approx(math.log(0.75 * left[-1] + 0.25 * total), rel=1e-9)
