"""``evenhand app``: the local web page, for people who would rather not type commands."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.errors import optional_module


@click.command("app")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen.  [default: a free port]")
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where runs are kept.  [default: the user's data]")
@click.option("--limit", type=click.FloatRange(min=0, min_open=True), default=2.0, show_default=True, metavar="GB",
              help="Largest upload; a file that is named by its path has no limit.")  # fmt: skip
def app_command(port: int, no_browser: bool, folder: Path | None, limit: float) -> None:
    """Audit in the browser: drop a file, check its columns, read the report. Nothing leaves this machine."""
    for package in ("starlette", "uvicorn", "python_multipart"):
        optional_module(
            package, f"The app needs the package {package.replace('_', '-')}: `pip install 'evenhand[app]'`."
        )
    from evenhand.app.folders import default_folder
    from evenhand.app.server import serve

    place = default_folder() if folder is None else folder
    serve(place, port=port, limit=int(limit * 2**30), browser=not no_browser, say=click.echo)
