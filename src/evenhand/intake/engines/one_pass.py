"""The one pass an engine makes over the rows: which keys to group by and which sums to make.

The texts are SQL that DuckDB and Spark read alike. Labels are grouped as they are, missing ones
included; they are coded afterwards, on the few cells that come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.errors import DataError
from evenhand.intake.columns import Column, from_values
from evenhand.intake.dependence import identifier_names, identifier_note
from evenhand.intake.design import DesignColumns
from evenhand.intake.labels import code_binary, positive_for
from evenhand.intake.options import Options
from evenhand.intake.periods import key_sql
from evenhand.intake.records import MOST_LABELS, ScoreBins, Table, refuse_vast
from evenhand.intake.summed_values import VALUES, number_sql, value_names
from evenhand.intake.weights import WeightSums, weight_kind
from evenhand.intake.wording import count_of

# More cells than this means that a key is an identifier; rows are then the better form anyway.
MOST_CELLS = 4_000_000
# So many rows are looked at to see whether an outcome is binary.
PEEK = 10_000

_LARGEST = number_sql(float(np.finfo(np.float64).max))


class Engine(Protocol):
    """What an engine must do; everything else is shared.

    Attributes
    ----------
    kinds : mapping of str to str
        Column name to ``"number"``, ``"truth"``, ``"label"`` or ``"other"``.
    """

    kinds: Mapping[str, str]  # the kind of each column

    def quote(self, name: str) -> str:
        """Return a column's name as SQL."""

    def literal(self, text: str) -> str:
        """Return a label as SQL."""

    def group(self, keys: Sequence[str], sums: Sequence[str], most: int) -> list[Any]:
        """Group by the keys and make the sums; return one array per key and per sum, at most `most` long."""

    def peek(self, name: str, rows: int, beside: Sequence[str] = ()) -> list[Any]:
        """Return a column's distinct values among the first rows; the columns `beside` will be looked at next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What had to be known before the pass."""

    numeric: bool = False
    bins: ScoreBins | None = None
    frequency: bool = False
    outcome_sql: str | None = None
    outcome_kind: str = "none"

    @property
    def score_kind(self) -> str:
        return "none" if self.bins is None else self.bins.kind


