"""What the rows can show, said before the audit."""

from __future__ import annotations

from typing import Any

from evenhand.intake import AuditData
from evenhand.plan import Plan
from evenhand.summaries import group_sizes


def preview_of(plan: Plan, data: AuditData) -> dict[str, Any]:
    """Return as plain data what a person should know before the audit runs."""
    return {
        "rows_in": data.rows.rows_in,
        "rows_used": data.rows.rows_used,
        "dropped": dict(data.rows.dropped),
        "notes": [*data.notes, *plan.notes],
        "groups": {a.name: dict(zip(a.labels, map(int, group_sizes(data, a)), strict=True)) for a in data.attributes},
        "audits": list(plan.audits),
    }
