"""Batches on Spark: each partition adds up its own rows where they are, and only summaries reach the driver.

A partition's summary depends on nothing but its rows, so a task that Spark runs again changes nothing. Summaries are
merged on the driver in the order of their partitions.
"""

from __future__ import annotations

import importlib
import io
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, EvenhandError
from evenhand.intake.batches import Batches, S, add_up
from evenhand.intake.engines.record_batches import batch_columns, require_arrow
from evenhand.intake.engines.spark import SparkEngine, collected

# Summaries that reach the driver, at most: partitions beyond that are read together.
MOST_PARTS = 512

_SCHEMA = "part int, summary binary, error binary"


class SparkBatches(Batches):
    """Rows of a Spark frame, classic or Connect.

    Parameters
    ----------
    engine : SparkEngine
        Which has the frame.
    code : callable
        From columns to a coded batch.
    columns : sequence of str
        The columns that it needs.
    rows : int
        Rows that are used.
    features : sequence of str
        The model's inputs.
    """

    def __init__(
        self,
        engine: SparkEngine,
        code: Callable[[Any], Any],
        columns: Sequence[str],
        rows: int,
        features: Sequence[str],
    ) -> None:
        super().__init__(rows, features)
        require_arrow()
        self._engine, self._code, self._columns = engine, code, tuple(columns)
        self._kinds = {name: engine.kinds[name] for name in columns}

    def _read_first(self) -> Any:
        import pyarrow

        rows = self._engine.first(self._columns)
        arrays = [pyarrow.array([row[i] for row in rows]) for i in range(len(self._columns))]
        some = self._code(batch_columns(arrays, self._columns, self._kinds))
        return some if some.count.size else None

    def _walk(self, make: Callable[[], S]) -> S:
        if self.progress is not None:
            self.progress(f"Spark works through {self.rows:,} rows")
        return self._added(self._engine.cast(self._columns, narrow=True).coalesce(MOST_PARTS), make)

    def _added(self, frame: Any, make: Callable[[], S]) -> S:
        """Add up each partition of a frame where it is, and merge what comes back."""
        work = _pickled((make, self._code, self._columns, self._kinds))
        with warnings.catch_warnings():
            # Spark looks at the version of pandas, which has no part in this.
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            rows = collected(frame.mapInArrow(partial(_add_up, work), _SCHEMA))
        lines = sorted((row["part"], bytes(row["summary"] or b""), bytes(row["error"] or b"")) for row in rows)
        _raise_first(lines)
        summary = make()
        for _, state, _ in lines:
            summary.merge(_restored(state, make))
        return summary


def _cloudpickle() -> Any:
    """Return Spark's own pickle, which also takes functions that have no name."""
    return importlib.import_module("pyspark.cloudpickle")


def _pickled(work: Any) -> bytes:
    try:
        return bytes(_cloudpickle().dumps(work))
    except Exception as error:  # a stranger's model may refuse in any way
        raise DataError(
            f"The model cannot be sent to Spark's workers: {type(error).__name__}: {error}. Pass an estimator, a torch "
            "module or a function that can be pickled, or read the rows with `rows='keep'`."
        ) from error


def _raise_first(lines: Sequence[tuple[int, bytes, bytes]]) -> None:
    errors = [error for _, _, error in lines if error]
    if errors:
        kind, text = pickle.loads(errors[0])
        raise kind(text)


def _add_up(work: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Add up one partition on a worker."""
    from pyspark import TaskContext

    make, code, columns, kinds = pickle.loads(work)
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    coded = (code(batch_columns(batch.columns, columns, kinds)) for batch in batches)
    try:
        yield _line(part, _state(add_up(make(), coded, f" of partition {part}"), make), b"")
    except EvenhandError as error:  # it would fail again: Spark need not try
        yield _line(part, b"", pickle.dumps((type(error), str(error))))


def _line(part: int, summary: bytes, error: bytes) -> Any:
    import pyarrow

    arrays = [pyarrow.array([part], pyarrow.int32()), *(pyarrow.array([b], pyarrow.binary()) for b in (summary, error))]
    return pyarrow.RecordBatch.from_arrays(arrays, names=["part", "summary", "error"])


def _given(make: Any) -> list[Any]:
    """Return what a summary is made with, such as the model: it is on both sides and need not travel back."""
    own: list[Any] = []
    if isinstance(make, partial):
        own = [*make.args, *make.keywords.values()]
    elif isinstance(make, Mapping):
        own = [*make.values()]
    return [*own, *(value for part in own for value in _given(part))]


def _state(summary: Any, make: Callable[[], Any]) -> bytes:
    given = {id(value): place for place, value in enumerate(_given(make)) if not isinstance(value, int | float | str)}

    class Pickler(_cloudpickle().Pickler):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> int | None:
            return given.get(id(value))

        def reducer_override(self, value: Any) -> Any:
            narrow = _narrowed(value) if type(value) is np.ndarray else None
            return super().reducer_override(value) if narrow is None else (np.ndarray.astype, (narrow, value.dtype))

    buffer = io.BytesIO()
    Pickler(buffer).dump(summary)
    return buffer.getvalue()


def _narrowed(array: NDArray[Any]) -> NDArray[Any] | None:
    """Return an array's values in fewer bytes where each keeps its bits: Spark copies what travels many times."""
    narrow: NDArray[Any] | None = None
    if array.dtype == np.int64 and array.size:
        least = np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
        narrow = array.astype(least) if least.itemsize < 8 else None
    elif array.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = array.astype(np.float32)
        # As bytes, because 0 and -0 are equal and NaN is not.
        narrow = narrow if narrow.astype(np.float64).tobytes() == array.tobytes() else None
    return narrow


def _restored(state: bytes, make: Callable[[], Any]) -> Any:
    given = _given(make)

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, place: Any) -> Any:
            return given[place]

    return Unpickler(io.BytesIO(state)).load()
