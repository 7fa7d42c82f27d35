"""Objects of the family and one call of a hook, for the family's tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from app.admission.protocol import ReviewedObject
from app.admission.review import Verdict, judge
from app.hooks.kind import Kind, answer_customize, answer_sync
from app.kube.objects import ObjectMeta
from app.llmaz.kinds import KINDS
from app.settings import Settings

Json = dict[str, Any]

OPEN_MODEL, BACKEND_RUNTIME, PLAYGROUND, SERVICE = KINDS
NAMESPACE = "team"
UID = "11111111-0000-0000-0000-000000000001"
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LONG_AGO = "2029-06-01T00:00:00Z"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


def model(name: str = "opt", /, **spec: Any) -> Json:
    given = {"familyName": "opt", "source": {"modelHub": {"modelID": f"facebook/{name}"}}, **spec}
    return {"apiVersion": "llmaz.io/v1alpha1", "kind": "OpenModel", "metadata": {"name": name}, "spec": given}


def model_at(uri: str, name: str = "opt") -> Json:
    return model(name, source={"uri": uri})


def runtime(name: str = "vllm", /, **spec: Any) -> Json:
    presets = [
        {"name": "default", "args": ["--model", "{{ .ModelPath }}"]},
        {"name": "speculative-decoding", "args": ["--model", "{{ .ModelPath }}", "--draft", "{{ .DraftModelPath }}"]},
    ]
    given = {"image": "example.com/engine", "version": "v1", "recommendedConfigs": presets, **spec}
    return {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": name},
        "spec": given,
    }


def preset(**config: Any) -> Json:
    """A runtime with one preset, called default unless it has a name."""
    return runtime(recommendedConfigs=[{"name": "default", **config}])


def namespaced(kind: str, name: str, spec: Json, annotations: Json | None = None, status: Json | None = None) -> Json:
    found: Json = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": UID, "generation": 1},
        "spec": spec,
    }
    if annotations:
        found["metadata"]["annotations"] = annotations
    if status:
        found["status"] = status
    return found


def playground(
    name: str = "chat", /, *, annotations: Json | None = None, status: Json | None = None, **spec: Any
) -> Json:
    claimed = {} if "modelClaims" in spec else {"modelClaim": {"modelName": "opt"}}
    return namespaced("Playground", name, {**claimed, **spec}, annotations, status)


RUNNER: Json = {"name": "model-runner", "image": "example.com/engine:v1"}


def pods(*containers: Json, **spec: Any) -> Json:
    """A pod template."""
    return {"spec": {"containers": list(containers) or [RUNNER], **spec}}


def service(
    name: str = "chat",
    /,
    *,
    worker: Json | None = None,
    annotations: Json | None = None,
    status: Json | None = None,
    workload: Json | None = None,
    **spec: Any,
) -> Json:
    given = {
        "modelClaims": {"models": [{"name": "opt"}]},
        "workloadTemplate": {"workerTemplate": worker or pods(), **(workload or {})},
        **spec,
    }
    return namespaced("Service", name, given, annotations, status)


def config(text: str, namespace: str = "llmaz-system") -> Json:
    metadata = {"name": "llmaz-global-config", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.data": text}}


def encode(value: Any) -> bytes:
    """JSON, also of numbers that orjson does not write."""
    return json.dumps(value).encode()


def observed(child: Json, **parts: Any) -> Json:
    """A child as the cluster shows it after Metacontroller applied what the hook returned."""
    metadata = {**child["metadata"], "annotations": {**child["metadata"].get("annotations", {})}}
    metadata["annotations"][LAST_APPLIED] = orjson.dumps(child).decode()
    metadata |= {"uid": "22222222-0000-0000-0000-000000000002", "generation": 1}
    return {**child, "metadata": metadata, **parts}


def _grouped(objects: list[Json], kinds: tuple[str, ...] = ()) -> Json:
    groups: Json = {key: {} for key in kinds}
    for item in objects:
        metadata = item["metadata"]
        inner = "/".join(part for part in (metadata.get("namespace", ""), metadata["name"]) if part)
        groups.setdefault(f"{item['kind']}.{item['apiVersion']}", {})[inner] = item
    return groups


def sync(
    kind: Kind[Any, Any],
    parent: Json,
    *related: Json,
    children: list[Json] | None = None,
    optional: bool = True,
    gateway: bool = False,
    settings: Settings | None = None,
    now: datetime = NOW,
) -> Json:
    """One call of the sync hook, through bytes; ``optional`` declares LeaderWorkerSets, ``gateway`` the gateway's."""
    components = {"": True, "leaderworkerset": optional, "envoy-ai-gateway": gateway}
    declared = tuple(child.key for child in kind.resource.children if components[child.component])
    request = {
        "parent": parent,
        "children": _grouped(children or [], declared),
        "related": _grouped(list(related)),
        "finalizing": False,
    }
    answer: Json = orjson.loads(answer_sync(kind, encode(request), settings or Settings(), now))
    return answer


def customize(kind: Kind[Any, Any], parent: Json, settings: Settings | None = None, *declared: Json) -> list[Json]:
    controller = {"spec": {"childResources": list(declared)}}
    request = encode({"parent": parent, "controller": controller})
    rules: list[Json] = orjson.loads(answer_customize(kind, request, settings or Settings()))["relatedResources"]
    return rules


def child(answer: Json, kind: str, api_version: str = "") -> Json:
    """The child of that kind."""
    found: list[Json] = [c for c in answer["children"] if c["kind"] == kind and api_version in c["apiVersion"]]
    assert len(found) == 1, [c["kind"] for c in answer["children"]]
    return found[0]


def condition(answer: Json, type_: str) -> Json:
    conditions: list[Json] = answer["status"]["conditions"]
    return next((c for c in conditions if c["type"] == type_), {})


def state(answer: Json, type_: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    found = condition(answer, type_)
    return found.get("status", ""), found.get("reason", "")


def admit(kind: Kind[Any, Any], item: Json, old: Json | None = None) -> Verdict:
    """The webhook's verdict."""

    def reviewed(given: Json) -> ReviewedObject:
        return ReviewedObject(
            metadata=msgspec.Raw(encode(given["metadata"])), spec=msgspec.Raw(encode(given.get("spec")))
        )

    metadata = msgspec.convert(item["metadata"], ObjectMeta)
    return judge(kind, metadata, reviewed(item), None if old is None else reviewed(old), Settings())


def paths(verdict: Verdict) -> list[str]:
    return [str(error.path) for error in verdict.errors]


def runner(template: Json) -> Json:
    """The engine's container of a pod template."""
    container: Json = next(c for c in template["spec"]["containers"] if c["name"] == "model-runner")
    return container


def names(items: list[Json]) -> list[str]:
    return [item["name"] for item in items]
