"""What is at rest stays as it is: a later sync of the same observation changes no object."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest

from app.kube.base import Json
from tests.contract.recordings import RECORDINGS, replayed
from tests.contract.test_goldens import settings
from tests.contract.world import World
from tests.hookcalls import NOW

pytestmark = pytest.mark.no_cover

HOUR = timedelta(hours=1)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_later_sync_writes_nothing(recording: str) -> None:
    """After an hour, by which every wait has ended."""
    moved = [case["name"] for case in replayed(recording) if "objects" in case and _moves(case)]
    assert moved == []


def _moves(case: Json) -> bool:
    clock = [NOW]
    world = World(case, settings(case), clock=lambda: clock[0])
    seen = []
    for _ in range(3):
        world.run()
        if any((item.get("status") or {}).get("failed") for item in world.objects.values() if item["kind"] == "Job"):
            return False  # a failed download is tried again, by another Job
        seen.append(orjson.dumps([*world.objects.values()], option=orjson.OPT_SORT_KEYS))
        clock[0] += HOUR
        world.cluster.answers.clear()  # it asks the hooks again although nothing but the clock has changed
    return seen[1] != seen[2]
