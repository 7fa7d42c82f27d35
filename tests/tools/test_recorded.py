"""The page of recorded cases that differ."""

import json

from tools import recorded


def test_each_difference_has_its_row() -> None:
    rows = recorded.page().splitlines()
    for family in recorded.FAMILIES:
        for entry in json.loads((recorded.DIFFERENCES / f"{family}.json").read_text()):
            place, why = (str(entry[key]).replace("|", "\\|") for key in ("path", "why"))
            assert any(row.endswith(f" | `{place}` | {why} |") for row in rows), entry


def test_what_all_families_share_stands_once() -> None:
    page = recorded.page()
    assert page.count("| `^` | `**.terminationMessagePolicy` |") == 1
    assert page.index("## All families") < page.index("terminationMessagePolicy") < page.index("## LLMKube")
