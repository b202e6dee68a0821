"""How far a walk over rows is: rows per second and time left, as short texts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Tell = Callable[[str], None]

_LOOK = 0.5  # seconds between two looks at an engine


def pace(done: int, rows: int, seconds: float) -> str:
    """Say how far a walk over rows is.

    Examples
    --------
    >>> pace(2_000_000, 10_000_000, 4.0)
    '2,000,000 of 10,000,000 rows, 500,000 rows per second, 16 s left'
    """
    rate = done / max(seconds, 1e-9)
    return f"{done:,} of {rows:,} rows, {rate:,.0f} rows per second, {_left((rows - done) / max(rate, 1e-9))} left"


def paced(batches: Iterable[Any], rows: int, tell: Tell | None) -> Generator[Any]:
    """Yield batches and tell after each how far the walk is."""
    begin, done = time.monotonic(), 0
    for batch in batches:
        yield batch
        done += int(batch.count.sum())
        if tell is not None:
            tell(pace(done, rows, time.monotonic() - begin))


@contextmanager
def looked_at(connection: Any, tell: Tell | None) -> Iterator[None]:
    """Tell how far DuckDB is with each of its queries, while it works."""
    if tell is None:
        yield
        return
    done = threading.Event()
    looker = threading.Thread(target=_look, args=(connection, tell, done), daemon=True)
    looker.start()
    try:
        yield
    finally:
        done.set()
        looker.join()


def _look(connection: Any, tell: Tell, done: threading.Event) -> None:
    begin, before = time.monotonic(), 0.0
    while not done.wait(_LOOK):
        percent = float(connection.query_progress())
        if percent < before or percent <= 0:  # another query has begun, or none is there
            begin = time.monotonic()
        elif percent < 100:
            seconds = (time.monotonic() - begin) * (100 - percent) / percent
            tell(f"reading: {percent:.0f} %, {_left(seconds)} left")
        before = max(percent, 0.0)


def _left(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"
