"""Complete outputs for recorded services, and the differences of their variants."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from app.kube.base import Json
from tests.contract.recordings import cases
from tests.kserve.objects import AVAILABLE, DEFAULT_PARENT, OPTIONAL_KINDS, RBAC_KINDS, V017, Cluster, accepted, gateway

SAMPLES = {case["name"]: case["objects"] for case in cases("kserve") if case.get("class") == "a"}
"""Services from upstream's samples."""
OPT = "facebook-opt-125m-cpu"
DEEPSEEK = "dp-ep-deepseek-r1"
ALL = OPTIONAL_KINDS | RBAC_KINDS


def sample(name: str) -> Json:
    document: Json = next(d for d in SAMPLES[f"sample-{name}"] if d["kind"] == "LLMInferenceService")
    metadata = {**document["metadata"], "namespace": "default", "uid": "u", "generation": 1}
    return {**document, "metadata": metadata}


def settled(name: str, optional: frozenset[str] = OPTIONAL_KINDS, **changes: Any) -> Cluster:
    parent = sample(name)
    parent["spec"] = {**parent["spec"], **changes}
    parent["spec"] = {key: value for key, value in parent["spec"].items() if value is not None}
    hfsa = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hfsa", "namespace": "default"}}
    cluster = Cluster(parent, gateway(), hfsa, optional=optional, settings=V017)
    cluster.sync()
    return cluster


def pod(seen: Cluster, name: str) -> Json:
    spec: Json = seen.child("Deployment", name)["spec"]["template"]["spec"]
    return spec


def main(pod_: Json) -> Json:
    return next(c for c in pod_["containers"] if c["name"] == "main")


POD = """
terminationGracePeriodSeconds: 30
initContainers:
- name: storage-initializer
  image: kserve/storage-initializer:v0.17.0
  args: ["hf://facebook/opt-125m", /mnt/models]
  resources: {requests: {cpu: 100m, memory: 100Mi}, limits: {cpu: "1", memory: 1Gi}}
  terminationMessagePolicy: FallbackToLogsOnError
  env:
  - {name: HF_HUB_ENABLE_HF_TRANSFER, value: "1"}
  - {name: HF_XET_HIGH_PERFORMANCE, value: "1"}
  - {name: HF_XET_NUM_CONCURRENT_RANGE_GETS, value: "8"}
  volumeMounts: [{name: kserve-provision-location, mountPath: /mnt/models}]
containers:
- name: main
  image: quay.io/pierdipi/vllm-cpu:latest
  imagePullPolicy: IfNotPresent
  command: [vllm, serve, /mnt/models, --served-model-name, facebook/opt-125m, --port, "8000"]
  ports: [{containerPort: 8000, protocol: TCP}]
  env:
  - {name: HOME, value: /home}
  - {name: VLLM_LOGGING_LEVEL, value: DEBUG}
  - {name: HF_HUB_CACHE, value: /models}
  resources: {requests: {cpu: 100m, memory: 8Gi}, limits: {cpu: "1", memory: 10Gi}}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: false
    runAsNonRoot: false
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  livenessProbe: {httpGet: {path: /health, port: 8000, scheme: HTTP},
    initialDelaySeconds: 30, periodSeconds: 30, timeoutSeconds: 30, failureThreshold: 5}
  readinessProbe: {httpGet: {path: /health, port: 8000, scheme: HTTP},
    periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 60}
  startupProbe: {httpGet: {path: /health, port: 8000, scheme: HTTP}, periodSeconds: 2, failureThreshold: 300}
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
  - {name: home, mountPath: /home}
  - {name: dshm, mountPath: /dev/shm}
  - {name: model-cache, mountPath: /models}
  - {name: tls-certs, mountPath: /var/run/kserve/tls, readOnly: true}
  - {name: kserve-provision-location, mountPath: /mnt/models, readOnly: true}
enableServiceLinks: false
volumes:
- {name: home, emptyDir: {}}
- {name: dshm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
- {name: model-cache, emptyDir: {}}
- {name: tls-certs, secret: {secretName: facebook-opt-125m-single-kserve-self-signed-certs, optional: true}}
- {name: kserve-provision-location, emptyDir: {}}
"""


def test_a_main_deployment() -> None:
    """Every value of the pod is compared, and the order of every list."""
    seen = settled(OPT)
    deployment = seen.child("Deployment", "facebook-opt-125m-single-kserve")
    assert deployment["spec"]["template"]["spec"] == yaml.safe_load(POD)
    assert deployment["spec"]["replicas"] == 1
    assert set(deployment["spec"]) == {"replicas", "selector", "template"}


