"""The field that was meant by an unknown one."""

from __future__ import annotations

from typing import Any

import pytest

from app.families import RESOURCES
from app.kube import field
from app.kube.base import Json
from app.kube.field import Advice
from app.kube.modelfields import check_embedded, unknown_fields

SPEC = field.Path("spec")
MODEL: Json = {"uri": "hf://a/b"}


def warnings(kind: str, spec: Any) -> list[Advice]:
    resource = next(resource for resource in RESOURCES if resource.kind == kind)
    typed = resource.spec.model_validate(spec)
    return [*unknown_fields(spec, resource.spec, SPEC), *check_embedded(typed, SPEC)[1]]


def pod(spec: Json) -> Json:
    return {"model": MODEL, "template": spec}


def container(fields: Json) -> Json:
    return pod({"containers": [{"name": "main", **fields}]})


NODES = "; remove it: the pods of a replica follow from parallelism, data / dataLocal or pipeline"
HIGHER = "; it belongs {} higher: indent it less"
MEANT: dict[str, tuple[str, Json, str]] = {
    "resource": ("LLMInferenceService", container({"resources": {"memory": "4Gi"}}), "limits.memory"),
    "GPU by its common name": ("LLMInferenceService", container({"resources": {"gpu": 1}}), "limits.nvidia.com/gpu"),
    "GPU": ("LLMInferenceService", container({"resources": {"nvidia.com/gpu": 1}}), "limits.nvidia.com/gpu"),
    "field of a container": ("LLMInferenceService", pod({"env": []}), "containers[].env"),
    "field of a context": ("LLMInferenceService", container({"runAsUser": 1}), "securityContext.runAsUser"),
    "source of a variable": (
        "LLMInferenceService",
        container({"env": [{"name": "A", "secretKeyRef": {"name": "s", "key": "k"}}]}),
        "valueFrom.secretKeyRef",
    ),
    "first word": ("LLMInferenceService", {"model": MODEL, "parallelism": {"tensorParallelSize": 2}}, "tensor"),
    "whole word": ("InferenceService", {"modelRef": "m", "autoscaling": {"maxReplicas": 2, "min": 1}}, "minReplicas"),
    "words of the object itself": (
        "LLMInferenceService",
        {"model": {**MODEL, "lora": {"maxLoraRank": 8}}},
        "maxRank",
    ),
    "last words": ("LLMInferenceService", {"model": MODEL, "autoscaling": {"maxReplicas": 2}}, "scaling"),
    "object and field": ("LLMInferenceService", {"modelUri": "hf://a/b"}, "model.uri"),
    "field of an item": ("LLMInferenceService", {"model": MODEL, "router": {"gateway": {"name": "g"}}}, "refs[].name"),
    "word of what is required": (
        "InferenceService",
        {"modelRef": "m", "extraVolumes": [{"name": "v", "persistentVolumeClaim": {"name": "c"}}]},
        "claimName",
    ),
    "all that is required": ("InferenceService", {"modelRef": "m", "env": [{"key": "A", "value": "b"}]}, "name"),
    "word at the end": (
        "InferenceService",
        {"modelRef": "m", "extraVolumes": [{"name": "v", "secret": {"name": "s"}}]},
        "secretName",
    ),
    "abbreviation": ("InferenceService", {"modelRef": "m", "ctxSize": 4096}, "contextSize"),
    "words of an object and its field": (
        "InferenceService",
        {"modelRef": "m", "livenessProbe": {}},
        "probeOverrides.liveness",
    ),
    "fewest other words": ("InferenceService", {"modelRef": "m", "volumes": []}, "extraVolumes"),
    "name of another engine": (
        "InferenceService",
        {"modelRef": "m", "sglangConfig": {"tpSize": 2}},
        "tensorParallelSize",
    ),
    "last word": ("LLMInferenceService", {"model": {**MODEL, "modelName": "q"}}, "name"),
}


