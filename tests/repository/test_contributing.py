"""The map of CONTRIBUTING leads somewhere."""

from __future__ import annotations

import re

import pytest

from tests.repository.test_readme import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
ROWS = re.findall(r"^\| (\S.*\?) \| (.+) \|$", PAGE, re.MULTILINE)


def test_ten_questions_are_answered() -> None:
    assert len(ROWS) >= 10


@pytest.mark.parametrize(("question", "answer"), ROWS, ids=[question for question, _ in ROWS])
def test_an_answer_names_at_most_two_files_that_are_there(question: str, answer: str) -> None:
    """``<family>`` and ``<kind>`` stand for any."""
    named = re.findall(r"`(app/[^`]+)`", answer)
    assert 1 <= len(named) <= 2
    for path in named:
        assert list(ROOT.glob(re.sub(r"<\w+>", "*", path).rstrip("/"))), path
