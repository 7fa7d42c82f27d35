"""A Model and an InferenceService on a real API server, used with kubectl."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.recordings import samples
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation, settle
from tests.e2e.processes import wait_until
from tests.llmkube.gguf import gguf, llama

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("autoscaled")]

EXAMPLES = ROOT / "examples" / "llmkube"
QUICKSTART = EXAMPLES / "quickstart.yaml"
SERVICE = "inferenceservice.inference.llmkube.dev/smollm-chat"
"""The kind in full: llmaz has the same short name."""
EVERYTHING = "models,inferenceservices,deployments,services,horizontalpodautoscalers,jobs,persistentvolumeclaims"


def condition(item: dict[str, Any], type_: str) -> dict[str, Any]:
    return next((c for c in item.get("status", {}).get("conditions", []) if c["type"] == type_), {})


def apply(cluster: ControlPlane, namespace: str, *files: Path) -> str:
    return cluster.kubectl("apply", "-n", namespace, *(a for f in files for a in ("-f", str(f)))).stdout


def wait_ready(cluster: ControlPlane, namespace: str, *names: str) -> None:
    cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", *names, TIMEOUT)


def test_a_model_and_its_service_become_ready(installation: Installation, namespace: str) -> None:
    """The download Job, claim, Deployment and Service are created, and Ready follows the pods."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "model/smollm", "inferenceservice/smollm-chat")
    objects = {(i["kind"], i["metadata"]["name"]) for i in cluster.get(EVERYTHING, "-n", namespace)["items"]}
    assert ("Deployment", "smollm-chat") in objects
    assert ("Service", "smollm-chat") in objects
    assert ("PersistentVolumeClaim", "smollm-cache") in objects
    assert [kind for kind, _ in objects].count("Job") == 1
    service = cluster.get("inferenceservice", "smollm-chat", "-n", namespace)
    assert service["status"]["phase"] == "Ready"
    assert service["status"]["observedGeneration"] == service["metadata"]["generation"]
    assert service["status"]["endpoint"] == f"http://smollm-chat.{namespace}.svc.cluster.local:8080/v1/chat/completions"
    columns = cluster.kubectl("get", "inferenceservices", "-n", namespace).stdout
    assert "ENDPOINT" in columns


def test_every_example_is_applied(installation: Installation, namespace: str) -> None:
    """Each becomes ready, except those that are marked as not becoming ready."""
    cluster = installation.cluster
    apply(cluster, namespace, *sorted(EXAMPLES.glob("*.yaml")))
    waiting = [
        f"{i['kind'].lower()}/{i['metadata']['name']}"
        for i in cluster.get("models,inferenceservices", "-n", namespace)["items"]
        if i["metadata"].get("annotations", {}).get("modelhooks.dev/example-ready") != "false"
    ]
    assert len(waiting) >= 15
    wait_ready(cluster, namespace, *waiting)
    autoscaler = cluster.get("hpa", "assistant", "-n", namespace)
    assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (1, 3)


def described(job: dict[str, Any], directory: Path) -> str:
    """Run the Job's script for an existing GGUF file; return its termination message."""
    file, message = directory / "m.gguf", directory / "termination-log"
    file.write_bytes(gguf(llama(), {"token_embd.weight": (64, 32000)}))
    environment = {
        "PATH": os.environ["PATH"],
        "MODEL_SOURCE": "http://127.0.0.1:1/",
        "MODEL_PATH": str(file),
        "CACHE_DIR": str(directory),
        "TERMINATION_LOG": str(message),
    }
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    return message.read_text()


