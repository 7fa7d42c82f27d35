"""Many objects are divided among processes: the output stays the same, and so do errors."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

import pytest

from app.desk import processes
from app.desk.cluster import parts
from app.desk.cluster.offline import direct
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import Store, key_of, stored
from app.kube.base import Json
from app.settings import Settings
from tests.bench.desk import thousand
from tests.cli.files import Command, service


@pytest.fixture
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide any number of objects among three processes."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(processes, "MANY", 0)
    monkeypatch.setattr(sys, "platform", "linux")


def test_divides_many_objects_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    items = [*range(processes.MANY + 1)]
    assert processes.shares(items[1:]) == [items[1:]]
    assert processes.shares([]) == [[]]
    assert [len(share) for share in processes.shares(items)] == [67, 67, 67]
    assert [item for share in processes.shares(items) for item in share] == items


@pytest.mark.usefixtures("three_cores")
def test_divides_nothing_beside_other_threads() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert processes.shares([1, 2, 3]) == [[1, 2, 3]]
    finally:
        done.set()
        thread.join()


@pytest.mark.usefixtures("three_cores")
def test_keeps_the_order_and_leaves_no_process() -> None:
    pids = processes.each([*range(9)], lambda item: (item, os.getpid()), "objects")
    assert [item for item, _ in pids] == [*range(9)]
    assert len({pid for _, pid in pids}) == 3
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("three_cores")
def test_does_again_what_a_process_did_not_finish() -> None:
    here = os.getpid()

    def killed_elsewhere(item: int) -> int:
        if os.getpid() != here:
            os._exit(9)
        return item

    assert processes.each([*range(9)], killed_elsewhere, "objects") == [*range(9)]


@pytest.mark.usefixtures("three_cores")
def test_does_again_what_a_process_sent_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed while it sends leaves the beginning of a message."""

    def send_in_part(end: Connection, result: object) -> None:
        os.write(end.fileno(), (100).to_bytes(4, "big") + b"the beginning")
        os._exit(9)

    monkeypatch.setattr(Connection, "send", send_in_part)
    assert processes.each([*range(9)], lambda item: item, "objects") == [*range(9)]


@pytest.mark.usefixtures("three_cores")
def test_raises_the_error_of_a_process() -> None:
    with pytest.raises(ValueError, match="of the first"):
        processes.each([1, 2, 3], lambda item: item if item > 1 else int("of the first"), "objects")
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("three_cores")
def test_an_interrupt_leaves_no_process() -> None:
    here = os.getpid()

    def interrupted_here(item: int) -> int:
        if os.getpid() == here:
            raise KeyboardInterrupt
        threading.Event().wait()
        return item

    with pytest.raises(KeyboardInterrupt):
        processes.each([1, 2, 3], interrupted_here, "objects")
    assert not multiprocessing.active_children()


Divided = Callable[[], bool]


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Divided:
    """Report whether the last cluster settled in parts."""
    answers: list[bool] = []
    real = parts._are_apart

    def noted(shares: Sequence[Sequence[parts._Seen]]) -> bool:
        answers.append(real(shares))
        return answers[-1]

    monkeypatch.setattr(parts, "_are_apart", noted)
    return lambda: answers[-1]


@pytest.mark.parametrize("words", [["validate"], ["render", "--status"], ["explain", "--all"], ["diff"]])
def test_the_output_is_the_same(
    command: Command, words: list[str], divided: Divided, request: pytest.FixtureRequest
) -> None:
    objects = thousand(34)
    old = command.file("old.yaml", *objects)
    files = [old, command.file("new.yaml", *_changed(objects))] if words == ["diff"] else [old]
    arguments = [*words, *files, "--with", "manifests/llmaz-runtimes"]
    alone = command(*arguments)
    request.getfixturevalue("three_cores")
    assert command(*arguments) == alone
    assert alone.out or words == ["validate"]
    assert words == ["validate"] or divided()


def _changed(objects: list[Json]) -> list[Json]:
    """Return other objects: the first are gone, the last new, and services have one more variable."""
    variable = {"env": [{"name": "TEAM", "value": "b"}]}
    return [
        {**one, "spec": {**one["spec"], **variable}} if one["kind"] == "InferenceService" else one
        for one in [*objects[3:], *thousand(40)[34:]]
    ]


def _put(name: str, kind: str = "ConfigMap", **labels: str) -> Json:
    group = "inference.llmkube.dev/v1alpha1" if kind == "Model" else "v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "default", "labels": labels}}


@pytest.mark.usefixtures("three_cores")
@pytest.mark.parametrize(
    ("made", "shares"),
    [
        (lambda name: _put(f"of-{name}"), 3),
        (lambda _: _put("of-all"), 3),
        (lambda name: _put("of-all", by=name), 1),
        (lambda name: _put("m" if name == "c" else name, "Model"), 1),
    ],
    ids=["different", "same", "one object in different forms", "what another object reads"],
)
def test_parts_that_would_see_each_other_settle_as_one_cluster(made: Callable[[str], Json], shares: int) -> None:
    objects = {name: stored(service(name=name), "default") for name in ("a", "b", "c")}
    cluster = Cluster(direct(Settings()), objects=Store({key_of(one): one for one in objects.values()}))

    def work(clusters: Sequence[Cluster], share: Sequence[str], watch: parts.Watch) -> list[str]:
        settled = clusters[0].copy()
        for name in share:
            settled.put(made(name))
        watch(settled)
        return [*share]

    found = parts.results([cluster], {name: key_of(one) for name, one in objects.items()}, work)
    assert len(found) == shares
    assert [name for names in found for name in names] == ["a", "b", "c"]
