from __future__ import annotations

import numpy as np

import evenhand as eh
from evenhand.summaries import Sums, cells_of, group_sizes, weight_sums

rng = np.random.default_rng(0)
Y, D, G = rng.random(500) < 0.4, rng.random(500) < 0.5, rng.integers(3, size=500)
W = rng.random(500) + 0.5


def test_confusion_against_a_plain_loop():
    data = eh.AuditData.from_arrays(outcome=Y, decision=D, groups={"g": G})
    expected = np.zeros((3, 4), dtype=int)
    for y, d, g in zip(Y, D, G, strict=True):
        expected[g, 2 * int(y) + int(d)] += 1
    assert np.array_equal(Sums(data).confusion(data.attributes[0]), expected)
    assert np.array_equal(group_sizes(data, data.attributes[0]), expected.sum(axis=1))


def test_weighted_sums_against_a_plain_loop():
    data = eh.AuditData.from_arrays(outcome=Y, decision=D, groups={"g": G}, weight=W, weight_kind="sampling")
    sums = Sums(data).weighted_confusion(data.attributes[0])
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


def test_records_are_grouped_once_for_all_metrics(monkeypatch):
    seen = []
    whole = Sums._by_cell

    def watched(self, attribute, amounts):
        seen.append(attribute.name)
        return whole(self, attribute, amounts)

    monkeypatch.setattr(Sums, "_by_cell", watched)
    data = eh.AuditData.from_arrays(outcome=Y, decision=D, groups={"g": G, "h": G[::-1]})
    assert len(eh.audit_group(data, metrics=["fnr", "fpr", "f1", "balanced_accuracy"], n_resamples=99, rng=0)) == 24
    assert seen == ["g", "h"]


def test_records_are_sorted_once_for_all_attributes():
    data = eh.AuditData.from_arrays(score=W, groups={"g": G}, weight=W[::-1], weight_kind="sampling")
    sums, made = Sums(data), []
    first = sums.by_value("score", lambda: made.append(1) or data.score)
    assert sums.by_value("score", lambda: made.append(1) or data.score) is first
    assert len(made) == 1
    assert np.array_equal(first.value, np.sort(W))
    assert np.array_equal(data.weight[first.order], first.weight)
