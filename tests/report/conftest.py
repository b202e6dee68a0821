"""Runs to report on: one of each audit on small real models, and one whose names attack the reader."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh

HOSTILE = [
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    "javascript:window.pwned=1",
    "{{7*7}} ${7*7} `x` | a_b *c* [d](javascript:e)",
    "' onmouseover=window.pwned=1 x='\"",
    "a\u202eb\x1b[31m\x00c",
]


def _people(rows, names, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, len(names), rows)
    x = rng.normal(size=(rows, 3)) + np.column_stack([group == 1, np.zeros(rows), np.zeros(rows)])
    y = (rng.random(rows) < 1 / (1 + np.exp(-x[:, 0] - 0.5 * x[:, 1]))).astype(int)
    return group, x, y


@pytest.fixture(scope="session")
def full_run():
    """All six audits of one logistic model that sees the group."""
    group, x, y = _people(900, ["a", "b"])
    features = {"skill": x[:, 0], "luck": x[:, 1], "noise": x[:, 2], "is_b": group.astype(float)}
    inputs = np.column_stack(list(features.values()))
    model = LogisticRegression().fit(inputs, y)
    score = model.predict_proba(inputs)[:, 1]
    data = eh.AuditData.from_arrays(
        outcome=y,
        decision=(score >= 0.5).astype(int),
        score=score,
        groups={"kind": np.array(["a", "b"])[group]},
        features=features,
    )
    plan = eh.Plan(
        audits=("group", "projection", "individual", "proxy", "tail", "scan"),
        group={"metrics": ["fnr", "fpr", "auc"], "margin": 0.2},
        tail={"attribute": "kind", "flip": {"a": {"is_b": 0.0}, "b": {"is_b": 1.0}}},
        scan={"attributes": ["kind", "skill", "luck"]},
    )
    return eh.audit(data, model=model, plan=plan, rng=0)


@pytest.fixture(scope="session")
def hostile_run():
    """A group audit and a scan whose attribute and group names attack a reader of HTML, Markdown or a terminal."""
    group, x, y = _people(1400, HOSTILE, seed=1)
    score = 1 / (1 + np.exp(-x[:, 0]))
    data = eh.AuditData.from_arrays(
        outcome=y,
        decision=(score >= 0.5).astype(int),
        score=score,
        groups={HOSTILE[0]: np.array(HOSTILE)[group]},
        features={HOSTILE[1]: x[:, 0]},
    )
    plan = eh.Plan(
        audits=("group", "scan"), group={"metrics": ["fnr", "auc"]}, scan={"attributes": [HOSTILE[0], HOSTILE[1]]}
    )
    return eh.audit(data, plan=plan, rng=0)
