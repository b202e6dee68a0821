"""The data sets Evenhand knows: where they come from, under which licence, and how to check a copy.

Adult travels with the package. The others are known by name and checksum: their licences do not all allow
redistribution, so a copy is looked for in a few folders and checked before it is used.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from evenhand.errors import DataError, near_matches

ENVIRONMENT = "EVENHAND_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One data set: what it is and how a copy of it is recognised and read."""

    name: str  # what `load` and `table` call it
    # ``folder/file`` below a data folder; the file may also lie in the data folder itself, and may be unpacked
    # (without ``.gz``).
    file: str
    rows: int  # rows of the file
    # Who allows what, and where the data come from.
    licence: str
    origin: str
    sha256: tuple[str, ...]  # of the unpacked content; any of them will do
    delimiter: str = ","  # between values; ``"space"`` for any run of blanks
    header: bool = True  # whether a line of column names comes first
    skip: int = 0  # lines before that
    missing: str = ""  # how the file writes a missing value
    columns: tuple[str, ...] = field(default=(), repr=False)  # names for a file without a header


class DatasetRow(NamedTuple):
    """One line of `known`.

    Parameters
    ----------
    name : str
        The data set.
    where : str
        ``"on board"``, ``"found at <path>"`` or ``"not found"``.
    licence : str
        Who allows what.
    rows : int
        Rows of the file.
    source : str
        Where the data come from.
    """

    name: str
    where: str
    licence: str
    rows: int
    source: str


@cache
def sources() -> tuple[Source, ...]:
    """Return every known data set, as `registry.toml` lists them."""
    content = tomllib.loads(Path(__file__).with_name("registry.toml").read_text(encoding="utf-8"))
    lists = {key: tuple(words.split()) for key, words in content["columns"].items()}
    entries = []
    for entry in content["dataset"]:
        columns = lists[entry["columns"]] if "columns" in entry else ()
        entries.append(Source(**entry | {"sha256": tuple(entry["sha256"]), "columns": columns}))
    return tuple(entries)


def source(name: str) -> Source:
    """Return what is known about one data set.

    Parameters
    ----------
    name : str
        Such as ``"compas"``.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        When the name is not known; near matches are offered.

    Examples
    --------
    >>> source("compas").rows
    7214
    """
    for entry in sources():
        if entry.name == name:
            return entry
    raise DataError(f"No data set is called `{name}`.{near_matches(name, (s.name for s in sources()))}")


def folders() -> tuple[Path, ...]:
    """Return the folders in which data sets are looked for, first choice first.

    Returns
    -------
    tuple of Path
        ``$EVENHAND_DATA``, then ``shared/data`` and ``../shared/data`` from the working directory, then
        ``~/.evenhand/data``.

    Examples
    --------
    >>> folders()[-1].name
    'data'
    """
    given = os.environ.get(ENVIRONMENT, "")
    here = Path.cwd()
    first = (Path(given).expanduser(),) if given else ()
    try:
        home: tuple[Path, ...] = (Path.home() / ".evenhand" / "data",)
    except RuntimeError:  # no home folder, as in some containers
        home = ()
    return (*first, here / "shared" / "data", here.parent / "shared" / "data", *home)


def own_folder() -> Path:
    """Return the folder in which the user's own copies are kept.

    Examples
    --------
    >>> own_folder() in folders()
    True
    """
    given = os.environ.get(ENVIRONMENT, "")
    return Path(given).expanduser() if given else Path.home() / ".evenhand" / "data"


def find(entry: Source) -> Path | None:
    """Return the path of a data set's file, or None when no folder holds it.

    Parameters
    ----------
    entry : Source
        From `source`.

    Returns
    -------
    Path or None

    Examples
    --------
    >>> find(source("adult")).name
    'adult.parquet'
    """
    if entry.name == "adult":
        return Path(__file__).with_name(entry.file)
    candidates = (path for folder in folders() for path in _candidates(folder, entry))
    return next((path for path in candidates if path.is_file()), None)


def _candidates(folder: Path, entry: Source) -> Iterator[Path]:
    for path in (folder / entry.file, folder / Path(entry.file).name):
        yield path
        if path.suffix == ".gz":
            yield path.with_suffix("")


def known() -> list[DatasetRow]:
    """List the data sets Evenhand knows, and where each was found.

    Returns
    -------
    list of DatasetRow
        Name, where, licence, rows and source.

    Examples
    --------
    >>> known()[0][:4]
    ('adult', 'on board', 'CC BY 4.0', 48842)
    """
    rows = []
    for entry in sources():
        path = find(entry)
        where = "on board" if entry.name == "adult" else "not found" if path is None else f"found at {path}"
        rows.append(DatasetRow(entry.name, where, entry.licence, entry.rows, entry.origin))
    return rows
