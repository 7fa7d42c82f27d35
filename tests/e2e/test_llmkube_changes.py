"""Effects of changes of a Model or its service on running pods, on a real API server with real controllers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from app.kube.base import Json
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import Installation, clear
from tests.e2e.processes import wait_until
from tests.e2e.test_llmkube import EXAMPLES, QUICKSTART, apply, condition, wait_ready

pytestmark = pytest.mark.e2e


GROUP = "inference.llmkube.dev"
CHILDREN = "deployments,services,horizontalpodautoscalers,jobs"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


def names(cluster: ControlPlane, namespace: str, kinds: str) -> set[str]:
    items = cluster.get(kinds, "-n", namespace)["items"]
    return {f"{i['kind']}/{i['metadata']['name']}" for i in items if "deletionTimestamp" not in i["metadata"]}


def patch(cluster: ControlPlane, namespace: str, kind: str, name: str, spec: Json) -> None:
    change = json.dumps({"spec": spec})
    cluster.kubectl("patch", f"{kind}.{GROUP}/{name}", "-n", namespace, "--type=merge", "-p", change)


def deployment(cluster: ControlPlane, namespace: str, name: str) -> Json:
    workload: Json = cluster.get("deployment", name, "-n", namespace)
    return workload


def revision(cluster: ControlPlane, namespace: str, name: str) -> str:
    metadata = deployment(cluster, namespace, name)["metadata"]
    return str(metadata.get("annotations", {}).get("deployment.kubernetes.io/revision", ""))


def remote_model(**spec: Any) -> str:
    """Return a Model that the runtime fetches itself, and its service; nothing is downloaded beforehand."""
    model: Json = {"metadata": {"name": "small"}, "spec": {"source": "example-org/small", **spec}}
    service: Json = {
        "metadata": {"name": "chat"},
        "spec": {"modelRef": "small", "runtime": "vllm", "skipModelInit": True},
    }
    documents = [{"kind": "Model", **model}, {"kind": "InferenceService", **service}]
    return yaml.safe_dump_all([{"apiVersion": f"{GROUP}/v1alpha1", **document} for document in documents])


def test_service_on_metal_waits_for_its_agent(installation: Installation, namespace: str) -> None:
    """The cluster has no children; the agent's EndpointSlice makes the service ready."""
    cluster = installation.cluster
    apply(cluster, namespace, EXAMPLES / "metal.yaml")

    def judged() -> bool:
        item = cluster.get(f"inferenceservice.{GROUP}", "mac", "-n", namespace)
        return bool(item.get("status", {}).get("schedulingStatus") == "WaitingForMetalAgent")

    wait_until(judged, "the service waits for the agent")
    assert names(cluster, namespace, CHILDREN) == set()
    agent = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "mac",
            "labels": {"kubernetes.io/service-name": "mac"},
            "annotations": {"llmkube.ai/agent-heartbeat": datetime.now(UTC).isoformat(timespec="seconds")},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.9"], "conditions": {"ready": True}}],
        "ports": [{"port": 8080}],
    }
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump(agent))
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/mac")


def test_moving_to_metal_takes_the_children_away(installation: Installation, namespace: str) -> None:
    """Moving back creates them again."""
    cluster = installation.cluster
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=remote_model())
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")
    patch(cluster, namespace, "model", "small", {"hardware": {"accelerator": "metal"}})
    wait_until(lambda: names(cluster, namespace, CHILDREN) == set(), "no children on metal")
    patch(cluster, namespace, "model", "small", {"hardware": {"accelerator": "cpu"}})
    both = {"Deployment/chat", "Service/chat"}
    # On metal the service may be Ready still, so that its children come first.
    wait_until(lambda: names(cluster, namespace, CHILDREN) == both, "the children are there again")
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")


def test_getting_a_gpu_and_giving_it_back(installation: Installation, namespace: str) -> None:
    """The strategy becomes Recreate and RollingUpdate again; the API server accepts neither with the other's fields."""
    cluster = installation.cluster
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=remote_model())
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")
    before = deployment(cluster, namespace, "chat")
    assert before["spec"]["strategy"]["type"] == "RollingUpdate"
    for hardware, strategy, limit in (
        ({"accelerator": "cuda", "gpu": {"count": 1}}, {"type": "Recreate"}, "1"),
        ({"accelerator": "cpu", "gpu": None}, before["spec"]["strategy"], None),
    ):
        patch(cluster, namespace, "model", "small", {"hardware": hardware})

        def switched(wanted: Json = strategy, limit: str | None = limit) -> bool:
            spec = deployment(cluster, namespace, "chat")["spec"]
            container = spec["template"]["spec"]["containers"][0]
            limit_of_pod = container["resources"].get("limits", {}).get("nvidia.com/gpu")
            return bool(spec["strategy"] == wanted and limit_of_pod == limit)

        wait_until(switched, f"strategy {strategy['type']} with {limit} GPUs")
        cluster.kubectl("rollout", "status", "deployment/chat", "-n", namespace, TIMEOUT)
        wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")
    after = deployment(cluster, namespace, "chat")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"]


