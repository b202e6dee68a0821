"""A model card in Markdown: metadata after the fields of Hugging Face's cards, then what was found in plain words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.audits.margin import is_ratio, metric_of
from evenhand.audits.registry import AUDITS
from evenhand.errors import UsageError
from evenhand.files import written
from evenhand.metrics import METRICS
from evenhand.report.detail import first_findings
from evenhand.report.document import compared, shown
from evenhand.report.markdown import inert
from evenhand.report.words import VERDICT_WORDS
from evenhand.results import AuditRun, Evidence, Finding, Verdict, plain, printable, shown_p

_MOST_RESULTS = 50  # in the metadata
_MOST_ROWS = 200  # of the table of findings
_MOST_SAID = 10  # sentences of one verdict
_MOST_GROUPS = 50


def to_model_card(run: AuditRun, path: str | Path | None = None, *, name: str = "Audited model", **fields: Any) -> str:
    """Write a run as a model card.

    Parameters
    ----------
    run : AuditRun
        What was found.
    path : str or Path, optional
        Where to write it, in one step.
    name : str
        Of the model.
    **fields
        Further metadata fields, such as ``license="mit"``, ``tags=["credit"]`` or ``dataset="loans-2024"``, which is
        also the name of the data under the results.

    Returns
    -------
    str

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> to_model_card(run, name="Loans", license="mit").splitlines()[:2]
    ['---', 'license: "mit"']
    """
    if "model-index" in fields:
        raise UsageError("`model-index` holds the findings and is written by the card. Leave it out.")
    dataset = str(fields.pop("dataset", "audited data"))
    tags = [*dict.fromkeys([*fields.pop("tags", ()), "fairness", "evenhand"])]
    metadata = {**fields, "tags": tags, "model-index": [_index(run, name, dataset)]}
    parts = [
        "---\n" + "\n".join(_yaml(plain(metadata))) + "\n---",
        f"# {inert(name)}",
        "## Bias, Risks, and Limitations",
        *_said(run),
        "A disparity says that groups, or comparable people, are treated differently beyond chance. It does not say "
        "why, and it does not say whether a law is broken.",
        "## What was not tested",
        *_untested(run),
        "## Evaluation",
        "### Testing Data",
        *_people(run, dataset),
        "### Metrics",
        *_metrics(run),
        "### Results",
        *_results(run),
        "## To repeat this audit",
        _facts(run),
    ]
    return written("\n\n".join(parts) + "\n", path)


def _index(run: AuditRun, name: str, dataset: str) -> dict[str, Any]:
    """Return the findings as the card's ``model-index``: finite estimates, those that decide first."""
    order = first_findings(run.findings, len(run.findings))
    drawn = [f for f in (run.findings[j] for j in order) if math.isfinite(f.estimate)][:_MOST_RESULTS]
    metrics = [
        {
            "type": f.measure,
            "name": f"{f.measure}, {compared(f.groups)}",
            "value": float(f"{f.estimate:.6g}"),
            "args": {"audit": f.audit, "verdict": str(f.verdict), **_ends(f)},
        }
        for f in drawn
    ]
    return {
        "name": name,
        "results": [
            {
                "task": {"type": "tabular-classification", "name": "Audit of decisions between groups"},
                "dataset": {"type": "tabular", "name": dataset},
                "metrics": metrics,
            }
        ],
    }


def _ends(finding: Finding) -> dict[str, Any]:
    if finding.interval is None:
        return {}
    return {key: getattr(finding.interval, key) for key in ("low", "high", "level")}


def _said(run: AuditRun) -> list[str]:
    """Say what is shown, what is not and what could not be computed, a sentence for each finding."""
    pairs = [(f, e) for r in run.results for f, e in zip(r.findings, r.evidence, strict=True)]
    parts = []
    for verdict, meaning in VERDICT_WORDS.items():
        own = [_sentence(f, e) for f, e in pairs if f.verdict is verdict]
        if own:
            said = list(dict.fromkeys(own))
            more = [f"- and {len(said) - _MOST_SAID:,} more below."] if len(said) > _MOST_SAID else []
            title = f"**{shown(verdict).capitalize()}: {len(own):,} of {len(pairs):,} findings.** {meaning}"
            parts += [title, "\n".join([*(f"- {inert(text)}" for text in said[:_MOST_SAID]), *more])]
    return parts


