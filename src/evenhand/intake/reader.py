"""`read`: anything that holds decisions about people -> `AuditData`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from evenhand.errors import UsageError
from evenhand.intake.batch_coding import BatchCoding, engine_batches
from evenhand.intake.data import AuditData
from evenhand.intake.databases import database_relation, is_database
from evenhand.intake.engines.duck import DuckEngine
from evenhand.intake.engines.one_pass import engine_cells, repeated_identifiers
from evenhand.intake.engines.spark import SparkEngine
from evenhand.intake.file_sets import file_set, lake_kind
from evenhand.intake.frames import columns_table, frame_table
from evenhand.intake.lakes import lake_relation
from evenhand.intake.options import Intersections, Options, check_columns, make_options
from evenhand.intake.paths import file_table, wants_batches, wants_cells
from evenhand.intake.progress import Tell
from evenhand.intake.records import Table
from evenhand.intake.workbooks import one_workbook, workbook_table


def read(
    source: Any,
    *,
    outcome: str | None = None,
    decision: str | None = None,
    score: str | None = None,
    groups: str | Iterable[str] = (),
    features: str | Iterable[str] | None = None,
    weight: str | None = None,
    weight_kind: Literal["auto", "frequency", "sampling"] = "auto",
    positive: Any = None,
    threshold: float | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    continuous: str | Iterable[str] = (),
    intersections: Intersections = False,
    missing: Literal["drop", "group", "unknown", "error"] = "drop",
    strata: str | Iterable[str] = (),
    cluster: str | None = None,
    survey_strata: str | None = None,
    period: str | None = None,
    group_probability: Mapping[str, Any] | None = None,
    rows: Literal["auto", "keep", "cells", "batches"] = "auto",
    score_bins: int = 4096,
    table: str | None = None,
    query: str | None = None,
    sheet: str | None = None,
    memory: str | int | None = None,
    progress: Callable[[str], None] | None = None,
) -> AuditData:
    """Read decisions about people from a file, a frame or an engine.

    Parameters
    ----------
    source : path, list of paths, frame, relation or mapping
        A CSV, TSV (also gzipped), Parquet, Arrow or Excel (.xlsx) file; a folder or a pattern such as
        ``"loans/*.parquet"`` of them, also with columns in the names of folders (``year=2024``); a DuckDB database; a
        Delta or Iceberg table; a pandas, polars (eager or lazy) or pyarrow table; a DuckDB relation or a PySpark
        DataFrame, which are added up where they are; or a mapping of names to arrays. It is never changed.
    outcome, decision, score : str, optional
        Columns with what happened, what was decided and the model's score. At least one is needed.
    groups : str or list of str
        Columns whose groups are compared.
    features : list of str, optional
        The model's inputs; kept when rows are.
    weight : str, optional
        Column of weights.
    weight_kind : {"auto", "frequency", "sampling"}
        Frequency weights count identical people, sampling weights stand for a population. "auto" takes
        numbers that are not whole as sampling weights; whole numbers could be either and must be explained.
    positive : object or mapping, optional
        The value that counts as 1, for outcome and decision, or by role:
        ``{"outcome": "good", "decision": "granted"}``. Under ``"model"`` the model's class that is decision 1, where
        the classes have other names than the labels of the data.
    threshold : float, optional
        Without a decision: decide 1 where the score is at least this. Without a score column either, it is the model's
        score that is cut there.
    cuts : mapping of str to list of float, optional
        Cut a numeric group column into intervals: ``{"age": [25, 40]}``.
    continuous : str or list of str
        Columns tested as continuous instead of by groups.
    intersections : bool or list of tuples of str
        True crosses all group columns; a list crosses the given ones.
    missing : {"drop", "group", "unknown", "error"}
        What happens to rows without a group label. "unknown" keeps them as people whose group is not known: the group
        audit then says what holds whatever groups they belong to.
    strata : str or list of str
        Columns to compare within, such as the job applied for: the group audit then compares like with like. Numeric
        ones are cut with `cuts`.
    cluster : str, optional
        Column that names what rows belong to, such as a person with several rows: the group audit then takes clusters,
        not rows, as independent.
    survey_strata : str, optional
        Column of the strata that a survey sampled from; they enter the variance only.
    period : str, optional
        Column that names periods, such as quarters, or a column of dates and what to cut them into: ``"date:month"``,
        also ``day``, ``week`` or ``year``. `evenhand.intake.by_period` then divides the data.
    group_probability : mapping, optional
        Where groups are guessed: attribute to the columns with each group's probability,
        ``{"race": ["p_black", "p_white"]}``, or to labels and columns, ``{"race": {"Black": "p_black", ...}}``.
    rows : {"auto", "keep", "cells", "batches"}
        Keep rows in memory, or add them up to cells. "batches" also lets a model work through the rows where they are,
        some at a time. "auto" makes cells of DuckDB relations, Spark frames and files with more than 5 million rows,
        and batches where features of so many rows, or of more than 100 million values, are named.
    score_bins : int
        Number of equal-width bins of the score in cells.
    table, query : str, optional
        Of a DuckDB database: the table to read, or one SELECT in place of it. The file is opened so that nothing can
        be written.
    sheet : str, optional
        Of an Excel workbook: the sheet to read, by default the first visible one. The first row holds the names.
        Formulas are never calculated: the values that the spreadsheet program stored are read.
    memory : str or int, optional
        What reading may take, such as ``"2GB"``: DuckDB stays within it and puts the rest on the disk, and rows that
        would not fit are added up to cells, or read in batches. For files, databases and engines; by default DuckDB
        takes what it likes.
    progress : callable, optional
        Called now and then with a short text that says how far reading a file is.

    Returns
    -------
    AuditData

    Raises
    ------
    DataError
        One sentence on what is wrong with the data and what to do.

    Examples
    --------
    >>> table = {"y": ["yes", "no", "yes", "no"], "d": [1, 0, 0, 0], "sex": ["F", "M", "F", None]}
    >>> data = read(table, outcome="y", decision="d", groups="sex")
    >>> data.attributes[0].labels, data.rows.rows_used, dict(data.rows.dropped)
    (('F', 'M'), 3, {'`sex` is missing': 1})
    """
    options = make_options(
        outcome=outcome, decision=decision, score=score, groups=groups, features=features, weight=weight,
        weight_kind=weight_kind, positive=positive, threshold=threshold, cuts=cuts, continuous=continuous,
        intersections=intersections, missing=missing, strata=strata, cluster=cluster, survey_strata=survey_strata,
        period=period, group_probability=group_probability, rows=rows, score_bins=score_bins, memory=memory,
    )  # fmt: skip
    if table is not None or query is not None or _names_database(source):
        _no_sheet(sheet, f"`{source}`")
        with database_relation(_database(source), table, query, options.memory) as relation:
            return _data(_stored_table(relation, options), options)
    return _data(_table(source, options, sheet, progress), options)


def _names_database(source: Any) -> bool:
    return isinstance(source, str | os.PathLike) and is_database(Path(os.fspath(source)))


def _database(source: Any) -> Path:
    """Return the path of a database, where a table or a query was asked of it."""
    if not _names_database(source):
        shown = f"`{source}`" if isinstance(source, str | os.PathLike) else f"a {type(source).__name__}"
        raise UsageError(
            f"`table=` and `query=` are for DuckDB databases (.duckdb), and {shown} is none; leave them out."
        )
    return Path(os.fspath(source))


def _data(table: Table, options: Options) -> AuditData:
    """Code a table, with its rows batch by batch where they were asked for."""
    if table.engine is None or not wants_batches(options, int(table.rows.sum()) if table.rows is not None else 0):
        return AuditData.of_table(table, options)
    return _with_batches(table, replace(options, rows="batches"))


def _with_batches(table: Table, options: Options) -> AuditData:
    """Code the cells, and let the rows be read as these are coded."""
    data = AuditData.of_table(table, options)
    coding = BatchCoding.of(data, options, table.engine.kinds)
    note = "Rows stay where they are: a model is asked about them batch by batch."
    return replace(
        data,
        feature_types=coding.whole.feature_types,
        notes=(*data.notes, note),
        batches=engine_batches(table.engine, coding, int(data.count.sum())),
    )


def _table(source: Any, options: Options, sheet: str | None, progress: Tell | None) -> Table:
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | os.PathLike) for path in paths):
        return _path_table([Path(os.fspath(path)) for path in paths], options, sheet, progress)
    _no_sheet(sheet, f"a {type(source).__name__}")
    engine = _engine(source, options)
    return frame_table(source, options) if engine is None else _engine_table(engine, options)


def _path_table(paths: Sequence[Path], options: Options, sheet: str | None, progress: Tell | None) -> Table:
    kind = lake_kind(paths[0]) if len(paths) == 1 else None
    if kind is None:
        files = file_set(paths)
        if files.form == "workbook":
            return workbook_table(one_workbook(files.name, files.paths), sheet, options)
        _no_sheet(sheet, f"`{paths[0]}`")
        return file_table(files, options, progress)
    _no_sheet(sheet, f"`{paths[0]}`")
    with lake_relation(paths[0], kind, options.memory) as (relation, note):
        return _stored_table(relation, options).noted([note])


def _no_sheet(sheet: str | None, shown: str) -> None:
    if sheet is not None:
        raise UsageError(f"`sheet=` is for Excel workbooks (.xlsx), and {shown} is none; leave it out.")


def _stored_table(relation: Any, options: Options) -> Table:
    """Read a table that is stored in files of an engine's own form: as other files, it is kept where it is small."""
    engine = _engine(relation, options)
    few = options.rows == "auto" and not wants_cells(options, engine.count())
    return _engine_table(engine, replace(options, rows="keep") if few else options)


def _engine_table(engine: Any, options: Options) -> Table:
    """Add up the rows of an engine, or bring them into memory where rows are needed and few enough."""
    wanted = options.rows == "keep" or (options.rows == "auto" and (options.needs_rows or options.features))
    if not wanted or wants_cells(options, engine.count()):
        return engine_cells(engine, options).noted(repeated_identifiers(engine, list(engine.kinds), options))
    return columns_table(engine.fetch(options.columns), options)


def _engine(source: Any, options: Options) -> Any:
    """Return the engine that holds the source, or None when it is in memory."""
    module = type(source).__module__
    if "duckdb" in sys.modules and isinstance(source, sys.modules["duckdb"].DuckDBPyRelation):
        check_columns(options, [str(c) for c in source.columns])
        engine = DuckEngine(source)
        engine.check_case(options.columns)
        return engine
    if module.startswith("pyspark.sql") and type(source).__name__ == "DataFrame":
        check_columns(options, list(source.columns))
        return SparkEngine(source)
    return None
