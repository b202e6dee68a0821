"""What every audit promises, tested on each of them by one table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import evenhand as eh

N = 300


def columns(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
    outcome = (rng.random(N) < 0.45).astype(int)
    score = np.clip(0.3 + 0.3 * outcome + rng.normal(0, 0.2, N), 0.01, 0.99).round(3)
    return {"outcome": outcome, "decision": (score > 0.5).astype(int), "score": score, "groups": {"g": group}}


def take(arrays: Mapping[str, Any], index: np.ndarray) -> dict[str, Any]:
    return {k: {n: v[index] for n, v in a.items()} if k == "groups" else a[index] for k, a in arrays.items()}


ALL_METRICS = sorted(eh.METRICS)


def group_audit(arrays: Mapping[str, Any], rng: Any = 0, **options: Any) -> eh.AuditResult:
    options.setdefault("metrics", ALL_METRICS)
    weight = {k: options.pop(k) for k in ("weight", "weight_kind") if k in options}
    return eh.audit_group(eh.AuditData.from_arrays(**arrays, **weight), n_resamples=199, rng=rng, **options)


def projection_audit(arrays: Mapping[str, Any], rng: Any = 0, **weight: Any) -> eh.AuditResult:
    data = eh.AuditData.from_arrays(**arrays, **weight)
    distance = np.abs(arrays["score"] - 0.5)
    return eh.audit_projection(data, criterion="equalized_odds", distance=distance, rng=rng)


def proxy_audit(arrays: Mapping[str, Any], rng: Any = 0, workers: int = 1, **weight: Any) -> eh.AuditResult:
    features = {"score": arrays["score"], "even": (arrays["score"] * 1000).round() % 2}
    data = eh.AuditData.from_arrays(**arrays, features=features, **weight)
    return eh.audit_proxy(data, measure="fpr", rng=rng, workers=workers)


AUDITS: dict[str, Callable[..., eh.AuditResult]] = {
    "group": group_audit,
    "projection": projection_audit,
    "proxy": proxy_audit,
}
every_audit = pytest.mark.parametrize("audit", AUDITS.values(), ids=AUDITS.keys())


def numbers(result: eh.AuditResult) -> dict[tuple[str, tuple[str, ...]], tuple[float, float]]:
    return {(f.measure, f.groups): (f.estimate, f.pvalue) for f in result}


@every_audit
def test_same_seed_same_bytes(audit):
    first, second = (json.dumps(audit(columns()).to_dict()) for _ in range(2))
    assert first == second


def test_another_seed_changes_random_pvalues_only():
    one, two = numbers(group_audit(columns(), rng=0)), numbers(group_audit(columns(), rng=1))
    assert {k: v[0] for k, v in one.items()} == {k: v[0] for k, v in two.items()}
    assert one != two


@pytest.mark.parametrize("audit", [group_audit, proxy_audit])
def test_workers_do_not_change_a_byte(audit):
    first, second = (json.dumps(audit(columns(), workers=w).to_dict()) for w in (1, 3))
    assert first == second


@every_audit
def test_row_order_is_irrelevant(audit):
    order = np.random.default_rng(5).permutation(N)
    a, b = audit(columns()).to_dict(), audit(take(columns(), order)).to_dict()
    assert a["findings"] == b["findings"]


def test_relabelling_groups_permutes_findings():
    arrays = columns()
    new = {"a": "z", "b": "y", "c": "x"}
    renamed = {**arrays, "groups": {"g": np.array([new[v] for v in arrays["groups"]["g"]])}}
    old_numbers, new_numbers = numbers(group_audit(arrays)), numbers(group_audit(renamed))
    back = {f"g={v}": f"g={k}" for k, v in new.items()}
    for (measure, groups), (estimate, pvalue) in new_numbers.items():
        names = tuple(back[g] for g in groups)
        if measure.endswith("_global"):
            names = tuple(sorted(names))
        assert old_numbers[measure, names] == pytest.approx((estimate, pvalue), rel=1e-12, nan_ok=True)


@every_audit
def test_integer_weight_equals_repeated_rows(audit):
    arrays = columns()
    weight = np.random.default_rng(1).integers(1, 4, N)
    weighted = audit(arrays, weight=weight, weight_kind="frequency")
    repeated = audit(take(arrays, np.repeat(np.arange(N), weight)))
    assert [f.to_dict() for f in weighted] == [f.to_dict() for f in repeated]


@every_audit
def test_inputs_are_left_as_found(audit):
    arrays = columns()
    before = {k: v.copy() for k, v in arrays.items() if k != "groups"}
    audit(arrays)
    assert all(np.array_equal(arrays[k], before[k]) for k in before)


def test_tiny_and_one_class_groups_are_not_computable_with_a_reason():
    arrays = columns()
    arrays["groups"]["g"][:2] = "t"
    arrays["outcome"][:2] = 0
    arrays["decision"][:2] = 0
    rows = [f for f in group_audit(arrays, reference="a") if f.groups[0] == "g=t" and not f.measure.endswith("_global")]
    refused = {f.measure: f for f in rows if f.verdict == "not_computable"}
    assert {"fnr", "tpr", "precision", "auc", "balanced_accuracy", "f1"} <= set(refused)
    for f in refused.values():
        assert np.isnan(f.estimate)
        assert np.isnan(f.pvalue)
        assert "`g=t`" in f.reason
        assert f.to_dict()["estimate"] is None


@every_audit
def test_result_survives_a_round_trip(audit):
    result = audit(columns())
    plain = json.loads(json.dumps(result.to_dict()))
    assert eh.AuditResult.from_dict(plain).to_dict() == plain


@every_audit
def test_every_finding_has_a_verdict_and_a_reason(audit):
    for f in audit(columns()):
        assert f.verdict in set(eh.Verdict)
        assert f.reason.endswith(".")
        assert f.verdict == "not_computable" or 0 < f.pvalue <= f.pvalue_adjusted <= 1
