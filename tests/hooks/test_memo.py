"""The memo is bounded in size, and never affects an answer (decisions/0006)."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from app.desk.cluster.kinds import find
from app.desk.cluster.offline import NOW, World, settled
from app.desk.files.folders import read
from app.families import KINDS
from app.hooks.answer import answer_sync
from app.hooks.kind import Kind
from app.hooks.memo import MEMO, OVERHEAD, Memo, footprint, remembered
from app.hooks.reader import read_related
from app.hooks.sendable import Fault
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.limits import MAX_MEMO_ENTRY_BYTES, MEMO_BYTES
from app.settings import Settings
from app.workload.parts import GPURequest
from tests.corpus.kinds import VALID, cluster_of_all, name_of, parent
from tests.widgets import WidgetSpec

ROOT = Path(__file__).parents[2]


def forget() -> None:
    """Clear the memo, as in a new process."""
    MEMO.__init__()  # type: ignore[misc]  # empties the one that other modules imported


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    forget()
    yield
    forget()


def test_the_oldest_is_forgotten_first() -> None:
    """Entries are removed as soon as the sizes together exceed the budget."""
    memo = Memo(budget=10)
    for key in "abc":
        memo.put(key, 1, 4)
    assert [memo.get(key) for key in "abc"] == [None, 1, 1]


def test_what_is_larger_than_the_budget_is_not_kept() -> None:
    """It evicts no other entry."""
    memo = Memo(budget=10)
    memo.put("small", 1, 1)
    memo.put("large", 2, 11)
    assert (memo.get("small"), memo.get("large")) == (1, None)
    memo.put("rest", 3, 9)
    assert (memo.get("small"), memo.get("rest")) == (1, 3)
    memo.put("whole", 4, 10)
    assert (memo.get("small"), memo.get("rest"), memo.get("whole")) == (None, None, 4)


def test_an_entry_has_a_part_of_the_budget() -> None:
    memo = Memo(budget=8 * MAX_MEMO_ENTRY_BYTES)
    memo.put("largest", 1, MAX_MEMO_ENTRY_BYTES)
    memo.put("larger", 2, MAX_MEMO_ENTRY_BYTES + 1)
    assert (memo.get("largest"), memo.get("larger")) == (1, None)


def test_a_value_is_as_large_as_what_it_holds() -> None:
    text = "x" * 10_000
    objects = SimpleNamespace(a=text), Fault("", text), GPURequest(1, text)
    for value in (text, [text], {text: 1}, {"a": text}, (text,), {text}, *objects):
        assert 10_000 < footprint(value) < 11_000


def test_a_key_keeps_its_first_value() -> None:
    """A pure function has one result per input."""
    memo = Memo()
    memo.put("key", 1, 1)
    memo.put("key", 2, 1)
    assert (memo.get("key"), memo._held) == (1, 1)


def test_threads_may_share_it() -> None:
    """Threads evict each other's entries: the total size remains the sum of the entries, and nothing is raised."""
    memo = Memo(budget=50)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(10_000):
                memo.put((number % 2, turn), turn, 1)
                assert memo.get((number % 2, turn)) in (None, turn)
        except BaseException as error:  # noqa: BLE001 - reported by the assertion below
            errors.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(usual)
    assert not any(thread.is_alive() for thread in threads)
    assert (errors, memo._held, len(memo._entries)) == ([], 50, 50)


def test_remembers_only_results_that_are_worth_it() -> None:
    """A result that is not worth remembering takes no space."""
    calls: list[int] = []

    def make() -> int:
        calls.append(1)
        return len(calls)

    assert [remembered(("a",), make, lambda _: False) for _ in range(2)] == [1, 2]
    assert [remembered(("a",), make, lambda _: True) for _ in range(2)] == [3, 3]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "spec",
    [
        {"size": "small"},
        {"size": "small", "env": [{"name": f"V{n}"} for n in range(500)]},
        {"size": "small", "other": [[] for _ in range(5000)]},
        {"size": "small", "other": {f"k{n}": {"a": n} for n in range(3000)}},
        {"size": "small", "other": "ü" * 50_000},
    ],
    ids=["small", "env", "lists", "maps", "text"],
)
def test_an_entry_counts_what_it_takes(spec: Json) -> None:
    """The size includes key and value; it is at least what the interpreter measures, and not many times more."""
    raw = orjson.dumps(spec)
    read_related(raw, WidgetSpec)  # creates what is created once
    forget()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        read_related(bytes(bytearray(raw)), WidgetSpec)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken <= MEMO._held <= 4 * taken + 2 * OVERHEAD


