"""Count tables: probabilities against scipy and whole-number arithmetic, draws against enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from evenhand.kernels.counts import permuted_tables as module
from evenhand.kernels.counts.permuted_tables import draw_tables, enumerate_tables, hypergeometric_tail, log_probability


def test_tails_agree_with_scipy():
    rng = np.random.default_rng(1)
    for _ in range(200):
        good, bad = (int(v) for v in rng.integers(1, 60, 2))
        sample = int(rng.integers(1, good + bad))
        value = int(rng.integers(max(0, sample - bad), min(good, sample) + 1))
        law = stats.hypergeom(good + bad, good, sample)
        upper, point = hypergeometric_tail(value, good, bad, sample, upper=True)
        lower, same = hypergeometric_tail(value, good, bad, sample, upper=False)
        assert upper == pytest.approx(law.sf(value - 1), rel=1e-12)
        assert lower == pytest.approx(law.cdf(value), rel=1e-12)
        assert point == pytest.approx(law.pmf(value), rel=1e-12)
        assert same == pytest.approx(point, rel=1e-13)


def test_tail_outside_the_support():
    assert hypergeometric_tail(5, 4, 4, 4, upper=True) == (0.0, 0.0)
    assert hypergeometric_tail(-1, 4, 4, 4, upper=True) == (1.0, 0.0)
    assert hypergeometric_tail(-1, 4, 4, 4, upper=False) == (0.0, 0.0)


def test_point_probability_is_exact_far_in_the_tail():
    good, bad, sample, value = 2000, 3000, 1500, 900
    exact = Fraction(math.comb(good, value) * math.comb(bad, sample - value), math.comb(good + bad, sample))
    assert hypergeometric_tail(value, good, bad, sample, upper=True)[1] == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("size", [10**6, 10**8, 10**10])
def test_tail_of_huge_tables_meets_the_normal_limit(size):
    step = int(0.3 * size**0.5)
    tail, _ = hypergeometric_tail(size // 4 + step, size // 2, size // 2, size // 2, upper=True)
    z = (step - 0.5) / (size / 16) ** 0.5
    assert tail == pytest.approx(stats.norm.sf(z), rel=2e-5)


def test_whole_law_of_a_large_table_sums_to_one():
    upper, _ = hypergeometric_tail(250_100, 10**6, 10**6, 500_000, upper=True)
    lower, _ = hypergeometric_tail(250_099, 10**6, 10**6, 500_000, upper=False)
    assert upper + lower == pytest.approx(1, abs=1e-12)


def test_log_probability_of_a_three_by_three_table():
    table = np.array([[3, 1, 2], [0, 4, 1], [2, 2, 5]])
    top = math.prod(math.factorial(int(v)) for v in (*table.sum(0), *table.sum(1)))
    bottom = math.factorial(int(table.sum())) * math.prod(math.factorial(int(v)) for v in table.ravel())
    assert math.exp(log_probability(table)) == pytest.approx(top / bottom, rel=1e-13)


def _all_label_permutations(table, strata):
    """Count every distinct table over all assignments of labels to rows: slow and plain."""
    groups, cells = table.shape
    rows = [(k, c) for k in range(groups) for c in range(cells) for _ in range(table[k, c])]
    blocks = [[r for r in rows if strata[r[1]] == s] for s in sorted(set(strata))]
    found: Counter[bytes] = Counter()
    for choice in itertools.product(*[list(itertools.permutations([k for k, _ in b])) for b in blocks]):
        out = np.zeros_like(table)
        for block, labels in zip(blocks, choice, strict=True):
            for (_, cell), label in zip(block, labels, strict=True):
                out[label, cell] += 1
        found[out.tobytes()] += 1
    total = sum(found.values())
    return {key: n / total for key, n in found.items()}


@pytest.mark.parametrize(
    ("table", "strata"),
    [
        ([[2, 1, 1], [1, 2, 0]], [0, 0, 0]),
        ([[2, 1, 1, 0], [1, 1, 1, 1]], [0, 0, 1, 1]),
        ([[1, 1], [2, 1], [1, 1]], [0, 0]),
        ([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [0, 0, 0]),
    ],
)
def test_enumeration_is_the_law_of_label_permutations(table, strata):
    table = np.array(table, dtype=np.int64)
    expected = _all_label_permutations(table, strata)
    tables, probability = enumerate_tables(table, strata)
    found = {t.tobytes(): p for t, p in zip(tables, probability, strict=True)}
    assert found.keys() == expected.keys()
    for key, p in expected.items():
        assert found[key] == pytest.approx(p, rel=1e-12)


def test_enumeration_gives_up_above_its_limit_without_work():
    assert enumerate_tables([[10**9, 10**9], [10**9, 10**9]], [0, 0]) is None
    tables, _ = enumerate_tables([[2, 2], [2, 2]], [0, 0], limit=5)
    assert len(tables) == 5
    assert enumerate_tables([[2, 2], [2, 2]], [0, 0], limit=4) is None


@pytest.mark.parametrize("limit", [10**9, 0], ids=["numpy", "ratio-of-uniforms"])
@pytest.mark.parametrize(
    ("table", "strata"),
    [
        ([[6, 3, 1], [2, 4, 5]], [0, 0, 0]),
        ([[6, 3, 1, 4], [2, 4, 5, 1]], [0, 0, 1, 1]),
        ([[5, 2], [3, 4], [1, 6]], [0, 0]),
        ([[3, 2, 1], [3, 4, 0], [1, 1, 2]], [0, 0, 0]),
    ],
)
def test_draws_follow_the_enumerated_law(monkeypatch, limit, table, strata):
    monkeypatch.setattr(module, "NUMPY_LIMIT", limit)
    tables, probability = enumerate_tables(table, strata)
    n = 20_000
    drawn = draw_tables(table, strata, n, np.random.default_rng(3))
    keys = Counter(t.tobytes() for t in drawn)
    assert set(keys) <= {t.tobytes() for t in tables}
    seen = np.array([keys.get(t.tobytes(), 0) for t in tables])
    large = n * probability >= 5
    expected = np.append(n * probability[large], max(n * probability[~large].sum(), 1e-9))
    counted = np.append(seen[large], seen[~large].sum())
    if expected[-1] < 5:
        expected, counted = expected[:-1] * counted[:-1].sum() / expected[:-1].sum(), counted[:-1]
    assert stats.chisquare(counted, expected).pvalue > 1e-4


def test_draws_keep_margins_and_fixed_cells():
    table = np.array([[5, 7, 3, 9], [2, 8, 4, 1], [6, 1, 1, 2]])
    drawn = draw_tables(table, [0, 0, -1, 0], 500, np.random.default_rng(0))
    assert (drawn[:, :, 2] == table[:, 2]).all()
    assert (drawn.sum(1) == table.sum(0)).all()
    assert (drawn.sum(2) == table.sum(1)).all()
    assert drawn.min() >= 0
    assert len(np.unique(drawn[:, 0, 0])) > 3


def test_draws_do_not_depend_on_the_order_of_groups():
    table = np.array([[5, 7, 3], [2, 8, 4], [6, 1, 1]])
    turn = [2, 0, 1]
    one = draw_tables(table, [0, 0, 0], 50, np.random.default_rng(0))
    two = draw_tables(table[turn], [0, 0, 0], 50, np.random.default_rng(0))
    assert (one[:, turn] == two).all()


def test_billions_of_rows():
    table = [[10**9, 2 * 10**9, 5], [7 * 10**8, 10**9, 10]]
    drawn = draw_tables(table, [0, 0, 0], 4000, np.random.default_rng(0))
    assert (drawn.sum(1) == np.sum(table, 0)).all()
    law = stats.hypergeom(47 * 10**8 + 15, 17 * 10**8, 3 * 10**9 + 5)
    z = (drawn[:, 0, 0] - float(law.mean())) / float(law.std())
    assert abs(z.mean()) < 4 / 4000**0.5
    assert z.std() == pytest.approx(1, abs=0.05)
    assert drawn[:, 0, 2].mean() == pytest.approx(15 * 3 / 4.7, abs=0.15)


@pytest.mark.parametrize(
    ("table", "strata", "words"),
    [([[1, 2]], [0], "must be"), ([1, 2], [0, 0], "must be"), ([[1, -2]], [0, 0], "at least 0")],
)
def test_bad_tables_are_refused(table, strata, words):
    with pytest.raises(ValueError, match=words):
        draw_tables(table, strata, 1, np.random.default_rng(0))
