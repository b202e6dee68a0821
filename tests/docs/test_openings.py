"""Each audit's page begins with words and a picture that come from stored results."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from evenhand.audits.registry import AUDITS

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("openings", ROOT / "evidence" / "openings.py")
openings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(openings)


def test_openings_and_pictures_are_up_to_date():
    stale = [path.name for path, content in openings.made().items() if path.read_text(encoding="utf-8") != content]
    assert stale == [], "run `python evidence/openings.py`"


@pytest.mark.parametrize("name", AUDITS)
def test_a_page_begins_with_words_and_a_picture(name):
    page = (ROOT / "docs" / "audits" / f"{name}.md").read_text(encoding="utf-8")
    before = page.partition(f'--8<-- "evidence/opening-{name}.md"')[0]
    assert before != page
    assert "```" not in before
    assert len(before.split()) < 200