def test_another_runtime_rolls_the_pods_once(installation: Installation, namespace: str) -> None:
    """The same Deployment gets the pods of the other server."""
    cluster = installation.cluster
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=remote_model())
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")
    before = deployment(cluster, namespace, "chat")
    patch(cluster, namespace, "inferenceservice", "chat", {"runtime": "tgi", "skipModelInit": None})
    wait_until(lambda: revision(cluster, namespace, "chat") == "2", "a second revision")
    cluster.kubectl("rollout", "status", "deployment/chat", "-n", namespace, TIMEOUT)
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")
    after = deployment(cluster, namespace, "chat")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    images = [d["spec"]["template"]["spec"]["containers"][0]["image"] for d in (before, after)]
    assert images[0] != images[1]
    assert revision(cluster, namespace, "chat") == "2"


def test_another_source_is_another_job(installation: Installation, namespace: str) -> None:
    """The new download replaces the old Job; the claim with the old file is kept."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, f"model.{GROUP}/smollm", f"inferenceservice.{GROUP}/smollm-chat")
    (old,) = names(cluster, namespace, "jobs")
    claim = cluster.get("persistentvolumeclaim", "smollm-cache", "-n", namespace)["metadata"]["uid"]
    patch(cluster, namespace, "model", "smollm", {"source": "https://models.example.com/other.gguf"})

    def replaced() -> bool:
        jobs = names(cluster, namespace, "jobs")
        return len(jobs) == 1 and jobs != {old}

    wait_until(replaced, "the new Job in place of the old")
    wait_ready(cluster, namespace, f"model.{GROUP}/smollm", f"inferenceservice.{GROUP}/smollm-chat")
    assert cluster.get("persistentvolumeclaim", "smollm-cache", "-n", namespace)["metadata"]["uid"] == claim


def test_a_child_that_the_api_server_refuses_holds_up_no_other(installation: Installation, namespace: str) -> None:
    """The Service exists, Ready names the Deployment, and an event has the API server's message.

    Once the spec is corrected, all children are created.
    """
    cluster = installation.cluster
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=remote_model())
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")
    service: Json = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "forbidden"},
        "spec": {"modelRef": "small", "runtime": "vllm", "skipModelInit": True},
    }
    forbidden = {**service["spec"], "securityContext": {"privileged": True}}  # forbidden by this API server's policy
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps({**service, "spec": forbidden}))

    def told() -> bool:
        item = cluster.get(f"inferenceservice.{GROUP}", "forbidden", "-n", namespace)
        events = cluster.get("events", "-n", namespace)["items"]
        return "Deployment forbidden" in condition(item, "Ready").get("message", "") and any(
            event["involvedObject"]["name"] == "forbidden" and "privileged" in event["message"] for event in events
        )

    wait_until(told, "the Deployment in Ready, the refusal in an event")
    assert names(cluster, namespace, "deployments,services") == {"Deployment/chat", "Service/chat", "Service/forbidden"}
    patch(cluster, namespace, "inferenceservice", "forbidden", {"securityContext": None})
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/forbidden")


def test_what_the_go_operator_made_goes_on_running(installation: Installation, namespace: str) -> None:
    """Its objects get an owner and a record once they have the migration page's label, and no pod restarts."""
    cluster = installation.cluster
    elsewhere = cluster.create_namespace()
    cluster.kubectl("apply", "-n", elsewhere, "-f", "-", input=remote_model())
    wait_ready(cluster, elsewhere, f"inferenceservice.{GROUP}/chat")
    for kind in ("deployment", "service"):
        left = bare(cluster.get(kind, "chat", "-n", elsewhere))
        cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(left))
    cluster.kubectl("wait", "-n", namespace, "--for=condition=Available", "deployment/chat", TIMEOUT)
    pods = {p["metadata"]["uid"] for p in cluster.get("pods", "-n", namespace)["items"]}
    assert pods

    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=remote_model())
    uid = cluster.get(f"inferenceservice.{GROUP}", "chat", "-n", namespace)["metadata"]["uid"]
    for kind in ("deployment", "service"):
        cluster.kubectl("label", f"{kind}/chat", "-n", namespace, f"controller-uid={uid}")

    def taken_over() -> bool:
        metadatas = [cluster.get(kind, "chat", "-n", namespace)["metadata"] for kind in ("deployment", "service")]
        return all(m.get("ownerReferences") and LAST_APPLIED in m.get("annotations", {}) for m in metadatas)

    wait_until(taken_over, "an owner and a record on both")
    wait_ready(cluster, namespace, f"inferenceservice.{GROUP}/chat")
    assert {p["metadata"]["uid"] for p in cluster.get("pods", "-n", namespace)["items"]} == pods
    assert len(cluster.get("replicasets", "-n", namespace)["items"]) == 1
    assert revision(cluster, namespace, "chat") == "1"
    status = cluster.get(f"inferenceservice.{GROUP}", "chat", "-n", namespace)
    assert condition(status, "Ready")["status"] == "True"
    clear(cluster, elsewhere)


