"""Which files make one table: a file, several, a folder that an engine wrote, a pattern, or partitions by folder."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import DataError
from evenhand.intake.wording import listing

TEXT = (".csv", ".tsv", ".txt")
ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
WORKBOOK = (".xlsx", ".xlsm")
_ENDINGS = {"text": TEXT, "arrow": ARROW, "parquet": PARQUET, "workbook": WORKBOOK}
_FORMS = {suffix: form for form, known in _ENDINGS.items() for suffix in known}
_SHOWN = {"text": "CSV", "arrow": "Arrow", "parquet": "Parquet", "workbook": "Excel"}
LAKES = {"delta": "Delta", "iceberg": "Iceberg"}
ICEBERG_STATE = ".metadata.json"
_ALLOWED = ".csv, .tsv (also .gz), .parquet, .arrow, .feather, .xlsx"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSet:
    """Files of one form that together hold one table."""

    name: str  # as messages call it, such as "File `a.csv`"
    form: str  # one of "text", "parquet", "arrow", "workbook"
    paths: tuple[Path, ...]  # the parts, in the order of their names
    partitions: tuple[str, ...] = ()  # columns that stand in the names of folders, as in `year=2024/part.parquet`

    @property
    def literals(self) -> list[str]:
        """The paths as DuckDB takes them."""
        return pattern_free(self.paths)

    def called(self, path: Path) -> str:
        """Return what a message calls one of the files."""
        return self.name if len(self.paths) == 1 and not self.partitions else f"Part `{path.name}`"


def file_set(sources: Sequence[str | os.PathLike[str]]) -> FileSet:
    r"""Find the files that were named, and refuse what is not one table.

    Parameters
    ----------
    sources : sequence of path
        Files, folders or patterns such as ``"data/*.parquet"``. In folders, names that begin with a dot or an
        underscore are left out, as Spark does.

    Returns
    -------
    FileSet

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("_SUCCESS", "part-0.csv", "part-1.csv"):
    ...         _ = (Path(folder) / name).write_text("y,sex\n")
    ...     [path.name for path in file_set([folder]).paths]
    ['part-0.csv', 'part-1.csv']
    """
    parts = [part for source in sources for part in _parts(Path(os.fspath(source)))]
    paths = tuple(dict.fromkeys(path for path, _ in parts))
    single = len(sources) == 1 and Path(os.fspath(sources[0])).is_file()
    name = f"File `{paths[0].name}`" if single else f"`{', '.join(map(str, sources[:3]))}`"
    form = _one_form(name, paths, single)
    for path in paths:
        if form != "arrow" and path.stat().st_size == 0:
            part = f"File `{path.name}` is empty" if single else f"Part `{path}` of {name} is empty"
            raise DataError(f"{part}; a header and rows are needed.")
    return FileSet(name=name, form=form, paths=paths, partitions=_one_partitioning(name, parts))


def lake_kind(path: Path) -> str | None:
    """Say whether a folder is a table of Delta ("delta") or Iceberg ("iceberg"): not all its files are part of it.

    A file that holds the state of an Iceberg table stands for the table too.
    """
    if (path / "_delta_log").is_dir():
        return "delta"
    if path.name.endswith(ICEBERG_STATE) or any((path / "metadata").glob("*" + ICEBERG_STATE)):
        return "iceberg"
    return None


def pattern_free(paths: Iterable[str | Path]) -> list[str]:
    """Return paths as DuckDB takes them: it expands patterns, and brackets make it take a name as it is."""
    return ["".join(f"[{c}]" if c in "*?[" else c for c in str(path)) for path in paths]


def suffix_of(path: Path) -> str:
    """Return the ending of a file's name that says its form, in small letters and without that of compression."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _parts(path: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """Return the files behind one name, each with the columns that the names of its folders hold."""
    if path.is_dir():
        _refuse_lake(path.absolute().parents)
        parts = list(_inside(path, ()))
        if not parts:
            raise DataError(f"Folder `{path}` holds no table; write {_ALLOWED} files into it, or name another one.")
        return parts
    if path.exists():
        return [(path, ())]
    if not glob.has_magic(str(path)):
        raise DataError(f"File `{path}` does not exist.{_near_files(path)}")
    matched = [Path(p) for p in sorted(glob.glob(str(path), recursive=True)) if not _is_hidden(Path(p))]
    _refuse_lake(above for one in matched for above in one.absolute().parents)
    parts = []
    for one in matched:
        columns = _partition_columns(one, _fixed_part(path))
        inside = _inside(one, columns) if one.is_dir() else [(one, columns)]
        parts += [(file, keys) for file, keys in inside if file not in {p for p, _ in parts}]
    if not parts:
        raise DataError(f"No file matches the pattern `{path}`; check its folder and its ending.")
    return parts


