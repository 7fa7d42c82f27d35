"""OpenModels, BackendRuntimes, Playgrounds and Services on a real API server, used with kubectl (LZ-7)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.recordings import cases, samples
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation, settle
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "examples" / "llmaz"
RUNTIMES = ROOT / "manifests" / "llmaz-runtimes"
SAMPLES = {
    name.removeprefix("sample-"): [document for document in documents if document["kind"] != "BackendRuntime"]
    for name, documents in samples("llmaz").items()
    if not name.startswith("sample-backends-")
}
"""Upstream's examples, without the engines, which this project ships."""
PLAYGROUNDS = "playgrounds.inference.llmaz.io"
SERVICES = "services.inference.llmaz.io"
SETS = "leaderworkersets.leaderworkerset.x-k8s.io"
WRITTEN = f"{PLAYGROUNDS},{SERVICES},deployments,services,{SETS}"
"""Objects that only modelhooks writes once pods are ready; an autoscaler's status is its controller's."""


@pytest.fixture(scope="module")
def runtimes(installation: Installation) -> Iterator[Installation]:
    """The six shipped engines, without models of other tests."""
    cluster = installation.cluster
    cluster.kubectl("apply", "-k", str(RUNTIMES))
    cluster.kubectl("wait", "--for=condition=Ready", "backendruntimes", "--all", TIMEOUT)
    yield installation
    cluster.kubectl("delete", "-k", str(RUNTIMES))


@pytest.fixture
def models(control_plane: ControlPlane) -> Iterator[None]:
    """Delete the models after each test, because they are cluster-scoped."""
    yield
    control_plane.kubectl("delete", "openmodels", "--all")


@pytest.fixture
def cluster(runtimes: Installation, models: None) -> ControlPlane:
    """The control plane with the engines."""
    return runtimes.cluster


def apply(cluster: ControlPlane, namespace: str, *documents: dict[str, Any]) -> None:
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(documents))


def model(name: str, **spec: Any) -> dict[str, Any]:
    source = {"modelHub": {"modelID": f"example-org/{name}"}}
    return {
        "apiVersion": "llmaz.io/v1alpha1",
        "kind": "OpenModel",
        "metadata": {"name": name},
        "spec": {"familyName": "test", "source": source, **spec},
    }


def playground(name: str, claimed: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Playground",
        "metadata": {"name": name},
        "spec": {"modelClaim": {"modelName": claimed}, **spec},
    }


def wait_ready(cluster: ControlPlane, namespace: str, *names: str) -> None:
    """Wait until objects are ready; on failure show their conditions and the events."""
    waited = ("wait", "-n", namespace, "--for=condition=Ready", *names, TIMEOUT)
    if cluster.kubectl(*waited, check=False).returncode != 0:
        items = cluster.get(f"{PLAYGROUNDS},{SERVICES}", "-n", namespace)["items"]
        told = json.dumps([{i["kind"]: i.get("status", {}).get("conditions")} for i in items], indent=1)
        pytest.fail(f"{told}\n{cluster.kubectl('get', 'events', '-n', namespace).stdout}")


def ready(cluster: ControlPlane, namespace: str, kind: str, name: str) -> dict[str, Any]:
    conditions = cluster.get(kind, name, "-n", namespace).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == "Ready"), {})


def revision(cluster: ControlPlane, namespace: str, name: str) -> str:
    annotations = cluster.get("deployment", name, "-n", namespace)["metadata"]["annotations"]
    return str(annotations.get("deployment.kubernetes.io/revision"))


@pytest.mark.parametrize("sample", SAMPLES)
def test_upstream_samples_become_ready(cluster: ControlPlane, namespace: str, sample: str) -> None:
    """Upstream's samples are unchanged. A single pod gets a Deployment, several get a valid LeaderWorkerSet."""
    documents = SAMPLES[sample]
    apply(cluster, namespace, *documents)
    for document in documents:
        name = document["metadata"]["name"]
        if document["kind"] == "Playground":
            wait_ready(cluster, namespace, f"{PLAYGROUNDS}/{name}")
            assert cluster.get("deployment", name, "-n", namespace)["status"]["readyReplicas"] >= 1
            assert cluster.get("services", f"{name}-lb", "-n", namespace)["spec"]["ports"][0]["port"] == 8080
        if document["kind"] == "Service":
            wait_until(lambda: exists(cluster, namespace, SETS, name), "the LeaderWorkerSet")  # noqa: B023
            assert cluster.get(SETS, name, "-n", namespace)["spec"]["leaderWorkerTemplate"]["size"] == 2


