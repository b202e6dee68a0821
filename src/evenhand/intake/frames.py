"""Frames in memory -> columns, through narwhals and each library's own way of coding labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.errors import DataError, MissingDependencyError
from evenhand.intake.columns import Column, factorise_numbers, from_codes, from_values, object_array
from evenhand.intake.dependence import identifier_names, identifier_note
from evenhand.intake.design import DesignColumns
from evenhand.intake.options import Options, check_columns
from evenhand.intake.parts import FeatureType
from evenhand.intake.records import Table, numbers_of
from evenhand.intake.weights import WeightSums
from evenhand.intake.wording import listing


def frame_columns(frame: Any, wanted: Sequence[str]) -> dict[str, Column] | None:
    """Take the wanted columns of a pandas, polars, pyarrow or other frame narwhals knows.

    Parameters
    ----------
    frame : object
        Eager or lazy; never changed.
    wanted : sequence of str
        Column names that are known to exist.

    Returns
    -------
    dict of str to Column, or None
        None when this is not a frame.
    """
    import narwhals as nw

    if hasattr(frame, "set_axis"):  # pandas allows names that are not texts
        frame = frame.set_axis(frame_names(frame), axis=1)
    whole = nw.from_native(frame, pass_through=True)
    if not isinstance(whole, nw.DataFrame | nw.LazyFrame):
        return None
    chosen = whole.select(*wanted)
    eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    return {name: _series_column(eager.get_column(name), name) for name in wanted}


def frame_names(frame: Any) -> list[str] | None:
    """Return the column names of a frame, duplicates included, or None when this is not a frame."""
    for attribute in ("collect_schema", "column_names", "columns"):  # a polars LazyFrame warns about `columns`
        held = getattr(frame, attribute, None)
        if attribute == "collect_schema" and held is not None:
            return list(held().names())
        if held is not None and not callable(held):
            return [c if isinstance(c, str) else str(c) for c in held]
    return None


def column_of(values: Any, name: str) -> Column:
    """Turn a series of any known frame library, an array or a list into a column."""
    if hasattr(values, "dtype") and not isinstance(values, np.ndarray | np.generic):
        import narwhals as nw

        wrapped = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(wrapped, nw.Series):
            return _series_column(wrapped, name)
    return from_values(values, name)


def _series_column(series: Any, name: str) -> Column:
    import narwhals as nw

    dtype = series.dtype
    if dtype == nw.Boolean or dtype.is_numeric():
        values = series.cast(nw.Float64).to_numpy() if series.null_count() else series.to_numpy()
        truth, whole = dtype == nw.Boolean, dtype.is_integer() and not series.null_count()
        source_type = FeatureType(kind="truth" if truth else "integer") if truth or whole else None
        kind = "truth" if truth else "number"
        return Column(kind=kind, values=np.array(values, dtype=np.float64), source_type=source_type)
    if dtype in (nw.Categorical, nw.Enum):
        column = _label_column(series, name)
        return replace(column, source_type=_category_type(series, column))
    if dtype == nw.String:
        return _label_column(series, name)
    return from_values(object_array(series.to_list()), name)


def _category_type(series: Any, column: Column) -> FeatureType:
    native = series.to_native()
    if series.implementation.is_pandas():  # categories of any kind, with or without an order
        return FeatureType(
            kind="category", categories=tuple(native.cat.categories.tolist()), ordered=bool(native.cat.ordered)
        )
    return FeatureType(kind="category", categories=tuple(sorted(label for label in column.labels if label.strip())))


def _label_column(series: Any, name: str) -> Column:
    implementation = series.implementation
    native = series.to_native()
    if implementation.is_pandas():
        import pandas

        codes, labels = pandas.factorize(native)
        values = np.asarray(labels, dtype=object)
        if len(values) and not any(isinstance(v, str) for v in values):
            return from_values(object_array([values[c] if c >= 0 else None for c in codes]), name)
        return from_codes(codes, values)
    if implementation.is_polars():
        import polars

        coded = native if native.dtype in (polars.Categorical, polars.Enum) else native.cast(polars.Categorical)
        places = coded.to_physical().fill_null(0).to_numpy().astype(np.int64)
        known = native.is_not_null().to_numpy()
        # Codes may be sparse: polars shares one list of categories between columns.
        codes, used = factorise_numbers(np.where(known, places, np.nan))
        first = np.zeros(len(used), dtype=np.int64)
        first[codes[known][::-1]] = np.flatnonzero(known)[::-1]
        return from_codes(codes, native.gather(first).cast(polars.String).to_list())
    if implementation.is_pyarrow():
        import pyarrow

        kinds = pyarrow.types
        if not kinds.is_dictionary(native.type):
            plain = kinds.is_string(native.type) or kinds.is_large_string(native.type)
            native = (native if plain else native.cast(pyarrow.large_string())).dictionary_encode()
        encoded = native.unify_dictionaries().combine_chunks()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return from_codes(codes, encoded.dictionary.to_pylist())
    return from_values(object_array(series.to_list()), name)


def check_lengths(columns: Mapping[str, Column]) -> None:
    """Refuse arrays of different lengths, naming them."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"`{name}` has {n:,}" for name, n in list(lengths.items())[:8])
        raise DataError(f"Arrays must have one length; {shown}.")


def columns_table(columns: Mapping[str, Column], options: Options) -> Table:
    """Put columns in their roles, one record per row."""

    def role(name: str | None) -> Column | None:
        return None if name is None else columns[name]

    weight = None if options.weight is None else numbers_of(columns[options.weight], options.weight, "weight")
    people = {name: columns[name] for name in identifier_names(list(columns), options)}
    notes = [identifier_note(n, int((~c.missing).sum()), len(c.distinct()[1])) for n, c in people.items()]
    return Table(
        outcome=role(options.outcome),
        decision=role(options.decision),
        score=role(options.score),
        groups={g: columns[g] for g in options.groups},
        continuous={g: columns[g] for g in options.continuous},
        features={f: columns[f] for f in options.features},
        design=DesignColumns.named(columns, options),
        weights=None if weight is None else WeightSums.of_rows(weight),
        notes=tuple(note for note in notes if note is not None),
    )


def _with_identifiers(names: Iterable[str], options: Options) -> list[str]:
    return list(dict.fromkeys([*options.columns, *identifier_names(list(names), options)]))


def frame_table(source: Any, options: Options) -> Table:
    """Read any in-memory source: a frame or a mapping of arrays.

    Parameters
    ----------
    source : object
        pandas, polars (eager, lazy), pyarrow, another frame narwhals knows, or a mapping of arrays.
    options : Options
        What was asked.

    Returns
    -------
    Table
    """
    if isinstance(source, Mapping):
        check_columns(options, [str(k) for k in source])
        named = {str(k): v for k, v in source.items()}
        arrays = {name: column_of(named[name], name) for name in _with_identifiers(named, options)}
        check_lengths(arrays)
        return columns_table(arrays, options)
    names = frame_names(source)
    if names is not None:
        check_columns(options, names)
        try:
            columns = frame_columns(source, _with_identifiers(names, options))
        except ModuleNotFoundError as error:
            raise MissingDependencyError(f"Reading this frame needs the package `{error.name}`.") from error
        if columns is not None:
            return columns_table(columns, options)
    allowed = ("a path", "pandas", "polars", "pyarrow", "DuckDB", "PySpark", "a mapping of arrays")
    raise DataError(f"Cannot read a source of type `{type(source).__name__}`; allowed are {listing(allowed, 9)}.")
