"""What is remembered is bounded, and never shows in an answer (decision record 6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.manifests import read
from app.cli.offline import NOW, settled
from app.families import find
from app.hooks.kind import answer_sync
from app.hooks.memo import Memo
from app.settings import Settings

ROOT = Path(__file__).parents[3]


def test_the_oldest_is_forgotten_first() -> None:
    """Entries leave as soon as the sizes together exceed the budget."""
    memo: Memo[int] = Memo(budget=10)
    for key in "abc":
        memo.put(key, 1, 4)
    assert [memo.get(key) for key in "abc"] == [None, 1, 1]


def test_what_is_larger_than_the_budget_is_not_kept() -> None:
    """And nothing makes room for it."""
    memo: Memo[int] = Memo(budget=10)
    memo.put("small", 1, 1)
    memo.put("large", 2, 11)
    assert (memo.get("small"), memo.get("large")) == (1, None)


def test_a_key_keeps_its_first_value() -> None:
    """Two results for one input would not be a pure function's."""
    memo: Memo[int] = Memo()
    memo.put("key", 1, 1)
    memo.put("key", 2, 1)
    assert memo.get("key") == 1


@pytest.mark.parametrize("family", ["llmkube", "llmaz", "kserve"])
def test_answers_are_the_same_bytes_with_and_without(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has seen everything before, and one that remembers nothing."""
    files = [str(f) for f in sorted((ROOT / "examples" / family).glob("*.yaml"))]
    cluster = settled(read([*files, str(ROOT / "manifests" / "llmaz-runtimes")]), "default")
    settings, requests = Settings(), []
    for document in cluster.objects.values():
        kind = find(document["apiVersion"], document["kind"])
        if kind is not None:
            requests.append((kind, cluster.request(kind, document)))
    assert requests

    def answers() -> list[bytes]:
        return [answer_sync(kind, body, settings, NOW) for kind, body in requests]

    answers()
    warm = answers()
    monkeypatch.setattr(Memo, "get", lambda _self, _key: None)
    assert answers() == warm
