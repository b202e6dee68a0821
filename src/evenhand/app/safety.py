"""Who may ask for a page: this browser, with the token, at the loopback address, from a page of this server."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADERS = {
    # Styles and scripts of this server alone, no frame, no request elsewhere.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # No other server learns the address. Not `no-referrer`: with it a browser sends no origin with a form either.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
# A report carries its own scripts, allowed by their hashes in its own policy. It is shut off from this server's pages:
# it has no origin, so that it can read none of them, and it may ask nobody for anything.
REPORT_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


class Guard:
    """Let through what this browser asks for, and nothing else.

    The token stands in the address, not in a cookie: a browser sends cookies of the loopback address to every port,
    also to a server of another user.

    Parameters
    ----------
    application : callable
        What answers, below the token.
    token : str
        The first part of every address.
    port : int
        Where the server listens; a request must name it with a name of the loopback address.
    """

    def __init__(self, application: Application, *, token: str, port: int) -> None:
        self._application = application
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"} | ({"127.0.0.1", "localhost"} if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        reason = self._refused(scope)
        answer: Application = self._application
        if reason:
            answer = PlainTextResponse(f"{reason}\n", status_code=403)
        await answer({**scope, "root_path": f"/{self._token}"}, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> str:
        """Say why a request is refused; empty where it is not."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return "This server answers to 127.0.0.1 and localhost only."
        if any(origin not in {f"http://{host}" for host in self._hosts} for origin in headers.getlist("origin")):
            return "This server answers to its own pages only."
        if scope["method"] == "POST" and "origin" not in headers and "sec-fetch-site" in headers:
            return "This server takes forms from its own pages only."
        first = scope["path"].split("/")[1]
        if not secrets.compare_digest(first.encode(), self._token.encode()):
            return "This address lacks the token. Open the address that `evenhand app` has printed."
        return ""


def _with_headers(send: Send) -> Send:
    """Return what sends an answer with the headers of this server, where it has none of its own."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent
