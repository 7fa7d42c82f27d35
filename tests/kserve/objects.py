"""Objects of the family for tests, with few required arguments, and the cluster as one service sees it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.admission.review import Verdict
from app.desk.cluster import simulate
from app.desk.cluster.offline import direct
from app.hooks.kind import Kind
from app.kserve.kinds import KINDS
from app.kserve.llminferenceservice.observed import LLMChildren, LLMRelated, ReconcileContext
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus
from app.kserve.operator import Ingress, OperatorConfig
from app.kube.base import Json
from app.kube.objects import ObservedMeta
from app.kube.resource import Resource
from app.settings import Settings
from tests import hookcalls
from tests.builders import NOW

URI = "hf://facebook/opt-125m"
SERVICE_KIND, CONFIG_KIND = KINDS
RBAC_KINDS = frozenset({"ServiceAccount", "Role", "RoleBinding"})
OPTIONAL_KINDS = frozenset({"LeaderWorkerSet", "HTTPRoute", "InferencePool"})
API_VERSION = "serving.kserve.io/v1alpha2"
V017 = Settings(kserve_presets="v0.17")
"""Built-in presets of KServe v0.17: servers without a script, and a route with three rules."""


def service(name: str = "demo", *, uri: str | None = URI, notes: Json | None = None, **spec: Any) -> Json:
    """Return a service; ``uri=None`` leaves the model out, ``notes`` are the annotations in its metadata."""
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
    """Return a programmed Gateway with one HTTP listener and a public address."""
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


def kind_of(document: Json) -> Kind[Any, Any]:
    return hookcalls.kind_of(KINDS, document)


def context(
    related: LLMRelated | None = None,
    *,
    namespace: str = "default",
    raw_spec: bytes = b"{}",
    pins: dict[str, str] | None = None,
    ingress: Ingress | None = None,
    settings: Settings | None = None,
) -> ReconcileContext:
    """Return the context of a service ``demo`` without children."""
    parent = Resource(
        ObservedMeta(name="demo", namespace=namespace),
        LLMInferenceServiceSpec.model_validate_json(raw_spec),
        LLMInferenceServiceStatus(annotations=pins or {}),
    )
    operator = OperatorConfig("kserve", ingress=ingress or Ingress())
    return ReconcileContext(parent, raw_spec, LLMChildren(), related or LLMRelated(), operator, settings or Settings())


def admit(document: Json, old: Json | None = None, settings: Settings | None = None) -> Verdict:
    """Return admission's verdict on an object of either version; with ``old``, on an update."""
    kind = kind_of(document)
    served = next(k for k in (*kind.older, kind) if k.resource.api_version == document["apiVersion"])
    return hookcalls.admit(served, document, old, settings)


def fields(document: Json, old: Json | None = None) -> list[tuple[str, str]]:
    """Return path and type of each error."""
    return [(str(error.path), error.type.value.removeprefix("FieldValue")) for error in admit(document, old).errors]


def customize(
    document: Json, optional: frozenset[str] = OPTIONAL_KINDS, settings: Settings | None = None
) -> list[Json]:
    """Return the related rules; ``optional`` lists the optional child kinds that are declared."""
    kind = kind_of(document)
    return hookcalls.customize(kind, document, without=hookcalls.optional_kinds(kind) - optional, settings=settings)


class Cluster:
    """The cluster as one service sees it: children and related objects, set by the test. A sync applies its answer."""

    def __init__(
        self, parent: Json, *related: Json, optional: frozenset[str] = OPTIONAL_KINDS, settings: Settings | None = None
    ) -> None:
        self.parent = parent
        self.related = list(related)
        self.settings = settings or Settings()
        self.optional = optional
        self.children: list[Json] = []
        self.answer: Json = {}

    def sync(self, now: datetime = NOW) -> Json:
        """Call the sync hook once. No controllers run, so children have the status that the test reports."""
        kind = kind_of(self.parent)
        without = (*(hookcalls.optional_kinds(kind) - self.optional),)
        cluster = simulate.Cluster(direct(self.settings, lambda: now), without, granted=frozenset())
        for document in (*self.related, *self.children, self.parent):
            cluster.put(document)
        cluster.sync(kind, self.parent)
        self.answer = cluster.last_answer(self.parent)
        present = {(child["kind"], child["metadata"]["name"]): child for child in cluster.children(self.parent)}
        asked = [(child["kind"], child["metadata"]["name"]) for child in self.answer["children"]]
        self.children = [present[identity] for identity in asked if identity in present]
        self.parent = {**self.parent, "status": self.answer["status"]}
        return self.answer

    def settle(self, now: datetime = NOW) -> Json:
        """Sync until the answer repeats."""
        before = self.sync(now)
        for _ in range(5):
            after = self.sync(now)
            if after == before:
                return after
            before = after
        raise AssertionError("no fixpoint")

    def report(self, kind: str, name: str, **status: Any) -> None:
        """Set the status of a child."""
        self.child(kind, name)["status"] = status

    def child(self, kind: str, name: str) -> Json:
        return next(c for c in self.children if (c["kind"], c["metadata"]["name"]) == (kind, name))

    @property
    def names(self) -> set[tuple[str, str]]:
        return {(child["kind"], child["metadata"]["name"]) for child in self.answer["children"]}

    def condition(self, type_: str) -> Json | None:
        return hookcalls.condition(self.answer, type_) or None

    def says(self, type_: str) -> str | None:
        """Return ``True`` for a true condition, else its reason, or ``None`` if it is missing."""
        condition = self.condition(type_)
        if condition is None:
            return None
        return "True" if condition["status"] == "True" else condition.get("reason", condition["status"])


AVAILABLE: Json = {
    "observedGeneration": 1,
    **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1),
    "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
}
"""Status of an available Deployment."""


def accepted(*parents: Json, resolved: bool = True) -> Json:
    """Return the status of a route or pool that all its Gateways accept."""
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
