"""``evenhand power``: what can an audit of so many rows show, and how many rows does it need?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenhand.cli.audit import check_folder
from evenhand.cli.pairs import pairs
from evenhand.cli.reading import data_options, listed, open_data, said_of_data
from evenhand.errors import UsageError
from evenhand.results import printable
from evenhand.sizing import PowerResult, power


@click.command("power")
@click.option("--metrics", required=True, help="Metrics, separated by commas; or `correlation`.")
@click.option(
    "--rows", metavar="F=200,M=800", help="Rows of the group and of its reference; one number for a correlation."
)
@click.option("--value", type=float, help="The metric's value in the reference.")
@click.option("--base-rate", metavar="RATE[,RATE]", help="Share of rows with outcome 1, in both groups or in each.")
@click.option("--selection-rate", metavar="RATE[,RATE]", help="Share of rows with decision 1.")
@click.option("--spread", metavar="SD[,SD]", help="Standard deviation of a row's value, for means.")
@click.option("--difference", type=float, help="What is to be shown: group minus reference.")
@click.option("--ratio", type=float, help="The same as a ratio.")
@click.option("--margin", help="Also the power to show equivalence: 0.05, ratio:0.9 or four-fifths.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Error rate over all findings.")
@click.option("--findings", type=int, help="Findings that share it.  [default: the comparisons asked for]")
@click.option("--power", "wanted", type=float, default=0.8, show_default=True, help="How often it is to be shown.")
@click.option("--curve", type=click.Choice(["rows", "difference"]), help="Also the power over rows or differences.")
@click.option("--data", "file", help="A pilot (CSV, Parquet or Arrow) to take values from.")
@data_options
@click.option("--reference", multiple=True, metavar="COLUMN=LABEL", help="Group the pilot's others are compared with.")
@click.option("--compare", type=click.Choice(["reference", "pairs"]), default="reference", help="For a pilot.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of the table.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for power.json.")
def power_command(file: str | None, **words: Any) -> None:
    """Say what an audit can show: from assumed numbers, or from a pilot with --data."""
    if words["out"] is not None:
        check_folder(words["out"])
    data = None
    said = said_of_data(words)
    if file is not None:
        data, _ = open_data([file], said, words)
    elif said:
        raise UsageError("A column or a model was named and no file was given. Give the pilot with `--data FILE`.")
    plain = ("value", "difference", "ratio", "margin", "alpha", "findings", "curve", "compare")
    result = power(
        listed(words["metrics"]),
        data,
        rows=_rows(words["rows"]),
        power=words["wanted"],
        reference=pairs("--reference", words["reference"]) or None,
        **{name: _numbers(name, words[name]) for name in ("base_rate", "selection_rate", "spread")},
        **{name: words[name] for name in plain},
    )
    if words["as_json"]:
        click.echo(result.to_json(), nl=False)
    else:
        _show(result)
    if words["out"] is not None:
        path = words["out"] / "power.json"
        result.to_json(path)
        click.echo(f"Wrote {path}", err=words["as_json"])


def _show(result: PowerResult) -> None:
    """Print the table, the reasons of what is missing, the curves and how to read it."""
    options = result.options
    click.echo(str(result))
    click.echo()
    for row in result:
        if row.reason:
            click.echo(printable(f"{row.measure}, {' vs '.join(row.groups)}: {row.reason}"))
        for point in row.curve:
            click.echo("  " + "  ".join(f"{k.replace('_', ' ')} {v:.4g}" for k, v in point.items()))
    click.echo(
        f"Differences are shown with probability {options['power']:g} at error rate {options['alpha']:g}"
        + (f", shared by {options['findings']} findings." if options["findings"] > 1 else ".")
    )


def _numbers(name: str, text: str | None) -> Any:
    """Read one number, or two separated by a comma."""
    if text is None:
        return None
    try:
        numbers = [float(part) for part in listed(text)]
    except ValueError:
        raise UsageError(
            f"`--{name.replace('_', '-')} {text}` is not understood. Write one number, or two separated by a comma."
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers


def _rows(text: str | None) -> dict[str, int] | list[int] | int | None:
    """Read ``F=200,M=800``, ``200,800`` or ``200``."""
    if text is None:
        return None
    named = pairs("--rows", listed(text)) if "=" in text else {}
    try:
        numbers = [int(number) for number in named.values() or listed(text)]
    except ValueError:
        raise UsageError(
            f"`--rows {text}` is not understood. Write `--rows F=200,M=800`, or `--rows 200,800`."
        ) from None
    if named:
        return dict(zip(named, numbers, strict=True))
    return numbers[0] if len(numbers) == 1 else numbers