def exists(cluster: ControlPlane, namespace: str, kind: str, name: str) -> bool:
    return cluster.kubectl("get", kind, name, "-n", namespace, check=False).returncode == 0


def test_every_example_is_applied(cluster: ControlPlane, namespace: str) -> None:
    """All become ready, except the one that needs a LeaderWorkerSet controller; then nothing is written."""
    for file in sorted(EXAMPLES.glob("*.yaml")):
        cluster.kubectl("apply", "-n", namespace, "-f", str(file))
    items = cluster.get(f"{PLAYGROUNDS},{SERVICES}", "-n", namespace)["items"]
    waiting = [
        f"{PLAYGROUNDS if item['kind'] == 'Playground' else SERVICES}/{item['metadata']['name']}"
        for item in items
        if item["metadata"].get("annotations", {}).get("modelhooks.dev/example-ready") != "false"
    ]
    assert len(waiting) >= 11
    wait_ready(cluster, namespace, *waiting)
    assert cluster.get("hpa", "assistant-elastic", "-n", namespace)["spec"]["maxReplicas"] == 4
    reason = "WaitingForController"
    wait_until(lambda: ready(cluster, namespace, SERVICES, "llama-large").get("reason") == reason, reason)
    group = cluster.get(SETS, "llama-large", "-n", namespace)["spec"]
    assert (group["startupPolicy"], group["leaderWorkerTemplate"]["size"]) == ("LeaderCreated", 2)
    settle(cluster, namespace, WRITTEN, 5)


@pytest.mark.parametrize("name", ["openmodel", "playground", "service"])
def test_rejected_examples(cluster: ControlPlane, namespace: str, name: str) -> None:
    """The webhook reports every error of an object at once."""
    file = EXAMPLES / "rejected" / f"{name}.yaml"
    done = cluster.kubectl("apply", "-n", namespace, "-f", str(file), check=False)
    assert done.returncode != 0
    expected = {
        "openmodel": ("spec.familyName", "spec.source.uri"),
        "playground": ("spec: Forbidden", "spec.backendRuntimeConfig.resources", "minReplicas"),
        "service": ("spec.workloadTemplate.workerTemplate.spec.containers", "spec.volumes[0].name"),
    }[name]
    for text in expected:
        assert text in done.stderr


def test_any_order_converges(cluster: ControlPlane, namespace: str) -> None:
    """A Playground is created before its model and its engine: Ready names what is missing until it exists."""
    engine: dict[str, Any] = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": f"late-{namespace}"},
        "spec": {
            "image": "registry.example.com/late",
            "version": "1",
            "recommendedConfigs": [{"name": "default", "args": ["{{ .ModelPath }}"]}],
        },
    }
    config = {"backendName": engine["metadata"]["name"]}
    apply(cluster, namespace, playground("early", "late", backendRuntimeConfig=config))
    expect_reason(cluster, namespace, "early", "ModelNotFound")
    assert cluster.get(SERVICES, "-n", namespace)["items"] == []
    apply(cluster, namespace, model("late"))
    expect_reason(cluster, namespace, "early", "BackendRuntimeNotFound")
    apply(cluster, namespace, engine)
    try:
        wait_ready(cluster, namespace, f"{PLAYGROUNDS}/early")
    finally:
        cluster.kubectl("delete", "backendruntime", engine["metadata"]["name"])


def expect_reason(cluster: ControlPlane, namespace: str, name: str, reason: str) -> None:
    wait_until(lambda: ready(cluster, namespace, PLAYGROUNDS, name).get("reason") == reason, reason)


def test_switching_the_engine_rolls_the_pods_once(cluster: ControlPlane, namespace: str) -> None:
    """The Deployment gets one new revision, not one per stage of the chain."""
    apply(cluster, namespace, model("switched"), playground("switched", "switched"))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/switched")
    patch = {"spec": {"backendRuntimeConfig": {"backendName": "sglang"}}}
    cluster.kubectl("patch", PLAYGROUNDS, "switched", "-n", namespace, "--type=merge", "-p", json.dumps(patch))
    wait_until(lambda: revision(cluster, namespace, "switched") == "2", "a second revision")
    assert image(cluster, namespace, "switched").startswith("lmsysorg/sglang")
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/switched")
    settle(cluster, namespace, "deployments", 3)
    assert revision(cluster, namespace, "switched") == "2"


def image(cluster: ControlPlane, namespace: str, name: str) -> str:
    template = cluster.get("deployment", name, "-n", namespace)["spec"]["template"]
    return str(template["spec"]["containers"][0]["image"])