def _sentence(finding: Finding, evidence: Evidence) -> str:
    decided = finding.verdict in (Verdict.DISPARITY, Verdict.EQUIVALENT)
    return (evidence.fact or finding.reason) if decided else finding.reason


def _untested(run: AuditRun) -> list[str]:
    ran = {result.audit for result in run.results}
    lines = [f"- The {name} audit was not run: {audit.question}" for name, audit in AUDITS.items() if name not in ran]
    asked = {metric_of(f.measure.partition(":")[0]) for f in run.findings if f.audit == "group"}
    other = [metric for metric in METRICS if metric not in asked]
    if "group" in ran and other:
        lines.append(f"- Between groups these metrics were not compared: {', '.join(other)}.")
    named = ", ".join(inert(str(name)) for name in run.data.get("groups", {}))
    lines.append(f"- Nothing was tested about groups other than those of {named or 'the audited attributes'}.")
    lines.append("- Nothing was tested about people who differ from those in the data, or who come later.")
    return ["\n".join(lines)]


def _people(run: AuditRun, dataset: str) -> list[str]:
    data = run.data
    rows = f"{inert(dataset)}: {data.get('rows_in', 0):,} rows, of which {data.get('rows_used', 0):,} were used."
    dropped = [f"- {n:,} dropped: {inert(str(reason))}." for reason, n in data.get("rows_dropped", {}).items()]
    tables = []
    for name, sizes in data.get("groups", {}).items():
        lines = [(inert(str(label)), f"{n:,}") for label, n in list(sizes.items())[:_MOST_GROUPS]]
        more = len(sizes) - len(lines)
        tables.append(_table((f"Groups of {inert(str(name))}", "Rows"), lines))
        tables += [f"{more:,} more groups are in findings.json."] if more > 0 else []
    return [rows, *(["\n".join(dropped)] if dropped else []), *tables]


def _metrics(run: AuditRun) -> list[str]:
    names = dict.fromkeys(metric_of(f.measure.partition(":")[0]) for f in run.findings)
    lines = [f"- {inert(name)}: {METRICS[name].says}." for name in names if name in METRICS]
    lines += [f"- The {result.audit} audit asks: {AUDITS[result.audit].question}" for result in run.results]
    return ["\n".join(lines)]


def _results(run: AuditRun) -> list[str]:
    order = first_findings(run.findings, len(run.findings))
    rows = []
    for finding in (run.findings[j] for j in order[:_MOST_ROWS]):
        between = finding.interval
        ends = "–" if between is None else f"{shown(float(between.low))} to {shown(float(between.high))}"
        value = shown(float(finding.estimate)) + (" times" if is_ratio(finding.measure) else "")
        names = (finding.audit, inert(finding.measure), inert(compared(finding.groups)))
        rows.append((*names, value, ends, shown_p(finding.pvalue_adjusted), shown(finding.verdict)))
    head = ("Audit", "Measure", "Groups", "Estimate", "Interval", "p adjusted", "Verdict")
    more = len(order) - len(rows)
    return [_table(head, rows), *([f"{more:,} more findings are in findings.json."] if more > 0 else [])]


def _facts(run: AuditRun) -> str:
    facts = {
        "Error rate": f"{run.plan.get('alpha', 0.05):g} ({run.plan.get('correction', 'holm')})",
        "Seed": str(run.seed),
        "Fingerprint of the data": str(run.data.get("fingerprint", "")),
        "Fingerprint of the plan": str(run.plan.get("hash", "")),
        **{f"Version of {name}": str(version) for name, version in run.versions.items()},
    }
    return "\n".join(f"- {name}: {inert(value)}" for name, value in facts.items() if value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _yaml(value: Mapping[str, Any] | Sequence[Any], depth: int = 0) -> list[str]:
    """Lay plain data out as YAML; every text stands between quotes as in JSON and is read as a text."""
    space, lines = "  " * depth, []
    items = (
        [(f"{_key(key)}:", v) for key, v in value.items()] if isinstance(value, Mapping) else [("-", v) for v in value]
    )
    for mark, item in items:
        if isinstance(item, Mapping | list) and item:
            lines += [f"{space}{mark}", *_yaml(item, depth + 1)]
        else:
            lines.append(f"{space}{mark} {json.dumps(_printable(item), ensure_ascii=False)}")
    return lines


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalpha() and key.isascii() else json.dumps(printable(key))


def _printable(item: Any) -> Any:
    return printable(item) if isinstance(item, str) else item
