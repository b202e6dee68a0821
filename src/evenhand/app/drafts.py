"""Audits that are being prepared: a file, what its columns mean, and what has been chosen so far."""

from __future__ import annotations

import secrets
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.app.uploads import Form, Upload
from evenhand.intake.roles import Proposal


@dataclass(slots=True, kw_only=True)
class Draft:
    """One audit that is being prepared, in one tab of a browser."""

    name: str  # random, in its address
    folder: Path  # private, removed with the draft or with the server
    source: Path  # where the rows are
    shown: str  # what the file is called
    uploaded: bool  # whether the file is a copy held by the server
    proposal: Proposal  # what its columns seem to be
    answers: Form = field(default_factory=Form)  # what was last filled in
    model: Upload | None = None  # the model file, where one was given
    checked: bool = False  # whether the rows have been looked at with these answers


class Drafts:
    """All audits that are being prepared, each known by a name that cannot be guessed."""

    def __init__(self, private: Path) -> None:
        self._private = private
        self._drafts: dict[str, Draft] = {}
        self._lock = threading.Lock()

    def folder(self) -> Path:
        """Make a private folder for a new draft."""
        folder = self._private / secrets.token_hex(16)
        folder.mkdir(mode=0o700)
        return folder

    def add(self, draft: Draft) -> None:
        """Keep a draft."""
        with self._lock:
            self._drafts[draft.name] = draft

    def get(self, name: str) -> Draft | None:
        """Return a draft by its name, None where there is none."""
        return self._drafts.get(name)

    def remove(self, name: str) -> Draft | None:
        """Forget a draft and remove its files."""
        with self._lock:
            draft = self._drafts.pop(name, None)
        if draft is not None:
            shutil.rmtree(draft.folder, ignore_errors=True)
        return draft
