"""What ``make mutants`` counts, and the tests that it runs."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tools.mutants import summary

ROOT = Path(__file__).parents[2]


def test_counts_what_tests_notice_by_folder() -> None:
    """A mutant that never ends, or that no test reaches, is counted too."""
    tried = {
        "app.hooks.kept.x__mutmut_1": "killed",
        "app.hooks.kept.x__mutmut_2": "survived",
        "app.workload.devices.x__mutmut_1": "timeout",
        "app.workload.devices.x__mutmut_2": "no tests",
    }
    assert summary(tried).splitlines() == [
        "hooks: 1 of 2 noticed",
        "workload: 1 of 2 noticed",
        "all: 2 of 4 noticed",
        "50 %",
    ]


def test_the_tests_and_files_that_it_needs_exist() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    names = [*settings["pytest_add_cli_args_test_selection"], *settings["also_copy"]]
    assert [name for name in names if not (ROOT / name).exists()] == []
    assert [pattern for pattern in settings["only_mutate"] if not list(ROOT.glob(pattern))] == []
