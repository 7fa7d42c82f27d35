"""LLMInferenceServices on a real API server with the optional kinds, used with kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from tests.contract.recordings import samples
from tests.e2e.conftest import HAS_CLAIMS
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation, settle
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "examples" / "kserve"
SERVICES = "llminferenceservices"
OPTIONAL = "httproutes,inferencepools,leaderworkersets"
WORKLOADS = "deployments,services"
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def gateway(installation: Installation) -> Iterator[Installation]:
    cluster = installation.cluster
    make_gateway(cluster)
    yield installation
    cluster.kubectl("delete", "-f", str(EXAMPLES / "cluster" / "gateway.yaml"))


def make_gateway(cluster: ControlPlane) -> None:
    """Make the gateway that a Gateway controller would provide, with an address."""
    cluster.create_namespace("kserve")
    cluster.kubectl("apply", "-f", str(EXAMPLES / "cluster" / "gateway.yaml"))
    status = {
        "addresses": [{"type": "IPAddress", "value": "203.0.113.10"}],
        "conditions": [_true("Accepted"), _true("Programmed")],
    }
    _write_status(cluster, "gateway", "kserve-ingress-gateway", "kserve", status)


def _true(type_: str) -> dict[str, str]:
    return {"type": type_, "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": NOW}


def _write_status(cluster: ControlPlane, kind: str, name: str, namespace: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)


def play_controllers(cluster: ControlPlane, namespace: str) -> None:
    """Accept every route and pool, and make every LeaderWorkerSet available, as their controllers would."""
    for item in cluster.get(OPTIONAL, "-n", namespace)["items"]:
        kind, name, generation = item["kind"], item["metadata"]["name"], item["metadata"]["generation"]
        conditions = [{**_true(t), "observedGeneration": generation} for t in ("Accepted", "ResolvedRefs")]
        if kind == "LeaderWorkerSet":
            replicas = item["spec"].get("replicas", 1)
            available = {**_true("Available"), "observedGeneration": generation}
            status: dict[str, Any] = {"replicas": replicas, "readyReplicas": replicas, "conditions": [available]}
        else:
            references = item["spec"].get("parentRefs") or [{"name": "kserve-ingress-gateway", "namespace": "kserve"}]
            entry = {"controllerName": "example.dev/gateway", "conditions": conditions}
            status = {"parents": [{"parentRef": reference, **entry} for reference in references]}
            if kind == "InferencePool":
                status["parents"] = [{"parentRef": r, "conditions": conditions} for r in references]
        if item.get("status") != status:
            _write_status(cluster, kind, name, namespace, status)


def apply(cluster: ControlPlane, namespace: str, *files: Path) -> None:
    cluster.kubectl("apply", "-n", namespace, *(a for f in files for a in ("-f", str(f))))


def ready(cluster: ControlPlane, namespace: str, name: str) -> dict[str, Any]:
    return condition_of(cluster, namespace, name, "Ready")


def condition_of(cluster: ControlPlane, namespace: str, name: str, type_: str) -> dict[str, Any]:
    item = cluster.get(SERVICES, name, "-n", namespace)
    return next((c for c in item.get("status", {}).get("conditions", []) if c["type"] == type_), {})


def wait_ready(cluster: ControlPlane, namespace: str, name: str) -> None:
    def is_ready() -> bool:
        play_controllers(cluster, namespace)
        return ready(cluster, namespace, name).get("status") == "True"

    try:
        wait_until(is_ready, f"{name} is ready")
    except TimeoutError:
        raise AssertionError(json.dumps(cluster.get(SERVICES, name, "-n", namespace)["status"], indent=1)) from None


def names_of(cluster: ControlPlane, namespace: str, kinds: str) -> set[str]:
    return {f"{i['kind']}/{i['metadata']['name']}" for i in cluster.get(kinds, "-n", namespace)["items"]}


def test_the_smallest_service_becomes_ready(gateway: Installation, namespace: str) -> None:
    """It gets a Deployment and a Service, and Ready follows the pods."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "quickstart.yaml")
    wait_ready(cluster, namespace, "tiny-chat")
    assert {"Deployment/tiny-chat-kserve", "Service/tiny-chat-kserve-workload-svc"} <= names_of(
        cluster, namespace, WORKLOADS
    )


