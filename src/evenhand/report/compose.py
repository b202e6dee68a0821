"""From an `AuditRun` to a `Document`: the one place that decides what a report says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand.audits.registry import AUDITS
from evenhand.report import words
from evenhand.report.bibliography import SOURCES
from evenhand.report.detail import Detail, first_findings
from evenhand.report.document import Block, Cell, Document, Entry, Section, Table, Text, shown
from evenhand.report.evidence import evidence_blocks, has_null
from evenhand.report.opening import opening, rates_chapter
from evenhand.report.sections import section_blocks
from evenhand.results import AuditResult, AuditRun, Evidence, Finding, Verdict, printable

_MOST_NULLS = 6  # drawn null distributions: each costs about 20 kB of the file
_MOST_ANSWERS = 2  # sentences on an audit's card; twice as many when it is alone
_SMALL = 50  # a group with fewer rows is pointed out


def compose(run: AuditRun, *, title: str | None = None) -> Document:
    """Decide what a report on a run says; once, for all that is made of it.

    Parameters
    ----------
    run : AuditRun
        What was found.
    title : str, optional
        Of the report; by default "Audit report" with the run's label.

    Returns
    -------
    Document
        With the evidence of the findings that come first, and all charts and rows; see `shorten`.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=4000, fnr=(0.1, 0.4), rng=0), rng=0)
    >>> compose(run).headline[67:]
    'more often than such people with `group=A`, by 28 points.'
    """
    run = AuditRun.from_dict(_printable(run.to_dict()))
    tally = Counter(f.verdict for f in run.findings)
    named = str(run.plan.get("correction"))
    if named == "gatekeeping" and len(run.results) == 1:
        named = "holm"  # one audit has no gate
    correction, by = words.CORRECTIONS.get(named, (named, ()))
    drawn, explained = _drawn(run), set(first_findings(run.findings, Detail().evidence))
    answers = _MOST_ANSWERS * (1 + (len(run.results) == 1))
    sections: list[Section] = []
    for result in run.results:
        number = sum(len(section.entries) for section in sections)
        sections.append(_section(_without(result, run.data["notes"]), number, drawn, explained, answers))
    keys = list(dict.fromkeys([*(key for s in sections for key in s.sources), *by]))
    if any(f.margin is not None for f in run.findings):
        keys.append("schuirmann1987")
    first, rates = opening(run), rates_chapter(run)
    return Document(
        title=title or ("Audit report" if run.label is None else f"Audit report: {run.label}"),
        headline=first.headline,
        opening=first.texts,
        summary=_summary(run, correction),
        tally={v: tally[v] for v in Verdict},
        sections=tuple(sections),
        data=_data(run.data),
        tested=words.tested(run),
        facts=_facts(run),
        references=tuple((key, str(SOURCES[key]), SOURCES[key].address) for key in keys if key in SOURCES),
        glossary=words.glossary(run),
        chapters=() if rates is None else (rates,),
    )


def _printable(value: Any) -> Any:
    """Replace control characters in every text: they have no place in a page and break its parser."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value


def _summary(run: AuditRun, correction: str) -> tuple[Text, ...]:
    alpha = float(run.plan.get("alpha", 0.05))
    rate = "an expected share of false findings" if run.plan.get("correction") == "bh" else "an error rate"
    texts = [
        Text(
            text=f"All findings share {rate} of {alpha:.3g}: p-values are adjusted over all of them by {correction}."
            if run.plan.get("correction") != "none"
            else f"Each finding alone has an error rate of {alpha:.3g}; nothing is corrected for their number."
        ),
        Text(text=words.HIERARCHY if run.plan.get("correction") == "gatekeeping" and len(run.results) > 1 else ""),
        Text(
            text="A disparity says that groups, or comparable people, are treated differently beyond chance. "
            "It does not say why, and it does not say whether a law is broken.",
            kind="note",
        ),
    ]
    return tuple(text for text in texts if text.text)


def _drawn(run: AuditRun) -> set[int]:
    """Choose the findings whose null distribution is drawn: the smallest adjusted p-values first."""
    pairs = [(f, e) for r in run.results for f, e in zip(r.findings, r.evidence, strict=True)]
    able = [j for j, (f, e) in enumerate(pairs) if has_null(f, e)]
    able.sort(key=lambda j: (run.findings[j].pvalue_adjusted, j))
    return set(able[:_MOST_NULLS])


def _without(result: AuditResult, said: Sequence[str]) -> AuditResult:
    """Leave out the notes that the report gives once, with the data."""
    return replace(result, notes=tuple(note for note in result.notes if note not in said))


