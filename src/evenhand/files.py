"""Writing files so that a reader never sees half of them, and hashing those that were read."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LARGEST_HASHED = 2_000_000_000  # bytes: reading a larger file once more takes long


def hashed(path: str | Path) -> dict[str, str | None]:
    """Return the name of a file and the SHA-256 of its bytes, or why there is none.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    dict
        ``"name"`` without its folder, ``"sha256"`` and ``"reason"``, one of which is None.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder) / "a.txt"
    ...     write_atomic(target, "abc")
    ...     hashed(target)["sha256"][:16], hashed(folder)["reason"]
    ('ba7816bf8f01cfea', 'It is not a single file.')
    """
    path, known = Path(path), None
    reason: str | None = "It is not a single file."
    if path.is_file():
        reason = f"It is larger than {_LARGEST_HASHED // 10**9} GB."
        if path.stat().st_size <= _LARGEST_HASHED:
            reason = None
            with path.open("rb") as file:
                known = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "sha256": known, "reason": reason}


def write_atomic(path: Path, text: str) -> None:
    """Write a whole text file or nothing.

    Parameters
    ----------
    path : Path
        Where the file goes; its folder is made when missing.
    text : str
        The content, written as UTF-8.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder) / "sub" / "a.txt"
    ...     write_atomic(target, "whole")
    ...     target.read_text()
    'whole'
    """
    write_all({path: text})


def written(text: str, path: str | Path | None) -> str:
    """Return a text and, with a path, write it there in one step."""
    if path is not None:
        write_atomic(Path(path), text)
    return text


def written_json(data: Mapping[str, Any], path: str | Path | None) -> str:
    """Return plain data as JSON and, with a path, write it there in one step."""
    return written(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def write_all(texts: Mapping[Path, str | bytes]) -> None:
    """Write several files, or none of them.

    Each content goes to a temporary file beside its target; only when all are on the disk do they take the
    targets' places. An interrupt or a full disk while writing leaves the old files, or none.

    Parameters
    ----------
    texts : mapping of Path to str or bytes
        Where each file goes, and its content, a text as UTF-8; folders are made when missing.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = pathlib.Path(folder) / "a.txt", pathlib.Path(folder) / "b.txt"
    ...     write_all({first: "one", second: "two"})
    ...     first.read_text(), second.read_text()
    ('one', 'two')
    """
    waiting: list[tuple[Path, Path]] = []
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            waiting.append((Path(name), path))
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8") if isinstance(text, str) else text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
        for made, path in waiting:
            os.replace(made, path)
    except BaseException:
        for made, _ in waiting:
            made.unlink(missing_ok=True)
        raise