def test_the_condition_of_the_pods_names_a_crash_until_the_image_is_mended(
    gateway: Installation, namespace: str
) -> None:
    """``Ready`` keeps KServe's reason. The tag tells the kubelet's stand-in what happens to the container."""
    cluster = gateway.cluster
    server = {"name": "main", "image": "registry.example/server:CrashLoopBackOff"}
    broken: Json = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "crashing"},
        "spec": {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B-Instruct"}, "template": {"containers": [server]}},
    }

    def reason(type_: str) -> str:
        conditions = cluster.get(SERVICES, "crashing", "-n", namespace).get("status", {}).get("conditions", [])
        return next((c.get("reason", "") for c in conditions if c["type"] == type_), "")

    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(broken))
    wait_until(lambda: reason("PodsReady") == "CrashLoopBackOff", "the cause of the pods")
    wait_until(lambda: reason("Ready") == "MinimumReplicasUnavailable", "the reason of the Deployment")
    server["image"] = "registry.example/server:1"
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(broken))
    wait_ready(cluster, namespace, "crashing")
    wait_until(lambda: reason("PodsReady") == "", "no cause any more")


def test_every_sample_is_applied_unchanged(gateway: Installation, namespace: str) -> None:
    """Each sample is admitted and gets its workload."""
    cluster = gateway.cluster
    applied = {d["metadata"]["name"]: d for sample in samples("kserve").values() for d in sample}
    assert len(applied) >= 8
    for document in applied.values():
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(document))

    def all_judged() -> bool:
        play_controllers(cluster, namespace)
        return all(ready(cluster, namespace, name) for name in applied)

    wait_until(all_judged, "a Ready condition on every service")
    invalid = {n: c for n in applied if (c := ready(cluster, namespace, n)).get("reason") == "InvalidSpec"}
    assert not invalid
    wait_ready(cluster, namespace, "facebook-opt-125m-single")


def test_prefill_and_decode(gateway: Installation, namespace: str) -> None:
    """Every child of the largest topology is created, and the API server accepts each."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "prefill-decode.yaml")
    wait_ready(cluster, namespace, "split-chat")
    names = names_of(cluster, namespace, f"{WORKLOADS},{OPTIONAL}")
    assert {
        "Deployment/split-chat-kserve",
        "Deployment/split-chat-kserve-prefill",
        "Deployment/split-chat-kserve-router-scheduler",
        "Service/split-chat-kserve-workload-svc",
        "HTTPRoute/split-chat-kserve-route",
    } <= names
    assert any(name.startswith("InferencePool/") for name in names)
    service = cluster.get(SERVICES, "split-chat", "-n", namespace)
    assert "203.0.113.10" in service["status"]["url"]
    assert {"ServiceAccount", "Role", "RoleBinding"} <= {
        name.split("/")[0]
        for name in names_of(cluster, namespace, "serviceaccounts,roles,rolebindings")
        if "split" in name
    }


def test_multi_node(gateway: Installation, namespace: str) -> None:
    """The LeaderWorkerSet has the right size."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "multi-node.yaml")
    wait_ready(cluster, namespace, "experts")
    (item,) = cluster.get("leaderworkersets", "-n", namespace)["items"]
    assert item["spec"]["leaderWorkerTemplate"]["size"] == 2


