"""Each rule about pods, in each kind that has pods: what it warns of, or why the kind cannot break it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from app.desk.cluster.offline import direct, request_of
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import stored
from app.hooks.kind import AnyKind
from app.kserve.kinds import KINDS as KSERVE
from app.kube.base import Json
from app.llmaz.kinds import KINDS as LLMAZ
from app.llmaz.names import DEFAULT_BACKEND, SKIP_LOADER
from app.llmkube.kinds import KINDS as LLMKUBE
from app.settings import Settings
from app.workload.advice.advise import RULES
from tests import hookcalls

ENGINE: Json = {"image": "vllm/vllm-openai:v0.20.0"}
AARCH64: Json = {"kubernetes.io/arch": "aarch64"}
NODES: Json = {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["aarch64"]}]}
TWICE = "Duplicate value"
AS_ROOT: Json = {"runAsUser": 0}
STRICT: Json = {"runAsNonRoot": True}
ALLOWED: Json = {"runAsNonRoot": False}
ROOT: Json = {**AS_ROOT, **STRICT}
HOST_PROCESS: Json = {"windowsOptions": {"hostProcess": True}}
SERVES: Json = {"args": ["--max-model-len=4096"]}


class Case(msgspec.Struct, frozen=True):
    """A mistake in a container, or in its pod, and a part of the warning."""

    rule: str
    words: str
    container: Json = {}
    pod: Json = {}
    refused: str = "\n"
    """A part of the error, where another rule refuses the mistake."""
    gpus: int = 1
    """GPUs of the container."""
    repository: str = "a/b"
    """The repository of the model on the Hugging Face Hub."""
    fetches: bool = False
    """The server gets the model from the hub itself."""


def get(**fields: Any) -> Json:
    return {"readinessProbe": {"httpGet": {"path": "/health", "port": 8000, **fields}}}


CASES = [
    Case("port_conflicts", "has port 80 already", {"ports": [{"containerPort": 80}]}, {"second": True}),
    Case("node_selector", "it is one of 386, amd64", pod={"nodeSelector": AARCH64}),
    Case(
        "affinity",
        "it is one of 386, amd64",
        pod={
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODES]}}
            }
        },
    ),
    Case(
        "spread",
        "no effect without labelSelector",
        pod={
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]
        },
    ),
    Case("volumes", "no container mounts volume spare", pod={"volumes": [{"name": "spare", "emptyDir": {}}]}),
    Case("volumes", "without the name of the image", pod={"volumes": [{"name": "m", "image": {}}]}),
    Case("names_of_services", "ClusterFirstWithHostNet", pod={"hostNetwork": True}),
    Case("service_links", "one that is called vllm, prometheus or master", pod={"enableServiceLinks": True}),
    Case(
        "behind_gates", "without the feature gate", pod={"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]}
    ),
    Case("behind_gates", "beside hostPID", pod={"hostUsers": False, "hostPID": True}),
    Case("pull_secrets", "is listed twice", pod={"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, refused=TWICE),
    Case("root", "contradicts runAsNonRoot", pod={"securityContext": ROOT}),
    Case("root", "contradicts runAsNonRoot", {"securityContext": ROOT}),
    Case("root", "contradicts runAsNonRoot", {"securityContext": STRICT}, {"securityContext": AS_ROOT}),
    Case("root", "contradicts runAsNonRoot", {"securityContext": AS_ROOT}, {"securityContext": STRICT}),
    Case("root", "which container main has by default", {"securityContext": AS_ROOT}),
    Case("root", "which container main has by default", pod={"securityContext": AS_ROOT}),
    Case("host_processes", "needs the node's network", {"securityContext": HOST_PROCESS}),
    Case("host_processes", "needs the node's network", pod={"securityContext": HOST_PROCESS}),
    Case("image_user", "runs as root, which runAsNonRoot forbids", pod={"securityContext": {"runAsNonRoot": True}}),
    Case(
        "image_user",
        "has no user 1000680000",
        pod={"securityContext": {"runAsNonRoot": True, "runAsUser": 1000680000}},
    ),
    Case("command", "no program has this name", {"command": ["node server.js"]}),
    Case("arguments", "an option and its value are two items", {"args": ["--dtype auto"]}),
    Case("handlers", "the node itself", get(host="127.0.0.1")),
    Case("handlers", "no program has this name", {"lifecycle": {"preStop": {"exec": {"command": ["sleep 5"]}}}}),
    Case("probe_path", "does not serve /helth", get(path="/helth")),
    Case(
        "probe_time",
        "so readinessProbe may fail at any time",
        {"image": "lmsysorg/sglang:v0.5.15", "command": ["python3", "-m", "sglang.launch_server"], **get()},
    ),
    Case("probe_port", "htttp", get(port="htttp")),
    Case("probe_scheme", "the server speaks HTTP,", get(scheme="HTTPS")),
    Case("probe_scheme", "the server speaks HTTPS", {**get(), "args": ["--ssl_keyfile", "/tls/key"]}),
    Case("amounts", "16 is 16 bytes", {"resources": {"limits": {"memory": "16"}}}),
    Case("variables", "$(B) is not replaced", {"env": [{"name": "A", "value": "$(B)"}, {"name": "B", "value": "x"}]}),
    Case(
        "variables", "is set twice", {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, refused=TWICE
    ),
    Case(
        "variables",
        "no volume that provides this file",
        {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "files", "path": "a", "key": "b"}}}]},
    ),
    Case("tag", "no image has this tag", {"image": "vllm/vllm-openai:0.20.0"}),
    Case("temporary_files", "cannot write to /tmp", {"securityContext": {"readOnlyRootFilesystem": True}}),
    Case("options", "has no option --max-model-lne", {"args": ["--max-model-lne=4"]}),
    Case(
        "prompt_cache",
        "earlier prompts in host memory",
        {
            "image": "ghcr.io/ggml-org/llama.cpp:server-cuda",
            "command": ["llama-server"],
            "resources": {"limits": {"memory": "4Gi"}},
        },
    ),
    Case("references", "no shell reads it", {"args": ["--api-key=$KEY"], "env": [{"name": "KEY", "value": "x"}]}),
    Case("requests", "port", {"args": ["--port=9999"]}),
    Case("devices", "needs an NVIDIA GPU", SERVES, gpus=0),
    Case("sizes", "--tensor-parallel-size is 4, but a pod has 1 GPU", {"args": ["--tensor-parallel-size=4"]}, gpus=1),
    Case("sizes", "unless it divides the model's attention heads", {"args": ["--tensor-parallel-size=3"]}, gpus=4),
    Case("sizes", "vLLM uses 1 of the 2 GPUs of a pod", SERVES, gpus=2),
    Case("nodes", "waits for 2 nodes", {"args": ["--nnodes=2"]}),
    Case("weights", "has GGUF files by its name", SERVES, repository="a/b-GGUF"),
    Case("weights", "is quantized with AWQ", {"args": ["--quantization=gptq"]}, repository="a/b-AWQ"),
    Case("offline", "may not ask the hub", {"env": [{"name": "HF_HUB_OFFLINE", "value": "1"}]}, fetches=True),
    Case(
        "missing_parts",
        "no volume of the pod has this name",
        {"volumeMounts": [{"name": "spare", "mountPath": "/spare"}]},
        {"volumes": [{"name": "another", "emptyDir": {}}]},
        refused="no volume of the pod has this name",
    ),
]


class Place(NamedTuple):
    """A kind, and the places of the fields of a container and of its pod in the spec of an object of it."""

    kind: AnyKind
    spec: Json
    container: dict[str, str]
    pod: dict[str, str]
    always: Json = ENGINE
    """Fields of every container."""
    beside: Callable[[Case], list[Json]] = lambda _: []
    """Objects beside it, which have what the kind has no field for."""


CONTAINER = (
    *("ports", "securityContext", "command", "args", "readinessProbe", "lifecycle", "resources", "env", "image"),
    "volumeMounts",
)
POD = ("nodeSelector", "affinity", "topologySpreadConstraints", "volumes", "imagePullSecrets", "securityContext")
WHOLE_POD = (*POD, "hostNetwork", "enableServiceLinks")


def at(path: str, name: str, *, started: bool = True) -> dict[str, Any]:
    """Return the places in a whole pod, whose container is started by a command."""
    fields = {field: f"{path}.containers.0.{field}" for field in CONTAINER}
    return {
        "container": {**fields, "name": f"{path}.containers.0.name"},
        "pod": {**{field: f"{path}.{field}" for field in WHOLE_POD}, "second": f"{path}.containers.1"},
        "always": {**ENGINE, "name": name, **({"command": ["vllm", "serve", "/mnt/models"]} if started else {})},
    }


MODEL, INFERENCE_SERVICE = (
    next(kind for kind in LLMKUBE if kind.resource.kind == name) for name in ("Model", "InferenceService")
)
OPEN_MODEL, BACKEND_RUNTIME, PLAYGROUND, SERVICE = LLMAZ
LLM, CONFIG = KSERVE
URI: Json = {"model": {"uri": "hf://a/b"}}
MULTI: Json = {**URI, "parallelism": {"data": 2, "dataLocal": 1}}
PREFILL: Json = {**URI, "router": {"scheduler": {}, "route": {}}}
PRESET = "recommendedConfigs.0"
OWN = "backendRuntimeConfig"


def document(kind: AnyKind, spec: Json, annotations: Json | None = None, name: str = "m") -> Json:
    metadata = {"name": name, "namespace": "team", "annotations": annotations or {}}
    return {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "metadata": metadata, "spec": spec}


def model(case: Case) -> list[Json]:
    """Return LLMKube's Model, which brings GPUs and names the repository."""
    hardware = {"accelerator": "cuda", "gpu": {"count": case.gpus}} if case.gpus else {}
    return [document(MODEL, {"source": case.repository, "format": "safetensors", "hardware": hardware})]


