"""The repository's outside agrees with itself. Skipped where only the package is installed."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _pages(nav):
    for entry in nav:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                yield from _pages(value)


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    docs = ROOT / "docs"
    files = {p.relative_to(docs).as_posix() for p in docs.rglob("*.md") if "generated" not in p.parts}
    assert sorted(_pages(nav)) == sorted(files)


def test_readme_gives_two_commands_first():
    blocks = re.findall(r"^```\w*\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert blocks[0].split("\n") == ["./dev demo", "./dev test", ""]


@pytest.mark.parametrize("name", ["dev", ".ci/run"])
def test_scripts_can_be_run_and_stop_at_the_first_error(name):
    path = ROOT / name
    assert os.access(path, os.X_OK)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text


def test_versions_agree():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = [t for t in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#]+)", text) if "://" not in t]
    assert targets
    assert [t for t in targets if not (ROOT / t).exists()] == []
