"""``--fail-on``: which findings break a build, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.audits.options import AUDITS
from evenhand.errors import UsageError, near_matches
from evenhand.metrics import METRICS
from evenhand.report.document import compared
from evenhand.results import AuditRun, Finding, Verdict

# What audits other than the group audit measure.
_MEASURES = (
    "equal_opportunity", "predictive_equality", "equalized_odds", "statistical_parity", "loss_ratio", "error_ratio",
    "sp", "fdr", "accuracy", "cal", "da", "ecd", "return_level",
)  # fmt: skip
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Gate:
    """One ``--fail-on``.

    Parameters
    ----------
    word : str
        As the user wrote it.
    audit : str
        Only findings of this audit; empty for all.
    measure : str
        Only findings of this metric or measure; empty for all.
    verdict : Verdict
        The verdict that breaks the build.
    """

    word: str
    audit: str
    measure: str
    verdict: Verdict

    def covers(self, finding: Finding) -> bool:
        """Say whether a finding is one this gate looks at: ``fnr`` also covers its ratio, global and feature forms."""
        if self.audit and finding.audit != self.audit:
            return False
        own = finding.measure
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
        known = [*METRICS, *_MEASURES] if audit else [*AUDITS, *METRICS, *_MEASURES]
        if rest and rest[0] not in known:
            raise UsageError(f"`--fail-on {word}`: `{rest[0]}` is not a known metric{'' if audit else ' or audit'}."
                             f"{near_matches(rest[0], known)}")  # fmt: skip
        gates.append(Gate(word, audit, measure, Verdict(verdict)))
    return gates


def check_gates(gates: Sequence[Gate], audits: Sequence[str]) -> None:
    """Refuse a gate on an audit that does not run, before any does.

    Parameters
    ----------
    gates : sequence of Gate
        From `parse_gates`.
    audits : sequence of str
        Those of the plan.

    Examples
    --------
    >>> check_gates(parse_gates(["group:disparity"]), ["group"])
    """
    for gate in gates:
        if gate.audit and gate.audit not in audits:
            ran = ", ".join(f"`{name}`" for name in audits)
            raise UsageError(f"`--fail-on {gate.word}`: the audit `{gate.audit}` is not run, only {ran}.")


def met(gates: Sequence[Gate], run: AuditRun) -> list[str]:
    """Say which gates a run met, one sentence each; refuse a gate that looks at no finding of the run.

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
    told = []
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
            told.append(f"`--fail-on {gate.word}` is met by {number}: {'; '.join(names[:_SHOWN])}{more}.")
    return told
