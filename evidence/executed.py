"""Run the commands that the docs show and write what they really print into the pages.

    python evidence/executed.py             # all pages
    python evidence/executed.py auditor     # pages whose name contains a word

A page is executed from top to bottom in an empty folder: blocks marked `bash` by bash, where `evenhand` is this
package, and blocks marked `python` in one Python namespace. What a block prints replaces the block marked `text` that
follows it; a block that prints nothing has none. Blocks with another mark, or none, are left as they are. The pictures
that a page shows are drawn from what its commands left behind. Long sentences are broken as on a terminal. A test
executes the pages again and compares.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # the drawings lie beside this file

from drawings import DRAWN  # noqa: E402

DOCS = HERE.parent / "docs"
WIDTH = 100  # of what is shown, in characters
PAGES = (
    "quickstart.md",
    "metrics.md",
    "conditional.md",
    "impact-ratios.md",
    "bias-audit.md",
    "tutorials/auditor.md",
    "tutorials/engineer.md",
    "tutorials/statistician.md",
    "tutorials/repair.md",
)
_BLOCK = re.compile(
    r"^```(?P<kind>bash|python)\n(?P<code>.*?)^```\n(?P<shown>\n```text\n.*?^```\n)?",
    re.MULTILINE | re.DOTALL,
)


def executed(name: str) -> tuple[str, dict[str, str]]:
    """Execute a page; return its text with what was printed, and its pictures by path below ``docs``."""
    text = (DOCS / name).read_text(encoding="utf-8")
    space: dict[str, Any] = {}
    with _empty_folder() as folder:
        page = _BLOCK.sub(lambda block: _filled(block, space), text)
        pictures = {path: draw(folder, space) for path, draw in DRAWN.get(name, {}).items()}
    return page, pictures


def words_of(svg: str) -> list[str]:
    """Return the words and numbers that a picture shows, in their order."""
    return re.findall(r"<text[^>]*>(?:<title>[^<]*</title>)?([^<]*)</text>", svg)


@contextlib.contextmanager
def _empty_folder() -> Iterator[Path]:
    """Work in a new folder, with a command ``evenhand`` that is this package, and come back."""
    before, path = Path.cwd(), os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder) / "bin" / "evenhand"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evenhand "$@"\n')
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        work = Path(folder) / "work"
        work.mkdir()
        os.environ["PATH"] = f"{command.parent}{os.pathsep}{path}"
        os.chdir(work)
        try:
            yield work
        finally:
            os.chdir(before)
            os.environ["PATH"] = path


def _filled(block: re.Match[str], space: dict[str, Any]) -> str:
    run = _printed_by_bash if block["kind"] == "bash" else _printed_by_python
    printed = "\n".join(_wrapped(line.rstrip()) for line in run(block["code"], space).rstrip().splitlines())
    shown = f"\n```text\n{printed}\n```\n" if printed else ""
    return f"```{block['kind']}\n{block['code']}```\n{shown}"


def _wrapped(line: str) -> str:
    """Break a long sentence as a terminal of this width does; rows of tables stay whole."""
    text = line.lstrip()
    if len(line) <= WIDTH or "  " in text:
        return line
    indent = line[: len(line) - len(text)]
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _printed_by_bash(code: str, _: dict[str, Any]) -> str:
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}:\n{code}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _printed_by_python(code: str, space: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<page>", "exec"), space)
    return printed.getvalue()


def main() -> None:
    """Execute the pages and write them and their pictures."""
    asked = sys.argv[1:] or [""]
    for name in PAGES:
        if any(word in name for word in asked):
            page, pictures = executed(name)
            (DOCS / name).write_text(page, encoding="utf-8")
            for path, svg in pictures.items():
                (DOCS / path).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
