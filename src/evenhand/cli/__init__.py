"""The command line: words in, files and an exit code out.

Exit codes: 0 ran, 1 internal error, 2 usage or data error, 3 ran and ``--fail-on`` was met.
"""

from __future__ import annotations

import sys
import traceback
import warnings

import click

from evenhand.cli.audit import audit_command
from evenhand.cli.compare import compare_command, history_command
from evenhand.cli.datasets import datasets_command
from evenhand.cli.demo import demo_command
from evenhand.cli.mitigate import mitigate_command
from evenhand.cli.plan import plan_command
from evenhand.cli.power import power_command
from evenhand.cli.reproduce import reproduce_command
from evenhand.cli.watch import watch_command
from evenhand.cli.wording import spoken
from evenhand.errors import EvenhandError
from evenhand.results import printable


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="evenhand")
def cli() -> None:
    """Audit models that decide over people: is what we see unfair treatment, or noise?"""


cli.add_command(audit_command)
cli.add_command(plan_command)
cli.add_command(power_command)
cli.add_command(mitigate_command)
cli.add_command(compare_command)
cli.add_command(history_command)
cli.add_command(watch_command)
cli.add_command(demo_command)
cli.add_command(reproduce_command)
cli.add_command(datasets_command)


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
