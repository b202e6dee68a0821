"""The short form of the reproduction: Baseline and Project on one split of Adult, and the joining of parts."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "reproductions" / "maity2021"


@pytest.fixture(scope="module")
def reproduction():
    kept, before = list(sys.path), set(sys.modules)
    spec = importlib.util.spec_from_file_location("maity2021_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # it puts its folder on the path, for its own modules
    yield module
    sys.path[:] = kept
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(FOLDER) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_short_form_on_adult(reproduction):
    settings = tomllib.loads((FOLDER / "config.toml").read_text(encoding="utf-8"))["short"]["adult"]
    found = reproduction.table("adult", range(1), settings, ["Baseline", "Project"], far=0)
    baseline, project = (found["splits"][kind]["0"] for kind in ("Baseline", "Project"))
    assert baseline["balanced accuracy"] == pytest.approx(0.817, abs=0.02)  # printed, table 1
    assert baseline["AOD sex"] < -0.1
    assert baseline["T_n"] > project["T_n"] > 1


def part(split, steps=1):
    row = {"T_n": 1.0 + split, "curve": [[0, 1.0]], "seconds": 1.0}
    rows = {"settings": {"steps": steps}, "splits": {"Baseline": {str(split): row}}, "figure_2": {}}
    return {"versions": {"numpy": "2"}, "adult": rows}


def test_parts_are_joined_once_each(reproduction):
    joined = reproduction.merge([part(1), part(0), part(2)])
    assert list(joined["adult"]["splits"]["Baseline"]) == ["0", "1", "2"]
    assert joined["adult"]["summary"]["Baseline"]["T_n"] == {"mean": 2.0, "deviation": 1.0}
    assert joined["adult"]["summary"]["Baseline"]["splits"] == 3
    with pytest.raises(SystemExit, match="split 1 is in two parts"):
        reproduction.merge([part(1), part(1)])
    with pytest.raises(SystemExit, match="different settings"):
        reproduction.merge([part(0), part(1, steps=2)])
    with pytest.raises(SystemExit, match="different versions"):
        reproduction.merge([part(0), {**part(1), "versions": {"numpy": "1"}}])


def test_stored_result_has_the_settings_of_the_command(reproduction):
    stored = json.loads((FOLDER / "result.json").read_text(encoding="utf-8"))
    config = tomllib.loads((FOLDER / "config.toml").read_text(encoding="utf-8"))["full"]
    for name in ("adult", "compas"):
        assert stored[name]["settings"] == config[name]
        for kind, rows in stored[name]["splits"].items():
            assert reproduction.summary(rows) == stored[name]["summary"][kind]
