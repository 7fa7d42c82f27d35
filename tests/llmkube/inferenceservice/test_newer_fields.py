"""Fields of newer API versions: their effect on pods, and that pods without them are unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from app.settings import Settings
from app.workload.parts import LOAD_ATTEMPTS
from tests.llmkube.inferenceservice.test_sync import RUNNING, replicas, running, scaled
from tests.llmkube.inferenceservice.world import (
    NAMESPACE,
    POD_MONITOR,
    applied,
    args,
    child,
    condition,
    container,
    customize,
    kinds,
    model,
    pod_spec,
    service,
    sync,
)
from tests.llmkube.objects import errors, warned
from tests.llmkube.objects import service as written

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD: Json = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "s"}},
}


def node(*terms: Json) -> Json:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def expression(operator: str, *values: str, key: str = "gpu.count") -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_where_pods_go() -> None:
    """Affinity and topology spread are passed on unchanged, with every runtime."""
    placed = {**node(expression("Gt", "3")), "topologySpreadConstraints": [SPREAD]}
    for runtime in ("llamacpp", "vllm", "tgi"):
        pod = pod_spec(sync(service(runtime=runtime, **placed), model()))
        assert pod["affinity"] == placed["affinity"]
        assert pod["topologySpreadConstraints"] == [SPREAD]


def test_volumes_beside_the_models() -> None:
    """The user's volumes follow the generated ones, and only the server's container mounts them."""
    volumes = [{"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}}]
    mounts = [{"name": "scratch", "mountPath": "/scratch"}, {"name": "model-cache", "mountPath": "/again"}]
    pod = pod_spec(sync(service(extraVolumes=volumes, extraVolumeMounts=mounts), model()))
    assert [volume["name"] for volume in pod["volumes"]] == ["model-cache", "scratch"]
    assert pod["volumes"][1]["emptyDir"] == {"sizeLimit": "1Gi"}
    assert pod["containers"][0]["volumeMounts"][1:] == mounts
    assert [mount["name"] for mount in pod["initContainers"][0]["volumeMounts"]] == ["model-cache"]


def test_disk_history_and_disruption() -> None:
    parent = service(
        resources={"ephemeralStorage": "2048Mi", "cpu": "1"},
        revisionHistoryLimit=0,
        disruption={"protectAlways": True},
        podAnnotations={"a": "b"},
    )
    answer = sync(parent, model())
    resources = container(answer)["resources"]
    assert resources == {
        "limits": {"ephemeral-storage": "2Gi"},
        "requests": {"cpu": "1", "ephemeral-storage": "2Gi"},
    }
    deployment = child(answer, "Deployment")["spec"]
    assert deployment["revisionHistoryLimit"] == 0
    annotations = deployment["template"]["metadata"]["annotations"]
    assert annotations == {"karpenter.sh/do-not-disrupt": "true", "a": "b"}
    with_annotation = service(
        disruption={"protectAlways": True}, podAnnotations={"karpenter.sh/do-not-disrupt": "false"}
    )
    template = child(sync(with_annotation, model()), "Deployment")["spec"]["template"]
    assert template["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "false"}


def test_a_template_does_not_depend_on_the_status() -> None:
    """Otherwise each pod that becomes ready would be replaced."""
    parent = service(disruption={"protectStartup": True}, suspend=False, affinity={})
    first = sync(parent, model())
    ready = sync({**parent, "status": {"phase": "Ready"}}, model(), children=applied(first, Deployment=RUNNING))
    assert child(ready, "Deployment")["spec"] == child(first, "Deployment")["spec"]
    assert (
        child(first, "Deployment")["spec"]["template"]
        == (child(sync(service(), model()), "Deployment")["spec"]["template"])
    )


def test_a_node_port_needs_its_type() -> None:
    def port(**endpoint: Any) -> Json:
        first: Json = child(sync(service(endpoint=endpoint), model()), "Service")["spec"]["ports"][0]
        return first

    assert port(type="NodePort", nodePort=30080)["nodePort"] == 30080
    assert "nodePort" not in port(type="NodePort")
    assert "nodePort" not in port(nodePort=30080)


@pytest.mark.parametrize(
    ("runtime", "flag"),
    [
        ("llamacpp", "--host"),
        ("llamacpp-router", "--host"),
        ("vllm", "--host"),
        ("sglang", "--host"),
        ("tgi", "--hostname"),
    ],
)
def test_bind_address(runtime: str, flag: str) -> None:
    """The user's address replaces the default."""
    assert f"{flag} 0.0.0.0 " in args(sync(service(runtime=runtime), model()))
    assert f"{flag} :: " in args(sync(service(runtime=runtime, bindAddress="::"), model()))


