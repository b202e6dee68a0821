"""The process that reads rows and runs audits: ``python -m evenhand.app.worker audit|preview FOLDER``.

It reads ``request.json`` in its folder, writes lines to ``progress.txt`` while it works, and at the end
``outcome.json``, after everything else. It ends when its standard input does, which the server holds open.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evenhand.app.job_folder import LOG, OUTCOME, PROGRESS, REQUEST
from evenhand.app.preview import preview_of
from evenhand.app.workbook import workbook
from evenhand.audits.registry import AUDITS
from evenhand.errors import EvenhandError, UsageError
from evenhand.files import write_all, written_json
from evenhand.intake import AuditData, read
from evenhand.models import audited_model, load_model
from evenhand.plan import Plan
from evenhand.report import compose
from evenhand.report.html import html_page
from evenhand.report.library import prepare
from evenhand.results import printable
from evenhand.run import decided, perform

Tell = Callable[[str], None]


def main(verb: str, folder: Path) -> None:
    """Do the work and write how it ended."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    try:
        # What a reader should know is in the notes and in the findings.
        with warnings.catch_warnings(action="ignore"):
            {"audit": _audit, "preview": _preview}[verb](folder, request, _teller(folder / PROGRESS))
        word, sentence = "finished", ""
    except EvenhandError as error:
        word, sentence = "failed", str(error)
    except MemoryError:
        word, sentence = "failed", "There is not enough memory for this audit. Give fewer rows, groups or audits."
    except OSError as error:
        word, sentence = "failed", f"A file could not be read or written: {error.strerror or error}."
    except Exception:
        traceback.print_exc()
        word = "failed"
        sentence = (
            "Something went wrong that Evenhand does not know. It is a mistake of the program, not yours. What "
            f"happened stands in `{folder / LOG}`."
        )
    written_json({"word": word, "sentence": printable(_renamed(sentence, request))}, folder / OUTCOME)


def _renamed(sentence: str, request: Mapping[str, Any]) -> str:
    """Call files as a person does, not as the copies that are held of them are called."""
    named = {request["source"]: request["file"], request["model"]: request["plan"]["data"].get("model")}
    for path, name in named.items():
        if path is not None and Path(path).name != name:
            sentence = sentence.replace(path, name).replace(Path(path).name, name)
    return sentence


def _end_with_server() -> None:
    """End this process when the server is gone: nobody would see its answer or could cancel it."""
    while os.read(0, 1):
        pass
    os._exit(1)


def _teller(path: Path) -> Tell:
    """Return what writes a line of progress, with the seconds since the beginning."""
    begin = time.monotonic()

    def tell(text: str) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{time.monotonic() - begin:.0f} s: {printable(text)}\n")

    return tell


def _opened(request: Mapping[str, Any], tell: Tell) -> tuple[AuditData, Any, Plan]:
    """Read the rows, load the model, and leave out the audits that these do not allow."""
    base = Plan.from_dict(request["plan"])
    model = None
    if request["model"] is not None:
        tell("loading the model")
        model = load_model(request["model"], trust_import=False)
    tell("reading the rows")
    options = {key: value for key, value in base.data.items() if key != "model"}
    data = read(request["source"], **options, progress=tell)
    allowed = Plan.default(data, model, base=base)
    chosen = tuple(name for name in allowed.audits if name in request["audits"])
    if not chosen:
        why = "; ".join(
            f"the {name} audit {AUDITS[name].lacks(data, model, base.sections[name])}" for name in request["audits"]
        )
        raise UsageError(f"None of the audits that you ticked can run: {why}. Tick others, or give what is missing.")
    return data, model, allowed.changed(audits=chosen)


def _audit(folder: Path, request: Mapping[str, Any], tell: Tell) -> None:
    prepare()
    data, model, plan = _opened(request, tell)
    run = perform(plan, data, model, progress=tell)
    tell("writing the report")
    page = compose(run, title=request["title"])
    write_all(
        {
            folder / "plan.toml": Plan.from_dict(run.plan).to_toml(),
            folder / "findings.json": run.to_json(),
            folder / "report.html": html_page(page),
            folder / "findings.xlsx": workbook(page),
        }
    )
    summary = {
        "headline": page.headline,
        "tally": {str(verdict): number for verdict, number in page.tally.items()},
        "opening": [{"kind": text.kind, "text": text.text} for text in page.opening],
        "rows": run.data["rows_used"],
    }
    written_json(summary, folder / "summary.json")


def _preview(folder: Path, request: Mapping[str, Any], tell: Tell) -> None:
    data, model, plan = _opened(request, tell)
    if model is not None and data.features:
        tell("asking the model for its decisions")
        data, _ = decided(data, audited_model(model, data))
    tell("working out what these rows can show")
    written_json(preview_of(plan, data), folder / "preview.json")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
