"""A search for a class finds one."""

from __future__ import annotations

import ast
from collections import Counter

from tests.repository.test_readme import ROOT


def test_no_two_classes_have_one_name() -> None:
    modules = [ast.parse(path.read_text()) for path in (ROOT / "app").rglob("*.py")]
    classes = Counter(node.name for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    assert len(classes) > 500
    assert [name for name, count in classes.items() if count > 1] == []
