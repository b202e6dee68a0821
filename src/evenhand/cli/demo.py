"""``evenhand demo``: real data, a trained model, the audit."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand import datasets
from evenhand.cli.output import progress, show, write
from evenhand.plan import Plan
from evenhand.run import audit


@click.command("demo")
@click.option("--out", type=click.Path(path_type=Path), default=Path("evenhand-report"), show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def demo_command(out: Path, seed: int, quiet: bool) -> None:
    """Train a logistic model on the Adult census data and audit its decisions by sex and race."""
    with progress(quiet) as tell:
        if tell is not None:
            tell("demo: training a logistic model on Adult")
        data = datasets.adult()
        plan = Plan(group={"metrics": ["selection_rate", "fnr", "fpr", "auc", "calibration_error"]})
        run = audit(data, plan=plan, rng=seed, progress=tell)
    if not quiet:
        click.echo("Adult census income, test half: does a logistic model treat groups alike?")
        show(run)
    write(run, out)
