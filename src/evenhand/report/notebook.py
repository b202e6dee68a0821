"""What a notebook shows of data, plans, findings and runs: one small page without scripts, in the report's colours.

Names in it come from strangers: every text is escaped, and long ones are cut. The length is bounded, whatever was
found: what is left out is counted, and said where to look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from evenhand.audits.registry import AUDITS
from evenhand.intake import AuditData
from evenhand.plan import Plan
from evenhand.report.detail import first_findings
from evenhand.report.document import Block, Cell, Table, Text, compared, shown
from evenhand.report.dots import axis_of, dot, family, scales
from evenhand.report.evidence import evidence_blocks
from evenhand.report.html import coded
from evenhand.report.palette import THEMES, palette
from evenhand.results import AuditRun, Evidence, Finding, Findings, Verdict, printable, shown_p
from evenhand.summaries import group_sizes

_MOST_FINDINGS = 25  # drawn; those that decide come first
_MOST_EXPLAINED = 12
_MOST_ROWS = 20  # of any table
_LONGEST = 160  # characters of a name
_MARKS = {"disparity": "●", "equivalent": "■", "inconclusive": "◆", "not_computable": "✕"}
# The words about a change between two models look like the verdicts that they are nearest to.
_LOOKS = {"worse": "disparity", "better": "equivalent", "alike": "equivalent", "not_worse": "equivalent"}
_BY_HOST = {
    "light": '[data-jp-theme-light="true"] .evenhand, .vscode-light .evenhand',
    "dark": '[data-jp-theme-light="false"] .evenhand, .vscode-dark .evenhand',
}


@dataclass(frozen=True, slots=True)
class Code:
    """A text that is shown as it is written, folded."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Parts that are opened by hand, each with its title."""

    title: str
    parts: Sequence[tuple[str, Sequence[Block]]]