@pytest.mark.parametrize(
    ("mode", "extra", "flags"),
    [
        ("chat", [], ""),
        ("embedding", [], "--embedding --pooling last --cache-ram 0"),
        ("rerank", [], "--reranking --embedding --pooling rank --cache-ram 0"),
        ("embedding", ["--pooling", "mean"], "--embedding --cache-ram 0 --pooling mean"),
    ],
)
def test_mode_of_llamacpp(mode: str, extra: list[str], flags: str) -> None:
    line = args(sync(service(mode=mode, extraArgs=extra), model()))
    assert line.partition("--port 8080")[2].removesuffix("--metrics").strip() == flags


def suspended(**spec: Any) -> Json:
    return service(replicas=2, autoscaling={"maxReplicas": 5}, suspend=True, **spec)


def test_suspend_stops_and_resume_starts() -> None:
    """Suspending scales to 0 and removes the autoscaler; resuming restores both."""
    parent = service(replicas=2, autoscaling={"maxReplicas": 5})
    before = scaled(running(parent=parent), 4)
    stopped = sync(suspended(), model(), children=before)
    assert replicas(stopped) == 0
    assert kinds(stopped) == ["Deployment", "Service"]
    assert stopped["status"]["phase"] == "Suspended"
    assert condition(stopped, "Suspended")["status"] == "True"
    assert condition(stopped, "Available")["reason"] == "Suspended"
    assert condition(stopped, "Stopped")["message"] == "suspend is true"
    assert stopped["status"].get("desiredReplicas", 0) == 0
    at_zero = scaled(applied(stopped, before), 0)
    resumed = sync({**parent, "status": stopped["status"]}, model(), children=at_zero)
    assert replicas(resumed) == 2
    assert kinds(resumed) == ["Deployment", "Service", "HorizontalPodAutoscaler"]
    assert condition(resumed, "Suspended")["reason"] == "NotSuspended"
    assert condition(sync(service(), model()), "Suspended")["status"] == "False"


def test_suspend_works_while_the_model_is_away_or_the_spec_is_wrong() -> None:
    before = scaled(running(parent=service(replicas=2)), 2)
    waiting = sync(service(replicas=2, suspend=True), children=before)
    assert (waiting["status"]["phase"], replicas(waiting)) == ("Failed", 0)
    assert condition(waiting, "Suspended")["status"] == "True"
    wrong = sync(service(replicas=2, suspend=True, resources={"memory": "lots"}), model(), children=before)
    assert (condition(wrong, "Ready")["reason"], replicas(wrong)) == ("InvalidSpec", 0)


def test_suspend_on_metal() -> None:
    answer = sync(service(suspend=True), model(hardware={"accelerator": "metal"}))
    assert answer["status"]["phase"] == "Suspended"
    assert condition(answer, "Ready") == {}
    assert condition(answer, "Stopped")["reason"] == "Suspended"


def test_a_model_in_a_directory_of_the_pod() -> None:
    """Each pod downloads to an emptyDir with a size limit, and no claim is mounted."""
    parent = service(modelCache={"persistence": "Ephemeral"}, resources={"ephemeralStorage": "10Gi"})
    pod = pod_spec(sync(parent, model()))
    assert pod["volumes"] == [{"name": "model-storage", "emptyDir": {"sizeLimit": "10Gi"}}]
    assert "--model /models/ns1-m.gguf " in args(sync(parent, model()))
    assert [variable["name"] for variable in pod["initContainers"][0]["env"]] == [
        "MODEL_SOURCE",
        "CACHE_DIR",
        "MODEL_PATH",
    ]


def test_a_model_that_pods_download() -> None:
    """Pods download to the service's claim in the same layout, or to an emptyDir if it names none."""
    by_pods = model()
    by_pods["metadata"]["annotations"] = {"modelhooks.dev/download": "Pods"}
    parent = service(modelCache={"claimName": "fast"})
    assert pod_spec(sync(parent, by_pods)) == pod_spec(sync(parent, model()))
    ephemeral = service(modelCache={"persistence": "Ephemeral"})
    assert pod_spec(sync(service(), by_pods)) == pod_spec(sync(ephemeral, model()))


