"""Rows that stay where they are: coded as the whole, added up alike in any division and order."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.audits.projection import batched
from evenhand.audits.tail import changes
from evenhand.errors import DataError, UsageError
from evenhand.intake.batches import LocalBatches, batches_of, pieces
from evenhand.intake.engines.spark_batches import MOST_PARTS
from evenhand.intake.row_sample import RowSample
from evenhand.models.adapter import ASKED_ROWS
from evenhand.run import BINS


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    n = 3000
    return pd.DataFrame(
        {
            "paid": rng.choice(["yes", "no", None], n, p=[0.5, 0.4, 0.1]),
            "p": rng.random(n).round(3),
            "sex": rng.choice(["F", "M", "", None], n, p=[0.5, 0.4, 0.05, 0.05]),
            "race": rng.choice(["a & b", "c", "b & c", "a"], n),
            "age": rng.integers(18, 80, n),
            "region": rng.choice(["n", "s", None], n, p=[0.5, 0.4, 0.1]),
            "town": rng.integers(0, 3, n),
            "x": rng.normal(size=n),
            "job": rng.choice(["clerk", "smith", " ", None], n),
            "member": rng.choice([True, False], n),
            "w": rng.choice([0.0, 0.5, 2.0], n),
            "times": rng.integers(0, 4, n),
        }
    )


ROLES: dict[str, Any] = {
    "outcome": "paid",
    "score": "p",
    "threshold": 0.5,
    "groups": ["sex", "race", "age"],
    "cuts": {"age": [30, 50]},
    "features": ["x", "job", "member", "age", "sex"],
}
FORMS = ["parquet", "csv", "relation"]


def source_of(table: pd.DataFrame, form: str, folder: Path) -> Any:
    if form == "relation":
        return duckdb.from_df(table)
    path = folder / f"rows.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    else:
        pyarrow.parquet.write_table(pa.Table.from_pandas(table, preserve_index=False), path)
    return path


def rows_of(data: eh.AuditData) -> list[eh.AuditData]:
    class Kept:
        def __init__(self) -> None:
            self.rows: list[eh.AuditData] = []

        def add(self, batch: eh.AuditData) -> None:
            self.rows.append(batch)

        def merge(self, other: Kept) -> None:
            self.rows += other.rows

    assert data.batches is not None
    return data.batches.fold(Kept).rows


def assert_same_rows(one: eh.AuditData, two: eh.AuditData) -> None:
    for name in ("outcome", "decision", "score", "weight", "count", "weight_square"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for a, b in zip(one.attributes, two.attributes, strict=True):
        assert (a.name, a.labels, a.unknown) == (b.name, b.labels, b.unknown)
        np.testing.assert_array_equal(a.codes, b.codes)
    assert (one.strata is None) == (two.strata is None)
    if one.strata is not None and two.strata is not None:
        assert one.strata.labels == two.strata.labels
        np.testing.assert_array_equal(one.strata.codes, two.strata.codes)
    assert list(one.features) == list(two.features)
    for name, values in one.features.items():
        np.testing.assert_array_equal(values, two.features[name])
    assert one.feature_types == two.feature_types
    assert (one.outcome_kind, one.score_kind, one.labels) == (two.outcome_kind, two.score_kind, two.labels)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"missing": "group", "intersections": True},
        {"missing": "unknown", "groups": ["sex", "race"], "cuts": {}, "intersections": [("sex", "race")]},
        {"strata": ["region", "town"], "weight": "w"},
        {"strata": "region", "missing": "group"},
        {"weight": "times", "weight_kind": "frequency"},
        {"outcome": "x", "features": ["job"], "score": None, "threshold": None},
        {"positive": "no", "outcome": "paid", "decision": "member", "score": None, "threshold": None},
    ],
)
def test_batches_are_coded_as_the_whole(
    table: pd.DataFrame, form: str, more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.intake.engines.duck.BATCH_ROWS", 700)
    source = source_of(table, form, tmp_path)
    asked = {**ROLES, **more}
    kept, batched = eh.read(source, **asked, rows="keep"), eh.read(source, **asked, rows="batches")
    parts = rows_of(batched)
    assert len(parts) > 1
    assert_same_rows(eh.AuditData.joined(parts), kept)
    assert batched.batches is not None
    assert batched.rows.rows_used == kept.rows.rows_used
    assert batched.batches.rows == int(batched.count.sum()) == int(kept.count.sum())
    assert batched.batches.features == tuple(kept.features)
    cells = eh.read(source, **asked, rows="cells")
    assert batched.fingerprint == cells.fingerprint
    assert batched.feature_types == kept.feature_types
    assert batched.notes[-1] == "Rows stay where they are: a model is asked about them batch by batch."
    assert not any("Features are not collected" in note for note in batched.notes)


def test_large_sources_with_features_become_batches(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.intake.paths.ROW_LIMIT", len(table) - 1)
    for form in FORMS:
        source = source_of(table, form, tmp_path)
        assert eh.read(source, **ROLES).batches is not None
        assert eh.read(source, **{**ROLES, "features": None}).batches is None
        assert eh.read(source, **ROLES, rows="cells").batches is None
        assert eh.read(source, **ROLES, cluster="town").batches is None
    monkeypatch.setattr("evenhand.intake.paths.ROW_LIMIT", len(table))
    assert eh.read(source_of(table, "parquet", tmp_path), **ROLES).batches is None


def test_what_cannot_be_batches_says_so(table: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match=r"rows are in memory\. Pass `rows='keep'`"):
        eh.read(table, **ROLES, rows="batches")
    with pytest.raises(UsageError, match="Name them in `features=`"):
        eh.read(duckdb.from_df(table), **{**ROLES, "features": None}, rows="batches")
    with pytest.raises(UsageError, match="`cluster` is for the group audit"):
        eh.read(duckdb.from_df(table), **ROLES, cluster="town", rows="batches")
    with pytest.raises(DataError, match="needs rows, not batches"):
        eh.read(duckdb.from_df(table), **ROLES, continuous="x", rows="batches")


def test_a_text_far_down_a_csv_makes_the_column_text(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    lines = [f"{i % 2},{'fm'[i % 2]},{i}" for i in range(30_000)]
    path.write_text("\n".join(["d,sex,x", *lines, "1,f,many"]), encoding="utf-8")
    data = eh.read(path, decision="d", groups="sex", features="x", rows="batches")
    assert rows_of(data)[-1].features["x"][-1] == "many"


def test_a_poisoned_batch_says_where(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.intake.engines.duck.BATCH_ROWS", 1000)
    data = eh.read(duckdb.from_df(table), **ROLES, rows="batches")
    assert data.batches is not None

    class Poisoned:
        def add(self, batch: eh.AuditData) -> None:
            if (batch.features["x"] > 3).any():
                raise DataError("The model failed.")

        def merge(self, other: Poisoned) -> None: ...

    used = table["paid"].notna() & table["sex"].isin(["F", "M"])
    first = int(np.flatnonzero((table["x"] > 3) & used)[0])
    with pytest.raises(DataError, match=r"^The model failed\. This was in rows [\d,]+ to [\d,]+\.$") as caught:
        data.batches.fold(Poisoned)
    begin, end = (int(word.replace(",", "").rstrip(".")) for word in str(caught.value).split() if word[0].isdigit())
    assert 1 <= begin <= first + 1 <= end <= 3000
    assert end - begin < 2048  # DuckDB hands out whole vectors of 2,048 rows


def test_a_walk_that_ended_early_leaves_the_rows_to_the_next_one() -> None:
    """The error is held, as by a run that goes on with its other audits: DuckDB allows one open result at a time."""
    source = duckdb.sql("SELECT i % 2 AS d, i % 3 AS sex, i AS x FROM range(1_000_000) t(i)")
    data = eh.read(source, decision="d", groups="sex", features="x", rows="batches")
    assert data.batches is not None

    class Picky:
        rows, most = 0, 100_000

        def add(self, batch: eh.AuditData) -> None:
            self.rows += batch.count.size
            if self.rows > self.most:
                raise DataError("No more.")

        def merge(self, other: Picky) -> None: ...

    class Patient(Picky):
        most = 1_000_000

    with pytest.raises(DataError, match=r"No more\. This was in rows") as held:
        data.batches.fold(Picky)
    assert data.batches.fold(Patient).rows == 1_000_000, held


@given(st.lists(st.integers(1, 80), min_size=2, max_size=20), st.integers(0, 2**31), st.integers(1, 400))
@settings(max_examples=40, deadline=None)
def test_a_sample_does_not_depend_on_division_or_order(sizes: list[int], seed: int, wanted: int) -> None:
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    data = eh.AuditData.from_arrays(
        decision=rng.integers(0, 2, n),
        groups={"g": np.arange(n) % 2},
        features={"x": rng.integers(0, 60, n), "job": rng.choice(["s", "t"], n)},
    )
    whole = batches_of(data).sample(wanted, seed=seed)
    assert whole.rows.rows_used == min(wanted, n)
    order = rng.permutation(n)
    assert_same_rows(whole, LocalBatches.of(data.take(order), sizes[0]).sample(wanted, seed=seed))
    summaries = []
    for part in np.split(order, np.cumsum(sizes)[:-1]):
        summary = RowSample(wanted, seed)
        summary.add(data.take(part))
        summaries.append(summary)
    while len(summaries) > 1:  # merged in any shape
        last = summaries.pop(int(rng.integers(len(summaries))))
        summaries[int(rng.integers(len(summaries)))].merge(last)
    assert_same_rows(whole, summaries[0].drawn(wanted))


def counted_walks(data: eh.AuditData, size: int) -> tuple[LocalBatches, list[int]]:
    walks: list[int] = []

    def read() -> Any:
        walks.append(1)
        return pieces(data, size)

    return LocalBatches(read, int(data.count.sum()), [*data.features]), walks


class Rows:
    """How many rows there are."""

    def __init__(self) -> None:
        self.rows = 0

    def add(self, batch: eh.AuditData) -> None:
        self.rows += int(batch.count.sum())

    def merge(self, other: Rows) -> None:
        self.rows += other.rows


def test_rows_are_drawn_on_the_first_walk_and_are_those_of_a_walk_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.intake.batches.DRAWN_ROWS", 500)
    rng = np.random.default_rng(3)
    n = 40_000
    data = eh.AuditData.from_arrays(
        decision=rng.integers(0, 2, n), groups={"g": rng.integers(0, 2, n)}, features={"x": rng.normal(size=n)}
    )
    batches, walks = counted_walks(data, 3000)
    assert batches.fold(Rows).rows == n
    drawn = {rows: batches.sample(rows, seed=0) for rows in (500, 40)}
    assert len(walks) == 1
    for rows, sample in drawn.items():
        assert_same_rows(sample, batches_of(data).sample(rows, seed=0))
        assert sample.rows.rows_used == rows
    assert_same_rows(batches.sample(600, seed=0), batches_of(data).sample(600, seed=0))  # more than were drawn
    assert len(walks) == 2
    assert_same_rows(batches.sample(500, seed=7), batches_of(data).sample(500, seed=7))  # others than were drawn
    assert len(walks) == 3


def test_rows_are_drawn_again_where_equal_ones_leave_too_few_below_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.intake.batches.DRAWN_ROWS", 500)
    x = np.arange(40_000) % 900  # each content at least 44 times
    data = eh.AuditData.from_arrays(decision=x % 2, groups={"g": x % 3}, features={"x": x})
    batches, walks = counted_walks(data, 3000)
    assert batches.fold(Rows).rows == 40_000
    assert_same_rows(batches.sample(500, seed=0), batches_of(data).sample(500, seed=0))
    assert len(walks) == 3


def test_what_is_expected_is_added_up_in_the_next_walk_and_given_once() -> None:
    data = eh.AuditData.from_arrays(decision=[0, 1, 1], groups={"g": ["a", "b", "b"]}, features={"x": [1.0, 2.0, 3.0]})
    batches, walks = counted_walks(data, 2)
    batches.expect("rows", Rows)
    assert batches.fold(Rows).rows == 3
    assert batches.expected("rows", Rows).rows == 3
    assert len(walks) == 1
    assert batches.expected("rows", Rows).rows == 3  # nobody expected it again
    assert len(walks) == 2
    batches.expect("rows", Rows)
    assert batches.expected("rows", Rows).rows == 3  # asked for before any other walk
    assert batches.fold(Rows).rows == 3
    assert len(walks) == 4
    assert not batches._ahead


def test_a_part_holds_little_more_than_its_share_of_a_sample() -> None:
    rng = np.random.default_rng(4)
    data = eh.AuditData.from_arrays(
        decision=rng.integers(0, 2, 20_000),
        groups={"g": np.arange(20_000) % 2},
        features={"x": rng.normal(size=20_000)},
    )
    part = RowSample.sparing(1000, 0, of=200_000)()  # a tenth of the rows
    part.add(data)
    held = part.drawn(1000).count.size
    assert 70 < held < 180  # 124 are expected below the bound
    assert not part.holds(1000)


def test_a_sample_is_a_fair_one() -> None:
    n = 20_000
    x = np.arange(n) % 5000  # each content four times
    data = eh.AuditData.from_arrays(decision=x % 2, groups={"g": x % 3}, features={"x": x})
    samples = [batches_of(data).sample(2000, seed=i) for i in range(40)]
    share = [float(np.average(s.features["x"] < 1000, weights=s.count)) for s in samples]
    # 2,000 of 20,000 rows, drawn as at least 500 contents: the standard error of the mean of 40 shares is at most .003.
    assert abs(np.mean(share) - 0.2) < 4 * math.sqrt(0.2 * 0.8 / 500 / 40)
    assert len({round(s, 6) for s in share}) > 20


def test_the_page_states_the_constants_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "big-data.md").read_text(encoding="utf-8")
    assert changes.EXACT_ROWS == batched.EXACT_ROWS
    for words in (
        f"{changes.EXACT_ROWS:,} people",
        f"the {changes.LARGEST:,} largest",
        f"1/{2**changes.DIGITS:,} of its size",
        f"{batched.EXACT_ROWS:,} rows",
        f"1/{2**batched.DIGITS:,} of their size",
        f"a sample of {ASKED_ROWS:,} rows | notes",
        f"a sample of {batched.SEARCHED_ROWS:,} rows stands for all",
        f"{BINS:,} bins",
        f"Up to {MOST_PARTS} of them",
    ):
        assert words in page, words
