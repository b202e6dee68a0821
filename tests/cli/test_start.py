"""The command line starts without loading what it does not need."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import click
import pytest

import evenhand.cli
from evenhand.cli import _COMMANDS, cli, run

SLOW = ("scipy.optimize", "scipy.stats", "evenhand.audits.group", "evenhand.report", "pandas", "sklearn")


def test_every_command_is_listed_and_loaded_by_its_name():
    made = {
        name: value
        for module in iter_modules(evenhand.cli.__path__)
        for name, value in vars(import_module(f"evenhand.cli.{module.name}")).items()
        if isinstance(value, click.Command) and name not in ("add_command", "export_command")  # belong to `datasets`
    }
    assert {name.removesuffix("_command") for name in made} == set(_COMMANDS)
    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert cli.get_command(context, name) is made[f"{name}_command"]
        assert made[f"{name}_command"].name == name
    assert cli.get_command(context, "no-such") is None


def test_help_lists_the_commands_in_order(capsys):
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "audit      Audit a file of decisions." in shown
    assert list(_COMMANDS) == sorted(_COMMANDS)


@pytest.mark.parametrize("work", ["import evenhand", "from evenhand.cli import run; run(['--help'])"])
def test_the_start_loads_nothing_slow(work):
    code = f"import sys\n{work}\nprint('loaded:', [m for m in {SLOW} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "loaded: []"