def test_a_model_on_a_claim_of_the_services_own() -> None:
    """The layout is the same, and Ready reports a missing claim."""
    parent = service(modelCache={"claimName": "fast"})
    answer = sync(parent, model())
    assert pod_spec(answer)["volumes"] == [{"name": "model-cache", "persistentVolumeClaim": {"claimName": "fast"}}]
    assert args(answer) == args(sync(service(), model()))
    rules = [rule for rule in customize(parent) if rule["resource"] == "persistentvolumeclaims"]
    assert [rule["names"] for rule in rules] == [["fast"]]
    assert "PersistentVolumeClaim fast of modelCache.claimName does not exist" in _ready(parent)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "fast", "namespace": NAMESPACE}}
    assert "fast" not in _ready(parent, claim)
    both = customize(parent, Settings(llmkube_model_cache_claim="all"))
    assert [rule["names"] for rule in both if rule["resource"] == "persistentvolumeclaims"] == [["all", "fast"]]


def _ready(parent: Json, *related: Json) -> str:
    """Return the message of Ready if claims are observed."""
    other = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "other", "namespace": NAMESPACE}}
    message: str = condition(sync(parent, model(), other, *related), "Ready")["message"]
    return message


ROUTER_MOUNTS: Json = {
    "extraVolumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "library"}}],
    "extraVolumeMounts": [{"name": "models", "mountPath": "/models"}],
}


def test_llamacpp_router() -> None:
    """The user provides the models, so the Model is not mounted and no GPU flag is set."""
    parent = service(runtime="llamacpp-router", contextSize=4096, extraArgs=["--models-max", "2"], **ROUTER_MOUNTS)
    answer = sync(parent, model(hardware={"accelerator": "cuda", "gpu": {"count": 1}}))
    assert args(answer) == "--models-dir /models --port 8080 --host 0.0.0.0 --metrics --models-max 2"
    pod = pod_spec(answer)
    assert [volume["name"] for volume in pod["volumes"]] == ["models"]
    assert "initContainers" not in pod
    assert container(answer)["readinessProbe"]["httpGet"]["path"] == "/health"
    assert errors(written(**ROUTER_MOUNTS, runtime="llamacpp-router")) == []
    bare = warned(written(runtime="llamacpp-router"))
    assert bare == ["spec.extraVolumeMounts: llamacpp-router serves what lies in /models, and nothing is mounted there"]


GPUS: Json = {"accelerator": "cuda", "gpu": {"count": 2}}


