"""The server: bound to the loopback address, with a token that nobody can guess."""

from __future__ import annotations

import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path

import uvicorn

from evenhand.app.folders import Folders
from evenhand.app.routes import Site
from evenhand.errors import UsageError

_ADDRESS = "127.0.0.1"


def serve(folder: Path, *, port: int, limit: int, browser: bool, say: Callable[[str], None]) -> None:
    """Serve the app until it is interrupted.

    Parameters
    ----------
    folder : Path
        Where runs are kept.
    port : int
        Where to listen; 0 takes one that is free.
    limit : int
        Most bytes of an upload.
    browser : bool
        Whether a browser is opened.
    say : callable
        Called with lines for the terminal; the first one holds the address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_ADDRESS, port))
            listening.listen()  # before anybody is told: a browser that comes at once waits and is not refused
        except OSError as error:
            raise UsageError(
                f"Port {port} cannot be used: {error.strerror or error}. Name another with `--port`, or none."
            ) from error
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        folders = Folders(folder)
        site = Site(folders, token=token, port=port, limit=limit)
        config = uvicorn.Config(
            site.application,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=3,
        )
        server = uvicorn.Server(config)
        address = f"http://{_ADDRESS}:{port}/{token}/"
        say(f"Evenhand runs at {address}")
        say(f"Only this machine can open it. Runs are kept in {folder}. Press Ctrl+C to end it.")
        if browser:
            say("If no browser opens, open this address in yours.")
            opening = open_file(folders.private, address).as_uri()
            threading.Thread(target=_open_browser, args=(server, opening), daemon=True).start()
        server.run(sockets=[listening])


def _open_browser(server: uvicorn.Server, opening: str) -> None:
    """Open a browser once the server has begun; some browsers let their caller wait until they end."""
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(opening)


def open_file(private: Path, address: str) -> Path:
    """Write a page that leads to an address, for this user alone.

    What a program is started with can be seen by every user of the machine, and the address holds the token: so the
    browser is started with the name of this file.
    """
    path = private / "open.html"
    path.touch(mode=0o600)
    target = escape(address)
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><title>Evenhand</title><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">Open Evenhand</a>\n',
        encoding="utf-8",
    )
    return path
