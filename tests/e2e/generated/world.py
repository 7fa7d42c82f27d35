"""Generated objects passed through admission and sync, in process, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from app.admission import review
from app.desk.cluster.kinds import find
from app.desk.cluster.offline import NOW, direct
from app.desk.cluster.simulate import MAX_ROUNDS, Cluster
from app.desk.cluster.store import inner_key, outer_key
from app.hooks.answer import answer_sync
from app.hooks.kind import Kind
from app.kube.base import Json
from app.settings import Settings

Documents = Callable[[int, str, int], list[Json]]
"""The objects of one number, in a namespace; every variant has the same names."""

SETTINGS = Settings(llmkube_allowed_host_paths=("/",))


def refusals(documents: Sequence[Json], old: Mapping[str, Json] | None = None) -> list[str]:
    """Return admission's errors about the objects; ``old`` holds the existing ones by :func:`key`."""
    return [cause for document in documents for cause in _refused(document, (old or {}).get(key(document)))]


def key(document: Json) -> str:
    """Return what identifies an object in a world."""
    return f"{outer_key(document)}/{inner_key(document)}"


def _refused(document: Json, old: Json | None) -> list[str]:
    kind = find(document["apiVersion"], document["kind"])
    if kind is None:
        return []
    resource, metadata = kind.resource, document["metadata"]
    request = {
        "uid": "1",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "object": document,
        "oldObject": old,
    }
    body = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    response = orjson.loads(review.answer(kind, body, SETTINGS))["response"]
    return [] if response["allowed"] else [f"{resource.kind} {metadata['name']}: {response['status']['message']}"]


def admitted(documents: Documents, count: int, namespace: str) -> Iterator[tuple[int, list[Json]]]:
    """Yield the first ``count`` numbers whose objects are all admitted, with the objects."""
    admitted_so_far = 0
    refused: list[str] = []
    for number in range(count + count // 4):
        drawn = documents(number, namespace, 0)
        causes = refusals(drawn)
        refused += causes
        if not causes:
            admitted_so_far += 1
            yield number, drawn
        if admitted_so_far == count:
            return
    raise AssertionError(f"admission refuses much of what is generated: {refused[:20]}")


@dataclass
class Answer:
    """The hook's response about one parent."""

    kind: Kind[Any, Any]
    parent: Json
    children: list[Json]
    status: Json


class World:
    """A cluster in memory with the stored forms of one number's objects and of everything created for them."""

    def __init__(self, documents: Sequence[Json]) -> None:
        self._cluster = Cluster(direct(SETTINGS))
        for document in documents:
            self.put(document)

    def get(self, document: Json) -> Json | None:
        """Return the current object of that kind and name, or None."""
        return self._cluster.objects.get((outer_key(document), inner_key(document)))

    def put(self, document: Json) -> None:
        """Store an object; it keeps its simulated status, of which the API server has only the default."""
        before = self.get(document) or {}
        status = before.get("status") or document.get("status")
        metadata = {"uid": key(document), **document["metadata"]}
        stored = {**document, "metadata": metadata}
        if status is not None:
            stored["status"] = status
        self._cluster.objects[outer_key(document), inner_key(document)] = stored

    def remove(self, document: Json) -> None:
        self._cluster.objects.pop((outer_key(document), inner_key(document)), None)

    def children(self, parent: Json) -> list[Json]:
        """Return the children that the parent owns."""
        return self._cluster.children(parent)

    def settle(self) -> None:
        """Sync every parent and simulate every controller until nothing changes."""
        assert self._cluster.settle() < MAX_ROUNDS, "does not come to rest"

    def answers(self) -> Iterator[Answer]:
        """Yield the hook's current response about each parent."""
        for kind, parent in self._cluster.parents():
            yield self.ask(kind, parent)

    def ask(self, kind: Kind[Any, Any], parent: Json, seconds: float = 0) -> Answer:
        """Return the response to one sync, ``seconds`` after all earlier ones."""
        body = self._cluster.request(kind, parent)
        answer = orjson.loads(answer_sync(kind, body, SETTINGS, NOW + timedelta(seconds=seconds)))
        return Answer(kind, parent, answer["children"], answer["status"])