def open_model(case: Case) -> list[Json]:
    """Return llmaz' OpenModel and BackendRuntime; the flavor brings GPUs."""
    flavor = {"name": "a", "limits": {"nvidia.com/gpu": str(case.gpus)}} if case.gpus else {"name": "a"}
    source = {"modelHub": {"modelID": case.repository}}
    return [
        document(OPEN_MODEL, {"familyName": "m", "source": source, "inferenceConfig": {"flavors": [flavor]}}),
        document(
            BACKEND_RUNTIME,
            {
                "image": "vllm/vllm-openai",
                "version": "v0.20.0",
                "command": ["vllm", "serve"],
                "recommendedConfigs": [{"name": "default", "args": ["{{ .ModelPath }}"]}],
            },
            name=DEFAULT_BACKEND,
        ),
    ]


PLACES = {
    "Model": Place(MODEL, {"source": "a/b"}, {"resources.limits.memory": "resources.memory"}, {}),
    "InferenceService": Place(
        INFERENCE_SERVICE,
        {"modelRef": "m", "runtime": "vllm"},
        {
            **{name: name for name in ("securityContext", "command", "env", "image")},
            "args": "extraArgs",
            "readinessProbe": "probeOverrides.readiness",
            "volumeMounts": "extraVolumeMounts",
            "resources.limits.memory": "resources.memory",
        },
        {
            **{name: name for name in POD},
            "volumes": "extraVolumes",
            "securityContext": "podSecurityContext",
        },
        beside=model,
    ),
    "LLMInferenceService": Place(LLM, URI, **at("template", "main")),
    "LLMInferenceService's workers": Place(LLM, MULTI, **at("worker", "main")),
    "LLMInferenceService's prefill": Place(LLM, PREFILL, **at("prefill.template", "main")),
    "LLMInferenceService's storage initializer": Place(
        LLM,
        URI,
        {name: f"template.initContainers.0.{name}" for name in ("name", "env")},
        {},
        {"name": "storage-initializer"},
    ),
    "LLMInferenceServiceConfig": Place(CONFIG, {}, **at("template", "main")),
    "Service": Place(
        SERVICE,
        {"modelClaims": {"models": [{"name": "m"}]}},
        **at("workloadTemplate.workerTemplate.spec", "model-runner"),
        beside=open_model,
    ),
    "BackendRuntime": Place(
        BACKEND_RUNTIME,
        {"recommendedConfigs": [{"name": "default"}]},
        {
            **{name: name for name in ("command", "readinessProbe", "lifecycle")},
            "env": "envs",
            "image": "image+version",
            "args": f"{PRESET}.args",
            "resources": f"{PRESET}.resources",
        },
        {},
    ),
    "Playground": Place(
        PLAYGROUND,
        {"modelClaim": {"modelName": "m"}},
        {"env": f"{OWN}.envs", "args": f"{OWN}.args", "resources": f"{OWN}.resources", "image": "+version"},
        {},
        beside=open_model,
    ),
    "OpenModel": Place(
        OPEN_MODEL,
        {"familyName": "m", "source": {"uri": "s3://b/m"}, "inferenceConfig": {"flavors": [{"name": "a"}]}},
        {"resources.limits.memory": "inferenceConfig.flavors.0.limits.memory"},
        {"nodeSelector": "inferenceConfig.flavors.0.nodeSelector"},
    ),
}


