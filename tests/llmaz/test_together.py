"""Playground and Service synced one after the other, and validation of several files together."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import yaml

from app.admission import review
from app.desk.check import check_together
from app.desk.cluster.offline import World
from app.desk.files.folders import read
from app.kube.base import Json
from app.settings import Settings
from tests.hookcalls import encode
from tests.llmaz.world import (
    PLAYGROUND,
    SERVICE,
    UID,
    child,
    condition,
    model,
    model_at,
    namespaced,
    observed,
    playground,
    preset,
    runtime,
    service,
    state,
    sync,
)


def reviewed(item: Json, old: Json | None = None) -> Json:
    """Return the webhook's answer about a Service."""
    group, _, version = item["apiVersion"].partition("/")
    request = {
        "uid": "1",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"group": group, "version": version, "kind": item["kind"]},
        "object": item,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer: Json = orjson.loads(review.answer(SERVICE, encode(body), Settings()))["response"]
    return answer


def made_by_metacontroller() -> Json:
    """Return a Playground's Service as Metacontroller creates it."""
    made = observed(child(sync(PLAYGROUND, playground(), model(), runtime()), "Service"))
    owner = {"kind": "Playground", "name": "chat", "uid": UID, "controller": True, "apiVersion": "x/v1"}
    made["metadata"] |= {"labels": {"controller-uid": UID}, "ownerReferences": [owner]}
    return made


def test_a_child_passes_the_webhook() -> None:
    """Metacontroller's label and record are accepted on a child, also restored without its owner, and else refused."""
    created = made_by_metacontroller()
    assert reviewed(created)["allowed"] is True
    orphan = {**created, "metadata": {k: v for k, v in created["metadata"].items() if k != "ownerReferences"}}
    assert reviewed(orphan)["allowed"] is True
    places = {
        "annotations": "metadata.labels[controller-uid]",
        "labels": "metadata.annotations[metacontroller.k8s.io/last-applied-configuration]",
    }
    for absent, place in places.items():
        written = {**orphan, "metadata": {k: v for k, v in orphan["metadata"].items() if k != absent}}
        assert [cause["field"] for cause in reviewed(written)["status"]["details"]["causes"]] == [place]
    assert reviewed(orphan, created)["allowed"] is True


def test_from_a_playground_to_its_pods() -> None:
    """The Playground's Service gives the pods, and its Ready is copied to the Playground."""
    parent, related = playground(), [model(), runtime()]
    first = child(sync(PLAYGROUND, parent, *related), "Service")
    inner = {**first, "metadata": {**first["metadata"], "uid": "u", "generation": 1}}
    pods = child(sync(SERVICE, inner, model()), "Deployment")["spec"]["template"]
    assert pods["spec"]["terminationGracePeriodSeconds"] == 130
    assert pods["spec"]["initContainers"][0]["name"] == "model-loader"
    told = sync(SERVICE, inner, model())["status"]
    answer = sync(PLAYGROUND, parent, *related, children=[observed(first, status=told)])
    assert state(answer, "Ready") == ("False", "Creating")
    assert "Deployment chat is being created" in condition(answer, "Ready")["message"]


def claiming(*flavors: str) -> Json:
    return playground(modelClaim={"modelName": "opt", "inferenceFlavors": list(flavors)})


TWO_FLAVORS = model(
    inferenceConfig={
        "flavors": [
            {"name": "small", "limits": {"nvidia.com/gpu": 1}},
            {"name": "large", "limits": {"nvidia.com/gpu": 4}},
        ]
    }
)
ONE_GPU = {"inferenceConfig": {"flavors": [{"name": "small", "limits": {"nvidia.com/gpu": 1}}]}}
AMD = {"inferenceConfig": {"flavors": [{"name": "large", "limits": {"amd.com/gpu": 2}}]}}
TOGETHER: dict[str, tuple[list[Json], str]] = {
    "LZ-N39 an image as a whole": (
        [playground(), model_at("oci://x:1#/"), runtime()],
        "can be mounted, but not copied",
    ),
    "LZ-N18 a model for another engine": (
        [playground(), model_at("ollama://m"), runtime()],
        "cannot fetch",
    ),
    "LZ-N19 a preset that is not there": (
        [playground(backendRuntimeConfig={"configName": "x"}), model(), runtime()],
        "has no preset x",
    ),
    "LZ-N25 nothing to scale on": (
        [playground(elasticConfig={"maxReplicas": 2}), model(**ONE_GPU), preset()],
        "elasticConfig has no",
    ),
    "LZ-N41 no GPU": ([playground(), model()], "needs an NVIDIA GPU, but none is requested"),
    "LZ-N41 another maker": (
        [playground(), model(**AMD)],
        "needs an NVIDIA GPU, but only AMD devices are requested",
    ),
    "LZ-N14 a flavor that is not there": (
        [service(modelClaims={"models": [{"name": "opt"}], "inferenceFlavors": ["x"]}), model()],
        "has no flavor x",
    ),
    "LZ-N14 of a Playground": ([claiming("x"), model(), runtime()], "has no flavor x"),
    "LZ-N14 without the engine": ([claiming("x"), model()], "has no flavor x"),
    "LZ-N36 other limits": ([playground(), TWO_FLAVORS], "those of flavor large have no effect"),
    "LZ-N36 other limits, of a Service": ([service(), TWO_FLAVORS], "those of flavor large have no effect"),
    "LZ-N39 of a Service": ([service(), model_at("oci://x:1#/")], "can be mounted, but not copied"),
}


