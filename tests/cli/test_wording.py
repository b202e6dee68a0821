"""Messages read at a terminal name what a terminal has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import evenhand
from evenhand.cli import run
from evenhand.cli.audit import audit_command
from evenhand.cli.wording import _FLAGS, spoken

# Rooms whose functions a terminal does not reach, or that write its words themselves.
_OWN_WORDS = ("kernels", "cli", "sizing", "datasets", "reproductions", "mitigation", "inference", "similarity")
# Keys of a mapping, help of options, and an option of one audit that shares its name with another audit's flag.
_NOT_OPTIONS = ("may hold `decision`", "`margin` must be a part of the gap", "needs `model`.", "implies `ratio`")


@pytest.mark.parametrize(
    ("python", "terminal"),
    [
        ("Name it with `outcome=`.", "Name it with `--outcome`."),
        ("as a group with `missing='group'`.", "as a group with `--missing group`."),
        ("allow it with `trust_pickle=True` (`--trust-pickle`).", "allow it with `--trust-pickle`."),
        ("Leave it out of `groups=`, or cut it with `cuts=`.", "Leave it out of `--group`, or cut it with `--cut`."),
        ("Pass `positive='poor'` or `positive=2`.", "Pass `--positive poor` or `--positive 2`."),
        ("name `positive={'model': 'bad'}`.", 'name `positive = {model = "bad"}` under `[data]` in a plan.'),
        ("use `method='euler'`", 'use `method = "euler"` in a plan'),
        ("`allow_unstable=True` lets it run", "`allow_unstable = true` in a plan lets it run"),
        (
            "Group `sex=Female` and `score=3` and column `groups`.",
            "Group `sex=Female` and `score=3` and column `groups`.",
        ),
        ("Read the data with `rows='keep'`.", "Read the data with `--read-rows keep`."),
        ("The records come with `rows=True`.", "The records come with `rows = true` in a plan."),
    ],
)
def test_options_are_named_as_the_command_line_has_them(python, terminal):
    assert spoken(python) == terminal


def _messages():
    """Yield every text of the package that is no docstring, with its place; what is filled in is left out."""
    for path in sorted(Path(evenhand.__file__).parent.rglob("*.py")):
        room = path.relative_to(Path(evenhand.__file__).parent).parts[0]
        if room in _OWN_WORDS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        described = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
                yield f"{path.name}:{node.lineno}", node.value


def test_every_message_writes_an_option_so_that_it_can_be_said_at_a_terminal():
    texts = list(_messages())
    assert len(texts) > 1000
    bare = re.compile(rf"(?<![`\w])`({'|'.join(_FLAGS)})`(?!`)")
    wrong = {f"{place}: {text}" for place, text in texts if bare.search(text)}
    assert not {text for text in wrong if not any(known in text for known in _NOT_OPTIONS)}


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
