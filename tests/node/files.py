"""The web server that models are downloaded from, with behaviour that a downloader must handle.

`/NAME` is a file, whole or in ranges; `/moved/NAME` redirects to it; `/cut/NAME` breaks off after the first part of a
complete download; `/slow/NAME` is slow; `/unsized/NAME` has no Content-Length.
"""

from __future__ import annotations

import hashlib
import http.server
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Asked:
    """A received request: its path, its Range header, and the status of the response."""

    path: str
    range: str | None
    status: int


class FileServer:
    """Serves the files of a directory while it is entered as a context manager, and records the requests."""

    def __init__(self, address: str, folder: Path, port: int = 0) -> None:
        self.asked: list[Asked] = []
        self._server = _Server((address, port), _Handler)
        self.url = f"http://{address}:{self._server.server_port}"
        self._server.folder = folder
        self._server.asked = self.asked
        self._thread = threading.Thread(target=self._server.serve_forever, name="files", daemon=True)

    def use_tls(self, context: ssl.SSLContext) -> None:
        """Serve HTTPS; must be called before the context is entered."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    folder: Path
    asked: list[Asked]

    def handle_error(self, *_: object) -> None:
        """Ignore errors: downloaders with a full volume close the connection."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Log nothing: `Asked` is the log."""

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        *manners, name = self.path.strip("/").split("/")
        file = self.server.folder / name
        if manners == ["moved"]:
            self._answer(302, {"Location": f"/{name}"})
        elif not file.is_file():
            self._answer(404, {})
        else:
            self._send(file.read_bytes(), manners)

    def _send(self, content: bytes, manners: list[str]) -> None:
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        start = 0
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes=") and self.headers.get("If-Range", etag) == etag:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
        if start and start >= len(content):
            self._answer(416, {})
            return
        headers = {"ETag": etag, "Accept-Ranges": "bytes", "Content-Length": str(len(content) - start)}
        if manners == ["unsized"]:
            headers = {"Connection": "close"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._answer(206 if start else 200, headers)
        if self.command == "HEAD":
            return
        rest = content[start:]
        if manners == ["cut"] and not start:
            self.wfile.write(rest[: len(rest) * 2 // 5])
            self.close_connection = True
        elif manners == ["slow"]:
            for at in range(0, len(rest), 65536):
                self.wfile.write(rest[at : at + 65536])
                time.sleep(1)
        else:
            self.wfile.write(rest)

    def _answer(self, status: int, headers: dict[str, str]) -> None:
        self.server.asked.append(Asked(self.path, self.headers.get("Range"), status))
        self.send_response(status)
        if not headers.keys() & {"Connection", "Content-Length"}:
            headers = {**headers, "Content-Length": "0"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