def _inside(folder: Path, columns: tuple[str, ...]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    _refuse_lake([folder])
    for path in sorted(folder.iterdir()):
        if _is_hidden(path):
            continue
        if path.is_dir():
            yield from _inside(path, (*columns, *_key(path.name)))
        else:
            yield path, columns


def _refuse_lake(folders: Iterable[Path]) -> None:
    for folder in dict.fromkeys(folders):
        kind = lake_kind(folder)
        if kind is not None:
            raise DataError(
                f"Folder `{folder}` is a table of {LAKES[kind]}, whose files also hold deleted rows; name this folder, "
                "and nothing else."
            )


def _is_hidden(path: Path) -> bool:
    return path.name.startswith((".", "_")) and "=" not in path.name


def _key(name: str) -> tuple[str, ...]:
    key, equals, _ = name.partition("=")
    return (key,) if equals and key else ()


def _fixed_part(pattern: Path) -> int:
    """Return how many parts of a pattern stand before the first one that may vary."""
    varying = (i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    return next(varying, len(pattern.parts))


def _partition_columns(path: Path, fixed: int) -> tuple[str, ...]:
    folders = path.parts[fixed:] if path.is_dir() else path.parts[fixed:-1]
    return tuple(key for part in folders for key in _key(part))


def _one_form(name: str, paths: Iterable[Path], single: bool) -> str:
    forms: dict[str, Path] = {}
    for path in paths:
        form = _FORMS.get(suffix_of(path))
        if form is None and single:
            raise DataError(f"{name} has the extension `{path.suffix}`; allowed are {_ALLOWED}.")
        if form is None:
            raise DataError(
                f"{name} holds `{path.name}`, which is no table; allowed are {_ALLOWED}. Name the tables by a pattern "
                f"such as `{path.parent}/*.parquet`."
            )
        forms.setdefault(form, path)
    if len(forms) > 1:
        shown = " and ".join(f"{_SHOWN[form]} (`{path.name}`)" for form, path in sorted(forms.items()))
        raise DataError(
            f"{name} holds files of different forms: {shown}. Name those of one form by a pattern such as `*.parquet`."
        )
    return next(iter(forms))


def _one_partitioning(name: str, parts: Sequence[tuple[Path, tuple[str, ...]]]) -> tuple[str, ...]:
    (first, columns), *others = parts
    for path, keys in others:
        if keys != columns:
            raise DataError(
                f"{name} is not divided by folders in one way: `{first}` lies below {_divided(columns)} and `{path}` "
                f"below {_divided(keys)}. Give all parts folders of the same names, such as `year=2024`."
            )
    # The engine takes every such folder of a path for a column, also one above what was named.
    return tuple(key for part in first.parts[:-1] for key in _key(part)) if columns else ()


def _divided(keys: Sequence[str]) -> str:
    return listing(f"{key}=…" for key in keys) if keys else "no such folder"


def _near_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f" Its folder `{path.parent}` does not exist either."
    names = [p.name for p in path.parent.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean `{close[0]}`?" if close else ""
