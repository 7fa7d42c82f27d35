"""The examples of ``docs/cli.md`` and ``docs/fit.md``: each is run and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import cli
from tests.repository.test_readme import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text()
LEFT_OUT = "…"
SHELL = f'modelhooks() {{ "{sys.executable}" -m app.cli "$@"; }}; '
PLAIN = re.compile(r"modelhooks [\w ./-]+")
"""A command that needs no shell. It runs in this process, without the start of another."""


def examples() -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of the ``console`` blocks with the lines that follow them."""
    text = PAGE + (ROOT / "docs" / "fit.md").read_text()
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output.splitlines()


def pattern(lines: list[str]) -> re.Pattern[str]:
    """Return the output as a pattern: ``…`` alone on a line matches any lines, otherwise any characters."""
    parts = []
    for line in lines:
        if line == LEFT_OUT:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(re.escape(line).replace(LEFT_OUT, ".*") + r"\n")
    return re.compile("".join(parts))


@pytest.mark.parametrize(("command", "lines"), list(examples()), ids=[command for command, _ in examples()])
def test_an_example_prints_what_the_page_says(
    command: str,
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The output is standard output followed by standard error. Files in ``/tmp`` are this test's own."""
    lines = [line.replace("/tmp/", f"{tmp_path}/") for line in lines]
    monkeypatch.chdir(ROOT)
    if PLAIN.fullmatch(command):
        cli.main(command.split()[1:])
        out, err = capsys.readouterr()
    else:
        out, err = in_shell(command.replace("/tmp/", f"{tmp_path}/"))
    assert "Traceback" not in err
    assert pattern(lines).fullmatch(out + err), out[:4000] + err


def in_shell(command: str) -> tuple[str, str]:
    done = subprocess.run(
        ["bash", "-c", SHELL + command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout, done.stderr


def test_every_command_has_a_section_with_an_example() -> None:
    """Users would not find a command that the page lacks."""
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert set(sections) == set(cli.COMMANDS)
    assert [name for name, text in sections.items() if f"modelhooks {name}" not in text] == []
