"""Log lines: successes are sampled, and the number per second is limited."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest
from prometheus_client import REGISTRY

from app.limits import MAX_LINES_PER_SECOND
from app.server.logs import SAMPLE, Log
from app.server.metrics import LOG_DROPPED  # noqa: F401 - registers the counter

Lines = list[dict[str, object]]


class Written:
    """A log that writes to a file."""

    def __init__(self, path: Path, level: str) -> None:
        self._path = path
        self.log = Log(level, descriptor=os.open(path, os.O_WRONLY | os.O_CREAT))

    def lines(self) -> Lines:
        self.log.start()
        self.log.close()
        return [orjson.loads(line) for line in self._path.read_bytes().splitlines()]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A stopped clock; its one item is the time."""
    now = [1000.0]
    monkeypatch.setattr("app.server.logs.time.monotonic", lambda: now[0])
    return now


def dropped() -> float:
    return REGISTRY.get_sample_value("modelhooks_log_lines_dropped_total") or 0.0


def test_a_flood_is_cut_and_counted(tmp_path: Path, clock: list[float]) -> None:
    """The limit applies to each second."""
    written, before = Written(tmp_path / "log", "info"), dropped()
    for _ in range(MAX_LINES_PER_SECOND + 50):
        written.log.request("/x", 400, 0.001, 1, "bad")
    clock[0] += 1
    written.log.request("/x", 400, 0.001, 1, "the next")
    lines = written.lines()
    assert (len(lines), lines[-1]["error"]) == (MAX_LINES_PER_SECOND + 1, "the next")
    assert dropped() == before + 50


def test_debug_has_every_line(tmp_path: Path) -> None:
    """The level debug has neither sampling nor a limit."""
    written = Written(tmp_path / "log", "debug")
    for _ in range(MAX_LINES_PER_SECOND + 50):
        written.log.request("/x", 200, 0.001, 1, "")
    assert len(written.lines()) == MAX_LINES_PER_SECOND + 50


def test_successes_are_sampled_and_denials_are_not(tmp_path: Path) -> None:
    """A denial is logged with its uid, which the API server's log has too."""
    written = Written(tmp_path / "log", "info")
    for _ in range(SAMPLE):
        written.log.request("/x", 200, 0.001, 1, "")
    for uid in "ab":
        written.log.request("/x", 200, 0.001, 1, "", {"verdict": "denied", "uid": uid})
    assert [line.get("uid") for line in written.lines()] == [None, "a", "b"]
