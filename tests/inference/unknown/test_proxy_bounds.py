"""Bounds from group probabilities against linear programmes, and what the unknown truth does with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from evenhand.inference.unknown.proxy_bounds import OUTSIDE, ProxyBounds, ProxyRows, proxy_cells


def whole_cells(seed, groups, outside):
    """Make people in three cells so large that shares have no error to speak of."""
    rng = np.random.default_rng(seed)
    size = 40_000
    probability, place = [], []
    for _ in range(3):
        probability.append(np.tile(rng.dirichlet(np.ones(groups)), (size, 1)))
        shares = rng.dirichlet(np.ones(3 if outside else 2))
        place.append(np.repeat(np.arange(shares.size), np.diff(np.rint(np.cumsum([0, *shares]) * size).astype(int))))
    return ProxyRows.of(np.concatenate(probability), np.concatenate(place))


def largest_rate(people, group, sign):
    """Maximise (or minimise) the rate of a group by a linear programme, after Charnes and Cooper.

    Variables are the group's mass in each cell and place, scaled so that its mass in the denominator is 1, and the
    scale.
    """
    cells = proxy_cells(people, 0, 1)
    n = cells.max() + 1
    share = np.array([np.bincount(people.place[cells == c], minlength=3) for c in range(n)]) / len(cells)  # (n, 3)
    mass = np.array([people.probability[cells == c, group].sum() for c in range(n)]) / len(cells)
    cost = np.zeros(3 * n + 1)
    cost[0 : 3 * n : 3] = -sign
    inside = np.zeros(3 * n + 1)
    inside[[i for i in range(3 * n) if i % 3 != OUTSIDE]] = 1
    equal = np.zeros((n, 3 * n + 1))
    for c in range(n):
        equal[c, 3 * c : 3 * c + 3], equal[c, -1] = 1, -mass[c]
    at_most = np.hstack([np.eye(3 * n), -share.reshape(-1, 1)])
    solved = optimize.linprog(
        cost, A_ub=at_most, b_ub=np.zeros(3 * n), A_eq=np.vstack([equal, inside]), b_eq=[*np.zeros(n), 1]
    )
    assert solved.status == 0
    return -sign * solved.fun


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("groups", [2, 3, 4])
def test_each_rate_is_bounded_as_by_a_linear_programme(groups, outside):
    for seed in range(2):
        people = whole_cells(seed, groups, outside)
        for group, (least, most) in enumerate(ProxyBounds(people, 0, 1).rates()):
            assert most == pytest.approx(largest_rate(people, group, 1), abs=2e-3)
            assert least == pytest.approx(largest_rate(people, group, -1), abs=2e-3)


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_both_extremes_are_possible_at_once(groups):
    """Everybody has a group in which one group has its largest rate while the other has its smallest."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p, share = rng.dirichlet(np.ones(groups)), rng.dirichlet(np.ones(3))
        top, rest, out = share
        fixed = {
            (0, 0): min(p[0], top),
            (0, 1): max(0.0, p[0] - top - out),
            (1, 0): max(0.0, p[1] - rest - out),
            (1, 1): min(p[1], rest),
        }
        # Unknown: the mass of each group in each place.
        rows = [np.ravel(np.eye(groups)[:, [k]] @ np.ones((1, 3))) for k in range(groups)]
        columns = [np.ravel(np.ones((groups, 1)) @ np.eye(3)[[j]]) for j in range(3)]
        held = [np.eye(3 * groups)[3 * g + j] for g, j in fixed]
        solved = optimize.linprog(
            np.zeros(3 * groups), A_eq=np.vstack([*rows, *columns, *held]), b_eq=[*p, *share, *fixed.values()]
        )
        assert solved.status == 0


def test_the_truth_lies_between_and_a_sharp_proxy_leaves_nothing_open():
    rng = np.random.default_rng(5)
    group = rng.integers(0, 2, 20_000)
    place = np.where(rng.random(group.size) < np.where(group == 0, 0.5, 0.3), 0, 1)
    sure = ProxyBounds(ProxyRows.of(np.eye(2)[group], place), 0, 1).difference()
    rates = [np.mean(place[group == k] == 0) for k in (0, 1)]
    assert sure.low.estimate == pytest.approx(rates[0] - rates[1])
    assert sure.high.estimate == pytest.approx(rates[0] - rates[1])
    # The standard error of two independent shares.
    error = math.sqrt(sum(r * (1 - r) / np.sum(group == k) for k, r in enumerate(rates)))
    low, high = sure.interval(0.95)
    assert (high - low) / 2 / 1.959964 == pytest.approx(error, rel=1e-3)


def test_moving_bounds_outwards_covers_for_noisy_cells():
    """Where a share and a probability are equal, the plain smaller one is too small on average; ours is not."""
    truth = 0.3 / (0.3 + 0.35)  # the largest rate: all of the first cell's numerator, and .2 of the second's .9
    ours, plain = [], []
    p = np.repeat([[0.4, 0.6], [0.9, 0.1]], 200, axis=0)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        place = np.where(rng.random(400) < np.repeat([0.4, 0.2], 200), 0, 1)
        ours.append(ProxyBounds(ProxyRows.of(p, place), 0, 1).rates()[0][1])
        first, second = (np.mean(part == 0) for part in np.split(place, 2))
        s, f = min(0.4, first) + second, max(0.0, 0.4 - first) + 0.9 - second
        plain.append(s / (s + f))
    error = np.std(ours) / math.sqrt(400)
    assert np.mean(ours) == pytest.approx(truth, abs=3 * error)
    assert np.mean(plain) < truth - 5 * error


def test_ratio_bounds_are_those_of_the_rates():
    people = whole_cells(1, 3, outside=True)
    bounds = ProxyBounds(people, 0, 1)
    (a_low, a_high), (b_low, b_high) = bounds.rates()
    values = bounds.ratio()
    assert values.low.estimate == pytest.approx(a_low / b_high if b_high else 0.0)
    assert values.high.estimate == pytest.approx(a_high / b_low if b_low else math.inf)


def test_f1_is_a_function_of_its_rate_and_so_are_its_bounds_and_errors():
    rng = np.random.default_rng(2)
    p = rng.dirichlet([0.1, 0.1], 5000)
    place = np.where(rng.random(5000) < np.where(p[:, 0] > 0.5, 0.6, 0.2), 0, 1)
    people = ProxyRows.of(p, place)
    plain, f1 = (ProxyBounds(people, 0, 1, f1=f1) for f1 in (False, True))
    for (low, high), (low_f1, high_f1) in zip(plain.rates(), f1.rates(), strict=True):
        assert (low_f1, high_f1) == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)))
    one, two = plain.difference().high, f1.difference().high
    # The derivative of 2 r / (1 + r) at the two rates limits how much the error of their difference is stretched.
    steep = [2 / (1 + rate) ** 2 for rate in (plain.rates()[0][1], plain.rates()[1][0])]
    half = [(end.interval(0.95)[1] - end.interval(0.95)[0]) / 2 for end in (one, two)]
    assert min(steep) * half[0] * 0.9 < half[1] < max(steep) * half[0] * 1.1
