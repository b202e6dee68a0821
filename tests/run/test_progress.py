"""Progress: told to a function, shown where somebody looks, silent in scripts."""

from __future__ import annotations

import sys
import types

import pytest

import evenhand as eh
from evenhand.intake.progress import pace
from evenhand.progress import shown_progress, step_text

BASE = eh.datasets.planted(rows=200, rng=0)
DATA = eh.AuditData.from_arrays(
    outcome=BASE.outcome,
    decision=BASE.decision,
    groups={"sex": BASE.attributes[0].codes, "race": [j % 3 for j in range(200)]},
)
PLAN = eh.Plan(audits=("group", "scan"), group={"metrics": ["fnr"]}, scan={"metrics": ["fnr"]})


def test_a_function_hears_which_audit_begins():
    heard = []
    eh.audit(DATA, plan=PLAN, rng=0, progress=heard.append)
    assert [text for text in heard if text.startswith("audit")] == ["audit 1 of 2: group", "audit 2 of 2: scan"]


@pytest.mark.parametrize("wish", [None, False])
def test_scripts_are_silent(capsys, monkeypatch, wish):
    monkeypatch.delattr(sys, "ps1", raising=False)
    eh.audit(DATA, plan=PLAN, rng=0, progress=wish)
    assert capsys.readouterr() == ("", "")


def test_a_line_in_a_terminal_that_is_cleared(capsys):
    eh.audit(DATA, plan=PLAN, rng=0, progress=True)
    shown = capsys.readouterr().err
    assert "\r[....................] audit 1 of 2: group" in shown
    assert "\r[##########..........] audit 2 of 2: scan" in shown
    assert shown.rsplit("\r", 2)[1].strip() == ""
    assert "\n" not in shown


def test_the_time_left_of_many_rows_is_not_cut_off(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with shown_progress(True) as tell:
        tell(step_text(2, 4, "tail"))
        for rows in (2_000_000, 10_000_000_000):
            tell(pace(rows // 2, rows, 4.0))
    lines = capsys.readouterr().err.split("\r")
    assert "[##########..........] audit 3 of 4: tail" in lines[1]
    assert lines[2].rstrip() == "[#######.......] 1,000,000 of 2,000,000 rows, 250,000 rows per second, 4 s left"
    assert lines[3].rstrip() == "5,000,000,000 of 10,000,000,000 rows, 1,250,000,000 rows per second, 4 s left"


def test_a_prompt_shows_it_by_default(capsys, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with shown_progress(None) as tell:
        tell("\x1b[2Jwork")
    assert "�[2Jwork" in capsys.readouterr().err


def test_a_notebook_gets_a_bar_that_is_emptied(monkeypatch):
    """Stands in for IPython's three names; the real ones are not part of the tests' environment."""
    shown = []
    handle = types.SimpleNamespace(update=shown.append)
    fake, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    display.HTML = str
    display.display = lambda content, display_id: shown.append(content) or handle
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    eh.audit(DATA, plan=PLAN, rng=0)
    assert '<progress value="1" max="2"></progress> audit 2 of 2: scan' in shown
    assert shown[-1] == ""
    with shown_progress(None) as tell:
        tell("<b>")
    assert shown[-2:] == ["<progress></progress> &lt;b&gt;", ""]
