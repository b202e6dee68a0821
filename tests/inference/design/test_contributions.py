"""Variances between clusters against R's survey package, the sandwich written out, the jackknife and plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.inference.design.contributions import Contributions

# California's schools (data `apiclus1` of the R package survey): by district, the sum of api00 and the schools that
# did not (first) and did (second) meet their target for comparable improvement. With
# svydesign(id=~dnum, weights=~pw), R gives the mean 644.169398907104 (SE 23.7790107208869) and svyttest(api00 ~
# comp.imp) the difference 15.506015037594 (t 0.915856254417054); as stored in github.com/xKDR/Survey.jl,
# test/r_reference/est_basic.csv and ttest.csv.
SCORES = [
    [2193, 7179],
    [5470, 17038],
    [547, 1530],
    [2588, 6005],
    [2094, 9275],
    [0, 1116],
    [0, 551],
    [0, 1888],
    [733, 8378],
    [4491, 9270],
    [3596, 2790],
    [1295, 6064],
    [5734, 14660],
    [411, 494],
    [2493, 0],
]
SCHOOLS = [
    [3, 10],
    [8, 26],
    [1, 3],
    [4, 9],
    [3, 13],
    [0, 2],
    [0, 1],
    [0, 4],
    [1, 11],
    [7, 14],
    [5, 4],
    [2, 9],
    [11, 26],
    [1, 1],
    [4, 0],
]


def test_a_cluster_sample_of_schools_has_the_errors_of_r():
    x, n, one = np.array(SCORES, dtype=float), np.array(SCHOOLS, dtype=float), np.zeros(15, dtype=np.int64)
    whole = Contributions.of_ratio(x.sum(axis=1, keepdims=True), n.sum(axis=1, keepdims=True), stratum=one)
    assert whole.estimate[0] == pytest.approx(644.169398907104, rel=1e-12)
    assert np.sqrt(whole.covariance()[0, 0]) == pytest.approx(23.7790107208869, rel=1e-10)
    parts = Contributions.of_ratio(x, n, stratum=one)
    covariance, gap = parts.covariance(), parts.estimate[1] - parts.estimate[0]
    assert gap == pytest.approx(15.506015037594, rel=1e-11)
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert gap / error == pytest.approx(0.915856254417054, rel=1e-10)
    assert parts.crossing([0, 1]) == 11
    assert parts.clusters.tolist() == [12, 14]


def clusters(seed: int = 0, groups: int = 2, count: int = 25) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(count), rng.integers(1, 9, count))
    group = rng.integers(0, groups, cluster.size)
    value = rng.normal(size=count)[cluster] + rng.normal(size=cluster.size) + 0.3 * group
    return cluster, group, value


def sums(cluster: np.ndarray, group: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shape = (cluster.max() + 1, group.max() + 1)
    x, n = np.zeros(shape), np.zeros(shape)
    np.add.at(x, (cluster, group), value)
    np.add.at(n, (cluster, group), 1.0)
    return x, n


def test_products_of_pulls_are_the_sandwich_of_a_regression_on_groups():
    cluster, group, value = clusters()
    design = np.eye(2)[group]
    bread = np.linalg.inv(design.T @ design)
    residual = value - design @ (bread @ design.T @ value)
    scores = np.stack([design[cluster == c].T @ residual[cluster == c] for c in range(cluster.max() + 1)])
    parts = Contributions.of_ratio(*sums(cluster, group, value))
    assert parts.pull.T @ parts.pull == pytest.approx(bread @ (scores.T @ scores) @ bread, rel=1e-10)


def test_the_correction_is_that_of_bell_and_mccaffrey():
    # Residuals of a cluster are multiplied by the inverse root of its block of I - H, here made by eigenvalues.
    cluster, group, value = clusters(1)
    design = np.eye(2)[group]
    bread = np.linalg.inv(design.T @ design)
    residual = value - design @ (bread @ design.T @ value)
    meat = np.zeros((2, 2))
    for c in range(cluster.max() + 1):
        mine = cluster == c
        block = np.eye(mine.sum()) - design[mine] @ bread @ design[mine].T
        root, vectors = np.linalg.eigh(block)
        score = design[mine].T @ (vectors @ np.diag(root**-0.5) @ vectors.T) @ residual[mine]
        meat += np.outer(score, score)
    covariance = Contributions.of_ratio(*sums(cluster, group, value)).covariance()
    assert covariance == pytest.approx(bread @ meat @ bread, rel=1e-8)


def test_clusters_of_one_size_have_the_variance_of_the_jackknife():
    rng = np.random.default_rng(2)
    x, n = rng.normal(size=(12, 1)), np.full((12, 1), 3.0)
    left_out = np.array([np.delete(x, c).sum() / 33 for c in range(12)])
    jackknife = 11 / 12 * ((left_out - left_out.mean()) ** 2).sum()
    assert Contributions.of_ratio(x, n).covariance()[0, 0] == pytest.approx(jackknife, rel=1e-12)


def test_sampling_strata_by_plain_loops_with_a_stratum_of_one_cluster():
    rng = np.random.default_rng(3)
    x, n = rng.normal(size=(10, 2)), rng.integers(1, 5, (10, 2)).astype(float)
    stratum = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3])
    parts = Contributions.of_ratio(x, n, stratum=stratum)
    whole = np.zeros((2, 2))
    for h in range(4):
        pulls = parts.pull[stratum == h]
        centre = pulls.mean(axis=0) if len(pulls) > 1 else parts.pull.mean(axis=0)
        factor = len(pulls) / (len(pulls) - 1) if len(pulls) > 1 else 1.0
        for pull in pulls:
            whole += factor * np.outer(pull - centre, pull - centre)
    assert parts.covariance() == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("stratified", [False, True])
def test_copies_are_clusters_written_down_once(stratified):
    rng = np.random.default_rng(4)
    x, n, copies = rng.random((6, 2)), np.ones((6, 2)), np.array([1, 4, 2, 1, 3, 2])
    stratum = np.array([0, 0, 1, 1, 0, 1]) if stratified else None
    short = Contributions.of_ratio(x, n, copies, stratum)
    long = Contributions.of_ratio(
        np.repeat(x, copies, axis=0),
        np.repeat(n, copies, axis=0),
        stratum=None if stratum is None else np.repeat(stratum, copies),
    )
    assert short.covariance() == pytest.approx(long.covariance(), rel=1e-12)
    assert short.freedom(0, 1) == pytest.approx(long.freedom(0, 1), rel=1e-12)
    assert short.clusters.tolist() == long.clusters.tolist() == [13, 13]


def test_degrees_of_freedom_are_those_of_welch_and_of_pairs():
    alone = np.array([[1.0, 0.0]] * 12 + [[0.0, 1.0]] * 12)
    rng = np.random.default_rng(5)
    parts = Contributions.of_ratio(alone * rng.normal(size=(24, 1)), alone)
    va, vb = np.diag(parts.covariance())
    welch = (va + vb) ** 2 / (va**2 / 12 + vb**2 / 12) - 1
    assert parts.freedom(0, 1) == pytest.approx(welch, rel=1e-9)
    pairs = Contributions.of_ratio(rng.normal(size=(9, 2)), np.ones((9, 2)))
    assert pairs.freedom(0, 1) == pytest.approx(8.0)
