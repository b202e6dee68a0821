"""Corrections against their definitions, written out slowly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

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


_SHARES, _OPENS = {"g": 2.0, "i": 1.0, "t": 1.0}, {"g": ("x", "y")}


def _nodes(family, shares, opens, keep, last=Fraction(1, 10**9)):
    """The graph with one node per hypothesis, from the rules in words: weights and what each hands on, exactly."""
    m = len(family)
    size = {f: family.count(f) for f in family}
    begins = {f: shares[f] for f in size if f in shares}
    w = [Fraction(begins.get(f, 0)) / Fraction(sum(begins.values())) / size[f] for f in family]
    g = [[Fraction(0)] * m for _ in range(m)]
    for i, f in enumerate(family):
        opened = [h for h in size if h in opens.get(f, ())]
        give = {h: (1 - Fraction(keep)) / len(opened) for h in opened}
        if size[f] > 1:
            give[f] = Fraction(keep if opened else 1)
        if not opened:
            for h in size:
                if h != f and (h in shares) == (f in shares):
                    give[h] = last
                elif h != f and f not in shares:
                    give[h] = last**2
        for h, part in give.items():
            those = [j for j in range(m) if family[j] == h and j != i]
            for j in those:
                g[i][j] = part / sum(give.values()) / len(those)
    return w, g


def _remove(w, g, i):
    """Algorithm 1 of Bretz, Maurer, Brannath and Posch (2009): hand on the weight of a node and close its gap."""
    m = len(w)
    w = [Fraction(0) if j == i else w[j] + w[i] * g[i][j] for j in range(m)]
    new = [[Fraction(0)] * m for _ in range(m)]
    for j, k in itertools.permutations([j for j in range(m) if j != i], 2):
        if g[j][i] * g[i][j] < 1:
            new[j][k] = (g[j][k] + g[j][i] * g[i][k]) / (1 - g[j][i] * g[i][j])
    return w, new


def _graph_by_the_book(p, family, shares, opens, keep):
    """Algorithm 2 of Bretz and others (2009), one node per hypothesis."""
    w, g = _nodes(family, shares, opens, keep)
    left, adjusted, reached = set(range(len(p))), [1.0] * len(p), 0.0
    while left:
        i = min(left, key=lambda j: p[j] / float(w[j]) if w[j] > 0 else math.inf)
        if w[i] == 0:
            break
        reached = max(reached, min(1.0, p[i] / float(w[i])))
        adjusted[i] = reached
        left.remove(i)
        w, g = _remove(w, g, i)
    return adjusted


def _closed_test(p, family, shares, opens, keep):
    """Weighted Bonferroni tests of all intersections; each hypothesis has the largest p-value of those it is in."""
    m = len(p)
    adjusted = [0.0] * m
    for bits in range(1, 2**m):
        w, g = _nodes(family, shares, opens, keep)
        inside = [i for i in range(m) if bits >> i & 1]
        for i in set(range(m)) - set(inside):
            w, g = _remove(w, g, i)
        local = min(1.0, min((p[i] / float(w[i]) for i in inside if w[i] > 0), default=1.0))
        for i in inside:
            adjusted[i] = max(adjusted[i], local)
    return adjusted


def _random_families(rng, most):
    family = [str(f) for f in rng.choice(list("gitxy"), rng.integers(1, most))]
    return family if set(family) & set("git") and ("g" in family or not set(family) & set("xy")) else ["g", *family]


def test_gatekeeping_is_the_graph_of_single_hypotheses():
    rng = np.random.default_rng(2)
    for _ in range(30):
        family = _random_families(rng, 10)
        p = rng.random(len(family)) ** 4
        for keep in (0.0, 0.5, 0.9):
            expected = _graph_by_the_book(p.tolist(), family, _SHARES, _OPENS, keep)
            assert gatekeeping(p, family, shares=_SHARES, opens=_OPENS, keep=keep) == pytest.approx(expected, rel=1e-8)


def test_gatekeeping_is_a_closed_test():
    rng = np.random.default_rng(6)
    for _ in range(15):
        family = _random_families(rng, 6)
        p = rng.random(len(family)) ** 5
        adjusted = gatekeeping(p, family, shares=_SHARES, opens=_OPENS)
        assert adjusted == pytest.approx(_closed_test(p.tolist(), family, _SHARES, _OPENS, 0.5), rel=1e-8)
        assert (adjusted >= p).all()


def test_gatekeeping_opens_what_explains_and_loses_nothing():
    chain = {"shares": {"g": 1}, "opens": {"g": ("x",)}}
    assert gatekeeping([0.5, 0.0001], ["g", "x"], **chain).tolist() == [0.5, 0.5]  # at .05 the gate stays closed
    assert gatekeeping([0.001, 0.04], ["g", "x"], **chain) == pytest.approx([0.001, 0.04])  # wholly open
    assert gatekeeping([0.03, 0.01, 0.02], ["g"] * 3, shares={"g": 3}) == pytest.approx(adjust([0.03, 0.01, 0.02]))
    some = gatekeeping([0.001, np.nan, 0.9, 0.01, np.nan], ["g", "g", "g", "x", "t"], **chain)
    assert np.isnan(some[[1, 4]]).all()
    assert some[[0, 2, 3]] == pytest.approx([0.002, 0.9, 0.04])  # a quarter of the error reached what explains
    assert np.isnan(gatekeeping([np.nan], ["g"], shares={"g": 1})).all()
    # The tail is wholly rejected: its third goes to the group audit, which then is Holm's with all the error.
    entry = gatekeeping([0.02, 0.04, 0.001], ["g", "g", "t"], shares=_SHARES)
    assert entry == pytest.approx([0.04, 0.04, 0.003], rel=1e-8)
    # Group and what explains are done: the tail has all the error.
    done = gatekeeping([0.001, 0.001, 0.001, 0.04], ["g", "x", "y", "t"], shares=_SHARES, opens=_OPENS)
    assert done[3] == pytest.approx(0.04, rel=1e-8)
    # Absent families cost nothing.
    assert gatekeeping([0.04], ["t"], shares=_SHARES, opens=_OPENS) == pytest.approx([0.04])


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
    # One p-value for all true nulls, or its mirror image, the hardest dependence for a gate; the false ones open it.
    rng = np.random.default_rng(4)
    family = list("gggxxyit")
    true = np.array([1, 0, 0, 1, 0, 1, 0, 1], dtype=bool)
    wrong = 0
    for _ in range(2000):
        u = rng.random()
        p = np.where(true, np.where(np.arange(8) % 2, u, 1 - u), 1e-8)
        wrong += bool((gatekeeping(p, family, shares=_SHARES, opens=_OPENS)[true] <= 0.05).any())
    assert wrong <= stats.binom.isf(1e-4, 2000, 0.05)
