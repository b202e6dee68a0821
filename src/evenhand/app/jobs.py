"""Work in processes of its own: started, watched and ended by the server, each in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.app.folders import Folders
from evenhand.app.job_folder import LOG, OUTCOME, PROGRESS, REQUEST, stored
from evenhand.errors import UsageError
from evenhand.files import written_json

_MOST = 8  # processes at once
_SHOWN = 6  # lines of progress


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far a piece of work is."""

    word: str  # running, finished, failed, cancelled or interrupted
    sentence: str = ""  # why it has ended, where it is not finished
    progress: tuple[str, ...] = ()  # the last lines that it has said


class Jobs:
    """All processes of one server."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def start(self, verb: str, folder: Path, request: Mapping[str, Any]) -> None:
        """Start work in a folder: ``audit`` or ``preview``. What stood there about earlier work is removed."""
        with self._lock:
            running = sum(process.poll() is None for process in self._processes.values())
            if running >= _MOST:
                raise UsageError(
                    f"{running} audits are running already. Wait until one of them has ended, or cancel one."
                )
            for name in (OUTCOME, PROGRESS, LOG):
                (folder / name).unlink(missing_ok=True)
            written_json({**request, "server": self._folders.mark}, folder / REQUEST)
            with (folder / LOG).open("wb") as log:
                # Its standard input ends when the server does, and the process with it.
                self._processes[folder] = subprocess.Popen(
                    [sys.executable, "-P", "-m", "evenhand.app.worker", verb, str(folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                )

    def state(self, folder: Path) -> State:
        """Say how far the work in a folder is, also when another server has started it."""
        process = self._processes.get(folder)
        ended = process is not None and process.poll() is not None  # asked before its answer is looked for
        if ended and process is not None and process.stdin is not None:
            process.stdin.close()
        outcome = stored(folder / OUTCOME)
        if outcome:
            return State(word=str(outcome["word"]), sentence=str(outcome["sentence"]), progress=_lines(folder))
        if process is not None and not ended:
            return State(word="running", progress=_lines(folder))
        if process is not None:
            return State(
                word="failed",
                sentence="The process that did the work ended without an answer. Something has ended it, such as a "
                "machine that runs out of memory. Try fewer columns or rows.",
                progress=_lines(folder),
            )
        if self._folders.alive(str(stored(folder / REQUEST).get("server", ""))):
            return State(word="running", progress=_lines(folder))
        return State(
            word="interrupted",
            sentence="The app ended before this audit did, so there is no result. Start it again with the same file.",
            progress=_lines(folder),
        )

    def cancel(self, folder: Path) -> None:
        """End work and all that it has started; work that has ended already keeps its answer."""
        process = self._processes.get(folder)
        if process is None:
            return
        _kill(process)
        with self._lock:
            if not (folder / OUTCOME).exists():
                written_json({"word": "cancelled", "sentence": "You cancelled this audit."}, folder / OUTCOME)

    def forget(self, folder: Path) -> None:
        """End work whose folder is about to go."""
        process = self._processes.pop(folder, None)
        if process is not None:
            _kill(process)

    def close(self) -> None:
        """End all work."""
        for folder in list(self._processes):
            self.cancel(folder)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started, and wait until it is gone."""
    with suppress(ProcessLookupError):  # it may end by itself at this moment
        if process.poll() is None:
            process.kill() if sys.platform == "win32" else os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _lines(folder: Path) -> tuple[str, ...]:
    """Return the last lines of progress."""
    try:
        return tuple((folder / PROGRESS).read_text(encoding="utf-8").splitlines()[-_SHOWN:])
    except OSError:
        return ()
