"""The output of ``validate`` on a terminal and in a pipe, run in a pseudo-terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from app.cli import main
from app.desk import progress
from app.desk.cluster import offline

ROOT = Path(__file__).parents[2]
WRONG = """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata:
  name: a
spec:
  modelRef: m
  resources:
    memory: 4 GB
  maxPodLifetimeSeconds: 60
"""
QUICKSTART = ROOT / "examples" / "kserve" / "quickstart.yaml"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(file: Path, *options: str, width: int = 80, command: str = "validate", **variables: str) -> str:
    """Return what a command prints on a terminal of that width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with pytest.MonkeyPatch.context() as patched, os.fdopen(slave, "w", encoding="utf-8") as terminal:
        patched.delenv("NO_COLOR", raising=False)
        patched.delenv("COLUMNS", raising=False)
        for name, value in {"TERM": "xterm", **variables}.items():
            patched.setenv(name, value)
        for name in ("stdout", "__stdout__"):  # the second one is what shutil.get_terminal_size asks
            patched.setattr(sys, name, terminal)
        patched.setattr(sys, "stderr", io.StringIO())
        main([command, str(file), *options])
    parts = []
    try:
        while part := os.read(master, 65536):
            parts.append(part)
    except OSError:  # Linux reports so that the other end is closed
        pass
    os.close(master)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    file = tmp_path / "a.yaml"
    file.write_text(WRONG)
    return file


def test_a_terminal_gets_colour_groups_and_carets(wrong: Path) -> None:
    """The file once, then each finding with its line and a caret below the column."""
    shown = on_terminal(wrong)
    assert "\x1b[31m" in shown
    lines = ESCAPE.sub("", shown).splitlines()
    assert [line for line in lines if str(wrong) in line] == [str(wrong)]
    place = next(number for number, line in enumerate(lines) if line.startswith("  8:5 error"))
    assert lines[place + 1] == "          memory: 4 GB"
    assert lines[place + 2] == "          ^"
    assert lines[place].endswith("[invalid-value]")
    assert any(line.startswith("  9:3 warning") and line.endswith("[no-effect]") for line in lines)


def test_no_color_means_none(wrong: Path) -> None:
    """https://no-color.org: any value that is not empty."""
    assert not ESCAPE.search(on_terminal(wrong, NO_COLOR="1"))
    assert ESCAPE.search(on_terminal(wrong, NO_COLOR=""))


def test_long_lines_are_cut_to_the_width(tmp_path: Path) -> None:
    """Only source lines are cut, never a message."""
    file = tmp_path / "a.yaml"
    file.write_text(WRONG.replace("memory: 4 GB", "memory: 4 GB # " + "x" * 200))
    lines = ESCAPE.sub("", on_terminal(file, width=50)).splitlines()
    assert [len(line) for line in lines if "xxx" in line] == [48]


def test_a_pipe_gets_one_line_a_finding(wrong: Path) -> None:
    """Plain lines that each start with the file, for grep, editors and logs."""
    command = [sys.executable, "-m", "app.cli", "validate", str(wrong)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not ESCAPE.search(done.stdout)
    assert [line.startswith(f"{wrong}:") for line in done.stdout.splitlines()] == [True, True]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_long_command_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, shown: bool) -> None:
    """On a terminal the line is removed at the end; in a pipe it is not written."""
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", stream)
    with offline.progress() as tick:
        tick(1)
    assert ("1 syncs, round 1" in stream.getvalue()) is shown
    assert stream.getvalue().endswith("\r\x1b[K") is shown


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["validate"], ["objects checked", "objects checked with what they refer to"]),
        (["render"], ["objects checked", "syncs, round", "objects printed"]),
        (["explain"], ["syncs, round", "objects explained"]),
        (["diff", str(QUICKSTART)], ["syncs, round"]),
    ],
)
def test_each_part_of_long_work_has_a_counter(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], shown: list[str]
) -> None:
    stream = Terminal()
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", stream)
    main([*arguments, str(QUICKSTART)])
    texts = [re.sub(r"^\d+ (of \d+ )?|, round \d+$", "", text) for text in stream.getvalue().split("\r\x1b[K") if text]
    assert [text for text in shown if not any(expected.startswith(text.partition(",")[0]) for expected in texts)] == []


@pytest.mark.parametrize("width", [80, 120])
def test_an_explanation_fits_the_terminal(width: int) -> None:
    """Columns are cut and sentences wrapped; values that the user set have their source, here or below."""
    shown = on_terminal(QUICKSTART, width=width, command="explain").splitlines()
    assert max(map(len, shown)) <= width
    (place,) = [number for number, line in enumerate(shown) if "args[1]" in line and "2048" in line]
    assert "spec.template.containers[0].args[1]" in "".join(shown[place : place + 2])


def test_render_cuts_scripts_on_a_terminal_alone() -> None:
    shown = on_terminal(QUICKSTART, command="render")
    assert "more lines; --full prints them" in shown
    piped = subprocess.run(
        [sys.executable, "-m", "app.cli", "render", str(QUICKSTART)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "more lines" not in piped
    assert len(shown.splitlines()) < len(piped.splitlines()) - 100


def test_render_prints_whole_scripts_on_request() -> None:
    assert "more lines" not in on_terminal(QUICKSTART, "--full", command="render")


def test_explain_names_each_source_whole_on_a_terminal() -> None:
    lines = on_terminal(QUICKSTART, command="explain").splitlines()
    assert "      from spec.template.containers[0].resources.limits.memory" in lines
    assert max(map(len, lines[1:])) <= 80
