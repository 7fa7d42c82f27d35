"""Strategies for InferenceServices and Models with any combination of fields that admission accepts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from app.kube.base import Json
from tests.llmkube.inferenceservice.world import model, service

_NAMES = st.from_regex(r"[a-z]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True).filter(
    lambda name: not any(part in name for part in ("..", ".-", "-."))
)
_LABELS = st.dictionaries(
    st.sampled_from(["team", "app", "example.com/tier", "inference.llmkube.dev/model"]),
    st.sampled_from(["", "a", "A.b_c-1"]),
    max_size=3,
)
_QUANTITIES = st.sampled_from(["1", "500m", "1000m", "1.5Gi", "2048Mi", "1e3", "0.1", "100k"])
_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
_ARGS = st.lists(
    st.sampled_from(["--metrics", "--parallel=2", "--rope-scaling", "-m", "--max-num-seqs", "$(A)", "; rm -rf /"])
    | _TEXTS,
    max_size=3,
)
_INT32 = 2**31 - 1


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Return a strategy for any subset of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


_ENV_VALUES = st.one_of(
    st.builds(lambda text: {"value": text}, _TEXTS),
    st.just({}),
    st.just({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    st.just({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}}),
)
_ENV = st.lists(
    st.builds(lambda name, value: {"name": name, **value}, st.sampled_from(["A", "B", "HF_TOKEN"]), _ENV_VALUES),
    max_size=4,
)
_TOLERATIONS = st.lists(
    st.sampled_from(
        [
            {"operator": "Exists"},
            {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5, "value": ""},
            {"key": "nvidia.com/gpu", "operator": "Exists"},
        ]
    ),
    max_size=3,
)
_PROBES = st.sampled_from(
    [
        {"exec": {"command": ["true"]}, "periodSeconds": 5.0},
        {"httpGet": {"path": "/x", "port": "http", "httpHeaders": [{"name": "A", "value": ""}]}},
        {"tcpSocket": {"port": 80}, "initialDelaySeconds": 0, "terminationGracePeriodSeconds": None},
        {"grpc": {"port": 9000, "service": ""}, "newField": {"a": None, "b": []}},
    ]
)
_SECURITY = optional(
    runAsUser=st.integers(0, 2000),
    runAsNonRoot=st.booleans(),
    capabilities=st.just({"drop": ["ALL"], "add": []}),
    seccompProfile=st.just({"type": "RuntimeDefault"}),
)
_POD_SECURITY = optional(
    runAsUser=st.integers(0, 2000),
    runAsGroup=st.integers(0, 2000),
    fsGroup=st.integers(0, 2000),
    sysctls=st.just([{"name": "net.core.somaxconn", "value": "1"}]),
    newField=st.just({"x": 1.0}),
)
_TOKEN = st.just({"name": "hf", "key": "token"})
_METRICS = st.lists(
    st.sampled_from(
        [
            {"type": "Pods", "name": "queue", "targetAverageValue": "1500m"},
            {"type": "Resource", "name": "cpu", "targetAverageUtilization": 80},
            {"type": "Resource", "name": "memory", "targetAverageUtilization": 50, "targetAverageValue": "1"},
        ]
    ),
    max_size=3,
)
_VLLM = optional(
    tensorParallelSize=st.integers(1, 8),
    maxModelLen=st.integers(1, 131072),
    quantization=st.sampled_from(["awq", "fp8"]),
    dtype=st.sampled_from(["auto", "float16"]),
    kvCacheDtype=st.sampled_from(["auto", "fp8_e5m2"]),
    kvCacheCustomDtype=_TEXTS,
    enablePrefixCaching=st.booleans(),
    maxNumBatchedTokens=st.integers(512, 8192),
    speculative=optional(
        enabled=st.booleans(),
        model=st.sampled_from(["", "m", "draft", "org/x"]),
        numSpeculativeTokens=st.integers(1, 16),
    ),
    hfTokenSecretRef=_TOKEN,
    cpuOffloadGB=st.integers(0, 10),
    gpuMemoryUtilization=st.floats(0.1, 0.99),
)
_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu.count", "operator": "Gt", "values": ["1"]}]}]
        }
    },
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1.0,
                "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "namespaces": [], "labelSelector": None},
            }
        ]
    },
}
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"a": ""}},
    "minDomains": None,
}
_VOLUMES = [
    {"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}},
    {"name": "files", "configMap": {"name": "c", "items": [{"key": "k", "path": "a/b.yaml"}], "optional": False}},
]
_VOLUME_MOUNTS = [
    {"name": "scratch", "mountPath": "/scratch", "readOnly": False},
    {"name": "files", "mountPath": "/files", "subPath": ""},
]
_SGLANG = optional(
    tensorParallelSize=st.integers(1, 8),
    memFractionStatic=st.floats(0.1, 0.99),
    kvCacheDtype=st.sampled_from(["auto", "fp8_e5m2"]),
    speculative=optional(enabled=st.booleans(), algorithm=st.just("EAGLE"), draftModelPath=_TEXTS),
    loraModules=st.lists(
        _TEXTS | st.sampled_from(["a=b", '{"name": "a", "path": "/x"}', "{}", "[1]", "{"]), max_size=3
    ),
    hfTokenSecretRef=_TOKEN,
)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "runtime": st.sampled_from(["llamacpp", "llamacpp-router", "vllm", "tgi", "sglang", "personaplex", "generic"]),
    "suspend": st.booleans(),
    "mode": st.sampled_from(["chat", "embedding", "rerank"]),
    "bindAddress": st.sampled_from(["", "::", "127.0.0.1"]),
    "revisionHistoryLimit": st.integers(0, 20),
    "affinity": st.sampled_from([{}, _AFFINITY]),
    "topologySpreadConstraints": st.sampled_from([[], [_SPREAD]]),
    "extraVolumeMounts": st.sampled_from([[], _VOLUME_MOUNTS]),
    "modelCache": st.sampled_from([{}, {"persistence": "Ephemeral"}, {"claimName": "own"}]),
    "disruption": optional(protectAlways=st.booleans(), protectStartup=st.booleans()),
    "sglangConfig": _SGLANG,
    "replicas": st.integers(0, 10),
    "command": st.lists(_TEXTS, max_size=2),
    "args": _ARGS,
    "extraArgs": _ARGS,
    "env": _ENV,
    "containerPort": st.integers(1, 65535),
    "skipModelInit": st.booleans(),
    "contextSize": st.integers(128, 2097152),
    "parallelSlots": st.integers(1, 64),
    "flashAttention": st.booleans(),
    "jinja": st.booleans(),
    "cacheTypeK": st.sampled_from(["f16", "q8_0"]),
    "cacheTypeCustomV": _TEXTS,
    "moeCPULayers": st.integers(0, 99),
    "reasoningBudget": st.integers(0, _INT32),
    "reasoningBudgetMessage": _TEXTS,
    "tensorOverrides": st.lists(st.sampled_from(["exps=CPU", r"\.ffn_.*=CUDA0,x=CPU"]), max_size=2),
    "metadataOverrides": st.lists(st.sampled_from(["a.b=int:-1", "a=str:", "a=str:x,b=bool:true"]), max_size=2),
    "batchSize": st.integers(1, 16384),
    "ropeScaling": st.just({"type": "yarn", "factor": "2.0"}),
    "resources": optional(
        gpu=st.integers(0, 8),
        cpu=_QUANTITIES,
        memory=_QUANTITIES,
        hostMemory=_QUANTITIES,
        gpuMemory=_QUANTITIES,
        ephemeralStorage=st.sampled_from(["10Gi", "1e9", "1024Mi"]),
    ),
    "endpoint": optional(
        port=st.integers(1, 65535),
        path=st.sampled_from(["/v1", "/v1/chat/completions?x=1"]),
        type=st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]),
        nodePort=st.integers(30000, 32767),
    ),
    "autoscaling": st.builds(
        lambda most, more: {"maxReplicas": most, **more},
        st.integers(10, 100),
        optional(minReplicas=st.integers(1, 10), metrics=_METRICS),
    ),
    "probeOverrides": optional(startup=_PROBES, liveness=_PROBES),
    "tolerations": _TOLERATIONS,
    "nodeSelector": st.just({"kubernetes.io/arch": "amd64"}) | st.just({}),
    "podAnnotations": st.dictionaries(st.sampled_from(["a", "b.c/d"]), _TEXTS, max_size=2),
    "podLabels": _LABELS,
    "runtimeClassName": st.sampled_from(["", "nvidia"]),
    "imagePullSecrets": st.lists(st.sampled_from([{"name": "one"}, {"name": "two"}]), max_size=2, unique_by=str),
    "priority": st.sampled_from(["critical", "batch"]),
    "priorityClassName": st.sampled_from(["", "gold"]),
    "podSecurityContext": _POD_SECURITY,
    "securityContext": _SECURITY,
    "vllmConfig": _VLLM,
    "tgiConfig": optional(quantize=st.just("awq"), maxInputLength=st.integers(1, 9999), hfTokenSecretRef=_TOKEN),
    "personaPlexConfig": optional(quantize4Bit=st.booleans(), hfTokenSecretRef=_TOKEN),
}

services: st.SearchStrategy[Json] = st.builds(
    lambda name, spec: service(name, **{"image": "example.com/server:1", "extraVolumes": _VOLUMES, **spec}),
    _NAMES,
    optional(**_FIELDS),
)
"""Services of Model ``m``, each with any of the fields."""

_GPU = optional(
    count=st.integers(0, 8),
    vendor=st.sampled_from(["nvidia", "amd", "intel"]),
    layers=st.integers(-1, 99),
    sharding=optional(
        strategy=st.sampled_from(["layer", "tensor", "row", "pipeline", "none"]),
        layerSplit=st.lists(st.sampled_from(["0-9", "10-29", "x", ""]), max_size=3),
    ),
)
models: st.SearchStrategy[Json] = st.builds(
    lambda source, spec: model(source=source, **spec),
    st.sampled_from(
        [
            "https://example.com/a b?c=$(D)&e='f'",
            "org/repo",
            "pvc://claim/dir/x.gguf",
            "file:///mnt/x.gguf",
            "https://huggingface.co/org/repo",
        ]
    ),
    optional(
        hardware=optional(accelerator=st.sampled_from(["cpu", "cuda", "rocm", "intel", "metal"]), gpu=_GPU),
        format=st.sampled_from(["gguf", "safetensors"]),
        refreshPolicy=st.just("OnChange"),
        sha256=st.just("a" * 64),
        resources=optional(cpu=_QUANTITIES, memory=_QUANTITIES),
    ),
)
"""Ready Models called ``m``."""