def findings(folder: Path, items: list[Json]) -> list[str]:
    file = folder / "all.yaml"
    file.write_text(yaml.safe_dump_all(items))
    return [finding.text for finding in check_together(read([str(file)]), World(), {str(file)})]


@pytest.mark.parametrize(("items", "part"), TOGETHER.values(), ids=TOGETHER.keys())
def test_files_that_do_not_fit(tmp_path: Path, items: list[Json], part: str) -> None:
    """Rules about other objects are conditions in a cluster, and findings if the files contain those objects."""
    messages = [text for text in findings(tmp_path, items) if part in text]
    assert len(messages) == 1
    assert messages[0].startswith("spec")


@pytest.mark.parametrize(
    "items",
    [
        [playground(), runtime()],
        [playground(), model(**ONE_GPU)],
        [playground(), model(), runtime()],
        [service()],
        [service(workload={"size": 2}), model()],
        [namespaced("Playground", "chat", {}), runtime()],
        [service(modelClaims=None), model()],
    ],
    ids=["no model", "no engine", "fitting", "a service without its model", "several pods", "no claim", "of a service"],
)
def test_accepts_references_outside_the_files(tmp_path: Path, items: list[Json]) -> None:
    """A referenced object outside the files may exist in the cluster."""
    assert findings(tmp_path, items) == []


LLAMACPP = {"image": "ghcr.io/ggml-org/llama.cpp", "version": "server-v0.7.0", "command": ["./llama-server"]}
VLLM_SERVER = ["python3", "-m", "vllm.entrypoints.openai.api_server"]
VLLM = {"image": "vllm/vllm-openai", "version": "v0.33.0", "command": VLLM_SERVER}
SWITCHED_ON = [{"name": "LLAMA_ARG_ENDPOINT_METRICS", "value": "1"}]
OFFLOADED = "vllm:kv_offload_cpu_cache_usage_perc"
METRICS: dict[str, tuple[Json, str, Json, str]] = {
    "no --metrics": (LLAMACPP, "llamacpp:requests_processing", {}, "without --metrics llama.cpp shows no metrics"),
    "--metrics of the Playground": (LLAMACPP, "llamacpp:requests_processing", {"args": ["--metrics"]}, ""),
    "a variable": (LLAMACPP, "llamacpp:requests_processing", {"envs": SWITCHED_ON}, ""),
    "a metric of an option": (VLLM, OFFLOADED, {}, "has it with --kv-transfer-config alone"),
    "the option": (VLLM, OFFLOADED, {"args": ["--kv-transfer-config", "{}"]}, ""),
    "none of all": (VLLM, "vllm:num_requests_running", {"args": ["--disable-log-stats"]}, "shows no metrics"),
}
"""The engine, the metric that the autoscaler follows, what the Playground adds, and what is told of it."""


@pytest.mark.parametrize(("engine", "metric", "added", "part"), METRICS.values(), ids=METRICS)
def test_metrics_that_need_an_option(tmp_path: Path, engine: Json, metric: str, added: Json, part: str) -> None:
    target = {"type": "AverageValue", "averageValue": "1"}
    followed = {"hpa": {"metrics": [{"type": "Pods", "pods": {"metric": {"name": metric}, "target": target}}]}}
    elastic = {"minReplicas": 1, "maxReplicas": 2, "scaleTrigger": followed}
    arguments = [{"name": "default", "args": ["--model", "{{ .ModelPath }}"]}]
    own = runtime(**engine, recommendedConfigs=arguments)
    items = [playground(elasticConfig=elastic, backendRuntimeConfig=added), model(**ONE_GPU), own]
    told = [text for text in findings(tmp_path, items) if "pods.metric.name" in text]
    assert [part in text for text in told] == ([True] if part else [])
