"""A scan of the built-in census data: the example and the picture of ``docs/audits/scan.md``.

``python evidence/scan_example.py`` writes ``evidence/scan_example.json`` and ``docs/images/scan.svg``.
"""

from __future__ import annotations

import json
from pathlib import Path

from drawings import figure

import evenhand as eh
from evenhand.report.sections.scan import blocks

ROOT = Path(__file__).resolve().parent.parent


def draw(result: eh.AuditResult, path: Path) -> None:
    """Draw the ranked dot plot as the report draws it, in the colours of a light page."""
    path.write_text(figure(blocks(result), ""))


def main() -> None:
    """Search, keep what was found, draw the picture."""
    data = eh.datasets.load("adult")
    result = eh.audit_scan(data, metrics=["fnr"], attributes=["sex", "race", "age", "hours_per_week"], rng=0)
    stored = json.dumps(result.to_dict(), indent=1)
    (ROOT / "evidence" / "scan_example.json").write_text(stored + "\n")
    draw(result, ROOT / "docs" / "images" / "scan.svg")


if __name__ == "__main__":
    main()
