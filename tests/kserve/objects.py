"""Objects of the family for tests: as little as each test needs to say, and a cluster that plays Metacontroller."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.admission.protocol import ReviewedObject
from app.admission.review import Verdict, judge
from app.hooks.kind import Kind, answer_customize, answer_sync
from app.kserve.kinds import KINDS
from app.kube.objects import ObjectMeta
from app.settings import Settings

Json = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
URI = "hf://facebook/opt-125m"
SERVICE_KIND, CONFIG_KIND = KINDS
RBAC_KINDS = frozenset({"ServiceAccount", "Role", "RoleBinding"})
OPTIONAL_KINDS = frozenset({"LeaderWorkerSet", "HTTPRoute", "InferencePool"})
API_VERSION = "serving.kserve.io/v1alpha2"
KIND_OF_PLURAL = {
    "llminferenceserviceconfigs": "LLMInferenceServiceConfig",
    "configmaps": "ConfigMap",
    "serviceaccounts": "ServiceAccount",
    "pods": "Pod",
    "services": "Service",
    "gateways": "Gateway",
    "httproutes": "HTTPRoute",
    "inferencepools": "InferencePool",
}


def service(name: str = "demo", *, uri: str | None = URI, notes: Json | None = None, **spec: Any) -> Json:
    """A service; ``uri=None`` leaves the model out, ``notes`` are the annotations on itself."""
    model = {} if uri is None or "model" in spec else {"model": {"uri": uri}}
    return _parent("LLMInferenceService", name, {**model, **spec}, notes)


def config(name: str = "base", namespace: str = "default", **spec: Any) -> Json:
    document = _parent("LLMInferenceServiceConfig", name, spec, None)
    document["metadata"]["namespace"] = namespace
    return document


def _parent(kind: str, name: str, spec: Json, notes: Json | None) -> Json:
    metadata: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    if notes:
        metadata["annotations"] = notes
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def gateway(name: str = "kserve-ingress-gateway", namespace: str = "kserve", **changes: Any) -> Json:
    """A programmed Gateway with one HTTP listener and a public address."""
    spec = {"listeners": changes.get("listeners", [{"name": "http", "port": 80, "protocol": "HTTP"}])}
    addresses = [{"value": value} for value in changes.get("addresses", ["203.0.113.1"])]
    programmed = "True" if changes.get("programmed", True) else "False"
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": {"addresses": addresses, "conditions": [{"type": "Programmed", "status": programmed}]},
    }


# Admission.


def kind_of(document: Json) -> Kind[Any, Any]:
    found: Kind[Any, Any] = next(kind for kind in KINDS if kind.resource.kind == document["kind"])
    return found


def admit(document: Json, old: Json | None = None, settings: Settings | None = None) -> Verdict:
    """What admission says of an object, by its version; with ``old``, of an update."""
    metadata = msgspec.convert(document["metadata"], ObjectMeta)
    kind = kind_of(document)
    served = next(k for k in (*kind.older, kind) if k.resource.api_version == document["apiVersion"])
    return judge(served, metadata, _reviewed(document), _reviewed(old) if old else None, settings or Settings())


def _reviewed(document: Json) -> ReviewedObject:
    return msgspec.json.decode(msgspec.json.encode(document), type=ReviewedObject)


def fields(document: Json, old: Json | None = None) -> list[tuple[str, str]]:
    """Path and type of each error."""
    return [(str(error.path), error.type.value.removeprefix("FieldValue")) for error in admit(document, old).errors]


# Hooks.


class Cluster:
    """What one service sees: its children and the objects around it. Syncing applies the answer."""

    def __init__(
        self, parent: Json, *related: Json, optional: frozenset[str] = OPTIONAL_KINDS, settings: Settings | None = None
    ) -> None:
        self.parent = parent
        self.related = list(related)
        self.settings = settings or Settings()
        self.declared = [
            child for child in SERVICE_KIND.resource.children if not child.optional or child.kind in optional
        ]
        self.children: list[Json] = []
        self.answer: Json = {}

    def sync(self, now: datetime = NOW) -> Json:
        """One call of the hook; children appear as answered, with a generation and the status they had."""
        body = {
            "parent": self.parent,
            "children": self._grouped(self.children, {child.key: {} for child in self.declared}),
            "related": self._related(),
            "finalizing": False,
        }
        self.answer = json.loads(answer_sync(kind_of(self.parent), json.dumps(body).encode(), self.settings, now))
        known = {self._identity(child): child for child in self.children}
        self.children = [self._observed(child, known.get(self._identity(child))) for child in self.answer["children"]]
        self.parent = {**self.parent, "status": self.answer["status"]}
        return self.answer

    def _related(self) -> Json:
        """What the customize hook asks for; a kind of which there is nothing is there and empty."""
        groups: Json = {}
        for rule in customize(self.parent, frozenset(child.kind for child in self.declared), self.settings):
            key = f"{KIND_OF_PLURAL[rule['resource']]}.{rule['apiVersion']}"
            asked = [
                item
                for item in self.related
                if f"{item['kind']}.{item['apiVersion']}" == key
                and rule.get("namespace", item["metadata"]["namespace"]) == item["metadata"]["namespace"]
                and item["metadata"]["name"] in rule.get("names", [item["metadata"]["name"]])
            ]
            self._grouped(asked, groups).setdefault(key, {})
        return groups

    def settle(self, now: datetime = NOW) -> Json:
        """Syncs until the answer repeats."""
        before = self.sync(now)
        for _ in range(5):
            after = self.sync(now)
            if after == before:
                return after
            before = after
        raise AssertionError("no fixpoint")

    def report(self, kind: str, name: str, **status: Any) -> None:
        """What the cluster says of a child."""
        self.child(kind, name)["status"] = status

    def child(self, kind: str, name: str) -> Json:
        return next(c for c in self.children if (c["kind"], c["metadata"]["name"]) == (kind, name))

    @property
    def names(self) -> set[tuple[str, str]]:
        return {(child["kind"], child["metadata"]["name"]) for child in self.answer["children"]}

    def condition(self, type_: str) -> Json | None:
        found: Json | None = next((c for c in self.answer["status"]["conditions"] if c["type"] == type_), None)
        return found

    def says(self, type_: str) -> str | None:
        """``True``, the reason of a condition that is not, or ``None`` where there is none."""
        found = self.condition(type_)
        return None if found is None else "True" if found["status"] == "True" else found.get("reason", found["status"])

    @staticmethod
    def _identity(child: Json) -> tuple[str, str]:
        return child["kind"], child["metadata"]["name"]

    @staticmethod
    def _observed(answered: Json, before: Json | None) -> Json:
        annotations = {
            **answered["metadata"].get("annotations", {}),
            "metacontroller.k8s.io/last-applied-configuration": json.dumps(answered),
        }
        metadata = {**answered["metadata"], "uid": "u", "generation": 1, "annotations": annotations}
        return {
            **answered,
            "metadata": metadata,
            **({"status": before["status"]} if before and "status" in before else {}),
        }

    @staticmethod
    def _grouped(objects: list[Json], groups: Json) -> Json:
        for item in objects:
            key = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            groups.setdefault(f"{item['kind']}.{item['apiVersion']}", {})[key] = item
        return groups


AVAILABLE: Json = {
    "observedGeneration": 1,
    **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1),
    "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
}
"""Status of a Deployment that serves."""


def accepted(*parents: Json, resolved: bool = True) -> Json:
    """Status of a route or pool that every one of its gateways accepts."""
    conditions = [{"type": "Accepted", "status": "True", "observedGeneration": 1}]
    if resolved:
        conditions.append({"type": "ResolvedRefs", "status": "True", "observedGeneration": 1})
    return {"parents": [{"parentRef": parent, "conditions": conditions} for parent in parents]}


DEFAULT_PARENT: Json = {
    "group": "gateway.networking.k8s.io",
    "kind": "Gateway",
    "name": "kserve-ingress-gateway",
    "namespace": "kserve",
}


def customize(
    document: Json, optional: frozenset[str] = OPTIONAL_KINDS, settings: Settings | None = None
) -> list[Json]:
    """The rules of a customize hook's answer."""
    kind = kind_of(document)
    plurals = [
        {"apiVersion": child.api_version, "resource": child.plural}
        for child in kind.resource.children
        if not child.optional or child.kind in optional
    ]
    body = {"controller": {"spec": {"childResources": plurals}}, "parent": document}
    answer = json.loads(answer_customize(kind, json.dumps(body).encode(), settings or Settings()))
    rules: list[Json] = answer["relatedResources"]
    return rules