def test_a_changed_flavor_reaches_every_user(cluster: ControlPlane, namespace: str) -> None:
    """Only its users change: the Playground of another model keeps its revision."""
    flavors = {"flavors": [{"name": "any", "limits": {"nvidia.com/gpu": 1}}]}
    apply(cluster, namespace, model("shared", inferenceConfig=flavors), model("other"))
    apply(cluster, namespace, playground("one", "shared"), playground("two", "shared"), playground("three", "other"))
    wait_ready(cluster, namespace, *(f"{PLAYGROUNDS}/{name}" for name in ("one", "two", "three")))
    flavors["flavors"][0]["limits"] = {"nvidia.com/gpu": 2}
    apply(cluster, namespace, model("shared", inferenceConfig=flavors))
    for name in ("one", "two"):
        wait_until(lambda: gpus(cluster, namespace, name) == "2", f"two GPUs of {name}")  # noqa: B023
    assert gpus(cluster, namespace, "three") == ""
    assert revision(cluster, namespace, "three") == "1"


def gpus(cluster: ControlPlane, namespace: str, name: str) -> str:
    template = cluster.get("deployment", name, "-n", namespace)["spec"]["template"]
    return str(template["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu", ""))


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    """Two more nodes, each with a GPU."""
    (node,) = (
        d for d in yaml.safe_load_all((Path(__file__).parent / "cluster.yaml").read_text()) if d["kind"] == "Node"
    )
    names = ["first", "second"]
    for name in names:
        labels = {"kubernetes.io/hostname": name, "example.com/gpu": name}
        control_plane.kubectl(
            "create", "-f", "-", input=json.dumps({**node, "metadata": {"name": name, "labels": labels}})
        )
    control_plane.kubectl("wait", "--for=condition=Ready", "nodes", *names, TIMEOUT)
    yield
    control_plane.kubectl("delete", "nodes", *names)


def test_flavors_decide_the_nodes(cluster: ControlPlane, nodes: None, namespace: str) -> None:
    """Pods run on nodes of the first flavor that has any, or only of those that the claim names."""
    flavors = [{"name": name, "nodeSelector": {"example.com/gpu": name}} for name in ("none", "first", "second")]
    apply(cluster, namespace, model("placed", inferenceConfig={"flavors": flavors}))
    claim = {"modelName": "placed", "inferenceFlavors": ["second"]}
    nowhere = {"modelName": "placed", "inferenceFlavors": ["none"]}
    apply(
        cluster,
        namespace,
        playground("any", "placed"),
        playground("claimed", "placed", modelClaim=claim),
        playground("nowhere", "placed", modelClaim=nowhere),
    )
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/any", f"{PLAYGROUNDS}/claimed")
    assert placed(cluster, namespace, "any") == ["first"]
    assert placed(cluster, namespace, "claimed") == ["second"]
    expect_reason(cluster, namespace, "nowhere", "Unschedulable")
    assert "node affinity" in ready(cluster, namespace, PLAYGROUNDS, "nowhere")["message"]


def placed(cluster: ControlPlane, namespace: str, name: str) -> list[str]:
    """Return the nodes of a Playground's pods."""
    pods = cluster.get("pods", "-n", namespace, "-l", f"llmaz.io/inference-service={name}")["items"]
    return [pod["spec"].get("nodeName", "") for pod in pods]


def test_params_of_flavors(cluster: ControlPlane, namespace: str) -> None:
    """Four GPUs set the shipped engine's tensor-parallel size; user arguments win, and one GPU changes nothing."""
    flavors = [{"name": str(count), "limits": {"nvidia.com/gpu": count}} for count in (4, 1)]
    flavors[0]["params"] = {"STAGES": "7"}
    apply(cluster, namespace, model("split", inferenceConfig={"flavors": flavors}))
    claim = {"modelName": "split", "inferenceFlavors": ["1"]}
    apply(
        cluster,
        namespace,
        playground("four", "split"),
        playground("told", "split", backendRuntimeConfig={"args": ["-tp", "2"]}),
        playground("one", "split", modelClaim=claim),
    )
    wait_ready(cluster, namespace, *(f"{PLAYGROUNDS}/{name}" for name in ("four", "told", "one")))
    alone = arguments(cluster, namespace, "one")
    assert "--tensor-parallel-size" not in alone
    assert arguments(cluster, namespace, "four") == [*alone, "--tensor-parallel-size", "4"]
    assert arguments(cluster, namespace, "told") == [*alone, "-tp", "2"]
    engine: dict[str, Any] = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": f"staged-{namespace}"},
        "spec": {
            "image": "registry.example.com/staged",
            "version": "1",
            "envs": [{"name": "STAGES", "value": "{{ .STAGES }}"}],
            "recommendedConfigs": [{"name": "default", "args": ["--stages={{ .STAGES }}"]}],
        },
    }
    config = {"backendName": engine["metadata"]["name"]}
    apply(cluster, namespace, engine, playground("staged", "split", backendRuntimeConfig=config))
    try:
        wait_ready(cluster, namespace, f"{PLAYGROUNDS}/staged")
        assert arguments(cluster, namespace, "staged") == ["--stages=7"]
        container = cluster.get("deployment", "staged", "-n", namespace)["spec"]["template"]["spec"]["containers"][0]
        assert container["env"] == [{"name": "STAGES", "value": "7"}]
    finally:
        cluster.kubectl("delete", "backendruntime", engine["metadata"]["name"])


