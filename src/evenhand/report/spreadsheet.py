"""Tables as CSV and as an Excel workbook, in which no text from a stranger is taken for a formula."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Sequence
from typing import Any

from evenhand.errors import optional_module
from evenhand.report.document import Cell, PValue, Table
from evenhand.results import Verdict, printable

_ACTIVE = ("=", "+", "-", "@", "\t", "\r", "|", "%")  # what makes a spreadsheet run a text, or hand it on
_WIDEST = 60  # characters of a column


def csv_of(tables: Sequence[Table]) -> str:
    """Write tables with one head as one CSV text; the first column names the table.

    A text that a spreadsheet would take for a formula begins with an apostrophe.

    Examples
    --------
    >>> print(csv_of([Table(title="T", head=("Group", "Rate"), rows=(("=1+1", 0.25), ("b", None)))]), end="")
    Table,Group,Rate
    T,'=1+1,0.25
    T,b,
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["Table", *tables[0].head])
    for table in tables:
        lines.writerows([_inert(table.title), *(_plain(value) for value in row)] for row in table.rows)
    return text.getvalue()


def _plain(value: Cell) -> str | int | float:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, str):
        return _inert(value)
    return float(value) if isinstance(value, float) else value


def _inert(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula, on one line."""
    text = printable(text)
    return f"'{text}" if text.lstrip().startswith(_ACTIVE) else text


def xlsx_of(tables: Sequence[Table], about: Sequence[str]) -> bytes:
    """Write tables as a workbook, one sheet each, after a sheet of text; the same tables give the same bytes.

    Every text is stored as text, so that none is a formula, whatever it begins with.

    Parameters
    ----------
    tables : sequence of Table
        What the sheets show.
    about : sequence of str
        Paragraphs of the first sheet.

    Returns
    -------
    bytes
    """
    excel = optional_module(
        "openpyxl", "An Excel workbook needs the package openpyxl: `pip install evenhand[xlsx]`. CSV needs nothing."
    )
    styles = optional_module("openpyxl.styles", "An Excel workbook needs the package openpyxl.")
    book = excel.Workbook()
    first = book.active
    first.title = "About"
    first.column_dimensions["A"].width = 100
    for number, text in enumerate(about, 1):
        cell = first.cell(row=number, column=1)
        _store(cell, text)
        cell.alignment = styles.Alignment(wrap_text=True, vertical="top")
    names = {"about"}
    for table in tables:
        sheet = book.create_sheet(_sheet_name(table.title, names))
        sheet.freeze_panes = "B2"
        for number, row in enumerate((table.head, *table.rows), 1):
            for column, value in enumerate(row, 1):
                _store(sheet.cell(row=number, column=column), value)
        for column, name in enumerate(table.head, 1):
            sheet.cell(row=1, column=column).font = styles.Font(bold=True)
            longest = max(len(str(row[column - 1])) for row in table.rows if isinstance(row[column - 1], str)) if any(
                isinstance(row[column - 1], str) for row in table.rows
            ) else 0  # fmt: skip
            width = min(max(len(name), longest, 10) + 2, _WIDEST)
            sheet.column_dimensions[excel.utils.get_column_letter(column)].width = width
    made = io.BytesIO()
    book.save(made)
    return _without_times(made.getvalue())


def _store(cell: Any, value: Cell) -> None:
    """Put a value into a cell: a text as text, a number as a number, nothing for what is not known."""
    if value is None or (isinstance(value, float) and value != value):
        return
    if isinstance(value, str):
        cell.value = printable(str(value).replace("_", " ") if isinstance(value, Verdict) else value)
        cell.data_type = "s"
        cell.quotePrefix = True
        return
    cell.value = float(value) if isinstance(value, float) else value
    cell.number_format = "#,##0" if isinstance(value, int) else "0.0E+00" if _tiny(value) else "0.0000"


def _tiny(value: float) -> bool:
    return isinstance(value, PValue) and 0 < value < 1e-4


def _sheet_name(title: str, taken: set[str]) -> str:
    """Return a name that Excel allows and no other sheet has."""
    plain = re.sub(r"[\[\]:*?/\\']", " ", printable(title)).strip()[:28] or "Table"
    name, number = plain, 2
    while name.lower() in taken:
        name, number = f"{plain[:25]} {number}", number + 1
    taken.add(name.lower())
    return name


def _without_times(content: bytes) -> bytes:
    """Take the times of writing out of a workbook."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "docProps/core.xml":
                part = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"2000-01-01T00:00:00Z", part)
            new.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)
    return made.getvalue()
