from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from evenhand.kernels.counts.auc import SINGLE_ABOVE, AucParts, PooledScores, auc_of_counts
from evenhand.kernels.shared.seeds import stream


def by_pairs(positive: np.ndarray, negative: np.ndarray) -> tuple[float, float]:
    """AUC and DeLong variance by comparing every pair."""
    psi = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    return psi.mean(), psi.mean(1).var(ddof=1) / len(positive) + psi.mean(0).var(ddof=1) / len(negative)


def sample(n: int, digits: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = stream(1, "auc")
    y = rng.random(n) < 0.3
    s = rng.normal(size=n) + y
    s = s if digits is None else np.round(s, digits)
    order = np.argsort(s, kind="stable")
    return s[order], y[order], rng.random(n) < 0.4


@pytest.mark.parametrize("digits", [None, 1, 0])
def test_split_agrees_with_pairs_and_sklearn(digits: int | None) -> None:
    s, y, g = sample(300, digits)
    pooled = PooledScores(s[y], s[~y])
    first, second = pooled.split(g[y][None], g[~y][None])
    alone = pooled.group(~g[y][None], ~g[~y][None])
    for parts, member in ((first, g), (second, ~g), (alone, ~g)):
        auc, variance = by_pairs(s[y & member], s[~y & member])
        assert parts.auc[0] == pytest.approx(auc, abs=1e-12)
        assert parts.auc[0] == pytest.approx(roc_auc_score(y[member], s[member]), abs=1e-12)
        assert parts.variance()[0] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("digits", [None, 1])
def test_counts_agree_with_rows(digits: int | None) -> None:
    s, y, g = sample(300, digits)
    scores = np.unique(s)
    x, z = (np.array([(s[side & g] == v).sum() for v in scores]) for side in (y, ~y))
    auc, variance = by_pairs(s[y & g], s[~y & g])
    parts = auc_of_counts(x, z)
    assert float(parts.auc) == pytest.approx(auc, abs=1e-12)
    assert float(parts.variance()) == pytest.approx(variance, rel=1e-9)
    row = PooledScores(s[y], s[~y]).group(g[y][None], g[~y][None]).variance()[0]
    assert float(parts.variance()) == pytest.approx(row, rel=1e-9)


def test_population_variance_of_the_paper_with_its_coefficients_put_right() -> None:
    # p(+--)/p+ + p(++-)/(1-p+) - AUC^2 (1/p+ + 1/(1-p+)), over n; the paper prints the first two swapped.
    rng = stream(2, "population")
    n, share = 4000, 0.1
    y = np.arange(n) < n * share
    s = np.sort(rng.exponential(size=(y).sum())), np.sort(rng.uniform(size=(~y).sum()))
    parts = PooledScores(*s).group(np.ones((1, s[0].size), bool), np.ones((1, s[1].size), bool))
    below = np.searchsorted(s[1], s[0]) / s[1].size
    above = 1 - np.searchsorted(s[0], s[1]) / s[0].size
    right = (np.mean(below**2) / share + np.mean(above**2) / (1 - share)) / n
    right -= below.mean() ** 2 * (1 / share + 1 / (1 - share)) / n
    swapped = (np.mean(below**2) / (1 - share) + np.mean(above**2) / share) / n
    swapped -= below.mean() ** 2 * (1 / share + 1 / (1 - share)) / n
    assert parts.variance()[0] == pytest.approx(right, rel=0.01)
    assert abs(swapped / right - 1) > 0.05


def weighted_by_pairs(s: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    p, q, u, v = s[y], s[~y], w[y], w[~y]
    psi = (p[:, None] > q) + 0.5 * (p[:, None] == q)
    auc = u @ psi @ v / (u.sum() * v.sum())
    rows, cols = psi @ v / v.sum(), u @ psi / u.sum()
    first = (u**2 * (rows - auc) ** 2).sum() / u.sum() ** 2 * p.size / (p.size - 1)
    return auc, first + (v**2 * (cols - auc) ** 2).sum() / v.sum() ** 2 * q.size / (q.size - 1)


def test_weighted_parts_agree_with_pairs() -> None:
    s, y, g = sample(200, 1)
    w = stream(3, "weights").gamma(2.0, size=200)
    pooled = PooledScores(s[y], s[~y], w[y], w[~y])
    for parts, member in zip(pooled.split(g[y][None], g[~y][None]), (g, ~g), strict=True):
        auc, variance = weighted_by_pairs(s[member], y[member], w[member])
        assert parts.auc[0] == pytest.approx(auc, abs=1e-12)
        assert parts.auc[0] == pytest.approx(roc_auc_score(y[member], s[member], sample_weight=w[member]), abs=1e-12)
        assert parts.variance()[0] == pytest.approx(variance, rel=1e-9)


def test_single_precision_is_close_to_double() -> None:
    s, y, g = sample(SINGLE_ABOVE + 5000, None)
    fast = PooledScores(s[y], s[~y]).split(g[y][None], g[~y][None])

    def statistic(pair: tuple[AucParts, AucParts]) -> float:
        return float((pair[0].auc - pair[1].auc)[0] / np.sqrt(pair[0].variance() + pair[1].variance())[0])

    ones = np.ones(y.sum()), np.ones((~y).sum())
    slow = PooledScores(s[y], s[~y], *ones).split(g[y][None], g[~y][None])
    assert statistic(fast) == pytest.approx(statistic(slow), abs=1e-3)
    assert fast[0].auc[0] == pytest.approx(roc_auc_score(y[g], s[g]), abs=1e-6)


def test_an_empty_side_has_no_auc() -> None:
    pooled = PooledScores(np.array([0.2, 0.4]), np.array([0.1, 0.3]))
    parts = pooled.group(np.array([[False, False]]), np.array([[True, True]]))
    assert np.isnan(parts.auc[0])
