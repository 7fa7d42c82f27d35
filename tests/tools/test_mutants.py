"""What ``make mutants`` counts, and the tests that it runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools.mutants import EQUIVALENT, summary

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]


def test_counts_what_tests_notice_by_folder() -> None:
    """A mutant that never ends, or that no test reaches, is counted; one that makes no difference is not."""
    tried = {
        "app.hooks.kept.x__mutmut_1": "noticed",
        "app.hooks.kept.x__mutmut_2": "survived",
        "app.workload.devices.x__mutmut_1": "time limit",
        "app.workload.devices.x__mutmut_2": "no tests",
        "app.workload.devices.x__mutmut_3": EQUIVALENT,
    }
    assert summary(tried).splitlines() == [
        "hooks: 1 of 2 noticed, 0 make no difference",
        "workload: 1 of 2 noticed, 1 make no difference",
        "all: 2 of 4 noticed, 1 make no difference",
        "50 %",
    ]


def test_the_tests_and_files_that_it_needs_exist() -> None:
    words = [word.removeprefix("--ignore=") for word in SETTINGS["mutants"]["tests"]]
    names = [*(word for word in words if word.startswith("tests/")), *SETTINGS["mutmut"]["also_copy"]]
    assert [name for name in names if not (ROOT / name).exists()] == []
    assert [pattern for pattern in SETTINGS["mutmut"]["only_mutate"] if not list(ROOT.glob(pattern))] == []


@pytest.mark.parametrize("pattern", SETTINGS["mutants"]["equivalent"])
def test_what_makes_no_difference_is_in_the_code(pattern: str) -> None:
    """A pattern is of a line that a change takes away; its reason is a sentence."""
    lines = [
        f"-{line}"
        for room in ("admission", "hooks", "workload")
        for f in (ROOT / "app" / room).rglob("*.py")
        for line in f.read_text().splitlines()
    ]
    assert any(re.search(pattern, line) for line in lines)
    assert len(SETTINGS["mutants"]["equivalent"][pattern]) > 20
