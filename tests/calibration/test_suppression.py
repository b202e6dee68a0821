"""The short form of the attack on suppression, and what is stored of the long one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALIBRATION = ROOT / "calibration"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("suppression_calibration", CALIBRATION / "suppression.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# One table of each shape, not among the stored ones.
@pytest.mark.parametrize("seed", range(900, 906))
def test_nothing_held_back_is_worked_out(calibration, seed):
    found = calibration.one_table(seed)
    assert found.get("small_or_wrong_published", 0) == 0
    if "protected" in found:
        assert (found["protected"]["recovered"], found["protected"]["too_narrow"]) == (0, 0)


def test_the_attack_finds_what_is_not_protected(calibration):
    """Two crossed attributes with a single small combination: without protection it is a subtraction."""
    tables = {"a": {"a0": [60, 50], "a1": [70, 40]}, "b": {"b0": [80, 60], "b1": [50, 30]}}
    tables["a × b"] = {"a0 & b0": [55, 47], "a1 & b0": [25, 13], "a1 & b1": [45, 27]}
    ranges = calibration.attack(tables, {"a × b": ["a0 & b1"]}, [130, 90])
    assert ranges == {("a × b", "a0 & b1", 0): (5, 5), ("a × b", "a0 & b1", 1): (3, 3), ("a × b", "a0 & b1", 2): (8, 8)}


@pytest.fixture(scope="module")
def stored():
    return json.loads((CALIBRATION / "suppression.json").read_text(encoding="utf-8"))["totals"]


def test_the_stored_attack_found_nothing(stored):
    assert stored["tables"] == 200
    assert stored["small_or_wrong_published"] == 0
    protected = stored["protected"]
    assert (protected["recovered"], protected["too_narrow"], protected["known_small"]) == (0, 0, 0)
    assert protected["narrowest_in_thresholds"] >= 1
    assert stored["unprotected"]["recovered"] > 100


def test_the_page_shows_the_stored_numbers(stored):
    page = (ROOT / "evidence" / "suppression.md").read_text(encoding="utf-8")
    for part in ("unprotected", "protected"):
        numbers = stored[part]
        line = next(row for row in page.splitlines() if f"| {numbers['counts']:,} |" in row)
        assert f"| {numbers['counts']:,} | {numbers['recovered']:,} |" in line
        assert f"| {numbers['too_narrow']:,} |" in line
    assert "evidence/suppression.md" in (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8")
