"""Child processes of the e2e suite: free ports, logs, readiness, and no orphaned processes."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# Runs in the child before it executes the program: ask Linux for SIGKILL when the parent ends, unless it has ended
# already. (subprocess' preexec_fn would need no second interpreter, but is unsafe with threads.)
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


GO = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""Makes Go programs collect garbage less often, which takes a quarter of the API server's CPU, up to a gibibyte."""

PATIENCE = 300.0
"""Seconds until something that should happen has failed: a machine may be ten times slower than usual."""


class ProcessFailedError(RuntimeError):
    """A child process ended, or did not become ready in time; the message has the end of its log."""


def free_ports(count: int) -> list[int]:
    """Return distinct loopback ports that are not in use, and reserve them until this process ends.

    They are below Linux' range of ephemeral ports, which any client could take before the server's bind. Other test
    processes cannot get them either, because a socket is bound to each. It does not listen, and allows its address to
    be reused, so a server that allows this too can listen there: Go's and asyncio's do.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as bound:
            bound.bind(("127.0.0.1", port))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.detach()  # stays open
            ports.append(port)
    return ports


def free_port() -> int:
    """Return one free port."""
    return free_ports(1)[0]


def wait_until(ready: Callable[[], bool], what: str, timeout: float = PATIENCE, interval: float = 0.2) -> None:
    """Call `ready` repeatedly until it returns true; the TimeoutError names `what`."""
    deadline = time.monotonic() + timeout
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        time.sleep(interval)


class Process:
    """A child process that logs to a file and is killed when this process ends, even by SIGKILL.

    Start it from a thread that lives as long as the child (such as pytest's main thread): Linux sends the parent-death
    signal when the starting *thread* ends.
    """

    def __init__(self, name: str, argv: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                dies_with_us(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                # A new session: Ctrl-C reaches pytest alone, which then stops its children in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.popen.pid

    @property
    def running(self) -> bool:
        """True until the process ends."""
        return self.popen.poll() is None

    def tail(self, lines: int = 40) -> str:
        """Return the end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def check(self) -> None:
        """Raise an error if the process has ended."""
        if not self.running:
            raise ProcessFailedError(
                f"{self.name} ended with code {self.popen.returncode}; its log ends:\n{self.tail()}"
            )

    def wait_ready(self, ready: Callable[[], bool]) -> None:
        """Wait until `ready` returns true; fail at once if the process ends first."""

        def alive_and_ready() -> bool:
            self.check()
            return ready()

        try:
            wait_until(alive_and_ready, f"{self.name} ready")
        except TimeoutError as error:
            raise ProcessFailedError(f"{error}; its log ends:\n{self.tail()}") from None

    def stop(self, timeout: float = 10.0) -> None:
        """End the process with SIGTERM, and with SIGKILL after `timeout` seconds."""
        if self.running:
            self.popen.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """Kill the process."""
        if self.running:
            self.popen.kill()
        self.popen.wait()


def dies_with_us(argv: Sequence[str | Path]) -> list[str]:
    """Return the command line that runs `argv` and, if the system supports it, ends with this process."""
    command = [str(argument) for argument in argv]
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]
