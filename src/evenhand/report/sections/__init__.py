"""One file per audit, of the audit's name: from its result to the blocks of its section."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from evenhand.report.document import Block
from evenhand.results import AuditResult


def section_blocks(result: AuditResult) -> list[Block]:
    """Return what an audit's section shows beside its findings; nothing where the audit has no file here."""
    name = f"{__name__}.{result.audit}"
    if find_spec(name) is None:
        return []
    blocks: list[Block] = import_module(name).blocks(result)
    return blocks
