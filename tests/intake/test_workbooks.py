"""Excel workbooks: stored values only, one sentence for whatever is wrong, and no bombs."""

from __future__ import annotations

import datetime
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest

import evenhand as eh
from evenhand.errors import DataError, MissingDependencyError, UsageError
from evenhand.intake import workbooks

HEAD = ["y", "d", "p", "sex", "w"]
ROLES = {"outcome": "y", "decision": "d", "score": "p", "groups": ["sex"]}


def _people(n: int = 60) -> list[list[object]]:
    rng = np.random.default_rng(3)
    sexes = rng.choice(["F", "M"], n)
    return [
        ["yes" if rng.random() < 0.5 else "no", int(rng.random() < 0.4), round(float(rng.random()), 3), str(s), 1]
        for s in sexes
    ]


def _write(path: Path, rows: list[list[object]], title: str = "people", more: tuple[str, ...] = ()) -> Path:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    for name in more:
        book.create_sheet(name).append(["something", "else"])
    book.save(path)
    return path


def _replaced(path: Path, part: str, content: bytes) -> Path:
    """Write the workbook again with another content of one part."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, held in {**parts, part: content}.items():
            new.writestr(name, held)
    return path


def test_a_workbook_and_a_csv_of_the_same_rows_are_the_same_data(tmp_path):
    rows = _people()
    book = eh.read(_write(tmp_path / "a.xlsx", [HEAD, *rows]), **ROLES)
    text = tmp_path / "a.csv"
    text.write_text("\n".join(",".join(map(str, row)) for row in [HEAD, *rows]) + "\n")
    plain = eh.read(text, **ROLES)
    assert book.fingerprint == plain.fingerprint
    assert eh.audit_group(book, rng=0).to_rows() == eh.audit_group(plain, rng=0).to_rows()


def test_the_first_visible_sheet_is_read_and_the_others_are_named(tmp_path):
    path = _write(tmp_path / "a.xlsx", [HEAD, *_people()], more=("notes", "old"))
    book = openpyxl.load_workbook(path)
    book.move_sheet("notes", -1)
    book["notes"].sheet_state = "hidden"
    book.save(path)
    data = eh.read(path, **ROLES)
    assert data.rows.rows_used == 60
    assert any("the sheet `people` was read; it also has `notes`, `old`" in note for note in data.notes)
    assert not any("was read" in note for note in eh.read(path, sheet="people", **ROLES).notes)
    with pytest.raises(DataError, match=r"has no sheet `peopel`\. Did you mean `people`\?"):
        eh.read(path, sheet="peopel", **ROLES)


def test_sheet_is_refused_where_there_is_no_workbook(tmp_path):
    (tmp_path / "a.csv").write_text("y,sex\n1,F\n")
    for source in (tmp_path / "a.csv", {"y": [1, 0], "sex": ["F", "M"]}):
        with pytest.raises(UsageError, match="`sheet=` is for Excel workbooks"):
            eh.read(source, outcome="y", groups="sex", sheet="people")


def test_empty_rows_are_left_out_and_said_and_those_at_the_end_are_no_rows(tmp_path):
    rows = _people()
    path = _write(tmp_path / "a.xlsx", [[None], HEAD, *rows[:5], [None] * 5, ["", " "], *rows[5:], [None], ["  "]])
    data = eh.read(path, **ROLES)
    assert data.rows.rows_used == len(rows)
    assert any("2 empty rows between its rows" in note for note in data.notes)


def test_dates_numbers_and_truth_values_keep_their_meaning(tmp_path):
    days = [datetime.datetime(2024, 1 + i % 3, 5) for i in range(60)]
    rows = [[*row, day, i % 2 == 0] for i, (row, day) in enumerate(zip(_people(), days, strict=True))]
    path = _write(tmp_path / "a.xlsx", [[*HEAD, "day", "ok"], *rows])
    data = eh.read(path, outcome="y", decision="ok", groups=["day"])
    assert data.attributes[0].labels == ("2024-01-05", "2024-02-05", "2024-03-05")
    assert data.decision.tolist() == [float(i % 2 == 0) for i in range(60)]


def test_formulas_are_read_as_their_stored_values_and_never_calculated(tmp_path):
    rows = [[*row[:3], "=1+1" if i == 7 else row[3], row[4]] for i, row in enumerate(_people())]
    path = _write(tmp_path / "a.xlsx", [HEAD, *rows])
    with pytest.raises(DataError, match=r"Column `sex` of sheet `people`.* has formulas without stored values.*=1\+1"):
        eh.read(path, **ROLES)
    # As a spreadsheet program stores it: the formula and its value side by side.
    with zipfile.ZipFile(path) as held:
        sheet = held.read("xl/worksheets/sheet1.xml").decode()
    for made in ("<v></v>", "<v />", "<v/>"):
        sheet = sheet.replace(f"<f>1+1</f>{made}", "<f>1+1</f><v>7</v>")
    _replaced(path, "xl/worksheets/sheet1.xml", sheet.encode())
    assert "7" in eh.read(path, **ROLES).attributes[0].labels


def test_error_values_are_missing_and_said(tmp_path):
    rows = [[*row[:3], "#N/A" if i < 4 else row[3], row[4]] for i, row in enumerate(_people())]
    data = eh.read(_write(tmp_path / "a.xlsx", [HEAD, *rows]), **ROLES)
    assert dict(data.rows.dropped) == {"`sex` is missing": 4}
    assert any("Column `sex` holds 4 errors of formulas (`#N/A`)" in note for note in data.notes)


@pytest.mark.parametrize("above", [[["Decisions of 2024"]], [["person", None, None, "group", None]]])
def test_titles_and_merged_heads_get_one_sentence(tmp_path, above):
    path = _write(tmp_path / "a.xlsx", [*above, HEAD, *_people()])
    with pytest.raises(DataError, match="has values in column B but no name above them"):
        eh.read(path, outcome="y", groups="sex")


def test_odd_workbooks_get_one_sentence(tmp_path):
    empty = _write(tmp_path / "empty.xlsx", [])
    with pytest.raises(DataError, match=r"Sheet `people` of `empty\.xlsx` is empty"):
        eh.read(empty, **ROLES)
    twice = _write(tmp_path / "twice.xlsx", [["y", "y", "sex"], [1, 0, "F"]])
    with pytest.raises(DataError, match="`y` occurs more than once"):
        eh.read(twice, **ROLES)
    old = tmp_path / "old.xlsx"
    old.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    with pytest.raises(DataError, match=r"old \.xls workbook or is protected by a password"):
        eh.read(old, **ROLES)
    text = tmp_path / "text.xlsx"
    text.write_text("y,sex\n1,F\n")
    with pytest.raises(DataError, match="is not a whole Excel workbook"):
        eh.read(text, **ROLES)
    cut = tmp_path / "cut.xlsx"
    cut.write_bytes(empty.read_bytes()[:-40])
    with pytest.raises(DataError, match="is not a whole Excel workbook"):
        eh.read(cut, **ROLES)
    other = tmp_path / "other.xlsx"
    with zipfile.ZipFile(other, "w") as held:
        held.writestr("readme.txt", "no workbook")
    with pytest.raises(DataError, match="cannot be read as an Excel workbook"):
        eh.read(other, **ROLES)
    with pytest.raises(DataError, match="holds 2 workbooks; one is read at a time"):
        eh.read([empty, twice], **ROLES)


def test_a_workbook_that_declares_too_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = _write(tmp_path / "bomb.xlsx", [HEAD, *_people()])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as held:
        held.writestr("xl/sharedStrings2.xml", b"0" * (workbooks.MOST_HELD_BYTES + 1))
    assert path.stat().st_size < 1_000_000
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(DataError, match=r"would unpack to .* a workbook may have 1\.5 GB, of which 300 MB"):
        eh.read(path, **ROLES)


def test_a_workbook_that_lies_about_its_size_is_refused(tmp_path):
    path = _write(tmp_path / "liar.xlsx", [HEAD, *_people()])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as held:
        held.writestr("xl/worksheets/sheet9.xml", b"0" * 50_000_000)
        info = held.getinfo("xl/worksheets/sheet9.xml")
    raw = path.read_bytes()
    true, said = struct.pack("<LL", info.compress_size, 50_000_000), struct.pack("<LL", info.compress_size, 10)
    assert raw.count(true) == 2
    path.write_bytes(raw.replace(true, said))
    with pytest.raises(DataError, match="is not a whole Excel workbook"):
        eh.read(path, **ROLES)


def test_entities_are_refused(tmp_path):
    path = _write(tmp_path / "laughs.xlsx", [HEAD, *_people()])
    with zipfile.ZipFile(path) as held:
        sheet = held.read("xl/worksheets/sheet1.xml")
    lines = b"".join(b'<!ENTITY a%d "%s">' % (i + 1, b"&a%d;" % i * 10) for i in range(9))
    _replaced(path, "xl/worksheets/sheet1.xml", b'<!DOCTYPE w [<!ENTITY a0 "ha">' + lines + b"]>" + sheet)
    with pytest.raises(DataError, match="defines XML entities"):
        eh.read(path, **ROLES)


def test_a_cell_at_the_far_end_of_every_row_is_too_many_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(workbooks, "MOST_CELLS", 100_000)
    path = _write(tmp_path / "far.xlsx", [HEAD, *_people()])
    with zipfile.ZipFile(path) as held:
        sheet = held.read("xl/worksheets/sheet1.xml").decode()
    far = "".join(f'<row r="{i}"><c r="XFD{i}"><v>1</v></c></row>' for i in range(70, 90))
    _replaced(path, "xl/worksheets/sheet1.xml", sheet.replace("</sheetData>", far + "</sheetData>").encode())
    with pytest.raises(DataError, match=r"has values in column XFD|more than 100,000 cells"):
        eh.read(path, **ROLES)
    _replaced(path, "xl/worksheets/sheet1.xml", sheet.replace('r="61"', 'r="99999999999"').encode())
    with pytest.raises(DataError, match="more than 100,000 cells or 1,048,576 rows"):
        eh.read(path, **ROLES)


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    path = _write(tmp_path / "a.xlsx", [HEAD, *_people()])
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"evenhand\[xlsx\]"):
        eh.read(path, **ROLES)


def test_the_command_reads_a_sheet_from_a_file_and_from_standard_input(tmp_path, monkeypatch, capsys):
    from evenhand.cli import run

    path = _write(tmp_path / "a.xlsx", [["k"], [1]], title="cover")
    book = openpyxl.load_workbook(path)
    sheet = book.create_sheet("people")
    for row in [HEAD, *_people()]:
        sheet.append(row)
    book.save(path)
    words = ["--outcome", "y", "--decision", "d", "--group", "sex", "--sheet", "people", "--seed", "0"]
    assert run(["audit", str(path), *words, "--out", str(tmp_path / "one")]) == 0
    stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr("sys.stdin", stream)
    assert run(["audit", "-", *words, "--out", str(tmp_path / "two")]) == 0
    one, two = (json.loads((tmp_path / name / "findings.json").read_text()) for name in ("one", "two"))
    assert [file["name"] for file in one.pop("input")] == ["a.xlsx"]
    assert two.pop("input") == []  # what came through a pipe has no name
    assert one == two
    assert run(["audit", str(path), "--outcome", "y", "--group", "sex", "--out", str(tmp_path / "three")]) == 2
    assert "Column `y` is not in the table" in capsys.readouterr().err
