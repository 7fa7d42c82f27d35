"""The commands of docs/migration.md, run unchanged on objects such as the Go operators leave behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation, settle
from tests.e2e.takeover import kserves_crd

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs" / "migration.md"
NAMESPACE = "models"
TIME = "2026-01-01T00:00:00Z"
KSERVE = ("llminferenceservices", "llminferenceserviceconfigs")
PARENTS = (
    "inferenceservices.inference.llmkube.dev/smollm-chat",
    "playgrounds.inference.llmaz.io/opt-tiny",
    "llminferenceservices.serving.kserve.io/tiny-chat",
)
LEFT = (
    "inferenceservices.inference.llmkube.dev,models.inference.llmkube.dev,playgrounds.inference.llmaz.io,"
    "services.inference.llmaz.io,llminferenceservices.serving.kserve.io,services,deployments,replicasets,pods,jobs,"
    "persistentvolumeclaims"
)
"""Kinds whose objects the way back must not change."""
OPERATORS = {
    "llmkube-system": "llmkube-controller-manager",
    "llmaz-system": "llmaz-controller-manager",
    "kserve": "llmisvc-controller-manager",
}
"""Namespaces and names of the Go operators' Deployments."""
_MUTATING, _VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
_CHART = {"app.kubernetes.io/name": "llmkube"}
WEBHOOKS: dict[str, list[tuple[str, str, dict[str, str]]]] = {
    "LLMKube": [(_MUTATING, "release-mutating", _CHART), (_VALIDATING, "release-validating", _CHART)],
    "llmaz": [
        (_MUTATING, "llmaz-mutating-webhook-configuration", {}),
        (_VALIDATING, "llmaz-validating-webhook-configuration", {}),
    ],
    "KServe": [
        (_MUTATING, "llminferenceservice.serving.kserve.io", {}),
        (_VALIDATING, "llminferenceservice.serving.kserve.io", {}),
        (_VALIDATING, "llminferenceserviceconfig.serving.kserve.io", {}),
    ],
}
"""Kind, name and labels of the webhook configurations of today's Go operators."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane without controllers, so that only the page's commands change objects."""
    workdir = tmp_path_factory.mktemp("migration")
    with ControlPlane(workdir, controllers=False, scheduler=False, kwok=False) as cluster:
        files = binaries.optional_crds("leaderworkersets", "httproutes", "inferencepools")
        kinds = {
            "inference.llmkube.dev": ["InferenceService"],
            "inference.llmaz.io": ["Playground", "Service"],
            "serving.kserve.io": ["LLMInferenceService"],
        }
        for group, names in kinds.items():
            for name in names:
                files.append(workdir / f"{name}.{group}.yaml")
                files[-1].write_text(yaml.safe_dump(_crd(group, name)))
        cluster.install_crds(*files)
        cluster.kubectl("create", "namespace", NAMESPACE)
        yield cluster


def test_llmkubes_children_get_their_parents_uid(cluster: ControlPlane) -> None:
    parent = _create(cluster, "inference.llmkube.dev/v1alpha1", "InferenceService", "chat")
    for child in (_deployment("chat"), _service("chat"), _autoscaler("chat")):
        _create_child(cluster, child, parent)
    _apply(cluster, _service("somebody-elses"))

    _run_printed(cluster, _commands("LLMKube", "kubectl get deployments,services"))

    for kind in ("deployment", "service", "horizontalpodautoscaler"):
        assert _labels(cluster, f"{kind}/chat")["controller-uid"] == parent["metadata"]["uid"]
    assert "controller-uid" not in _labels(cluster, "service/somebody-elses")
    listed = cluster.kubectl(*_arguments(_commands("Afterwards", "kubectl get deployments")), "-o", "name").stdout
    assert listed.split() == ["deployment.apps/chat", "service/chat", "horizontalpodautoscaler.autoscaling/chat"]


def test_llmazs_children_get_their_parents_uid(cluster: ControlPlane) -> None:
    playground = _create(cluster, "inference.llmaz.io/v1alpha1", "Playground", "qwen")
    service = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Service", "metadata": {"name": "qwen"}}
    inference = _create_child(cluster, service, playground)
    _create_child(cluster, _autoscaler("qwen"), playground)
    _create_child(cluster, _service("qwen-lb"), inference)
    _create_child(cluster, _leaderworkerset("qwen"), inference)

    _run_printed(cluster, _commands("llmaz", "kubectl get services.inference.llmaz.io"))

    uid, service_uid = playground["metadata"]["uid"], inference["metadata"]["uid"]
    assert _labels(cluster, "services.inference.llmaz.io/qwen")["controller-uid"] == uid
    assert _labels(cluster, "hpa/qwen")["controller-uid"] == uid
    assert _labels(cluster, "service/qwen-lb")["controller-uid"] == service_uid
    assert _labels(cluster, "leaderworkerset/qwen")["controller-uid"] == service_uid


