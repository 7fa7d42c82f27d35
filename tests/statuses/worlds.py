"""Clusters at rest, made of the recorded situations of the three families."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache

from app.desk.cluster.simulate import Cluster
from tests.contract.recordings import replayed
from tests.contract.test_goldens import settings
from tests.contract.world import World
from tests.hookcalls import NOW

FAMILIES = ("llmkube", "llmaz", "kserve")
SERVING = ("InferenceService", "Model", "Playground", "Service", "LLMInferenceService")
"""Kinds of parents whose status tells whether something serves."""
MOST = int(os.environ.get("MODELHOOKS_STATUS_WORLDS", "30"))
"""Number of situations of each family, spread over all of them."""


@dataclass
class Clock:
    """The clock of the hooks, which a test moves."""

    now: datetime = field(default=NOW)


CLOCK = Clock()


@lru_cache(maxsize=1)
def _cases(family: str) -> list[dict[str, object]]:
    return [case for case in replayed(family) if "objects" in case]


@lru_cache
def chosen(family: str) -> tuple[int, ...]:
    """Return the numbers of the situations to try, evenly spread."""
    count = len(_cases(family))
    return tuple(range(0, count, max(1, count // MOST)))


@cache
def _at_rest(family: str, number: int) -> World | None:
    case = {**_cases(family)[number], "live": True}
    world = World(case, settings(case), complete=number % 2 == 0, clock=lambda: CLOCK.now)
    try:
        world.run()
    except AssertionError:  # a recorded situation without a fixed point: its controllers contradict each other
        return None
    return world if any(parent["kind"] in SERVING for _, parent in world.cluster.parents()) else None


def at_rest(family: str, number: int) -> Cluster | None:
    """Return a copy of the settled cluster of one situation; ``None`` for one in which nothing serves."""
    CLOCK.now = NOW
    if (world := _at_rest(family, number)) is None:
        return None
    world.answers.clear()  # of the test before
    return world.cluster.copy()
