"""The exact equivalence test of rates against brute force, and its size added up over all tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.rates.equivalence import chance_inside, claimed_tables, exact_equivalence
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.counts.binomial import ratio_statistic, score_statistic
from evenhand.kernels.counts.rate_lines import Edge

MARGINS = [(-0.3, 0.3, False, False), (0.5, 2.0, True, False), (0.8, 1.25, True, False), (-0.3, 0.3, False, True),
           (0.5, 2.0, True, True)]  # fmt: skip


def law(n, p):
    return stats.binom.pmf(np.arange(n + 1), n, p)


def pvalues(n, m, low, high, ratio, f1):
    return np.array([[exact_equivalence((x, y), (n, m), low, high, ratio=ratio, f1=f1) for y in range(m + 1)]
                     for x in range(n + 1)])  # fmt: skip


def brute(x, y, n, m, low, high, ratio, f1):
    """All tables at least as far inside, at the worst of many rates on both ends."""
    ends = [Edge(end, ratio, f1) for end in (low, high)]
    one, two = (np.array([[float(e.statistic(np.array(float(i)), np.array(float(j)), n, m)) for j in range(m + 1)]
                          for i in range(n + 1)]) for e in ends)  # fmt: skip
    inside = np.minimum(one, -two)
    region, worst = inside >= inside[x, y] - 1e-9, stats.norm.sf(inside[x, y])
    for end, q in itertools.product(ends, np.linspace(0, 1, 1001)):
        p = float(end.first(np.array(q)))
        if 0 <= p <= 1:
            worst = max(worst, float(np.outer(law(n, p), law(m, q))[region].sum()))
    return worst


@pytest.mark.parametrize("margin", MARGINS, ids=str)
@pytest.mark.parametrize(("x", "n", "y", "m"), [(6, 8, 5, 6), (4, 6, 6, 9)])
def test_pvalue_is_the_brute_force_one(margin, x, n, y, m):
    found = exact_equivalence((x, y), (n, m), *margin[:2], ratio=margin[2], f1=margin[3])
    assert found == pytest.approx(brute(x, y, n, m, *margin), abs=5e-4)


def test_the_score_statistic_orders_the_tables():
    x, y = np.array(7.0), np.array(3.0)
    z = score_statistic([7, 3], [10, 9], [1, -1], -0.2)
    assert float(Edge(-0.2).statistic(x, y, 10, 9)) == pytest.approx(float(z))
    z = ratio_statistic([7, 3], [10, 9], 0.8)
    assert float(Edge(0.8, True).statistic(x, y, 10, 9)) == pytest.approx(float(z))


@pytest.mark.parametrize("margin", MARGINS, ids=str)
def test_size_outside_and_on_the_margin_added_up_over_all_tables(margin):
    n, m = 10, 8
    low, high, ratio, f1 = margin
    claimed = pvalues(n, m, *margin) <= 0.1
    values = np.linspace(0, 1, 41)
    rates = values / (2 - values) if f1 else values
    ends = [(float(Edge(end, ratio, f1).first(np.array(q))), q) for end in (low, high) for q in rates]
    for (i, p), (j, q) in itertools.product(enumerate(rates), enumerate(rates)):
        gap = values[i] / values[j] if ratio and j else np.inf if ratio else values[i] - values[j]
        if not low < gap < high and (i or j):
            ends.append((p, q))
    for p, q in ends:
        if 0 <= p <= 1:
            assert np.outer(law(n, p), law(m, q))[claimed].sum() <= 0.1 + 1e-4


def test_the_score_test_would_fail_here():
    """What the exact test mends: on the margin the score test claims equivalence with probability .069."""
    x, y = np.meshgrid(np.arange(21), np.arange(21), indexing="ij")
    z = [score_statistic(np.stack([x, y], -1), [20, 20], [1, -1], np.full(x.shape, end)) for end in (-0.2, 0.2)]
    chance = np.outer(law(20, 0.0), law(20, 0.2))
    assert chance[np.minimum(z[0], -z[1]) >= stats.norm.isf(0.05)].sum() > 0.065
    assert chance[claimed_tables((20, 20), -0.2, 0.2, 0.05, ratio=False)].sum() <= 0.05


@pytest.mark.parametrize("margin", MARGINS, ids=str)
def test_claimed_tables_are_where_the_pvalue_crosses(margin):
    low, high, ratio, f1 = margin
    for n, m in ((9, 7), (5, 9)):
        claimed = claimed_tables((n, m), low, high, 0.1, ratio=ratio, f1=f1)
        assert (claimed == (pvalues(n, m, *margin) <= 0.1)).all()


def test_chance_of_equivalence_is_the_sum_over_claimed_tables():
    claimed = claimed_tables((30, 24), -0.3, 0.3, 0.05, ratio=False)
    assert claimed.any()
    total = np.outer(law(30, 0.9), law(24, 0.85))[claimed].sum()
    assert chance_inside((30, 24), (0.9, 0.85), -0.3, 0.3, 0.05, ratio=False, f1=False) == pytest.approx(
        total, abs=1e-9
    )


def test_names_of_the_groups_do_not_matter():
    for low, high, ratio in ((-0.2, 0.2, False), (0.8, 1.25, True)):
        one = RateSamples.from_counts([30, 10], [40, 15])
        two = RateSamples.from_counts([10, 30], [15, 40])
        found = [s.equivalence(0, 1, low=low, high=high, ratio=ratio, draws=Draws()) for s in (one, two)]
        assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_an_impossible_margin_is_always_kept():
    assert exact_equivalence((3, 4), (10, 10), -1.5, 1.5, ratio=False) == 0.0