def put(value: Any, path: str, part: Any) -> Any:
    """Return a document with a part at a path, whose numbers are positions in lists."""
    first, _, rest = path.partition(".")
    if not first.isdecimal():
        below = (value or {}).get(first)
        return {**(value or {}), first: put(below, rest, part) if rest else part}
    items = [*(value or ())]
    items += [{} for _ in range(len(items), int(first) + 1)]
    items[int(first)] = put(items[int(first)], rest, part) if rest else part
    return items


def leaves(fields: Json, places: dict[str, str]) -> list[tuple[str, Any]]:
    """Return the fields by the names of their places; of a place deeper within a field, what the field has there."""
    result = []
    for name, value in fields.items():
        deeper = [place for place in places if place.startswith(f"{name}.")]
        for place in [name] if name in places or not deeper else deeper:
            part = value
            for key in place.split(".")[1:]:
                part = part[key]
            result.append((place, part))
    return result


def spec_of(place: Place, case: Case) -> Json | None:
    """Return the spec with the mistake; ``None`` if the kind has no field for it."""
    pod = {**case.pod}
    if "second" in pod:
        pod["second"] = {**case.container, "name": "second", "image": "web:1"}
    parts = [*leaves(pod, place.pod), *leaves(case.container, place.container)]
    if any(name not in {**place.pod, **place.container} for name, _ in parts):
        return None
    fields = {**place.always, **case.container}
    spec = place.spec
    if "model" in spec:  # of KServe
        spec = {**spec, "model": {"uri": f"hf://{case.repository}"}}
    if case.fetches and place.kind is INFERENCE_SERVICE:
        spec = {**spec, "skipModelInit": True}
    if "second" in place.pod and case.gpus and "resources" not in fields:
        fields["resources"] = {"limits": {"nvidia.com/gpu": str(case.gpus)}}
    for places, values in ((place.container, fields), (place.pod, pod)):
        for name, value in leaves(values, places):
            spec = with_part(spec, places.get(name, ""), value)
    return spec


