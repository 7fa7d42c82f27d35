"""LLMKube: a Model and the InferenceService that serves it."""

from __future__ import annotations

from collections.abc import Mapping

from app.kube.base import Json
from app.llmkube.inferenceservice.types import DRAFT_TYPES, InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from tests.e2e.generated import kubernetes, pods
from tests.e2e.generated.draw import ABSENT, Draw, Pool, Rule
from tests.e2e.generated.kubernetes import LABELS, NAMES, NODE_SELECTOR

API_VERSION = "inference.llmkube.dev/v1alpha1"
_QUANTITIES = ("1", "500m", "1000m", "1.5Gi", "2048Mi", "1e3", "0.1", "100k")
_SIZES = ("1Gi", "1.5Gi", "2048Mi", "1e9", "3000M")

POOLS: Mapping[str, Pool] = {
    **kubernetes.POOLS,
    **pods.POOLS,
    "ModelSpec.source": (
        "https://example.com/m.gguf",
        "http://models.example.com:8080/a%20b.gguf?x=$(D)&e='f'",
        "org/repo",
        "pvc://claim/dir/x.gguf",
        "file:///mnt/x.gguf",
        "/mnt/y.gguf",
        "https://huggingface.co/org/repo",
        "hf://org/repo",
        "hf://org/repo@v1/dir/m.gguf",
        "s3://bucket/dir/m.gguf",
    ),
    "ModelSpec.files": lambda d: d.some(("a-00001-of-00002.gguf", "dir/a-00002-of-00002.gguf")),
    "ModelSpec.mmproj": ("mmproj.gguf",),
    "ModelSpec.sha256": ("a" * 64, "0F" * 32),
    "Sharding.layerSplit": lambda d: d.some(("0-9", "10-29", "x", ""), 3),
    "GPU.count": (0, 1, 2, 4, 8),
    "GPU.memory": _SIZES,
    "GPU.resourceName": ("nvidia.com/mig-1g.10gb", "example.com/gpu"),
    "GPU.tolerationKey": ("example.com/gpu",),
    "ModelSpec.sourceSecretRef": ({"name": "source"},),
    "LoRAAdapter.name": ("a", "b"),
    "LoRAAdapter.path": ("org/adapter", "/models/a"),
    "Hardware.memoryBudget": _SIZES,
    "Hardware.memoryFraction": (0.5, 1.0, 0.01),
    "ModelResources.cpu": _QUANTITIES,
    "ModelResources.memory": _SIZES,
    "ServiceResources.cpu": _QUANTITIES,
    "ServiceResources.memory": _SIZES,
    "ServiceResources.hostMemory": _SIZES,
    "ServiceResources.gpuMemory": _SIZES,
    "ServiceResources.ephemeralStorage": _SIZES,
    "ModelCache.claimName": ("weights",),
    "EndpointGateway.modelName": ("chat",),
    "GatewayReference.name": ("public",),
    "GatewayReference.namespace": ("gateways",),
    "InferenceServiceSpec.bindAddress": ("127.0.0.1", "::"),
    "InferenceServiceSpec.topologySpreadConstraints": lambda d: [
        d.embedded("TopologySpreadConstraint") for _ in range(d.randint(0, 1))
    ],
    "InferenceServiceSpec.extraVolumes": lambda d: [pods.volume(d, name) for name in d.some(("scratch", "certs"))],
    "InferenceServiceSpec.extraVolumeMounts": ABSENT,
    "SLO.objective": ("99.5", "99"),
    "SLO.window": ("28d", "12h"),
    "Endpoint.path": ("/v1", "/v1/chat/completions?x=1"),
    "Metric.name": ("cpu", "memory"),
    "Metric.targetAverageValue": ("1500m", "1", "0.5"),
    "Metric.targetAverageUtilization": (1, 80),
    "RopeScaling.factor": ("2.0", "4"),
    "InferenceServiceSpec.image": ("example.com/server:1",),
    "InferenceServiceSpec.env": lambda d: [d.embedded("EnvVar") for _ in range(d.randint(0, 3))],
    "InferenceServiceSpec.nodeSelector": NODE_SELECTOR,
    "InferenceServiceSpec.podLabels": LABELS,
    "InferenceServiceSpec.podAnnotations": lambda d: {key: d.choice(("", "x")) for key in d.some(("a", "b.c/d"))},
    "InferenceServiceSpec.runtimeClassName": ("", "nvidia"),
    "InferenceServiceSpec.imagePullSecrets": lambda d: [{"name": name} for name in d.some(NAMES)],
    "InferenceServiceSpec.priorityClassName": ("", "gold"),
    "InferenceServiceSpec.metadataOverrides": lambda d: d.some(("a=str:x", "b=int:1", "c=bool:true")),
    "InferenceServiceSpec.tensorOverrides": lambda d: d.some(("exps=CPU", "blk.1=CUDA0")),
    "Speculative.model": ("draft", "org/x"),
}


