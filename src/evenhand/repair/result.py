"""What a mitigation ends with: the certified model or none, the certificate, and everything that was tried."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import MissingDependencyError
from evenhand.files import write_all, write_atomic
from evenhand.repair.candidates import Candidate
from evenhand.repair.certificate import Certificate, amount
from evenhand.repair.changes import PairedChange, SideBySide
from evenhand.results import AuditRun, Displayed, Verdict, printable

SCHEMA = "evenhand/mitigation/1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MitigationResult(Displayed):
    """The answer of `evenhand.mitigate`.

    Parameters
    ----------
    model : object or None
        The certified model, fitted; None when none is certified.
    certificate : Certificate
        What was shown and how.
    candidates : tuple of Candidate
        Everything that was tried, with what it reached on the part to choose on.
    chosen : str
        Label of the certified candidate; empty when there is none.
    original : object
        The plain learner, fitted on the same people.
    disparities, performance : tuple of PairedChange
        What the certified model changes on the people to certify on, between groups and in each group.
    before, after : AuditRun or None
        All audits of the plain learner and of the certified model on these people.
    compared : tuple of SideBySide
        Their findings beside each other.
    settings : mapping
        What was asked, with the seed.
    rows : mapping of str to int
        People in each part.
    versions : mapping of str to str
        Of the packages.
    notes : tuple of str
        What a reader should know.
    """

    model: Any
    certificate: Certificate
    candidates: tuple[Candidate, ...]
    chosen: str
    original: Any
    disparities: tuple[PairedChange, ...]
    performance: tuple[PairedChange, ...]
    before: AuditRun | None
    after: AuditRun | None
    compared: tuple[SideBySide, ...]
    settings: Mapping[str, Any]
    rows: Mapping[str, int]
    versions: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """`equivalent` when a model is certified, `inconclusive` when none is."""
        return self.certificate.verdict

    def fate(self, candidate: Candidate) -> str:
        """Return what became of a candidate: chosen, certified, not certified or not tested."""
        if candidate.label == self.chosen:
            return "chosen"
        tested = {step.candidate: step.certified for step in self.certificate.steps}
        if candidate.label not in tested:
            return "not tested"
        return "certified" if tested[candidate.label] else "not certified"

    def why(self, candidate: Candidate) -> str:
        """Say why a candidate was taken or left."""
        if candidate.reason:
            return candidate.reason
        fate = self.fate(candidate)
        if fate != "not tested":
            pvalue = {step.candidate: step.pvalue for step in self.certificate.steps}[candidate.label]
            return f"{fate} (p {pvalue:.3g})"
        if candidate.place is None:
            return "not tested: another one looks safer and performs at least as well"
        return "not tested: testing stopped before its turn"

    def __str__(self) -> str:
        """Return the answer in words and a table of what was tried."""
        lines = [self.certificate.reason, ""]
        metric = self.settings["performance"]
        wide = max(len(printable(c.label)) for c in self.candidates)
        lines.append(f"{'candidate':<{wide}} {metric:>18} {'largest difference':>24}  result")
        for c in sorted(self.candidates, key=lambda c: (c.place is None, c.place)):
            worst = "" if c.worst is None else f"{amount(c.worst.finding)} {c.worst.finding.measure}"
            shown = "" if c.performance != c.performance else f"{c.performance:.4f}"
            lines.append(f"{printable(c.label):<{wide}} {shown:>18} {worst:>24}  {printable(self.why(c))}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the models as plain data."""
        return {
            "schema": SCHEMA,
            "chosen": self.chosen,
            "certificate": self.certificate.to_dict(),
            "candidates": [c.to_dict() for c in self.candidates],
            "disparities": [c.to_dict() for c in self.disparities],
            "performance": [c.to_dict() for c in self.performance],
            "settings": dict(self.settings),
            "rows": dict(self.rows),
            "versions": dict(self.versions),
            "notes": list(self.notes),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return, and write if a path is given, everything but the models as JSON."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"
        if path is not None:
            write_atomic(Path(path), text)
        return text

    def card(self) -> str:
        """Return the card of the model as Markdown: how it was made, its certificate, settings, seed and versions."""
        certificate, settings = self.certificate, self.settings
        title = "Repaired model" if self.model is not None else "No model was certified"
        margins = "; ".join(f"{metric}: {margin}" for metric, margin in certificate.margins.items())
        lines = [
            f"# {title}",
            "",
            printable(certificate.reason),
            "",
            "## How it was made",
            "",
            f"- Method: {printable(self.chosen) if self.chosen else 'none'}",
            f"- Learner: {printable(str(settings['learner']))}",
            f"- Outcome: {printable(str(settings['outcome']))}",
            f"- Features: {printable(', '.join(settings['features']))}",
            f"- People: {', '.join(f'{n:,} to {name} on' for name, n in self.rows.items())}",
            f"- Seed: {settings['seed']}",
            "",
            "## Certificate",
            "",
            f"- Verdict: {certificate.verdict}",
            f"- Groups: {printable(', '.join(certificate.attributes))}",
            f"- Margins: {margins}",
            f"- Error rate: {certificate.alpha:g}",
        ]
        for step in certificate.steps:
            word = "certified" if step.certified else "not shown to be inside the margin; testing stopped here"
            lines.append(f"- Tested: {printable(step.candidate)}, p {step.pvalue:.4g}, {word}")
        lines += [
            "",
            "The certificate is about the population that the file was drawn from. It says nothing about other "
            "metrics, other groups, or people who come later and differ from these.",
            "",
            "## Notes",
            "",
            *(f"- {printable(note)}" for note in self.notes),
            "",
            "## To make it again",
            "",
            "```json",
            json.dumps({"settings": dict(settings), "versions": dict(self.versions)}, indent=2, default=str),
            "```",
        ]
        return "\n".join(lines) + "\n"

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write ``mitigation.json`` and ``card.md`` and, when a model is certified, ``model.skops``.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there. A model of an earlier run does not stay beside an answer that certifies none.

        Returns
        -------
        tuple of Path
            What was written.
        """
        place = Path(folder)
        texts: dict[Path, str] = {place / "mitigation.json": self.to_json(), place / "card.md": self.card()}
        model = place / "model.skops"
        model.unlink(missing_ok=True)
        write_all(texts)
        if self.model is None:
            return tuple(texts)
        try:
            import skops.io
        except ImportError as error:
            raise MissingDependencyError("Saving a model needs skops: pip install evenhand[mitigation].") from error
        skops.io.dump(self.model, model)
        return (*texts, model)
