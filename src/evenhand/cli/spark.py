"""A table or path as Spark reads it, in a session of the command's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.cli.pairs import pairs
from evenhand.errors import DataError, first_line, optional_module
from evenhand.intake.engines.spark import innermost
from evenhand.intake.file_sets import TEXT, lake_kind, suffix_of

# Quiet, and days that do not depend on where the command runs; what the user says goes before.
_SETTINGS = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}

_OF_JAVA = "An error occurred while calling"  # names an object of Java, and not what happened


@contextmanager
def spark_frame(name: str, words: Mapping[str, Any]) -> Iterator[Any]:
    """Start Spark, or take the session there is, and give one table.

    Parameters
    ----------
    name : str
        A table of the catalogue, or a path: Parquet, CSV, JSON, ORC, Delta or Iceberg.
    words : mapping
        With `spark`, the master or the address of a Spark Connect server, and `spark_conf`.

    Yields
    ------
    pyspark.sql.DataFrame
        Complaints of Spark become one sentence.
    """
    sql = optional_module("pyspark.sql", '`--spark` needs PySpark and Java: pip install "evenhand[spark]".')
    settings = _SETTINGS | pairs("--spark-conf", words["spark_conf"], "KEY=VALUE")
    # Workers must run the Python that has the model's packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = sql.SparkSession.getActiveSession()
    with _sentences(f"Spark (`--spark {words['spark']}`) could not be started", OSError, RuntimeError):
        builder = sql.SparkSession.builder.appName("evenhand")
        remote = words["spark"].startswith("sc://")
        builder = builder.remote(words["spark"]) if remote else builder.master(words["spark"])
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    try:
        with _sentences(f"Spark cannot read `{name}`"):
            yield _frame(session, name)
    finally:
        if running is None:
            session.stop()


@contextmanager
def _sentences(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Make one sentence of a complaint of Spark, of the Java behind it, or of one of these kinds."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j") and not isinstance(error, kinds):
            raise
        said = first_line(error)
        raise DataError(f"{what}: {innermost(error) if said.startswith(_OF_JAVA) else said}.") from None


def _frame(session: Any, name: str) -> Any:
    path = Path(name)
    if "/" not in name and not path.exists():
        return session.table(name)
    kind = lake_kind(path)
    if kind is not None:
        return session.read.format(kind).load(name)
    first = next((p for p in sorted(path.rglob("[!._]*")) if p.is_file()), path) if path.is_dir() else path
    suffix = suffix_of(first)
    if suffix in TEXT:
        return session.read.csv(name, header=True, inferSchema=True, sep="\t" if suffix == ".tsv" else ",")
    return session.read.format({".json": "json", ".orc": "orc"}.get(suffix, "parquet")).load(name)
