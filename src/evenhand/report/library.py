"""The library that draws charts in the reader's browser, built by a process of its own and kept.

It comes from the `vl-convert-python` package at run time: no JavaScript of others is part of this one. That package
holds a whole JavaScript engine, which with little memory ends its process in a way that no Python can catch, so it must
not be the process that has the findings. It is needed once: what was built is kept (`evenhand.report.library_cache`).
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
from functools import lru_cache

from evenhand.report.library_cache import keep_library, kept_library
from evenhand.report.stills import DrawingError

# Seconds until the process is given up; it takes a few.
_LONGEST = 120.0
_RECIPE = "window.vegaEmbed = vegaEmbed;"
_WORK = f"""
import sys
import vl_convert
sys.stdout.buffer.write(vl_convert.javascript_bundle("{_RECIPE}").encode("utf-8"))
"""


class Library:
    """The chart library, from this program or one before.

    Examples
    --------
    >>> "vegaEmbed" in Library().script()
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._script: str | DrawingError | None = None

    def prepare(self) -> None:
        """Begin to build it where it is not there, so as to be ready when the audit is; never fails."""
        with self._lock:
            self._begin()

    def script(self) -> str:
        """Return it as one script.

        Raises
        ------
        DrawingError
            When it cannot be built.
        """
        with self._lock:
            self._begin()
            if self._process is not None:
                self._script = self._built(self._process)
                self._process = None
        if isinstance(self._script, str):
            return self._script
        assert self._script is not None
        raise self._script

    def _begin(self) -> None:
        """Look for what was kept; where there is nothing, start to build."""
        if self._process is not None or self._script is not None:
            return
        self._script = kept_library(_RECIPE)
        if self._script is not None:
            return
        try:
            # What it says when it dies is a page of addresses: nobody needs it.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WORK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            atexit.register(self._process.kill)  # a command that ends early leaves nothing behind
        except OSError as error:
            self._script = DrawingError(f"the process that builds it could not be started: {error.strerror or error}")

    def _built(self, process: subprocess.Popen[bytes]) -> str | DrawingError:
        """Wait for the process, and keep what it built."""
        try:
            made, _ = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            made, _ = process.communicate()
        atexit.unregister(process.kill)
        if process.returncode != 0:
            return DrawingError("the process that builds it ended, most often because memory is short")
        script = made.decode("utf-8")
        keep_library(_RECIPE, script)
        return script


@lru_cache(maxsize=1)
def _library() -> Library:
    """Return the one library of this program."""
    return Library()


def prepare() -> None:
    """Begin to build the library while the audit works; a command calls this before it reads its file."""
    _library().prepare()


def library() -> str:
    """Return the library as one script, safe inside a script element.

    `DrawingError` is raised where it cannot be built.

    Examples
    --------
    >>> "</script" in library().lower()
    False
    """
    return _library().script().replace("</script", "<\\/script").replace("<!--", "<\\!--")
