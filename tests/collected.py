"""The collected tests of one folder: the hooks of a conftest.py get those of the whole session."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest


def below(folder: Path, items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the items of a folder. Twenty thousand texts are compared far sooner than as many paths."""
    start = f"{folder}{os.sep}"
    return [item for item in items if str(item.path).startswith(start)]