def test_what_a_file_says_of_itself_is_in_the_status(
    installation: Installation, namespace: str, tmp_path: Path
) -> None:
    """The details come from the Job's pod and are in `kubectl get -o wide` and in a metric (LK-2.9.12, LK-B-04)."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "model/smollm")
    (job,) = cluster.get("jobs", "-n", namespace)["items"]
    (pod,) = cluster.get("pods", "-n", namespace, "-l", f"job-name={job['metadata']['name']}")["items"]
    ended = {"exitCode": 0, "reason": "Completed", "message": described(job, tmp_path)}
    container = {"name": "model-downloader", "image": "x", "imageID": "x", "ready": False, "restartCount": 0}
    status = {"phase": "Succeeded", "containerStatuses": [{**container, "state": {"terminated": ended}}]}
    patch = json.dumps({"status": status})
    cluster.kubectl(
        "patch", "pod", pod["metadata"]["name"], "-n", namespace, "--subresource=status", "--type=merge", "-p", patch
    )

    def surfaced() -> bool:
        return "gguf" in cluster.get("model", "smollm", "-n", namespace)["status"]

    wait_until(surfaced, "the header's facts in the Model's status")
    status = cluster.get("model", "smollm", "-n", namespace)["status"]
    assert (status["quantization"], status["gguf"]["architecture"]) == ("Q4_K_M", "llama")
    assert status["gguf"]["parameterCount"] == 64 * 32000
    assert "Q4_K_M" in cluster.kubectl("get", "models", "-n", namespace, "-o", "wide").stdout


def test_files_of_a_repository_and_a_bucket(installation: Installation, namespace: str) -> None:
    """With the examples unchanged, Jobs and pods use the files that they name."""
    cluster = installation.cluster
    apply(cluster, namespace, EXAMPLES / "hub-file.yaml", EXAMPLES / "bucket.yaml", EXAMPLES / "amd-vulkan.yaml")
    names = ("hub-qwen", "bucket-mistral", "radeon")
    wait_ready(
        cluster, namespace, *(f"model/{name}" for name in names), *(f"inferenceservice/{name}" for name in names)
    )
    pods = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in cluster.get("deployments", "-n", namespace)["items"]
    }
    hub, bucket, radeon = (pods[name]["containers"][0] for name in names)
    model = cluster.get("model", "hub-qwen", "-n", namespace)["status"]
    directory = f"/models/{model['cacheKey']}"
    assert model["stagedFiles"] == [
        "Qwen2.5-VL-3B-Instruct-Q4_K_M.gguf",
        "mmproj-Qwen2.5-VL-3B-Instruct-f16.gguf",
    ]
    assert hub["args"][:2] == ["--model", f"{directory}/{model['stagedFiles'][0]}"]
    assert f"{directory}/{model['stagedFiles'][1]}" in hub["args"]
    assert pods["hub-qwen"]["initContainers"][0]["envFrom"] == [{"secretRef": {"name": "hub-token"}}]
    staged = cluster.get("model", "bucket-mistral", "-n", namespace)["status"]
    assert bucket["args"][0] == f"/models/{staged['cacheKey']}"
    assert len(staged["stagedFiles"]) == 6
    assert radeon["resources"]["limits"] == {"devic.es/dri-render": "1"}
    assert "vulkan" in radeon["image"]


def test_every_upstream_sample_is_admitted(installation: Installation, namespace: str) -> None:
    """The schema and the webhook accept LLMKube's own manifests unchanged."""
    cluster = installation.cluster
    documents = [document for sample in samples("llmkube").values() for document in sample]
    assert len(documents) >= 30
    cluster.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(documents))


def test_three_mistakes_of_the_webhook_are_printed_together(installation: Installation, namespace: str) -> None:
    """The messages have paths and what to write instead; nothing is created."""
    done = installation.cluster.kubectl(
        "apply", "-n", namespace, "-f", str(EXAMPLES / "rejected" / "three-mistakes.yaml"), check=False
    )
    assert done.returncode != 0
    for path in ("spec.resources.memory", "spec.endpoint.path", "spec.autoscaling.maxReplicas"):
        assert f"* {path}: " in done.stderr
    assert installation.cluster.get("inferenceservices", "-n", namespace)["items"] == []


def test_three_mistakes_of_the_schema_are_printed_together(installation: Installation, namespace: str) -> None:
    """The schema is generated from the same types."""
    manifest = {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "wrong"},
        "spec": {"modelRef": "m", "replicas": 99, "runtime": "lamacpp", "contextSize": 1},
    }
    done = installation.cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest), check=False)
    assert done.returncode != 0
    for path in ("spec.replicas", "spec.runtime", "spec.contextSize"):
        assert f"* {path}: " in done.stderr


