from __future__ import annotations

import numpy as np

import evenhand as eh
from evenhand.summaries import cells_of, confusion, group_sizes, weight_sums, weighted_confusion

rng = np.random.default_rng(0)
Y, D, G = rng.random(500) < 0.4, rng.random(500) < 0.5, rng.integers(3, size=500)
W = rng.random(500) + 0.5


def test_confusion_against_a_plain_loop():
    data = eh.AuditData.from_arrays(outcome=Y, decision=D, groups={"g": G})
    expected = np.zeros((3, 4), dtype=int)
    for y, d, g in zip(Y, D, G, strict=True):
        expected[g, 2 * int(y) + int(d)] += 1
    assert np.array_equal(confusion(data, data.attributes[0].codes, 3), expected)
    assert np.array_equal(group_sizes(data, data.attributes[0]), expected.sum(axis=1))


def test_weighted_sums_against_a_plain_loop():
    data = eh.AuditData.from_arrays(outcome=Y, decision=D, groups={"g": G}, weight=W, weight_kind="sampling")
    sums = weighted_confusion(data, data.attributes[0].codes, 3)
    for k in range(3):
        for cell in range(4):
            inside = (k == G) & (cell == 2 * Y + D)
            assert np.isclose(sums.w[k, cell], W[inside].sum())
            assert np.isclose(sums.ww[k, cell], (W[inside] ** 2).sum())


def test_without_weights_sums_are_counts():
    data = eh.AuditData.from_arrays(decision=D, groups={"g": G})
    w, ww = weight_sums(data)
    assert np.array_equal(w, np.ones(500))
    assert np.array_equal(ww, w)
    assert np.array_equal(cells_of(data), D.astype(int))
