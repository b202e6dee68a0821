"""How often rows that stay where they are are walked over: each time costs about as much as scoring them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.intake.batches import DRAWN_ROWS, LocalBatches

WALKS = {"group": 1, "tail": 1, "projection": 1, "individual": 2, "proxy": 2}
FEATURES = ["x", "z", "sex"]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"x": rng.normal(size=6000), "z": rng.normal(size=6000), "sex": rng.integers(2, size=6000)})
    table["paid"] = (table["x"] + 0.5 * table["sex"] + rng.normal(size=6000) > 0).astype(int)
    return table


@pytest.mark.parametrize(("audit", "walks"), WALKS.items())
def test_the_rows_are_walked_over_as_often_as_the_page_says(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, audit: str, walks: int
) -> None:
    model = LogisticRegression().fit(people[FEATURES].to_numpy(), people["paid"])
    data = eh.read(duckdb.from_df(people), outcome="paid", groups=["sex"], features=FEATURES, rows="batches")
    walked: list[Any] = []
    walk = LocalBatches._walk

    def counted(self: LocalBatches, make: Any) -> Any:
        walked.append(make)
        return walk(self, make)

    monkeypatch.setattr(LocalBatches, "_walk", counted)
    monkeypatch.setattr("evenhand.intake.batches.DRAWN_ROWS", 1000)
    for name in ("run.ASKED", "audits.projection.batched.SEARCHED", "audits.tail.ASKED", "models.adapter.ASKED"):
        monkeypatch.setattr(f"evenhand.{name}_ROWS", 800)
    some: dict[str, Any] = {audit: {"sample_rows": 1000}} if audit in ("individual", "proxy") else {}
    eh.audit(data, model=model, plan=eh.Plan(audits=(audit,), **some), rng=0)
    assert len(walked) == walks
    page = (Path(__file__).parents[2] / "docs" / "big-data.md").read_text(encoding="utf-8")
    assert f"| {audit} | {walks}" in page
    assert f"draws {DRAWN_ROWS:,} rows" in page