def test_kserves_children_get_their_parents_uid_and_keep_their_owner(cluster: ControlPlane) -> None:
    parent = _create(cluster, "serving.kserve.io/v1alpha2", "LLMInferenceService", "llama")
    finalizer = {"metadata": {"finalizers": ["serving.kserve.io/llmisvc-finalizer"]}}
    cluster.kubectl("patch", "llmisvc/llama", "-n", NAMESPACE, "--type=merge", "-p", json.dumps(finalizer))
    child = _deployment("llama-kserve")
    _create_child(cluster, child, parent)

    printing = [c for c in _commands("KServe") if "printf" in c]
    _run_printed(cluster, printing)

    assert "finalizers" not in cluster.get("llmisvc/llama", "-n", NAMESPACE)["metadata"]
    metadata = cluster.get("deployment/llama-kserve", "-n", NAMESPACE)["metadata"]
    assert [owner["apiVersion"] for owner in metadata["ownerReferences"]] == ["serving.kserve.io/v1alpha2"]
    assert metadata["labels"]["controller-uid"] == parent["metadata"]["uid"]


@pytest.mark.parametrize("family", WEBHOOKS)
def test_the_webhooks_of_the_go_operator_go(cluster: ControlPlane, family: str) -> None:
    """They fail closed: with the operator stopped, each that is left would refuse every write."""
    for kind, name, labels in WEBHOOKS[family]:
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
        cluster.kubectl("apply", "-f", "-", input=json.dumps({**head, "metadata": {"name": name, "labels": labels}}))

    for command in _commands(family, "kubectl delete "):
        cluster.shell(command)

    kinds = ",".join({kind for kind, *_ in WEBHOOKS[family]})
    assert cluster.kubectl("get", kinds, "--output=name").stdout == ""


def test_the_way_back_leaves_everything_as_it_is(bare_installation: Installation) -> None:
    """After the page's commands children keep their owners and pods, and resources can be written."""
    cluster = bare_installation.cluster
    namespace = cluster.create_namespace()
    for file in ("llmkube/quickstart", "llmaz/quickstart", "kserve/quickstart"):
        cluster.kubectl("apply", "-n", namespace, "-f", str(ROOT / "examples" / f"{file}.yaml"))
    cluster.kubectl("apply", "-k", str(ROOT / "manifests/llmaz-runtimes"))
    for parent in PARENTS:
        cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", parent, TIMEOUT)
    settle(cluster, namespace, LEFT, 2)
    before = _left(cluster, namespace)
    assert len({name.partition("/")[0] for name in before}) == len(LEFT.split(",")) - 1  # two kinds are called Service
    for group, operator in OPERATORS.items():
        cluster.kubectl("create", "namespace", group)
        cluster.kubectl("create", "deployment", operator, "-n", group, "--image=operator", "--replicas=0")
    (bare_installation.workdir / "kserve-crds.yaml").write_text(yaml.safe_dump_all(map(kserves_crd, KSERVE)))
    commands = _commands("Roll back to the Go operator")

    for command in commands[:2]:
        cluster.shell(command)
    bare_installation.stop_service()
    cluster.shell(f"cd {bare_installation.workdir}\n" + "\n".join(c for c in commands[2:] if "printf" not in c))

    settle(cluster, namespace, LEFT, 5)
    assert _left(cluster, namespace) == before
    assert all(
        cluster.get("deployment", name, "-n", group)["spec"]["replicas"] == 1 for group, name in OPERATORS.items()
    )
    for parent in PARENTS:
        cluster.kubectl("annotate", "-n", namespace, parent, "example.com/written=true")
    definition = cluster.get("crd", f"{KSERVE[0]}.serving.kserve.io")["spec"]["conversion"]
    assert definition["webhook"]["clientConfig"]["service"]["name"] == "llmisvc-webhook-server-service"