def bare(item: Json) -> Json:
    """Return an object as another operator would have made it, without our fields and the API server's."""
    metadata, spec = item["metadata"], item["spec"]
    labels = {key: value for key, value in metadata["labels"].items() if key != "controller-uid"}
    of_user = {key: value for key, value in spec.items() if key not in ("clusterIP", "clusterIPs")}
    head = {"apiVersion": item["apiVersion"], "kind": item["kind"]}
    return {**head, "metadata": {"name": metadata["name"], "labels": labels}, "spec": of_user}


def test_the_fields_of_newer_versions(installation: Installation, namespace: str) -> None:
    """The API server accepts the fields and the children have them; the Service has the requested nodePort."""
    cluster = installation.cluster
    apply(cluster, namespace, EXAMPLES / "sglang.yaml")
    apply(cluster, namespace, EXAMPLES / "router.yaml")
    wait_until(lambda: "Deployment/big-coder" in names(cluster, namespace, "deployments"), "the Deployment")
    spec = deployment(cluster, namespace, "big-coder")["spec"]
    pod = spec["template"]["spec"]
    (server,) = pod["containers"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["operator"] == "Gt"
    assert pod["topologySpreadConstraints"][0]["topologyKey"] == "topology.kubernetes.io/zone"
    assert [volume["name"] for volume in pod["volumes"]] == ["dshm", "compiled"]
    assert server["resources"]["limits"]["ephemeral-storage"] == "60Gi"
    assert server["args"][server["args"].index("--host") + 1] == "::"
    assert (spec["revisionHistoryLimit"], spec["replicas"]) == (3, 2)
    assert spec["template"]["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"


def test_suspended_and_back(installation: Installation, namespace: str) -> None:
    """A suspended service has no pods and no autoscaler; afterwards it has the spec's replicas again."""
    cluster = installation.cluster
    apply(cluster, namespace, EXAMPLES / "suspended.yaml")
    service = (f"inferenceservice.{GROUP}/sleeper", "-n", namespace)
    wait_until(lambda: cluster.get(*service).get("status", {}).get("phase") == "Suspended", "the phase Suspended")
    spec = deployment(cluster, namespace, "sleeper")["spec"]
    assert spec["replicas"] == 0
    assert spec["template"]["spec"]["volumes"] == [{"name": "model-storage", "emptyDir": {"sizeLimit": "2Gi"}}]
    # Another namespace's Service may hold the port until it is collected.
    wait_until(lambda: "Service/sleeper" in names(cluster, namespace, "services"), "the Service")
    assert cluster.get("service", "sleeper", "-n", namespace)["spec"]["ports"][0]["nodePort"] == 30080
    patch(cluster, namespace, "inferenceservice", "sleeper", {"suspend": False, "autoscaling": {"maxReplicas": 3}})
    scaler = "HorizontalPodAutoscaler/sleeper"
    wait_until(lambda: scaler in names(cluster, namespace, CHILDREN), "the autoscaler")
    wait_until(lambda: deployment(cluster, namespace, "sleeper")["spec"]["replicas"] == 2, "the pods")
    patch(cluster, namespace, "inferenceservice", "sleeper", {"suspend": True})
    wait_until(lambda: deployment(cluster, namespace, "sleeper")["spec"]["replicas"] == 0, "no pods")
    wait_until(lambda: scaler not in names(cluster, namespace, CHILDREN), "no autoscaler")
    assert cluster.get(*service)["spec"]["replicas"] == 2


def test_an_autoscaler_without_an_adapter(installation: Installation, autoscaled: str) -> None:
    """Ready follows the pods until the real autoscaler has lacked the metric for a minute."""
    cluster = installation.cluster
    where = (f"inferenceservice.{GROUP}/assistant", "-n", autoscaled)

    def told() -> bool:
        ready = condition(cluster.get(*where), "Ready")
        return ready["reason"] == "FailedGetPodsMetric" and "component prometheus-adapter" in ready["message"]

    wait_until(told, "what to install for the autoscaler")
    assert cluster.get(*where)["status"]["phase"] == "Ready"