class _Pass:
    """Keys and sums by name, in the order in which the engine gets them."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.sums: dict[str, str] = {}

    def run(self, engine: Engine, most: int = MOST_CELLS) -> dict[str, Any]:
        names = [*self.keys, *self.sums]
        arrays = engine.group(list(self.keys.values()), list(self.sums.values()), most + 1)
        return dict(zip(names, arrays, strict=True))


def engine_cells(engine: Engine, options: Options) -> Table:
    """Let an engine add up its rows in one pass and return the cells.

    A bare audit of rates (no score) is this one pass. With a score a light query first learns the
    score's range, the labels of the outcome and the kind of the weight.

    Parameters
    ----------
    engine : Engine
        DuckDB or Spark.
    options : Options
        What was asked; the columns are known to exist.

    Returns
    -------
    Table
    """
    _refuse_text(engine, options)
    numeric = _looks_numeric(engine, options)
    while True:
        facts = _learn(engine, options, numeric)
        numeric = facts.numeric
        work = _plan(engine, options, facts)
        cells = work.run(engine)
        table = replace(_table(cells, options, facts), engine=engine)
        # The first rows may hold 0 and 1 only and later ones other numbers: then the pass is made again.
        if numeric or table.outcome is None or not _is_numeric(table.outcome, options):
            return table
        numeric = True


def repeated_identifiers(engine: Engine, names: Sequence[str], options: Options) -> tuple[str, ...]:
    """Say which columns that name people repeat; asks the engine only when a column's name says that it does.

    Parameters
    ----------
    engine : Engine
        Where the rows are.
    names : sequence of str
        All columns of the table.
    options : Options
        What was asked.

    Returns
    -------
    tuple of str
        Sentences.
    """
    work = _Pass()
    candidates = identifier_names(names, options)
    for name in candidates:
        work.sums[f"rows:{name}"] = f"count({engine.quote(name)})"
        work.sums[f"people:{name}"] = f"count(DISTINCT {engine.quote(name)})"
    if not candidates:
        return ()
    counts = {key: int(_numbers(array)[0]) for key, array in work.run(engine, 1).items()}
    notes = [identifier_note(name, counts[f"rows:{name}"], counts[f"people:{name}"]) for name in candidates]
    return tuple(note for note in notes if note is not None)


def _plan(engine: Engine, options: Options, facts: _Facts) -> _Pass:
    work = _Pass()
    score = None if options.score is None else _double(engine, options.score)
    weight = None if options.weight is None else _double(engine, options.weight)
    for name in (*options.groups, *options.design):
        work.keys[f"group:{name}"] = _group_key(engine, name, options)
    if options.outcome is not None:
        outcome = engine.quote(options.outcome)
        if facts.numeric:
            y = _double(engine, options.outcome)
            work.keys["outcome"] = f"CASE WHEN {y} IS NULL OR isnan({y}) THEN 1 WHEN {_finite(y)} THEN 0 ELSE 2 END"
            work.sums["outcome:sum"] = f"sum({y})" if weight is None else f"sum({weight} * {y})"
        else:
            work.keys["outcome"] = outcome if engine.kinds[options.outcome] != "other" else _text(outcome)
    if options.threshold is not None and score is not None:
        work.keys["decision"] = f"CASE WHEN {score} >= {number_sql(options.threshold)} THEN 1 ELSE 0 END"
    elif options.decision is not None:
        decision = engine.quote(options.decision)
        work.keys["decision"] = decision if engine.kinds[options.decision] != "other" else _text(decision)
    work.sums["rows"] = "count(*)"
    if weight is not None:
        work.sums.update(_weight_sums(weight))
    if score is not None and facts.bins is not None:
        work.keys["score"] = _bin_key(score, facts.bins)
        for name in value_names(facts.outcome_kind, facts.score_kind):
            v = VALUES[name].sql.format(y=facts.outcome_sql or "", s=score)
            w = "" if weight is None else f"{weight} * "
            work.sums[f"{name}:wv"] = f"sum({w}{v})"
            if weight is not None and not facts.frequency:
                work.sums[f"{name}:wwv"] = f"sum({w}{w}{v})"
                w = w + w
            work.sums[f"{name}:wwvv"] = f"sum({w}{v} * {v})"
    return work


def _learn(engine: Engine, options: Options, numeric: bool) -> _Facts:
    if options.score is None:
        return _Facts(numeric=numeric, outcome_kind="none" if options.outcome is None else "binary")
    score, used = _double(engine, options.score), _used(engine, options)
    work = _Pass()
    inside = f"{_finite(score)} AND {used}"
    work.sums["low"] = f"min(CASE WHEN {inside} THEN {score} END)"
    work.sums["high"] = f"max(CASE WHEN {inside} THEN {score} END)"
    if options.weight is not None:
        work.sums.update(_weight_sums(_double(engine, options.weight)))
    cells = work.run(engine, 1)
    low, high = (float(np.nan_to_num(_numbers(cells[end])[0])) for end in ("low", "high"))
    refuse_vast(np.array([low, high]), options.score, "Score")
    frequency = False
    if options.weight is not None:
        one = np.ones(1, dtype=bool)
        frequency = weight_kind(options.weight, options.weight_kind, _weights_of(cells), one) == "frequency"
    outcome_sql, outcome_kind = None, "none"
    if options.outcome is not None:
        if not numeric:
            outcome_sql = _outcome_sql(engine, options)
            numeric = outcome_sql is None
        outcome_kind = "numeric" if numeric else "binary"
        outcome_sql = _double(engine, options.outcome) if numeric else outcome_sql
    return _Facts(
        numeric=numeric,
        bins=ScoreBins.over(low, high, options.score_bins),
        frequency=frequency,
        outcome_sql=outcome_sql,
        outcome_kind=outcome_kind,
    )


def _outcome_sql(engine: Engine, options: Options) -> str | None:
    """Return SQL for the outcome as 0 or 1, or None when it turns out to be numeric."""
    name = options.outcome
    assert name is not None
    key = engine.quote(name) if engine.kinds[name] != "other" else _text(engine.quote(name))
    work = _Pass()
    work.keys["value"], work.sums["rows"] = key, "count(*)"
    column = from_values(work.run(engine, MOST_LABELS)["value"], name)
    coded, kind, _, _ = code_binary(column, role="outcome", name=name, positive=options.positive)
    if kind == "numeric":
        return None
    if column.kind == "label":
        ones = [column.labels[c] for c, y in zip(column.values, coded, strict=True) if y == 1]
        tests = " OR ".join(f"{key} = {engine.literal(v)}" for v in ones)
    elif column.kind == "truth":
        tests = " OR ".join(key if v else f"NOT {key}" for v, y in zip(column.values, coded, strict=True) if y == 1)
    else:
        ones = [number_sql(float(v)) for v, y in zip(column.values, coded, strict=True) if y == 1]
        tests = " OR ".join(f"{_double(engine, name)} = {v}" for v in ones)
    one, zero = number_sql(1.0), number_sql(0.0)
    return f"(CASE WHEN {tests} THEN {one} ELSE {zero} END)" if tests else zero


def _table(cells: Mapping[str, Any], options: Options, facts: _Facts) -> Table:
    rows = _numbers(cells["rows"]).astype(np.int64)
    _refuse_identifiers(cells, options, len(rows))
    columns = {name: from_values(cells[name], name) for name in cells if ":" not in name and name != "rows"}
    keyed = {key.removeprefix("group:"): key for key in cells if key.startswith("group:")}
    people = _cut_middles({name: from_values(cells[key], name) for name, key in keyed.items()}, options)
    weights = None if options.weight is None else _weights_of(cells)
    outcome = columns.get("outcome")
    if outcome is not None and facts.numeric:
        state = outcome.values
        scale = rows if weights is None else weights.total
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(scale > 0, _numbers(cells["outcome:sum"]) / scale, 0.0)
        mean = np.where(state == 1, np.nan, np.where(state == 2, np.inf, mean))
        outcome = Column(kind="number", values=mean)
    moments = {}
    for name in value_names(facts.outcome_kind, facts.score_kind):
        wv, wwvv = (np.nan_to_num(_numbers(cells[f"{name}:{part}"])) for part in ("wv", "wwvv"))
        wwv = np.nan_to_num(_numbers(cells[f"{name}:wwv"])) if f"{name}:wwv" in cells else wv
        moments[name] = (wv, wwv, wwvv)
    return Table(
        outcome=outcome,
        decision=columns.get("decision"),
        score=columns.get("score"),
        groups={name: people[name] for name in options.groups},
        design=DesignColumns.named(people, options),
        weights=weights,
        rows=rows,
        bins=facts.bins,
        numeric_outcome=facts.numeric,
        moments=moments,
        notes=(f"Rows were added up to cells by the engine that holds them ({count_of(len(rows), 'cell')}).",),
    )


def _refuse_identifiers(cells: Mapping[str, Any], options: Options, size: int) -> None:
    if size <= MOST_CELLS:
        return
    keys = [key for key in cells if key.startswith("group:")]
    levels = {key: len(from_values(cells[key], key).distinct()[1]) for key in keys}
    widest = max(levels, key=lambda key: levels[key]).removeprefix("group:")
    raise DataError(
        f"Grouping gives more than {count_of(MOST_CELLS, 'cell')}; column `{widest}` looks like an "
        f"identifier. Leave it out, cut it with `cuts=`, or pass fewer `score_bins`."
    )


def _cut_middles(groups: Mapping[str, Column], options: Options) -> dict[str, Column]:
    # The engine returns the number of the interval; a number inside it is what the next step expects.
    out = dict(groups)
    for name, points in options.cuts.items():
        inside = np.array([points[0] - 1.0 - abs(points[0]), *points, np.nan])
        place = np.where(groups[name].missing, -1, np.nan_to_num(groups[name].values)).astype(np.int64)
        out[name] = Column(kind="number", values=inside[place])
    return out


def _weight_sums(w: str) -> dict[str, str]:
    return {
        "weight:total": f"sum({w})",
        "weight:square": f"sum({w} * {w})",
        "weight:low": f"min(CASE WHEN {w} > 0 THEN {w} END)",
        "weight:high": f"max({w})",
        "weight:zero": _count_if(f"{w} = 0"),
        "weight:broken": _count_if(f"{_finite(w)} AND {w} <> floor({w})"),
        "weight:bad": "count(*) - " + _count_if(f"{_finite(w)} AND {w} >= 0"),
    }


def _count_if(condition: str) -> str:
    # Over nothing but NULL, DuckDB counts NULL and Spark 0.
    return f"count_if(coalesce({condition}, FALSE))"


def _weights_of(cells: Mapping[str, Any]) -> WeightSums:
    sums: dict[str, Any] = {f.name: _numbers(cells[f"weight:{f.name}"]) for f in fields(WeightSums)}
    return WeightSums(**sums | {name: sums[name].astype(np.int64) for name in ("zero", "broken", "bad")})


def _group_key(engine: Engine, name: str, options: Options) -> str:
    raw = engine.quote(name)
    if name == options.period:
        return key_sql(raw, options.period_unit)
    points = options.cuts.get(name)
    if points is None:
        return raw if engine.kinds[name] != "other" else _text(raw)
    x = _double(engine, name)
    cases = "".join(f" WHEN {x} < {number_sql(p)} THEN {i}" for i, p in enumerate(points))
    return f"CASE WHEN {x} IS NULL OR isnan({x}) THEN NULL{cases} ELSE {len(points)} END"


def _bin_key(score: str, bins: ScoreBins) -> str:
    place = f"floor(({score} - {number_sql(bins.low)}) * {number_sql(bins.scale)})"
    return f"CASE WHEN {_finite(score)} THEN CAST(least(greatest({place}, 0), {bins.bins - 1}) AS INT) END"


def _used(engine: Engine, options: Options) -> str:
    """Return SQL for "this row is not dropped for a missing value"."""
    needed = [c for c in (options.outcome, options.decision) if c is not None]
    needed += options.groups if options.missing == "drop" else ()
    needed += [name for name in options.design if options.missing_strata == "drop" or name not in options.strata]
    tests = []
    for name in needed:
        raw, kind = engine.quote(name), engine.kinds[name]
        tests.append(f"{raw} IS NOT NULL")
        if kind == "number":
            tests.append(f"NOT isnan({_double(engine, name)})")
        elif kind == "label":
            tests.append(f"trim({raw}) <> ''")
    if options.weight is not None:
        tests.append(f"{_double(engine, options.weight)} > 0")
    return " AND ".join(tests) or "TRUE"


def _looks_numeric(engine: Engine, options: Options) -> bool:
    if (
        options.outcome is None
        or engine.kinds[options.outcome] != "number"
        or positive_for("outcome", options.positive)[0] is not None
    ):
        return False
    beside = options.columns if options.rows == "batches" else ()
    column = from_values(engine.peek(options.outcome, PEEK, beside), options.outcome)
    return len(column.distinct()[1]) > 2 and _is_numeric(column, options)


def _is_numeric(column: Column, options: Options) -> bool:
    if column.kind != "number" or options.outcome is None:
        return False
    return code_binary(column, role="outcome", name=options.outcome, positive=options.positive).kind == "numeric"


def _refuse_text(engine: Engine, options: Options) -> None:
    roles = [("score", options.score), ("weight", options.weight), *(("cuts", name) for name in options.cuts)]
    for role, name in roles:
        if name is not None and engine.kinds[name] not in ("number", "truth"):
            raise DataError(f"Column `{name}` must hold numbers to be used as {role}; got text.")


def _double(engine: Engine, name: str) -> str:
    return f"CAST({engine.quote(name)} AS DOUBLE)"


def _finite(x: str) -> str:
    # NaN is larger than every number on both engines, so one comparison excludes it.
    return f"abs({x}) <= {_LARGEST}"


def _text(x: str) -> str:
    return f"CAST({x} AS STRING)"


def _numbers(values: Any) -> FloatArray:
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.asarray(values, dtype=np.float64)
