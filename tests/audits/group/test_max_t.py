"""Influence functions against leaving one row out, and their sum of squares against known variances."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.audits.group.influence import influence
from evenhand.audits.group.samples import samples_of
from evenhand.intake import AuditData
from evenhand.metrics import METRICS
from evenhand.summaries import Sums


def rows(n: int = 400, weighted: bool = False) -> dict:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    p = np.clip(0.25 * y + 0.6 * rng.random(n), 0, 1).round(2)
    given = {"outcome": y, "decision": (p > 0.5).astype(int), "score": p, "groups": {"g": np.arange(n) % 2}}
    return given | ({"weight": rng.gamma(3.0, size=n), "weight_kind": "sampling"} if weighted else {})


def without(given: dict, i: int) -> AuditData:
    cut = {k: {"g": np.delete(v["g"], i)} if k == "groups" else v if isinstance(v, str) else np.delete(v, i)
           for k, v in given.items()}  # fmt: skip
    return AuditData.from_arrays(**cut)


@pytest.mark.parametrize("name", ["fnr", "f1", "selection_rate", "balanced_accuracy", "auc", "brier"])
@pytest.mark.parametrize("weighted", [False, True])
def test_influence_is_what_leaving_a_row_out_does(name, weighted):
    given = rows(weighted=weighted)
    data = AuditData.from_arrays(**given)
    metric = METRICS[name]
    found = influence(metric, data, data.attributes[0])
    whole = samples_of(metric, Sums(data), data.attributes[0]).estimate
    jackknife = [
        whole[i % 2] - samples_of(metric, Sums(cut), cut.attributes[0]).estimate[i % 2]
        for i in range(0, 400, 16)
        for cut in [without(given, i)]
    ]
    assert found[::16] == pytest.approx(jackknife, rel=0.05, abs=2e-4)


def test_what_has_no_influence_function_says_so():
    data = AuditData.from_arrays(**rows())
    assert influence(METRICS["calibration_error"], data, data.attributes[0]) is None


def test_a_counted_record_weighs_as_its_rows():
    given = rows(60)
    data = AuditData.from_arrays(**given)
    twice = AuditData.from_arrays(**given, weight=np.full(60, 2), weight_kind="frequency")
    for name in ("fnr", "auc", "brier"):
        one, two = (influence(METRICS[name], d, d.attributes[0]) for d in (data, twice))
        assert 2 * np.sum(two**2) * 2 == pytest.approx(np.sum(one**2))
