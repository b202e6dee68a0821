"""Where the rows are: files, standard input, a DuckDB database, or a table that Spark reads."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from evenhand.cli.spark import spark_frame
from evenhand.errors import UsageError

# What a stream begins with, and the ending of the file that it becomes; everything else is text.
_BEGINNINGS = ((b"PAR1", ".parquet"), (b"ARROW1", ".arrow"), (b"\xff\xff\xff\xff", ".arrow"), (b"\x1f\x8b", ".csv.gz"))

_OPTIONS = (
    click.option("--table", help="Table of a DuckDB database."),
    click.option("--query", help="One SELECT, in place of a table of a DuckDB database."),
    click.option("--spark", metavar="MASTER", help="Let Spark read FILE, a table or a path: local[2], yarn, sc://…"),
    click.option("--spark-conf", multiple=True, metavar="KEY=VALUE", help="Setting of Spark; may be repeated."),
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where its rows are."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def source_of(files: Sequence[str | Path], words: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what `evenhand.read` takes: the source, and what is said of it.

    Parameters
    ----------
    files : sequence of str or Path
        As named on the command line.
    words : mapping
        From `source_options`.

    Returns
    -------
    source : object
        Paths, or a frame of Spark. What is held for it is let go when the command ends.
    said : dict
        Table and query.
    """
    said = {key: words[key] for key in ("table", "query") if words[key] is not None}
    if words["spark"] is not None:
        if said or len(files) != 1:
            raise UsageError("With `--spark` name one table or path, and neither `--table` nor `--query`.")
        return click.get_current_context().with_resource(spark_frame(str(files[0]), words)), {}
    if words["spark_conf"]:
        raise UsageError("`--spark-conf` is for Spark; name its master with `--spark`.")
    if "-" not in map(str, files):
        return list(files) if len(files) > 1 else files[0], said
    if len(files) > 1 or said:
        raise UsageError("Standard input (`-`) is the whole table; name no other file, table or query beside it.")
    return click.get_current_context().with_resource(_held(sys.stdin.buffer)), {}


@contextmanager
def _held(stream: BinaryIO) -> Iterator[Path]:
    """Hold a stream in a temporary file, because rows are walked more than once."""
    if sys.stdin.isatty():
        raise UsageError("Standard input is the keyboard. Pipe a table in: `zcat loans.csv.gz | evenhand audit - …`.")
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        first = stream.read(1 << 16)
        ending = next((ending for begin, ending in _BEGINNINGS if first.startswith(begin)), ".csv")
        path = Path(folder) / f"standard-input{ending}"
        with path.open("wb") as file:
            file.write(first)
            shutil.copyfileobj(stream, file, 1 << 20)
        os.chmod(path, 0o600)
        yield path
