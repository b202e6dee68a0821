"""Generated inputs: tables with odd columns, kept whole or broken, in every form that can be read.

A seed gives one case, always the same. Where the generator knows what the columns mean, it keeps the plain truth, from
which estimates are computed again.
"""

from __future__ import annotations

import datetime
import decimal
import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

METRICS = (
    "selection_rate", "tpr", "fpr", "tnr", "fnr", "precision", "npv", "fdr", "for", "accuracy", "error_rate",
    "balanced_accuracy", "f1", "auc", "brier", "log_loss", "calibration_error", "mean_score", "mae", "mse",
    "mean_residual",
)  # fmt: skip
NAMES = (
    "sex", "a b", "naïve", "性别", "x;y", "`tick`", '"quoted"', "c0", "count(*)", "select", "; drop table t; --",
    "<script>alert(1)</script>", "=1+1", "\u202eevil", "🙂", "rows", "weight", "outcome", "a" * 300, "a\tb", "%s{0}",
    "group", "score array", "sum", "'", "x × y", "\\", "__class__",
)  # fmt: skip
LABELS = (
    "a", "b", "F", "M", "F ", "f", "é", "e\u0301", "性", "<b>x</b>", "`x`", "a,b", 'a"b', "a|b", "it's", "=cmd()", "🙂",
    "null", "None", "nan", "NA", "-", "#1", "x" * 2000, "a=b", "a & b", "vs", "{0}", "%d", "\u200b", "\u202e", "1 000",
)  # fmt: skip
PAIRS = (
    (1, 0), (True, False), ("yes", "no"), ("approved", "denied"), ("good", "bad"), ("T", "F"), ("y", "n"), (1.0, 0.0),
    (1, -1), ("true", "false"), ("+", "-"), (">50K", "<=50K"),
)  # fmt: skip


@dataclass
class Truth:
    """The columns as plain arrays, NaN or None where missing; None when nothing can be promised."""

    outcome: np.ndarray | None = None
    decision: np.ndarray | None = None
    score: np.ndarray | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    weight: np.ndarray | None = None
    kind: str | None = None


@dataclass
class Case:
    """One input: a table or a broken file, what is asked of it, and the truth where it is known."""

    seed: int
    columns: dict[str, Any]
    options: dict[str, Any]
    form: str
    truth: Truth | None
    broken: str = ""
    model: str = ""

    @property
    def command(self) -> bool:
        """Whether the command line reads it."""
        return self.form in FILES


FILES = ("csv", "csv.gz", "tsv", "semicolon", "bom", "crlf", "quoted", "parquet", "arrow", "feather")
FORMS = (*FILES, "pandas", "nullable", "polars", "lazy", "pyarrow", "duckdb", "mapping", "arrays", "lists")
BREAKS = (
    "truncated", "flipped", "empty", "header", "twice", "other ending", "noise", "utf-16", "latin-1", "nulls", "ragged",
    "unclosed", "preamble", "cut column", "no columns",
)  # fmt: skip