def test_an_unknown_field(installation: Installation, namespace: str) -> None:
    """kubectl refuses it; for other clients the webhook suggests the right name."""
    cluster = installation.cluster
    manifest = {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "typo"},
        "spec": {"modelRef": "m", "replica": 2},
    }
    done = cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest), check=False)
    assert 'unknown field "spec.replica"' in done.stderr
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "kind": {"group": "inference.llmkube.dev", "version": "v1alpha1", "kind": "InferenceService"},
            "object": manifest,
        },
    }
    with installation.client() as client:
        answer = client.post("/validate-inference-llmkube-dev-v1alpha1-inferenceservice", json=review).json()
    assert answer["response"]["warnings"][0] == 'unknown field "spec.replica", did you mean "replicas"?'


def test_mistakes_of_both_layers_posted_to_the_webhook(installation: Installation) -> None:
    """The response has every error of both layers."""
    spec = {"modelRef": "m", "replicas": 99, "resources": {"memory": "4 GB"}, "endpoint": {"path": "v1"}}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "kind": {"group": "inference.llmkube.dev", "version": "v1alpha1", "kind": "InferenceService"},
            "object": {
                "apiVersion": "inference.llmkube.dev/v1alpha1",
                "kind": "InferenceService",
                "metadata": {"name": "both", "namespace": "default"},
                "spec": spec,
            },
        },
    }
    with installation.client() as client:
        answer = client.post("/validate-inference-llmkube-dev-v1alpha1-inferenceservice", json=review).json()
    fields = {cause["field"] for cause in answer["response"]["status"]["details"]["causes"]}
    assert fields == {"spec.replicas", "spec.resources.memory", "spec.endpoint.path"}


def test_a_model_deleted_while_in_use(installation: Installation, namespace: str) -> None:
    """The service keeps every child, and both objects report the deletion."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "inferenceservice/smollm-chat")
    before = cluster.get("deployment", "smollm-chat", "-n", namespace)["metadata"]["uid"]
    cluster.kubectl("delete", "model", "smollm", "-n", namespace, "--cascade=foreground", "--wait=false")
    wait_until(lambda: _says(cluster, namespace, "smollm"), "the service names its Model")
    deployment = cluster.get("deployment", "smollm-chat", "-n", namespace)
    assert deployment["metadata"]["uid"] == before
    assert "deletionTimestamp" not in deployment["metadata"]
    assert cluster.get("service", "smollm-chat", "-n", namespace)
    # The pod that uses the claim protects it, so the Model that owns it still exists and says why.

    def gone_or_terminating() -> bool:
        models = cluster.get("models", "-n", namespace)["items"]
        return all(condition(model, "Ready").get("reason") == "Terminating" for model in models)

    wait_until(gone_or_terminating, "the Model says why it still exists")


def _says(cluster: ControlPlane, namespace: str, model: str) -> bool:
    ready = condition(cluster.get("inferenceservice", "smollm-chat", "-n", namespace), "Ready")
    return ready.get("status") == "False" and model in ready.get("message", "")


def test_scaling_by_the_scale_subresource(installation: Installation, namespace: str) -> None:
    """`kubectl scale` reaches the Deployment; at zero the phase is Stopped."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "inferenceservice/smollm-chat")
    for count, phase in ((2, "Ready"), (0, "Stopped")):
        cluster.kubectl("scale", "-n", namespace, "inferenceservice/smollm-chat", f"--replicas={count}")
        wait_until(lambda: _phase(cluster, namespace) == phase, f"phase {phase}")  # noqa: B023
        assert cluster.get("deployment", "smollm-chat", "-n", namespace)["spec"]["replicas"] == count


def _phase(cluster: ControlPlane, namespace: str) -> str:
    item = cluster.get("inferenceservice", "smollm-chat", "-n", namespace)
    settled = item["status"].get("observedGeneration") == item["metadata"]["generation"]
    return item["status"].get("phase", "") if settled else ""


