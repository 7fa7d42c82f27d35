"""The search of ``make bench`` for expensive requests, run briefly; an error that it finds is a bug."""

from __future__ import annotations

from typing import Any

import pytest

from app.families import KINDS
from app.hooks.kind import Kind
from tests.bench import search
from tests.bench.longlists import LONG_LISTS
from tests.corpus.kinds import name_of

pytestmark = pytest.mark.no_cover


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids=name_of)
def test_a_search_finds_no_fault(kind: Kind[Any, Any]) -> None:
    """A few requests of a kind, which are the same in each run and all different."""
    result = search.search(kind, 12)
    assert (result.requests, result.faults) == (12, [])
    assert result.cpu.what


def test_the_longest_lists_have_no_fault() -> None:
    kinds = {name_of(kind): search.long_lists(kind) for kind in KINDS if name_of(kind) in LONG_LISTS}
    assert kinds.keys() == LONG_LISTS.keys()
    assert {name: (result.requests, result.faults) for name, result in kinds.items()} == {
        name: (2 * len(specs), []) for name, specs in LONG_LISTS.items()
    }


def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exception except a refusal is reported."""

    def fail(*_: object) -> bytes:
        raise RecursionError

    monkeypatch.setattr(search, "answer_sync", fail)
    monkeypatch.setattr("app.admission.review.answer", fail)
    monkeypatch.setattr(search, "answer_customize", fail)
    result = search.search(KINDS[0], 3)
    assert len(result.faults) == 3
    assert not result.within_budget
