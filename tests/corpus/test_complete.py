"""No line of the corpus (reliability, section 6) is without a test: each is named beside its test, or accounted for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shared import SHARED, needs_shared

TESTS = Path(__file__).parents[1]
CORPUS = SHARED / "spec" / "reliability.md"

ELSEWHERE: dict[str, tuple[str, str]] = {
    **{row: ("server/test_slow_clients.py", row) for row in ("T01", "T02", "T03", "T04")},
    "T29": ("server/test_tls.py", "test_t29_"),
    "M20": ("unit/server/test_endpoint.py", "test_overload_is_429_with_an_integer_retry_after"),
    "M21": ("unit/server/test_endpoint.py", "test_faults"),
}
"""Lines that need a clock, certificates or a fault of their own: the file that has their test, and its name there."""

NOT_APPLICABLE: dict[str, str] = {}
"""Lines that nothing here can be asked about, each with the reason."""


def rows() -> list[str]:
    """The ids in the first column of the corpus' tables, as many as it says there are."""
    _, _, rest = CORPUS.read_text().partition("\n## 6. ")
    section, _, _ = rest.partition("\n## ")
    found = re.findall(r"^\| ([A-Z][0-9]{2}) \|", section, re.MULTILINE)
    assert re.findall(r"= \*\*([0-9]+)\*\* cases", section) == [str(len(set(found)))]
    return found


_NAMED = re.compile(r"""def test_([a-z][0-9]{2})_|["']([A-Z][0-9]{2})[ "']""")


def named() -> set[str]:
    """Ids as they stand in names of tests and of cases: ``test_x17_...`` and ``"X17 sidecar"``."""
    texts = (path.read_text() for path in (TESTS / "corpus").glob("*.py") if path.name != Path(__file__).name)
    return {(test or case).upper() for text in texts for test, case in _NAMED.findall(text)}


@needs_shared
def test_every_line_has_a_test() -> None:
    """Or says where it is tested, or why it is not."""
    assert set(rows()) - named() - ELSEWHERE.keys() - NOT_APPLICABLE.keys() == set()


@pytest.mark.parametrize("row", ELSEWHERE)
def test_what_is_tested_elsewhere_is(row: str) -> None:
    """Under that name, in that file."""
    file, name = ELSEWHERE[row]
    assert name in (TESTS / file).read_text()