@pytest.mark.skipif(not HAS_CLAIMS, reason="this release has no resource.k8s.io/v1")
def test_devices_are_claimed(gateway: Installation, namespace: str) -> None:
    """The scheduler gives each pod devices of the class; another number creates another ResourceClaimTemplate."""
    cluster = gateway.cluster
    (node,) = cluster.get("nodes")["items"]
    architecture = {"architecture": {"string": "Hopper"}}
    pool = {"name": "gpus", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}", "attributes": architecture} for number in range(2)]
    spec = {"driver": "gpu.nvidia.com", "nodeName": node["metadata"]["name"], "pool": pool, "devices": devices}
    driver: list[dict[str, Any]] = [
        {"kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": {}},
        {"kind": "ResourceSlice", "metadata": {"name": "gpus"}, "spec": spec},
    ]
    for item in driver:
        cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "resource.k8s.io/v1", **item}))
    apply(cluster, namespace, EXAMPLES / "devices.yaml")
    wait_ready(cluster, namespace, "claimed-chat")
    (claim,) = cluster.get("resourceclaims", "-n", namespace)["items"]
    assert len(claim["status"]["allocation"]["devices"]["results"]) == 2
    key = "serving.kserve.io/exp-dra-device-count"
    cluster.kubectl("annotate", SERVICES, "claimed-chat", "-n", namespace, "--overwrite", f"{key}=1")

    def is_new() -> bool:
        items = cluster.get("resourceclaimtemplates", "-n", namespace)["items"]
        return [i["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] for i in items] == [1]

    wait_until(is_new, "a ResourceClaimTemplate for one device")
    wait_ready(cluster, namespace, "claimed-chat")


def test_a_shared_config_reaches_its_users(gateway: Installation, namespace: str) -> None:
    """A change of a config rolls out once, and only to services that use it."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "shared-config.yaml", EXAMPLES / "quickstart.yaml")
    wait_ready(cluster, namespace, "team-chat")
    wait_ready(cluster, namespace, "tiny-chat")
    other = cluster.get("deployment", "tiny-chat-kserve", "-n", namespace)["metadata"]["generation"]
    variable = [{"name": "HF_HUB_DISABLE_TELEMETRY", "value": "true"}]
    patch = {"spec": {"template": {"containers": [{"name": "main", "env": variable}]}}}
    cluster.kubectl(
        "patch", "llminferenceserviceconfig", "team-defaults", "-n", namespace, "--type=merge", "-p", json.dumps(patch)
    )

    def rolled() -> bool:
        return _environment(cluster, namespace).get("HF_HUB_DISABLE_TELEMETRY") == "true"

    wait_until(rolled, "the new variable in the pod template")
    wait_until(lambda: _revision(cluster, namespace) == "2", "a second revision")
    wait_ready(cluster, namespace, "team-chat")
    settle(cluster, namespace, "deployments", 2)
    assert _revision(cluster, namespace) == "2"
    assert cluster.get("deployment", "tiny-chat-kserve", "-n", namespace)["metadata"]["generation"] == other


def _environment(cluster: ControlPlane, namespace: str) -> dict[str, str]:
    (container,) = [
        c
        for c in cluster.get("deployment", "team-chat-kserve", "-n", namespace)["spec"]["template"]["spec"][
            "containers"
        ]
        if c["name"] == "main"
    ]
    return {e["name"]: e.get("value", "") for e in container.get("env", [])}


def _revision(cluster: ControlPlane, namespace: str) -> str:
    metadata = cluster.get("deployment", "team-chat-kserve", "-n", namespace)["metadata"]
    return str(metadata["annotations"]["deployment.kubernetes.io/revision"])


def test_stopping_and_starting(gateway: Installation, namespace: str) -> None:
    """The annotation removes the workload, and its removal brings the workload back."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "quickstart.yaml")
    wait_ready(cluster, namespace, "tiny-chat")
    cluster.kubectl("annotate", SERVICES, "tiny-chat", "-n", namespace, "serving.kserve.io/stop=true")
    wait_until(lambda: "Deployment/tiny-chat-kserve" not in names_of(cluster, namespace, WORKLOADS), "no workload")
    wait_until(lambda: condition_of(cluster, namespace, "tiny-chat", "Stopped").get("status") == "True", "stopped")
    cluster.kubectl("annotate", SERVICES, "tiny-chat", "-n", namespace, "serving.kserve.io/stop-")
    wait_ready(cluster, namespace, "tiny-chat")


def test_scaling_by_the_scale_subresource(installation: Installation, namespace: str) -> None:
    """kubectl and a user's autoscaler can scale the service; the autoscaler finds the pods by the selector."""
    cluster = installation.cluster
    service = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "sized"},
        "spec": {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B-Instruct"}, "replicas": 1},
    }
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(service))
    wait_ready(cluster, namespace, "sized")
    cluster.kubectl("scale", SERVICES, "sized", "-n", namespace, "--replicas=2")
    path = f"/apis/serving.kserve.io/v1alpha2/namespaces/{namespace}/{SERVICES}/sized/scale"

    def scaled() -> bool:
        return bool(cluster.client.get(path).json()["status"]["replicas"] == 2)

    wait_until(scaled, "two replicas in the scale subresource")
    selector = cluster.client.get(path).json()["status"]["selector"]
    assert len(cluster.get("pods", "-n", namespace, "-l", selector)["items"]) == 2
    cluster.kubectl("autoscale", SERVICES, "sized", "-n", namespace, "--min=1", "--max=3", "--cpu=50%")

    def judged() -> bool:
        conditions = cluster.get("hpa", "sized", "-n", namespace).get("status", {}).get("conditions", [])
        reasons = {condition["type"]: condition["reason"] for condition in conditions}
        return reasons == {"AbleToScale": "SucceededGetScale", "ScalingActive": "FailedGetResourceMetric"}

    wait_until(judged, "the autoscaler misses its metric alone")