def _section(result: AuditResult, start: int, drawn: set[int], explained: set[int], answers: int) -> Section:
    entries = tuple(
        Entry(
            key=f"finding-{start + j + 1}",
            finding=f,
            blocks=evidence_blocks(f, e, drawn=start + j in drawn) if start + j in explained else (),
            interval=e.verdict_interval,
            inside=math.nan if e.equivalence_pvalue_adjusted is None else e.equivalence_pvalue_adjusted,
        )
        for j, (f, e) in enumerate(zip(result.findings, result.evidence, strict=True))
    )
    notes: list[Block] = [Text(text=note, kind="note") for note in result.notes]
    tally = Counter(f.verdict for f in result.findings)
    return Section(
        audit=result.audit,
        question=AUDITS[result.audit].question,
        tally={v: tally[v] for v in Verdict},
        answers=_answers(result, answers),
        blocks=(*notes, *section_blocks(result)),
        entries=entries,
        method=AUDITS[result.audit].method,
        sources=_sources(result),
    )


def _sources(result: AuditResult) -> tuple[str, ...]:
    """Return the works to cite: the audit's, and those of what was asked on request."""
    audit = AUDITS[result.audit]
    asked = [h for h in audit.hypotheses if any(h.fits(finding.measure) for finding in result.findings)]
    return (*audit.sources, *(key for h in asked for key in h.sources))


def _answers(result: AuditResult, most: int) -> tuple[str, ...]:
    """Return the main findings: those that decide, the surest first; otherwise why nothing is decided."""
    pairs = list(zip(result.findings, result.evidence, strict=True))
    for verdict in (Verdict.DISPARITY, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, Verdict.NOT_COMPUTABLE):
        chosen = [p for p in pairs if p[0].verdict is verdict]
        if not chosen:
            continue
        if not any(f.verdict is Verdict.DISPARITY for f, _ in pairs):
            # Features that carry a negligible part of a gap answer nothing while the gap itself is not shown.
            chosen = [p for p in pairs if result.audit == "proxy" and ":" not in p[0].measure] or chosen
        # Of one measure the surest; the measures in the order of the audit.
        chosen.sort(key=lambda p: p[0].pvalue_adjusted if p[0].pvalue_adjusted == p[0].pvalue_adjusted else 2.0)
        seen: dict[str, tuple[Finding, Evidence]] = {}
        for pair in chosen:
            name, part, _ = pair[0].measure.removesuffix("_global").partition(":")
            seen.setdefault(name + part, pair)
        picked = list(seen.values())[:most]
        decide = (Verdict.DISPARITY, Verdict.EQUIVALENT)
        return tuple((e.fact or f.reason) if f.verdict in decide else f.reason for f, e in picked)
    return ()


def _data(data: Mapping[str, Any]) -> tuple[Block, ...]:
    rows: list[tuple[Cell, ...]] = [("Rows in the file", data["rows_in"]), ("Rows used", data["rows_used"])]
    rows += [(f"Dropped: {reason}", n) for reason, n in data["rows_dropped"].items()]
    rows += [(f"Column for {role}", str(name)) for role, name in data["columns"].items()]
    blocks: list[Block] = [Table(title="Rows and columns", head=("What", "Value"), rows=tuple(rows))]
    for name, sizes in data["groups"].items():
        total = sum(sizes.values()) or 1
        few = any(n < _SMALL for n in sizes.values())
        blocks.append(
            Table(
                title=f"Groups of {name}",
                head=("Group", "Rows", "Share", "Note")[: 3 + few],
                rows=tuple(
                    (label, n, f"{n / total:.1%}", "few rows: wide intervals, little power" if n < _SMALL else "")[
                        : 3 + few
                    ]
                    for label, n in sizes.items()
                ),
                folded=len(sizes) > 25,
            )
        )
    blocks += [Text(text=note, kind="note") for note in data["notes"]]
    return tuple(blocks)


def _facts(run: AuditRun) -> Table:
    rows: list[tuple[Cell, ...]] = [
        ("Error rate", float(run.plan.get("alpha", 0.05))),
        ("Correction", str(run.plan.get("correction"))),
        ("Audits", ", ".join(str(a) for a in run.plan.get("audits", ()))),
        ("Seed", str(run.seed)),
        ("Fingerprint of the data", str(run.data.get("fingerprint"))),
    ]
    rows += [("Label", run.label)] if run.label is not None else []
    named = [("Model", run.model)] if run.model is not None else []
    for what, file in (*named, *(("Input", file) for file in run.input)):
        rows.append((f"{what} {file['name']}", f"sha256 {file['sha256']}" if file["sha256"] else file["reason"]))
    if run.plan.get("hash"):
        rows.append(("Fingerprint of the plan", str(run.plan["hash"])))
    rows += [(f"Version of {name}", version) for name, version in run.versions.items()]
    for result in run.results:
        given = [f"{k} = {_plainly(v)}" for k, v in result.options.items() if v not in (None, [], {}, "")]
        rows.append((f"Options of {result.audit}", "; ".join(given)))
    return Table(title="To repeat this run", head=("What", "Value"), rows=tuple(rows))


def _plainly(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {_plainly(v)}" for k, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_plainly(v) for v in value)
    return shown(value) if isinstance(value, float) else str(value)
