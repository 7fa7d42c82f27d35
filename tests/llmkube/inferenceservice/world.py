"""A service, its Model and a cluster small enough to read: requests as Metacontroller sends them, answers as bytes."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import orjson

from app.hooks.kind import answer_customize, answer_sync
from app.kube.names import LAST_APPLIED
from app.llmkube.kinds import KINDS
from app.llmkube.source import parse
from app.settings import Settings
from tests.e2e.standin.apply import merge

Json = dict[str, Any]

KIND = next(kind for kind in KINDS if kind.resource.kind == "InferenceService")
API_VERSION = KIND.resource.api_version
NAMESPACE = "ns1"
SETTINGS = Settings()
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
OUTER = {
    "Deployment": "Deployment.apps/v1",
    "Service": "Service.v1",
    "HorizontalPodAutoscaler": "HorizontalPodAutoscaler.autoscaling/v2",
}
POD_MONITOR = "PodMonitor.monitoring.coreos.com/v1"
HTTP_SOURCE = "https://example.com/model.gguf"


def service(name: str = "s", *, generation: int = 1, status: Json | None = None, **spec: Any) -> Json:
    """An InferenceService of Model ``m``."""
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": "u1", "generation": generation},
        "spec": {"modelRef": "m", **spec},
        "status": status or {},
    }


def model(name: str = "m", *, phase: str = "Ready", status: Json | None = None, **spec: Any) -> Json:
    """A Model as its own hook leaves it when its file is there."""
    source = spec.setdefault("source", HTTP_SOURCE)
    judged = {"phase": phase, "cacheKey": parse(source).cache_key, **(status or {})}
    return {
        "apiVersion": API_VERSION,
        "kind": "Model",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"u-{name}", "generation": 1},
        "spec": spec,
        "status": judged,
    }


def key(item: Json) -> str:
    namespace = item["metadata"].get("namespace", "")
    return f"{namespace}/{item['metadata']['name']}" if namespace else str(item["metadata"]["name"])


def grouped(items: tuple[Json, ...]) -> dict[str, dict[str, Json]]:
    """Objects as a v2 request holds them."""
    groups: dict[str, dict[str, Json]] = {}
    for item in items:
        groups.setdefault(f"{item['kind']}.{item['apiVersion']}", {})[key(item)] = item
    return groups


def sync(
    parent: Json,
    *related: Json,
    children: tuple[Json, ...] = (),
    settings: Settings = SETTINGS,
    now: datetime = NOW,
    declared: tuple[str, ...] = (),
) -> Json:
    """The decoded answer of one sync. ``declared``: outer keys of optional child kinds."""
    observed: dict[str, dict[str, Json]] = {outer: {} for outer in (*OUTER.values(), *declared)}
    body = {
        "parent": parent,
        "children": {**observed, **grouped(children)},
        "related": grouped(related),
        "finalizing": False,
    }
    decoded: Json = orjson.loads(answer_sync(KIND, orjson.dumps(body), settings, now))
    return decoded


def customize(parent: Json, settings: Settings = SETTINGS) -> list[Json]:
    """The rules of a customize answer."""
    body = orjson.dumps({"parent": parent, "controller": {"spec": {"childResources": []}}})
    rules: list[Json] = orjson.loads(answer_customize(KIND, body, settings))["relatedResources"]
    return rules


def child(answer: Json, kind: str) -> Json:
    """The child of that kind; fails when there is none."""
    (found,) = [item for item in answer["children"] if item["kind"] == kind]
    return dict(found)


def kinds(answer: Json) -> list[str]:
    return [item["kind"] for item in answer["children"]]


def pod_spec(answer: Json) -> Json:
    return dict(child(answer, "Deployment")["spec"]["template"]["spec"])


def container(answer: Json) -> Json:
    return dict(pod_spec(answer)["containers"][0])


def args(answer: Json) -> str:
    """The arguments, joined by blanks."""
    return " ".join(container(answer).get("args", []))


def condition(answer: Json, type_: str) -> Json:
    """A condition of the status; empty when there is none."""
    return next((c for c in answer["status"].get("conditions", []) if c["type"] == type_), {})


def applied(answer: Json, before: tuple[Json, ...] = (), **status: Json) -> tuple[Json, ...]:
    """The children as they are after Metacontroller applied the answer; ``status`` by kind overrides."""
    old = {(item["kind"], key(item)): item for item in before}
    result = []
    for wanted in answer["children"]:
        present = old.get((wanted["kind"], key(wanted)), {})
        record = orjson.loads(present.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED, "{}"))
        item = merge(copy.deepcopy(present), record, wanted)
        item["metadata"].setdefault("annotations", {})[LAST_APPLIED] = orjson.dumps(wanted).decode()
        item["metadata"].setdefault("uid", f"uid-{wanted['kind']}")
        item["metadata"].setdefault("generation", 1)
        if wanted["kind"] == "Deployment":
            item["spec"].setdefault("replicas", 1)
        item["status"] = status.get(wanted["kind"], present.get("status", {}))
        result.append(item)
    return tuple(result)


def observed(item: Json, **changes: Any) -> Json:
    """A child without a record of ours, as it is just after it was taken over."""
    bare = copy.deepcopy(item)
    bare["metadata"].pop("annotations", None)
    bare["metadata"]["uid"] = "taken"
    return {**bare, **changes}
