"""Corrections against their definitions, written out slowly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import UsageError
from evenhand.inference.multiplicity import adjust, gatekeeping, share_out


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


def _graph_by_the_book(p, family, keep):
    """Algorithm 2 of Bretz, Maurer, Brannath and Posch (2009), one node per hypothesis."""
    m, last = len(p), max(family)
    size = [family.count(f) for f in range(last + 1)]
    w = [1 / size[0] if f == 0 else 0.0 for f in family]
    g = np.zeros((m, m))
    for i, j in itertools.permutations(range(m), 2):
        stays = 0.0 if size[family[i]] == 1 else 1.0 if family[i] == last else keep
        if family[j] == family[i]:
            g[i, j] = stays / (size[family[i]] - 1)
        elif family[j] == family[i] + 1:
            g[i, j] = (1 - stays) / size[family[j]]
    left, adjusted, reached = set(range(m)), [1.0] * m, 0.0
    while left:
        i = min(left, key=lambda j: p[j] / w[j] if w[j] > 0 else math.inf)
        if w[i] == 0:
            break
        reached = max(reached, min(1.0, p[i] / w[i]))
        adjusted[i] = reached
        left.remove(i)
        w = [w[j] + w[i] * g[i, j] if j in left else 0.0 for j in range(m)]
        new = np.zeros((m, m))
        for j, k in itertools.permutations(left, 2):
            if g[j, i] * g[i, j] < 1:
                new[j, k] = (g[j, k] + g[j, i] * g[i, k]) / (1 - g[j, i] * g[i, j])
        g = new
    return adjusted


def test_gatekeeping_is_the_graph_of_single_hypotheses():
    rng = np.random.default_rng(2)
    for _ in range(100):
        family = sorted(rng.integers(0, 3, rng.integers(1, 9)).tolist())
        family = [sorted(set(family)).index(f) for f in family]
        p = rng.random(len(family)) ** 4
        for keep in (0.0, 0.5, 0.9):
            assert gatekeeping(p, family, keep) == pytest.approx(_graph_by_the_book(p.tolist(), family, keep))


def test_gatekeeping_opens_audits_in_their_order():
    assert gatekeeping([0.5, 0.0001], [0, 1]).tolist() == [0.5, 0.5]  # at .05 the gate stays closed
    assert gatekeeping([0.001, 0.04], [0, 1]).tolist() == [0.001, 0.04]  # wholly open: all error goes on
    assert gatekeeping([0.03, 0.01, 0.02], [5, 5, 5]) == pytest.approx(adjust([0.03, 0.01, 0.02]))
    some = gatekeeping([0.001, np.nan, 0.9, 0.01, np.nan], [0, 0, 0, 1, 2])
    assert np.isnan(some[[1, 4]]).all()
    assert some[[0, 2, 3]] == pytest.approx([0.002, 1.0, 0.04])  # a quarter of the error reached the second audit
    assert np.isnan(gatekeeping([np.nan], [0])).all()


def _blocks_by_closure(p, block, alpha):
    """Reject what every intersection that holds it rejects; blocks share by size, Bonferroni inside each."""
    m = len(p)
    rejected = [True] * m
    for bits in range(1, 2**m):
        inside = [i for i in range(m) if bits >> i & 1]
        blocks = {block[i] for i in inside}
        total = sum(block.count(b) for b in blocks)
        local = any(
            min(p[i] for i in inside if block[i] == b) * sum(block[i] == b for i in inside) * total / block.count(b)
            <= alpha
            for b in blocks
        )
        if not local:
            for i in inside:
                rejected[i] = False
    return rejected


def test_shares_are_a_closed_test():
    rng = np.random.default_rng(3)
    for _ in range(60):
        block = rng.integers(0, 3, rng.integers(1, 7)).tolist()
        p = rng.random(len(block)) ** 3
        inner = np.empty(len(block))
        for b in set(block):
            mine = np.array(block) == b
            inner[mine] = adjust(p[mine])
        joined = share_out(inner, block)
        assert (joined >= inner - 1e-15).all()
        for alpha in (0.01, 0.05, 0.2):
            assert (joined <= alpha).tolist() == _blocks_by_closure(p.tolist(), block, alpha)


def test_gatekeeping_holds_the_error_among_rejected_ones():
    # One p-value for all three true nulls, the hardest dependence for a gate; the false ones open it.
    rng = np.random.default_rng(4)
    true = np.array([1, 0, 0, 1, 0, 1], dtype=bool)
    wrong = sum(
        bool((gatekeeping(np.where(true, rng.random(), 1e-8), [0, 0, 0, 1, 1, 2])[true] <= 0.05).any())
        for _ in range(2000)
    )
    assert wrong <= stats.binom.isf(1e-4, 2000, 0.05)
