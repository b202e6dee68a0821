"""A model that decides about rows which stay where they are: the group audit says what it says of rows in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.intake.batches import LocalBatches
from evenhand.intake.records import ScoreBins
from evenhand.summaries.scored_cells import ScoredCells


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    n = 6000
    x, z = rng.normal(size=n), rng.normal(size=n)
    return pd.DataFrame(
        {
            "y": (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int),
            "amount": x * 100 + rng.normal(size=n),
            "sex": rng.choice(["F", "M", None], n, p=[0.5, 0.45, 0.05]),
            "race": rng.choice(["a", "b", "c"], n),
            "town": rng.choice(["n", "s"], n),
            "w": rng.choice([0.5, 1.0, 2.5], n),
            "x": x,
            "z": z,
        }
    )


def probability(X: Any) -> Any:
    return 1 / (1 + np.exp(-X[:, 0] - 0.2 * X[:, 1]))


def margin(X: Any) -> Any:
    return 3 * X[:, 0] + 0.2 * X[:, 1]


@pytest.mark.parametrize(
    ("model", "more", "metrics"),
    [
        (probability, {}, ["selection_rate", "fnr", "brier", "log_loss", "mean_score", "auc"]),
        (probability, {"weight": "w"}, ["selection_rate", "fpr", "brier"]),
        (probability, {"strata": "town"}, ["selection_rate", "fnr"]),
        (probability, {"outcome": "amount"}, ["selection_rate", "mae"]),
        (margin, {"outcome": "amount"}, ["mae", "mse", "mean_score"]),
        (margin, {"threshold": 0.5}, ["selection_rate", "fnr", "auc"]),
    ],
)
def test_the_group_audit_of_batches_is_that_of_rows(
    table: pd.DataFrame, model: Any, more: dict[str, Any], metrics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.intake.engines.duck.BATCH_ROWS", 2048)
    asked: dict[str, Any] = {"outcome": "y", "groups": ["sex", "race"], "features": ["x", "z"], "intersections": True}
    plan = eh.Plan(audits=["group"], group={"metrics": metrics})
    source = duckdb.from_df(table)
    kept = eh.audit(eh.read(source, **{**asked, **more}, rows="keep"), model=model, plan=plan, rng=0)
    batched = eh.audit(eh.read(source, **{**asked, **more}, rows="batches"), model=model, plan=plan, rng=0)
    said = next(note for note in batched.data["notes"] if "were added up in 4,096 bins" in note)
    assert "the AUC, and rates at other thresholds than the model's, take scores of one bin as equal" in said
    for one, two in zip(kept.findings, batched.findings, strict=True):
        assert (one.measure, one.groups, one.counts) == (two.measure, two.groups, two.counts)
        # A bin of 1/4,096 joins scores that differ by less; nothing but the rank of people feels it.
        tolerance = 2e-4 if one.measure.startswith("auc") else 1e-10
        assert two.estimate == pytest.approx(one.estimate, abs=tolerance, rel=1e-10)


def test_the_model_is_asked_no_more_than_needed(table: pd.DataFrame) -> None:
    """Sums of people that the model is asked about: once for the sample, then what each audit needs."""
    asked_about = []

    def counting(X: Any) -> Any:
        asked_about.append(len(X))
        return 1 / (1 + np.exp(-X[:, 0] - 0.2 * X[:, 1] - 0.3 * X[:, 2]))

    rows = table.dropna(subset=["sex"]).assign(male=lambda t: (t["sex"] == "M") * 1.0)
    source, n = duckdb.from_df(rows), len(rows)
    asked: dict[str, Any] = {"outcome": "y", "groups": "sex", "features": ["x", "z", "male"], "rows": "batches"}
    tail = {"flip": "male"}
    runs = {}
    for audits in (["group"], ["group", "tail"], ["group", "tail", "projection"]):
        asked_about.clear()
        plan = eh.Plan(audits=audits, **({"tail": tail} if "tail" in audits else {}))
        runs[len(audits)] = eh.audit(eh.read(source, **asked), model=counting, plan=plan, rng=0), sum(asked_about)
    few = 3 * n + 1000  # the sample is all rows here: scored once, and looked at once more for what was trained on
    assert runs[1][1] <= few
    assert runs[2][1] - runs[1][1] == 2 * n  # as they are, and as the others
    assert all(np.isfinite(f.estimate) for f in runs[3][0].findings if f.measure != "return_level")
    plan = eh.Plan(audits=["group", "tail", "projection"], tail=tail)
    kept = eh.audit(eh.read(source, **{**asked, "rows": "keep"}), model=counting, plan=plan, rng=0)
    for one, two in zip(kept.findings, runs[3][0].findings, strict=True):
        assert (one.measure, one.groups, one.verdict) == (two.measure, two.groups, two.verdict)
        assert two.estimate == pytest.approx(one.estimate, abs=2e-4, rel=1e-9, nan_ok=True)


def test_scored_cells_do_not_depend_on_division_or_order(table: pd.DataFrame) -> None:
    asked: dict[str, Any] = {"outcome": "y", "groups": ["sex", "race"], "features": ["x", "z"], "weight": "w"}
    rows = eh.read(table, **asked)
    score = probability(np.column_stack([rows.features["x"], rows.features["z"]]))
    rows = replace(rows, score=score, score_kind="probability", decision=(score >= 0.5).astype(float))
    rng = np.random.default_rng(0)
    answers = []
    for size in (10**6, 777, 1000):
        order = rng.permutation(rows.count.size)
        parts = []
        LocalBatches.of(rows.take(order), size).fold(lambda parts=parts: Parts(parts))
        first, *others = parts
        for other in rng.permutation(len(others)):
            first.merge(others[other])
        answers.append(first.data(rows))
    for other in answers[1:]:
        for name in ("count", "score", "decision", "outcome"):
            np.testing.assert_array_equal(getattr(answers[0], name), getattr(other, name))
        np.testing.assert_allclose(answers[0].weight_square, other.weight_square, rtol=1e-12)
        for name, sums in answers[0].moments.items():
            np.testing.assert_allclose(sums.wwvv, other.moments[name].wwvv, rtol=1e-11)
    assert answers[0].count.sum() == rows.rows.rows_used
    assert answers[0].moments["score"].wv.sum() == pytest.approx(float((rows.weight * rows.score).sum()), rel=1e-10)


class Parts:
    """Makes a summary of its own of every batch."""

    def __init__(self, parts: list[ScoredCells]) -> None:
        self.parts = parts

    def add(self, batch: eh.AuditData) -> None:
        cells = ScoredCells(ScoreBins.over(0.0, 1.0, 64))
        cells.add(batch)
        self.parts.append(cells)

    def merge(self, other: Parts) -> None:
        self.parts += other.parts


def test_a_model_of_rows_that_were_added_up_says_what_to_do(table: pd.DataFrame) -> None:
    """Its columns were named: what is missing are the rows."""
    data = eh.read(duckdb.from_df(table), outcome="y", groups="sex", features=["x", "z"], cluster="race", rows="cells")
    with pytest.raises(eh.UsageError, match=r"of rows that were added up; read with `rows='keep'`"):
        eh.audit(data, model=probability, rng=0)
