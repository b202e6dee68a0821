"""What is being worked on, shown while it lasts: a bar in a notebook, a line in a terminal, nothing in a script."""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str], None]

_STEP = re.compile(r"audit (\d+) of (\d+)")
_BAR = 20  # characters of the bar in a terminal
_LEAST_BAR = 4  # with fewer it says nothing


def step_text(done: int, total: int, name: str) -> str:
    """Say which of several audits begins; a bar reads the numbers out of it.

    Examples
    --------
    >>> step_text(1, 4, "tail")
    'audit 2 of 4: tail'
    """
    return f"audit {done + 1} of {total}: {name}"


@contextmanager
def shown_progress(wish: Progress | bool | None) -> Iterator[Progress | None]:
    """Show progress while something is done, and clear it away afterwards.

    Parameters
    ----------
    wish : callable, bool or None
        True shows it, False does not, a function is called with each text. None shows it where somebody is looking: in
        a notebook and at an interactive prompt, and not in a script.

    Yields
    ------
    callable or None
        To be called with a short text before each piece of work.
    """
    if callable(wish):
        yield wish
        return
    shell = _kernel()
    prompt = hasattr(sys, "ps1") and sys.stderr.isatty()
    if wish is False or (wish is None and shell is None and not prompt):
        yield None
        return
    bar = _TerminalBar() if shell is None else _NotebookBar()
    try:
        yield bar
    finally:
        bar.clear()


def _kernel() -> Any:
    """Return the shell of a notebook, None outside of one; IPython is loaded there and nowhere imported."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return shell if hasattr(shell, "kernel") else None


class _Bar:
    """Counts audits by the texts it is told."""

    def __init__(self) -> None:
        self.done, self.total = 0, 0

    def __call__(self, text: str) -> None:
        step = _STEP.match(text)
        if step is not None:
            self.done, self.total = int(step[1]) - 1, int(step[2])
        self.draw("".join(c if c.isprintable() else "�" for c in text))

    def draw(self, text: str) -> None:
        """Show a text beside the bar."""
        raise NotImplementedError


class _TerminalBar(_Bar):
    """One line on standard error that replaces itself."""

    def __init__(self) -> None:
        super().__init__()
        self.width = shutil.get_terminal_size().columns - 1

    def draw(self, text: str) -> None:
        size = min(_BAR, self.width - len(text) - 3)  # what ends the text, such as the time left, is worth more
        filled = size * self.done // self.total if self.total else 0
        bar = f"[{'#' * filled}{'.' * (size - filled)}] " if self.total > 1 and size >= _LEAST_BAR else ""
        self._write("\r" + f"{bar}{text}"[: self.width].ljust(self.width))

    def clear(self) -> None:
        """Leave an empty line."""
        self._write("\r" + " " * self.width + "\r")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class _NotebookBar(_Bar):
    """A progress element in the cell's output, which is emptied at the end."""

    def __init__(self) -> None:
        super().__init__()
        from IPython.display import HTML, display

        self.html = HTML
        self.handle = display(HTML(""), display_id=True)

    def draw(self, text: str) -> None:
        value = f' value="{self.done}" max="{self.total}"' if self.total > 1 else ""
        self.handle.update(self.html(f"<progress{value}></progress> {html.escape(text)}"))

    def clear(self) -> None:
        """Leave nothing."""
        self.handle.update(self.html(""))
