"""Every address of the app, and what it answers."""

from __future__ import annotations

import shutil
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from evenhand.app.answers import Chosen, chosen
from evenhand.app.columns import columns_content
from evenhand.app.drafts import Draft, Drafts
from evenhand.app.folders import Folders
from evenhand.app.history import DOWNLOADS, Kept, kept_run
from evenhand.app.job_folder import stored
from evenhand.app.jobs import Jobs
from evenhand.app.pages import Pages, part, report_page, style
from evenhand.app.safety import Guard
from evenhand.app.uploads import MODELS, TABLES, Form, Upload, check_name, receive
from evenhand.audits.registry import AUDITS
from evenhand.change.runs import compare_runs, load_run
from evenhand.errors import EvenhandError, UsageError
from evenhand.intake.roles import propose_roles
from evenhand.report.change import compose_run_comparison
from evenhand.report.html import html_page

Answer = Callable[[Request], Awaitable[Response]]
_RECENT = 5  # runs on the first page


class Site:
    """The app: its pages, and what they need."""

    def __init__(self, folders: Folders, *, token: str, port: int, limit: int) -> None:
        self._folders, self._limit, self._base = folders, limit, f"/{token}"
        self._jobs, self._drafts, self._pages = Jobs(folders), Drafts(folders.private), Pages(self._base)
        self.application = Guard(self._starlette(), token=token, port=port)

    def _starlette(self) -> Starlette:
        get = [
            ("/", self._start),
            ("/runs", self._history),
            ("/runs/{run}", self._run),
            ("/runs/{run}/state", self._run_state),
            ("/runs/{run}/report", self._report),
            ("/runs/{run}/files/{file}", self._file),
            ("/compare", self._compare),
            ("/drafts/{draft}", self._columns),
            ("/drafts/{draft}/check", self._check),
            ("/drafts/{draft}/state", self._draft_state),
        ]
        post = [
            ("/files", self._take_file),
            ("/paths", self._take_path),
            ("/drafts/{draft}", self._take_answers),
            ("/drafts/{draft}/stop", self._stop),
            ("/drafts/{draft}/run", self._begin),
            ("/drafts/{draft}/remove", self._remove),
            ("/runs/{run}/cancel", self._cancel),
            ("/runs/{run}/delete", self._delete),
        ]
        routes = [Route(path, answer, methods=["GET"]) for path, answer in get]
        routes += [Route(path, answer, methods=["POST"]) for path, answer in post]
        kinds = {"style.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
        texts = {"style.css": style(), "app.js": part("app.js"), "icon.svg": part("icon.svg")}
        for name, kind in kinds.items():
            answer = PlainTextResponse(texts[name], media_type=kind)
            routes.append(Route(f"/{name}", partial(_same, answer)))
        problems = {EvenhandError: self._refused, HTTPException: self._no_page, Exception: self._unexpected}
        return Starlette(routes=routes, exception_handlers=problems, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """End all work and remove all uploads when the server ends."""
        yield
        self._jobs.close()
        self._folders.close()

    # Step 1: a file

    def _start(self, request: Request) -> Response:
        return self._start_page()

    def _start_page(self, problem: str = "", path: str = "", status: int = 200) -> Response:
        recent = [kept_run(folder, self._jobs) for folder in self._folders.runs()[:_RECENT]]
        return self._pages.page(
            "start", status=status, problem=problem, path=path, limit=self._limit, tables=",".join(TABLES),
            recent=recent, folder=str(self._folders.root),
        )  # fmt: skip

    async def _take_file(self, request: Request) -> Response:
        folder = self._drafts.folder()
        try:
            form = await receive(request.stream(), request.headers, folder, self._limit)
            if "file" not in form.files:
                raise UsageError("No file was chosen. Choose one, or name its path on this machine.")
            upload = form.files["file"]
            draft = await run_in_threadpool(self._draft, folder, upload.path, upload.name, True)
        except EvenhandError as error:
            shutil.rmtree(folder, ignore_errors=True)
            return self._start_page(str(error), status=422)
        return self._to(f"drafts/{draft.name}")

    async def _take_path(self, request: Request) -> Response:
        folder = self._drafts.folder()
        said = ""
        try:
            form = await receive(request.stream(), request.headers, folder, self._limit)
            said = form.text("path")
            path = _existing(said)
            check_name(path.name, TABLES)
            draft = await run_in_threadpool(self._draft, folder, path, path.name, False)
        except EvenhandError as error:
            shutil.rmtree(folder, ignore_errors=True)
            return self._start_page(str(error), said, status=422)
        return self._to(f"drafts/{draft.name}")

    def _draft(self, folder: Path, source: Path, shown: str, uploaded: bool) -> Draft:
        """Look at the columns of a file and keep it as an audit that is being prepared."""
        try:
            proposal = propose_roles(source)
        except EvenhandError as error:
            raise type(error)(str(error).replace(str(source), shown).replace(source.name, shown)) from error
        draft = Draft(name=folder.name, folder=folder, source=source, shown=shown, uploaded=uploaded, proposal=proposal)
        self._drafts.add(draft)
        return draft

    # Step 2: columns

    def _columns(self, request: Request) -> Response:
        draft = self._draft_of(request)
        state = self._jobs.state(draft.folder) if draft.checked else None
        problem = state.sentence if state is not None and state.word == "failed" else ""
        return self._columns_page(draft, problem)

    def _columns_page(self, draft: Draft, problem: str = "", status: int = 200) -> Response:
        return self._pages.page("columns", status=status, draft=draft, problem=problem, **columns_content(draft))

    async def _take_answers(self, request: Request) -> Response:
        draft = self._draft_of(request)
        try:
            form = await receive(request.stream(), request.headers, draft.folder, self._limit)
            await run_in_threadpool(self._prepare, draft, form)
        except EvenhandError as error:
            return self._columns_page(draft, str(error), status=422)
        return self._to(f"drafts/{draft.name}/check")

    def _prepare(self, draft: Draft, form: Form) -> None:
        """Keep what was filled in, and begin to look at what the rows can show."""
        draft.answers = form
        _take_model(draft, form)
        asked = self._chosen(draft)
        self._jobs.cancel(draft.folder)
        draft.checked = True
        self._jobs.start("preview", draft.folder, self._request(draft, asked))

    def _chosen(self, draft: Draft) -> Chosen:
        named = None if draft.model is None else draft.model.name
        return chosen(draft.answers, draft.proposal, file=draft.shown, model=named)

    def _request(self, draft: Draft, asked: Chosen) -> dict[str, object]:
        return {
            "source": str(draft.source),
            "file": draft.shown,
            "title": asked.title,
            "plan": asked.plan.to_dict(),
            "audits": list(asked.audits),
            "model": None if draft.model is None else str(draft.model.path),
            "draft": draft.name,
        }

    # Step 3: what the rows can show

    def _check(self, request: Request) -> Response:
        draft = self._draft_of(request)
        if not draft.checked:
            return self._to(f"drafts/{draft.name}")
        state = self._jobs.state(draft.folder)
        if state.word == "running":
            return self._pages.page("looking", draft=draft, state=state)
        if state.word != "finished":
            return self._to(f"drafts/{draft.name}")
        content = stored(draft.folder / "preview.json")
        return self._pages.page("check", draft=draft, preview=content, audits=AUDITS)

    def _draft_state(self, request: Request) -> Response:
        return self._state(self._draft_of(request).folder)

    def _stop(self, request: Request) -> Response:
        draft = self._draft_of(request)
        self._jobs.cancel(draft.folder)
        return self._to(f"drafts/{draft.name}")

    # Steps 4 and 5: the run and its report

    def _begin(self, request: Request) -> Response:
        draft = self._draft_of(request)
        asked = self._chosen(draft)
        folder = self._folders.new_run()
        try:
            self._jobs.start("audit", folder, self._request(draft, asked))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self._to(f"runs/{folder.name}")

    def _run(self, request: Request) -> Response:
        run = kept_run(self._folder_of(request), self._jobs)
        draft = self._drafts.get(run.draft)
        page = {"running": "running", "finished": "finished"}.get(run.state.word, "ended")
        return self._pages.page(page, run=run, draft=draft, downloads=DOWNLOADS, audits=AUDITS)

    def _run_state(self, request: Request) -> Response:
        return self._state(self._folder_of(request))

    def _state(self, folder: Path) -> Response:
        state = self._jobs.state(folder)
        return JSONResponse({"word": state.word, "progress": list(state.progress)})

    def _report(self, request: Request) -> Response:
        return report_page(self._made(request, "report.html").read_text(encoding="utf-8"))

    def _file(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name not in DOWNLOADS:
            raise HTTPException(404)
        path = self._made(request, name)
        called = f"evenhand-{path.parent.name[:15]}-{name}"
        return FileResponse(path, filename=called, media_type=DOWNLOADS[name][1])

    def _made(self, request: Request, name: str) -> Path:
        """Return a file that a finished run has made."""
        path = self._folder_of(request) / name
        if not path.is_file() or path.is_symlink():
            raise HTTPException(404)
        return path

    def _cancel(self, request: Request) -> Response:
        folder = self._folder_of(request)
        self._jobs.cancel(folder)
        return self._to(f"runs/{folder.name}")

    # Step 6: runs of the past

    def _history(self, request: Request) -> Response:
        runs = [kept_run(folder, self._jobs) for folder in self._folders.runs()]
        return self._pages.page("history", runs=runs, folder=str(self._folders.root))

    def _delete(self, request: Request) -> Response:
        folder = self._folder_of(request)
        self._jobs.forget(folder)
        shutil.rmtree(folder)
        return self._to("runs")

    def _remove(self, request: Request) -> Response:
        draft = self._draft_of(request)
        self._jobs.forget(draft.folder)
        self._drafts.remove(draft.name)
        return self._to("")

    def _compare(self, request: Request) -> Response:
        old, new = (self._finished(request.query_params.get(side, "")) for side in ("old", "new"))
        if old.name == new.name:
            raise UsageError("A run cannot be compared with itself. Choose two different ones.")
        loaded = [load_run(self._folders.root / run.name) for run in (old, new)]
        names = tuple(f"{run.title}, {run.when}" for run in (old, new))
        return report_page(html_page(compose_run_comparison(compare_runs(*loaded, names=(names[0], names[1])))))

    def _finished(self, name: str) -> Kept:
        folder = self._folders.run(name)
        if folder is None:
            raise UsageError("Choose two finished runs to compare.")
        run = kept_run(folder, self._jobs)
        if run.state.word != "finished":
            raise UsageError(f"The run of {run.when} is not finished, so it cannot be compared.")
        return run

    # What all of them need

    def _draft_of(self, request: Request) -> Draft:
        draft = self._drafts.get(request.path_params["draft"])
        if draft is None:
            raise HTTPException(410)
        return draft

    def _folder_of(self, request: Request) -> Path:
        folder = self._folders.run(request.path_params["run"])
        if folder is None:
            raise HTTPException(404)
        return folder

    def _to(self, place: str) -> Response:
        return RedirectResponse(f"{self._base}/{place}", status_code=303)

    def _refused(self, request: Request, error: Exception) -> Response:
        return self._pages.message("That cannot be done", str(error), status=422)

    def _no_page(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        sentence = "There is no such page or run. It may have been deleted."
        if status == 410:
            sentence = (
                "This audit is no longer being prepared: its file was removed, or the app was started again. Give the "
                "file again."
            )
        return self._pages.message("Not found", sentence, status=status)

    def _unexpected(self, request: Request, error: Exception) -> Response:
        traceback.print_exception(error, file=sys.stderr)
        sentence = (
            "Something went wrong that Evenhand does not know. What happened stands in the window in which the app "
            "was started."
        )
        return self._pages.message("A mistake of the program", sentence, status=500)


def _same(answer: Response, request: Request) -> Response:
    """Answer with what never changes."""
    return answer


def _existing(said: str) -> Path:
    """Return the path that was typed, of a file that is there."""
    if not said:
        raise UsageError("No path was given. Type where the file is, such as `/home/ana/decisions.csv`.")
    if "\0" in said:
        raise UsageError("The path holds a character that no path has.")
    path = Path(said).expanduser()
    if not path.is_absolute():
        raise UsageError(f"`{said}` does not say where the file is from the root on. Type the whole path.")
    try:
        there = path.is_file()
    except OSError:
        there = False
    if not there:
        raise UsageError(f"There is no file `{said}` on this machine that can be read.")
    return path


def _take_model(draft: Draft, form: Form) -> None:
    """Keep the model that was given, by its file or by its path."""
    if "model" in form.files:
        draft.model = form.files["model"]
    elif form.text("model_path"):
        path = _existing(form.text("model_path"))
        check_name(path.name, MODELS)
        draft.model = Upload(path=path, name=str(path))
    elif form.text("no_model"):
        draft.model = None