def test_a_service_of_sglang_has_its_image_command_and_probes() -> None:
    answer = sync(service(runtime="sglang"), model(source="org/repo", hardware=GPUS))
    server = container(answer)
    assert (server["name"], server["image"]) == ("sglang", "lmsysorg/sglang:v0.5.15.post1-cu129")
    assert server["command"] == ["python3", "-m", "sglang.launch_server"]
    assert args(answer) == (
        "--model-path org/repo --port 30000 --enable-metrics --host 0.0.0.0 --served-model-name m --tp-size 2"
    )
    paths = [server[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")]
    assert paths == ["/health_generate", "/health", "/health_generate"]
    assert server["startupProbe"]["failureThreshold"] == LOAD_ATTEMPTS
    autoscaled = sync(service(runtime="sglang", autoscaling={"maxReplicas": 2}), model(source="org/repo"))
    metrics = child(autoscaled, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metrics[0]["pods"]["metric"]["name"] == "sglang:num_running_reqs"
    token = {"hfTokenSecretRef": {"name": "hf", "key": "token"}}
    tokened = container(sync(service(runtime="sglang", sglangConfig=token), model(source="org/repo")))
    assert tokened["env"] == [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}]


EVERY_OPTION: Json = {
    "tensorParallelSize": 2,
    "expertParallelSize": 2,
    "dataParallelSize": 1,
    "contextLength": 8192,
    "memFractionStatic": 0.85,
    "chunkedPrefillSize": 4096,
    "maxRunningRequests": 32,
    "quantization": "fp8",
    "kvCacheDtype": "fp8_e5m2",
    "attentionBackend": "flashinfer",
    "enablePrefixCaching": True,
    "toolCallParser": "qwen25",
    "reasoningParser": "qwen3",
    "chatTemplate": "chatml",
    "speculative": {
        "enabled": True,
        "algorithm": "EAGLE",
        "draftModelPath": "org/draft",
        "numSteps": 3,
        "eagleTopK": 1,
        "acceptThresholdSingle": 0.5,
    },
    "loraAdapters": [{"name": "a", "path": "/a"}],
    "loraModules": ["a=/other", '{"name": "b", "path": "/b"}', "broken"],
    "maxLoraRank": 16,
    "loraTargetModules": ["q_proj", "v_proj"],
    "logLevel": "warning",
    "trustRemoteCode": True,
    "skipTokenizerInit": True,
}


def test_every_option_of_sglang() -> None:
    """Options are in the order of LK-3.5.7, before the user's arguments."""
    parent = service(runtime="sglang", sglangConfig=EVERY_OPTION, mode="embedding", extraArgs=["--x"])
    line = args(sync(parent, model(source="org/repo", hardware=GPUS)))
    assert line.partition("--served-model-name m ")[2] == (
        "--tp-size 2 --ep 2 --dp-size 1 --context-length 8192 --mem-fraction-static 0.85 --chunked-prefill-size 4096 "
        "--max-running-requests 32 --quantization fp8 --kv-cache-dtype fp8_e5m2 --attention-backend flashinfer "
        "--tool-call-parser qwen25 --reasoning-parser qwen3 --chat-template chatml "
        "--speculative-algorithm EAGLE --speculative-draft-model-path org/draft --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-accept-threshold-single 0.5 "
        "--lora-paths a=/a b=/b --max-lora-rank 16 --lora-target-modules q_proj v_proj --log-level warning "
        "--trust-remote-code --skip-tokenizer-init --is-embedding --x"
    )


EAGLE = {"enabled": True, "algorithm": "EAGLE3", "draftModelPath": "org/draft"}
PARTIAL: list[tuple[Json, str, list[str]]] = [
    ({"speculative": EAGLE}, "--speculative-draft-model-path org/draft", []),
    ({"speculative": {**EAGLE, "numSteps": 5}}, "--speculative-draft-model-path org/draft", ["speculative.numSteps"]),
    (
        {"speculative": {**EAGLE, "numSteps": 5, "eagleTopK": 2, "numDraftTokens": 9}},
        "--speculative-num-steps 5 --speculative-eagle-topk 2 --speculative-num-draft-tokens 9",
        [],
    ),
    ({"speculative": {**EAGLE, "algorithm": "Medusa"}}, "--served-model-name m", ["speculative.algorithm"]),
    ({"maxLoraRank": 8}, "--served-model-name m", ["maxLoraRank"]),
    ({"loraTargetModules": ["q_proj"]}, "--served-model-name m", ["loraTargetModules"]),
    (
        {"maxLoraRank": 8, "loraTargetModules": ["all"]},
        "--enable-lora --max-lora-rank 8 --lora-target-modules all",
        [],
    ),
]


@pytest.mark.parametrize(("config", "end", "fields"), PARTIAL)
def test_sglang_gets_options_that_belong_together_or_none(config: Json, end: str, fields: list[str]) -> None:
    """SGLang exits on or ignores incomplete options, so they are left out with a warning."""
    parent = service(runtime="sglang", sglangConfig=config)
    assert args(sync(parent, model(source="org/repo"))).endswith(end)
    assert [text.partition(": ")[0] for text in warned(parent)] == [f"spec.sglangConfig.{field}" for field in fields]


def test_the_router_has_neither_pod_monitor_nor_default_metric() -> None:
    """The router's ``/metrics`` supports only a single model."""
    parent = service(runtime="llamacpp-router", autoscaling={"maxReplicas": 3})
    assert "spec.autoscaling: no effect without metrics" in " ".join(warned(parent))
    answer = sync(parent, model(), declared=(POD_MONITOR,))
    assert not {"HorizontalPodAutoscaler", "PodMonitor"} & set(kinds(answer))


@pytest.mark.parametrize(
    ("spec", "embedding"),
    [
        ({"mode": "chat", "endpoint": {"path": "/v1/embeddings"}}, False),
        ({"endpoint": {"path": "/v1/embeddings"}}, True),
        ({"endpoint": {"path": "/v1/rerank"}}, False),
        ({"extraArgs": ["--embedding"]}, True),
        ({"mode": "embedding", "extraArgs": ["--is-embedding"]}, False),
    ],
)
def test_what_sglang_is_for(spec: Json, embedding: bool) -> None:
    """The mode comes from the spec, or else from arguments and path; the user's flag is not repeated."""
    words = args(sync(service(runtime="sglang", **spec), model(source="org/repo"))).split()
    assert words.count("--is-embedding") == (1 if embedding or spec.get("mode") == "embedding" else 0)


SPECULATIVE = {"enabled": True, "algorithm": "EAGLE"}


def test_sglangs_condition() -> None:
    """SGLangSpecValid is False for an invalid configuration, and True only after that (LK-5.7)."""
    remote = model(source="org/repo")
    broken = sync(service(runtime="sglang", sglangConfig={"speculative": SPECULATIVE}), remote)
    assert condition(broken, "SGLangSpecValid")["reason"] == "SpeculativeMissingConfig"
    unused = service(runtime="sglang", sglangConfig={"speculative": {"acceptThresholdAcc": 0.5}})
    assert condition(sync(unused, remote), "SGLangSpecValid")["reason"] == "SpeculativeAcceptThresholdUnused"
    mended = sync(service(runtime="sglang", status=broken["status"]), remote)
    assert condition(mended, "SGLangSpecValid")["status"] == "True"
    assert condition(sync(service(runtime="sglang"), remote), "SGLangSpecValid") == {}
    other = sync(service(runtime="vllm", status=broken["status"]), remote)
    assert condition(other, "SGLangSpecValid") == {}


def test_more_parts_than_gpus() -> None:
    config = {"tensorParallelSize": 2, "dataParallelSize": 2}
    answer = sync(service(runtime="sglang", sglangConfig=config), model(source="org/repo", hardware=GPUS))
    assert (
        "sglangConfig.tensorParallelSize times dataParallelSize is 4, but a pod has 2"
        in (condition(answer, "Ready")["message"])
    )


TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
MOUNT = {"name": "v", "mountPath": "/v"}


def volume(**source: Any) -> Json:
    return {"extraVolumes": [{"name": "v", **source}]}


def files(path: str) -> Json:
    return {"items": [{"key": "k", "path": path}]}


BROKEN: list[tuple[str, Json, str]] = [
    ("LK-V-I67", {"metadataOverrides": ["a.b"]}, "spec.metadataOverrides[0]: Invalid value"),
    ("LK-V-I67", {"metadataOverrides": ["a.b=1"]}, "must be <key>=<type>:<value>"),
    ("LK-V-I67", {"metadataOverrides": ["a.b=int32:1"]}, "must be <key>=<type>:<value>"),
    ("LK-V-I67", {"metadataOverrides": ["a=int:x"]}, '"x" must be of type int'),
    ("LK-V-I67", {"metadataOverrides": ["a=int:1", "b=bool:yes"]}, "spec.metadataOverrides[1]"),
    ("LK-V-I67", {"metadataOverrides": ["a=float:1,b=float:x"]}, '"x" must be of type float'),
    ("LK-V-I67", {"metadataOverrides": ["a=str:" + "x" * 128]}, "must be of type str"),
    ("LK-V-I67", {"metadataOverrides": ["x" * 128 + "=int:1"]}, "must be <key>=<type>:<value>"),
    ("LK-V-I68", {"tensorOverrides": [""]}, "spec.tensorOverrides[0]: Invalid value"),
    ("LK-V-I68", {"tensorOverrides": ["exps"]}, "must be <pattern>=<device>"),
    ("LK-V-I68", {"tensorOverrides": ["exps="]}, "must be <pattern>=<device>"),
    ("LK-V-I68", {"tensorOverrides": ["a=CPU,b"]}, "must be <pattern>=<device>"),
    ("LK-V-I69", {"bindAddress": "0.0.0.0 --x"}, "spec.bindAddress: Invalid value"),
    (
        "LK-V-I72",
        {"modelCache": {"persistence": "Ephemeral", "claimName": "c"}},
        "spec.modelCache.claimName: Forbidden",
    ),
    ("LK-V-I72", {"modelCache": {"claimName": "C"}}, "spec.modelCache.claimName: Invalid value"),
    ("LK-V-I73", {"extraVolumes": [{"name": "model-cache", "emptyDir": {}}]}, "spec.extraVolumes[0].name: Invalid"),
    ("LK-V-I73", {**volume(), "extraVolumeMounts": [{**MOUNT, "mountPath": "/models/"}]}, "[0].mountPath: Invalid"),
    ("LK-V-I20", {"resources": {"ephemeralStorage": "-5"}}, "spec.resources.ephemeralStorage"),
    ("LK-V-I20", {"resources": {"ephemeralStorage": "1.2.3"}}, "spec.resources.ephemeralStorage"),
    ("LK-V-I07", {"endpoint": {"nodePort": 80}}, "spec.endpoint.nodePort"),
    ("LK-V-K08", {"tolerations": [{"key": "a", "operator": "Gt", "value": "x"}]}, "spec.tolerations[0].value"),
    ("LK-V-K08", {"tolerations": [{"key": "a", "operator": "Lt"}]}, "must be an integer in quotes"),
    ("LK-V-K28", node(), f"{TERMS}: Required value"),
    ("LK-V-K28", node(expression("Gt", "many")), f"{TERMS}[0].matchExpressions[0].values: Invalid value"),
    ("LK-V-K28", node(expression("Lt", "1", "2")), "must be one integer in quotes with operator Lt"),
    ("LK-V-K28", node(expression("Gt", "9" * 25)), "must be one integer in quotes with operator Gt"),
    ("LK-V-K28", node(expression("Above", "1")), "operator: Unsupported value"),
    ("LK-V-K28", node(expression("In")), "must have a value with operator In"),
    ("LK-V-K28", node(expression("Exists", "x")), "must be left out with operator Exists"),
    ("LK-V-K28", node(expression("In", "a b")), "values[0]: Invalid value"),
    ("LK-V-K28", node(expression("In", "a", key="a b")), "matchExpressions[0].key"),
    ("LK-V-K28", node({"matchFields": [{"key": "spec.x", "operator": "Gt"}]}), "matchFields[0].values: Required"),
    ("LK-V-K29", {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}}, "weight: Invalid"),
    ("LK-V-K30", {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ""}]}}}, "topologyKey: Required value"),
    (
        "LK-V-K30",
        {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "a", "labelSelector": expression("Gt", "1")}]}}},
        "labelSelector.matchExpressions[0].operator: Unsupported value",
    ),
    ("LK-V-K31", {"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]}, "[0].maxSkew: Invalid value"),
    ("LK-V-K31", {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "x"}]}, "Unsupported value"),
    ("LK-V-K31", {"topologySpreadConstraints": [SPREAD, SPREAD]}, "[1]: Duplicate value"),
    ("LK-V-K31", {"topologySpreadConstraints": [{**SPREAD, "minDomains": 2}]}, "[0].minDomains: Invalid value"),
    ("LK-V-K31", {"topologySpreadConstraints": [{**SPREAD, "nodeTaintsPolicy": "x"}]}, "nodeTaintsPolicy"),
    ("LK-V-K32", {"extraVolumes": [{"name": "A", "emptyDir": {}}]}, "spec.extraVolumes[0].name"),
    ("LK-V-K32", volume(emptyDir={}, hostPath={"path": "/"}), "a volume has exactly one source"),
    ("LK-V-K32", {"extraVolumes": [{"name": "v"}] * 2}, "spec.extraVolumes: Duplicate value"),
    ("LK-V-K33", volume(configMap={"name": "c", **files("/etc/x")}), "spec.extraVolumes[0].configMap.items[0].path"),
    ("LK-V-K33", volume(secret={"secretName": "c", **files("a/../b")}), "secret.items[0].path: Invalid value"),
    ("LK-V-K33", volume(projected={"sources": [{"secret": files("..x")}]}), "sources[0].secret.items[0].path"),
    ("LK-V-K33", volume(downwardAPI={"items": [{"path": ""}]}), "downwardAPI.items[0].path: Required value"),
    (
        "LK-V-K33",
        volume(projected={"sources": [{"serviceAccountToken": {"path": "/token"}}]}),
        "sources[0].serviceAccountToken.path",
    ),
    ("LK-V-K34", {"extraVolumeMounts": [{"name": "none", "mountPath": "/x"}]}, "[0].name: Invalid value"),
    ("LK-V-K34", {**volume(), "extraVolumeMounts": [{"name": "v", "mountPath": ""}]}, "mountPath: Required value"),
    ("LK-V-K34", {**volume(), "extraVolumeMounts": [{**MOUNT, "subPath": "../x"}]}, "subPath: Invalid value"),
    ("LK-V-K34", {**volume(), "extraVolumeMounts": [MOUNT, MOUNT]}, "spec.extraVolumeMounts: Duplicate value"),
]


