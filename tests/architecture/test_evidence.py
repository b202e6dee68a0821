"""The evidence pages of the docs are what the stored results say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("evidence", ROOT / "evidence" / "pages.py")
evidence = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(evidence)


@pytest.mark.parametrize("name", evidence.PAGES)
def test_page_is_up_to_date(name):
    page = ROOT / "evidence" / f"{name}.md"
    assert page.read_text() == evidence.PAGES[name](), "run `python evidence/pages.py`"
