"""There is one bibliography: the docs print what the package holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenhand.report.bibliography import SOURCES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "references.md"


def _plain(text):
    return re.sub(r"\s+", " ", re.sub(r"[*\[\]]", "", text))


@pytest.mark.parametrize("key", SOURCES)
def test_docs_print_the_same_entry(key):
    entry = PAGE.read_text(encoding="utf-8").split(f"### {key}\n")[1].split("###")[0]
    for part in (SOURCES[key].authors, SOURCES[key].title, SOURCES[key].where):
        assert _plain(part) in _plain(entry)
