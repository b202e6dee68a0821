"""The chart library is built once and kept, and nothing that happens to the file can harm a report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.report import drawing, library_cache
from evenhand.report.charts import _light, picture
from evenhand.report.drawing import Artist, artist
from evenhand.report.library_cache import keep_library, kept_library
from evenhand.report.theme import CONFIG

BUILT = "window.chart = 'é';\n// built\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(library_cache, "_folder", lambda: tmp_path / "evenhand")
    return tmp_path / "evenhand"


@pytest.fixture
def slow(monkeypatch):
    """An artist whose other process is replaced by a list of what it was asked."""
    asked: list[object] = []
    monkeypatch.setattr(Artist, "_send", lambda self, what: asked.append(what))
    monkeypatch.setattr(Artist, "_answer", lambda self: BUILT if asked[-1] == drawing._LIBRARY else "<svg/>")
    return asked


def test_what_was_built_once_is_not_built_again(folder, slow):
    assert Artist().library() == BUILT
    assert slow == ["library"]
    after = Artist()
    assert after.library() == BUILT
    after.prepare()
    assert after.draw({"mark": "point"}) == "<svg/>"
    assert slow == ["library", "wake", {"mark": "point"}]


def test_the_library_can_be_asked_for_while_the_process_wakes_up(folder, slow):
    keep_library(drawing._RECIPE, BUILT)
    artist = Artist()
    artist.prepare()
    next(folder.iterdir()).unlink()
    assert artist.library() == BUILT
    assert slow == ["wake"]


@pytest.mark.parametrize("content", [b"", b"x", b"\xff\xfe", b"0" * 64 + b"\nwindow.other = 1;"])
def test_a_broken_file_is_built_again(folder, slow, content):
    keep_library(drawing._RECIPE, BUILT)
    file = next(folder.iterdir())
    whole = file.read_bytes()
    file.write_bytes(content)
    assert kept_library(drawing._RECIPE) is None
    assert Artist().library() == BUILT
    assert file.read_bytes() == whole
    file.write_bytes(whole[:-1])
    assert kept_library(drawing._RECIPE) is None


def test_another_version_or_recipe_has_its_own_file(folder, monkeypatch):
    keep_library("one", BUILT)
    assert kept_library("one") == BUILT
    assert kept_library("two") is None
    monkeypatch.setattr(library_cache, "version", lambda name: "0.0")
    assert kept_library("one") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner on this system")
def test_a_file_of_somebody_else_is_not_used(folder, monkeypatch):
    keep_library("one", BUILT)
    monkeypatch.setattr(os, "getuid", lambda: 123_456)
    assert kept_library("one") is None


def test_a_folder_that_cannot_be_written_or_a_missing_home_costs_time_only(tmp_path, slow, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr(library_cache, "_folder", lambda: blocked / "evenhand")
    assert Artist().library() == BUILT

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(library_cache, "_folder", homeless)
    assert Artist().library() == BUILT
    assert slow == ["library", "library"]


@pytest.mark.parametrize(
    ("system", "variable", "said", "wanted"),
    [
        ("linux", "XDG_CACHE_HOME", "/tmp/kept", "/tmp/kept/evenhand"),
        ("linux", "XDG_CACHE_HOME", "relative", "~/.cache/evenhand"),
        ("darwin", "XDG_CACHE_HOME", "", "~/Library/Caches/evenhand"),
        ("win32", "LOCALAPPDATA", "/users/me/local", "/users/me/local/evenhand"),
    ],
)
def test_the_folder_is_where_the_system_keeps_such_files(monkeypatch, system, variable, said, wanted):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv(variable, said)
    assert library_cache._folder() == Path(wanted).expanduser()


def test_programs_that_write_at_once_leave_one_whole_file(tmp_path):
    work = (
        "from evenhand.report.library_cache import keep_library, kept_library\n"
        "for _ in range(30):\n"
        "    keep_library('one', 'x' * 200_000)\n"
        "    assert kept_library('one') == 'x' * 200_000\n"
    )
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    programs = [subprocess.Popen([sys.executable, "-c", work], env=variables) for _ in range(3)]
    assert [program.wait(120) for program in programs] == [0, 0, 0]
    assert len(list((tmp_path / "evenhand").iterdir())) == 1


def named(*labels: str) -> dict[str, Any]:
    """A chart whose labels are these, with a tooltip."""
    where = {"field": "label", "type": "nominal"}
    return {
        "width": 560,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": [{"label": label, "x": j, "tooltip": j} for j, label in enumerate(labels)]},
        "layer": [
            {"mark": "bar", "encoding": {"y": where, "x": {"field": "x", "type": "quantitative"}, "tooltip": [where]}},
            {"mark": "point", "encoding": {"y": where, "x": {"field": "tooltip", "type": "quantitative"}}},
        ],
    }


@pytest.mark.parametrize(
    "labels",
    [
        ["sex=Female", "race=Amer-Indian-Esk"],
        ["WWWWWWWWWWWWWW", "mmmmmmmmmmmmmm"],
        ["WWWWWWWWWWWWWWWWWWW", "b"],
        ["a name that is much longer than the place that there is for it", "b"],
        ["日本語日本語日本語日本語日本語日本語日本語", "b"],
    ],
)
def test_what_is_left_out_of_a_still_picture_cannot_be_seen(labels):
    assert picture(named(*labels)) == _light(artist().draw({"config": CONFIG, **named(*labels)}))


def test_long_labels_are_cut_and_short_ones_are_not():
    assert "…" in picture(named("a name that is much longer than the place that there is for it", "b"))
    assert "…" not in picture(named("sex=Female", "sex=Male"))


def test_a_chart_is_drawn_once(monkeypatch):
    first = picture(named("drawn once"))
    monkeypatch.setattr(Artist, "draw", lambda self, spec: pytest.fail("It was drawn again."))
    assert picture(named("drawn once")) == first
