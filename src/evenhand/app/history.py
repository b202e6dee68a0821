"""What the folder of runs holds: each run with what was asked, how far it is and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenhand.app.job_folder import REQUEST, stored
from evenhand.app.jobs import Jobs, State

# Files of a run that can be downloaded: what they are, and their media type.
DOWNLOADS = {
    "report.html": ("The report as a web page that works offline", "text/html"),
    "findings.xlsx": (
        "All findings as an Excel workbook",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    "findings.json": ("All findings with their evidence, for programs", "application/json"),
    "plan.toml": ("The plan, to run the same audit again", "application/toml"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One run of the folder."""

    name: str  # of its folder
    title: str
    file: str  # what the audited file is called
    begun: datetime
    draft: str  # where its choices were made
    state: State
    summary: Mapping[str, Any]  # headline, tally, opening and rows of a finished run, else empty

    @property
    def when(self) -> str:
        """When it was started, in this machine's time."""
        return f"{self.begun.astimezone():%Y-%m-%d %H:%M}"


def kept_run(folder: Path, jobs: Jobs) -> Kept:
    """Read what is known of a run; a folder that somebody has changed gives a run that says little."""
    request = stored(folder / REQUEST)
    state = jobs.state(folder)
    begun = datetime.strptime(folder.name[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    return Kept(
        name=folder.name,
        title=str(request.get("title", "Audit")),
        file=str(request.get("file", "")),
        begun=begun,
        draft=str(request.get("draft", "")),
        state=state,
        summary=stored(folder / "summary.json") if state.word == "finished" else {},
    )
