"""The files by which the server and a process that works for it speak with each other, in a folder of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REQUEST = "request.json"  # what is to be done; written by the server
PROGRESS = "progress.txt"  # lines about how far it is; written by the process
OUTCOME = "outcome.json"  # how it ended; written last, by the process, or by the server that ended it
LOG = "worker.log"  # what the process said on its standard error


def stored(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file, nothing where there is none or it is not whole."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
