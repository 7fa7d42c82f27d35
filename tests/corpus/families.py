"""Requests for any kind: its object in a cluster where everything runs, after the user wrote another spec."""

from __future__ import annotations

from typing import Any

import orjson

from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import outer_key
from app.families import KINDS
from app.hooks.kind import Kind
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from tests.corpus.kinds import VALID, reviewed
from tests.corpus.requests import is_denied, ready
from tests.service import Answer, Service

OPEN_MODEL = "OpenModel"
SERVICE = "Service"
LLM = "LLMInferenceService"
CONFIG = "LLMInferenceServiceConfig"

_KINDS: dict[str, Kind[Any, Any]] = {kind.resource.kind: kind for kind in KINDS}


def valid(name: str) -> Json:
    """Return the valid spec of a kind."""
    return VALID[f"{_KINDS[name].resource.group}/{name}"]


def running(cluster: Cluster, name: str, spec: Any) -> Json:
    """Return the cluster's object of a kind, whose children exist, with ``spec`` as its new spec."""
    document = next(document for kind, document in cluster.parents() if kind is _KINDS[name])
    return {**document, "spec": spec}


def reviewing(service: Service, document: Json, old: Json | None = None) -> Answer:
    kind = _KINDS[document["kind"]]
    return service.post(kind.resource.admission_path, reviewed(kind, document, old))


def request(cluster: Cluster, document: Json) -> Json:
    """Return the sync request that Metacontroller would send."""
    body: Json = orjson.loads(cluster.request(_KINDS[document["kind"]], document))
    return body


def syncing(service: Service, sent: Json) -> Answer:
    return service.post(f"{_KINDS[sent['parent']['kind']].resource.hook_path}/sync", sent)


def records(sent: Json) -> list[Json]:
    """Return the children of a request as they were last applied."""
    observed = [child for group in sent["children"].values() for child in group.values()]
    return [orjson.loads(child["metadata"]["annotations"][LAST_APPLIED]) for child in observed]


def are_kept(answer: Answer, sent: Json) -> None:
    """Assert that every child is sent exactly as last applied."""
    assert sorted(answer.json["children"], key=_identity) == sorted(records(sent), key=_identity)


def is_refused_everywhere(service: Service, cluster: Cluster, document: Json, field: str, *types: str) -> None:
    """Assert that admission denies the field with one of the types, and that sync keeps every child as last applied."""
    is_denied(reviewing(service, document), field, *types)
    sent = request(cluster, document)
    answer = syncing(service, sent)
    assert bool(records(sent)) == bool(_KINDS[document["kind"]].resource.children)
    condition = ready(answer)
    assert (condition["status"], condition["reason"]) == ("False", "InvalidSpec"), condition
    are_kept(answer, sent)


def _identity(child: Json) -> tuple[str, str]:
    return outer_key(child), child["metadata"]["name"]
