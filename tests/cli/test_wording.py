"""Messages read at a terminal name what a terminal has."""

from __future__ import annotations

import pytest

from evenhand.cli import run
from evenhand.cli.audit import audit_command
from evenhand.cli.wording import _FLAGS, spoken


@pytest.mark.parametrize(
    ("python", "terminal"),
    [
        ("Name it with `outcome=`.", "Name it with `--outcome`."),
        ("as a group with `missing='group'`.", "as a group with `--missing group`."),
        ("allow it with `trust_pickle=True` (`--trust-pickle`).", "allow it with `--trust-pickle`."),
        ("Leave it out of `groups`, or cut it with `cuts`.", "Leave it out of `--group`, or cut it with `--cut`."),
        ("Pass `positive='poor'` or `positive=2`.", "Pass `--positive poor` or `--positive 2`."),
        ("name `positive={'model': 'bad'}`.", 'name `positive = {model = "bad"}` under `[data]` in a plan.'),
        ("use `method='euler'`", 'use `method = "euler"` in a plan'),
        ("`allow_unstable=True` lets it run", "`allow_unstable = true` in a plan lets it run"),
        (
            "Group `sex=Female` and `score=3` and column `groups`.",
            "Group `sex=Female` and `score=3` and column `groups`.",
        ),
        ("Read the data with `rows='keep'`.", "Read the data with `rows='keep'`."),
    ],
)
def test_options_are_named_as_the_command_line_has_them(python, terminal):
    assert spoken(python) == terminal


def test_every_flag_exists():
    known = {flag for parameter in audit_command.params for flag in parameter.opts}
    assert set(_FLAGS.values()) <= known


def test_an_error_at_the_terminal_names_its_options(tmp_path, capsys):
    file = tmp_path / "people.csv"
    file.write_text("d,sex\n1,F\n0,M\n1,F\n0,M\n")
    arguments = [
        "audit",
        str(file),
        "--decision",
        "d",
        "--group",
        "sex",
        "--metrics",
        "fnr",
        "--out",
        str(tmp_path / "o"),
    ]
    assert run([*arguments, "--out", str(tmp_path / "o")]) == 2
    said = capsys.readouterr().err
    assert "`--outcome`" in said
    assert "outcome=" not in said