@pytest.mark.no_cover
def test_distinct_requests_do_not_grow_it() -> None:
    """Each of many specs is read once."""
    for number in range(4000):
        read_related(orjson.dumps({"size": "small", "name": "a", "other": "x" * 4000, "n": number}), WidgetSpec)
    assert MEMO_BYTES * 0.9 < MEMO._held <= MEMO_BYTES
    assert footprint(MEMO._entries) <= 1.6 * MEMO_BYTES


# The memo affects only time.

LLM = "serving.kserve.io/LLMInferenceService"
SEES_METADATA = [
    "{{ if index .Labels `x` }}{{ .Bogus }}{{ end }}",
    "{{ if index .Annotations `x` }}{{ .Bogus }}{{ end }}",
    "{{ if eq .Generation 2 }}{{ .Bogus }}{{ end }}",
    "{{ if eq .UID `v` }}{{ .Bogus }}{{ end }}",
    "{{ if eq .Name `other` }}{{ .Bogus }}{{ end }}",
    "{{ if eq .Namespace `other` }}{{ .Bogus }}{{ end }}",
    "{{ if eq .GenerateName `g` }}{{ .Bogus }}{{ end }}",
    "{{ if .Finalizers }}{{ .Bogus }}{{ end }}",
]


def specs(kind: Kind[Any, Any]) -> Iterator[Json]:
    """Yield valid specs, and specs whose verdict depends on metadata."""
    valid = VALID[name_of(kind)]
    yield valid
    yield {**valid, "unknown": True}
    yield {"source": 5}
    if name_of(kind) == LLM:
        for text in SEES_METADATA:
            yield {**valid, "template": {"containers": [{"name": "main", "args": [text]}]}}


METADATA: list[Json] = [
    {"name": "other"},
    {"namespace": "other"},
    {"labels": {"x": "1"}},
    {"annotations": {"x": "1"}},
    {"annotations": {"serving.kserve.io/stop": "true"}},
    {"generation": 2},
    {"uid": "v"},
    {"generateName": "g"},
    {"finalizers": ["example.com/f"]},
    {"creationTimestamp": "2026-01-01T00:00:00Z"},
    {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n", "controller": True}]},
]


def requests(kind: Kind[Any, Any]) -> Iterator[bytes]:
    """Yield sync requests that each differ in one input: of the parent, or of a related object."""
    cluster = cluster_of_all()
    for spec in specs(kind):
        plain = orjson.loads(cluster.request(kind, parent(kind, spec)))
        yield orjson.dumps(plain)
        for over in METADATA:
            changed = {**plain["parent"], "metadata": {**plain["parent"]["metadata"], **over}}
            yield orjson.dumps({**plain, "parent": changed, "children": {key: {} for key in plain["children"]}})
        yield orjson.dumps({**plain, "parent": {**plain["parent"], "status": {"annotations": {"a": "b"}}}})
        for outer, group in plain["related"].items():
            for inner, related in group.items():
                for over in ({"spec": {}}, {"status": {}}, {"metadata": {**related["metadata"], "labels": {"x": "1"}}}):
                    other = {**plain["related"], outer: {**group, inner: {**related, **over}}}
                    yield orjson.dumps({**plain, "related": other})


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_every_input_counts(kind: Kind[Any, Any]) -> None:
    """Each of these requests has one answer: in both orders, and with or without the memo. There are two settings."""
    everything = list(requests(kind))
    variants = [Settings(), Settings(llmkube_allowed_source_hosts=(), kserve_config_prefix="other-")]

    def answers(order: list[bytes], before: Callable[[], None]) -> dict[tuple[bytes, int], bytes]:
        answered = {}
        for body in order:
            for number, settings in enumerate(variants):
                before()
                answered[body, number] = answer_sync(kind, body, settings, NOW)
        return answered

    alone = answers(everything, forget)
    assert len(set(alone.values())) > 1
    assert answers(everything, lambda: None) == alone
    assert answers(everything[::-1], lambda: None) == alone


@pytest.mark.parametrize("family", ["llmkube", "llmaz", "kserve"])
def test_answers_are_the_same_bytes_with_and_without(family: str) -> None:
    """For the shipped examples with all their children."""
    files = [str(f) for f in sorted((ROOT / "examples" / family).glob("*.yaml"))]
    cluster = settled(read([*files, str(ROOT / "manifests" / "llmaz-runtimes")]), World())
    settings = Settings()
    checked = 0
    for document in cluster.objects.values():
        kind = find(document["apiVersion"], document["kind"])
        if kind is not None:
            body = cluster.request(kind, document)
            answers = [answer_sync(kind, body, settings, NOW) for _ in range(2)]
            forget()
            assert {*answers, answer_sync(kind, body, settings, NOW)} == {answers[0]}
            checked += LAST_APPLIED.encode() in body or not kind.resource.children
    assert checked