@pytest.mark.parametrize("case", MEANT)
def test_suggests_a_field(case: str) -> None:
    kind, spec, meant = MEANT[case]
    [warning] = warnings(kind, spec)
    assert warning.endswith(f', did you mean "{meant}"?')
    assert warning.suggested == (meant,)


UNMEANT: dict[str, tuple[str, Json, str]] = {
    "pod in a container": ("LLMInferenceService", container({"nodeSelector": {}}), HIGHER.format("one level")),
    "spec in a pod": ("LLMInferenceService", pod({"replicas": 2}), HIGHER.format("one level")),
    "spec in a container": ("LLMInferenceService", container({"parallelism": {}}), HIGHER.format("2 levels")),
    "managed gateway": (
        "LLMInferenceService",
        {"router": {"gateway": {"managed": {}}}},
        "; remove it: gateway: {} is the default Gateway",
    ),
    "number of nodes": ("LLMInferenceService", {"worker": {"replicas": 7}}, NODES),
    "number of nodes for prefill": ("LLMInferenceService", {"prefill": {"worker": {"replicas": 7}}}, NODES),
    "several of a word": ("InferenceService", {"modelRef": "m", "pod": {}}, '"spec.pod"'),
    "words that differ": ("InferenceService", {"modelRef": "m", "storageClassName": "fast"}, '"spec.storageClassName"'),
    "switch": (
        "InferenceService",
        {"modelRef": "m", "autoscaling": {"maxReplicas": 2, "enabled": True}},
        "; remove it: spec.autoscaling is enabled by being set",
    ),
    "switch that is off": (
        "InferenceService",
        {"modelRef": "m", "autoscaling": {"maxReplicas": 2, "enabled": False}},
        "; leave spec.autoscaling out to disable it",
    ),
    "metadata of a pod": (
        "LLMInferenceService",
        pod({"metadata": {"labels": {}}}),
        "; write labels one level higher, beside template",
    ),
    "field of the object beside": (
        "InferenceService",
        {"modelRef": "m", "securityContext": {"fsGroup": 1}},
        "; it is a field of podSecurityContext",
    ),
    "no such word": ("LLMInferenceService", {"model": MODEL, "router": {"gateway": {"x": 1}}}, "; the fields are refs"),
    "many objects with the field": (
        "InferenceService",
        {"modelRef": "m", "hfTokenSecretRef": {}},
        "; it is a field of vllmConfig, tgiConfig, sglangConfig, personaPlexConfig",
    ),
}


@pytest.mark.parametrize("case", UNMEANT)
def test_suggests_no_field(case: str) -> None:
    kind, spec, end = UNMEANT[case]
    [warning] = warnings(kind, spec)
    assert warning.endswith(end)
    assert warning.suggested == ()


def test_a_very_long_name_is_not_compared() -> None:
    """No field has such a name, and each of its words would be compared with those of all fields."""
    long = "maxModelLength" * 5
    [warning] = warnings("InferenceService", {"modelRef": "m", long: 1})
    assert warning.endswith(f'unknown field "spec.{long}"')


def test_pod_fields_of_a_template() -> None:
    spec = {"modelClaims": {"models": [{"name": "m"}]}, "workloadTemplate": {"workerTemplate": {"containers": []}}}
    [warning] = warnings("Service", spec)
    assert warning.endswith(', did you mean "spec.containers"?')


def test_a_field_that_is_set_is_suggested_in_words_alone() -> None:
    """Written as data, it would become a duplicate key."""
    [warning] = warnings("InferenceService", {"modelRef": "m", "replicas": 1, "replica": 2})
    assert (warning.endswith('did you mean "replicas"?'), warning.suggested) == (True, ())


def test_of_several_fields_for_one_object_only_the_first_is_data() -> None:
    spec = {"modelClaim": {"modelName": "m"}, "minReplicas": 1, "maxReplicas": 2}
    assert [warning.suggested for warning in warnings("Playground", spec)] == [("elasticConfig.minReplicas",), ()]
