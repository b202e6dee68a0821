"""Where the rows are: files, standard input, a DuckDB database, or a table that Spark reads."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import click

from evenhand.cli.spark import spark_frame
from evenhand.errors import UsageError
from evenhand.intake.memory import bytes_of, size_text

# What a stream begins with, and the ending of the file that it becomes; everything else is text.
_BEGINNINGS = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"\xff\xff\xff\xff", ".arrow"),
    (b"\x1f\x8b", ".csv.gz"),
    (b"PK\x03\x04", ".xlsx"),
)

_OPTIONS = (
    click.option("--table", help="Table of a DuckDB database."),
    click.option("--query", help="One SELECT, in place of a table of a DuckDB database."),
    click.option("--sheet", help="Sheet of an Excel workbook.  [default: the first visible one]"),
    click.option("--memory", metavar="SIZE", help="What reading may take, such as 2GB; the rest goes to the disk."),
    click.option(
        "--read-rows",
        type=click.Choice(["auto", "keep", "cells", "batches"]),
        help="Keep rows in memory, add them up, or let the model work through them where they are.  [default: auto, by "
        "their number]",
    ),
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
        Table, query, sheet, memory and rows.
    """
    said = {key: words[key] for key in ("table", "query", "sheet", "memory") if words[key] is not None}
    if words["read_rows"] is not None:
        said["rows"] = words["read_rows"]  # `evenhand power` has `--rows` of its own
    allowed = bytes_of(words["memory"])
    if allowed is not None:
        click.get_current_context().call_on_close(partial(_say_peak, allowed))
    named = any(key in said for key in ("table", "query", "sheet"))
    if words["spark"] is not None:
        if "memory" in said:
            raise UsageError(
                "`--memory` is for files and databases; Spark has its own: `--spark-conf spark.driver.memory=2g`."
            )
        if named or len(files) != 1:
            raise UsageError("With `--spark` name one table or path, and none of `--table`, `--query` and `--sheet`.")
        return click.get_current_context().with_resource(spark_frame(str(files[0]), words)), said
    if words["spark_conf"]:
        raise UsageError("`--spark-conf` is for Spark; name its master with `--spark`.")
    if "-" not in map(str, files):
        return list(files) if len(files) > 1 else files[0], said
    if len(files) > 1 or "table" in said or "query" in said:
        raise UsageError("Standard input (`-`) is the whole table; name no other file, table or query beside it.")
    return click.get_current_context().with_resource(_held(sys.stdin.buffer)), said


def _say_peak(allowed: int) -> None:
    """Say when more memory was taken than allowed: what a model or a test takes is not ours to limit."""
    peak = _peak_memory()
    if peak is not None and peak > allowed:
        text = (
            f"evenhand: `--memory {size_text(allowed)}` was not kept: the command took {size_text(peak)} at its peak."
        )
        click.echo(f"{text} Fewer features, groups or metrics take less.", err=True)


def _peak_memory() -> int | None:
    """Return the most memory that this process ever held, where the system tells it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    held = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), None)
    return None if held is None else int(held) * 1024


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
