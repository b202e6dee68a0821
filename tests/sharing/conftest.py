"""Runs to share: one with disparities, and one whose names attack the reader of any format."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh

HOSTILE = [
    "a: b # c",
    "---\nlicense: evil",
    "'\"}{][,&*!|>%@`",
    "::error::pwned",
    "<img src=x onerror=alert(1)>",
    "a\r\n::set-env name=X::y%0A",
    "| [d](javascript:e) \x1b[31m \x85\u2028 ../../etc/passwd",
    "null",
    "😀 é",
]


@pytest.fixture(scope="session")
def run():
    data = eh.datasets.planted(rows=3000, fnr=(0.1, 0.4), rng=0)
    return eh.audit(data, plan=eh.Plan(group={"metrics": ["fnr", "fpr"]}), rng=0)


@pytest.fixture(scope="session")
def hostile_run():
    rng = np.random.default_rng(0)
    rows = 200 * len(HOSTILE)
    group = np.arange(rows) % len(HOSTILE)
    data = eh.AuditData.from_arrays(
        decision=(rng.random(rows) < np.where(group == 0, 0.5, 0.1 + 0.05 * group)).astype(int),
        groups={HOSTILE[3]: np.array(HOSTILE)[group]},
    )
    return eh.audit(data, plan=eh.Plan(group={"metrics": ["selection_rate"]}), rng=0)
