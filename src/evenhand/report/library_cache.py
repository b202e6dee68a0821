"""The chart library as one script, kept in the user's cache folder: building it takes longer than most audits.

The file's name holds what the script is made of and its first line a digest of the script. A file that is broken, that
belongs to somebody else or that cannot be read is as good as none, and where nothing can be written nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

from evenhand.files import write_atomic


def kept_library(recipe: str) -> str | None:
    """Return the script that was kept for this recipe, or None where there is none that is whole.

    Parameters
    ----------
    recipe : str
        What the library is built from; it counts together with the version of the package that builds it.

    Returns
    -------
    str or None
    """
    try:
        path = _path(recipe)
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            return None
        digest, _, script = path.read_bytes().partition(b"\n")
        return script.decode("utf-8") if digest.decode("ascii") == hashlib.sha256(script).hexdigest() else None
    except (OSError, ValueError, RuntimeError, ImportError):
        return None


def keep_library(recipe: str, script: str) -> None:
    """Keep the script for the next program; several that do so at once write the same whole file.

    Parameters
    ----------
    recipe : str
        As in `kept_library`.
    script : str
        What was built.
    """
    try:
        write_atomic(_path(recipe), hashlib.sha256(script.encode()).hexdigest() + "\n" + script)
    except (OSError, ValueError, RuntimeError, ImportError):
        return


def _path(recipe: str) -> Path:
    name = hashlib.sha256(f"{version('vl-convert-python')}\n{recipe}".encode()).hexdigest()[:20]
    return _folder() / f"charts-{name}.js"


def _folder() -> Path:
    """Return the user's cache folder, where the system says it is; `RuntimeError` where there is no home."""
    said = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if said and Path(said).is_absolute():
        return Path(said) / "evenhand"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "evenhand"
    return Path.home() / ".cache" / "evenhand"
