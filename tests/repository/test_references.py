"""References in comments and docstrings exist: rules, decisions, pages, and names in the code."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULE = re.compile(r"\b(?:LK|LZ|KS|MC|HTTP)-(?:[A-Z]-?)?[A-Z]?\d+(?:\.\d+)*")
RANGE = re.compile(r"\b((?:LK|LZ|KS)-(?:[A-Z]-)?[A-Z]{1,2})(\d\d) to \1(\d\d)\b")
NAME = re.compile(r":(?:func|class|data|meth|mod|attr):`[~.]?([\w.]+)`")
DEFINED = re.compile(r"^\s*(?:async )?(?:def |class )?(\w+)", re.MULTILINE)
DECISION = re.compile(r"\bdecisions? (\d+)")
PAGE = re.compile(r"\bdocs/[\w/-]+\.md")


def cited(pattern: re.Pattern[str]) -> Iterator[tuple[Path, str]]:
    for file in sorted((ROOT / "app").rglob("*.py")):
        for name in pattern.findall(file.read_text()):
            yield file.relative_to(ROOT), name


def test_rules_that_code_names_are_in_the_reference() -> None:
    files = [
        *(ROOT / "docs" / "reference").glob("*.md"),
        *(ROOT / "app").rglob("*.md"),
        *(ROOT / "tests").rglob("README.md"),
    ]
    pages = "\n".join(page.read_text() for page in files)
    rules = set(RULE.findall(pages))
    for prefix, first, last in RANGE.findall(pages):
        rules |= {f"{prefix}{number:02}" for number in range(int(first), int(last) + 1)}
    assert len(rules) > 100
    assert [f"{file}: {rule}" for file, rule in cited(RULE) if rule not in rules] == []


def test_decisions_that_code_names_exist() -> None:
    decisions = {int(page.name[:4]) for page in (ROOT / "decisions").glob("0*.md")}
    assert [f"{file}: decision {number}" for file, number in cited(DECISION) if int(number) not in decisions] == []


def test_decisions_and_pages_link_to_each_other() -> None:
    decisions = sorted((ROOT / "decisions").glob("0*.md"))
    readers = [page for folder in ("app", "docs") for page in (ROOT / folder).rglob("*.md")]
    readers += [ROOT / name for name in ("CONTRIBUTING.md", "README.md")]
    text = "\n".join(page.read_text() for page in readers)
    assert [decision.name for decision in decisions if f"decisions/{decision.name}" not in text] == []
    assert [decision.name for decision in decisions if "](" not in decision.read_text()] == []


def test_pages_that_code_names_exist() -> None:
    assert [f"{file}: {page}" for file, page in cited(PAGE) if not (ROOT / page).is_file()] == []


def test_names_in_docstrings_can_be_found() -> None:
    """A dotted name can be imported; any other is a module or is defined in one."""
    files = list((ROOT / "app").rglob("*.py"))
    names = {name for file in files for name in DEFINED.findall(file.read_text())} | {file.stem for file in files}
    missing = [
        f"{file}: {name}"
        for file, name in cited(NAME)
        if not (_is_importable(name) if name.startswith("app.") else name.split(".")[-1] in names)
    ]
    assert missing == []


def _is_importable(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True