def _metric(d: Draw, value: Json) -> None:
    if value["type"] == "Pods":
        value.update(name="queue", targetAverageValue=d.choice(("1500m", "2")))
    else:
        value["targetAverageUtilization"] = d.choice((1, 80))


def _autoscaling(d: Draw, value: Json) -> None:
    value["maxReplicas"] = max(value["maxReplicas"], value.get("minReplicas", 1))


def _speculative(d: Draw, value: Json) -> None:
    if value.get("enabled"):
        value.setdefault("model", "draft")


def _speculative_decoding(d: Draw, value: Json) -> None:
    value.pop("draftModel", None)
    value.pop("draftModelRef", None)
    if value["type"] in DRAFT_TYPES:
        value[d.choice(("draftModelRef", "draftModel"))] = "draft"


def _sharing(d: Draw, value: Json) -> None:
    if value.get("mode") != "shared":
        value.pop("memoryLimitGiB", None)
    value.pop("profile", None)
    if value.get("mode") == "partitioned":
        value["profile"] = "1g.10gb"


def _gpu(d: Draw, value: Json) -> None:
    """Name claims or their templates; a resource name beside them is invalid."""
    if value.get("resourceClaims"):
        value.pop("resourceName", None)
        value["resourceClaims"] = [
            {"name": "own", "resourceClaimName": "gpu"},
            {"name": "shared", "resourceClaimTemplateName": "gpu"},
        ]


def _model(d: Draw, value: Json) -> None:
    """Name files only if the source holds several and does not name one itself."""
    if value["source"] not in ("hf://org/repo", "s3://bucket/dir/m.gguf"):
        value.pop("files", None)
    if not value.get("files"):
        value.pop("mmproj", None)


def _cache(d: Draw, value: Json) -> None:
    if value.get("persistence") == "Ephemeral":
        value.pop("claimName", None)


def _service(d: Draw, value: Json) -> None:
    mounted = [volume["name"] for volume in value.get("extraVolumes", ()) if d.chance(0.6)]
    if mounted:
        value["extraVolumeMounts"] = [
            d.embedded("VolumeMount", name=name, mountPath=f"/mnt/{name}", mountPropagation="None") for name in mounted
        ]
    if value.get("runtime") in ("generic", "personaplex"):
        value.setdefault("image", "example.com/server:1")
    for purpose in ("startup", "liveness"):
        probe = value.get("probeOverrides", {}).get(purpose)
        if probe and d.chance(0.3):
            probe["terminationGracePeriodSeconds"] = d.choice((1, 60))


RULES: Mapping[str, Rule] = {
    **kubernetes.RULES,
    **pods.RULES,
    "ModelSpec": _model,
    "ModelCache": _cache,
    "Metric": _metric,
    "Autoscaling": _autoscaling,
    "Speculative": _speculative,
    "SpeculativeDecoding": _speculative_decoding,
    "GPUSharing": _sharing,
    "GPU": _gpu,
    "InferenceServiceSpec": _service,
}


def documents(number: int, namespace: str, variant: int) -> list[Json]:
    """Return a Model and its service; the service is the last."""
    d = Draw(f"llmkube-{number}-{variant}", POOLS, RULES)
    name = ("m{}", "qwen-{}", "q{}-" + "x" * 40)[number % 3].format(number)
    metadata = {"namespace": namespace}
    model = {
        "apiVersion": API_VERSION,
        "kind": "Model",
        "metadata": {"name": name, **metadata},
        "spec": d.model(ModelSpec),
    }
    service = {
        "apiVersion": API_VERSION,
        "kind": "InferenceService",
        "metadata": {"name": f"s{number}-chat", **metadata},
        "spec": d.model(InferenceServiceSpec, modelRef=name),
    }
    return [model, service]
