"""The pages of the docs that show commands with their output are executed again."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

from evenhand.cli import run

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("executed", ROOT / "evidence" / "executed.py")
executed = importlib.util.module_from_spec(SPEC)
sys.modules["executed"] = executed
SPEC.loader.exec_module(executed)


@pytest.mark.parametrize("name", executed.PAGES)
def test_a_page_shows_what_its_commands_print(name):
    page, pictures = executed.executed(name)
    assert page == (executed.DOCS / name).read_text(encoding="utf-8"), "run `python evidence/executed.py`"
    for path, svg in pictures.items():
        stored = (executed.DOCS / path).read_text(encoding="utf-8")
        assert executed.words_of(svg) == executed.words_of(stored) != [], "run `python evidence/executed.py`"


@pytest.mark.parametrize("name", executed.PAGES)
def test_a_page_shows_the_pictures_that_are_drawn_for_it(name):
    text = (executed.DOCS / name).read_text(encoding="utf-8")
    assert all(f"({'../' * name.count('/')}{path})" in text for path in executed.DRAWN.get(name, {}))


def test_a_command_that_fails_stops_the_page():
    with pytest.raises(RuntimeError, match="exit code 2"):
        executed._printed_by_bash("exit 2", {})


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    """Its block of Python, then those of its command lines that need no file but the one written before, and that end.

    The app has tests of its own.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    lines = re.findall(r"^evenhand (.+?)(?: +#.*)?$", text, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "disparity" in capsys.readouterr().out
    codes = [run(shlex.split(line)) for line in lines if "people.csv" not in line and line != "app"]
    assert codes == [0, 0, 3]
