"""Hot loops: what resyncs of the examples at rest write, beside the newest and the oldest releases of other projects.

Ten resyncs of a hundred objects take minutes on a busy machine, so these are no tests of CI.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.neighbour_releases import newest_crds
from tests.world import programs
from tests.world.resyncs import TABLE, examples_at_rest, oldest_crds, remaining_writes, seen, table

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.world,
    pytest.mark.skipif(not programs.REQUIRED, reason="takes minutes on a busy machine (make world-test)"),
]


@pytest.fixture(autouse=True)
def _default_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take KServe's presets that users get, not those of the recordings."""
    monkeypatch.delenv("MODELHOOKS_KSERVE_PRESETS")


def test_ten_resyncs_write_nothing(tmp_path: Path) -> None:
    with examples_at_rest(tmp_path, newest_crds()) as at_rest:
        assert remaining_writes(at_rest) == Counter()


def test_the_page_has_what_resyncs_write_beside_the_oldest_releases(tmp_path: Path) -> None:
    """The status names what each of these writes is about."""
    with examples_at_rest(tmp_path, oldest_crds()) as at_rest:
        assert TABLE.is_current(table(at_rest), seen()), "python -m tests.world.resyncs"
