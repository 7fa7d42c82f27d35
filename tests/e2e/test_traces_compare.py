"""Tests of the comparison of traces: which differences are accepted. No cluster is needed."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from tests.e2e.traces.compare import Memory, Seen, differences

REFUSED: Json = {"verb": "update", "resource": "services", "name": "ns/w", "code": 422}
OTHER: Json = {**REFUSED, "resource": "deployments"}
ACCEPTED: Json = {**REFUSED, "code": 200, "object": {}}


def step(*writes: Json) -> Json:
    return {"requests": [], "writes": list(writes), "events": [], "objects": []}


def seen(*writes: Json) -> Seen:
    return Seen([], list(writes), {}, {}, {}, died=False)


@pytest.mark.parametrize(
    ("former", "here", "found"),
    [
        ([REFUSED], [REFUSED, ACCEPTED], 0),
        ([OTHER], [REFUSED, ACCEPTED], 1),
        ([], [REFUSED, ACCEPTED], 1),
        ([REFUSED], [REFUSED], 1),
    ],
)
def test_a_refused_write_may_be_tried_again_in_the_next_step(former: list[Json], here: list[Json], found: int) -> None:
    """The number of retries depends on the back-off; any other refused write must have been recorded."""
    memory = Memory()
    memory.remember(step(*former), seen(*former))
    assert len(differences(step(ACCEPTED), seen(*here), memory)) == found


def test_a_recorded_refusal_has_to_come() -> None:
    memory = Memory()
    memory.remember(step(REFUSED), seen(REFUSED))
    assert len(differences(step(REFUSED), seen(), memory)) == 1
