"""The chart library is built once and kept, and nothing that happens to the file can harm a report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.report import library, library_cache
from evenhand.report.library import Library
from evenhand.report.library_cache import keep_library, kept_library
from evenhand.report.stills import DrawingError

BUILT = "window.chart = 'é';\n// built\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(library_cache, "_folder", lambda: tmp_path / "evenhand")
    return tmp_path / "evenhand"


@pytest.fixture
def built(monkeypatch):
    """How often a process was started, which here writes a small library."""
    started: list[object] = []
    start = subprocess.Popen
    monkeypatch.setattr(library, "_WORK", f"import sys; sys.stdout.buffer.write({BUILT.encode()!r})")
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **more: started.append(words) or start(*words, **more))
    return started


def test_what_was_built_once_is_not_built_again(folder, built):
    first = Library()
    first.prepare()
    assert first.script() == BUILT
    assert first.script() == BUILT
    after = Library()
    after.prepare()
    assert after.script() == BUILT
    assert len(built) == 1


def test_a_process_that_dies_is_said_and_costs_the_library_only(folder, monkeypatch):
    monkeypatch.setattr(library, "_WORK", "import os; os.abort()")
    broken = Library()
    broken.prepare()
    for _ in range(2):
        with pytest.raises(DrawingError, match="the process that builds it ended"):
            broken.script()
    assert kept_library(library._RECIPE) is None


def test_a_process_that_hangs_is_given_up(folder, monkeypatch):
    monkeypatch.setattr(library, "_WORK", "import time; time.sleep(600)")
    monkeypatch.setattr(library, "_LONGEST", 0.2)
    with pytest.raises(DrawingError, match="the process that builds it ended"):
        Library().script()


@pytest.mark.parametrize("content", [b"", b"x", b"\xff\xfe", b"0" * 64 + b"\nwindow.other = 1;"])
def test_a_broken_file_is_built_again(folder, built, content):
    keep_library(library._RECIPE, BUILT)
    file = next(folder.iterdir())
    whole = file.read_bytes()
    file.write_bytes(content)
    assert kept_library(library._RECIPE) is None
    assert Library().script() == BUILT
    assert file.read_bytes() == whole
    file.write_bytes(whole[:-1])
    assert kept_library(library._RECIPE) is None


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


def test_a_folder_that_cannot_be_written_or_a_missing_home_costs_time_only(tmp_path, built, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr(library_cache, "_folder", lambda: blocked / "evenhand")
    assert Library().script() == BUILT

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(library_cache, "_folder", homeless)
    assert Library().script() == BUILT
    assert len(built) == 2


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
