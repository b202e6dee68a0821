"""``evenhand plan FILE``: a commented plan for the user's own file, ready to be changed and run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from evenhand.audits.group.samples import check_needs, metrics_for
from evenhand.audits.options import options_of
from evenhand.audits.reference import references
from evenhand.audits.registry import AUDITS
from evenhand.cli.reading import data_options, open_data, said_of_data
from evenhand.errors import DataError, UsageError
from evenhand.files import write_atomic
from evenhand.intake import AuditData
from evenhand.metrics import METRICS
from evenhand.models import audited_model
from evenhand.plan import Plan, toml_key, toml_value
from evenhand.results import printable
from evenhand.run import decided
from evenhand.summaries import group_sizes

_GROUPS_SHOWN = 12


@click.command("plan")
@click.argument("file")
@data_options
@click.option("--out", type=click.Path(path_type=Path, allow_dash=True), default=Path("audit.toml"), show_default=True,
              help="The plan's file; - for standard output.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the file when it exists.")
def plan_command(file: str, out: Path, force: bool, **words: Any) -> None:
    """Write a commented plan for a file: its groups, the metrics its columns allow, the audits that can run."""
    shown = str(out) == "-"
    if out.exists() and not force and not shown:
        raise UsageError(f"`{out}` exists already. Give another `--out`, or `--force` to replace it.")
    said = said_of_data(words)
    Plan(data=said)
    data, model = open_data([file], said, words)
    if model is not None and data.features:
        model = audited_model(model, data)
        data, _ = decided(data, model)
    text = plan_text(data, model, said, file=file, path="audit.toml" if shown else str(out))
    if shown:
        click.echo(text, nl=False)
        return
    write_atomic(out, text)
    click.echo(f"Wrote {out}")


def plan_text(data: AuditData, model: Any, said: dict[str, Any], *, file: str, path: str) -> str:
    """Write the default plan for these data as TOML, with what else could be asked as comments.

    Parameters
    ----------
    data : AuditData
        What the file holds.
    model : object or None
        The model, if one was named.
    said : dict
        The plan's ``[data]``.
    file, path : str
        The data's file and the plan's, for the comments.

    Returns
    -------
    str
        A valid plan that finds what the defaults find.
    """
    plan = Plan.default(data, model, base=Plan(data=said, seed=0))
    return "\n".join(_lines(plan, data, printable(file), printable(path))) + "\n"


def _lines(plan: Plan, data: AuditData, file: str, path: str) -> Iterator[str]:
    yield f"# Plan of an audit of {file}: {data.rows.rows_in:,} rows, {data.rows.rows_used:,} used."
    yield f"# Run it:  evenhand audit {file} --plan {path} --out report"
    yield "# A plan protects best when it is fixed before results are seen: its hash is written into them."
    yield ""
    yield f"audits = {toml_value(plan.audits)}"
    yield "alpha = 0.05  # error rate over all findings of all audits"
    yield 'correction = "gatekeeping"  # or "holm", "bonferroni", "bh", "max-t", "none"'
    yield "seed = 0"
    yield "# n_resamples = 9999  # random permutations where a test is not exact"
    if plan.notes:
        yield f"notes = [\n{''.join(f'  {toml_value(note)},{chr(10)}' for note in plan.notes)}]"
    yield "\n[data]"
    yield from (f"{toml_key(key)} = {toml_value(value)}" for key, value in plan.data.items())
    if data.attributes:
        yield "\n[reference]  # the group the others are compared with; by default the largest"
    largest = references(data)
    for attribute in data.attributes:
        sizes = [int(n) for n in group_sizes(data, attribute)]
        ranked = sorted(zip(attribute.labels, sizes, strict=True), key=lambda pair: -pair[1])
        counted = ", ".join(f"{label}: {n:,}" for label, n in ranked[:_GROUPS_SHOWN])
        more = f" and {len(ranked) - _GROUPS_SHOWN} more" if len(ranked) > _GROUPS_SHOWN else ""
        yield f"{toml_key(attribute.name)} = {toml_value(largest[attribute.name])}  # rows: {printable(counted)}{more}"
    for name in AUDITS:
        chosen = name in plan.audits
        yield f"\n{'' if chosen else '# '}[{name}]" + ("" if chosen else "  # add it to `audits` first")
        for key, value in plan.sections[name].items():
            yield f"{toml_key(key)} = {toml_value(value)}"
        if name == "group" and chosen:
            yield from _metric_lines(data)
        for one in options_of(AUDITS[name].options).values():
            if one.rules.offer is not None:
                value, words = one.rules.offer
                yield f"# {one.name} = {toml_value(value)}  # {words}"


def _metric_lines(data: AuditData) -> Iterator[str]:
    """Name the metrics that run, those that could, and those that cannot with the reason."""
    run = metrics_for(data)
    yield f"metrics = {toml_value([m.name for m in run])}"
    could: list[str] = []
    cannot: dict[str, list[str]] = {}
    for metric in METRICS.values():
        try:
            check_needs(metric, data)
        except DataError as error:
            why = str(error).partition(" needs ")[2].partition(" and none")[0].partition(";")[0]
            cannot.setdefault(f"needs {why}" if why else str(error), []).append(metric.name)
        else:
            could.append(metric.name)
    more = [name for name in could if name not in {m.name for m in run}]
    if more:
        yield f"# also possible: {', '.join(more)}"
    for reason, names in cannot.items():
        yield f"# not possible: {', '.join(names)} ({printable(reason)})"