def arguments(cluster: ControlPlane, namespace: str, name: str) -> list[str]:
    template = cluster.get("deployment", name, "-n", namespace)["spec"]["template"]
    words: list[str] = template["spec"]["containers"][0]["args"]
    return words


SOURCES = {
    "image": ("oci://registry.example.com/models/qwen2:0.5b", "registry.example.com/models/qwen2:0.5b"),
    "bucket": ("s3://example-models/qwen2", "kserve/storage-initializer:v0.17.0"),
    "google": ("gs://example-models/qwen2", "kserve/storage-initializer:v0.17.0"),
    "aliyun": ("oss://models.oss.example.com/qwen2", "inftyai/model-loader:v0.0.10"),
}


def test_sources_of_models(cluster: ControlPlane, namespace: str) -> None:
    """Each source has a container that fetches the model to the path that the engine uses."""
    for name, (uri, _) in SOURCES.items():
        apply(cluster, namespace, model(name, source={"uri": uri}), playground(name, name))
    wait_ready(cluster, namespace, *(f"{PLAYGROUNDS}/{name}" for name in SOURCES))
    for name, (_, wanted) in SOURCES.items():
        pod = cluster.get("deployment", name, "-n", namespace)["spec"]["template"]["spec"]
        (loader,) = pod["initContainers"]
        assert loader["image"] == wanted
        assert "/workspace/models/models--qwen2" in arguments(cluster, namespace, name)
    apply(cluster, namespace, model("whole", source={"uri": "oci://qwen2:1#/"}), playground("whole", "whole"))
    expect_reason(cluster, namespace, "whole", "ModelNotLoadable")


