"""Access control of the studio: only the page that it was opened for may send requests.

A page of another site can neither guess the token in the path, nor name us as its host (DNS rebinding), nor hide its
origin. The browser neither stores nor frames an answer, nor guesses its type.
"""

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy. CodeMirror's styles need no exception: its shadow root adopts them."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
WELCOME = "Open the address that `modelhooks studio` printed; it has a token that this one lacks.\n"


def new_token() -> str:
    return secrets.token_urlsafe(24)


class Guard:
    """Passes on requests of this machine's page, without the token in the path."""

    def __init__(self, app: ASGIApp, token: str, authority: str) -> None:
        """``authority`` is the host and port that the page is opened with: ``127.0.0.1:8431``."""
        self._app = app
        self._prefix = f"/{token}/"
        self._authority = authority

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if (problem := self._problem(scope)) is not None:
            await problem(scope, receive, guarded)
            return
        path = scope["path"][len(self._prefix) - 1 :]
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, guarded)

    def _problem(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if hosts != [self._authority]:
            return PlainTextResponse(f"The studio answers to http://{self._authority} only.\n", 421)
        if origins not in ([], [f"http://{self._authority}"]):
            return PlainTextResponse("Another page may not ask the studio.\n", 403)
        prefix = scope["path"][: len(self._prefix)].encode()
        if not secrets.compare_digest(prefix, self._prefix.encode()):
            return PlainTextResponse(WELCOME, 403)
        return None
