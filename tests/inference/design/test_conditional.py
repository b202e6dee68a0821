"""Clustered rows within strata: Mantel and Haenszel's ratio, the weighted difference, and one stratum as none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenhand.audits.group.design import design_samples
from evenhand.inference.design.conditional import ConditionalClusters
from evenhand.inference.samples import Draws
from evenhand.intake import AuditData
from evenhand.metrics import METRICS

DRAWS = Draws(name="t", n_resamples=999)


def rows(seed: int = 0, strata: int = 4, groups: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(60), rng.integers(1, 7, 60))
    group = rng.integers(0, groups, cluster.size)
    job = np.minimum(rng.integers(0, strata, cluster.size) + (group > 0) * rng.integers(0, 2, cluster.size), strata - 1)
    decision = (rng.random(cluster.size) < 0.2 + 0.15 * job).astype(int)
    return {"decision": decision, "cluster": cluster, "group": group, "job": job}


def samples(data: dict[str, np.ndarray], **more) -> ConditionalClusters:
    read = AuditData.from_arrays(
        decision=data["decision"],
        groups={"g": data["group"]},
        strata={"job": data["job"]},
        cluster=data["cluster"],
        **more,
    )
    made = design_samples(METRICS["selection_rate"], read, read.attributes[0])
    assert isinstance(made, ConditionalClusters)
    return made


def tables(data: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    x, n = np.zeros((2, 4)), np.zeros((2, 4))
    np.add.at(x, (data["group"], data["job"]), data["decision"])
    np.add.at(n, (data["group"], data["job"]), 1)
    return x, n


def test_difference_and_ratio_are_those_of_mantel_and_haenszel():
    data = rows()
    made = samples(data)
    (x0, x1), (n0, n1) = tables(data)
    weight = n0 * n1 / (n0 + n1)
    assert made.difference(0, 1) == pytest.approx((weight * (x0 / n0 - x1 / n1)).sum() / weight.sum(), rel=1e-12)
    first, second = made.values(0, 1)
    assert first / second == pytest.approx((x0 * n1 / (n0 + n1)).sum() / (x1 * n0 / (n0 + n1)).sum(), rel=1e-12)
    assert made.estimate.tolist() == pytest.approx([x0.sum() / n0.sum(), x1.sum() / n1.sum()])


def test_the_error_by_plain_loops():
    data = rows(1)
    made = samples(data)
    x, n = tables(data)
    weight = n.prod(axis=0) / n.sum(axis=0)
    weight /= weight.sum()
    first, second = np.zeros(60), np.zeros(60)
    for c, g, s, d in zip(data["cluster"], data["group"], data["job"], data["decision"], strict=True):
        pull = weight[s] * (d - x[g, s] / n[g, s]) / n[g, s]
        (first if g == 0 else second)[c] += pull
    pair = made.pair(0, 1)
    assert pair is not None
    share = pair.parts.share
    expected = np.sqrt(((first / np.sqrt(1 - share[:, 0]) - second / np.sqrt(1 - share[:, 1])) ** 2).sum())
    assert made.standard_error(0, 1) == pytest.approx(expected, rel=1e-9)


def test_one_stratum_is_no_stratum():
    data = rows(2)
    data["job"] = np.zeros_like(data["job"])
    made = samples(data)
    assert made.difference(0, 1) == pytest.approx(made.plain.difference(0, 1), rel=1e-12)
    assert made.test(0, 1, DRAWS).pvalue == pytest.approx(made.plain.test(0, 1, DRAWS).pvalue, rel=1e-9)
    assert made.interval(0, 1, level=0.95, ratio=True, draws=DRAWS)[:2] == pytest.approx(
        made.plain.interval(0, 1, level=0.95, ratio=True, draws=DRAWS)[:2], rel=1e-6
    )


def test_a_difference_between_strata_alone_is_no_difference():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(200), 4)
    job = (rng.random(800) < 0.5).astype(int)
    group = (rng.random(800) < np.where(job == 1, 0.8, 0.2)).astype(int)
    decision = (rng.random(800) < np.where(job == 1, 0.7, 0.2)).astype(int)
    made = samples({"decision": decision, "cluster": cluster, "group": group, "job": job})
    assert made.plain.test(0, 1, DRAWS).pvalue < 1e-6
    assert made.test(0, 1, DRAWS).pvalue > 0.05
    assert made.test(0, 1, DRAWS).method.startswith("within 2 strata, ")


def test_groups_without_a_common_stratum_cannot_be_compared():
    data = rows(4)
    data["job"] = data["group"].copy()
    made = samples(data)
    assert made.informative(0, 1).size == 0
    result = made.test(0, 1, DRAWS)
    assert math.isnan(result.pvalue)
    assert "No stratum has rows of both groups" in result.warnings[0]


def test_three_groups_within_strata_and_a_survey():
    data = rows(5, groups=3)
    made = samples(data)
    assert 0 < made.test_global([0, 1, 2], DRAWS).pvalue <= 1
    surveyed = samples(data, survey_strata=data["cluster"] % 3)
    assert surveyed.test(0, 1, DRAWS).pvalue == pytest.approx(made.test(0, 1, DRAWS).pvalue, rel=0.7)
    assert 0 < surveyed.test_global([0, 1, 2], DRAWS).pvalue <= 1
