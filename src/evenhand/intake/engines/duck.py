"""DuckDB: relations and the files it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.intake.batches import BATCH_ROWS
from evenhand.intake.columns import Column, from_codes, from_values
from evenhand.intake.engines.record_batches import batch_columns, require_arrow

# A column of texts with more distinct values than this is fetched as texts, not coded by the engine.
MOST_CODED = 5000

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = (*_WHOLE, *(f"U{t}" for t in _WHOLE), "FLOAT", "DOUBLE", "REAL", "DECIMAL")


class DuckEngine:
    """A DuckDB relation as an engine; the user's connection gets no table and no view.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
        Where the rows are.
    names : mapping of str to str, optional
        The user's column names to the relation's; the same when not given.
    """

    def __init__(self, relation: Any, names: Mapping[str, str] | None = None) -> None:
        self._relation = relation
        own = [str(c) for c in relation.columns]
        self._names = dict(names) if names is not None else {c: c for c in own}
        kinds = {c: kind_of(str(t)) for c, t in zip(own, relation.dtypes, strict=True)}
        self.kinds: Mapping[str, str] = {name: kinds[column] for name, column in self._names.items()}

    def check_case(self, wanted: Sequence[str]) -> None:
        """Refuse a needed column that DuckDB cannot tell from another one: it ignores case."""
        lower = [c.lower() for c in self._relation.columns]
        for name in wanted:
            if lower.count(self._names[name].lower()) > 1:
                raise DataError(f"Column `{name}` occurs more than once when case is ignored, as DuckDB does; rename.")

    def quote(self, name: str) -> str:
        """Return a column's name as SQL."""
        return '"' + self._names[name].replace('"', '""') + '"'

    def literal(self, text: str) -> str:
        """Return a label as SQL."""
        return "'" + text.replace("'", "''") + "'"

    def group(self, keys: Sequence[str], sums: Sequence[str], most: int) -> list[Any]:
        """Group and add up on the engine."""
        named = [f"{sql} AS c{i}" for i, sql in enumerate([*keys, *sums])]
        result = self._relation.aggregate(", ".join(named), ", ".join(keys)).limit(most).fetchnumpy()
        return [result[f"c{i}"] for i in range(len(named))]

    def peek(self, name: str, rows: int, beside: Sequence[str] = ()) -> list[Any]:
        """Return a column's distinct values among the first rows."""
        return [row[0] for row in self._relation.project(self.quote(name)).limit(rows).distinct().fetchall()]

    def where(self, condition: str) -> DuckEngine:
        """Return the rows for which a condition in SQL holds."""
        return DuckEngine(self._relation.filter(condition), self._names)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._relation.aggregate("count(*) AS n").fetchall()[0][0])

    def fetch(self, wanted: Sequence[str]) -> dict[str, Column]:
        """Bring the wanted columns into memory; the engine codes the labels."""
        texts: dict[str, list[str]] = {}
        parts = []
        for i, name in enumerate(wanted):
            sql, kind = self.quote(name), self.kinds[name]
            if kind == "number":
                sql = f"CAST({sql} AS DOUBLE)"
            elif kind != "truth":
                sql = f"CAST({sql} AS VARCHAR)"
                texts_of = self._texts(sql)
                if texts_of is not None:
                    texts[name] = texts_of
                    listed = ", ".join(self.literal(t) for t in texts_of)
                    sql = f"enum_code(CAST({sql} AS ENUM({listed})))" if texts_of else "NULL"
            parts.append(f"{sql} AS c{i}")
        result = self._relation.project(", ".join(parts)).fetchnumpy()
        columns = {}
        for i, name in enumerate(wanted):
            values = result[f"c{i}"]
            if name in texts:
                columns[name] = from_codes(_codes(values, bool(texts[name])), texts[name])
            else:
                columns[name] = from_values(values, name)
        return columns

    def record_batches(self, wanted: Sequence[str]) -> Iterator[dict[str, Column]]:
        """Bring the wanted columns into memory, some rows at a time."""
        require_arrow()
        parts = []
        for i, name in enumerate(wanted):
            type_name = {"number": "DOUBLE", "truth": "BOOLEAN"}.get(self.kinds[name], "VARCHAR")
            parts.append(f"CAST({self.quote(name)} AS {type_name}) AS c{i}")
        import duckdb
        import pyarrow

        try:
            with self._relation.project(", ".join(parts)).to_arrow_reader(BATCH_ROWS) as reader:
                for batch in reader:
                    yield batch_columns(batch.columns, wanted, self.kinds)
        except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise DataError(f"The rows cannot be read batch by batch: {lines[0].rstrip('. ')}.") from None

    def check_types(self, wanted: Sequence[str]) -> None:
        """Read columns to the end once, so that a value of another type than the first rows shows now."""
        if wanted:
            self._relation.aggregate(", ".join(f"count({self.quote(name)})" for name in wanted)).fetchall()

    def _texts(self, sql: str) -> list[str] | None:
        rows = self._relation.project(f"{sql} AS v").distinct().limit(MOST_CODED + 1).fetchall()
        return None if len(rows) > MOST_CODED else [row[0] for row in rows if row[0] is not None]


def _codes(values: Any, known: bool) -> Any:
    if not known:
        return np.full(len(values), -1, dtype=np.int64)
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    codes = np.asarray(np.ma.getdata(values)).astype(np.int64)
    return codes if mask is None else np.where(mask, -1, codes)


def kind_of(dtype: str) -> str:
    """Return what a column of this type holds: "number", "truth", "label" or "other"."""
    plain = dtype.split("(")[0] if dtype.endswith(")") else dtype
    return {"BOOLEAN": "truth", "VARCHAR": "label"}.get(dtype, "number" if plain in _NUMBERS else "other")
