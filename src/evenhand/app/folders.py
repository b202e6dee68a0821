"""Where runs are kept, and a private folder of this server for what it holds only while it runs."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from evenhand.errors import UsageError

_PRIVATE = ".server-"
_RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{16}")


def default_folder() -> Path:
    """Return the user's own folder for runs, where the system says that data belong."""
    said = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_DATA_HOME", "")
    if said and Path(said).is_absolute():
        return Path(said) / "evenhand" / "runs"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "evenhand" / "runs"
    return Path.home() / ".local" / "share" / "evenhand" / "runs"


class Folders:
    """The folder of runs and, below it, the private folder of one server, which nobody else may enter.

    A server holds a lock as long as it lives, however it ends. So another one knows whether runs that have not ended
    are still worked on, and removes what a server that is gone has left behind.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.private = self.root / f"{_PRIVATE}{secrets.token_hex(8)}"
            self.private.mkdir(mode=0o700)
        except OSError as error:
            raise UsageError(
                f"The folder `{root}` cannot hold runs: {error.strerror or error}. Name another with `--folder`."
            ) from error
        lock = _locked(self.private / "lock")
        assert lock is not None, "nobody else knows this name"
        self._lock = lock
        self._clear()

    @property
    def mark(self) -> str:
        """What runs of this server are marked with."""
        return self.private.name

    def alive(self, mark: str) -> bool:
        """Say whether the server that started a run is still there."""
        if mark == self.mark:
            return True
        place = self.root / mark / "lock"
        if not mark.startswith(_PRIVATE) or "/" in mark or not place.exists():
            return False
        lock = _locked(place)
        if lock is None:
            return True
        lock.close()
        return False

    def new_run(self) -> Path:
        """Make the folder of a new run, with a name that cannot be guessed."""
        folder = self.root / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        return folder

    def run(self, name: str) -> Path | None:
        """Return the folder of a run by its name, None where there is none; no name leads out of the folder."""
        folder = self.root / name
        return folder if _RUN.fullmatch(name) and folder.is_dir() and not folder.is_symlink() else None

    def runs(self) -> list[Path]:
        """Return the folders of all runs, newest first."""
        return sorted((p for p in self.root.iterdir() if self.run(p.name)), key=lambda p: p.name, reverse=True)

    def close(self) -> None:
        """Remove what was held only while the server ran."""
        self._lock.close()
        shutil.rmtree(self.private, ignore_errors=True)

    def _clear(self) -> None:
        """Remove what servers that were killed have left behind."""
        for folder in self.root.glob(f"{_PRIVATE}*"):
            if folder.is_dir() and not folder.is_symlink() and not self.alive(folder.name):
                shutil.rmtree(folder, ignore_errors=True)


def _locked(path: Path) -> IO[bytes] | None:
    """Open a file and lock it until it is closed or the process ends; None where another process has the lock."""
    file = path.open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
