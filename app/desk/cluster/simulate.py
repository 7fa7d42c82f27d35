"""A cluster in memory that plays API server, Metacontroller and the workload controllers around the hooks.

The one simulation of Metacontroller: the offline commands and the tests use it, and what differs is which controllers
play. With all of them pods start at once, Jobs complete, claims bind and routes are accepted. It does not test the
protocol; ``tests/e2e`` does, with a real API server.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self, TypeVar

import msgspec
import orjson

from app.admission.protocol import creation
from app.desk.cluster import apply, store
from app.desk.cluster.kinds import SERVED, find, find_version, kind_of
from app.desk.cluster.store import Key, Store, key_of, owner
from app.hooks.kind import AnyKind
from app.hooks.readystatus import READY, ready_of
from app.kube.base import Json
from app.kube.names import CONTROLLER_UID
from app.kube.objects import ObservedTemplateMeta
from app.kube.reading.stored import without_nulls

Progress = Callable[[int], None]
"""Called for each object of each round, with the round's number."""
Controller = Callable[[Json], Json]
"""Returns an object's status, as the controller of its kind would write it."""
Send = Callable[[str, bytes], bytes]
"""Posts a body to a path of the service and returns the answer's body; raises on any other status than 200."""

T = TypeVar("T")

MAX_ROUNDS = 30
MAX_PODS = 100
"""Maximum number of pods that a Deployment starts."""
INVALID_SPEC = "InvalidSpec"
_TIME = "2025-01-01T00:00:00Z"