def test_image_volumes(
    runtimes: Installation, cluster: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nodes can mount images, the pod has an image volume in place of a container, and the API server accepts it."""
    monkeypatch.setenv("MODELHOOKS_LLMAZ_IMAGE_VOLUMES", "true")
    runtimes.stop_service()
    runtimes.start_service()
    try:
        reference = "registry.example.com/models/qwen2:0.5b"
        apply(cluster, namespace, model("mounted", source={"uri": f"oci://{reference}#/w"}))
        apply(cluster, namespace, playground("mounted", "mounted"))
        wait_ready(cluster, namespace, f"{PLAYGROUNDS}/mounted")
        (pod,) = cluster.get("pods", "-n", namespace, "-l", "llmaz.io/inference-service=mounted")["items"]
        assert "initContainers" not in pod["spec"]
        volume = next(volume for volume in pod["spec"]["volumes"] if volume["name"] == "model-volume")
        assert volume["image"] == {"reference": reference, "pullPolicy": "IfNotPresent"}
        mounts = pod["spec"]["containers"][0]["volumeMounts"]
        mount = next(mount for mount in mounts if mount["name"] == "model-volume")
        place = {"mountPath": "/workspace/models/models--qwen2", "subPath": "w", "readOnly": True}
        assert {key: mount[key] for key in place} == place
        settle(cluster, namespace, WRITTEN, 5)
    finally:
        monkeypatch.undo()
        runtimes.stop_service()
        runtimes.start_service()


def test_a_model_deleted_while_in_use(cluster: ControlPlane, namespace: str) -> None:
    """No child is lost, and both users report the missing model; when it exists again, they recover."""
    apply(cluster, namespace, model("precious"), playground("kept", "precious"))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/kept")
    before = children(cluster, namespace)
    cluster.kubectl("delete", "openmodel", "precious")
    expect_reason(cluster, namespace, "kept", "ModelNotFound")
    reason = "ModelNotFound"
    wait_until(lambda: ready(cluster, namespace, SERVICES, "kept").get("reason") == reason, reason)
    assert children(cluster, namespace) == before
    apply(cluster, namespace, model("precious"))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/kept")
    assert revision(cluster, namespace, "kept") == "1"


def children(cluster: ControlPlane, namespace: str) -> list[tuple[str, str, str]]:
    items = cluster.get(f"{SERVICES},deployments,services", "-n", namespace)["items"]
    return sorted((item["apiVersion"], item["metadata"]["name"], item["metadata"]["uid"]) for item in items)


def test_scaling_by_the_scale_subresource(cluster: ControlPlane, namespace: str) -> None:
    """`kubectl scale` reaches the pods through both stages, and the selector finds them."""
    apply(cluster, namespace, model("scaled"), playground("scaled", "scaled"))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/scaled")
    cluster.kubectl("scale", f"{PLAYGROUNDS}/scaled", "--replicas=3", "-n", namespace)
    wait_until(lambda: replicas(cluster, namespace, "scaled") == 3, "three replicas")
    selector = cluster.get(PLAYGROUNDS, "scaled", "-n", namespace)["status"]["selector"]
    assert len(cluster.get("pods", "-n", namespace, "-l", selector)["items"]) == 3


def replicas(cluster: ControlPlane, namespace: str, name: str) -> int:
    return int(cluster.get(PLAYGROUNDS, name, "-n", namespace)["status"].get("replicas", 0))


def test_a_name_that_is_taken(cluster: ControlPlane, namespace: str) -> None:
    """Another user's Service is not changed, and the Playground reports the conflict."""
    worker = {"spec": {"containers": [{"name": "model-runner", "image": "registry.example.com/engine:1"}]}}
    foreign = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Service",
        "metadata": {"name": "taken"},
        "spec": {"modelClaims": {"models": [{"name": "taken"}]}, "workloadTemplate": {"workerTemplate": worker}},
    }
    apply(cluster, namespace, model("taken"), foreign)
    wait_ready(cluster, namespace, f"{SERVICES}/taken")
    apply(cluster, namespace, playground("taken", "taken"))
    expect_reason(cluster, namespace, "taken", "ServiceConflict")
    cluster.kubectl("delete", SERVICES, "taken", "-n", namespace)
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/taken")
    assert image(cluster, namespace, "taken").startswith("vllm/")


def test_taking_over_restarts_nothing(cluster: ControlPlane, namespace: str) -> None:
    """The Go operator's LeaderWorkerSet of a single-node service is kept; once deleted, a Deployment replaces it."""
    case = next(case for case in cases("llmaz") if case["name"] == "service-plain")
    objects = {item["kind"]: item for item in case["objects"]}
    (group,) = [child for child in case["expect"]["children"] if child["kind"] == "LeaderWorkerSet"]
    service = {**objects["Service"], "metadata": {"name": "demo", "namespace": namespace}}
    apply(cluster, namespace, service)
    uid = cluster.get(SERVICES, "demo", "-n", namespace)["metadata"]["uid"]
    (owner,) = group["metadata"]["ownerReferences"]
    metadata = {"name": "demo", "labels": {"controller-uid": uid}, "ownerReferences": [{**owner, "uid": uid}]}
    created = {**group, "metadata": metadata}
    cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(created))
    with global_config(cluster, objects["ConfigMap"]):
        apply(cluster, namespace, {**objects["OpenModel"], "metadata": {"name": "opt-125m"}})
        # The status is written after the children.
        reason = "WaitingForController"
        wait_until(lambda: ready(cluster, namespace, SERVICES, "demo").get("reason") == reason, reason)
        assert exists(cluster, namespace, "services", "demo-lb")
        taken = cluster.get(SETS, "demo", "-n", namespace)
        assert taken["metadata"]["generation"] == 1
        assert taken["spec"]["startupPolicy"] == "LeaderReady"
        assert not exists(cluster, namespace, "deployment", "demo")
        cluster.kubectl("delete", SETS, "demo", "-n", namespace)
        wait_ready(cluster, namespace, f"{SERVICES}/demo")
        assert exists(cluster, namespace, "deployment", "demo")


@contextlib.contextmanager
def global_config(cluster: ControlPlane, config: dict[str, Any]) -> Iterator[None]:
    """Create the family's ConfigMap while the test runs."""
    space = config["metadata"]["namespace"]
    cluster.kubectl("create", "namespace", space)
    metadata = {"name": config["metadata"]["name"], "namespace": space}
    cluster.kubectl("apply", "-f", "-", input=json.dumps({**config, "metadata": metadata}))
    yield
    cluster.kubectl("delete", "namespace", space)
