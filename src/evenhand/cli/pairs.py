"""Words that hold a name and a value: ``COLUMN=VALUE``."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.errors import UsageError


def pairs(option: str, items: Sequence[str], form: str = "COLUMN=VALUE") -> dict[str, str]:
    """Split words at their first equals sign; `form` says in a message how they are written."""
    split: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"`{option} {item}` is not understood. Write `{option} {form}`.")
        split[key] = value
    return split
