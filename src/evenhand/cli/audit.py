"""``evenhand audit FILE``: one file of decisions, one table, one folder of results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evenhand.audits.reference import WORDS
from evenhand.cli.gate import check_gates, met, parse_gates
from evenhand.cli.output import keep, progress, show, table_makers, write
from evenhand.cli.pairs import pairs
from evenhand.cli.reading import data_options, listed, open_data, said_of_data
from evenhand.errors import UsageError
from evenhand.files import hashed
from evenhand.models.files import model_mark
from evenhand.plan import Plan, check_fits
from evenhand.report import compose
from evenhand.report.bias_audit import BiasAudit, bias_plan
from evenhand.report.bias_audit.page import FORMS
from evenhand.report.library import prepare
from evenhand.results import printable
from evenhand.run import perform
from evenhand.sharing.annotations import github_annotations, unread
from evenhand.sharing.sarif import to_sarif


@click.command("audit")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@data_options
@click.option(
    "--reference",
    multiple=True,
    metavar="COLUMN=LABEL",
    help="Group the others are compared with; or `highest`, `rest` or `overall`.",
)
@click.option("--metrics", help="Metrics of the group audit and of a scan that is named, separated by commas.")
@click.option("--audits", help="Audits, separated by commas.  [default: all that the columns and the model allow]")
@click.option("--compare", type=click.Choice(["reference", "pairs"]), help="With the reference, or all pairs.")
@click.option("--ratio", is_flag=True, help="Report ratios instead of differences.")
@click.option("--margin", help="What counts as negligible: 0.05, ratio:0.9 or four-fifths.")
@click.option("--alpha", type=float, help="Error rate over all findings.  [default: 0.05]")
@click.option("--correction", help="gatekeeping, holm, bonferroni, bh, max-t or none.  [default: gatekeeping]")
@click.option("--resamples", type=int, help="Random permutations where a test is not exact.  [default: 9999]")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="Plan in TOML; options here come first.")
@click.option("--seed", type=click.IntRange(min=0), help="[default: the plan's, else 0]")
@click.option("--by", metavar="COLUMN[:UNIT]", help="One audit for each period: a column that names "
              "them, or dates cut into day, week, month or year.")  # fmt: skip
@click.option("--by-alpha", type=click.Choice(["all", "each"]), default="all", show_default=True,
              help="Whether the error rate holds over all periods or in each alone.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("evenhand-report"), show_default=True,
              help="Folder for the results.")  # fmt: skip
@click.option("--title", help="Title of the report.  [default: Audit report, with the label]")
@click.option("--label", help="What you call this run, such as the model's version; kept in findings.json.")
@click.option("--format", "form", type=click.Choice(["report", *FORMS]), default="report", show_default=True,
              help="A report of all audits, or bias-audit tables with CSV and Excel beside them.")  # fmt: skip
@click.option("--suppress", type=int, metavar="N", help="Make results that may be shared: no count below N is in them.")
@click.option("--fail-on", multiple=True, metavar="[AUDIT:][METRIC:]VERDICT", help="Exit code 3 when met.")
@click.option("--annotations", type=click.Choice(["github"]),
              help="Print what fails, and other disparities, as annotations of a pull request.")  # fmt: skip
@click.option("--sarif", type=click.Path(path_type=Path), metavar="FILE", help="Write the same as SARIF 2.1.0.")
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def audit_command(files: tuple[str, ...], **words: Any) -> int:
    """Audit a file of decisions (CSV, Parquet or Arrow).

    FILE may also be several parts, a folder or a pattern of them, a DuckDB database, `-` for standard input, or with
    --spark a table or a path that Spark reads.
    """
    gates = parse_gates(words["fail_on"])
    base = None if words["plan_file"] is None else Plan.from_toml(words["plan_file"])
    asked = _asked(words, base or Plan())
    check_folder(words["out"])
    if "period" in asked.data:
        _check_periods(words)
    prepare()
    data, model = open_data(files, asked.data, words)
    if words["form"] in FORMS:
        asked = bias_plan(asked, data)
        check_fits(asked, data, model)
    elif base is None and not words["audits"]:
        asked = Plan.default(data, model, base=asked)
    else:
        check_fits(asked, data, model)
    check_gates(gates, asked, data)
    if data.period is not None:
        from evenhand.cli.periods import audit_by_period  # what few runs need does not delay the others

        return audit_by_period(asked, data, model, words, gates)
    with progress(words["quiet"]) as tell:
        together = words["form"] in FORMS
        run = perform(
            asked,
            data,
            model,
            progress=tell,
            suppress=words["suppress"],
            simultaneous=together,
        )
    run = replace(run, label=words["label"], **_hashes(files, asked, words))
    keep(run, words["out"])
    audit = BiasAudit.of_run(run, data, words["form"]) if together else None
    page = compose(run) if audit is None else audit.page
    page = replace(page, title=words["title"] or page.title)
    fails = (lambda f: any(g.met_by(f) for g in gates)) if gates else None
    with unread(click.echo) if words["annotations"] else nullcontext():
        if not words["quiet"]:
            show(run, page, None if audit is None else str(audit))
        write(page, words["out"], fails=fails, more=table_makers(audit))
    place = words["plan_file"] or files[0]
    if words["sarif"] is not None:
        to_sarif(run, words["sarif"], place=place, fails=fails)
    for line in github_annotations(run, place=place, fails=fails) if words["annotations"] else ():
        click.echo(line)
    broken = met(gates, run)
    for sentence in broken:
        click.echo(f"evenhand: {printable(sentence)}", err=True)
    return 3 if broken else 0


def _hashes(files: Sequence[str], asked: Plan, words: Mapping[str, Any]) -> dict[str, Any]:
    """Return by what the model and the input files can be recognised."""
    named = [hashed(file) for file in files if words["spark"] is None and file != "-"]
    if words["suppress"] is not None:  # a reader could test guesses about single people with a hash
        named = [{"name": file["name"], "sha256": None, "reason": "It is not published."} for file in named]
    return {"model": model_mark(asked.data.get("model")), "input": named}


def check_folder(out: Path) -> None:
    """Refuse an output folder that is a file, or that may not be written, before any work is done."""
    place = next((p for p in (out, *out.absolute().parents) if p.exists()), Path("/"))
    if not place.is_dir():
        raise UsageError(f"`--out {out}`: `{place}` is a file, not a folder.")
    if not os.access(place, os.W_OK):
        raise UsageError(f"`--out {out}`: no permission to write in `{place}`.")


def _check_periods(words: Mapping[str, Any]) -> None:
    """Refuse what is made for one table and would not hold for several periods, before any row is read."""
    if words["form"] in FORMS:
        raise UsageError(f"`--format {words['form']}` makes the tables of one period; leave out `--by`.")
    for flag in ("sarif", "annotations"):
        if words[flag] is not None:
            raise UsageError(
                f"`--{flag}` tells the findings of one run, and `--by` makes several; leave out one of them."
            )
    for name in ("title", "label"):
        if words[name] is not None:
            raise UsageError(f"`--{name}` names one run, and `--by` makes several; leave out one of them.")
    if words["suppress"] is not None:
        raise UsageError("`--suppress` protects one table, and counts of several periods add up; leave out `--by`.")


def _asked(words: Mapping[str, Any], base: Plan) -> Plan:
    """Lay the words of the command line over a plan."""
    group = {
        "metrics": listed(words["metrics"]) or None,
        "compare": words["compare"],
        "ratio": words["ratio"] or None,
        "margin": _number(words["margin"]),
    }
    by = {} if words["by"] is None else {"period": words["by"]}
    tables = {
        "data": {**_pack_defaults(words, base), **said_of_data(words), **by},
        "group": {key: value for key, value in group.items() if value is not None},
        "scan": {"metrics": group["metrics"]} if "scan" in listed(words["audits"]) and group["metrics"] else {},
    }
    parts = {
        "audits": tuple(listed(words["audits"])) or None,
        "alpha": words["alpha"],
        "correction": words["correction"] or None,
        "seed": 0 if words["seed"] is None and base.seed is None else words["seed"],
        "n_resamples": words["resamples"],
        "reference": _reference(words["reference"], base),
        **{name: {**getattr(base, name), **said} if said else None for name, said in tables.items()},
    }
    return base.changed(**{name: part for name, part in parts.items() if part is not None})


def _reference(items: Sequence[str], base: Plan) -> Mapping[str, str] | str | None:
    """Read references: a word alone for all attributes, or labels over those of the plan."""
    alone = [item for item in items if item in WORDS]
    if alone and len(items) > 1:
        raise UsageError(
            f"`--reference {alone[0]}` is for all attributes, and there is more than one `--reference`. Write "
            f"`--reference COLUMN={alone[0]}` for one of them."
        )
    if alone or not items:
        return alone[0] if alone else None
    named = {} if isinstance(base.reference, str) else base.reference
    return {**named, **pairs("--reference", items)}


def _pack_defaults(words: Mapping[str, Any], base: Plan) -> dict[str, Any]:
    """Return how bias-audit tables are read where nothing else was said: crossed, with the unknown counted."""
    if words["form"] not in FORMS:
        return {}
    crossed = len(words["groups"] or base.data.get("groups", ())) > 1
    return {
        key: value for key, value in {"missing": "unknown", "intersections": crossed}.items() if key not in base.data
    }


def _number(text: str | None) -> float | str | None:
    """Read a margin that is a number as one, so that the plan is the same as from a file."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
