"""Changes between two models on the same people, against McNemar's formula, the bootstrap and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenhand.inference.paired import FEWEST, Values, paired_change


def everyone(size: int) -> np.ndarray:
    return np.ones(size, dtype=bool)


def test_accuracy_of_everybody_is_mcnemar_with_its_own_variance() -> None:
    only_a, only_b, size = 30, 50, 400
    a = np.repeat([1.0, 0.0, 1.0, 0.0], [only_a, only_b, 200, size - 200 - only_a - only_b])
    b = np.repeat([0.0, 1.0, 1.0, 0.0], [only_a, only_b, 200, size - 200 - only_a - only_b])
    change = paired_change(Values(a, everyone(size)), Values(b, everyone(size)), everyone(size))
    assert change.estimate == pytest.approx((only_b - only_a) / size)
    plain = (only_a + only_b - (only_b - only_a) ** 2 / size) / (size - 1) / size
    assert change.error == pytest.approx(math.sqrt(plain), rel=1e-12)
    assert change.differ == only_a + only_b


def test_what_both_models_do_alike_drops_out() -> None:
    rng = np.random.default_rng(0)
    a = (rng.random(1000) < 0.5).astype(float)
    b = a.copy()
    b[:40] = 1 - b[:40]
    paired = paired_change(Values(a, everyone(1000)), Values(b, everyone(1000)), everyone(1000))
    apart = math.sqrt(a.var() / 1000 + b.var() / 1000)
    assert paired.error < 0.35 * apart


@pytest.mark.parametrize("weighted", [False, True])
def test_error_of_a_change_in_precision_agrees_with_the_bootstrap(weighted: bool) -> None:
    """Precision is the hard case: who is in its denominator depends on the model."""
    rng = np.random.default_rng(1)
    size = 3000
    group = rng.random(size) < 0.4
    outcome = rng.random(size) < np.where(group, 0.4, 0.6)
    score = 0.5 * outcome + rng.normal(size=size)
    old, new = score > 0.2, score + 0.3 * rng.normal(size=size) > 0.3 - 0.2 * group
    weight = rng.uniform(0.5, 2.0, size) if weighted else None
    y = outcome.astype(float)
    change = paired_change(Values(y, old), Values(y, new), group, ~group, weight)

    def statistic(rows: np.ndarray) -> float:
        w = np.ones(size) if weight is None else weight
        mean = [
            np.average(y[rows][d[rows] & g[rows]], weights=w[rows][d[rows] & g[rows]])
            for d in (old, new)
            for g in (group, ~group)
        ]
        return float((mean[2] - mean[3]) - (mean[0] - mean[1]))

    assert change.estimate == pytest.approx(statistic(np.arange(size)), abs=1e-12)
    draws = [statistic(rng.integers(size, size=size)) for _ in range(1500)]
    assert change.error == pytest.approx(np.std(draws), rel=0.08)


def test_few_changed_decisions_give_no_interval_and_none_give_no_change() -> None:
    a = np.zeros(100)
    b = a.copy()
    b[: FEWEST - 1] = 1
    assert math.isnan(paired_change(Values(a, everyone(100)), Values(b, everyone(100)), everyone(100)).error)
    same = paired_change(Values(a, everyone(100)), Values(a, everyone(100)), everyone(100))
    assert same.estimate == 0
    assert same.differ == 0
    assert math.isnan(same.pvalue)


def test_size_and_coverage_at_three_levels() -> None:
    """Equal changes in both groups with unequal base rates: the weak null of no change of the difference."""
    rng = np.random.default_rng(2)
    runs, size = 4000, 500
    rejected = np.zeros(3)
    covered = 0
    for _ in range(runs):
        group = np.arange(size) < 150
        base = np.where(group, 0.2, 0.5)
        a = rng.random(size) < base
        flip = rng.random(size)
        b = np.where(a, flip > 0.16, flip < np.where(group, 0.065, 0.18))
        true = (0.8 * 0.065 - 0.2 * 0.16) - (0.5 * 0.18 - 0.5 * 0.16)
        change = paired_change(
            Values(a.astype(float), everyone(size)), Values(b.astype(float), everyone(size)), group, ~group
        )
        if math.isnan(change.error):
            covered += 1
            continue
        z = abs(change.estimate - true) / change.error
        rejected += [z > 1.959964, z > 2.575829, z > 3.290527]
        covered += z <= 1.959964
    share = rejected / runs
    assert share[0] < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    assert share[1] < 0.01 + 3 * math.sqrt(0.01 * 0.99 / runs)
    assert share[2] < 0.001 + 3 * math.sqrt(0.001 / runs)
    assert covered / runs > 0.94
