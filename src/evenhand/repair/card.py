"""The card that travels with a repaired model: how it was made, what is certified, how to make it again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evenhand.results import printable

if TYPE_CHECKING:
    from evenhand.repair.result import MitigationResult


def card_of(result: MitigationResult) -> str:
    """Write the card of a mitigation as Markdown."""
    certificate, settings = result.certificate, result.settings
    title = "Repaired model" if result.model is not None else "No model was certified"
    margins = "; ".join(f"{metric}: {margin}" for metric, margin in certificate.margins.items())
    lines = [
        f"# {title}",
        "",
        printable(certificate.reason),
        "",
        "## How it was made",
        "",
        f"- Method: {printable(result.chosen) if result.chosen else 'none'}",
        f"- Learner: {printable(str(settings['learner']))}",
        f"- Outcome: {printable(str(settings['outcome']))}",
        f"- Features: {printable(', '.join(settings['features']))}",
        f"- People: {', '.join(f'{n:,} to {name} on' for name, n in result.rows.items())}",
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
        *(f"- {printable(note)}" for note in result.notes),
        "",
        "## To make it again",
        "",
        "```json",
        json.dumps({"settings": dict(settings), "versions": dict(result.versions)}, indent=2, default=str),
        "```",
    ]
    return "\n".join(lines) + "\n"
