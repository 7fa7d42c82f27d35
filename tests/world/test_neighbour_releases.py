"""The page about optional kinds has what the CRDs of other projects' releases make of our children."""

from __future__ import annotations

import pytest

from tests.e2e import neighbour_releases
from tests.world import programs

pytestmark = [pytest.mark.e2e, pytest.mark.world]


@pytest.mark.skipif(not programs.REQUIRED, reason="downloads twenty modules (make world-test)")
def test_the_page_has_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODELHOOKS_KSERVE_PRESETS")
    answers = neighbour_releases.table(neighbour_releases.distinct_children("default"))
    assert neighbour_releases.TABLE.is_current(answers, neighbour_releases.seen()), (
        "python -m tests.e2e.neighbour_releases"
    )
