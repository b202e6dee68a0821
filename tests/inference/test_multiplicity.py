"""Corrections against their definitions, written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import UsageError
from evenhand.inference.multiplicity import adjust


def _holm_rejects(p, alpha):
    """Step down as Holm (1979) wrote it."""
    out = [False] * len(p)
    for step, i in enumerate(sorted(range(len(p)), key=lambda j: p[j])):
        if p[i] > alpha / (len(p) - step):
            break
        out[i] = True
    return out


def _bh_rejects(p, alpha):
    """Step up as Benjamini and Hochberg (1995) wrote it."""
    order = sorted(p)
    last = max((k for k in range(1, len(p) + 1) if order[k - 1] <= k * alpha / len(p)), default=0)
    return [last > 0 and v <= order[last - 1] for v in p]


@pytest.mark.parametrize(("method", "rejects"), [("holm", _holm_rejects), ("bh", _bh_rejects)])
def test_rejections_are_those_of_the_definition(method, rejects):
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.random(rng.integers(1, 9)) ** 3
        adjusted = adjust(p, method)
        for alpha in (0.01, 0.05, 0.2, 0.61):
            assert (adjusted <= alpha).tolist() == rejects(p.tolist(), alpha)


def test_bh_agrees_with_scipy():
    p = np.random.default_rng(1).random(30) ** 2
    assert adjust(p, "bh") == pytest.approx(stats.false_discovery_control(p))


def test_bonferroni_and_none():
    p = np.array([[0.01, 0.4], [0.02, 0.9]])
    assert adjust(p, "bonferroni") == pytest.approx(np.array([[0.04, 1], [0.08, 1]]))
    assert (adjust(p, "none") == p).all()


@pytest.mark.parametrize("method", ["holm", "bonferroni", "bh"])
def test_nan_does_not_count_and_order_is_kept(method):
    p = np.array([0.03, np.nan, 0.001, 0.2, np.nan])
    adjusted = adjust(p, method)
    assert np.isnan(adjusted).tolist() == np.isnan(p).tolist()
    made = ~np.isnan(p)
    assert adjusted[made] == pytest.approx(adjust(p[made], method))
    assert (np.argsort(adjusted[made]) == np.argsort(p[made])).all()
    assert (adjusted[made] >= p[made]).all()
    assert p[1] != p[1]  # the input is left alone


def test_empty_and_all_nan():
    assert adjust([]).size == 0
    assert np.isnan(adjust([np.nan, np.nan])).all()


def test_bad_requests():
    with pytest.raises(UsageError, match="Did you mean `holm`"):
        adjust([0.1], "hol")
    with pytest.raises(ValueError, match="between 0 and 1"):
        adjust([1.2])
