"""``evenhand datasets``: which data sets are known and where they were found."""

from __future__ import annotations

import click

from evenhand import datasets


@click.command("datasets")
def datasets_command() -> None:
    """List the data sets Evenhand knows and where they were found."""
    rows = [("name", "rows", "licence", "where")]
    rows += [(k.name, f"{k.rows:,}", k.licence, k.where) for k in datasets.known()]
    widths = [max(len(row[j]) for row in rows) for j in range(4)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
