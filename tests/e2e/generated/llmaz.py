"""llmaz: OpenModels, a BackendRuntime, a Playground that uses them, and a separate Service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.kube.base import Json
from app.llmaz.backendruntime.types import BackendRuntimeSpec, RecommendedConfig
from app.llmaz.openmodel.types import Flavor, OpenModelSpec
from app.llmaz.playground.types import PlaygroundSpec
from app.llmaz.service.types import ServiceSpec
from tests.e2e.generated import pods
from tests.e2e.generated.draw import Draw, Pool, Rule
from tests.e2e.generated.kubernetes import LABELS, NODE_SELECTOR
from tests.e2e.generated.pods import pod

GROUP, MODEL_GROUP = "inference.llmaz.io/v1alpha1", "llmaz.io/v1alpha1"
SKIP = "llmaz.io/skip-model-loader"
_AMOUNTS: Mapping[str, tuple[Any, ...]] = {
    "cpu": ("1", "500m", "0.5", 2, "1000m"),
    "memory": ("1Gi", "1.5Gi", "2048Mi", 1000000000),
    "nvidia.com/gpu": (1, "2", "1e0"),
    "ephemeral-storage": ("1Gi",),
}
_ARGS = ("--model", "{{ .ModelPath }}", "{{.ModelName}}", "--port=8080", "$(A)", "", "a b", "x{}", "ü")
_ENGINE = "model-runner"


def _amounts(d: Draw) -> Json:
    return {name: d.choice(_AMOUNTS[name]) for name in d.some(tuple(_AMOUNTS))}


def _requests(d: Draw) -> Json:
    """Omit accelerators: flavors set those, and a request without a limit is refused."""
    return {name: amount for name, amount in _amounts(d).items() if "/" not in name}


def _template(d: Draw) -> Json:
    return {
        "metadata": {"labels": d.of(LABELS), "annotations": {"a": d.choice(("", "x"))}},
        "spec": pod(d, _ENGINE, *d.some(("side",))),
    }


POOLS: Mapping[str, Pool] = {
    **pods.POOLS,
    "OpenModelSpec.familyName": ("opt", "llama3", "A.b_c"),
    "OpenModelSpec.createdAt": ("2025-01-01T00:00:00Z",),
    "ModelHub.modelID": ("facebook/opt-125m", "Qwen/Qwen2-0.5B"),
    "ModelHub.filename": ("model.gguf", "dir/model.gguf"),
    "ModelHub.revision": ("main", "0a1b2c"),
    "ModelHub.allowPatterns": lambda d: d.some(("*.json", "*.safetensors")),
    "ModelHub.ignorePatterns": lambda d: d.some(("*.bin", "a b*")),
    "ModelSource.uri": (
        "oss://bucket.endpoint.example.com/models/opt",
        "oss://bucket.endpoint.example.com/models/opt.gguf",
        "s3://bucket/models/opt",
        "gcs://bucket/models/opt",
        "gs://bucket/models/opt.gguf",
        "oci://registry.example.com/models/opt:1",
        "oci://opt#/weights/opt.gguf",
        "host:///srv/models/opt",
        "ollama://llama3",
    ),
    "InferenceConfig.flavors": lambda d: [_flavor(d, name) for name in d.some(("a100", "t4", "cpu"))],
    "Flavor.limits": _amounts,
    "Flavor.nodeSelector": NODE_SELECTOR,
    "Flavor.params": lambda d: {"INSTANCE-TYPE": d.choice(("", "p4d")), **({"TP": "2"} if d.chance() else {})},
    "BackendRuntimeSpec.image": ("example.com/engine", "registry.example.com:5000/engine"),
    "BackendRuntimeSpec.version": ("v1", "latest"),
    "BackendRuntimeSpec.command": lambda d: d.some(("server", "sh", "")),
    "BackendRuntimeSpec.envs": lambda d: [d.embedded("EnvVar") for _ in range(d.randint(0, 3))],
    "BackendRuntimeSpec.recommendedConfigs": lambda d: [
        d.model(RecommendedConfig, name=name) for name in ("default", "speculative-decoding", *d.some(("other",)))
    ],
    "RecommendedConfig.args": lambda d: d.some(_ARGS),
    "ParamArguments.param": ("TP", "PP", "INSTANCE-TYPE"),
    "ParamArguments.args": (["--tp", "{{ .TP }}"], ["--stages={{ .PP }}"]),
    "ParamArguments.unless": (["-tp"],),
    "RecommendedConfig.sharedMemorySize": ("1Gi", "0.5Gi", "1000Mi"),
    "Resources.limits": _amounts,
    "Resources.requests": _requests,
    "HPATrigger.metrics": lambda d: d.some([d.embedded("MetricSpec") for _ in range(3)]),
    "BackendRuntimeConfig.backendName": ("engine-{}",),
    "BackendRuntimeConfig.version": ("v2",),
    "BackendRuntimeConfig.configName": ("default", "speculative-decoding"),
    "BackendRuntimeConfig.args": lambda d: d.some(_ARGS),
    "BackendRuntimeConfig.envs": lambda d: [d.embedded("EnvVar") for _ in range(d.randint(0, 3))],
    "BackendRuntimeConfig.sharedMemorySize": ("2Gi", "1.5Gi"),
    "ModelClaim.inferenceFlavors": lambda d: d.some(("a100", "t4", "cpu")),
    "ModelClaims.inferenceFlavors": lambda d: d.some(("a100", "t4", "cpu")),
    "ServiceSpec.replicas": (0, 1, 3),
    "PlaygroundSpec.replicas": (0, 1, 3),
    "WorkloadTemplate.size": (1, 1, 1, 2, 4),
    "WorkloadTemplate.workerTemplate": _template,
    "WorkloadTemplate.leaderTemplate": _template,
    "SubGroupPolicy.subGroupSize": (1, 2),
    "RollingUpdateConfiguration.maxUnavailable": (0, 1, "25%", "100%"),
    "RollingUpdateConfiguration.maxSurge": (0, 2, "10%", "0%"),
}


def _flavor(d: Draw, name: str) -> Json:
    return d.model(Flavor, name=name)


def _hub(d: Draw, value: Json) -> None:
    if "filename" in value:
        for key in ("allowPatterns", "ignorePatterns"):
            value.pop(key, None)
        value.pop("name", None)
    value.setdefault("modelID", "facebook/opt-125m")


def _source(d: Draw, value: Json) -> None:
    if not value:
        value["uri"] = d.of(POOLS["ModelSource.uri"])


def _resources(d: Draw, value: Json) -> None:
    """Make limits override requests of the same name, so that no limit is below its request."""
    for name in value.get("limits", {}):
        if name in value.get("requests", {}):
            value["requests"][name] = value["limits"][name]


def _trigger(d: Draw, value: Json) -> None:
    value.setdefault("hpa", {})


def _elastic(d: Draw, value: Json) -> None:
    value["minReplicas"] = d.choice((1, 2))
    value["maxReplicas"] = d.choice((3, 10))


def _rolling(d: Draw, value: Json) -> None:
    if value.get("maxUnavailable", 1) == 0 and value.get("maxSurge", 0) in (0, "0%"):
        value["maxSurge"] = 1


def _workload(d: Draw, value: Json) -> None:
    """Make subgroups divide the group; a group of one pod has no leader to exclude."""
    if "subGroupPolicy" in value:
        value["subGroupPolicy"] = {"subGroupSize": 1} | d.choice(({}, {"subGroupPolicyType": "LeaderExcluded"}))


RULES: Mapping[str, Rule] = {
    **pods.RULES,
    "ModelHub": _hub,
    "ModelSource": _source,
    "Resources": _resources,
    "ScaleTrigger": _trigger,
    "ElasticConfig": _elastic,
    "RollingUpdateConfiguration": _rolling,
    "WorkloadTemplate": _workload,
}


def documents(number: int, namespace: str, variant: int) -> list[Json]:
    """Return the objects that both workloads use, then the two workloads."""
    d = Draw(f"llmaz-{number}-{variant}", POOLS, RULES)
    names = f"{namespace}-main-{number}", f"{namespace}-draft-{number}"
    playground: Json = {"metadata": {"name": f"play-{number}", "namespace": namespace, **_notes(d)}}
    service: Json = {"metadata": {"name": f"serve-{number}", "namespace": namespace, **_notes(d)}}
    playground["spec"] = d.model(PlaygroundSpec, without=("modelClaim", "modelClaims"))
    playground["spec"].setdefault("backendRuntimeConfig", {})["backendName"] = f"{namespace}-engine-{number}"
    if d.chance(0.6):
        playground["spec"]["modelClaim"] = {"modelName": names[0], **_flavors(d)}
    else:
        playground["spec"]["modelClaims"] = _claims(d, names)
    service["spec"] = d.model(ServiceSpec, modelClaims=_claims(d, names))
    return [
        *(
            {"apiVersion": MODEL_GROUP, "kind": "OpenModel", "metadata": {"name": n}, "spec": d.model(OpenModelSpec)}
            for n in names
        ),
        {
            "apiVersion": GROUP,
            "kind": "BackendRuntime",
            "metadata": {"name": f"{namespace}-engine-{number}"},
            "spec": d.model(
                BackendRuntimeSpec, recommendedConfigs=d.of(POOLS["BackendRuntimeSpec.recommendedConfigs"])
            ),
        },
        {"apiVersion": GROUP, "kind": "Playground", **playground},
        {"apiVersion": GROUP, "kind": "Service", **service},
    ]


def _notes(d: Draw) -> Json:
    return {"annotations": {SKIP: "true"}} if d.chance(0.3) else {}


def _claims(d: Draw, names: tuple[str, str]) -> Json:
    models = [{"name": names[0], "role": "main"}]
    if d.chance(0.3):
        models.append({"name": names[1], "role": "draft"})
    return {"models": models, **_flavors(d)}


def _flavors(d: Draw) -> Json:
    return {"inferenceFlavors": d.some(("a100", "t4", "cpu"), 2)} if d.chance() else {}
