"""A run as SARIF 2.1.0, the format in which code hosts take the findings of any tool."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evenhand.audits.registry import AUDITS
from evenhand.files import written_json
from evenhand.report.document import compared
from evenhand.report.junit import Fails
from evenhand.results import AuditRun, Finding, Verdict, printable

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MOST = 5000  # code hosts show no more results of one run


def to_sarif(
    run: AuditRun, path: str | Path | None = None, *, place: str | Path | None = None, fails: Fails | None = None
) -> str:
    """Write a run as SARIF: a result for each finding that fails, and for each other disparity.

    Parameters
    ----------
    run : AuditRun
        What was found.
    path : str or Path, optional
        Where to write it, in one step.
    place : str or Path, optional
        The file that results point to, such as the plan or the table of decisions; a code host shows them there.
    fails : callable, optional
        Which findings are errors; by default those with the verdict `disparity`. A disparity that is none is a warning.

    Returns
    -------
    str

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=4000, fnr=(0.1, 0.4), rng=0), rng=0)
    >>> '"ruleId": "group/fnr"' in to_sarif(run)
    True
    """
    chosen = [f for f in run.findings if (fails is not None and fails(f)) or f.verdict is Verdict.DISPARITY]
    rules = list(dict.fromkeys(_rule_of(f) for f in chosen))
    content = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Evenhand",
                        "semanticVersion": version("evenhand"),
                        "rules": [_rule(name) for name in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    {
                        "ruleId": _rule_of(f),
                        "ruleIndex": rules.index(_rule_of(f)),
                        "level": "error" if fails is None or fails(f) else "warning",
                        "message": {"text": printable(f"{f.measure}, {compared(f.groups)}: {f.verdict}. {f.reason}")},
                        "locations": [] if place is None else [_location(place)],
                        "partialFingerprints": {"finding/v1": _fingerprint(f)},
                    }
                    for f in chosen[:_MOST]
                ],
            }
        ],
    }
    return written_json(content, path)


def _rule_of(finding: Finding) -> str:
    return printable(f"{finding.audit}/{finding.measure.partition(':')[0]}")


def _rule(name: str) -> dict[str, Any]:
    audit, _, measure = name.partition("/")
    question = AUDITS[audit].question if audit in AUDITS else f"The {audit} audit."
    return {
        "id": name,
        "shortDescription": {"text": f"Disparity in {measure}, shown by the {audit} audit"},
        "fullDescription": {"text": question},
        "properties": {"tags": ["fairness", audit]},
    }


def _location(place: str | Path) -> dict[str, Any]:
    path = Path(place)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}


def _fingerprint(finding: Finding) -> str:
    """Name a finding by what it is about, so that the next run's is taken for the same one."""
    text = "\x1f".join((finding.audit, finding.measure, *finding.groups))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
