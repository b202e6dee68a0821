"""Delta and Iceberg tables as their own libraries write them: the rows are those that the same libraries read."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg import manifest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType
from pyroaring import BitMap64
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.errors import DataError, MissingDependencyError
from evenhand.intake.file_sets import lake_kind
from evenhand.intake.lakes import lake_relation

PLACES = ["a b", "c/d", "ü=%", None]
PARTED = ["year", "location"]


def rows(n: int, seed: int, *, income: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    month = rng.integers(1, 4, n)
    columns = {
        "id": np.arange(n) + seed * 1000,
        "y": rng.integers(0, 2, n),
        "d": rng.integers(0, 2, n).astype(bool),
        "sex": rng.choice(["F", "M"], n),
        "age": rng.normal(40, 9, n),
        "at": pa.array([dt.datetime(2024, m, 3, 5, tzinfo=dt.UTC) for m in month], pa.timestamp("us", "UTC")),
        "day": [dt.date(2024, m, 3) for m in month],
        "year": pa.array(rng.choice([2023, 2024], n), pa.int32()),
        "location": pa.array([PLACES[i] for i in rng.integers(0, 4, n)], pa.string()),
        "odd \"' name": rng.random(n),
        "nested": [{"a": 1, "b": [2]}] * n,
    }
    return pa.table(columns | ({"income": rng.normal(size=n)} if income else {}))


def delta(folder: Path, partition_by: list[str] | None = None) -> Path:
    """Append, delete, change rows and add a column."""
    write_deltalake(folder, rows(200, 1), partition_by=partition_by)
    write_deltalake(folder, rows(100, 2), mode="append")
    DeltaTable(folder).delete("id % 7 = 0")
    DeltaTable(folder).update(predicate="id % 11 = 0", updates={"sex": "'X'"})
    write_deltalake(folder, rows(50, 3, income=True), mode="append", schema_mode="merge")
    return folder


def delta_overwritten(folder: Path) -> Path:
    write_deltalake(folder, rows(200, 1))
    write_deltalake(folder, rows(150, 2).drop_columns(["year"]), mode="overwrite", schema_mode="overwrite")
    write_deltalake(folder, rows(30, 3).drop_columns(["year"]), mode="overwrite", predicate="id >= 2100")
    return folder


def delta_marked(folder: Path, partition_by: list[str] | None = None) -> Path:
    """Mark rows as deleted, as the protocol of Delta describes deletion vectors; `deltalake` only reads them."""
    write_deltalake(folder, rows(200, 1), partition_by=partition_by)
    write_deltalake(folder, rows(100, 2), mode="append")
    log = folder / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    file = next(action["add"] for action in actions if "add" in action)
    marked = BitMap64([0, 3, 5, 7, 9])
    raw = struct.pack("<I", 1681511377) + marked.serialize()
    vector = {"storageType": "i", "pathOrInlineDv": z85(raw), "sizeInBytes": len(raw), "cardinality": len(marked)}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    written = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {"path": file["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": file | {"deletionVector": vector}},
    ]
    (log / f"{2:020}.json").write_text("\n".join(json.dumps(action) for action in written))
    return folder


def z85(raw: bytes) -> str:
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    raw += bytes(-len(raw) % 4)
    words = struct.unpack(f">{len(raw) // 4}I", raw)
    return "".join(letters[word // 85**k % 85] for word in words for k in (4, 3, 2, 1, 0))


def delta_renamed(folder: Path, mode: str = "name") -> Path:
    """Give columns other names than those in the files, as the protocol of Delta describes it."""
    known = rows(200, 1).drop_columns(["nested"])
    inside = [f"col-{i}" for i in range(known.num_columns)]
    write_deltalake(folder, known.rename_columns(inside), partition_by=[inside[known.column_names.index("year")]])
    log = folder / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for i, (field, name) in enumerate(zip(schema["fields"], known.column_names, strict=True)):
                mapped = {"delta.columnMapping.id": i + 1, "delta.columnMapping.physicalName": field["name"]}
                field |= {"name": name, "metadata": mapped}
            told = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": str(len(inside))}
            action["metaData"] |= {
                "schemaString": json.dumps(schema), "partitionColumns": ["year"], "configuration": told
            }  # fmt: skip
    log.write_text("\n".join(json.dumps(action) for action in actions))
    return folder


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlCatalog]:
    warehouse = tmp_path_factory.mktemp("ware house")
    made = SqlCatalog("made", uri="sqlite:///:memory:", warehouse=f"file://{warehouse}")
    made.create_namespace("n")
    yield made
    made.engine.dispose()


def folder_of(table: Any) -> Path:
    return Path(table.location().removeprefix("file://"))


def iceberg(catalogue: SqlCatalog, name: str) -> Path:
    """Append, delete and overwrite rows, and add, rename and widen columns."""
    table = catalogue.create_table(f"n.{name}", schema=rows(1, 1).schema)
    table.append(rows(200, 1))
    table.append(rows(100, 2))
    table.delete("y == 1 and sex == 'F'")
    with table.update_schema() as change:
        change.add_column("income", DoubleType())
        change.rename_column("age", "years")
        change.update_column("year", LongType())
    late = rows(50, 3, income=True)
    late = late.rename_columns(["years" if c == "age" else c for c in late.column_names])
    late = late.set_column(late.column_names.index("year"), "year", late["year"].cast("int64"))
    table.append(late)
    table.overwrite(late.slice(0, 9), overwrite_filter="id >= 3000 and id < 3020")
    return folder_of(table)


def iceberg_divided(catalogue: SqlCatalog, name: str) -> Path:
    table = catalogue.create_table(f"n.{name}", schema=rows(1, 1).schema)
    with table.update_spec() as change:
        for column in (*PARTED, "day"):
            change.add_field(column, IdentityTransform())
    table.append(rows(200, 1))
    table.delete("year == 2023 and y == 0")
    with table.update_spec() as change:
        change.remove_field("location")
    table.append(rows(100, 2))
    return folder_of(table)


class DeletesWriter(manifest.ManifestWriterV2):
    """A manifest of files that hold positions of deleted rows, which `pyiceberg` reads and does not write."""

    def content(self) -> manifest.ManifestContent:
        return manifest.ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def iceberg_marked(catalogue: SqlCatalog, name: str, content: str = "POSITION_DELETES", form: str = "PARQUET") -> Path:
    table = catalogue.create_table(f"n.{name}", schema=rows(1, 1).schema)
    table.append(rows(200, 1))
    table.append(rows(100, 2))
    first = next(iter(table.scan().plan_files())).file
    folder, snapshot = folder_of(table), table.current_snapshot()
    gone = folder / "data" / "gone.parquet"
    pq.write_table(pa.table({"file_path": [first.file_path] * 4, "pos": [0, 3, 5, 9]}), gone)
    held = manifest.DataFile.from_args(
        content=manifest.DataFileContent[content], file_path=f"file://{gone}", file_format=manifest.FileFormat[form],
        partition=first.partition, record_count=4, file_size_in_bytes=gone.stat().st_size,
    )  # fmt: skip
    entry = manifest.ManifestEntry.from_args(
        status=manifest.ManifestEntryStatus.ADDED, snapshot_id=snapshot.snapshot_id, data_file=held
    )
    out = table.io.new_output(f"{table.location()}/metadata/gone.avro")
    with DeletesWriter(table.spec(), table.schema(), out, snapshot.snapshot_id, "null") as writer:
        writer.add(entry)
    all_of_them = f"{table.location()}/metadata/all.avro"
    with manifest.write_manifest_list(
        2, table.io.new_output(all_of_them), snapshot.snapshot_id, None, snapshot.sequence_number, "null"
    ) as listed:
        listed.add_manifests([*snapshot.manifests(table.io), writer.to_manifest_file()])
    state = Path(table.metadata_location.removeprefix("file://"))
    told = json.loads(state.read_text())
    told["snapshots"][-1]["manifest-list"] = all_of_them
    state.write_text(json.dumps(told))
    return folder


MAKERS: dict[str, Callable[[Path, SqlCatalog], Path]] = {
    "delta": lambda folder, _: delta(folder / "plain"),
    "delta divided": lambda folder, _: delta(folder / "divided", PARTED),
    "delta overwritten": lambda folder, _: delta_overwritten(folder / "over"),
    "delta marked": lambda folder, _: delta_marked(folder / "marked"),
    "delta marked and divided": lambda folder, _: delta_marked(folder / "marked divided", PARTED),
    "delta renamed": lambda folder, _: delta_renamed(folder / "renamed"),
    "iceberg": lambda _, catalogue: iceberg(catalogue, "plain"),
    "iceberg divided": lambda _, catalogue: iceberg_divided(catalogue, "divided"),
    "iceberg marked": lambda _, catalogue: iceberg_marked(catalogue, "marked"),
}


@pytest.fixture(scope="module", params=MAKERS)
def table(request: Any, tmp_path_factory: pytest.TempPathFactory, catalogue: SqlCatalog) -> tuple[Path, pa.Table]:
    """A folder, and what the library that wrote the table reads in it."""
    folder = MAKERS[request.param](tmp_path_factory.mktemp("lakes"), catalogue)
    if lake_kind(folder) == "delta":
        return folder, pa.table(DeltaTable(folder).scan())
    return folder, StaticTable.from_metadata(str(newest(folder))).scan().to_arrow()


def newest(folder: Path) -> Path:
    return max((folder / "metadata").glob("*.metadata.json"))


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    kept = [column for column in table.column_names if column != "nested"]
    return sorted(table.select(kept).to_pylist(), key=lambda row: row["id"])


def test_rows_columns_and_types_are_those_of_the_tables_own_library(table: tuple[Path, pa.Table]) -> None:
    folder, own = table
    stored = sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet") if file.name != "gone.parquet")
    assert own.num_rows < stored or "renamed" in folder.name  # some rows in the files are deleted ones
    with lake_relation(folder, str(lake_kind(folder)), None) as (relation, _):
        for _ in range(2):  # it can be walked over again
            assert in_order(relation.to_arrow_table()) == in_order(own)
        assert relation.columns == [column for column in own.column_names if column != "nested"]
        types = dict(zip(relation.columns, map(str, relation.dtypes), strict=True))
        assert types | {"year": ""} == types | {"year": "", "day": "DATE", "d": "BOOLEAN", "location": "VARCHAR"}
        # The files must stay on the side of a join that streams.
        assert "RIGHT" not in relation.explain()


@pytest.mark.parametrize("kept", ["auto", "keep", "cells"])
def test_read_gives_the_same_data_as_the_rows_in_memory(table: tuple[Path, pa.Table], kept: Any) -> None:
    folder, own = table
    asked = {"outcome": "y", "decision": "d", "groups": ["sex", "location"], "missing": "group", "period": "at:month"}
    data = eh.read(folder, rows=kept, memory="600MB", **asked)
    assert data.fingerprint == eh.read(own, rows="cells" if kept == "cells" else "keep", **asked).fingerprint
    assert any("table was read as of" in note for note in data.notes)


def test_a_model_walks_over_a_table_batch_by_batch(table: tuple[Path, pa.Table]) -> None:
    folder, own = table
    features = ["years" if "years" in own.column_names else "age", "odd \"' name"]
    frame = own.select(features).to_pandas()
    model = LogisticRegression().fit(frame, np.asarray(own["y"]))
    asked = {"outcome": "y", "groups": "sex", "features": features}
    plan = eh.Plan(audits=("group",), group={"metrics": ["selection_rate"]})
    whole = eh.audit(eh.read(own, **asked), model=model, plan=plan, rng=1)
    data = eh.read(folder, rows="batches", **asked)
    walked = eh.audit(data, model=model, plan=plan, rng=1)
    assert [f.estimate for f in walked.findings] == pytest.approx([f.estimate for f in whole.findings])
    drawn = data.batches.sample(10_000, seed=1)
    assert sorted(drawn.features[features[0]]) == pytest.approx(sorted(own[features[0]].to_pylist()))


def test_an_empty_table_has_no_rows(tmp_path: Path, catalogue: SqlCatalog) -> None:
    empty = folder_of(catalogue.create_table("n.empty", schema=rows(1, 1).schema))
    write_deltalake(tmp_path, rows(0, 1))
    for folder in (empty, tmp_path):
        with pytest.raises(DataError, match="The table has no rows"):
            eh.read(folder, outcome="y", groups="sex")


def test_names_of_folders_are_taken_as_they_are(tmp_path: Path) -> None:
    folder = delta_marked(tmp_path / "plain", ["location"]).rename(tmp_path / "[1] * ü ?#")
    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    for path in (folder, linked):
        assert eh.read(path, outcome="y", groups="sex").rows.rows_in == 295


def test_a_state_of_iceberg_can_be_named(catalogue: SqlCatalog) -> None:
    folder = iceberg(catalogue, "states")
    states = sorted((folder / "metadata").glob("*.metadata.json"))
    counted = [StaticTable.from_metadata(str(state)).scan().count() for state in states]
    assert len({*counted}) > 3
    for state, count in zip(states[1:], counted[1:], strict=True):
        assert eh.read(state, outcome="y", groups="sex").rows.rows_in == count
    hint = folder / "metadata" / "version-hint.text"
    shutil.copy(states[2], folder / "metadata" / "v2.metadata.json")
    for text in ("2\n", "v2", states[2].name):
        hint.write_text(text)
        assert eh.read(folder, outcome="y", groups="sex").rows.rows_in == counted[2]
    hint.unlink()
    shutil.copy(states[-1], states[-1].with_name(f"{states[-1].name[:6]}other.metadata.json"))
    with pytest.raises(DataError, match=r"2 files of metadata of the same number .* Name that file"):
        eh.read(folder, outcome="y", groups="sex")


def moved(state: Path, change: Callable[[dict[str, Any]], None]) -> None:
    told = json.loads(state.read_text())
    change(told)
    state.write_text(json.dumps(told))


def elsewhere(folder: Path) -> None:
    moved(newest(folder), lambda told: told["snapshots"][-1].update({"manifest-list": "s3://bucket/all.avro"}))


def with_feature(folder: Path) -> None:
    features = {"readerFeatures": ["variantType"], "writerFeatures": ["variantType"]}
    log = max(folder.glob("_delta_log/*.json"))
    action = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    log.write_text(log.read_text().rstrip() + "\n" + json.dumps(action))


@pytest.mark.parametrize(
    ("kind", "spoil", "message"),
    [
        (
            "delta",
            lambda f: [p.unlink() for p in f.glob("*.parquet")],
            "cannot be read as a table of Delta; .*No files",
        ),
        (
            "delta",
            lambda f: [p.write_text("x" * 99) for p in f.glob("*.parquet")],
            "as a table of Delta; check that it is whole",
        ),
        (
            "delta",
            lambda f: [p.unlink() for p in f.glob("_delta_log/*")],
            "cannot be read as a table of Delta; check that it is whole",
        ),
        (
            "delta",
            lambda f: max(f.glob("_delta_log/*.json")).write_text("{x"),
            "cannot be read as a table of Delta; check that it is whole",
        ),
        ("delta", with_feature, "variantType"),
        (
            "iceberg",
            lambda f: newest(f).write_text("{"),
            "cannot be read as a table of Iceberg; check that it is whole",
        ),
        (
            "iceberg",
            lambda f: [p.unlink() for p in f.glob("metadata/*.avro")],
            "cannot be read as a table of Iceberg; check that it is whole",
        ),
        ("iceberg", lambda f: shutil.rmtree(f / "data"), "cannot be read as a table of Iceberg; .*No files"),
        ("iceberg", elsewhere, r"has rows elsewhere \(`s3://bucket/all.avro`\)"),
    ],
)
def test_a_broken_table_is_told_in_one_sentence(
    tmp_path: Path, catalogue: SqlCatalog, request: Any, kind: str, spoil: Any, message: str
) -> None:
    name = f"broken_{abs(hash(request.node.name))}"
    folder = delta(tmp_path / "t") if kind == "delta" else iceberg(catalogue, name)
    spoil(folder)
    with pytest.raises(DataError, match=message) as caught:
        eh.read(folder, outcome="y", groups="sex")
    assert "\n" not in str(caught.value)


def test_what_cannot_be_heeded_is_refused(tmp_path: Path, catalogue: SqlCatalog) -> None:
    """Never count deleted rows, and never take a column for missing that has another mark in a file."""
    added = catalogue.create_table("n.added", schema=rows(1, 1).schema)
    pq.write_table(rows(9, 1), tmp_path / "from elsewhere.parquet")
    added.add_files([str(tmp_path / "from elsewhere.parquet")])
    for folder, message in (
        (delta_renamed(tmp_path / "by id", "id"), "uses column mapping by id, which cannot be read here"),
        (iceberg_marked(catalogue, "equal", content="EQUALITY_DELETES"), "equality deletes"),
        (iceberg_marked(catalogue, "puffin", form="PUFFIN"), "deletions in files of the form PUFFIN"),
        (folder_of(added), r"`from elsewhere.parquet`\) without the marks"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            eh.read(folder, outcome="y", groups="sex")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("package", "log"), [("deltalake", "_delta_log/0.json"), ("pyiceberg.table", "metadata/v1.metadata.json")]
)
def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, log: str) -> None:
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).write_text("{}")
    pq.write_table(rows(9, 1), tmp_path / "part-0.parquet")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=r'pip install "evenhand\[lake\]"'):
        eh.read(tmp_path, outcome="y", groups="sex")


def test_files_of_a_table_are_not_taken_by_folder_or_pattern(tmp_path: Path) -> None:
    """Old versions stay among the files, so reading all of them would count rows that were deleted."""
    folder = delta(tmp_path / "t", ["year"])
    for source in ([folder, folder], tmp_path, f"{folder}/*/*.parquet", f"{tmp_path}/*", f"{folder}/year=2023"):
        with pytest.raises(
            DataError, match=r"is a table of Delta, whose files also hold deleted rows; name this folder"
        ):
            eh.read(source, outcome="y", groups="sex")