@pytest.mark.parametrize(("rule", "spec", "message"), BROKEN, ids=lambda value: value if isinstance(value, str) else "")
def test_each_mistake_of_a_newer_field_is_refused(rule: str, spec: Json, message: str) -> None:
    """Each mistake gives an error at its field."""
    messages = errors(written(**spec))
    assert [text for text in messages if message in text], (rule, messages)


FINE: list[Json] = [
    {
        "metadataOverrides": [
            "a.b=int:-1",
            "add_bos=bool:false,c=str:x,y",
            "d=float:1e-5",
            "e=str:",
        ]
    },
    {"tensorOverrides": [r"\.ffn_.*_exps\.=CPU", "a=CUDA0,b=CUDA1"]},
    {"bindAddress": "fe80::1%eth0"},
    {"tolerations": [{"key": "a", "operator": "Lt", "value": "-5"}]},
    node(expression("Gt", "3"), {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
    {"topologySpreadConstraints": [SPREAD, {**SPREAD, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}]},
    {**volume(configMap={"name": "c", **files("a/..b")}), "extraVolumeMounts": [MOUNT]},
    {"skipModelInit": True, "runtime": "vllm", **volume(), "extraVolumeMounts": [{**MOUNT, "mountPath": "/models"}]},
    {"runtime": "vllm", "vllmConfig": {"quantization": "mxfp4"}},
]


@pytest.mark.parametrize("spec", FINE)
def test_what_is_not_refused(spec: Json) -> None:
    assert errors(written(**spec)) == []


WARNED: list[tuple[Json, str]] = [
    ({"bindAddress": "127.0.0.1"}, "spec.bindAddress: only the container itself reaches"),
    ({"bindAddress": "::", "runtime": "tgi"}, ""),
    ({"bindAddress": "::", "runtime": "generic", "image": "a:1"}, "spec.bindAddress: no effect with runtime generic"),
    ({"bindAddress": "::", "extraArgs": ["--host", "x"]}, "spec.bindAddress: no effect beside --host in extraArgs"),
    ({"mode": "rerank", "runtime": "vllm"}, "spec.mode: no effect with runtime vllm, only with llamacpp and sglang"),
    ({"endpoint": {"nodePort": 30080}}, "spec.endpoint.nodePort: no effect with type ClusterIP, only with NodePort"),
    ({"disruption": {}}, "spec.disruption.protectStartup: no effect"),
    ({"disruption": {"protectAlways": True}}, ""),
    ({"suspend": True, "autoscaling": {"maxReplicas": 2}}, "spec.autoscaling: the autoscaler is away"),
    ({"hotCacheMaxSize": "1Gi"}, "spec.hotCacheMaxSize: no effect unless the Model's accelerator is metal"),
    ({"turboQuantBits": 3}, "spec.turboQuantBits: no effect unless the Model's accelerator is metal"),
    (
        {"runtime": "sglang", "sglangConfig": {"loraModules": ["x"]}},
        "spec.sglangConfig.loraModules[0]: no effect: write name=path",
    ),
    (
        {"runtime": "sglang", "sglangConfig": {"loraModules": ["a=/b"], "loraAdapters": [{"name": "a", "path": "/a"}]}},
        "spec.sglangConfig.loraModules[0]: no effect: loraAdapters has an adapter a as well",
    ),
    (
        {"runtime": "sglang", "sglangConfig": {"speculative": SPECULATIVE}},
        "spec.sglangConfig.speculative.enabled: no effect without draftModelPath",
    ),
    (
        {"runtime": "sglang", "sglangConfig": {"speculative": {"numSteps": 3}}},
        "spec.sglangConfig.speculative: no effect unless enabled is true",
    ),
    ({"sglangConfig": {"logLevel": "info"}}, "spec.sglangConfig: no effect with runtime llamacpp, only with sglang"),
    (
        {
            "runtime": "personaplex",
            "image": "a:1",
            "personaPlexConfig": {"hfTokenSecretRef": {"name": "hf", "key": "token"}},
        },
        "spec.personaPlexConfig.hfTokenSecretRef.key: the API names the key HF_TOKEN",
    ),
]


@pytest.mark.parametrize(("spec", "message"), WARNED)
def test_what_is_warned_of(spec: Json, message: str) -> None:
    messages = warned(written(**spec))
    assert [text for text in messages if text.startswith(message)] if message else messages == []
