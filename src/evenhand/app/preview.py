"""What the rows can show, said before the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.audits.reference import WORDS
from evenhand.errors import EvenhandError
from evenhand.intake import AuditData
from evenhand.plan import Plan
from evenhand.sizing import Prospects, prospects
from evenhand.summaries import group_sizes


def preview_of(plan: Plan, data: AuditData) -> dict[str, Any]:
    """Return as plain data what a person should know before the audit runs."""
    return {
        "rows_in": data.rows.rows_in,
        "rows_used": data.rows.rows_used,
        "dropped": dict(data.rows.dropped),
        "notes": list(data.notes),
        "left_out": list(plan.notes),
        "groups": {a.name: dict(zip(a.labels, map(int, group_sizes(data, a)), strict=True)) for a in data.attributes},
        "audits": list(plan.audits),
        **_ahead(plan, data),
    }


def _ahead(plan: Plan, data: AuditData) -> dict[str, Any]:
    """Say which differences between groups would probably be found; nothing where groups are not compared."""
    if "group" not in plan.audits:
        return {"sentences": [], "measures": []}
    named = plan.reference if isinstance(plan.reference, Mapping) else {}
    labels = {name: label for name, label in named.items() if label not in WORDS}
    try:
        ahead = prospects(
            data,
            plan.group.get("metrics"),
            margin=plan.group.get("margin"),
            alpha=plan.alpha,
            reference=labels or None,
        )
    except EvenhandError as error:
        return {"sentences": [f"What these rows can show could not be worked out. {error}"], "measures": []}
    sentences = list(ahead.sentences)
    if labels != plan.reference and plan.reference:
        sentences.append("The sizes below are for a comparison with the largest group where no other one is named.")
    return {"sentences": sentences, "measures": _by_measure(ahead)}


def _by_measure(ahead: Prospects) -> list[dict[str, Any]]:
    """Return the comparisons under the measure that they are about."""
    measures: dict[str, dict[str, Any]] = {}
    for one, cells in zip(ahead.comparisons, ahead.cells()[1:], strict=True):
        measure = measures.setdefault(one.measure, {"measure": one.measure, "says": one.says, "rows": []})
        found, *within = cells[5:]
        measure["rows"].append(
            {
                "group": one.group,
                "reference": one.reference,
                "people": one.people,
                "found": found,
                "within": within[0] if within else None,
                "sentence": one.sentence,
            }
        )
    return list(measures.values())
