"""How the stand-in decodes answers of hooks, and which objects its rules select."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.standin.children import SyncError, aggregate
from tests.e2e.standin.customize import check_rule
from tests.e2e.standin.hooks import Connection, HookError, Webhook, webhook_url
from tests.e2e.standin.queue import WorkQueue
from tests.e2e.standin.selectors import label_selector, selector_text


@pytest.fixture
def hook() -> Iterator[Webhook]:
    made = Webhook("sync", {"version": "v2", "webhook": {"url": "http://127.0.0.1:1/sync"}}, Connection())
    yield made
    asyncio.run(made.close())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b"oops", "invalid character 'o' looking for beginning of value"),
        (b"[]", "json: cannot unmarshal array into Go value of type v2.CompositeHookResponse"),
        (b'{"children":[{"metadata":{}}]}', "Object 'Kind' is missing in"),
        (b'{"resyncAfterSeconds":"5"}', "CompositeHookResponse.resyncAfterSeconds of type float64"),
        (b'{"status":[]}', "cannot unmarshal array into Go struct field CompositeHookResponse.status"),
        (b'{"status":{"a":NaN}}', "invalid character 'N' looking for beginning of value"),
        (b'{"Children":[]}', 'unknown field "Children"'),
        (b'{"children":[],"children":[]}', 'duplicate field "children"'),
    ],
)
def test_an_answer_that_is_refused(hook: Webhook, body: bytes, message: str) -> None:
    with pytest.raises(HookError) as refused:
        hook.decode_sync(body)
    assert message in str(refused.value)


@pytest.mark.parametrize("body", [b"{}", b"null", b'{"children":null}', b'{"status":null,"resyncAfterSeconds":null}'])
def test_an_answer_without_children_is_one_with_none(hook: Webhook, body: bytes) -> None:
    answer = hook.decode_sync(body)
    assert (answer.children, answer.status, answer.finalized) == ([], {}, False)


def test_accepts_duplicate_keys_inside_a_child(hook: Webhook) -> None:
    (child,) = hook.decode_sync(b'{"children":[{"kind":"A","data":{"a":1,"a":2}}]}').children
    assert child == {"kind": "A", "data": {"a": 2}}


def test_the_url_of_a_service_has_port_80_and_no_svc() -> None:
    service = {"service": {"name": "hooks", "namespace": "system"}, "path": "/sync?rev=1"}
    assert webhook_url(service) == "http://hooks.system:80/sync?rev=1"


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        (None, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
    ],
)
def test_label_selectors(selector: dict[str, Any] | None, labels: dict[str, str], matches: bool) -> None:
    assert label_selector(selector)(labels) is matches


def test_the_textual_form_of_a_selector() -> None:
    selects = selector_text("shard=a, tier!=gpu, app")
    assert selects({"shard": "a", "app": "x"})
    assert not selects({"shard": "a", "app": "x", "tier": "gpu"})
    assert selector_text("")({})


@pytest.mark.parametrize(
    "rule",
    [
        {"names": ["a"], "labelSelector": {}},
        {"names": ["a"], "namespaceSelector": {}},
        {"namespace": "a", "namespaceSelector": {}},
    ],
)
def test_rules_that_mean_nothing(rule: dict[str, Any]) -> None:
    with pytest.raises(SyncError):
        check_rule(rule)


def test_messages_are_joined_as_go_joins_them() -> None:
    assert aggregate(["a"]) == "a"
    assert aggregate(["a", "b", "a"]) == "[a, b]"


def test_a_key_has_one_timer_which_only_moves_forward() -> None:
    async def moments() -> list[float]:
        queue, clock = WorkQueue(), asyncio.get_running_loop().time
        began = clock()
        queue.add_after("a", 0.2)
        queue.add_after("a", 0.05)
        queue.add_after("a", 5.0)
        queue.add("a")
        seen = []
        for _ in range(2):
            queue.done(await queue.get())
            seen.append(clock() - began)
        queue.stop()
        return seen

    first, second = asyncio.run(moments())
    assert first < 0.04
    assert 0.04 < second < 0.19


def test_a_key_that_is_worked_on_runs_once_more() -> None:
    async def runs() -> int:
        queue = WorkQueue()
        queue.add("a")
        key = await queue.get()
        queue.add("a")
        queue.add("a")
        queue.done(key)
        queue.done(await queue.get())
        return queue._ready.qsize()

    assert asyncio.run(runs()) == 0


def test_the_backoff_doubles_until_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    monkeypatch.setattr(WorkQueue, "add_after", lambda _, __, delay: delays.append(delay))
    queue = WorkQueue()
    for _ in range(4):
        queue.add_rate_limited("a")
    queue.forget("a")
    queue.add_rate_limited("a")
    assert delays == [0.005, 0.01, 0.02, 0.04, 0.005]
