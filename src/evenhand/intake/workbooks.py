"""Excel workbooks: one sheet as a table, its stored values only, and nothing that a small file could blow up."""

from __future__ import annotations

import itertools
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, UsageError, first_line, near_matches, optional_module
from evenhand.intake.columns import text_of
from evenhand.intake.dependence import identifier_names
from evenhand.intake.frames import frame_table
from evenhand.intake.memory import memory_of, size_text
from evenhand.intake.options import Options, check_columns, check_unique
from evenhand.intake.records import Table
from evenhand.intake.wording import count_of, listing

# What a workbook may hold when it is unpacked: all of it, and the parts that are read into memory as a whole.
MOST_BYTES = 1_500_000_000
MOST_HELD_BYTES = 300_000_000
MOST_CELLS = 20_000_000
MOST_PARTS = 10_000
_MOST_ROWS = 1_048_576  # of a sheet, by the format itself

_CSV = "Save the sheet as CSV, which may be of any size."
_OLD = b"\xd0\xcf\x11\xe0"  # the container of old workbooks, and of those with a password
_ERRORS = frozenset(
    ("#N/A", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!", "#GETTING_DATA")
)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One sheet that is being read."""

    name: str  # as messages call it, with its file
    places: tuple[int, ...]  # where the named columns stand
    names: tuple[str, ...]  # their names
    rows: Iterator[Row]  # what stands below the names, row by row; empty rows come as they are
    notes: tuple[str, ...]  # what was decided on the user's behalf


def workbook_table(path: Path, sheet: str | None, options: Options) -> Table:
    """Read the needed columns of one sheet.

    Parameters
    ----------
    path : Path
        An .xlsx or .xlsm file. Macros and formulas are never run: the values stored beside them are read.
    sheet : str, optional
        The sheet's name; the first visible one by default.
    options : Options
        What was asked.

    Returns
    -------
    Table
    """
    with opened_sheet(path, sheet) as held:
        check_columns(options, held.names)
        wanted = list(dict.fromkeys([*options.columns, *identifier_names(held.names, options)]))
        places = dict(zip(held.names, held.places, strict=True))
        columns: dict[str, list[Any]] = {name: [] for name in wanted}
        empty = 0
        waiting = 0  # empty rows at the end of a sheet are no rows: only those before a further row count
        for row in held.rows:
            if all(_is_blank(value) for value in row):
                waiting += 1
                continue
            empty, waiting = empty + waiting, 0
            for name, values in columns.items():
                values.append(_value(row, places[name]))
            _check_memory(held.name, len(columns[wanted[0]]), len(wanted), options)
        notes = list(held.notes)
    if empty:
        notes.append(f"{held.name} has {count_of(empty, 'empty row')} between its rows; they were left out.")
    notes += [note for name in wanted if (note := _without_errors(name, columns[name]))]
    _check_formulas(path, held, {name: places[name] for name in wanted if None in columns[name]}, sheet)
    return frame_table(columns, options).noted(tuple(notes))


@contextmanager
def opened_sheet(path: Path, sheet: str | None = None) -> Iterator[Sheet]:
    """Open one sheet of a workbook after looking at its size, and turn every complaint into one sentence.

    Parameters
    ----------
    path : Path
        Of the workbook.
    sheet : str, optional
        Its sheet; the first visible one by default.

    Yields
    ------
    Sheet
        Its rows can be walked once, while it is open.
    """
    with _book(path, values=True) as book:
        chosen, notes = _chosen(path, book, sheet)
        name = f"Sheet `{chosen.title}` of `{path.name}`"
        rows = _counted(name, _all_rows(chosen))
        head = next((row for row in rows if not all(_is_blank(value) for value in row)), None)
        if head is None:
            raise DataError(f"{name} is empty; a row with the names of the columns and rows below it are needed.")
        places = tuple(i for i, value in enumerate(head) if not _is_blank(value))
        names = tuple(text_of(head[i]).strip() for i in places)
        check_unique(names)
        below = _below_names(name, frozenset(places), rows)
        first = list(itertools.islice(below, 1))  # a title above the names shows here, before a name is not there
        yield Sheet(name=name, places=places, names=names, rows=itertools.chain(first, below), notes=notes)


def sheet_values(held: Sheet, most_rows: int, most_cells: int) -> tuple[dict[str, list[Any]], bool]:
    """Return the values of the first rows of a sheet, and whether these are all."""
    most = max(1, min(most_rows, most_cells // max(len(held.names), 1)))
    columns: dict[str, list[Any]] = {name: [] for name in held.names}
    filled = (row for row in held.rows if not all(_is_blank(value) for value in row))
    for row in itertools.islice(filled, most):
        for name, place in zip(held.names, held.places, strict=True):
            value = _value(row, place)
            columns[name].append(None if value in _ERRORS else value)
    return columns, next(filled, None) is None


@contextmanager
def _book(path: Path, *, values: bool) -> Iterator[Any]:
    """Open a workbook row by row, with stored values or with formulas."""
    openpyxl: Any = optional_module(
        "openpyxl", f'Reading the workbook `{path.name}` needs openpyxl: pip install "evenhand[xlsx]".'
    )
    _check_sizes(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and extensions that have nothing to do with values
        book = None
        try:
            book = openpyxl.load_workbook(path, read_only=True, data_only=values, keep_links=False)
            yield book
        except (DataError, UsageError):
            raise
        except Exception as error:  # whatever a broken file makes of a stranger's parser
            raise DataError(
                f"File `{path.name}` cannot be read as an Excel workbook: {first_line(error)}. Open it in a "
                "spreadsheet program and save it again, or save it as CSV."
            ) from None
        finally:
            if book is not None:
                book.close()


def _check_sizes(path: Path) -> None:
    """Refuse what is no workbook, and one that would unpack to more than a table of people ever takes."""
    with path.open("rb") as file:
        begins = file.read(4)
    if begins == _OLD:
        raise DataError(
            f"File `{path.name}` is an old .xls workbook or is protected by a password. Save it as .xlsx without a "
            "password, or as CSV."
        )
    try:
        with zipfile.ZipFile(path) as parts:
            members = parts.infolist()
            held = [part for part in members if not part.filename.startswith("xl/worksheets/")]
            declared, held_bytes = (sum(part.file_size for part in some) for some in (members, held))
            if len(members) > MOST_PARTS or declared > MOST_BYTES or held_bytes > MOST_HELD_BYTES:
                raise DataError(
                    f"File `{path.name}` would unpack to {count_of(len(members), 'part')} and {size_text(declared)}; "
                    f"a workbook may have {size_text(MOST_BYTES)}, of which {size_text(MOST_HELD_BYTES)} are not "
                    f"sheets. {_CSV}"
                )
            for part in members:
                _check_part(path, parts, part)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise DataError(f"File `{path.name}` is not a whole Excel workbook: {first_line(error)}.") from None


def _check_part(path: Path, parts: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Unpack one part without keeping it: its real size is what was declared, and it defines no entities."""
    size, last = 0, b""
    with parts.open(part) as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
            # A definition such as `<!ENTITY a "&b;&b;">` can make gigabytes of a few bytes; no workbook needs one.
            if b"<!DOCTYPE" in last + chunk and part.filename.endswith((".xml", ".rels")):
                raise DataError(
                    f"File `{path.name}` defines XML entities in `{part.filename}`, which no spreadsheet program "
                    f"writes; it was not read. {_CSV}"
                )
            last = chunk[-16:]
    if size != part.file_size:
        raise DataError(
            f"File `{path.name}` is not a whole Excel workbook: its part `{part.filename}` has {size:,} bytes and "
            f"declares {part.file_size:,}."
        )


def _chosen(path: Path, book: Any, sheet: str | None) -> tuple[Any, tuple[str, ...]]:
    """Return the sheet that is read, and say so where there are others."""
    sheets = {one.title: one for one in book.worksheets}
    if not sheets:
        raise DataError(f"File `{path.name}` has no sheet with cells. {_CSV}")
    if sheet is not None:
        if sheet not in sheets:
            raise DataError(f"File `{path.name}` has no sheet `{sheet}`.{near_matches(sheet, sheets)}")
        return sheets[sheet], ()
    visible = [one for one in sheets.values() if one.sheet_state == "visible"]
    chosen = (visible or list(sheets.values()))[0]
    others = [title for title in sheets if title != chosen.title]
    if not others:
        return chosen, ()
    note = f"Of `{path.name}` the sheet `{chosen.title}` was read; it also has {listing(others)} (say `sheet=`)."
    return chosen, (note,)


def _all_rows(sheet: Any) -> Iterator[Row]:
    sheet.reset_dimensions()  # the size that the file states may be wrong, and would cut rows off
    yield from sheet.iter_rows(values_only=True)


def _counted(name: str, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield rows and stop where a sheet has more cells than a table in a workbook ever has."""
    cells = 0
    for i, row in enumerate(rows):
        cells += max(len(row), 1)
        if cells > MOST_CELLS or i >= _MOST_ROWS:
            raise DataError(f"{name} has more than {MOST_CELLS:,} cells or {_MOST_ROWS:,} rows. {_CSV}")
        yield row


def _below_names(name: str, places: frozenset[int], rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows below the names and refuse a value in a column without a name."""
    from openpyxl.utils import get_column_letter

    for row in rows:
        for i, value in enumerate(row):
            if i not in places and not _is_blank(value):
                raise DataError(
                    f"{name} has values in column {get_column_letter(i + 1)} but no name above them. Give each column "
                    "its own name in the first row: undo cells that are merged over several columns, and remove lines "
                    "above the names."
                )
        yield row


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _value(row: Row, place: int) -> Any:
    return None if place >= len(row) or _is_blank(row[place]) else row[place]


def _without_errors(name: str, values: list[Any]) -> str:
    """Make error values of formulas missing, in place, and say how many there were."""
    errors = [i for i, value in enumerate(values) if isinstance(value, str) and value in _ERRORS]
    shown = {values[i] for i in errors}
    for i in errors:
        values[i] = None
    if not errors:
        return ""
    return f"Column `{name}` holds {count_of(len(errors), 'error')} of formulas ({listing(sorted(shown))}): missing."


def _check_formulas(path: Path, held: Sheet, gaps: dict[str, int], sheet: str | None) -> None:
    """Refuse formulas whose values were never stored: they would look like missing values."""
    if not gaps:
        return
    with _book(path, values=True) as values, _book(path, values=False) as formulas:
        pair = (_all_rows(_chosen(path, book, sheet)[0]) for book in (values, formulas))
        for stored, written in zip(*pair, strict=False):
            for name, place in gaps.items():
                text = _value(written, place)
                if _value(stored, place) is None and _is_formula(text):
                    raise DataError(
                        f"Column `{name}` of {held.name[0].lower()}{held.name[1:]} has formulas without stored values, "
                        f"such as {text!s}. Formulas are never calculated here: open the file in a spreadsheet "
                        "program and save it there, which stores the values."
                    )


def _is_formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=")


def _check_memory(name: str, rows: int, columns: int, options: Options) -> None:
    if options.memory is not None and rows % 10_000 == 0 and memory_of(rows, columns) > options.memory:
        raise DataError(
            f"{name} is read whole, and {rows:,} rows take more than `memory=` of {size_text(options.memory)}. "
            f"{_CSV.removesuffix('.')}, or allow more."
        )


def one_workbook(name: str, paths: Sequence[Path]) -> Path:
    """Return the only workbook that was named."""
    if len(paths) > 1:
        raise DataError(f"{name} holds {len(paths)} workbooks; one is read at a time. Name one, or save them as CSV.")
    return paths[0]
