"""Limits: each is defined only in ``app.limits``, is used, and has a row in the documentation's table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import limits
from tests.service import ROOT
from tools.limits import shown

DEFINED = [name for name in vars(limits) if name.isupper() and name not in ("KIB", "MIB")]
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py")}
WORDS = {path: set(re.findall(r"\w+", text)) for path, text in SOURCES.items()}
LIMITS = Path(limits.__file__)

FIELDS_OF_THE_API = {
    *("kserve/gatewayapi.py", "router/urls.py", "workload/autoscaler.py", "podrules.py", "wholepod.py", "checks.py"),
    *("llmaz/source.py", "kserve/celselector.py", "kserve/devices.py"),
}
"""Modules with limits of the API server, or of registries, on single fields."""
LAYOUT = {
    "cli/render.py",
    "cli/explain.py",
    "cli/validate.py",
    "files/yamlproblems.py",
    "origins/tracer.py",
    "files/folders.py",
    "cluster/simulate.py",
    "studio/playback.py",
    "studio/simulation.py",
}
"""Modules of commands with limits on output or on simulated steps."""


@pytest.mark.parametrize("name", DEFINED)
def test_is_documented_and_used(name: str) -> None:
    row = re.compile(rf"^\| [^|]+ \| {re.escape(shown(name, getattr(limits, name)))} \| [^|]+ \|$", re.MULTILINE)
    assert row.search((ROOT / "docs/operations/limits.md").read_text(encoding="utf-8"))
    assert [path for path, words in WORDS.items() if path != LIMITS and name in words]


def test_is_defined_nowhere_else() -> None:
    others = [f"{path}: {name}" for path, name in _assigned() if re.match(r"_?(MAX_|[A-Z_]*(BUDGET|DEADLINE))", name)]
    allowed = (*FIELDS_OF_THE_API, *LAYOUT)
    assert [found for found in others if not found.partition(":")[0].endswith(allowed)] == []


def _assigned() -> Iterator[tuple[Path, str]]:
    """Yield the names that modules other than ``app.limits`` assign at their top level."""
    for path, text in SOURCES.items():
        for statement in ast.parse(text).body if path != LIMITS else ():
            if isinstance(statement, ast.Assign):
                names = (node for target in statement.targets for node in ast.walk(target))
                yield from ((path, node.id) for node in names if isinstance(node, ast.Name))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("A_BYTES", 16 * 1024, "16 KiB"),
        ("A_BYTES", 1_572_864, "1.5 MiB"),
        ("A_SECONDS", 0.005, "0.005 s"),
        ("A_SECONDS", 120, "120 s"),
        ("A", 10_000, "10,000"),
    ],
)
def test_has_the_unit_in_which_its_name_ends(name: str, value: float, expected: str) -> None:
    assert shown(name, value) == expected
