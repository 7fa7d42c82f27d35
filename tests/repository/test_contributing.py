"""The map of CONTRIBUTING leads to files that exist."""

from __future__ import annotations

import re

import pytest

from tests.repository.test_readme import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
ROWS = dict(re.findall(r"^\| … (.+?) \| (.+) \|$", PAGE, re.MULTILINE))
NEWCOMER = {
    "tensor-parallel": "--tensor-parallel-size",
    "add a field": "description=",
    "add a runtime": "RUNTIMES",
    "RollingOut": '"RollingOut"',
    "body": "max_sync_bytes",
    "HorizontalPodAutoscaler of llmaz": "def horizontal_pod_autoscaler",
    "several fields": "yield",
    "finalize": "finalize",
    "name of a child": "_name(",
    "token Secret": "hf_token_secret_ref",
    "CRDs are generated": "def custom_resource_definition",
    "metric": "Counter(",
    "downloader's image": "DOWNLOADER",
    "restarts pods": "def keep_template",
}
"""A phrase of each question, and a word that one of the files in the answer must contain."""


def files(answer: str) -> list[str]:
    """Return the paths that an answer names."""
    return re.findall(r"`((?:app|tools)/[^`]+)`", answer)


def contents(pattern: str) -> str:
    """Return the contents of all files that match a path, in which ``<family>`` and ``<kind>`` match any name."""
    matches = [path for path in ROOT.glob(re.sub(r"<\w+>", "*", pattern).rstrip("/")) if path.is_file()]
    return "\n".join(path.read_text() for path in matches)


@pytest.mark.parametrize(("question", "answer"), ROWS.items(), ids=ROWS)
def test_an_answer_names_at_most_two_files_that_exist(question: str, answer: str) -> None:
    assert 1 <= len(files(answer)) <= 2
    for path in files(answer):
        assert list(ROOT.glob(re.sub(r"<\w+>", "*", path).rstrip("/"))), path


@pytest.mark.parametrize(("asked", "word"), NEWCOMER.items(), ids=NEWCOMER)
def test_a_newcomers_question_leads_to_the_code(asked: str, word: str) -> None:
    """Exactly one row answers it, and one of its files has the code."""
    (answer,) = (answer for question, answer in ROWS.items() if asked in question)
    assert any(word in contents(path) for path in files(answer))
