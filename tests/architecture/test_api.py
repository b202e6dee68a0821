"""The API reference holds every public name and says what the docstrings say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("api", ROOT / "evidence" / "api.py")
api = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(api)
NAMES = dict(api.public_names())


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_a_section(name):
    page = (api.FOLDER / f"{api.page_of(name, NAMES[name])}.md").read_text(encoding="utf-8")
    assert f"\n## `{name}` {{ #{api.anchor(name)} }}\n" in page, "run `python evidence/api.py`"


def test_no_page_is_out_of_date():
    written = {path.stem: path.read_text(encoding="utf-8") for path in api.FOLDER.glob("*.md")}
    made = api.pages()
    stale = sorted(name for name in written.keys() | made.keys() if written.get(name) != made.get(name))
    assert stale == [], "run `python evidence/api.py`"


def test_a_name_of_an_unknown_room_is_refused():
    stranger = type("Stranger", (), {"__module__": "evenhand.attic.boxes"})
    with pytest.raises(ValueError, match="`Stranger` is public and its room `attic` stands on no page"):
        api.page_of("Stranger", stranger)


def test_a_docstring_becomes_markdown():
    text = """Add up.

    Parameters
    ----------
    a, b : int or None
        What to add, ``1 | 2``.

    Returns
    -------
    int

    Examples
    --------
    >>> 1 + 1
    2
    """
    page = api.explained(api.inspect.cleandoc(text))
    assert "| `a, b` | int or None | What to add, `1 \\| 2`. |" in page
    assert "**Returns**\n\n| type |\n| --- |\n| int |" in page
    assert page.endswith("**Examples**\n\n```pycon\n>>> 1 + 1\n2\n```")
    assert not re.search(r"^-{4,}$", page, re.MULTILINE)