def test_a_has_the_objects_of_upstream() -> None:
    """Names are those of KS-3.1, except for objects that are not created (KS-9.3)."""
    seen = settled(OPT, ALL)
    name = "facebook-opt-125m-single"
    assert seen.names == {
        ("Deployment", f"{name}-kserve"),
        ("Service", f"{name}-kserve-workload-svc"),
        ("Deployment", f"{name}-kserve-router-scheduler"),
        ("Service", f"{name}-epp-service"),
        ("InferencePool", f"{name}-inference-pool"),
        ("HTTPRoute", f"{name}-kserve-route"),
        ("ServiceAccount", f"{name}-epp-sa"),
        ("Role", f"{name}-epp-role"),
        ("RoleBinding", f"{name}-epp-rb"),
    }
    picker = seen.child("Deployment", f"{name}-kserve-router-scheduler")["spec"]
    assert picker["strategy"] == {"type": "Recreate"}
    assert "replicas" not in picker
    assert picker["template"]["spec"]["serviceAccountName"] == f"{name}-epp-sa"
    ports = seen.child("Service", f"{name}-epp-service")["spec"]["ports"]
    assert {port["name"]: port["port"] for port in ports} == {
        "grpc": 9002,
        "grpc-health": 9003,
        "metrics": 9090,
        "zmq": 5557,
    }
    rules = seen.child("HTTPRoute", f"{name}-kserve-route")["spec"]["rules"]
    assert [rule["matches"][0]["path"]["value"] for rule in rules] == [
        f"/default/{name}{path}" for path in ("/v1/completions", "/v1/chat/completions", "")
    ]


def test_a_status_on_its_way() -> None:
    """Conditions from the first sync until everything is ready; the URL is present from the start."""
    seen = settled(OPT, ALL)
    seen.sync()
    name = "facebook-opt-125m-single"
    assert {c["type"]: seen.says(c["type"]) for c in seen.answer["status"]["conditions"]} == {
        "HTTPRoutesReady": "HTTPRoutesNotReady",
        "InferencePoolReady": "WaitingForGateway",
        "MainWorkloadReady": "Progressing",
        "PresetsCombined": "True",
        "Ready": "HTTPRoutesNotReady",
        "RouterReady": "HTTPRoutesNotReady",
        "SchedulerWorkloadReady": "Progressing",
        "WorkloadsReady": "Progressing",
    }
    url = f"http://203.0.113.1/default/{name}"
    assert seen.answer["status"]["url"] == url
    assert [(a["name"], a["url"]) for a in seen.answer["status"]["addresses"]] == [("gateway-external", url)]
    seen.report("Deployment", f"{name}-kserve", **AVAILABLE)
    seen.report("Deployment", f"{name}-kserve-router-scheduler", **AVAILABLE)
    seen.report("InferencePool", f"{name}-inference-pool", **accepted(DEFAULT_PARENT))
    seen.report("HTTPRoute", f"{name}-kserve-route", **accepted(DEFAULT_PARENT))
    seen.sync()
    conditions = seen.answer["status"]["conditions"]
    assert len(conditions) == 8
    assert all(c["status"] == "True" and "reason" not in c and "message" not in c for c in conditions)


def test_b_without_scheduler() -> None:
    """All backends are the workload Service, and two conditions are absent."""
    seen = settled(f"{OPT}-no-scheduler")
    assert {kind for kind, _ in seen.names} == {"Deployment", "Service", "HTTPRoute"}
    types = {c["type"] for c in seen.answer["status"]["conditions"]}
    assert not types & {"InferencePoolReady", "SchedulerWorkloadReady"}


def test_b_without_router() -> None:
    """The URL is the workload Service's, and ``RouterReady`` is true."""
    seen = settled(OPT, router=None)
    host = "facebook-opt-125m-single-kserve-workload-svc.default.svc.cluster.local"
    assert seen.answer["status"]["addresses"] == [{"url": f"http://{host}:8000"}]
    assert seen.answer["status"]["url"] == f"http://{host}:8000"
    assert seen.says("RouterReady") == "True"