def test_llmazs_deployments_give_way_to_its_leaderworkersets(cluster: ControlPlane) -> None:
    """The commands that the page prints; the Go operator has made the LeaderWorkerSet beside the Deployment."""
    parent = _create(cluster, "inference.llmaz.io/v1alpha1", "Service", "new")
    _create_child(cluster, _deployment("new"), parent)
    selector = {"llmaz.io/inference-service": "new"}
    service = _service("new-lb")
    _create_child(cluster, service | {"spec": service["spec"] | {"selector": selector}}, parent)
    _create_child(cluster, _leaderworkerset("new"), parent)
    condition = {"type": "Available", "status": "True", "reason": "R", "message": "", "lastTransitionTime": TIME}
    status = json.dumps({"status": {"conditions": [condition]}})
    patch = ("--subresource=status", "--type=merge", "-p", status)
    cluster.kubectl("patch", "leaderworkersets/new", "-n", NAMESPACE, *patch)

    _run_printed(cluster, _commands("Roll back to the Go operator", "kubectl get deployments"))

    assert cluster.get("service/new-lb", "-n", NAMESPACE)["spec"]["selector"] == {
        "leaderworkerset.sigs.k8s.io/name": "new",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }
    assert cluster.kubectl("get", "deployments/new", "-n", NAMESPACE, check=False).returncode != 0


def _left(cluster: ControlPlane, namespace: str) -> dict[str, Json]:
    """Return spec and owners of everything that must not change, by kind, name and uid."""
    return {
        f"{item['kind']}/{item['metadata']['name']}@{item['metadata']['uid']}": {
            "owners": item["metadata"].get("ownerReferences", []),
            "spec": item.get("spec"),
        }
        for item in cluster.get(LEFT, "-n", namespace)["items"]
    }


# Commands of the page


def _commands(section: str, *starts: str) -> list[str]:
    """Return the commands of a section that begin with one of `starts`, without comments."""
    text = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    body = next(part for part in text if part.startswith(section))
    blocks = re.findall(r"^```sh\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
    all_commands = [
        c.strip()
        for block in blocks
        for c in re.split(r"^(?=kubectl )", re.sub(r"^#.*\n", "", block, flags=re.MULTILINE), flags=re.MULTILINE)
    ]
    wanted = [command for command in all_commands if command.startswith(starts or "kubectl")]
    assert wanted, f"{section} has no command {starts}"
    return wanted


def _arguments(commands: list[str]) -> list[str]:
    (command,) = commands
    return command.split()[1:]


def _run_printed(cluster: ControlPlane, commands: list[str]) -> None:
    """Run commands as documented, and then the commands that they print."""
    for command in commands:
        printed = cluster.shell(command)
        assert printed.strip(), f"nothing printed by\n{command}"
        cluster.shell(printed)


# Objects


def _crd(group: str, kind: str) -> Json:
    plural = f"{kind.lower()}s"
    names: dict[str, object] = {"kind": kind, "plural": plural, "singular": kind.lower()}
    versions = ["v1alpha1"]
    if group == "serving.kserve.io":
        names["shortNames"] = ["llmisvc"]
        versions = ["v1alpha1", "v1alpha2"]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [
                {"name": name, "served": True, "storage": name == versions[-1], "schema": schema} for name in versions
            ],
        },
    }


def _create(cluster: ControlPlane, api_version: str, kind: str, name: str) -> Json:
    return _apply(cluster, {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})


def _create_child(cluster: ControlPlane, child: Json, parent: Json) -> Json:
    owner = {key: parent[key] for key in ("apiVersion", "kind")} | {
        "name": parent["metadata"]["name"],
        "uid": parent["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return _apply(cluster, child | {"metadata": child["metadata"] | {"ownerReferences": [owner]}})


def _apply(cluster: ControlPlane, manifest: Json) -> Json:
    done = cluster.kubectl("create", "-n", NAMESPACE, "-o", "json", "-f", "-", input=json.dumps(manifest))
    answer: Json = json.loads(done.stdout)
    return answer


def _labels(cluster: ControlPlane, name: str) -> dict[str, str]:
    labels: dict[str, str] = cluster.get(name, "-n", NAMESPACE)["metadata"].get("labels", {})
    return labels


def _template() -> Json:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}


def _deployment(name: str) -> Json:
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": _template()}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _service(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}


def _autoscaler(name: str) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "maxReplicas": 2}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec}


def _leaderworkerset(name: str) -> Json:
    spec = {"leaderWorkerTemplate": {"workerTemplate": _template()}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": spec,
    }