def make_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([seed, 20])
    n = int(rng.choice([1, 2, 3, 6, 20, 60, 200, 600, 2500], p=[0.04, 0.04, 0.05, 0.1, 0.15, 0.2, 0.27, 0.12, 0.03]))
    names = list(rng.permutation(np.array(NAMES, dtype=object)))
    truth: Truth | None = Truth()
    columns: dict[str, Any] = {}
    options: dict[str, Any] = {"groups": []}
    for _ in range(int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))):
        name = names.pop()
        columns[name], plain = _groups(rng, n)
        options["groups"].append(name)
        truth = _keep(truth, plain, lambda t, p, name=name: t.groups.update({name: p}))
    numeric = [g for g in options["groups"] if columns[g].dtype.kind in "if"]
    if rng.random() < 0.8:
        columns[options.setdefault("outcome", names.pop())], plain = _outcome(rng, n, options)
        truth = _keep(truth, plain, lambda t, p: setattr(t, "outcome", p))
    if rng.random() < 0.85:
        columns[options.setdefault("decision", names.pop())], plain = _binary(rng, n)
        truth = _keep(truth, plain, lambda t, p: setattr(t, "decision", p))
    if rng.random() < (0.55 if "decision" in options else 0.9):
        columns[options.setdefault("score", names.pop())], plain = _score(rng, n)
        truth = _keep(truth, plain, lambda t, p: setattr(t, "score", p))
    if rng.random() < 0.3:
        columns[options.setdefault("weight", names.pop())], plain = _weight(rng, n, options)
        truth = _keep(truth, plain, lambda t, p: setattr(t, "weight", p))
        if truth is not None:
            truth.kind = options.get("weight_kind")
    model = ""
    if rng.random() < 0.15 and n <= 200:
        inputs = [names.pop() for _ in range(int(rng.integers(1, 4)))]
        columns.update({name: _feature(rng, n) for name in inputs})
        options["features"] = inputs
        model = str(rng.choice(["linear", "linear", "linear", "steep", "raises", "nan", "short", "words", "constant"]))
        truth = None if "decision" not in options or "score" not in options else truth
    _ask(rng, options, numeric)
    form = str(rng.choice(FORMS))
    broken = str(rng.choice(BREAKS)) if form in FILES and rng.random() < 0.25 else ""
    if broken or options.get("cuts") or options.get("continuous"):
        truth = None
    if form in FILES and truth is not None and any(_risky(c) for c in columns.values()):
        truth = None  # a text file does not tell numbers from texts
    return Case(seed, columns, options, form, truth, broken, model)


def _keep(truth: Truth | None, plain: Any, put: Any) -> Truth | None:
    if truth is None or plain is None:
        return None
    put(truth, plain)
    return truth


def _risky(column: Any) -> bool:
    texts = [v for v in column if isinstance(v, str)]
    return any(t != t.strip() or t in ("null", "nan", "NA", "None") or t.replace(" ", "").isdigit() for t in texts)


def _one(rng: np.random.Generator, **chances: float) -> str:
    return str(rng.choice(list(chances), p=np.array(list(chances.values())) / sum(chances.values())))


def _groups(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    kind = _one(
        rng,
        two=0.36,
        odd=0.2,
        many=0.07,
        one=0.02,
        numbers=0.08,
        truth=0.06,
        missing=0.1,
        each=0.015,
        dates=0.02,
        tiny=0.06,
        mixed=0.015,
    )
    if kind == "two":
        found = rng.choice(["F", "M"], n).astype(object)
    elif kind == "odd":
        found = rng.choice(np.array(LABELS, dtype=object), int(rng.integers(2, 6)), replace=False)[
            rng.integers(0, 2, n)
        ]
    elif kind == "many":
        found = np.array([f"g{i}" for i in rng.integers(0, int(rng.choice([12, 40])), n)], dtype=object)
    elif kind == "one":
        found = np.full(n, "only", dtype=object)
    elif kind == "numbers":
        numbers = rng.choice([1, 2, 3.5, -4, 2**60, 1e-7], 3, replace=False)[rng.integers(0, 3, n)]
        return numbers, np.array([_number(v) for v in numbers], dtype=object)
    elif kind == "truth":
        truths = rng.integers(0, 2, n).astype(bool)
        return truths, np.array([str(bool(v)) for v in truths], dtype=object)
    elif kind == "missing":
        found = rng.choice(np.array(["F", "M", None, ""], dtype=object), n)
        return found, np.array([v or None for v in found], dtype=object)
    elif kind == "each":
        found = np.array([f"id{i}" for i in range(n)], dtype=object)
    elif kind == "dates":
        days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 3, n)]
        return np.array(days, dtype=object), None
    elif kind == "tiny":
        found = np.where(np.arange(n) < 2, "rare", rng.choice(["F", "M"], n)).astype(object)
    else:
        items = [1, "1", 1.0, True, None, "x", b"y", decimal.Decimal("1.5")]
        return np.array([items[i] for i in rng.integers(0, len(items), n)] + [None], dtype=object)[:-1], None
    return found, found


def _number(value: float) -> str:
    whole = abs(value) < 1e15 and value == int(value)
    return str(int(value)) if whole else repr(float(value))


