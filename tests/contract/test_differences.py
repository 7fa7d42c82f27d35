"""Every intended difference from the recordings has its reason."""

from __future__ import annotations

import json

from app.upstream import FOLLOWED, table
from tests.contract.recordings import RECORDINGS, cases
from tests.contract.test_goldens import DIFFERENCES, ROOT
from tests.e2e.binaries import KUBERNETES_VERSION

PAGE = ROOT / "docs" / "compatibility.md"


def test_each_has_a_reason() -> None:
    entries = [entry for file in sorted(DIFFERENCES.glob("*.json")) for entry in json.loads(file.read_text())]
    assert len(entries) > 300
    assert [entry for entry in entries if len(entry["why"].split()) < 2] == []


def test_the_page_has_the_versions_that_are_followed() -> None:
    """The page has the table of ``modelhooks --version``, whose numbers are those of the recordings."""
    assert f"\n\n{table()}\n\n" in PAGE.read_text()
    assert f"the tests run on {KUBERNETES_VERSION.removeprefix('v')}." in PAGE.read_text()
    assert [followed.cases for followed in FOLLOWED] == [
        len(cases(recording)) for recording in (*RECORDINGS, "kserve-0.20")
    ]


def test_every_family_has_its_list() -> None:
    """A family without differences has an empty list."""
    assert {file.stem for file in DIFFERENCES.glob("*.json")} == {"llmkube", "llmaz", "kserve"}


def test_rules_about_arguments_name_them() -> None:
    """A rule for a whole command line would hide other differences in it. Overrides are one argument."""
    entries = json.loads((DIFFERENCES / "llmkube.json").read_text())
    whole = [entry for entry in entries if entry["path"].endswith("].args") and "arguments" not in entry]
    assert [entry["when"] for entry in whole] == [{"severalOverrides": True}]
