"""How much memory reading may take: what is left to the engine, and how many rows may be held."""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError

# What Python, its packages and a report take before any row is read: 150 MB were measured, 230 MB with scikit-learn.
_OWN = 256 * 10**6
# Bytes for each value of rows in memory, copies on the way included: 30 to 52 were measured in group audits.
_OF_VALUE = 64
_LEAST = 512 * 10**6
# Values that are held where no amount was said: 3 to 5 GB.
VALUE_LIMIT = 100 * 10**6
# DuckDB needs about so much for each of its threads.
_OF_THREAD = 128 * 10**6
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def bytes_of(size: str | int | None) -> int | None:
    """Read an amount of memory and refuse one that is too small for any audit.

    Examples
    --------
    >>> bytes_of("2GB"), bytes_of("1.5 GiB"), bytes_of(None)
    (2000000000, 1610612736, None)
    """
    if size is None:
        return None
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if match is not None and match[2].lower() in _UNITS:
        amount = int(float(match[1]) * _UNITS[match[2].lower()])
    elif isinstance(size, int) and not isinstance(size, bool):
        amount = size
    else:
        raise UsageError(f"`memory=` is {size!r}; allowed: an amount such as '2GB' or '800MB', or a number of bytes.")
    if amount < _LEAST:
        raise UsageError(
            f"`memory=` is {size_text(amount)}; at least {size_text(_LEAST)} are needed, because Python and its "
            f"packages take {size_text(_OWN)} of it."
        )
    return amount


def size_text(amount: float) -> str:
    """Return an amount of memory for readers.

    Examples
    --------
    >>> size_text(2.5e9), size_text(512e6)
    ('2.5 GB', '512 MB')
    """
    return f"{amount / 1e9:.3g} GB" if amount >= 1e9 else f"{amount / 1e6:.0f} MB"


def rows_within(memory: int | None, columns: int) -> int:
    """Return how many rows of so many columns may be held in memory, also where no amount was said.

    Examples
    --------
    >>> rows_within(10**9, 5), rows_within(None, 5)
    (2325000, 20000000)
    """
    values = VALUE_LIMIT if memory is None else (memory - _OWN) // _OF_VALUE
    return values // max(columns, 1)


def memory_of(rows: int, columns: int) -> int:
    """Return about how much memory so many rows take when they are held."""
    return _OWN + rows * columns * _OF_VALUE


def open_duckdb(memory: int | None, database: Path | None = None) -> Any:
    """Open DuckDB: silent, fetching no code, within half of what is left of the memory, and a file only to read."""
    import duckdb

    settings: dict[str, Any] = {"autoinstall_known_extensions": False}
    if memory is not None:
        share = (memory - _OWN) // 2
        # DuckDB makes the folder when it first needs it and removes it when it is closed.
        spill = Path(tempfile.gettempdir()) / f"evenhand-{uuid.uuid4().hex[:12]}"
        threads = max(1, min(os.cpu_count() or 1, share // _OF_THREAD))
        settings |= {"memory_limit": f"{share}B", "temp_directory": str(spill), "threads": threads}
    if database is None:
        connection = duckdb.connect(config=settings)
    else:
        connection = duckdb.connect(str(database), read_only=True, config=settings)
    # How far a query is can be asked, and is not printed.
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    return connection
