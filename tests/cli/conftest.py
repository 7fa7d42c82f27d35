"""The command, with a separate directory for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.files import Command


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)