def _binary(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    one, zero = PAIRS[int(rng.integers(len(PAIRS)))]
    plain = (rng.random(n) < rng.choice([0.0, 0.02, 0.4, 0.5, 0.9, 1.0], p=[0.02, 0.1, 0.33, 0.36, 0.17, 0.02])) * 1.0
    if rng.random() < 0.2:
        plain[rng.random(n) < 0.15] = np.nan
    if rng.random() < 0.015:
        return rng.choice(np.array(["a", "b", "c"], dtype=object), n), None
    items = [zero, one]
    values = np.empty(n, dtype=object)
    values[:] = [None if np.isnan(v) else items[int(v)] for v in plain]
    known = plain[~np.isnan(plain)]
    constant = known.size == 0 or known.min() == known.max()
    return values, None if constant and isinstance(one, str) else plain


def _outcome(rng: np.random.Generator, n: int, options: dict[str, Any]) -> tuple[Any, Any]:
    kind = _one(
        rng, binary=0.78, three=0.06, real=0.08, huge=0.03, odd_pair=0.03, infinite=0.02,
    )  # fmt: skip
    if kind == "binary":
        return _binary(rng, n)
    if kind == "three":
        found = rng.integers(0, 3, n).astype(float)
    elif kind == "real":
        found = rng.normal(size=n) * 10
    elif kind == "huge":
        found = rng.choice([2.0**53, 2.0**60, 1e300, -1e300, 1e-300], n)
    elif kind == "odd_pair":
        values = rng.choice(np.array(["left", "right"], dtype=object), n)
        if rng.random() < 0.7:
            options["positive"] = {"outcome": "left"}
            return values, None
        return values, None
    else:
        found = np.where(rng.random(n) < 0.1, np.inf, rng.normal(size=n))
    return found, None if len(np.unique(found)) <= 2 else found


def _score(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    kind = _one(
        rng,
        probability=0.43,
        ties=0.13,
        constant=0.06,
        real=0.1,
        huge=0.05,
        tiny=0.04,
        missing=0.02,
        infinite=0.015,
        whole=0.05,
        beyond=0.025,
        ends=0.04,
        spread=0.04,
    )
    found = rng.random(n)
    if kind == "ties":
        found = np.round(found, 1)
    elif kind == "constant":
        found = np.full(n, 0.25)
    elif kind == "real":
        found = rng.normal(size=n) * 3
    elif kind == "huge":
        found = rng.normal(size=n) * 1e300
    elif kind == "tiny":
        found = found * 5e-324
    elif kind == "missing":
        found[rng.random(n) < 0.2] = np.nan
    elif kind == "infinite":
        found[rng.random(n) < 0.2] = rng.choice([np.inf, -np.inf])
    elif kind == "whole":
        found = rng.integers(0, 100, n)
        return found, found.astype(float)
    elif kind == "beyond":
        return (2**62 + rng.integers(0, 1000, n)).astype(np.int64), None
    elif kind == "ends":
        found = rng.integers(0, 2, n).astype(float)
    elif kind == "spread":
        found = 10.0 ** rng.uniform(-300, 300, n)
    return found, found


def _weight(rng: np.random.Generator, n: int, options: dict[str, Any]) -> tuple[Any, Any]:
    kind = _one(
        rng,
        real=0.35,
        counts=0.25,
        unsaid=0.05,
        ones=0.05,
        zeros=0.08,
        negative=0.02,
        missing=0.02,
        huge=0.05,
        tiny=0.03,
        vast=0.05,
        equal=0.05,
    )
    found: Any = rng.uniform(0.2, 5, n)
    if kind in ("counts", "zeros"):
        found = rng.integers(0 if kind == "zeros" else 1, 6, n)
        options["weight_kind"] = str(rng.choice(["frequency", "sampling"]))
    elif kind == "unsaid":
        found = rng.integers(1, 60, n)
    elif kind == "ones":
        found = np.ones(n, dtype=np.int64)
    elif kind == "negative":
        found[rng.integers(0, n)] = -1.0
    elif kind == "missing":
        found[rng.integers(0, n)] = np.nan
    elif kind == "huge":
        found = rng.choice([2.0**53, 2.0**61, 1.0, 1e250], n)
        options["weight_kind"] = str(rng.choice(["frequency", "sampling"]))
    elif kind == "tiny":
        found = found * 1e-200
    elif kind == "vast":
        found = rng.integers(1, 10**6, n) * 10**6
        options["weight_kind"] = "frequency"
    elif kind == "equal":
        found = np.full(n, 0.5)
    return found, np.asarray(found, dtype=float)


def _feature(rng: np.random.Generator, n: int) -> Any:
    kind = _one(
        rng, normal=0.5, constant=0.1, binary=0.15, words=0.08, missing=0.07, huge=0.05, infinite=0.05,
    )  # fmt: skip
    found: Any = rng.normal(size=n)
    if kind == "constant":
        found = np.ones(n)
    elif kind == "binary":
        found = rng.integers(0, 2, n).astype(float)
    elif kind == "words":
        found = rng.choice(np.array(["u", "v", "w"], dtype=object), n)
    elif kind == "missing":
        found[rng.random(n) < 0.2] = np.nan
    elif kind == "huge":
        found = found * 1e200
    elif kind == "infinite":
        found[0] = np.inf
    return found


def _ask(rng: np.random.Generator, options: dict[str, Any], numeric: list[str]) -> None:
    def chance(p: float) -> bool:
        return bool(rng.random() < p)

    if chance(0.3):
        options["metrics"] = [str(m) for m in rng.choice(_possible(options), int(rng.integers(1, 5)), replace=True)]
        options["metrics"] = list(dict.fromkeys(options["metrics"]))
    if chance(0.15):
        options["compare"] = "pairs"
    if chance(0.15):
        options["ratio"] = True
    if chance(0.25) and not options.get("ratio"):
        options["margin"] = str(
            rng.choice(
                ["0.05", "0.2", "ratio:0.8", "four-fifths", "5", "0", "nan", "1e-300"],
                p=[0.3, 0.2, 0.16, 0.2, 0.03, 0.03, 0.03, 0.05],
            )
        )
    if chance(0.2):
        options["alpha"] = float(rng.choice([0.5, 0.01, 1e-6, 0.999, 0, 2], p=[0.3, 0.3, 0.2, 0.16, 0.02, 0.02]))
    if chance(0.2):
        options["correction"] = str(rng.choice(["holm", "bonferroni", "bh", "max-t", "none", "gatekeeping"]))
    if chance(0.2):
        options["intersections"] = True
    if chance(0.15):
        options["missing"] = str(rng.choice(["group", "error"]))
    if "score" in options and "decision" not in options and chance(0.6):
        options["threshold"] = float(rng.choice([0.5, 0.0, 1e300, -3]))
    if chance(0.3 if numeric else 0.01):
        options["cuts"] = {
            (numeric or options["groups"])[0]: [float(c) for c in rng.choice([[0, 1], [2, 3], [1, 1e300]])]
        }
    if chance(0.3 if numeric else 0.01) and "cuts" not in options:
        options["continuous"] = [(numeric or options["groups"])[-1]]
    if chance(0.15):
        options["rows"] = str(rng.choice(["cells", "keep"]))
    if chance(0.15):
        options["fail_on"] = str(
            rng.choice(
                ["disparity", "fnr:disparity", "group:inconclusive", "tail:disparity", "?"],
                p=[0.4, 0.2, 0.3, 0.05, 0.05],
            )
        )
    options["resamples"] = int(rng.choice([99, 199, 999]))
    options["seed"] = int(rng.integers(0, 100))


def _possible(options: dict[str, Any]) -> list[str]:
    """Return the metrics that the named columns allow, and one that they may not."""
    scored = {"auc", "brier", "log_loss", "calibration_error", "mae", "mse", "mean_residual"}
    found = []
    for metric in METRICS:
        needs = {"score"} if metric == "mean_score" else {"score", "outcome"} if metric in scored else {"decision"}
        needs |= {"outcome"} if needs == {"decision"} and metric != "selection_rate" else set()
        if needs <= set(options):
            found.append(metric)
    return found * 4 + ["f1"]


def write_file(case: Case, folder: Path) -> Path:
    """Write a case's file, whole or broken."""
    rng = np.random.default_rng([case.seed, 21])
    kind = case.form
    if kind in ("parquet", "arrow", "feather"):
        path = folder / f"in.{kind}"
        _write_arrow(case, path, rng)
    else:
        ending = {"tsv": "tsv", "csv.gz": "csv.gz"}.get(kind, "csv")
        path = folder / f"in.{ending}"
        separator = {"tsv": "\t", "semicolon": ";"}.get(kind, ",")
        text = _text(case.columns, separator, "\r\n" if kind == "crlf" else "\n", always=kind == "quoted")
        data = text.encode("utf-8", errors="surrogatepass")
        data = b"\xef\xbb\xbf" + data if kind == "bom" else data
        path.write_bytes(gzip.compress(data, mtime=0) if kind == "csv.gz" else data)
    return _break(case, path, rng) if case.broken else path


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, bytes):
        return value.decode()
    return repr(float(value)) if isinstance(value, float | np.floating) else str(value)


def _text(columns: dict[str, Any], separator: str, end: str, *, always: bool) -> str:
    def quoted(text: str) -> str:
        special = always or any(c in text for c in (separator, '"', "\n", "\r", "\t", ";", "|", ","))
        return '"' + text.replace('"', '""') + '"' if special and text else text

    rows = [list(columns), *([_cell(v) for v in row] for row in zip(*columns.values(), strict=True))]
    return "".join(separator.join(quoted(cell) for cell in row) + end for row in rows)


def arrow_table(columns: dict[str, Any]) -> Any:
    """Return the columns as an Arrow table; what Arrow cannot hold becomes text."""
    import pyarrow as pa

    arrays = []
    for values in columns.values():
        items = [None if v is None else v.item() if isinstance(v, np.generic) else v for v in values]
        try:
            arrays.append(pa.array(items))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            arrays.append(pa.array([None if v is None else _cell(v) for v in items]))
    return pa.table(arrays, names=list(columns))


def _write_arrow(case: Case, path: Path, rng: np.random.Generator) -> None:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = arrow_table(case.columns)
    if rng.random() < 0.1:
        nested = pa.array([[1, 2]] * table.num_rows, type=pa.list_(pa.int64()))
        table = table.append_column("nested", nested)
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, compression=str(rng.choice(["snappy", "zstd", "none"])))
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, path, compression=str(rng.choice(["lz4", "zstd", "uncompressed"])))
    else:
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)