def test_getting_prefill(gateway: Installation, namespace: str) -> None:
    """The pods' role changes, which is in the immutable selector, so the Deployment is recreated."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "quickstart.yaml")
    wait_ready(cluster, namespace, "tiny-chat")
    patch = json.dumps({"spec": {"prefill": {"replicas": 1}}})
    cluster.kubectl("patch", SERVICES, "tiny-chat", "-n", namespace, "--type=merge", "-p", patch)

    def role() -> str:
        done = cluster.kubectl("get", "deployment", "tiny-chat-kserve", "-n", namespace, "-o", "json", check=False)
        selector = json.loads(done.stdout)["spec"]["selector"] if done.returncode == 0 else {"matchLabels": {}}
        return str(selector["matchLabels"].get("llm-d.ai/role"))

    wait_until(lambda: role() == "decode", "a Deployment of decoding pods")
    wait_ready(cluster, namespace, "tiny-chat")
    assert "Deployment/tiny-chat-kserve-prefill" in names_of(cluster, namespace, WORKLOADS)


def test_an_account_is_taken_away(gateway: Installation, namespace: str) -> None:
    """The API server restores an account's name that is merely omitted; the pods change anyway."""
    cluster = gateway.cluster
    cluster.kubectl("create", "serviceaccount", "mine", "-n", namespace)
    apply(cluster, namespace, EXAMPLES / "quickstart.yaml")
    wait_ready(cluster, namespace, "tiny-chat")

    def runs_under(account: str | None, name: str) -> None:
        patch = json.dumps({"spec": {"template": {"serviceAccountName": account}}})
        cluster.kubectl("patch", SERVICES, "tiny-chat", "-n", namespace, "--type=merge", "-p", patch)

        def account_of() -> str:
            pod = cluster.get("deployment", "tiny-chat-kserve", "-n", namespace)["spec"]["template"]["spec"]
            return str(pod.get("serviceAccountName"))

        wait_until(lambda: account_of() == name, f"pods under {name}")

    runs_under("mine", "mine")
    runs_under(None, "default")
    wait_ready(cluster, namespace, "tiny-chat")


def _pod(cluster: ControlPlane, namespace: str, deployment: str) -> dict[str, Any]:
    pod: dict[str, Any] = cluster.get("deployment", deployment, "-n", namespace)["spec"]["template"]["spec"]
    return pod


def _initializer(pod: dict[str, Any]) -> dict[str, Any]:
    downloader: dict[str, Any] = next(c for c in pod["initContainers"] if c["name"] == "storage-initializer")
    return downloader


