"""A process from start to end: it becomes ready soon, answers all requests until it ends, and opens no connections."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from app.limits import MAX_PIPELINED
from tests.corpus.requests import JSON_HEADERS, REVIEW, SYNC, is_allowed, review, sync
from tests.service import NEVER, ROOT, Service, ask, running, start, stop


def test_it_is_ready_once_it_answers() -> None:
    """Its self-test is part of readiness."""
    with running() as service:
        assert service.ask("GET", "/readyz").status == 200


def test_nothing_is_lost_while_a_process_stops() -> None:
    """It becomes not ready, closes connections after their next answer, and answers until no client uses it."""
    service = start(environment={"MODELHOOKS_LAMEDUCK_SECONDS": "2"})
    try:
        connection = service.connect()
        before = ask(connection, "POST", REVIEW, review_body(), JSON_HEADERS)
        assert (before.status, before.headers.get("connection", "")) == (200, "")
        service.process.send_signal(signal.SIGTERM)
        answers = answers_until_refused(service, connection)
    finally:
        log = stop(service)
    assert len(answers) > 5
    assert {status for status, _ in answers} == {200}
    assert {goodbye for _, goodbye in answers[1:]} == {"close"}
    assert service.process.returncode == 0
    assert b"Traceback" not in log


def test_a_process_that_still_gets_requests_ends_after_the_last_one() -> None:
    """Some callers learn late that it stops, so it ends a short time after the last request."""
    service = start(environment={"MODELHOOKS_LAMEDUCK_SECONDS": "0.5"})
    try:
        service.process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        while time.monotonic() < begin + 2.5:
            assert service.post(REVIEW, review()).status == 200
            time.sleep(0.1)
        service.process.wait(NEVER)
    finally:
        stop(service)


def answers_until_refused(service: Service, connection: http.client.HTTPConnection) -> list[tuple[int, str]]:
    """Send requests until connections are refused; return status and ``Connection`` header of each answer.

    A request without an answer fails the test. A new connection replaces one that the service closes.
    """
    wait_for_drain(service)
    answers: list[tuple[int, str]] = []
    deadline = time.monotonic() + NEVER
    while time.monotonic() < deadline:
        try:
            if connection.sock is None:
                connection.connect()
        except ConnectionRefusedError:
            return answers
        try:
            answer = ask(connection, "POST", REVIEW, review_body(), JSON_HEADERS)
        except ConnectionResetError:
            service.process.wait(NEVER)  # the kernel accepted a connection just as the process ended
            return answers
        answers.append((answer.status, answer.headers.get("connection", "")))
        time.sleep(0.05)
    raise AssertionError("the process did not stop")


def wait_for_drain(service: Service) -> None:
    """Wait until the process reports that it is stopping."""
    deadline = time.monotonic() + NEVER
    while time.monotonic() < deadline:
        answer = service.ask("GET", "/readyz")
        if answer.status == 503:
            assert answer.headers["connection"] == "close"
            assert service.ask("GET", "/healthz").status == 200
            return
    raise AssertionError("the process stayed ready")


def review_body() -> bytes:
    return orjson.dumps(review())


def test_a_second_signal_ends_the_wait() -> None:
    """It ends at once."""
    service = start(environment={"MODELHOOKS_LAMEDUCK_SECONDS": "600"})
    service.process.send_signal(signal.SIGTERM)
    wait_for_drain(service)
    begin = time.monotonic()
    stop(service)
    assert time.monotonic() - begin < NEVER


def test_serves_while_the_log_is_not_read() -> None:
    """Lines are dropped and counted, and requests are answered (HTTP-F19)."""
    refused = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\nx"
    batch = refused % REVIEW.encode() * (MAX_PIPELINED + 1)
    with running(environment={"MODELHOOKS_LOG_LEVEL": "debug"}) as service:  # logs every request
        with service.socket(30) as connection:
            for _ in range(6500):
                connection.sendall(batch)
                answered = b""
                while answered.count(b"HTTP/1.1 400") <= MAX_PIPELINED:
                    part = connection.recv(1 << 20)
                    assert part, "the connection was ended"
                    answered += part
        assert is_allowed(service.post(REVIEW, review())) == []
        metrics = service.ask("GET", "/metrics").body.decode()
    dropped = re.search(r"^modelhooks_log_lines_dropped_total (\S+)", metrics, re.MULTILINE)
    assert dropped is not None
    assert float(dropped[1]) > 0


@pytest.mark.parametrize("seed", range(4))
def test_answers_do_not_depend_on_the_hash_seed(seed: int, reference: dict[str, bytes]) -> None:
    """Byte for byte, at the same clock value (HTTP-P1)."""
    assert answers_with(seed) == reference


@pytest.fixture(scope="module")
def reference() -> dict[str, bytes]:
    return answers_with(1234)


PROGRAM = """
import sys, orjson
from datetime import UTC, datetime
from app.admission import review
from app.desk.cluster.kinds import find
from app.hooks.answer import answer_customize, answer_sync
from app.settings import Settings
from tests.corpus import requests as r

kind, settings, now = find(r.API_VERSION, "InferenceService"), Settings(), datetime(2030, 1, 1, tzinfo=UTC)
bad = r.service({"runtime": "x", "replicas": 99, "a": 1, "b": 2, "nodeSelector": {"-": "-", "+": "+"}})
labelled = r.service(r.spec_with(podLabels={c: c for c in "abcdef"}, nodeSelector={c: c for c in "abcdef"}))
for document in (r.service(), bad, labelled):
    body = orjson.dumps(r.sync(document))
    sys.stdout.buffer.write(answer_sync(kind, body, settings, now) + b"\\n")
    sys.stdout.buffer.write(review.answer(kind, orjson.dumps(r.review(document)), settings) + b"\\n")
    customize = orjson.dumps({"controller": {"spec": {}}, "parent": document})
    sys.stdout.buffer.write(answer_customize(kind, customize, settings) + b"\\n")
"""


def answers_with(seed: int) -> dict[str, bytes]:
    """Return the answers of a process with that seed, called as functions, so that the clock is fixed."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    result = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, check=True)
    lines = result.stdout.splitlines()
    assert len(lines) == 9
    return {str(number): line for number, line in enumerate(lines)}


def test_opens_no_outgoing_connections() -> None:
    """It has only the sockets that clients opened (HTTP-F21)."""
    with running() as service:
        for path, document in ((REVIEW, review()), (SYNC, sync())):
            assert service.post(path, document).status == 200
        sockets = outgoing(service.process.pid, service.port)
    assert sockets == []


def outgoing(pid: int, port: int) -> list[str]:
    """Return the remote addresses of the process' TCP and UDP sockets, except for its listening port."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if match := re.match(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                inodes.add(match[1])
    assert inodes, "the listening socket at least"
    connections = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and int(fields[1].rpartition(":")[2], 16) != port:
                connections.append(f"{table} {fields[2]}")
    return connections


def test_a_port_that_is_taken_is_an_error() -> None:
    """The message is one line, without a traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", port]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr
    assert "Traceback" not in result.stderr