def _break(case: Case, path: Path, rng: np.random.Generator) -> Path:
    data, how = path.read_bytes(), case.broken
    size = len(data)
    if how in ("truncated", "unclosed"):
        data = data[: int(rng.integers(0, size))]
    elif how in ("flipped", "cut column"):
        changed = bytearray(data)
        for _ in range(int(rng.integers(1, 12))):
            changed[int(rng.integers(0, size))] = int(rng.integers(0, 256))
        data = bytes(changed)
        if how == "cut column":  # bytes gone from the middle: a column that is shorter than it says
            start = int(rng.integers(0, size))
            data = data[:start] + data[start + int(rng.integers(1, 200)) :]
    elif how == "empty":
        data = b""
    elif how == "header":
        data = data.split(b"\n")[0] + b"\n"
    elif how == "twice":
        data = data + data
    elif how == "noise":
        data = rng.bytes(500)
    elif how == "utf-16":
        data = data.decode("utf-8", errors="replace").encode("utf-16")
    elif how == "latin-1":
        data = data.decode("utf-8", errors="replace").encode("latin-1", errors="replace") + b"\xe9,\xe9\n"
    elif how == "nulls":
        data = data.replace(b"1", b"\0")
    elif how == "ragged":
        data = data + b"1,2,3,4,5,6,7,8,9,10,11,12,13\n1\n\n,,\n"
    elif how == "preamble":
        data = b"a report\n\n# of 2026\n" + data
    elif how == "no columns":
        data = b"\n\n\n"
    elif how == "other ending":
        other = path.with_name(f"in.{rng.choice(['csv', 'parquet', 'arrow', 'feather', 'tsv', 'csv.gz', 'xlsx'])}")
        other.write_bytes(data)
        return other
    path.write_bytes(data)
    return path