def test_b_prefill_and_decode() -> None:
    """The decode server moves behind the sidecar; replicas are not sent."""
    seen = settled(f"pd-{OPT}", ALL)
    decode, prefill = pod(seen, "facebook-opt-125m-pd-kserve"), pod(seen, "facebook-opt-125m-pd-kserve-prefill")
    assert [c["name"] for c in decode["initContainers"]] == ["llm-d-routing-sidecar", "storage-initializer"]
    assert [c["name"] for c in prefill["initContainers"]] == ["storage-initializer"]
    assert main(decode)["command"][-1] == "8001"
    assert main(decode)["ports"][0]["containerPort"] == 8001
    assert main(prefill)["command"][-1] == "8000"
    assert main(prefill)["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert decode["serviceAccountName"] == "facebook-opt-125m-pd-kserve"
    assert "serviceAccountName" not in prefill
    env = [v["name"] for v in decode["initContainers"][0]["env"]]
    assert env == ["INFERENCE_POOL_NAMESPACE", "INFERENCE_POOL_NAME"]
    picker = main(pod(seen, "facebook-opt-125m-pd-kserve-router-scheduler"))
    assert '"prefill-filter"' in picker["args"][-1]
    assert seen.says("PrefillWorkloadReady") == "Progressing"


def test_b_networks_and_replicas() -> None:
    """The annotation reaches both Deployments and their pods."""
    seen = settled("pd-qwen2-7b-gpu")
    for name, replicas in (("qwen2-7b-instruct-pd-kserve", 1), ("qwen2-7b-instruct-pd-kserve-prefill", 2)):
        deployment = seen.child("Deployment", name)
        networks = {"k8s.v1.cni.cncf.io/networks": "roce-p2"}
        assert networks.items() <= deployment["metadata"]["annotations"].items()
        assert deployment["spec"]["template"]["metadata"]["annotations"] == networks
        assert deployment["spec"]["replicas"] == replicas
    liveness = main(pod(seen, "qwen2-7b-instruct-pd-kserve"))["livenessProbe"]["httpGet"]
    assert (liveness["port"], liveness["scheme"]) == (8000, "HTTPS")


def test_b_cache_aware_routing() -> None:
    """An inline configuration is sent as compact JSON, and a template in the user's spec is rendered."""
    seen = settled("qwen2-7b-gpu-kv-cache-routing")
    args = main(pod(seen, "qwen2-7b-kv-cache-routing-kserve-router-scheduler"))["args"]
    assert args[-2] == "--config-text"
    assert args[-1].startswith('{"apiVersion":"inference.networking.x-k8s.io/v1alpha1"')
    env = {v["name"]: v.get("value", "") for v in main(pod(seen, "qwen2-7b-kv-cache-routing-kserve"))["env"]}
    assert "tcp://qwen2-7b-kv-cache-routing-epp-service:5557" in env["VLLM_ADDITIONAL_ARGS"]


def test_b_data_parallel() -> None:
    """One group of four with weights from a claim, and environment variables in the documented order."""
    seen = settled(f"{DEEPSEEK}-gpu-deepep-ht")
    group = seen.child("LeaderWorkerSet", "deepseek-r1-0528-kserve-mn")["spec"]
    template = group["leaderWorkerTemplate"]
    assert group["replicas"] == 1
    assert template["size"] == 4
    leader, worker = template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]
    for pod_spec in (leader, worker):
        assert pod_spec["serviceAccountName"] == "hfsa"
        assert pod_spec["volumes"][-1]["persistentVolumeClaim"] == {"claimName": "llm-test-pvc-deepseek"}
    script = main(leader)["command"][2]
    assert "--enable-expert-parallel" in script
    assert "--tensor-parallel-size 1" in script
    assert "--data-parallel-size 32" in script
    assert "$(( rank * 8 ))" in main(worker)["command"][2]
    names = [v["name"] for v in main(leader)["env"]]
    assert names[:4] == ["HOME", "VLLM_LOGGING_LEVEL", "KSERVE_INFER_ROCE", "CUDA_DEVICE_ORDER"]
    assert names[-1] == "HF_HUB_CACHE"
    assert main(leader)["livenessProbe"]["initialDelaySeconds"] == 4800


@pytest.mark.parametrize("variant", ["gpu-p-deepep-ht-d-deepep-ht", "gpu-p-deepep-ht-d-pplx"])
def test_b_multi_node_prefill_and_decode(variant: str) -> None:
    """Two groups of two; the decode leader has the sidecar, and its Role is bound to the user's account."""
    seen = settled(f"{DEEPSEEK}-pd-{variant}", ALL)
    decode = seen.child("LeaderWorkerSet", "deepseek-r1-0528-pd-kserve-mn")["spec"]["leaderWorkerTemplate"]
    prefill = seen.child("LeaderWorkerSet", "deepseek-r1-0528-pd-kserve-mn-prefill")["spec"]["leaderWorkerTemplate"]
    assert (decode["size"], prefill["size"]) == (2, 2)
    assert prefill["subGroupPolicy"] == {"subGroupSize": 2}
    assert decode["leaderTemplate"]["spec"]["initContainers"][0]["name"] == "llm-d-routing-sidecar"
    binding = seen.child("RoleBinding", "deepseek-r1-0528-pd-kserve-mn-rb")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "hfsa", "namespace": "default"}]
    assert not {name for kind, name in seen.names if kind == "ServiceAccount"} - {"deepseek-r1-0528-pd-epp-sa"}
    assert ("Role", "deepseek-r1-0528-pd-kserve-role") not in seen.names
