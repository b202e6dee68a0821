from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from evenhand.errors import DataError, MissingDependencyError
from evenhand.intake import read

GOOD = "y,sex\n1,F\n0,M\n1,M\n0,F\n"


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(path: Path | str, **options: Any) -> Any:
    return read(path, **({"outcome": "y", "groups": "sex"} | options))


@pytest.mark.parametrize("name", ["a.csv", "a[1]*?.csv", "it's; DROP TABLE.csv", "é ü.CSV", "b.tsv", "c.csv.gz"])
def test_text_files_whatever_their_name(tmp_path: Path, name: str) -> None:
    text = GOOD.replace(",", "\t") if name.endswith("tsv") else GOOD
    path = put(tmp_path / name, gzip.compress(text.encode()) if name.endswith("gz") else text)
    for source in (path, str(path)):
        assert table(source).attribute("sex").codes.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_found(tmp_path: Path, separator: str) -> None:
    path = put(tmp_path / "a.csv", GOOD.replace(",", separator))
    assert table(path).rows.rows_used == 4


@pytest.mark.parametrize("content", ["\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD.rstrip("\n")])
def test_bytes_around_the_text(tmp_path: Path, content: str) -> None:
    assert table(put(tmp_path / "a.csv", content)).rows.rows_used == 4


def test_a_header_of_words_over_columns_of_words(tmp_path: Path) -> None:
    assert table(put(tmp_path / "a.csv", "y,sex\nyes,F\nno,M\n")).rows.rows_in == 2


def test_a_text_far_down_in_a_column_of_numbers(tmp_path: Path) -> None:
    lines = [f"{i % 2},{i % 3}" for i in range(30_000)] + ["1,unknown"]
    data = table(put(tmp_path / "a.csv", "y,sex\n" + "\n".join(lines) + "\n"))
    assert data.attribute("sex").labels == ("0", "1", "2", "unknown")
    assert data.rows.rows_in == 30_001


def test_no_row_is_taken_for_a_comment_or_a_preamble(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "sex,y\n#a,1\n#a,0\nb,1\n")
    assert table(path).attribute("sex").labels == ("#a", "b")
    path = put(tmp_path / "a.csv", "sex,y,note\na,1,\nb,0,\n#,1,\nb,1,x\n")
    assert table(path).rows.rows_in == 4


def test_quoted_fields_and_names(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", '"y ""x""","a,b"\n1,"p, q"\n0,"r\ns"\n')
    data = read(path, outcome='y "x"', groups="a,b")
    assert data.attribute("a,b").labels == ("p, q", "r\ns")


def test_names_that_differ_by_case_are_different(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "y,Sex,sex\n1,A,F\n0,B,M\n")
    assert table(path).attribute("sex").labels == ("F", "M")
    pyarrow.parquet.write_table(pa.table({"y": [1, 0], "Sex": ["A", "B"], "sex": ["F", "M"]}), tmp_path / "a.parquet")
    assert table(tmp_path / "a.parquet").attribute("sex").labels == ("F", "M")
    assert table(tmp_path / "a.parquet").attribute("sex").labels == ("F", "M")


def test_nested_columns_beside_the_needed_ones(tmp_path: Path) -> None:
    nested = pa.table({"n": [{"sex": 1, "z": [2]}, {"sex": 3, "z": [4]}], "y": [1, 0], "sex": ["F", "M"]})
    pyarrow.parquet.write_table(nested, tmp_path / "a.parquet")
    assert table(tmp_path / "a.parquet").attribute("sex").labels == ("F", "M")


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "File `a.csv` is empty"),
        ("a.csv", b"  \n\n", "File `a.csv` is empty"),
        ("a.parquet", b"", "File `a.parquet` is empty"),
        ("a.csv", b"y,sex\n", "The table has no rows"),
        ("a.csv", b"y,sex,sex\n1,F,F\n0,M,M\n", "Column name `sex` occurs more than once"),
        ("a.csv", b"y,gender\n1,F\n", "Column `sex` is not in the table. Known: `y`, `gender`"),
        ("a.csv", b"y,sexe\n1,F\n", "Column `sex` is not in the table. Did you mean `sexe`?"),
        ("a.csv", b"y,sex\n1,F\xe9minin\n0,M\n", "File `a.csv` is not UTF-8 text"),
        ("a.csv", GOOD.encode("utf-16"), "not a text table: it holds binary data. UTF-16"),
        ("a.csv", PNG, "File `a.csv` is not a text table: it holds binary data"),
        ("a.csv", bytes(range(256)) * 9, "is not a text table"),
        ("a.csv.gz", b"y,sex\n1,F\n", "File `a.csv.gz` is not a whole gzip file"),
        ("a.parquet", PNG * 20, "File `a.parquet` cannot be read as a table"),
        ("a.parquet", GOOD.encode(), "File `a.parquet` cannot be read as a table"),
        ("a.arrow", PNG * 20, "File `a.arrow` is not an Arrow table"),
        ("a.arrow", b"", "File `a.arrow` is"),
        ("a.xlsx", PNG, r"File `a.xlsx` is not a whole Excel workbook"),
        ("a.xls", PNG, r"File `a.xls` has the extension `.xls`; allowed are .csv"),
        ("a", GOOD.encode(), "File `a` has the extension ``; allowed"),
        (
            "a.csv",
            b"y,sex\n1,F\n0,M,7,8\n",
            "`a.csv` cannot be read as a table: its rows do not have as many fields",
        ),
        (
            "a.csv",
            b"y,sex\n1,F\n0\n1,M\n",
            "`a.csv` cannot be read as a table: its rows do not have as many fields",
        ),
        ("a.csv", b"y,sex\n" + b"1,F\n" * 30_000 + b"0,M,7\n", "cannot be read as a table: .*Line: 30002"),
    ],
)
def test_files_that_are_not_tables(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        table(put(tmp_path / name, content))
    assert "\n" not in str(caught.value), "one sentence on one line"


def test_wrong_encoding_far_down(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not UTF-8 text"):
        table(put(tmp_path / "a.csv", GOOD.encode() + b"1,F\n" * 40_000 + b"1,\xe9\n"))


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    put(tmp_path / "decisions.csv", GOOD)
    with pytest.raises(DataError, match=r"decision.csv` does not exist. Did you mean `decisions.csv`"):
        table(tmp_path / "decision.csv")
    with pytest.raises(DataError, match=r"Its folder `.*none` does not exist either"):
        table(tmp_path / "none" / "a.csv")


def test_duplicated_names_in_parquet_and_arrow(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1, 0]), pa.array(["F", "M"]), pa.array(["F", "M"])], ["y", "sex", "sex"])
    pyarrow.parquet.write_table(twice, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, twice.schema) as writer:
        writer.write_table(twice)
    for source in (tmp_path / "a.parquet", tmp_path / "a.arrow", twice):
        with pytest.raises(DataError, match=r"Column name `sex` occurs more than once"):
            table(source)


def test_arrow_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "pyarrow" else real(name, *a))
    with pytest.raises(MissingDependencyError, match=r'pip install "evenhand\[arrow\]"'):
        table(put(tmp_path / "a.arrow", b"x"))


def test_a_file_too_large_for_a_continuous_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.csv", GOOD)
    monkeypatch.setattr("evenhand.intake.paths.ROW_LIMIT", 3)
    with pytest.raises(DataError, match=r"Continuous attribute `y` needs all .* rows in memory. Pass `rows='keep'`"):
        read(path, score=None, decision="sex", positive="F", groups=[], continuous="y")


def test_an_arrow_file_with_a_broken_column_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("naïve", pa.int64())])) as writer:
        writer.write_table(pa.table({"naïve": [1, 0]}))
    whole = path.read_bytes()
    path.write_bytes(whole.replace("naïve".encode(), b"na\xf1ive"[:6]))
    with pytest.raises(DataError, match=r"File `a.arrow` is not an Arrow table: .*can't decode byte 0xf1"):
        read(path, decision="y", groups=["g"])
