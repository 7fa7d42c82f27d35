"""Generates ``tests/contract/differences/README.md``: where answers differ from the recorded ones of the Go operators.

Source: ``tests/contract/differences/<family>.json``, by which the replay judges, with the reason of each difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DIFFERENCES = Path(__file__).resolve().parent.parent / "tests" / "contract" / "differences"
FAMILIES = {"llmkube": "LLMKube", "llmaz": "llmaz", "kserve": "KServe"}
_HEAD = """\
# Which recorded cases differ, and why?

`tests/contract` replays recorded situations of the Go operators. Differences that are expected anyway are listed with
the recordings; these are further ones, from the lists in this folder. A case is given by a
regular expression for its name (`^` is every case), or by the fact about it that decides.
"""


def page() -> str:
    """Return the whole page: what all families share, then a table for each."""
    rows = {family: list(dict.fromkeys(map(_row, _entries(family)))) for family in FAMILIES}
    shared = [row for row in rows["llmkube"] if all(row in others for others in rows.values())]
    family_rows = {FAMILIES[family]: [row for row in listed if row not in shared] for family, listed in rows.items()}
    return _HEAD + "".join(_table(title, table) for title, table in {"All families": shared, **family_rows}.items())


def _entries(family: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((DIFFERENCES / f"{family}.json").read_text(encoding="utf-8"))
    return entries


def _row(entry: dict[str, Any]) -> str:
    """Return a row of the table: the name or pattern of the cases, or else the fact that the rule depends on."""
    name = entry["when"].get("name", next(iter(entry["when"])))
    cases = name["regex"] if isinstance(name, dict) else name
    return " | ".join(cell.replace("|", "\\|") for cell in (f"`{cases}`", f"`{entry['path']}`", entry["why"]))


def _table(title: str, rows: Iterable[str]) -> str:
    return f"\n## {title}\n\n| Cases | Place | Why |\n|---|---|---|\n" + "".join(f"| {row} |\n" for row in rows)