@dataclass
class Cluster:
    """Objects by kind and name. ``without`` names what is not installed: components, or kinds of children."""

    send: Send
    without: tuple[str, ...] = ()
    objects: Store = field(default_factory=Store)
    controllers: Mapping[str, Controller] = field(default_factory=lambda: CONTROLLERS)
    """Controllers that write the status of objects of each kind. That of Deployments starts pods, too."""
    granted: frozenset[str] = store.TAKEN_FOR_GRANTED
    """Kinds that are left out of a request while the cluster has no object of them."""
    counted: frozenset[str] = frozenset()
    """Kinds of children whose changes are counted in ``metadata.generation``, as the API server does."""
    installed: frozenset[tuple[str, str]] = frozenset()
    """Objects that no file describes: those of an installation."""
    refused: dict[Key, str] = field(default_factory=dict)
    """Objects with errors, each with them. Of some the hooks learn nothing: an API server drops unknown fields."""
    syncs: int = 0
    answers: dict[Key, tuple[int, Json]] = field(default_factory=dict)
    """The last answer for each parent while the cluster settled, with the hash of the request."""
    _requested: dict[tuple[str, str], tuple[Json, Json]] = field(default_factory=dict)
    """Children as they were asked for and as they were made: the same again changes nothing."""
    _read: dict[Key, _Read] | None = None
    """What the last answers were made from, while the cluster settles: nobody else writes into its objects then."""

    def apply(self, document: Json, namespace: str) -> list[str]:
        """Store an object as the API server would, or return why admission, if its kind is served here, denies it."""
        new = store.stored(document, namespace)
        written = find_version(document.get("apiVersion", ""), document.get("kind", ""))
        reviewed = {**document, "metadata": new["metadata"]}
        causes = [] if written is None else self._causes(written, reviewed)
        if not causes:
            self.put(new)
        return causes

    def put(self, document: Json) -> None:
        self.objects[key_of(document)] = document

    def _causes(self, kind: AnyKind, document: Json) -> list[str]:
        """Return why admission denies an object; empty if it does not."""
        body = creation(kind.resource, document)
        response = orjson.loads(self.send(kind.resource.admission_path, body))["response"]
        status = response.get("status", {})
        causes = [f"{c['field']}: {c['message']}" for c in status.get("details", {}).get("causes", [])]
        return [] if response["allowed"] else causes or [status.get("message", "")]

    def copy(self) -> Self:
        """Return a cluster of the same objects, in which others may appear and statuses change."""
        objects = Store({key: {**document} for key, document in self.objects.items()})
        return replace(self, objects=objects, answers={}, _requested={})

    def settle(self, progress: Progress = lambda _: None) -> int:
        """Sync every parent and run the controllers until nothing changes. Return the number of rounds.

        Each parent is synced until it stays the same, because what was read of it is remembered only for a while.
        """
        self._read = {}
        try:
            rounds = range(1, MAX_ROUNDS + 1)
            return next((n for n in rounds if not self.round(n, progress, repeats=MAX_ROUNDS)), MAX_ROUNDS)
        finally:
            self._read = None

    def round(self, number: int = 1, progress: Progress = lambda _: None, repeats: int = 1) -> bool:
        """Sync every parent, at most ``repeats`` times, and run the controllers. Return whether anything changed."""
        changed = False
        for kind, parent in self.parents():
            progress(number)
            for _ in range(repeats):
                if not self.sync(kind, parent):
                    break
                changed = True
                self.play(self.children(parent))
        return self.play(self.objects.values()) or changed

    def parents(self) -> Iterator[tuple[AnyKind, Json]]:
        """Yield the objects of the served kinds, in the order of the registry; of each kind when it is reached."""
        for group, kinds in SERVED.items():
            for name, version in kinds.items():
                held = self.objects.of_kind(f"{name}.{group}/{version}")
                kind = find(f"{group}/{version}", name) if held else None
                for _, document in sorted(held.items()):
                    assert kind is not None
                    yield kind, document

    def children(self, parent: Json) -> list[Json]:
        return [d for _, d in sorted(self.objects.owned_by(parent["metadata"]["uid"]).items())]

    def delete(self, key: tuple[str, str]) -> None:
        """Remove an object, and what it owns with it, as garbage collection does."""
        document = self.objects.pop(key)
        for owned in list(self.objects.owned_by(document["metadata"].get("uid", ""))):
            self.delete(owned)

    def ask(self, kind: AnyKind, parent: Json) -> Json:
        """Return the sync hook's answer for a parent, with what its rules select as related objects."""
        return self._answer(kind, self._body(kind, parent))[1]

    def last_answer(self, parent: Json) -> Json:
        """Return the sync hook's last answer for a parent, which still holds once the cluster has settled."""
        return self.answers[key_of(parent)][1]

    def _answer(self, kind: AnyKind, body: Json) -> tuple[int, Json]:
        """Return a hash of the request, and the answer: the last one if only the parent's status is new (MC-2.2)."""
        encoded = {key: orjson.Fragment(orjson.dumps(part)) for key, part in body.items() if key != "parent"}
        parent = body["parent"]
        request = hash(orjson.dumps({**encoded, "parent": _without_status(parent)}))
        last = self.answers.get(key_of(parent))
        if last is not None and last[0] == request:
            return last
        answer = orjson.loads(self.send(f"{kind.resource.hook_path}/sync", orjson.dumps({**encoded, "parent": parent})))
        errors = self.refused.get(key_of(parent))
        return request, answer if errors is None or _is_refused(answer) else _refusal(errors)

    def request(self, kind: AnyKind, parent: Json) -> bytes:
        """Build the body that Metacontroller would post to the sync hook."""
        return orjson.dumps(self._body(kind, parent))

    def _body(self, kind: AnyKind, parent: Json, rules: list[Json] | None = None) -> Json:
        owned = self.objects.owned_by(parent["metadata"]["uid"]).values()
        rules = self.rules(kind, parent) if rules is None else rules
        related = store.related(kind, rules, self.objects, self.granted)
        return store.sync_body(kind, parent, owned, related, self.without)

    def _body_if_new(self, kind: AnyKind, parent: Json) -> Json | None:
        """Return the request; ``None`` if it has the same objects as the last one while the cluster settles."""
        if self._read is None:
            return self._body(kind, parent)
        key = key_of(parent)
        last = self._read.get(key) if key in self.answers else None
        parts = [value for name, value in parent.items() if name != "status"]
        rules = last.rules if last is not None and _are(parts, last.parts) else self.rules(kind, parent)
        body = self._body(kind, parent, rules)
        groups = [(outer, group) for part in ("children", "related") for outer, group in body[part].items()]
        others = [part for _, group in groups for document in group.values() for part in _parts(document)]
        places = [(outer, [*group]) for outer, group in groups]
        self._read[key] = _Read(parts, rules, places, others)
        is_known = last is not None and rules is last.rules and places == last.places and _are(others, last.others)
        return None if is_known else body

    def rules(self, kind: AnyKind, parent: Json) -> list[Json]:
        """Return the customize hook's answer, which does not depend on the status."""
        if kind.hooks.customize is None:
            return []
        body = store.customize_request(kind, _without_status(parent), self.without)
        rules: list[Json] = orjson.loads(self.send(f"{kind.resource.hook_path}/customize", body))["relatedResources"]
        return rules

    def sync(self, kind: AnyKind, parent: Json) -> bool:
        """Send the request, unless the last answer holds, and apply the answer. Return whether anything changed."""
        key = key_of(parent)
        body = self._body_if_new(kind, parent)
        if body is None:
            return False
        last, current = self.answers.get(key), self._answer(kind, body)
        if current is last:
            return False
        self.answers[key], answer = current, current[1]
        self.syncs += 1
        status = {**answer["status"], "observedGeneration": parent["metadata"]["generation"]}
        same = parent.get("status") == status
        parent["status"] = status
        if key in self.refused:
            return not same  # what it has made before stays
        return self._reconcile(kind, parent, answer["children"]) or not same

    def _reconcile(self, kind: AnyKind, parent: Json, desired: Iterable[Json]) -> bool:
        """Do what Metacontroller does with an answer: create, merge by the record of the last answer, and prune."""
        uid, desired_keys, changed = parent["metadata"]["uid"], set(), False
        create_only = {c.key for c in kind.resource.children if c.update == "OnDelete"}
        for child in desired:
            new = store.stored(child, parent["metadata"].get("namespace", ""))
            key = key_of(new)
            desired_keys.add(key)
            old = self.objects.get(key)
            sent, stored_child = self._requested.get(key, (None, None))
            if old is None:
                stored_child = created(child, parent)
            elif owner(old) != uid or key[0] in create_only or (stored_child is old and sent == child):
                continue
            else:
                stored_child = self._counted(old, apply.updated(old, child))
            if stored_child != old:
                self.objects[key], changed = stored_child, True
                self._requested[key] = child, stored_child
        for key in [k for k in self.objects.owned_by(uid) if k not in desired_keys]:
            del self.objects[key]
            changed = True
        return changed

    def _counted(self, old: Json, new: Json) -> Json:
        if new["kind"] not in self.counted or new.get("spec") == old.get("spec"):
            return new
        return {**new, "metadata": {**new["metadata"], "generation": old["metadata"].get("generation", 1) + 1}}

    def play(self, documents: Iterable[Json]) -> bool:
        """Run the controllers of these objects once, except of served kinds. Return whether anything changed."""
        changed = False
        for document in list(documents):
            play = self.controllers.get(document["kind"])
            if play is not None and kind_of(document) is None:
                try:
                    status = play(document)
                except msgspec.ValidationError:
                    continue  # no API server stores such an object
                before = document.get("status")
                changed |= before != status
                if before is None or orjson.dumps(before) != orjson.dumps(status):
                    document["status"] = status
                if play is _workload and document["kind"] == "Deployment":
                    changed |= self._start_pods(document)
        return changed

    def _start_pods(self, deployment: Json) -> bool:
        before, metadata = len(self.objects), deployment["metadata"]
        spec = _spec(deployment, _WorkloadSpec)
        place = {"namespace": metadata["namespace"], "labels": spec.template.metadata.labels or {}}
        for number in range(min(spec.replicas, MAX_PODS)):
            named = {"name": f"{metadata['name']}-{number}", **place}
            running = {"phase": "Running", "conditions": [_condition("Ready")]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": named, "status": running}
            self.objects.setdefault(key_of(pod), pod)
        return len(self.objects) > before


class _Read(NamedTuple):
    """What a request was made from. Of equal objects that are not the same, bytes are compared."""

    parts: list[object]
    """Those of the parent without its status."""
    rules: list[Json]
    places: list[tuple[str, list[str]]]
    others: list[object]
    """Children and related objects, each with its status, which is written into it."""


def _parts(document: Json) -> tuple[Json, object]:
    return document, document.get("status")


def _are(parts: Sequence[object], others: Sequence[object]) -> bool:
    """Report whether two lists have the same objects, not equal ones."""
    return len(parts) == len(others) and all(map(operator.is_, parts, others))


def _without_status(parent: Json) -> Json:
    return {key: value for key, value in parent.items() if key != "status"}


def created(child: Json, parent: Json) -> Json:
    """Return a child as Metacontroller creates it: with its owner and its record, without a status."""
    new = store.stored(child, parent["metadata"].get("namespace", ""))
    new.pop("status", None)
    metadata = new["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), CONTROLLER_UID: parent["metadata"]["uid"]}
    reference = {"apiVersion": parent["apiVersion"], "kind": parent["kind"], "name": parent["metadata"]["name"]}
    flags = {"uid": parent["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
    metadata["ownerReferences"] = [{**reference, **flags}]
    return apply.with_record(new, child)


def _is_refused(answer: Json) -> bool:
    return ready_of(answer["status"].get("conditions") or []).get("reason") == INVALID_SPEC


def _refusal(errors: str) -> Json:
    """Return the answer about an object with errors of which the hook does not know."""
    condition = {**_condition(READY, INVALID_SPEC), "status": "False", "message": errors}
    return {"status": {"conditions": [condition]}, "children": []}


def _condition(type_: str, reason: str = "Simulated") -> Json:
    return {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": _TIME}


class _Template(msgspec.Struct):
    metadata: ObservedTemplateMeta = msgspec.field(default_factory=ObservedTemplateMeta)


class _WorkloadSpec(msgspec.Struct):
    replicas: int = 1
    template: _Template = msgspec.field(default_factory=_Template)


class _AttachedSpec(msgspec.Struct):
    parents: list[Json] = msgspec.field(name="parentRefs", default_factory=list)


def _spec(document: Json, type_: type[T]) -> T:
    """Decode the fields of a spec that a controller reads; raise ``msgspec.ValidationError`` for other types."""
    spec = document.get("spec") or {}
    try:
        return msgspec.convert(spec, type_)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(spec), type_)


def _workload(document: Json) -> Json:
    replicas = _spec(document, _WorkloadSpec).replicas
    return {
        "observedGeneration": document["metadata"]["generation"],
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [_condition("Available"), _condition("Progressing", "NewReplicaSetAvailable")],
    }


def _attached(document: Json) -> Json:
    """Return the status of a route or a pool that each of its parents accepts."""
    references = _spec(document, _AttachedSpec).parents or [{"name": "default"}]
    conditions = [_condition("Accepted"), _condition("ResolvedRefs"), _condition("Programmed")]
    return {"parents": [{"parentRef": r, "controllerName": "simulated", "conditions": conditions} for r in references]}


CONTROLLERS: Mapping[str, Controller] = {
    "Deployment": _workload,
    "LeaderWorkerSet": _workload,
    "Job": lambda _: {"succeeded": 1, "completionTime": _TIME, "conditions": [_condition("Complete")]},
    "PersistentVolumeClaim": lambda _: {"phase": "Bound"},
    "HorizontalPodAutoscaler": lambda _: {"conditions": [_condition("AbleToScale"), _condition("ScalingActive")]},
    "ScaledObject": lambda _: {"conditions": [_condition("Ready")]},
    "HTTPRoute": _attached,
    "InferencePool": _attached,
    "Gateway": lambda _: {
        "addresses": [{"type": "IPAddress", "value": "203.0.113.10"}],
        "conditions": [_condition("Accepted"), _condition("Programmed")],
    },
}