def test_models_from_elsewhere(gateway: Installation, namespace: str) -> None:
    """Each URI reaches the initializer with the credentials of its kind, and the API server accepts the pod."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "sources.yaml")
    for name in ("chat-from-gcs", "chat-from-azure", "chat-from-web", "chat-from-hdfs"):
        wait_ready(cluster, namespace, name)
    google = _initializer(_pod(cluster, namespace, "chat-from-gcs-kserve"))
    assert google["args"] == ["gs://example-models/tiny-chat", "/mnt/models"]
    assert {"name": "user-gcp-sa", "mountPath": "/var/secrets/", "readOnly": True} in google["volumeMounts"]
    azure = _initializer(_pod(cluster, namespace, "chat-from-azure-kserve"))
    keys = {variable["name"]: variable["valueFrom"]["secretKeyRef"]["name"] for variable in azure["env"]}
    assert keys["AZURE_STORAGE_ACCESS_KEY"] == "azure-reader"
    (headers,) = _initializer(_pod(cluster, namespace, "chat-from-web-kserve"))["env"]
    assert headers["name"] == "models.example.com-headers"
    hdfs = _pod(cluster, namespace, "chat-from-hdfs-kserve")
    assert "hdfs-secrets" in {volume["name"] for volume in hdfs["volumes"]}


def test_an_address_that_nothing_fetches_names_the_form_that_can(gateway: Installation, namespace: str) -> None:
    """It is refused at apply, and the message has the URI to use instead."""
    document = json.dumps(
        {
            "apiVersion": "serving.kserve.io/v1alpha2",
            "kind": "LLMInferenceService",
            "metadata": {"name": "demo"},
            "spec": {"model": {"uri": "abfs://models@acme.dfs.core.windows.net/llama"}},
        }
    )
    done = gateway.cluster.kubectl("apply", "-n", namespace, "-f", "-", input=document, check=False)
    assert done.returncode != 0
    assert "write https://acme.blob.core.windows.net/models/llama" in done.stderr


def test_adapters_are_loaded(gateway: Installation, namespace: str) -> None:
    """Downloaded and mounted adapters are loaded; removing one changes the pods."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "lora.yaml")
    wait_ready(cluster, namespace, "chat-with-adapters")
    pod = _pod(cluster, namespace, "chat-with-adapters-kserve")
    main = next(c for c in pod["containers"] if c["name"] == "main")
    assert main["args"] == [
        *("--enable-lora", "--max-lora-rank=32", "--max-loras=2", "--lora-modules"),
        *(
            f"""{{"name":"{name}","path":"/mnt/lora/{adapter}"}}"""
            for adapter in ("legal-de", "support")
            for name in (adapter, f"publishers/{namespace}/models/{adapter}")
        ),
    ]
    assert _initializer(pod)["args"][2:] == ["hf://example-org/tiny-chat-legal-de", "/mnt/lora/legal-de"]
    status = cluster.get(SERVICES, "chat-with-adapters", "-n", namespace)["status"]
    plain = ["Qwen/Qwen2.5-0.5B-Instruct", "legal-de", "support"]
    routed = [f"publishers/{namespace}/models/{name}" for name in plain]
    assert {entry["name"] for address in status["addresses"] for entry in address["models"]} == {*plain, *routed}
    picker = _pod(cluster, namespace, "chat-with-adapters-kserve-router-scheduler")["containers"][0]
    assert "lora-affinity-scorer" in picker["args"][-1]
    only = {"spec": {"model": {"lora": {"adapters": [{"name": "support", "uri": "pvc://adapters/support/v3"}]}}}}
    cluster.kubectl("patch", SERVICES, "chat-with-adapters", "-n", namespace, "--type=merge", "-p", json.dumps(only))

    def is_gone() -> bool:
        volumes = {volume["name"] for volume in _pod(cluster, namespace, "chat-with-adapters-kserve")["volumes"]}
        return "lora-adapters" not in volumes and "lora-pvc-support" in volumes

    wait_until(is_gone, "pods without the volume of the downloaded adapter")
    wait_ready(cluster, namespace, "chat-with-adapters")


