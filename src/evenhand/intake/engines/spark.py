"""Spark: the sums are made on the cluster; only cells reach the driver."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import DataError
from evenhand.intake.batches import FIRST_ROWS
from evenhand.intake.columns import Column, from_values, object_array

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


class SparkEngine:
    """A PySpark DataFrame as an engine.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Classic or Connect.
    """

    def __init__(self, frame: Any) -> None:
        fields = frame.schema.fields
        # Names from strangers never enter Spark's SQL: columns are addressed by position.
        self._frame = frame.toDF(*(f"c{i}" for i in range(len(fields))))
        self._places = {f.name: i for i, f in enumerate(fields)}
        self.kinds: Mapping[str, str] = {f.name: _kind(f.dataType.simpleString()) for f in fields}
        self._first: dict[tuple[str, ...], list[Any]] = {}
        self._decimals = {f.name for f in fields if f.dataType.simpleString().startswith("decimal")}

    def quote(self, name: str) -> str:
        """Return a column's name as SQL."""
        return f"c{self._places[name]}"

    def literal(self, text: str) -> str:
        """Return a label as SQL; as bytes, because Spark's rules for quotes depend on its settings."""
        return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"

    def group(self, keys: Sequence[str], sums: Sequence[str], most: int) -> list[Any]:
        """Group and add up on the engine."""
        from pyspark.sql import functions

        named_keys = [functions.expr(sql).alias(f"k{i}") for i, sql in enumerate(keys)]
        named_sums = [functions.expr(sql).alias(f"s{i}") for i, sql in enumerate(sums)]
        result = self._frame.groupBy(*named_keys).agg(*named_sums)
        return _arrays(result.limit(most) if keys else result)

    def peek(self, name: str, rows: int, beside: Sequence[str] = ()) -> list[Any]:
        """Return a column's distinct values among the first rows: those of other columns too, if they are asked for."""
        if name in beside:
            return list({row[beside.index(name)] for row in self.first(beside)})
        return list({row[0] for row in self._frame.select(self.quote(name)).limit(rows).collect()})

    def first(self, wanted: Sequence[str]) -> list[Any]:
        """Return the first rows of the wanted columns, `FIRST_ROWS` at most, which Spark is asked for once."""
        key = tuple(wanted)
        if key not in self._first:
            # Collected, because Spark then reads no more than it needs; Arrow would let every partition begin.
            self._first = {key: collected(self.cast(wanted, narrow=True).limit(FIRST_ROWS))}
        return self._first[key]

    def where(self, condition: str) -> SparkEngine:
        """Return the rows for which a condition in SQL holds."""
        chosen = copy.copy(self)
        chosen._frame, chosen._first = self._frame.filter(condition), {}
        return chosen

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._frame.count())

    def fetch(self, wanted: Sequence[str]) -> dict[str, Column]:
        """Bring the wanted columns into memory."""
        arrays = _arrays(self.cast(wanted))
        return {name: from_values(array, name) for name, array in zip(wanted, arrays, strict=True)}

    def cast(self, wanted: Sequence[str], *, narrow: bool = False) -> Any:
        """Return a frame of the wanted columns: numbers as doubles, truth values, and everything else as texts.

        Numbers that are narrow stay so on request, for who makes doubles of them behind the way that they travel.
        """
        from pyspark.sql import functions

        parts = []
        for i, name in enumerate(wanted):
            sql = self.quote(name)
            if self.kinds[name] == "other" or (
                self.kinds[name] == "number" and not (narrow and name not in self._decimals)
            ):
                sql = f"CAST({sql} AS {'DOUBLE' if self.kinds[name] == 'number' else 'STRING'})"
            parts.append(functions.expr(sql).alias(f"v{i}"))
        return self._frame.select(*parts)


def collected(frame: Any) -> list[Any]:
    """Return the rows of a frame, or say in one sentence why Spark could not make them."""
    try:
        return list(frame.collect())
    except Exception as error:  # Spark wraps what a worker raised in classes of its own, which differ by version
        raise DataError(f"Spark could not work through the rows: {innermost(error)}.") from error


def innermost(error: BaseException) -> str:
    r"""Return the line of a complaint of Spark that says what happened: Java wraps the cause, and Python wraps Java.

    Examples
    --------
    >>> innermost(OSError("An error occurred while calling o7.collect.\nCaused by: java.io.EOFException: End"))
    'java.io.EOFException: End'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    said = next((line for line in reversed(lines) if "Error: " in line or "Exception: " in line), lines[0])
    return said.removeprefix("Caused by: ").rstrip(".")


def _arrays(frame: Any) -> list[Any]:
    # Arrow is many times faster than rows where it is there (Spark 4 with pyarrow).
    if hasattr(frame, "toArrow") and importlib.util.find_spec("pyarrow") is not None:
        return [column.combine_chunks() if column.num_chunks else [] for column in frame.toArrow().columns]
    rows = frame.collect()
    return [object_array([row[i] for row in rows]) for i in range(len(frame.columns))]


def _kind(dtype: str) -> str:
    number = dtype.split("(")[0] in _NUMBERS
    return {"boolean": "truth", "string": "label"}.get(dtype, "number" if number else "other")
