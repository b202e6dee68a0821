"""The tail audit of rows that stay where they are says what it says of rows in memory."""

from __future__ import annotations

import pickle
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.audits.tail import changes as changes_module
from evenhand.audits.tail.changes import Changes
from evenhand.errors import DataError
from evenhand.kernels.extremes.logit_peak import find_peak
from evenhand.models import audited_model


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    n = 6000
    sex = rng.choice(["F", "M"], n)
    x, z = rng.normal(size=n), rng.exponential(size=n)
    score = 1 / (1 + np.exp(-x - 0.7 * (sex == "M") * z))
    return pd.DataFrame(
        {
            "y": (rng.random(n) < score).astype(int),
            "sex": sex,
            "race": rng.choice(["a", "b", "c"], n),
            "male": (sex == "M") * 1.0,
            "x": x,
            "z": z,
            "times": rng.integers(1, 4, n),
        }
    )


def crossed(frame: Any) -> Any:
    """A change that is not the same for everybody: no closed form, a tail to fit."""
    return 1 / (1 + np.exp(-frame["x"] - 0.4 * (frame["sex"] == "M") * np.tanh(frame["z"])))


def unbounded(X: Any) -> Any:
    return 10 * X[:, 0] + X[:, 1] * X[:, 2]


ROWS: dict[str, Any] = {"outcome": "y", "groups": "sex", "features": ["x", "z", "sex"]}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.intake.engines.duck.BATCH_ROWS", 2048)


def numbers(value: Any) -> Any:
    """All numbers of evidence, by where they stand."""
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [numbers(v) for v in value]
    return pytest.approx(value, rel=1e-8, abs=1e-12, nan_ok=True) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("model", "more", "asked"),
    [
        (crossed, {}, {"measures": ["ecd", "acd", "cvar"]}),
        (crossed, {"weight": "times", "weight_kind": "frequency"}, {"measures": ["ecd", "acd"]}),
        ("logistic", {"features": ["x", "z", "male"]}, {"flip": "male", "horizon": 100_000}),
        ("logistic", {"features": ["x", "z", "male"]}, {"flip": {"F": {"male": 0.0}, "M": {"male": 1.0}}}),
        (unbounded, {"features": ["x", "z", "male"], "outcome": "x"}, {"flip": ["male"], "measures": ["cvar"]}),
        (crossed, {"groups": ["sex", "race"]}, {"attribute": "race", "flip": None}),
    ],
)
def test_numbers_are_those_of_rows_in_memory(
    table: pd.DataFrame, model: Any, more: dict[str, Any], asked: dict[str, Any]
) -> None:
    rows = {**ROWS, **more}
    if model == "logistic":
        model = LogisticRegression().fit(table[rows["features"]], table["y"])
    source = duckdb.from_df(table)
    kept = eh.audit_tail(eh.read(source, **rows, rows="keep"), model=model, rng=0, **asked)
    batched = eh.audit_tail(eh.read(source, **rows, rows="batches"), model=model, rng=0, **asked)
    assert len(kept) == len(batched)
    for one, two, seen, told in zip(kept, batched, kept.evidence, batched.evidence, strict=True):
        assert two.to_dict() == numbers(one.to_dict())
        assert told.to_dict() == numbers(seen.to_dict())


@pytest.mark.parametrize(("first", "walks"), [(2_000, 1), (1, 2)])
def test_one_walk_is_enough_where_the_first_rows_show_how_groups_are_recorded(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, first: int, walks: int
) -> None:
    monkeypatch.setattr("evenhand.intake.batches.FIRST_ROWS", first)
    source = duckdb.from_df(table)
    data = eh.read(source, **ROWS, rows="batches")
    assert data.batches is not None
    folded: list[Any] = []
    fold = data.batches.fold
    monkeypatch.setattr(data.batches, "fold", lambda make: folded.append(make) or fold(make))
    kept = eh.audit_tail(eh.read(source, **ROWS, rows="keep"), model=crossed, rng=0)
    batched = eh.audit_tail(data, model=crossed, rng=0)
    assert len(folded) == walks
    assert [f.to_dict() for f in batched] == [numbers(f.to_dict()) for f in kept]


