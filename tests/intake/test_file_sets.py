"""Several files that make one table: folders that engines wrote, patterns, lists, partitions in folders' names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from evenhand.errors import DataError
from evenhand.intake import AuditData, read

HALVES: tuple[Mapping[str, Sequence[Any]], ...] = (
    {"y": [1, 0, 1], "p": [0.25, 0.5, 0.75], "sex": ["F", "M", "M"]},
    {"y": [0, 1, 0, 1], "p": [0.125, 1.0, 0.0, 0.5], "sex": ["F", "F", "M", "X"]},
)
WHOLE = {name: [*HALVES[0][name], *HALVES[1][name]] for name in HALVES[0]}


def csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def parquet(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    pyarrow.parquet.write_table(pa.table(dict(columns)), path)
    return path


def arrow(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    table = pa.table(dict(columns))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


WRITERS = {"csv": csv, "parquet": parquet, "arrow": arrow}


def table(source: Any, **options: Any) -> AuditData:
    return read(source, **({"outcome": "y", "score": "p", "groups": "sex"} | options))


def written(folder: Path, form: str) -> Path:
    """Write the halves as Spark does, with the files that it puts beside its parts."""
    folder.mkdir()
    for name in ("_SUCCESS", "._SUCCESS.crc", f".part-0.{form}.crc"):
        (folder / name).write_bytes(b"crc")
    for i, half in enumerate(HALVES):
        WRITERS[form](folder / f"part-{i}.{form}", half)
    return folder


@pytest.mark.parametrize("rows", ["keep", "cells"])
@pytest.mark.parametrize("form", WRITERS)
def test_parts_are_one_table(tmp_path: Path, form: str, rows: str) -> None:
    folder = written(tmp_path / "data", form)
    parts = sorted(folder.glob("part*"))
    whole = table(WHOLE, rows=rows)
    for source in (folder, str(folder), folder / "*", str(folder / f"*.{form}"), tmp_path / "**" / "part*", parts):
        got = table(source, rows=rows)
        assert got.fingerprint == whole.fingerprint
        assert got.rows == whole.rows


def test_a_folder_that_spark_wrote(tmp_path: Path, spark: Any) -> None:
    names = list(WHOLE)
    rows = list(zip(*WHOLE.values(), strict=True))
    frame = spark.createDataFrame([(*row, 2020 + i % 2) for i, row in enumerate(rows)], [*names, "year"])
    expected = table({**WHOLE, "year": [2020 + i % 2 for i in range(len(rows))]}, groups=["sex", "year"])
    frame.repartition(3).write.parquet(str(tmp_path / "flat"))
    frame.write.partitionBy("year").parquet(str(tmp_path / "parts"))
    frame.write.partitionBy("year").csv(str(tmp_path / "texts"), header=True)
    assert (tmp_path / "flat" / "_SUCCESS").exists()
    for folder in ("flat", "parts", "texts"):
        assert table(tmp_path / folder, groups=["sex", "year"]).fingerprint == expected.fingerprint, folder


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_names_of_folders_are_columns(tmp_path: Path, form: str) -> None:
    for region, half in zip(("north", "so%20uth"), HALVES, strict=True):
        folder = tmp_path / "data" / f"region={region}" / "kind=a'b"
        folder.mkdir(parents=True)
        WRITERS[form](folder / f"0.{form}", half)
    expected = table({**WHOLE, "region": ["north"] * 3 + ["so uth"] * 4}, groups=["sex", "region"])
    for source in (tmp_path / "data", tmp_path / "data" / "region=*", tmp_path / "data" / "*" / "*" / f"*.{form}"):
        got = table(source, groups=["sex", "region"])
        assert got.attribute("region").labels == ("north", "so uth")
        assert got.fingerprint == expected.fingerprint
    one = tmp_path / "data" / "region=north"
    assert table(one, strata=["kind"]).strata.labels == ("a'b",)  # type: ignore[union-attr]
    with pytest.raises(DataError, match=r"Column `region` is not in the table"):
        table(one / "kind=a'b" / f"0.{form}", groups=["sex", "region"])


def test_a_missing_value_in_the_name_of_a_folder(tmp_path: Path) -> None:
    for region, half in zip(("north", "__HIVE_DEFAULT_PARTITION__"), HALVES, strict=True):
        (tmp_path / f"region={region}").mkdir()
        parquet(tmp_path / f"region={region}" / "0.parquet", half)
    got = table(tmp_path, strata=["region"])
    assert dict(got.rows.dropped) == {"`region` is missing": 4}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_parts_whose_numbers_have_different_types(tmp_path: Path, form: str) -> None:
    """The first part holds whole numbers, the second fractions, which must not be rounded."""
    WRITERS[form](tmp_path / f"0.{form}", {"y": [1, 0], "p": [1, 0], "sex": ["F", "M"]})
    WRITERS[form](tmp_path / f"1.{form}", {"y": [1, 0], "p": [0.25, 0.75], "sex": ["F", "M"]})
    assert table(tmp_path).score.tolist() == [1.0, 0.0, 0.25, 0.75]  # type: ignore[union-attr]


def test_a_text_in_a_later_part_of_a_column_of_numbers(tmp_path: Path) -> None:
    csv(tmp_path / "0.csv", {"y": [1, 0], "p": [0.5, 0.5], "sex": [1, 2]})
    csv(tmp_path / "1.csv", {"y": [1, 0], "p": [0.5, 0.5], "sex": ["F", "M"]})
    assert table(tmp_path).attribute("sex").labels == ("1", "2", "F", "M")


def test_columns_of_parts_in_another_order(tmp_path: Path) -> None:
    parquet(tmp_path / "0.parquet", HALVES[0])
    parquet(tmp_path / "1.parquet", dict(reversed(HALVES[1].items())))
    assert table(tmp_path).fingerprint == table(WHOLE).fingerprint
    csv(tmp_path / "0.csv", HALVES[0])
    csv(tmp_path / "1.csv", dict(reversed(HALVES[1].items())))
    with pytest.raises(DataError, match=r"`1.csv` has the same columns in another order"):
        table(tmp_path / "*.csv")


def _mixed(folder: Path) -> Path:
    csv(folder / "a.csv", HALVES[0])
    parquet(folder / "b.parquet", HALVES[1])
    return folder


def _stranger(folder: Path) -> Path:
    parquet(folder / "b.parquet", HALVES[1])
    (folder / "notes.docx").write_text("x")
    return folder


def _hidden(folder: Path) -> Path:
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    parquet(folder / "_temporary" / "a.parquet", HALVES[0])
    return folder


def _broken(folder: Path) -> Path:
    parquet(folder / "a.parquet", HALVES[0])
    (folder / "b.parquet").write_bytes((folder / "a.parquet").read_bytes()[:200])
    return folder


def _empty_part(folder: Path) -> Path:
    parquet(folder / "a.parquet", HALVES[0])
    (folder / "b.parquet").touch()
    return folder


def _columns(form: str) -> Any:
    def make(folder: Path) -> Path:
        WRITERS[form](folder / f"a.{form}", HALVES[0])
        WRITERS[form](folder / f"b.{form}", {name: HALVES[1][name] for name in ("y", "p")})
        return folder

    return make


def _more(folder: Path) -> Path:
    parquet(folder / "a.parquet", HALVES[0])
    parquet(folder / "b.parquet", {**HALVES[1], "z": [1, 2, 3, 4]})
    return folder


def _types(folder: Path) -> Path:
    parquet(folder / "a.parquet", HALVES[0])
    parquet(folder / "b.parquet", {**HALVES[1], "y": ["no", "yes", "no", "yes"]})
    return folder


def _half_partitioned(folder: Path) -> Path:
    parquet(folder / "a.parquet", HALVES[0])
    (folder / "year=2024").mkdir()
    parquet(folder / "year=2024" / "b.parquet", HALVES[1])
    return folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder, r"Folder `.*` holds no table; write .csv"),
        (_hidden, r"Folder `.*` holds no table"),
        (lambda folder: folder / "*.parquet", r"No file matches the pattern `.*\*.parquet`; check"),
        (
            _mixed,
            r"holds files of different forms: Parquet \(`b.parquet`\) and CSV \(`a.csv`\). Name those of one form",
        ),
        (_stranger, r"holds `notes.docx`, which is no table; allowed are .*pattern such as `.*\*.parquet`"),
        (_broken, r"cannot be read as a table: .*b.parquet"),
        (_empty_part, r"Part `.*b.parquet` of `.*` is empty"),
        (_columns("parquet"), r"different columns: `b.parquet` lacks `sex`, compared with `a.parquet`"),
        (_columns("csv"), r"different columns: `b.csv` has `y`, `p`, and `a.csv` has `y`, `p`, `sex`"),
        (_columns("arrow"), r"Column `sex` is not in the table|different columns"),
        (_more, r"different columns: `b.parquet` has `z` too"),
        (_types, r"Column `y` holds BIGINT in part `a.parquet` of .* and VARCHAR in part `b.parquet`"),
        (_half_partitioned, r"not divided by folders in one way: `.*a.parquet` lies below no such folder"),
    ],
)
def test_folders_that_are_not_one_table(tmp_path: Path, make: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        table(make(tmp_path))
    assert "\n" not in str(caught.value), "one sentence on one line"
