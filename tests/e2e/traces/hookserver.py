"""The hook that responds from the recorded lists and records its requests."""

from __future__ import annotations

import contextlib
import email.utils
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from app.kube.base import Json

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


@dataclass
class Call:
    """One request, in order of arrival."""

    at: float
    hook: str
    method: str
    request: Json | None
    if_none_match: str | None
    answered: Any = None


@dataclass
class Script:
    """The responses and the calls of one scenario."""

    answers: list[Json] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    counts: dict[str, int] = field(default_factory=dict)
    former: list[Json] = field(default_factory=list)
    since: tuple[str, int] | None = None

    @contextlib.contextmanager
    def turn(self, answers: list[Json]) -> Iterator[None]:
        """Block calls while the block changes something; afterwards respond from this list."""
        with self.lock:
            self.since = None
            yield
            self.former, self.answers = self.answers, [dict(answer) for answer in answers]

    def changed(self, name: str, version: int) -> None:
        """Record, inside `turn`, that the change gave this parent this resourceVersion.

        A retry of the previous step with an older version gets a response of the previous step.
        """
        self.since = (name, version)

    def take(self, call: Call) -> Json:
        """Record the call and return the first matching response."""
        with self.lock:
            self.calls.append(call)
            self.counts[call.hook] = self.counts.get(call.hook, 0) + 1
            for answer in self.former if self._is_late(call) else self.answers:
                if _fits(answer, call):
                    if "times" in answer:
                        answer["times"] -= 1
                    chosen = {**answer, "calls": self.counts[call.hook]}
                    break
            else:
                chosen = {"status": 500, "raw": "no answer left"}
            call.answered = "connection dropped" if chosen.get("drop") else chosen.get("status", 200)
            return chosen

    def _is_late(self, call: Call) -> bool:
        parent = ((call.request or {}).get("parent") or {}).get("metadata") or {}
        return (
            self.since is not None
            and parent.get("name") == self.since[0]
            and int(parent["resourceVersion"]) < self.since[1]
        )


class HookServer:
    """One server for all scenarios, on HTTP and on HTTPS; the first path segment names the scenario."""

    def __init__(self, certificate: Path) -> None:
        self.scripts: dict[str, Script] = {}
        scripts = self.scripts

        class Handler(_Handler):
            all_scripts = scripts

        self._plain = _Server(("127.0.0.1", 0), Handler)
        self._tls = _Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        # The handshake is done in the connection's thread, so that an unfinished one does not block others.
        self._tls.socket = context.wrap_socket(self._tls.socket, server_side=True, do_handshake_on_connect=False)
        for server in (self._plain, self._tls):
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    @property
    def plain_url(self) -> str:
        """The address in place of `http://hook.example`."""
        return f"http://127.0.0.1:{self._plain.server_address[1]}"

    @property
    def tls_url(self) -> str:
        """The address in place of `https://hook.example`."""
        return f"https://127.0.0.1:{self._tls.server_address[1]}"

    def close(self) -> None:
        """Stop both servers."""
        for server in (self._plain, self._tls):
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: refused certificates and dropped connections are expected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    all_scripts: dict[str, Script]

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _answer(self) -> None:
        arrived = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, number, hook = self.path.partition("?")[0].split("/", 2)
        request = json.loads(body) if body else None
        call = Call(arrived, hook, self.command, request, self.headers.get("If-None-Match"))
        answer = self.all_scripts[number].take(call)
        if answer.get("delay"):
            time.sleep(answer["delay"])
        if answer.get("drop"):
            self.close_connection = True
            return
        self._send(answer, request)

    def _send(self, answer: Json, request: Json | None) -> None:
        status = answer.get("status", 200)
        text = answer["raw"] if "raw" in answer else json.dumps(fill(answer.get("body"), request, answer["calls"]))
        content = text.encode()
        try:
            self.send_response(status)
            for name, value in (answer.get("headers") or {}).items():
                self.send_header(name, _header(value))
            if answer.get("close"):
                self.send_header("Connection", "close")
            if status not in (204, 304):
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if status not in (204, 304):
                self.wfile.write(content)
            self.wfile.flush()
        except OSError:
            # The caller's timeout was shorter than our delay.
            self.close_connection = True


def fill(template: Any, request: Json | None, calls: int) -> Any:
    """Return the body with its placeholders replaced."""
    if isinstance(template, list):
        return [fill(item, request, calls) for item in template]
    if not isinstance(template, dict):
        return template
    if "$calls" in template:
        return calls
    if "$field" in template:
        value: Any = request
        for part in template["$field"].split("|"):
            value = value[int(part)] if isinstance(value, list) else value[part]
        return value
    for placeholder in ("$observed", "$lastApplied"):
        if placeholder in template:
            outer, _, inner = template[placeholder].partition("|")
            observed = (request or {})["children"][outer][inner]
            if placeholder == "$observed":
                return observed
            return json.loads(observed["metadata"]["annotations"][LAST_APPLIED])
    return {key: fill(item, request, calls) for key, item in template.items()}


def _fits(answer: Json, call: Call) -> bool:
    if answer.get("hook") != call.hook or answer.get("times", 1) <= 0:
        return False
    when, request = answer.get("when") or {}, call.request or {}
    if "parent" in when and request.get("parent", {}).get("metadata", {}).get("name") != when["parent"]:
        return False
    observed = when.get("observed") or {}
    return all(len(request.get("children", {}).get(outer, {})) == count for outer, count in observed.items())


def _header(value: str) -> str:
    if value.startswith("$date"):
        return email.utils.formatdate(time.time() + float(value.removeprefix("$date") or 0), usegmt=True)
    return value
