"""Measure the service against the bare echo and print the ratios with their targets.

Only an error that the search finds makes it fail: machines differ and are shared, so no figure decides. The server
has one core and the load generator another. Each figure is the median of rounds in which the two servers alternate.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import timeit
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import orjson

from app.desk.cluster.kinds import find
from app.families import KINDS
from app.hooks.answer import answer_sync
from app.limits import MAX_CONNECTIONS
from app.main import utc_now
from app.settings import Settings
from tests.bench import conversions, desk, firstgraph, load, page, payloads, search, settled
from tests.bench.payloads import Case
from tests.e2e.processes import free_port

ADMISSION = "/validate-inference-llmkube-dev-v1alpha1-inferenceservice"
SYNC = "/llmkube/inferenceservices/sync"
SERVER_CORE, LOAD_CORE = 0, 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one round (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default: 5)")
    parser.add_argument("--objects", type=int, default=1000, help="objects for the commands (default: 1000)")
    parser.add_argument("--requests", type=int, default=20_000, help="requests before memory is read (default: 20000)")
    parser.add_argument("--search", type=int, default=20_000, help="mutated requests per kind (default: 20000)")
    args = parser.parse_args()
    _pin(LOAD_CORE)
    with tempfile.TemporaryDirectory() as directory:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the image has bytecode, too
        os.environ["PYTHONPYCACHEPREFIX"] = directory
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    for case in _cases():
        _compare(case, args.seconds, args.rounds)
    _slope()
    _largest()
    _crowd(args.seconds * args.rounds)
    _unread(args.seconds * args.rounds)
    _memory(args.requests)
    _start(args.rounds)
    desk.run(args.rounds, args.objects)
    page.run(args.rounds)
    firstgraph.run(args.rounds)
    conversions.run(args.search)
    return 1 if any(found.faults for found in search.run(args.search)) else 0


def _cases() -> list[Case]:
    recorded_sync, recorded_review = settled.recorded()
    return [
        Case("sync, 3 pods", SYNC, payloads.inference_service_sync(), 8, 0.20),
        Case("admission", ADMISSION, payloads.inference_service_review(), 1, 0.28),
        Case("sync, Playground", *settled.playground(), 8, 0.20),
        Case("sync, llmaz Service", *settled.llmaz_service(), 8, 0.20),
        Case("sync, recorded", SYNC, recorded_sync, 8, 0.20),
        Case("admission, recorded", ADMISSION, recorded_review, 1, 0.28),
    ]


def _compare(case: Case, seconds: float, rounds: int) -> None:
    ratios, tails, rates = [], [], []
    with _echo() as echo, _service() as service:
        load.run(service, case.path, case.body, case.connections, seconds / 2)
        load.run(echo, case.path, case.body, case.connections, seconds / 2)
        for _ in range(rounds):
            ours = load.run(service, case.path, case.body, case.connections, seconds)
            bare = load.run(echo, case.path, case.body, case.connections, seconds)
            ratios.append(ours.rate / bare.rate)
            tails.append(ours.p99 / bare.p99)
            rates.append(ours.rate)
    ratio, tail = statistics.median(ratios), statistics.median(tails)
    size = len(case.body) / 1024
    print(
        f"{case.name:22} {size:6.1f} KiB  ratio {ratio:5.3f} (target {case.target:.2f}; {min(ratios):.3f} to "
        f"{max(ratios):.3f})  p99 {tail:4.1f} x bare (target 4)  {statistics.median(rates):7.0f} req/s",
        flush=True,
    )


def _slope() -> None:
    """Measure the cost of one more observed pod, relative to plain decoding of the same bytes."""
    kind = find("inference.llmkube.dev/v1alpha1", "InferenceService")
    assert kind is not None
    settings, now = Settings(), utc_now()
    few, many = payloads.inference_service_sync(10), payloads.inference_service_sync(110)
    ours = [_time(partial(answer_sync, kind, body, settings, now)) for body in (few, many)]
    plain = [_time(partial(orjson.loads, body)) for body in (few, many)]
    ratio = (ours[1] - ours[0]) / (plain[1] - plain[0])
    print(f"slope per observed pod {ratio:.2f} x orjson.loads of the same bytes (target 0.35)", flush=True)


def _largest() -> None:
    """Measure the most expensive sync, relative to plain decoding of its request."""
    path, body = settled.llm_inference_service()
    kind = next(k for k in KINDS if f"{k.resource.hook_path}/sync" == path)
    settings, now = Settings(), utc_now()
    ours, plain = _time(lambda: answer_sync(kind, body, settings, now)), _time(lambda: orjson.loads(body))
    size = len(body) / 1024
    print(
        f"largest sync (KServe, {size:.0f} KiB) {ours / plain:.1f} x orjson.loads of the same request (target 12)",
        flush=True,
    )


def _crowd(seconds: float) -> None:
    """Measure small requests while twenty clients in other processes send 5 MB syncs back to back."""
    review, path = payloads.inference_service_review(), "/kserve/llminferenceservices/sync"
    with _service() as port:
        load.run(port, ADMISSION, review, 1, 1)
        context = multiprocessing.get_context("fork")
        crowd = [context.Process(target=_insist, args=(port, path, payloads.many_pods(7000), 5)) for _ in range(4)]
        for process in crowd:
            process.start()
        try:
            small = load.run(port, ADMISSION, review, 4, seconds, pause=0.01)
            resident = _resident(_LAST_PID[0])
        finally:
            for process in crowd:
                process.terminate()
                process.join()
    print(
        f"small requests among twenty syncs of 5 MB: p99 {small.p99:.0f} ms (target 250), {small.rate:.0f} req/s, "
        f"resident memory {resident / 1024:.0f} MiB",
        flush=True,
    )


def _unread(seconds: float) -> None:
    """Measure small requests while another address holds the maximum number of connections and reads no response."""
    path, body = settled.llm_inference_service()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with _service() as port:
        load.run(port, ADMISSION, payloads.inference_service_review(), 1, 1)
        context = multiprocessing.get_context("fork")
        crowd = context.Process(target=_hold, args=(port, head.encode() + body))
        crowd.start()
        try:
            small = load.run(port, ADMISSION, payloads.inference_service_review(), 4, seconds, pause=0.01)
            resident = _resident(_LAST_PID[0])
        finally:
            crowd.terminate()
            crowd.join()
    print(
        f"small requests among {MAX_CONNECTIONS} unread answers: worst {small.worst:.0f} ms (target 1000), "
        f"resident memory {resident / 1024:.0f} MiB (target 256)",
        flush=True,
    )


def _hold(port: int, request: bytes) -> None:
    """Keep opening connections; send a request on each, read nothing, and close the oldest."""
    held: deque[socket.socket] = deque(maxlen=MAX_CONNECTIONS)
    while True:
        if len(held) == MAX_CONNECTIONS:
            held.popleft().close()
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.bind(("127.0.0.2", 0))
        connection.settimeout(1)
        held.append(connection)
        with contextlib.suppress(OSError):
            connection.connect(("127.0.0.1", port))
            connection.sendall(request)


def _insist(port: int, path: str, body: bytes, clients: int) -> None:
    """Send requests continuously: at once after a success, after 0.2 s otherwise, ignoring Retry-After."""

    def ask() -> None:
        while True:
            connection, status = HTTPConnection("127.0.0.1", port, timeout=60), 0
            with contextlib.suppress(OSError, HTTPException):
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                status = response.status
                response.read()
            connection.close()
            if status != 200:
                time.sleep(0.2)

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _time(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=20, repeat=7)) / 20


def _memory(requests: int) -> None:
    with _service() as port:
        body = payloads.inference_service_sync()
        done = 0
        while done < requests:
            done += int(load.run(port, SYNC, body, 8, 1).rate)
        resident = _resident(_LAST_PID[0])
        print(f"resident memory after {done} requests {resident / 1024:.0f} MiB (target 80 MB)", flush=True)


def _start(rounds: int) -> None:
    """Measure the time from exec to the first 200 of /readyz, which waits for the self-test.

    Bytecode is used, as in the image.
    """
    wall, cpu = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        with _service("/readyz"):
            wall.append(time.perf_counter() - started)
            cpu.append(_cpu_seconds(_LAST_PID[0]))
    print(f"start to ready {statistics.median(wall):.2f} s (target 0.8), {min(cpu):.2f} CPU s", flush=True)


def _cpu_seconds(pid: int) -> float:
    """Return the user and system CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_LAST_PID = [0]


@contextlib.contextmanager
def _service(path: str = "/healthz") -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with _process(command, port, path):
        yield port


@contextlib.contextmanager
def _echo() -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "tests.bench.echo:app", "--host", "127.0.0.1", "--port", str(port)]
    with _process([*command, "--no-access-log", "--log-level", "error", "--lifespan", "off"], port, "/"):
        yield port


@contextlib.contextmanager
def _process(command: list[str], port: int, path: str) -> Iterator[None]:
    environment = {**os.environ, "MODELHOOKS_LAMEDUCK_SECONDS": "0"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env=environment,
        preexec_fn=lambda: _pin(SERVER_CORE),  # noqa: PLW1509
    )
    _LAST_PID[0] = process.pid
    try:
        _wait(port, path, process)
        yield
    finally:
        process.terminate()
        process.wait(15)


def _wait(port: int, path: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError):
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        connection.close()
        time.sleep(0.005)
    raise RuntimeError(f"{process.args!r} ended with {process.returncode}")


def _pin(core: int) -> None:
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or fewer cores
        os.sched_setaffinity(0, {core})


def _resident(pid: int) -> int:
    """Return the resident memory in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


if __name__ == "__main__":
    sys.exit(main())
