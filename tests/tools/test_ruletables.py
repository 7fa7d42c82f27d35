"""The lists of rules in docs/reference: each check has its item, and each id that code and tests name is in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.families import RESOURCES
from tools import ruletables

PAGES = {name: (ruletables.ROOT / name).read_text() for name in ruletables.PAGES}


def test_every_module_with_checks_is_in_a_list() -> None:
    assert ruletables.unlisted(list(PAGES.values())) == []


def test_an_item_is_the_first_sentence_of_a_docstring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ruletables, "ROOT", tmp_path)
    source = '''
def names(spec: object) -> Errors:
    """Reject two parts of ``one`` name (LK-V-I01, LK-V-I03). Blanks count."""
    yield field.duplicate(spec)


def both(spec: object) -> Iterator[Advice]:
    yield from names(spec)
'''
    (tmp_path / "rules.py").write_text(source)
    item = "* Reject two parts of `one` name (LK-V-I01, LK-V-I03)\n"
    assert item in ruletables.page("<!-- checks: rules.py -->\n", RESOURCES)


def test_a_check_without_a_docstring_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ruletables, "ROOT", tmp_path)
    (tmp_path / "rules.py").write_text("def names() -> Iterator[Advice]:\n    yield advice('', '')\n")
    with pytest.raises(SystemExit, match=r"rules.py: names makes errors or advice, and has no docstring"):
        ruletables.page("<!-- checks: rules.py -->\n", RESOURCES)


def test_rules_of_the_schema_have_items() -> None:
    item = "minReplicas must be less than or equal to maxReplicas; minReplicas is required with idleReplicaCount;"
    assert item in PAGES["docs/reference/kserve-rules.md"]
