"""Argo CD's own code agrees with `Ready`: for every kind, and for every recorded state."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from tests.contract.recordings import RECORDINGS
from tests.e2e import neighbours
from tests.e2e.test_neighbours import SAID, recorded, state_of
from tests.world import argocd

pytestmark = [pytest.mark.e2e, pytest.mark.world("argocd")]

DELETED = "Pending deletion"
"""Argo CD's words for an object that is being deleted; it asks no script then."""


def _check(objects: list[Json], states: list[str]) -> None:
    """Argo CD says what the state asks for, in the words of our script, which its Lua tells in the other tests."""
    answers = zip(objects, states, argocd.verdicts(objects), neighbours.verdicts(objects), strict=True)
    for item, state, said, by_lua in answers:
        assert said == {**by_lua, **({"text": DELETED} if state == "deleted" else {})}, item
        assert (said["kstatus"], said["health"]) == SAID[state], item


def test_every_kind_in_every_state() -> None:
    cases = list(neighbours.in_every_state())
    _check([item for _, _, item in cases], [state for _, state, _ in cases])


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_recorded_state(recording: str) -> None:
    objects = recorded(recording)
    _check(objects, [state_of(item) for item in objects])


def test_a_kind_that_the_config_map_does_not_name() -> None:
    """Without our check Argo CD says nothing of our kinds."""
    _, _, item = next(neighbours.in_every_state())
    (said,) = argocd.verdicts([{**item, "kind": "Other"}])
    assert said["error"] == "no health check"


def test_the_page_has_the_answers() -> None:
    table = neighbours.table(argocd.verdicts)
    assert neighbours.TABLE.is_current(table, neighbours.seen()), "python -m tests.world.argocd"
