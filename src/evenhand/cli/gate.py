"""``--fail-on``: which findings break a build, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.audits.group.samples import metrics_for
from evenhand.audits.margin import metric_of
from evenhand.audits.options import options_of
from evenhand.audits.registry import AUDITS
from evenhand.audits.scan.defaults import searched_by_default
from evenhand.errors import UsageError, near_matches
from evenhand.intake import AuditData
from evenhand.metrics import METRICS, default_metrics
from evenhand.plan import Plan
from evenhand.report.document import compared
from evenhand.results import AuditRun, Finding, Verdict

_KNOWN = tuple(dict.fromkeys([*METRICS, *(measure for row in AUDITS.values() for measure in row.measures)]))
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Gate:
    """One ``--fail-on``."""

    word: str  # as the user wrote it
    audit: str  # only findings of this audit; empty for all
    measure: str  # only findings of this metric or measure; empty for all
    verdict: Verdict  # the verdict that breaks the build

    def covers(self, finding: Finding) -> bool:
        """Say whether a finding is one this gate looks at: ``fnr`` also covers its ratio, global and feature forms."""
        if self.audit and finding.audit != self.audit:
            return False
        own = finding.measure
        plain = metric_of(own).removesuffix("_correlation")
        if self.measure and plain in METRICS and plain != self.measure:
            return False  # `aod_abs` is a metric of its own and no form of `aod`
        return not self.measure or own == self.measure or own.startswith((f"{self.measure}_", f"{self.measure}:"))

    def met_by(self, finding: Finding) -> bool:
        """Say whether a finding breaks the build."""
        return finding.verdict is self.verdict and self.covers(finding)


def parse_gates(words: Sequence[str]) -> list[Gate]:
    """Read ``VERDICT``, ``AUDIT:VERDICT``, ``METRIC:VERDICT`` or ``AUDIT:METRIC:VERDICT``.

    Parameters
    ----------
    words : sequence of str
        As on the command line.

    Returns
    -------
    list of Gate

    Examples
    --------
    >>> parse_gates(["group:fnr:disparity"])[0].measure
    'fnr'
    """
    gates = []
    for word in words:
        *where, verdict = word.strip().split(":")
        if verdict not in set(Verdict):
            hint = near_matches(verdict, Verdict)
            raise UsageError(f"`--fail-on {word}`: `{verdict}` is not a verdict.{hint}")
        audit = where[0] if where and where[0] in AUDITS else ""
        rest = where[1:] if audit else where
        measure = ":".join(rest)
        known = _KNOWN if audit else (*AUDITS, *_KNOWN)
        if rest and rest[0] not in known:
            raise UsageError(f"`--fail-on {word}`: `{rest[0]}` is not a known metric{'' if audit else ' or audit'}."
                             f"{near_matches(rest[0], known)}")  # fmt: skip
        gates.append(Gate(word, audit, measure, Verdict(verdict)))
    return gates


def check_gates(gates: Sequence[Gate], plan: Plan, data: AuditData) -> None:
    """Refuse a gate on an audit or a metric that is not audited, before any work is done.

    Parameters
    ----------
    gates : sequence of Gate
        From `parse_gates`.
    plan : Plan
        What will run.
    data : AuditData
        On what.

    Examples
    --------
    >>> import evenhand as eh
    >>> check_gates(parse_gates(["group:disparity"]), eh.Plan(), eh.datasets.planted(rows=100, rng=0))
    """
    for gate in gates:
        if gate.audit and gate.audit not in plan.audits:
            ran = ", ".join(f"`{name}`" for name in plan.audits)
            raise UsageError(f"`--fail-on {gate.word}`: the audit `{gate.audit}` is not run, only {ran}.")
        if not gate.measure:
            continue
        looked = [gate.audit] if gate.audit else plan.audits
        seen = [measure for name in looked for measure in _measures(name, plan, data)]
        own = gate.measure.partition(":")[0]
        if own not in seen:
            raise UsageError(
                f"`--fail-on {gate.word}`: `{own}` is not audited, so it could never be met."
                f"{near_matches(own, dict.fromkeys(seen))}"
            )


def _measures(audit: str, plan: Plan, data: AuditData) -> Sequence[str]:
    row, asked = AUDITS[audit], plan.sections[audit].get("metrics")
    if row.measures:
        declared = options_of(row.options).get("measure")
        one = declared and plan.sections[audit].get("measure", declared.default)
        if isinstance(one, str):
            return [one]
        requested = {h.measure for h in row.hypotheses if h.on_request}
        wanted = plan.sections[audit].get("measures", ())
        return [m for m in row.measures if m not in requested or m.partition("_")[0] in wanted]
    chosen = metrics_for(data, asked)
    if asked is None and data.decision is None and data.score is None:  # the model decides, and then these are known
        chosen = default_metrics(outcome_kind=data.outcome_kind, has_decision=True, has_score=True)
    if asked is None and row.joint:
        chosen = searched_by_default(chosen)
    return [m.name for m in chosen]


def met(gates: Sequence[Gate], run: AuditRun) -> list[str]:
    """Say which gates a run met, one sentence each; a gate that looks at no finding of the run is an error.

    It is asked after the results are written, so that they are kept.

    Parameters
    ----------
    gates : sequence of Gate
        From `parse_gates`.
    run : AuditRun
        What was found.

    Returns
    -------
    list of str
    """
    sentences = []
    for gate in gates:
        covered = [f for f in run.findings if gate.covers(f)]
        if not covered:
            seen = dict.fromkeys([f.audit for f in run.findings] + [f.measure for f in run.findings])
            raise UsageError(
                f"`--fail-on {gate.word}` looks at no finding of this run, so it could never be met. "
                f"Found: {', '.join(f'`{s}`' for s in list(seen)[:12])}."
            )
        hit = [f for f in covered if gate.met_by(f)]
        if hit:
            names = [f"{f.audit} {f.measure} ({compared(f.groups)})" for f in hit]
            more = f" and {len(hit) - _SHOWN} more" if len(hit) > _SHOWN else ""
            number = "1 finding" if len(hit) == 1 else f"{len(hit)} findings"
            sentences.append(f"`--fail-on {gate.word}` is met by {number}: {'; '.join(names[:_SHOWN])}{more}.")
    return sentences