def test_many_changes_are_counted_in_bins_within_their_bound(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = duckdb.from_df(table)
    asked: dict[str, Any] = {"model": crossed, "measures": ["ecd", "acd", "cvar"], "rng": 0}
    kept = eh.audit_tail(eh.read(source, **ROWS, rows="keep"), **asked)
    monkeypatch.setattr(changes_module, "EXACT_ROWS", 1000)
    monkeypatch.setattr(changes_module, "LARGEST", 512)
    monkeypatch.setattr(changes_module, "DIGITS", 8)
    binned = eh.audit_tail(eh.read(source, **ROWS, rows="batches"), **asked)
    for one, two, seen, told in zip(kept, binned, kept.evidence, binned.evidence, strict=True):
        assert (one.measure, one.groups, one.counts) == (two.measure, two.groups, two.counts)
        assert two.estimate == pytest.approx(one.estimate, rel=2**-8, abs=0.1 * 2**-8)
        if one.measure == "acd":
            assert two.estimate == pytest.approx(one.estimate, rel=1e-10)
        if one.measure == "return_level":
            assert two.pvalue == pytest.approx(one.pvalue, rel=1e-12)  # counts above the margin are exact
            assert told.largest_relative_error == 2**-8
            assert seen.largest_relative_error is None
            assert repr(told.fit) == repr(seen.fit)  # the largest changes are kept as they are


@given(st.integers(0, 10**6), st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_changes_do_not_depend_on_division_or_order(seed: int, pieces: int) -> None:
    rng = np.random.default_rng(seed)
    before = rng.random(700).round(2)
    after = np.clip(before + rng.choice([0.0, 0.05, -0.01, 0.3], 700) * rng.random(700), 0, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes_module, "EXACT_ROWS", 100)
        patch.setattr(changes_module, "LARGEST", 64)
        whole = Changes(700, (0.0, 0.01))
        whole.add(before, after)
        parts = []
        for rows in np.array_split(rng.permutation(700), pieces):
            part = Changes(700, (0.0, 0.01))
            part.add(before[rows], after[rows])
            parts.append(part)
        while len(parts) > 1:
            last = parts.pop(int(rng.integers(len(parts))))
            parts[int(rng.integers(len(parts)))].merge(last)
        one, two = whole.sample(), parts[0].sample()
    np.testing.assert_array_equal(one.ends, two.ends)
    np.testing.assert_allclose(one.values, two.values, rtol=1e-12, atol=1e-15)
    exact = np.sort(after - before)[::-1]
    np.testing.assert_array_equal(two.head(64), exact[:64])
    np.testing.assert_allclose(two.head(700), exact, rtol=2.0**-12, atol=1e-15)
    assert two.mean() == pytest.approx(exact.mean(), rel=1e-10)
    for cut in (0.0, 0.01):
        assert two.above(cut) == (exact > cut).sum()


@pytest.mark.parametrize("pieces", [1, 40])
def test_the_peak_is_the_one_of_all_people(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    monkeypatch.setattr(changes_module, "LARGEST", 600)
    eta = np.random.default_rng(6).normal(size=20_000)
    before, after = special.expit(eta), special.expit(eta + 0.7)
    changes = Changes()
    for rows in np.array_split(np.arange(eta.size), pieces):
        changes.add(before[rows], after[rows])
    changes = pickle.loads(pickle.dumps(changes))
    assert changes.nearest_peak().size == 600
    np.testing.assert_array_equal(changes.sample().values, np.sort(0.0 - (before - after))[::-1])
    one = find_peak(before, 0.7, np.random.default_rng(0))
    two = find_peak(changes.nearest_peak(), 0.7, np.random.default_rng(0), rows=eta.size)
    assert one is not None
    assert one == two


def test_a_column_that_does_not_record_the_group_is_refused(table: pd.DataFrame) -> None:
    data = eh.read(duckdb.from_df(table), **ROWS, rows="batches")
    with pytest.raises(DataError, match="so it does not record the attribute alone"):
        eh.audit_tail(data, model=crossed, flip="z")


def test_a_poisoned_row_says_where(table: pd.DataFrame) -> None:
    poisoned = table.assign(x=np.where(np.arange(len(table)) == 4321, 1e6, table["x"]))

    def fails(frame: Any) -> Any:
        score = crossed(frame)
        return score.where(frame["x"] < 1e5, np.nan)

    data = eh.read(duckdb.from_df(poisoned), **ROWS, rows="batches")
    few = eh.read(duckdb.from_df(table.iloc[:100]), **ROWS, rows="batches")
    model = audited_model(fails, few)  # the rows that show what the model takes are not poisoned
    with pytest.raises(DataError, match=r"not finite numbers\..*This was in rows 4,097 to 6,000\.$"):
        eh.audit_tail(data, model=model)