def test_an_image_change_rolls_the_deployment_once(installation: Installation, namespace: str) -> None:
    """The Deployment gets one new revision and becomes ready again."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "inferenceservice/smollm-chat")
    patch = {"spec": {"image": "ghcr.io/ggml-org/llama.cpp:server-b1"}}
    cluster.kubectl("patch", SERVICE, "-n", namespace, "--type=merge", "-p", json.dumps(patch))
    wait_until(lambda: _revision(cluster, namespace) == "2", "a second revision")
    cluster.kubectl("rollout", "status", "deployment/smollm-chat", "-n", namespace, TIMEOUT)
    wait_ready(cluster, namespace, "inferenceservice/smollm-chat")
    settle(cluster, namespace, "deployments", 2)
    assert _revision(cluster, namespace) == "2"


def _revision(cluster: ControlPlane, namespace: str) -> str:
    deployment = cluster.get("deployment", "smollm-chat", "-n", namespace)
    return str(deployment["metadata"].get("annotations", {}).get("deployment.kubernetes.io/revision", ""))


def test_an_autoscalers_number_is_never_overwritten(installation: Installation, namespace: str) -> None:
    """The initial number is the user's. After another client scales it, later syncs keep the new number."""
    cluster = installation.cluster
    apply(cluster, namespace, EXAMPLES / "gpu-autoscaled.yaml")
    serving = ("wait", "-n", namespace, "--for=jsonpath={.status.phase}=Ready", "inferenceservice/assistant", TIMEOUT)
    cluster.kubectl(*serving)
    assert cluster.get("deployment", "assistant", "-n", namespace)["spec"]["replicas"] == 2
    cluster.kubectl("scale", "-n", namespace, "deployment/assistant", "--replicas=3")
    cluster.kubectl(*serving)
    patch = {"spec": {"podAnnotations": {"touched": "yes"}}}
    cluster.kubectl(
        "patch", SERVICE.replace("smollm-chat", "assistant"), "-n", namespace, "--type=merge", "-p", json.dumps(patch)
    )

    def rolled() -> bool:
        template = cluster.get("deployment", "assistant", "-n", namespace)["spec"]["template"]
        return bool(template["metadata"].get("annotations", {}).get("touched") == "yes")

    wait_until(rolled, "the new template")
    assert cluster.get("deployment", "assistant", "-n", namespace)["spec"]["replicas"] == 3


def test_a_restart_of_the_service_changes_nothing(installation: Installation, namespace: str) -> None:
    """After the service is killed and restarted, nothing is written."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "inferenceservice/smollm-chat")
    before = settle(cluster, namespace, EVERYTHING, 2)
    installation.service.kill()
    installation.start_service()
    cluster.kubectl("label", SERVICE, "-n", namespace, "touched=yes")
    wait_until(lambda: installation.syncs()["/llmkube/inferenceservices/sync"] > 0, "a sync after the restart")
    after = settle(cluster, namespace, EVERYTHING, 3)
    changed = {entry.split("@")[0] for entry in before ^ after}
    assert changed == {"InferenceService/smollm-chat"}


def test_why_a_service_is_not_ready(installation: Installation, namespace: str) -> None:
    """Ready has the pod's reason: an image that cannot be pulled."""
    cluster = installation.cluster
    documents = list(yaml.safe_load_all((EXAMPLES / "generic.yaml").read_text()))
    documents[1]["spec"]["image"] = "registry.example.com/embedding:ImagePullBackOff"
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(documents))

    def explained() -> bool:
        item = cluster.get("inferenceservices", "embedder", "-n", namespace)
        ready = condition(item, "Ready")
        return ready.get("status") == "False" and "ImagePullBackOff" in ready.get("message", "")

    wait_until(explained, "the failed image pull in Ready")


def test_a_model_with_more_gpus_than_any_node(installation: Installation, namespace: str) -> None:
    """Ready has the scheduler's message, and the phase is WaitingForGPU."""
    cluster = installation.cluster
    manifest = [
        {
            "apiVersion": "inference.llmkube.dev/v1alpha1",
            "kind": "Model",
            "metadata": {"name": "huge"},
            "spec": {"source": "example-org/huge", "hardware": {"accelerator": "cuda", "gpu": {"count": 8}}},
        },
        {
            "apiVersion": "inference.llmkube.dev/v1alpha1",
            "kind": "InferenceService",
            "metadata": {"name": "huge"},
            "spec": {"modelRef": "huge", "runtime": "vllm", "skipModelInit": True, "replicas": 5},
        },
    ]
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input="\n---\n".join(map(json.dumps, manifest)))

    def explained() -> bool:
        item = cluster.get("inferenceservice", "huge", "-n", namespace)
        return "Insufficient nvidia.com/gpu" in condition(item, "Ready").get("message", "")

    wait_until(explained, "the scheduler's words in Ready")
