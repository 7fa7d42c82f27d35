"""Every intended difference from the recordings is explained to users."""

from __future__ import annotations

import json
import re

from app.upstream import FOLLOWED, table
from tests.contract.recordings import RECORDINGS, cases
from tests.contract.test_goldens import DIFFERENCES, ROOT
from tests.e2e.binaries import KUBERNETES_VERSION

PAGE = ROOT / "docs" / "compatibility.md"
RECORDED = ROOT / "docs" / "compatibility" / "recorded.md"


def declared() -> set[tuple[str, str]]:
    """Return the cases and the path of every difference in ``differences/``."""
    return {_row(entry) for file in sorted(DIFFERENCES.glob("*.json")) for entry in json.loads(file.read_text())}


def _row(entry: dict[str, object]) -> tuple[str, str]:
    """Return name or pattern of the cases, or else the fact that the rule depends on, and the path."""
    when = entry["when"]
    assert isinstance(when, dict)
    name = when.get("name", next(iter(when)))
    return (name["regex"] if isinstance(name, dict) else name), str(entry["path"])


def explained() -> dict[tuple[str, str], str]:
    """Return the reasons in the page's table, by cases and path."""
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \| (.+) \|$", RECORDED.read_text(), re.MULTILINE)
    return {(cases.replace("\\|", "|"), place): reason for cases, place, reason in rows}


def test_each_has_a_row_with_a_reason() -> None:
    """No row is about a difference that does not exist."""
    rows = explained()
    assert set(rows) == declared()
    assert all(len(reason) > 5 for reason in rows.values())


def test_followed_versions() -> None:
    """The page has the table of ``modelhooks --version``, whose numbers are those of the recordings."""
    assert f"\n\n{table()}\n\n" in PAGE.read_text()
    assert f"the tests run on {KUBERNETES_VERSION.removeprefix('v')}." in PAGE.read_text()
    assert [one.cases for one in FOLLOWED] == [len(cases(recording)) for recording in (*RECORDINGS, "kserve-0.20")]


def test_every_family_has_its_list() -> None:
    """A family without differences has an empty list."""
    assert {file.stem for file in DIFFERENCES.glob("*.json")} == {"llmkube", "llmaz", "kserve"}


def test_rules_about_arguments_name_them() -> None:
    """A rule for a whole command line would hide other differences in it. Overrides are one argument."""
    entries = json.loads((DIFFERENCES / "llmkube.json").read_text())
    whole = [entry for entry in entries if entry["path"].endswith("].args") and "arguments" not in entry]
    assert [entry["when"] for entry in whole] == [{"severalOverrides": True}]
