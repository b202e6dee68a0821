"""``evenhand datasets``: which data sets are known, where they were found, adding a copy, writing one as CSV."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand import datasets


@click.group("datasets", invoke_without_command=True)
@click.pass_context
def datasets_command(context: click.Context) -> None:
    """List the data sets Evenhand knows: rows, licence, where each was found or can be had."""
    if context.invoked_subcommand is not None:
        return
    rows = [("name", "rows", "licence", "where")]
    for known in datasets.known():
        where = known.where if known.where != "not found" else f"not here; get it from {known.source}"
        rows.append((known.name, f"{known.rows:,}", known.licence, where))
    widths = [max(len(row[j]) for row in rows) for j in range(4)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    click.echo("`evenhand datasets add NAME FILE` checks a copy and keeps it.")
    click.echo("`evenhand datasets export NAME FILE` writes one that has decisions as a CSV file.")


@datasets_command.command("add")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
def add_command(name: str, file: Path) -> None:
    """Check a copy of a known data set and keep it where Evenhand finds it."""
    click.echo(f"Kept {datasets.add(name, file)}")


@datasets_command.command("export")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
def export_command(name: str, file: Path) -> None:
    """Write a data set that has decisions as a CSV file: outcome, decision, score, groups, features."""
    written = datasets.export(name, file)
    origin = next(known for known in datasets.known() if known.name == name)
    click.echo(f"Wrote {written}.")
    click.echo(f"The rows are from {origin.source}, licence: {origin.licence}. Keep this line with copies of the file.")
