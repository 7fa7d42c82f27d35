"""Log lines that never block an answer.

Lines are put into a bounded queue that a thread empties. When the output is not read, or the rate is too high, they are
dropped and counted. Successful requests are sampled. No line contains a body; an exception's message is written only if
it contains nothing of the request.
"""

import logging
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson
from prometheus_fastapi_instrumentator.metrics import Info

from app.limits import MAX_LINES_PER_SECOND, MAX_QUEUED_LINES
from app.server.metrics import LOG_DROPPED

SAMPLE = 100
"""One in so many successful requests is logged."""
_FLUSH_SECONDS = 0.1
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Log:
    """The process's log. ``level`` and ``as_json`` come from the settings."""

    def __init__(self, level: str = "info", as_json: bool = True, descriptor: int = 1) -> None:
        self._level = _LEVELS[level]
        self._as_json = as_json
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._successes = 0
        self._second = 0
        self._in_second = 0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin to write. Until then lines only queue up."""
        self._thread = threading.Thread(target=self._drain, name="log", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what is left, for at most a second."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(1)

    def request(
        self, endpoint: str, status: int, seconds: float, size: int, error: str, denial: dict[str, str] | None = None
    ) -> None:
        """Log an answered request; ``denial`` has the fields of a denied review."""
        if status == 200 and denial is None:
            self._successes += 1
            if self._successes % SAMPLE != 1 and self._level > _LEVELS["debug"]:
                return
        level, ms = "info" if status < 500 else "error", round(seconds * 1000, 2)
        fields = {"error": error} if error else {}
        self.write(level, "request", endpoint=endpoint, status=status, ms=ms, bytes=size, **fields, **(denial or {}))

    def fault(
        self, endpoint: str, identifier: str, fault: Exception, subject: dict[str, str], *, with_message: bool
    ) -> None:
        """Log a bug: the exception's class, where it was raised, and the object (``subject``) of the request."""
        trace = traceback.walk_tb(fault.__traceback__)
        frames = [f"{Path(frame.f_code.co_filename).name}:{line}" for frame, line in trace]
        name, detail = type(fault).__name__, str(fault) if with_message else ""
        about = {"endpoint": endpoint, "id": identifier, "exception": name, "at": frames[-5:], "detail": detail}
        self.write("error", "internal error", **about, **subject)

    def write(self, level: str, message: str, **fields: object) -> None:
        if _LEVELS[level] < self._level:
            return
        if len(self._lines) >= MAX_QUEUED_LINES or self._is_flood():
            LOG_DROPPED.inc()
            return
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._as_json:
            line = orjson.dumps({"time": moment, "level": level, "message": message, **fields}, default=str)
        else:
            text = " ".join(
                f"{key}={orjson.dumps(value, default=str).decode()}" for key, value in fields.items() if value
            )
            line = f"{moment} {level.upper():7} {message} {text}".encode()
        self._lines.append(line + b"\n")

    def _is_flood(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        return self._in_second > MAX_LINES_PER_SECOND and self._level > _LEVELS["debug"]

    def _drain(self) -> None:
        while not self._stop.is_set() or self._lines:
            if not self._lines:
                time.sleep(_FLUSH_SECONDS)
                continue
            batch = b"".join(self._lines.popleft() for _ in range(min(len(self._lines), 200)))
            try:
                while batch:
                    batch = batch[os.write(self._descriptor, batch) :]
            except OSError:
                LOG_DROPPED.inc()


def logged(log: Log) -> Callable[[Info], None]:
    def write(info: Info) -> None:
        state = info.request.scope.get("state", {})
        size, error, report = state.get("bytes", 0), state.get("error", ""), state.get("report")
        log.request(info.modified_handler, int(info.modified_status), info.modified_duration, size, error, report)

    return write


class Bridge(logging.Handler):
    """Standard logging (uvicorn's, asyncio's) into :class:`Log`: one line each, without tracebacks."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level = [name for name, number in _LEVELS.items() if number <= max(record.levelno, _LEVELS["debug"])][-1]
        message = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            message = f"{message.splitlines()[0] if message else ''} ({record.exc_info[0].__name__})"
        self._log.write(level, message[:500], logger=record.name)


def install(log: Log) -> None:
    """Send everything that uses standard logging to ``log``."""
    root = logging.getLogger()
    root.handlers[:] = [Bridge(log)]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = name != "uvicorn.access"
    sys.tracebacklimit = 0
