"""A process of its own that draws: when it dies, a chart is missing and the numbers are not.

The drawing library holds a whole JavaScript engine. With little memory it ends its process in a way that no Python can
catch, so it must not be the process that has the findings. The library for the browser is built once and kept
(`evenhand.report.library_cache`).
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from functools import lru_cache
from typing import Any

from evenhand.report.library_cache import keep_library, kept_library

# Seconds until an answer is given up; a chart takes a tenth, the library a few.
_LONGEST = 120.0
# A chart that cannot be drawn may end the process; so many times a new one is begun.
_MOST_DEATHS = 3

_LIBRARY, _WAKE = "library", "wake"
_RECIPE = "window.vegaEmbed = vegaEmbed;"
_WORK = f"""
import json, sys
import vl_convert
for line in sys.stdin:
    try:
        asked = json.loads(line)
        if asked == "{_LIBRARY}":
            made = vl_convert.javascript_bundle("{_RECIPE}")
        elif asked == "{_WAKE}":
            made = vl_convert.vegalite_to_svg({{"data": {{"values": []}}, "mark": "point"}})
        else:
            made = vl_convert.vegalite_to_svg(asked)
        answer = {{"made": made}}
    except BaseException as error:
        answer = {{"failed": str(error)}}
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""


class DrawingError(RuntimeError):
    """A chart, or the library that draws it again in a browser, could not be made."""


class Artist:
    """Draws one thing after the other in another process.

    Examples
    --------
    >>> artist().draw({"data": {"values": [{"x": 1}]}, "mark": "point"})[:4]
    '<svg'
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._deaths = 0
        self._asked = ""  # the library or to wake up: what is still to be answered
        self._library: str | DrawingError | None = None

    def prepare(self) -> None:
        """Begin to build the library, or else to wake up, so as to be ready when the audit is; never fails."""
        with self._lock:
            if not self._asked and self._process is None:
                self._ask(_LIBRARY if self._kept() is None else _WAKE)

    def library(self) -> str:
        """Return the chart library as one script.

        Raises
        ------
        DrawingError
            When it cannot be built.
        """
        with self._lock:
            if self._kept() is None and self._asked != _LIBRARY:
                self._collect()
                self._ask(_LIBRARY)
            if self._asked == _LIBRARY:
                self._collect()
        if isinstance(self._library, str):
            return self._library
        assert self._library is not None
        raise self._library

    def draw(self, spec: dict[str, Any]) -> str:
        """Return a specification drawn as SVG.

        Raises
        ------
        DrawingError
            With what the drawing library said.
        """
        try:
            json.dumps(spec, allow_nan=False)
        except ValueError:
            raise DrawingError("a value in it is not a finite number") from None
        with self._lock:
            self._collect()
            self._send(spec)
            return self._answer()

    def _kept(self) -> str | DrawingError | None:
        """Return the library where it is known already, from this program or one before."""
        if self._library is None:
            self._library = kept_library(_RECIPE)
        return self._library

    def _ask(self, what: str) -> None:
        try:
            self._send(what)
            self._asked = what
        except DrawingError as error:
            if what == _LIBRARY:
                self._library = error

    def _collect(self) -> None:
        """Wait for what was asked for."""
        what, self._asked = self._asked, ""
        if not what:
            return
        try:
            made: str | DrawingError = self._answer()
        except DrawingError as error:
            made = error
        if what == _LIBRARY:
            self._library = made
            if isinstance(made, str):
                keep_library(_RECIPE, made)

    def _send(self, asked: Any) -> None:
        try:
            process = self._process or self._begin()
            assert process.stdin is not None
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
        except OSError as error:
            raise self._died(str(error.strerror or error)) from None

    def _begin(self) -> subprocess.Popen[str]:
        if self._deaths >= _MOST_DEATHS:
            raise DrawingError("the process that draws ended several times, most often because memory is short")
        # What it says when it dies is a page of addresses: nobody needs it.
        process = subprocess.Popen(
            [sys.executable, "-c", _WORK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        atexit.register(process.kill)  # a command that ends early leaves nothing behind
        self._process = process
        return process

    def _answer(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        watch = threading.Timer(_LONGEST, process.kill)
        watch.start()
        try:
            line = process.stdout.readline()
        finally:
            watch.cancel()
        if not line.endswith("\n"):
            raise self._died("most often because memory is short")
        answer = json.loads(line)
        if "failed" in answer:
            said = str(answer["failed"]).strip().splitlines() or ["for a reason the drawing library does not give"]
            raise DrawingError(said[0][:200])
        return str(answer["made"])

    def _died(self, why: str) -> DrawingError:
        process, self._process = self._process, None
        self._deaths += 1
        if process is not None:
            process.kill()
            process.communicate()
            atexit.unregister(process.kill)
        return DrawingError(f"the process that draws ended, {why}")


@lru_cache(maxsize=1)
def artist() -> Artist:
    """Return the one artist of this program."""
    return Artist()


def prepare() -> None:
    """Begin to build the chart library while the audit works; a command calls this before it reads its file."""
    artist().prepare()
