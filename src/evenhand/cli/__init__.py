"""The command line: words in, files and an exit code out.

Exit codes: 0 ran, 1 internal error, 2 usage or data error, 3 ran and ``--fail-on`` was met.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from importlib import import_module

import click

from evenhand.cli.wording import spoken
from evenhand.errors import EvenhandError
from evenhand.results import printable

# Each command with its module, loaded when the command is called, and what the list of commands says of it.
_COMMANDS = {
    "app": ("evenhand.cli.app", "Audit in the browser, on this machine alone."),
    "audit": ("evenhand.cli.audit", "Audit a file of decisions."),
    "compare": ("evenhand.cli.compare", "Compare two models, or two finished runs."),
    "datasets": ("evenhand.cli.datasets", "List the data sets that Evenhand knows."),
    "demo": ("evenhand.cli.demo", "Train two models on census data and audit them."),
    "history": ("evenhand.cli.compare", "List the runs below a folder."),
    "mitigate": ("evenhand.cli.mitigate", "Repair a model and certify the repair."),
    "plan": ("evenhand.cli.plan", "Write a commented plan for a file."),
    "power": ("evenhand.cli.power", "Say what an audit can show."),
    "reproduce": ("evenhand.cli.reproduce", "Compute a paper's tables beside what is printed."),
    "watch": ("evenhand.cli.watch", "Count batches of decisions and alarm."),
}


class _Commands(click.Group):
    """Commands whose modules are loaded when they are called: help and version do not wait for all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name][0]), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="evenhand")
def cli() -> None:
    """Audit models that decide over people: is what we see unfair treatment, or noise?"""


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        The words after ``evenhand``; those of the process by default.

    Returns
    -------
    int

    Examples
    --------
    >>> run(["audit", "no-such-file.csv", "--group", "sex", "--decision", "d", "--out", "out"])
    2
    """
    try:
        # What a reader should know is in the notes and in the findings.
        with warnings.catch_warnings(action="ignore"):
            code = cli.main(args=arguments, prog_name="evenhand", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        click.echo("evenhand: interrupted; nothing was written.", err=True)
        return 1
    except click.UsageError as error:
        click.echo(f"evenhand: {printable(error.format_message())} See `evenhand --help`.", err=True)
        return 2
    except EvenhandError as error:
        click.echo(f"evenhand: {printable(spoken(str(error)))}", err=True)
        return 2
    except MemoryError as error:
        said = f" ({str(error).rstrip('.')})" if str(error) else ""
        click.echo(
            f"evenhand: There is not enough memory for this audit{printable(said)}. Give fewer rows, groups or "
            "metrics, or let an engine add up the rows.",
            err=True,
        )
        return 2
    except OSError as error:
        place = "" if error.filename is None else f" ({error.filename})"
        click.echo(f"evenhand: {printable(f'{error.strerror or error}{place}')}; nothing was written.", err=True)
        return 2
    except Exception:
        traceback.print_exc()
        click.echo("evenhand: internal error; the lines above say where.", err=True)
        return 1
    return int(code or 0)