@dataclass(frozen=True, slots=True)
class Dots:
    """Findings with their pictures, by the scale they share."""

    families: Sequence[tuple[Markup, Sequence[tuple[Finding, Markup]]]]
    audits: bool  # whether the audit's name says something


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of one object."""

    title: str
    blocks: Sequence[Block | Code | Folded | Dots]
    tally: Sequence[tuple[StrEnum, int]] = ()


def notebook_html(value: Any) -> str:
    """Return what a notebook shows of one of this package's objects.

    Parameters
    ----------
    value : AuditData, Plan, Finding, Findings, AuditRun, Comparison, PowerResult or MitigationResult
        What is shown.

    Returns
    -------
    str
        HTML without scripts.

    Examples
    --------
    >>> row = Finding(audit="group", measure="<b>", groups=("a", "b"), estimate=0.5)
    >>> "<b>" in notebook_html(row)
    False
    """
    view = _VIEWS[next(cls.__name__ for cls in type(value).__mro__ if cls.__name__ in _VIEWS)](value)
    return _template().render(view=view, css=Markup(_style()), most_rows=_MOST_ROWS)


def _run(run: AuditRun) -> View:
    every = Findings(findings=run.findings, evidence=tuple(e for r in run.results for e in r.evidence))
    used = run.data.get("rows_used")
    people = f" of {used:,} rows" if isinstance(used, int) else ""
    names = ", ".join(result.audit for result in run.results)
    facts: list[tuple[Cell, ...]] = [
        ("Error rate", f"{run.plan.get('alpha', 0.05):g}, {run.plan.get('correction', 'holm')}"),
        ("Seed", str(run.seed)),
        ("Fingerprint of the data", str(run.data.get("fingerprint", ""))),
        *((f"Version of {name}", str(version)) for name, version in run.versions.items()),
    ]
    notes = [Text(text=note) for note in (*run.data.get("notes", ()), *(n for r in run.results for n in r.notes))]
    table = Table(title="To repeat this run", head=("What", "Value"), rows=tuple(facts), folded=True)
    about: list[Block | Folded] = [Folded("Notes", [("Data and method", _first(notes))])] if notes else []
    return View(f"Audit{people}: {names}", [*_findings_blocks(every), *about, table], _tally(every))


def _findings(found: Findings) -> View:
    audits = list(dict.fromkeys(f.audit for f in found))
    number = f"{len(found):,} finding{'' if len(found) == 1 else 's'}"
    asked = AUDITS[audits[0]].question if len(audits) == 1 and audits[0] in AUDITS else ", ".join(audits)
    return View(f"{number}. {asked}" if found else number, _findings_blocks(found), _tally(found))


def _finding(finding: Finding) -> View:
    shared = scales([finding])
    own = family(finding)
    drawn = Dots([(axis_of(shared[own]), [(finding, dot(finding, shared[own]))])], audits=True)
    reason, *evidence = evidence_blocks(finding, Evidence(), drawn=False)
    return View(
        f"{finding.measure}, {compared(finding.groups)}",
        [reason, drawn, Folded("Evidence", [("Counts and test", evidence)])],
        [(finding.verdict, 0)],
    )


def _findings_blocks(found: Findings) -> list[Block | Code | Folded | Dots]:
    """Say the main findings, draw the first ones, and fold what is behind them."""
    order = first_findings(found.findings, len(found))
    audits = list(dict.fromkeys(f.audit for f in found))
    drawn = sorted(order[:_MOST_FINDINGS], key=lambda j: audits.index(found[j].audit))
    said = [found.evidence[j].fact or found[j].reason for j in order if found[j].verdict is Verdict.DISPARITY][:2]
    blocks: list[Block | Code | Folded | Dots] = [Text(text=text) for text in said]
    if drawn:
        blocks.append(_dots([found[j] for j in drawn], audits=len(audits) > 1))
    if len(order) > len(drawn):
        blocks.append(
            Text(
                text=f"Not shown: {len(order) - len(drawn):,} more. `to_frame()` has all of them, and "
                "`find(measure=..., group=..., verdict=...)` picks some."
            )
        )
    explained = [(found[j], found.evidence[j]) for j in order[:_MOST_EXPLAINED]]
    parts = [(f"{f.measure}, {compared(f.groups)}", _first(evidence_blocks(f, e, drawn=False))) for f, e in explained]
    if parts:
        more = f" of the first {len(parts)} findings" if len(order) > len(parts) else ""
        blocks.append(Folded(f"Evidence{more}", parts))
    return blocks


def _dots(findings: Sequence[Finding], *, audits: bool) -> Dots:
    shared = scales(findings)
    families = [
        (axis_of(scale), [(f, dot(f, scale)) for f in findings if family(f) == name]) for name, scale in shared.items()
    ]
    return Dots(families, audits)


def _data(data: AuditData) -> View:
    rows: list[tuple[Cell, ...]] = [("Rows in the source", data.rows.rows_in), ("Rows used", data.rows.rows_used)]
    rows += [(f"Dropped: {reason}", n) for reason, n in data.rows.dropped.items()]
    for role, name in data.columns.items():
        labels = data.labels.get(role)
        counts = "" if labels is None else f"; 1 is {_listed(labels.one)}, 0 is {_listed(labels.zero)}"
        rows.append((f"Column for {role}", f"{name}{counts}"))
    blocks: list[Block | Code | Folded | Dots] = [
        Table(title="Rows and columns", head=("What", "Value"), rows=tuple(rows))
    ]
    for attribute in data.attributes[:_MOST_ROWS]:
        sizes = sorted(zip(attribute.labels, group_sizes(data, attribute), strict=True), key=lambda pair: -pair[1])
        total = sum(n for _, n in sizes) or 1
        table = tuple((label, int(n), f"{n / total:.1%}") for label, n in sizes)
        blocks.append(Table(title=f"Groups of {attribute.name}", head=("Group", "Rows", "Share"), rows=table))
    if data.features:
        names = ", ".join(list(data.features)[:_MOST_ROWS])
        more = f" and {len(data.features) - _MOST_ROWS:,} more" if len(data.features) > _MOST_ROWS else ""
        blocks.append(Text(text=f"Features: {names}{more}."))
    notes = [Text(text=note) for note in data.notes]
    blocks += [Folded("Notes", [("What was decided while reading", _first(notes))])] if notes else []
    return View(f"{data.rows.rows_used:,} decisions about people", blocks)


def _plan(plan: Plan) -> View:
    asked = tuple(
        (name, AUDITS[name].question, "; ".join(f"{key} = {value}" for key, value in plan.sections[name].items()))
        for name in plan.audits
    )
    seed = "chosen when it runs" if plan.seed is None else str(plan.seed)
    return View(
        f"Plan: {', '.join(plan.audits)}",
        [
            Text(text=f"Error rate {plan.alpha:g} over all findings ({plan.correction}). Seed: {seed}."),
            Table(title="Audits", head=("Audit", "Question", "Options"), rows=asked),
            *(Text(text=note) for note in plan.notes[:_MOST_ROWS]),
            Code("As TOML", plan.to_toml()),
        ],
    )


def _power(result: Any) -> View:
    head, *rows = result.cells()
    table = Table(title="What the rows can show", head=head, rows=tuple(rows))
    return View(f"Power: {len(result):,} comparison{'' if len(result) == 1 else 's'}", [table])


def _comparison(found: Any) -> View:
    head, *rows = found.cells()
    table = Table(
        title=f"{found.names[0]} and {found.names[1]} on the same people",
        head=head,
        rows=tuple((*row[:-1], change.verdict) for row, change in zip(rows, found.changes, strict=True)),
    )
    first = found.changes[:_MOST_ROWS]
    reasons = Folded("Reasons", [(f"{c.metric}, {compared(c.groups)}", [Text(text=c.reason)]) for c in first])
    tally = Counter(change.verdict for change in found.changes)
    return View(f"{len(found):,} changes at error rate {found.alpha:g}", [table, reasons], list(tally.items()))


def _mitigation(result: Any) -> View:
    tried = tuple((c.label, c.performance, result.fate(c), result.why(c)) for c in result.candidates)
    head = ("Candidate", str(result.settings["performance"]), "Fate", "Why")
    notes = [Text(text=note) for note in result.notes]
    return View(
        f"Certified: {result.chosen}" if result.chosen else "No model was certified",
        [
            Text(text=result.certificate.reason),
            Table(title="What was tried", head=head, rows=tried),
            *([Folded("Notes", [("What a reader should know", _first(notes))])] if notes else []),
        ],
        [(result.verdict, 0)],
    )


def _tally(found: Findings) -> list[tuple[StrEnum, int]]:
    tally = Counter(f.verdict for f in found)
    return [(verdict, tally[verdict]) for verdict in Verdict if tally[verdict]]


def _first(blocks: Sequence[Block]) -> list[Block]:
    left_out = len(blocks) - _MOST_ROWS
    more = [Text(text=f"{left_out:,} more are not shown.")] if left_out > 0 else []
    return [*blocks[:_MOST_ROWS], *more]


def _listed(values: Sequence[str]) -> str:
    return " or ".join(f"`{value}`" for value in values[:3]) + (" or others" if len(values) > 3 else "") or "nothing"


_VIEWS: Mapping[str, Callable[[Any], View]] = {
    "AuditRun": _run,
    "Findings": _findings,
    "Finding": _finding,
    "AuditData": _data,
    "Plan": _plan,
    "PowerResult": _power,
    "Comparison": _comparison,
    "MitigationResult": _mitigation,
}


def _numeric(table: Table) -> list[bool]:
    """Say which columns stand to the right: those that hold nothing but numbers."""
    columns = [[row[j] for row in table.rows] for j in range(len(table.head))]
    return [all(value is None or isinstance(value, int | float) for value in column) for column in columns]


def _cut(text: str, longest: int = _LONGEST) -> str:
    """Shorten a text of strangers, and take control characters out of it; line ends of our own stay."""
    kept = "\n".join(printable(line) for line in text.split("\n"))
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"


@cache
def _style() -> str:
    """Return the style: the report's colours, in the theme that the notebook says or the reader prefers."""
    values = {theme: " ".join(f"{name}: {value};" for name, value in palette(theme).items()) for theme in THEMES}
    own = files("evenhand.report").joinpath("page", "notebook.css").read_text(encoding="utf-8")
    return (
        f".evenhand {{ color-scheme: light dark; {values['light']} }}\n"
        f"@media (prefers-color-scheme: dark) {{ .evenhand {{ {values['dark']} }} }}\n"
        + "".join(f"{place} {{ color-scheme: {theme}; {values[theme]} }}\n" for theme, place in _BY_HOST.items())
        + own
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals.update(
        shown=lambda value: shown(value) if not isinstance(value, StrEnum) else str(value).replace("_", " "),
        shown_p=shown_p,
        compared=compared,
        coded=coded,
        cut=_cut,
        numeric=_numeric,
        look=lambda word: _LOOKS.get(str(word), str(word)),
        mark=lambda word: _MARKS.get(_LOOKS.get(str(word), str(word)), ""),
        is_verdict=lambda value: isinstance(value, StrEnum),
        is_text=lambda item: isinstance(item, Text),
        is_table=lambda item: isinstance(item, Table),
        is_code=lambda item: isinstance(item, Code),
        is_chart=lambda item: isinstance(item, Dots),
    )
    text = files("evenhand.report").joinpath("page", "notebook.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(text)