def test_traces_are_sent(gateway: Installation, namespace: str) -> None:
    """Servers and picker send traces while tracing is configured."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "tracing.yaml")
    wait_ready(cluster, namespace, "traced-chat")
    for deployment in ("traced-chat-kserve", "traced-chat-kserve-router-scheduler"):
        (main,) = _pod(cluster, namespace, deployment)["containers"]
        variables = {variable["name"]: variable.get("value") for variable in main["env"]}
        assert variables["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector.observability:4317"
        assert variables["OTEL_TRACES_SAMPLER_ARG"] == "0.1"
    patch = '[{"op": "remove", "path": "/spec/tracing"}]'
    cluster.kubectl("patch", SERVICES, "traced-chat", "-n", namespace, "--type=json", "-p", patch)

    def silent() -> bool:
        (main,) = _pod(cluster, namespace, "traced-chat-kserve")["containers"]
        return not main.get("args") and "OTEL_SERVICE_NAME" not in {v["name"] for v in main["env"]}

    wait_until(silent, "a server without traces")


def test_a_canary_gets_its_part(gateway: Installation, namespace: str) -> None:
    """A canary gets its share once it is ready, and no requests while it is stopped."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "canary.yaml")
    wait_ready(cluster, namespace, "chat-canary")

    def weights() -> dict[str, int]:
        done = cluster.kubectl(
            "get", "httproute", "chat-stable-kserve-route", "-n", namespace, "-o", "json", check=False
        )
        rules = json.loads(done.stdout)["spec"]["rules"] if done.returncode == 0 else [{"backendRefs": []}]
        return {backend["name"]: backend["weight"] for backend in rules[0]["backendRefs"]}

    stable, canary = "chat-stable-kserve-workload-svc", "chat-canary-kserve-workload-svc"
    wait_ready(cluster, namespace, "chat-stable")
    wait_until(lambda: weights() == {stable: 90, canary: 10}, "both in the route")
    cluster.kubectl("annotate", SERVICES, "chat-canary", "-n", namespace, "serving.kserve.io/stop=true")
    wait_until(lambda: weights() == {stable: 90}, "a route without the stopped canary")
    cluster.kubectl("annotate", SERVICES, "chat-canary", "-n", namespace, "serving.kserve.io/stop-")
    wait_ready(cluster, namespace, "chat-canary")
    wait_until(lambda: weights() == {stable: 90, canary: 10}, "both in the route again")
    cluster.kubectl("delete", SERVICES, "chat-canary", "-n", namespace)
    wait_until(lambda: weights() == {stable: 90}, "a route without the canary")


def test_names_of_rules_go_in_one_write(gateway: Installation, namespace: str) -> None:
    """An upgrade leaves no moment in which a rule is missing: the rules are replaced as a whole, once."""
    cluster, name = gateway.cluster, "routed-chat-kserve-route"
    apply(cluster, namespace, EXAMPLES / "routed.yaml")
    wait_ready(cluster, namespace, "routed-chat")
    route = cluster.get("httproute", name, "-n", namespace)
    rules, generation = route["spec"]["rules"], route["metadata"]["generation"]
    earlier = [{**rule, "name": f"rule-{number}"} for number, rule in enumerate(rules)]
    record = json.loads(route["metadata"]["annotations"][LAST_APPLIED])
    record["spec"]["rules"] = [{**rule, "name": f"rule-{n}"} for n, rule in enumerate(record["spec"]["rules"])]
    route["spec"]["rules"] = earlier
    route["metadata"]["annotations"][LAST_APPLIED] = json.dumps(record)
    cluster.kubectl("replace", "-f", "-", input=json.dumps(route))

    def now() -> Json:
        return dict(cluster.get("httproute", name, "-n", namespace))

    wait_until(lambda: not any("name" in rule for rule in now()["spec"]["rules"]), "rules without names")
    wait_ready(cluster, namespace, "routed-chat")
    assert now()["spec"]["rules"] == rules
    assert now()["metadata"]["generation"] == generation + 2  # the test's write, and one more


def test_a_newer_manifest_loses_nothing(gateway: Installation, namespace: str) -> None:
    """All fields are stored, and those without effect cause a warning; a string stays a string in the older version."""
    cluster = gateway.cluster
    spec: dict[str, Any] = {
        "model": {"uri": "hf://Qwen/Qwen2.5-0.5B-Instruct", "lora": {"maxRank": 16, "maxCpuAdapters": 4}},
        "kvCacheOffloading": {"cpu": "10Gi"},
        "tracing": {"samplerArg": "0.5"},
        "router": {
            "gateway": {"refs": [{"name": "kserve-ingress-gateway", "namespace": "kserve", "sectionName": "http"}]},
            "route": {"group": "chat", "weight": 10},
            "scheduler": {
                "tokenizer": {"template": {}},
                "config": {"inline": "kind: EndpointPickerConfig\nplugins: []\n"},
            },
        },
    }
    document = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "spec": spec}
    text = json.dumps({**document, "metadata": {"name": "newer"}})
    done = cluster.kubectl("apply", "-n", namespace, "-f", "-", input=text)
    assert "spec.router.scheduler.tokenizer: accepted, no effect" in done.stderr
    stored = cluster.get(SERVICES, "newer", "-n", namespace)["spec"]
    assert {key: stored[key] for key in spec} == spec
    older = cluster.get("llminferenceservices.v1alpha1.serving.kserve.io", "newer", "-n", namespace)["spec"]
    assert older["router"]["scheduler"]["config"] == spec["router"]["scheduler"]["config"]
    assert older["tracing"] == spec["tracing"]


