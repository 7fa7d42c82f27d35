"""The page of findings: a section for each id, with an example that is one."""

import pytest

from app.desk.cluster.single import ERROR_IDS
from app.desk.files.findings import PAGE, rules
from tools.findings import EXAMPLES, ROOT

SECTIONS = [line for line in (ROOT / "docs" / "findings.md").read_text().splitlines() if line.startswith("## ")]


def test_every_id_has_a_section_and_an_example() -> None:
    assert [f"## {id_}" for id_ in rules()] == SECTIONS
    assert EXAMPLES.keys() == rules().keys()
    assert set(ERROR_IDS.values()) <= rules().keys()
    assert PAGE.endswith("/docs/findings.md")


@pytest.mark.parametrize("id_", EXAMPLES)
def test_an_example_is_a_finding_until_it_is_corrected(id_: str) -> None:
    example = EXAMPLES[id_]
    assert id_ in [finding.id for finding in example.findings(example.wrong)]
    assert example.findings(example.right) == []