def with_part(spec: Json, path: str, value: Any) -> Json:
    if "+" not in path:
        done: Json = put(spec, path, value) if path else spec
        return done
    repository, _, tag = str(value).partition(":")
    image, _, version = path.partition("+")
    spec = {**spec, image: repository} if image else spec
    return {**spec, version: tag} if image else put(spec, f"{OWN}.{version}", tag)


def warnings(place: Place, case: Case, spec: Json) -> list[str]:
    """Return the warnings and errors of an object alone, and with the objects beside it."""
    written = document(place.kind, spec, {SKIP_LOADER: "true"} if case.fetches else {})
    verdict = hookcalls.admit(place.kind, written)
    told = [*map(str, verdict.warnings), *map(str, verdict.errors)]
    cross_object = place.kind.offline.cross_object_warnings
    beside = place.beside(case)
    if verdict.errors or not beside or cross_object is None:
        return told
    cluster = Cluster(direct(Settings()))
    for other in (*beside, written):
        cluster.put(stored(other, "team"))
    request = request_of(place.kind, stored(written, "team"), cluster)
    resource, _ = place.kind.decode(request.parent)
    assert resource is not None
    return [*told, *map(str, cross_object(resource, request, Settings()))]


BASED = "services, or presets, may have what a config lacks"
MOUNTED = "the presets mount a volume at /tmp"
FLAVORS = "flavors of a Playground's model bring GPUs, and the model its repository"
DEGREE = "the pipeline degree of a Playground's flavor may give it workers"
OWN_SIZE = "the runtime gives its server the size itself"
FETCHED = "the storage initializer gets the model"
LEADER = "requests go to the leader"
BY_PARALLELISM = "parallelism tells the sizes"
LLM_KINDS = ("LLMInferenceService", "LLMInferenceService's workers", "LLMInferenceService's prefill")
NO_PRESETS = "only the presets of KServe let no container be root"
MISSING = {
    **{("temporary_files", kind): MOUNTED for kind in LLM_KINDS},
    ("prompt_cache", "InferenceService"): "known together with the runtime: tests/cli/test_promptcache",
    ("prompt_cache", "BackendRuntime"): "known together with the Playground: tests/cli/test_promptcache",
    ("prompt_cache", "LLMInferenceServiceConfig"): BASED,
    ("the server speaks HTTPS", "BackendRuntime"): "known together with the preset: tests/llmaz/playground",
    **{(rule, "BackendRuntime"): FLAVORS for rule in ("devices", "sizes", "weights", "offline")},
    **{("which container main has by default", kind): NO_PRESETS for kind in ("InferenceService", "Service")},
    ("which container main has by default", "LLMInferenceServiceConfig"): BASED,
    **{("offline", kind): FETCHED for kind in (*LLM_KINDS, "LLMInferenceServiceConfig")},
    ("vLLM uses 1 of the 2 GPUs of a pod", "InferenceService"): OWN_SIZE,
    ("requests", "LLMInferenceService's workers"): LEADER,
    ("sizes", "LLMInferenceService's workers"): BY_PARALLELISM,
    ("nodes", "LLMInferenceService's workers"): "they are the other nodes",
    **{("nodes", kind): DEGREE for kind in ("BackendRuntime", "Playground")},
    **{
        (rule, "LLMInferenceServiceConfig"): BASED
        for rule in (
            *("spread", "volumes", "names_of_services", "probe_port", "probe_scheme", "temporary_files", "requests"),
            *("devices", "nodes", "weights", "missing_parts"),
        )
    },
    **{
        (words, "LLMInferenceServiceConfig"): BASED
        for words in ("needs the node's network", "$(B) is not replaced", "no volume that provides this file")
    },
}
"""The rules, or the words of one of their warnings, that do not reach a kind which has the field, and why."""


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.words}")
def test_each_rule_reaches_each_kind(name: str, case: Case) -> None:
    place = PLACES[name]
    spec = spec_of(place, case)
    if spec is None:
        return  # the kind has no field for it
    is_missing = {(case.rule, name), (case.words, name)} & MISSING.keys()
    answers = warnings(place, case, spec)
    assert any(case.words in text or case.refused in text for text in answers) is not bool(is_missing), answers