def test_mistakes_are_refused(gateway: Installation, namespace: str) -> None:
    """The webhook refuses them with the path; nothing is created."""
    rejected = EXAMPLES / "rejected" / "parallelism.yaml"
    done = gateway.cluster.kubectl("apply", "-n", namespace, "-f", str(rejected), check=False)
    assert done.returncode != 0
    assert "spec.parallelism: " in done.stderr
    assert gateway.cluster.get(SERVICES, "-n", namespace)["items"] == []


def test_a_settled_service_is_not_written(gateway: Installation, namespace: str) -> None:
    """Route, pool, picker and workload are not written."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "routed.yaml")
    wait_ready(cluster, namespace, "routed-chat")
    settle(cluster, namespace, f"{SERVICES},{WORKLOADS},{OPTIONAL}", 15)


def test_parallelism_in_one_pod(gateway: Installation, namespace: str) -> None:
    """The pods have the arguments and the GPUs, and nothing is written again."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "one-node.yaml")
    wait_ready(cluster, namespace, "large")
    deployment = cluster.get("deployment", "large-kserve", "-n", namespace)
    server = deployment["spec"]["template"]["spec"]["containers"][0]
    assert server["args"] == ["--tensor-parallel-size", "8", "--max-model-len", "32768"]
    assert {part["nvidia.com/gpu"] for part in server["resources"].values()} == {"8"}
    settle(cluster, namespace, f"{SERVICES},{WORKLOADS}", 5)


def test_reports_a_conflict_at_apply_and_in_ready(gateway: Installation, namespace: str) -> None:
    cluster = gateway.cluster
    server = {"name": "main", "args": ["-tp", "4"], "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {
        "model": {"uri": "hf://a/b"},
        "parallelism": {"tensor": 8},
        "template": {"containers": [server]},
        "router": {"route": {"http": {"refs": [{"name": "none"}]}}},  # so that it does not become ready
    }
    document = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "torn"},
        "spec": spec,
    }
    said = "spec.parallelism.tensor: is 8, and container main passes --tensor-parallel-size 4"
    applied = cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(document))
    assert said in applied.stderr
    wait_until(lambda: said in ready(cluster, namespace, "torn").get("message", ""), "the cause in Ready")


def test_a_pipeline(gateway: Installation, namespace: str) -> None:
    """A group of the preset gets the worker's parallelism from a base config."""
    cluster = gateway.cluster
    apply(cluster, namespace, EXAMPLES / "pipeline.yaml")
    wait_ready(cluster, namespace, "huge")
    (item,) = cluster.get("leaderworkersets", "-n", namespace)["items"]
    pods = item["spec"]["leaderWorkerTemplate"]
    assert pods["size"] == 2
    for pod in (pods["leaderTemplate"], pods["workerTemplate"]):
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_who_contradict_each_other_together_are_named_together(gateway: Installation, namespace: str) -> None:
    """A base requests another number of GPUs than the service limits; each is valid alone."""
    cluster = gateway.cluster

    def sized(kind: str, name: str, part: str, amount: str, **more: Any) -> dict[str, Any]:
        server = {"name": "main", "resources": {part: {"nvidia.com/gpu": amount}}}
        spec = {"template": {"containers": [server]}, **more}
        metadata = {"name": name}
        return {"apiVersion": "serving.kserve.io/v1alpha2", "kind": kind, "metadata": metadata, "spec": spec}

    model = {"model": {"uri": "hf://a/b"}, "baseRefs": [{"name": "four"}]}
    for document in (
        sized("LLMInferenceServiceConfig", "four", "requests", "4"),
        sized("LLMInferenceService", "eight", "limits", "8", **model),
    ):
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(document))
    said = f"(set by LLMInferenceServiceConfig {namespace}/four and the service)"
    wait_until(lambda: said in ready(cluster, namespace, "eight").get("message", ""), "both names in Ready")
