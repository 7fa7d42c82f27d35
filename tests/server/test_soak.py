"""The loads of ``make soak``, each for a moment; they must distinguish correct from wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import repeat

import pytest

from tests.bench import soak
from tests.service import Service


@pytest.fixture(scope="module")
def target() -> Iterator[Service]:
    with soak.encrypted() as server:
        yield server


@pytest.mark.parametrize("calls", [soak.ordinary, soak.all_protocols, soak.large_reviews, soak.large_syncs])
def test_every_answer_is_as_expected(target: Service, calls: Callable[[], Iterator[soak.Call]]) -> None:
    """Over TLS, with connections that are reused and with new ones."""
    for reuse in (True, False):
        tally = soak.drive(target, calls(), 2, 4, 1, reuse=reuse)
        assert tally.latencies
        assert (tally.wrong, tally.shed) == ([], 0)


def test_ever_new_objects_of_all_kinds(target: Service) -> None:
    """Reviews and syncs of every kind are answered correctly, and all requests differ."""
    calls = list(soak.varied(64))
    assert len({call.body for call in calls}) == 64
    tally = soak.drive(target, iter(calls), 2, 0, 60)
    assert (len(tally.latencies), tally.wrong, tally.shed) == (64, [], 0)


def test_a_wrong_answer_is_seen(target: Service) -> None:
    """The denial of a valid object, and a response that is not an answer, are reported."""
    right = soak.reviewed(1, valid=True)
    denied = soak.reviewed(1, valid=False)
    for call in (replace(denied, verdict=right.verdict), replace(right, path="/nowhere")):
        assert len(soak.drive(target, repeat(call), 1, 4, 0.9).wrong) >= 1
