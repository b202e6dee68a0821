"""A sample with counts against the same sample written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.inference.one_mean import tail_rows
from evenhand.inference.quantiles import difference_interval, difference_pvalue, level_interval, level_pvalues
from evenhand.kernels.extremes.logit_peak import LogitShift, logit_shift
from evenhand.kernels.shared.descending import Descending
from evenhand.kernels.shared.value_bins import bin_places

LINES = st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 6)), min_size=2, max_size=30)


def both(lines: list[tuple[int, int]]) -> tuple[Descending, np.ndarray]:
    distinct = dict(lines)
    values = np.array(sorted(distinct, reverse=True), dtype=float) / 10
    counts = np.array([distinct[round(10 * v)] for v in values])
    return Descending(values, counts), np.repeat(values, counts)


@given(LINES, LINES, st.sampled_from([0.05, 0.1, 0.4]))
@settings(max_examples=60, deadline=None)
def test_counts_are_repeated_values(one: list[tuple[int, int]], two: list[tuple[int, int]], share: float) -> None:
    (a, rows), (b, others) = both(one), both(two)
    assert a.size == rows.size
    np.testing.assert_array_equal(a.at(np.arange(rows.size)), rows)
    np.testing.assert_array_equal(a.head(rows.size // 2), rows[: rows.size // 2])
    for value in (-2.0, 0.0, 0.35, 0.7):
        assert a.above(value) == (rows > value).sum()
        assert a.reaching(value) == (rows >= value).sum()
        assert level_pvalues(a, share, value) == level_pvalues(rows, share, value)
        assert difference_pvalue(a, b, share, value) == difference_pvalue(rows, others, share, value)
    assert level_interval(a, share, 0.9) == level_interval(rows, share, 0.9)
    assert difference_interval(a, b, share, 0.9) == difference_interval(rows, others, share, 0.9)
    assert a.mean() == pytest.approx(rows.mean())
    assert tail_rows(a, share)[0].mean() == pytest.approx(tail_rows(rows, share)[0].mean())
    if rows.size > 1:
        assert a.deviation() == pytest.approx(rows.std(ddof=1))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.sampled_from([4, 10, 12]))
def test_bins_keep_the_order_and_their_width(numbers: list[float], digits: int) -> None:
    values = np.sort(np.array(numbers))
    places = bin_places(values, digits)
    assert (np.diff(places) >= 0).all()
    for place in set(places.tolist()):
        inside = np.abs(values[places == place])
        assert inside.max() - inside.min() <= 2.0**-digits * inside.min() or inside.min() < 1e-300


@given(st.integers(0, 10**6), st.floats(-2, 2), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_shift_does_not_depend_on_the_division(seed: int, shift: float, alike: bool) -> None:
    rng = np.random.default_rng(seed)
    eta = rng.normal(scale=3, size=300)
    before, after = (1 / (1 + np.exp(-x)) for x in (eta, eta * (1.0 if alike else 1.2) + shift))
    whole, parts = logit_shift(before, after), [LogitShift() for _ in range(4)]
    for part, rows in zip(parts, np.array_split(rng.permutation(300), 4), strict=True):
        part.add(before[rows], after[rows])
    for part in parts[1:]:
        parts[0].merge(part)
    assert parts[0].value == pytest.approx(whole, nan_ok=True, rel=1e-10)
    if not alike:
        assert np.isnan(whole)
    elif abs(shift) > 1e-3:
        assert whole == pytest.approx(shift, rel=1e-6)
