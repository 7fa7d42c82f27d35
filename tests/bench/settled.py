"""Requests about examples in a settled cluster, with the fields that a real API server adds to each object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import yaml

from app.desk.cluster import offline
from app.desk.cluster.kinds import find
from app.desk.files.manifests import parse
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.settings import Settings
from tests.bench.payloads import managed_fields, review
from tests.contract import recordings
from tests.contract.world import World

ROOT = Path(__file__).parents[2]
NAMESPACE = "team-a"
RECORDED = "d-pod-two-first-gpu"
"""A recorded service with its Deployment, its Model and two pods."""


def sync_request(documents: list[Json], kind_name: str, name: str) -> tuple[str, bytes]:
    """Return the sync path and body for one of the documents once all of them are settled."""
    manifests = parse(yaml.safe_dump_all(documents), "bench")
    cluster = offline.settled(manifests, offline.World(NAMESPACE))
    parent = next(
        d
        for (_, inner), d in cluster.objects.items()
        if d["kind"] == kind_name and inner in (name, f"{NAMESPACE}/{name}") and find(d["apiVersion"], kind_name)
    )
    kind = find(parent["apiVersion"], kind_name)
    assert kind is not None
    return f"{kind.resource.hook_path}/sync", _dressed(cluster.request(kind, parent))


def _dressed(request: bytes) -> bytes:
    """Return the request with the fields that a real API server adds to every object."""
    body = orjson.loads(request)
    body["controller"] = {"kind": "CompositeController", "metadata": {"managedFields": managed_fields(30)}, "spec": {}}
    _dress(body["parent"], 35)
    for document in _objects(body["children"]):
        _dress(document, 60, recorded=True)
    for document in _objects(body["related"]):
        _dress(document, 35)
    return orjson.dumps(body)


def recorded() -> tuple[bytes, bytes]:
    """Return a sync of a recorded InferenceService and a review of its update, as a cluster would send them."""
    case = next(case for case in recordings.replayed("llmkube") if case["name"] == RECORDED)
    world = World(case, Settings(llmkube_allowed_host_paths=("/",)))
    world.run()
    request = _dressed(world.request("InferenceService"))
    service = orjson.loads(request)["parent"]
    return request, review(service, {**service, "spec": {**service["spec"], "replicas": 2}})


def _objects(groups: dict[str, dict[str, Json]]) -> Iterator[Json]:
    for group in groups.values():
        yield from group.values()


def _dress(document: Json, entries: int, *, recorded: bool = False) -> None:
    """Add field ownership, and on a child Metacontroller's record of what was last applied."""
    metadata = document["metadata"]
    if recorded and LAST_APPLIED not in metadata.get("annotations", {}):
        record = {key: value for key, value in document.items() if key != "status"}
        metadata["annotations"] = {**metadata.get("annotations", {}), LAST_APPLIED: orjson.dumps(record).decode()}
    metadata["managedFields"] = managed_fields(entries)


def _example(*files: str) -> list[Json]:
    return [d for file in files for d in yaml.safe_load_all((ROOT / file).read_text()) if d]


def playground() -> tuple[str, bytes]:
    """Return the sync of a Playground with the shipped engine."""
    documents = _example("manifests/llmaz-runtimes/vllm.yaml", "examples/llmaz/quickstart.yaml")
    name = next(d["metadata"]["name"] for d in documents if d["kind"] == "Playground")
    return sync_request(documents, "Playground", name)


def llmaz_service() -> tuple[str, bytes]:
    """Return the sync of the Playground's Service, with its Deployment."""
    documents = _example("manifests/llmaz-runtimes/vllm.yaml", "examples/llmaz/quickstart.yaml")
    name = next(d["metadata"]["name"] for d in documents if d["kind"] == "Playground")
    return sync_request(documents, "Service", name)


def llm_inference_service() -> tuple[str, bytes]:
    """Return the largest sync: prefill and decode, scheduler and route, with three shared configs."""
    (service,) = _example("examples/kserve/prefill-decode.yaml")
    names = ["defaults", "gpus", "telemetry"]
    service["spec"]["baseRefs"] = [{"name": name} for name in names]
    configs = []
    for name in names:
        container = {"name": "main", "env": [{"name": f"{name.upper()}_{n}", "value": f"value {n}"} for n in range(10)]}
        template = {"template": {"containers": [container]}}
        configs.append(
            {
                "apiVersion": "serving.kserve.io/v1alpha2",
                "kind": "LLMInferenceServiceConfig",
                "metadata": {"name": name},
                "spec": {**template, "prefill": template},
            }
        )
    documents = [*_example("examples/kserve/cluster/gateway.yaml"), *configs, service]
    return sync_request(documents, "LLMInferenceService", service["metadata"]["name"])
