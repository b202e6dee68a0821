"""Spark: the sums are made on the cluster; only cells reach the driver."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

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

    def peek(self, column: str, rows: int) -> list[Any]:
        """Return the distinct values among the first rows."""
        from pyspark.sql import functions

        first = self._frame.select(functions.expr(column).alias("v")).limit(rows).collect()
        return list({row[0] for row in first})

    def where(self, condition: str) -> SparkEngine:
        """Return the rows for which a condition in SQL holds."""
        chosen = copy.copy(self)
        chosen._frame = self._frame.filter(condition)
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


def _arrays(frame: Any) -> list[Any]:
    # Arrow is many times faster than rows where it is there (Spark 4 with pyarrow).
    if hasattr(frame, "toArrow") and importlib.util.find_spec("pyarrow") is not None:
        return [column.combine_chunks() if column.num_chunks else [] for column in frame.toArrow().columns]
    rows = frame.collect()
    return [object_array([row[i] for row in rows]) for i in range(len(frame.columns))]


def _kind(dtype: str) -> str:
    number = dtype.split("(")[0] in _NUMBERS
    return {"boolean": "truth", "string": "label"}.get(dtype, "number" if number else "other")