FILE = "https://example.com/m.safetensors"


@pytest.mark.parametrize(
    ("name", "case", "uri", "is_warned"),
    [
        ("InferenceService", Case("root", "", repository="a/b"), "", False),
        ("InferenceService", Case("root", "", repository=FILE), "", True),
        ("Service", Case("root", "", fetches=True), "", False),
        ("Service", Case("root", ""), "", True),
        ("LLMInferenceService", Case("root", ""), "pvc://models/m", False),
        ("LLMInferenceService", Case("root", ""), "hf://a/b", True),
    ],
)
def test_a_container_that_loads_the_model_has_the_user_of_the_pod(
    name: str, case: Case, uri: str, is_warned: bool
) -> None:
    """Here the server alone is allowed to be root."""
    allowed = msgspec.structs.replace(case, pod={"securityContext": ROOT}, container={"securityContext": ALLOWED})
    spec = spec_of(PLACES[name], allowed)
    assert spec is not None
    spec = {**spec, "model": {"uri": uri}} if uri else spec
    told = [text for text in warnings(PLACES[name], allowed, spec) if "contradicts" in text]
    assert len(told) == is_warned


def test_each_rule_has_a_case() -> None:
    assert {rule.__name__ for rule in RULES} == {case.rule for case in CASES}


SGLANG: Json = {
    "name": "main",
    "command": ["python3", "-m", "sglang.launch_server"],
    "image": "lmsysorg/sglang:v0.5.15",
}


@pytest.mark.parametrize(
    ("changes", "probes"),
    [
        ({}, "startupProbe, livenessProbe, readinessProbe"),
        ({"image": "lmsysorg/sglang:v0.4.5-cu121"}, ""),
        ({"env": [{"name": "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "value": "false"}]}, ""),
        ({"readinessProbe": {"timeoutSeconds": 5}}, "startupProbe, livenessProbe"),
    ],
)
def test_health_checks_of_sglang_need_more_than_a_second(changes: Json, probes: str) -> None:
    """The probes of KServe's presets have one second; releases before 0.5 answer /health at once."""
    spec = {"model": {"uri": "hf://Qwen/Qwen3-8B", "name": "q"}, "template": {"containers": [{**SGLANG, **changes}]}}
    case = Case("probe_time", probes)
    found = [text for text in warnings(PLACES["LLMInferenceService"], case, spec) if "health check" in text]
    assert [f"so {probes} may fail" in text for text in found] == ([True] if probes else [])
