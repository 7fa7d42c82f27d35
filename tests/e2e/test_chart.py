"""The Helm chart: its objects equal those of kustomize, and its commands work on a real control plane."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.families import RESOURCES
from app.installation import crd_name
from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.conftest import optional_components
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import COMPONENTS, QUICKSTART, ROOT, SYSTEM, Installation
from tests.e2e.processes import wait_until
from tests.repository.test_readme import commands
from tools.chart import LLMAZ_VALUES
from tools.generate import package_version

pytestmark = pytest.mark.e2e

Objects = dict[tuple[str, str, str], Json]

CHART = ROOT / "manifests" / "chart"
OVERLAYS = ROOT / "manifests" / "overlays"
DOCUMENTED = list(commands(ROOT / "docs/install.md"))
INSTALL, TAKE_OVER, UPGRADE, ROLL_BACK, GO_BACK, REMOVE = (
    command for command in DOCUMENTED if command.startswith("helm ")
)
REMOVE_ROLE = DOCUMENTED[DOCUMENTED.index(REMOVE) + 1]
VERSION, NEXT = package_version(), "99.0.0"
FAMILIES = list(dict.fromkeys(resource.family for resource in RESOURCES))
KEEP = {"helm.sh/resource-policy": "keep"}


def run(*command: str | Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    environment = os.environ | (environment or {})
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def by_name(text: str) -> Objects:
    documents = (document for document in yaml.load_all(text, yaml.CSafeLoader) if document)
    return {
        (document["kind"], document["metadata"].get("namespace", ""), document["metadata"]["name"]): document
        for document in documents
    }


def kustomized(folder: Path) -> Objects:
    """Return the objects of kustomize, without the Namespace, which Helm users create beforehand."""
    done = run(binaries.program("kubectl"), "kustomize", folder)
    assert done.returncode == 0, done.stderr
    return {name: manifest for name, manifest in by_name(done.stdout).items() if manifest["kind"] != "Namespace"}


def template(*options: str, namespace: str = SYSTEM) -> subprocess.CompletedProcess[str]:
    return run(binaries.tool("helm"), "template", "modelhooks", CHART, "--namespace", namespace, *options)


def rendered(*options: str, namespace: str = SYSTEM) -> Objects:
    """Return the objects of Helm, without the annotations and the suffix of the Job's name from decision 18."""
    done = template(*options, namespace=namespace)
    assert done.returncode == 0, done.stderr
    objects: Objects = {}
    for (kind, where, name), manifest in by_name(done.stdout).items():
        metadata = manifest["metadata"]
        annotations = metadata.get("annotations", {})
        if kept(kind, name):
            assert annotations.items() >= KEEP.items()
            metadata["annotations"] = {key: value for key, value in annotations.items() if key not in KEEP}
            if not metadata["annotations"]:
                del metadata["annotations"]
        if kind == "Job":
            metadata["name"] = re.sub("-[0-9a-f]{8}$", "", name)
        objects[kind, where, metadata["name"]] = manifest
    return objects


def kept(kind: str, name: str) -> bool:
    return kind == "CustomResourceDefinition" or (kind == "PriorityClass" and name.startswith("llmkube-"))


def overlay(folder: Path, resources: list[Path], components: list[str]) -> Path:
    folder.mkdir()
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(path, folder) for path in resources],
        "components": [os.path.relpath(COMPONENTS / name, folder) for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return folder


# Rendering


def test_the_default_is_quickstart() -> None:
    assert rendered() == kustomized(QUICKSTART)


def test_cert_manager_is_the_overlay_of_that_name() -> None:
    assert rendered("--set", "certificates=cert-manager") == kustomized(OVERLAYS / "cert-manager")


def test_monitoring_is_added() -> None:
    assert rendered("--set", "monitoring.enabled=true") == {
        **kustomized(QUICKSTART),
        **kustomized(OVERLAYS / "monitoring"),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_alone_is_the_overlay_of_that_name(family: str) -> None:
    assert rendered("--set", f"families={{{family}}}") == kustomized(OVERLAYS / family)


@pytest.mark.parametrize("name", LLMAZ_VALUES)
def test_a_value_of_llmazs_own_chart_names_the_component(name: str) -> None:
    """The error for a value of llmaz' chart names the component to use instead."""
    done = template("--set", f"{name}.enabled=true")
    assert done.returncode != 0
    assert f"{name} is a value of llmaz' own chart: {LLMAZ_VALUES[name]}" in done.stderr


def test_components_are_added(tmp_path: Path) -> None:
    """All components can be used together; they are independent of each other."""
    together = optional_components()
    expected = kustomized(overlay(tmp_path / "all", [QUICKSTART], together))
    assert rendered("--set", f"components={{{','.join(together)}}}") == expected


@pytest.mark.parametrize("component", optional_components())
def test_a_component_is_added_alone(tmp_path: Path, component: str) -> None:
    expected = kustomized(overlay(tmp_path / "one", [ROOT / "metacontroller"], [component]))
    manifests = rendered("--set", f"components={{{component}}}", "--set", "crds.enabled=false")
    assert {name: manifests[name] for name in expected} == expected
    assert manifests.keys() - expected.keys() == rendered("--set", "crds.enabled=false").keys() - expected.keys()


def test_decorators_trust_cert_managers_ca() -> None:
    """The endpoint configuration is also in DecoratorControllers, which components add later."""
    manifests = rendered("--set", "certificates=cert-manager", "--set", "components={llmaz-labels}")
    composite = manifests["CompositeController", "", "llmaz-services"]["spec"]
    assert (
        manifests["DecoratorController", "", "llmaz-labels"]["spec"]["endpointConfigs"] == composite["endpointConfigs"]
    )


def test_another_namespace_is_everywhere() -> None:
    """The certificates' command gets the namespace, too."""
    text = template(namespace="elsewhere").stdout
    assert SYSTEM not in text
    manifests = rendered(namespace="elsewhere")
    (container,) = manifests["Job", "elsewhere", "modelhooks-certs"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["certs", "--apply", "--namespace", "elsewhere"]
    url = manifests["CompositeController", "", "llmaz-services"]["spec"]["hooks"]["sync"]["webhook"]["url"]
    assert url.startswith("https://modelhooks.elsewhere:443/")


VALUES = """
image: {repository: registry.example/modelhooks, digest: "sha256:%s", pullPolicy: Always, pullSecrets: [{name: r}]}
replicas: 3
resources: {limits: {memory: 1Gi}}
nodeSelector: {a: b}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
podLabels: {c: d}
podAnnotations: {e: f}
settings: {MODELHOOKS_WATCH_PODS: false, MODELHOOKS_MAX_SYNC_BYTES: 16777216, MODELHOOKS_LLMAZ_GATEWAY: a/b}
priorityClasses: {enabled: false}
metacontroller: {namespace: mc, serviceAccount: controller}
admission: {failurePolicy: Ignore}
networkPolicy: {from: [{ipBlock: {cidr: 10.0.0.1/32}}]}
""" % ("0" * 64)


def test_each_value_arrives(tmp_path: Path) -> None:
    """Every value has its effect and changes nothing else."""
    (tmp_path / "values.yaml").write_text(VALUES)
    manifests, default = rendered("--values", str(tmp_path / "values.yaml")), rendered()
    settings = manifests.pop(("ConfigMap", SYSTEM, "modelhooks"))
    assert settings["data"] == {
        "MODELHOOKS_WATCH_PODS": "false",
        "MODELHOOKS_MAX_SYNC_BYTES": "16777216",
        "MODELHOOKS_LLMAZ_GATEWAY": "a/b",
    }
    for name in [name for name in default if name[0] == "PriorityClass" and name[2] != "modelhooks"]:
        del default[name]
    deployment = default["Deployment", SYSTEM, "modelhooks"]["spec"]
    deployment["replicas"] = 3
    deployment["template"]["spec"]["containers"][0]["resources"]["limits"] = {"memory": "1Gi"}
    checksums = set()
    for kind in ("Deployment", "Job", "CronJob"):
        name = (kind, SYSTEM, "modelhooks" if kind == "Deployment" else "modelhooks-certs")
        pod = pod_template(default[name])
        pod["metadata"]["labels"]["c"] = "d"
        annotations = pod_template(manifests[name])["metadata"]["annotations"]
        checksums.add(annotations.pop("checksum/settings"))
        pod["metadata"]["annotations"] = {"e": "f"}
        image = f"registry.example/modelhooks@sha256:{'0' * 64}"
        pod["spec"]["containers"][0] |= {"image": image, "imagePullPolicy": "Always"}
        pod["spec"] |= {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}
        pod["spec"] |= {"affinity": {"nodeAffinity": {}}, "imagePullSecrets": [{"name": "r"}]}
    assert len(checksums) == 1
    default["ClusterRoleBinding", "", "modelhooks-metacontroller"]["subjects"] = [
        {"kind": "ServiceAccount", "name": "controller", "namespace": "mc"}
    ]
    for webhook in default["ValidatingWebhookConfiguration", "", "modelhooks"]["webhooks"]:
        webhook["failurePolicy"] = "Ignore"
    policy = default["NetworkPolicy", SYSTEM, "modelhooks"]["spec"]
    policy["ingress"] = [{**policy["ingress"][0], "from": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}]
    assert manifests == default


def test_pods_are_shut_out_of_the_service_where_their_networks_are_known() -> None:
    """Only Metacontroller and kube-system, where agents of managed API servers run, keep access."""
    networks = ["10.42.0.0/16", "10.244.0.0/16", "fd42::/48"]
    policy = rendered("--set", f"networkPolicy.podCIDRs={{{','.join(networks)}}}")[
        "NetworkPolicy", SYSTEM, "modelhooks"
    ]
    metacontroller, api_servers = (rule["from"] for rule in policy["spec"]["ingress"])
    assert metacontroller == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "metacontroller"}}}]
    assert api_servers == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": networks[:2]}},
        {"ipBlock": {"cidr": "::/0", "except": networks[2:]}},
    ]


def pod_template(workload: Json) -> Json:
    spec = workload["spec"]
    template: Json = (spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec)["template"]
    return template


def test_no_value_is_untested() -> None:
    tested = {*yaml.safe_load(VALUES), "certificates", "crds", "monitoring", "components", "families"}
    assert set(yaml.safe_load((CHART / "values.yaml").read_text())) == tested


@pytest.mark.parametrize(
    "wrong",
    [
        "replicas=many",
        "replica=3",
        "components={kedda}",
        "certificates=none",
        "settings.MODELHOOKS_WATCH_POD=false",
        "settings.MODELHOOKS_LOG_FORMAT=xml",
        "settings.MODELHOOKS_PORT=80",
        "image.digest=sha256:abc",
    ],
)
def test_a_wrong_value_is_refused_by_its_name(wrong: str) -> None:
    done = template("--set", wrong)
    assert done.returncode != 0
    assert "don't meet the specifications of the schema" in done.stderr
    assert wrong.partition("=")[0].rpartition(".")[2] in done.stderr


def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    done = run(binaries.tool("helm"), "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


# Installation


class Release(Installation):
    """modelhooks installed by Helm with the commands of docs/install.md."""

    def helm(self, documented: str, *more: str, chart: Path = CHART) -> None:
        """Run a documented command; only addresses are replaced."""
        words = [str(chart) if word == "manifests/chart" else word for word in shlex.split(documented)[1:]]
        renderer = ("--post-renderer", "addresses") if str(chart) in words else ()
        self.run(*words, *renderer, *more)

    def remove(self) -> None:
        """Uninstall the release as documented."""
        self.helm(REMOVE)
        self.cluster.kubectl(*shlex.split(REMOVE_ROLE)[1:])
        wait_until(lambda: ours(self.cluster) == [], "the end of what the release made")

    def run(self, *words: str | Path) -> str:
        environment = {
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "HELM_PLUGINS": str(ROOT / "tests" / "e2e" / "helm-plugins"),
            "HELM_TEST_PYTHON": sys.executable,
            "HELM_TEST_URL": self.url,
            **{f"HELM_{kind}_HOME": str(self.workdir / "helm") for kind in ("CACHE", "CONFIG", "DATA")},
        }
        done = run(binaries.tool("helm"), *words, environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _apply(self) -> None:
        self.helm(INSTALL)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    workdir = tmp_path_factory.mktemp("chart")
    with ControlPlane(workdir / "control-plane") as cluster:
        cluster.install_crds(*binaries.optional_crds("servicemonitors", "prometheusrules"))
        with Release(cluster, workdir / "installation") as installed:
            cluster.kubectl("apply", "-f", ROOT / "examples/llmkube/quickstart.yaml")
            ready(cluster)
            yield installed


def ready(cluster: ControlPlane, namespace: str = "default") -> None:
    for kind in ("models", "inferenceservices.inference.llmkube.dev"):
        cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", kind, "--all", TIMEOUT)


def users(cluster: ControlPlane) -> set[tuple[str, str, str, int]]:
    """Return every object in the user's namespace, with its uid and its generation."""
    kinds = "models,inferenceservices.inference.llmkube.dev,deployments,replicasets,services,jobs,pvc,pods"
    items = cluster.get(kinds, "-n", "default")["items"]
    return {
        (item["kind"], item["metadata"]["name"], item["metadata"]["uid"], item["metadata"].get("generation", 0))
        for item in items
    }


def served(cluster: ControlPlane) -> None:
    """Check admission (failurePolicy Fail) and hooks: an invalid object is refused, and a new one becomes ready."""
    wrong = ("apply", "--dry-run=server", "-f", ROOT / "examples/llmkube/rejected/source.yaml")
    said = "the path is required"
    wait_until(lambda: said in cluster.kubectl(*wrong, check=False).stderr, "the API server asks the webhooks")
    cluster.kubectl("apply", "-n", "probe", "-f", ROOT / "examples/llmkube/quickstart.yaml")
    ready(cluster, "probe")
    cluster.kubectl("delete", "-n", "probe", "-f", ROOT / "examples/llmkube/quickstart.yaml")


def next_release(release: Release) -> Path:
    """Return the packaged chart of a next release, with other hook addresses and a new field in a CRD."""
    release.run("package", CHART, "--destination", release.workdir)
    with tarfile.open(release.workdir / f"modelhooks-{VERSION}.tgz") as package:
        package.extractall(release.workdir / "next", filter="data")
    chart = release.workdir / "next" / "modelhooks"
    for file in (chart / "Chart.yaml", *(chart / "files" / "metacontroller").glob("*.yaml")):
        file.write_text(file.read_text().replace(VERSION, NEXT))
    crd = chart / "files" / "crds" / "models.inference.llmkube.dev.yaml"
    source = "              source:\n"
    assert crd.read_text().count(source) == 1
    crd.write_text(crd.read_text().replace(source, f"              newer: {{type: string}}\n{source}"))
    return chart


def state(cluster: ControlPlane) -> tuple[str, bool]:
    """Return the release in the hooks' addresses, and whether its CRD is installed."""
    controller = cluster.get("compositecontroller", "llmkube-models")["spec"]
    versions = cluster.get("crd", "models.inference.llmkube.dev")["spec"]["versions"]
    fields = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return controller["hooks"]["sync"]["webhook"]["url"].partition("rev=")[2], "newer" in fields


def ours(cluster: ControlPlane) -> list[str]:
    """Return the objects that a release created and would delete. Its Job is deleted five minutes after its end."""
    kinds = (
        "compositecontrollers,validatingwebhookconfigurations,clusterroles,clusterrolebindings,"
        "deployments,services,cronjobs,configmaps,serviceaccounts,networkpolicies,poddisruptionbudgets,secrets"
    )
    label = "app.kubernetes.io/part-of=modelhooks,app.kubernetes.io/managed-by=Helm"
    return sorted(cluster.kubectl("get", kinds, "-A", "-l", label, "-o", "name").stdout.split())


def test_installed_upgraded_rolled_back_removed_and_installed_again(release: Release) -> None:
    """A user's objects and pods are the same throughout."""
    cluster = release.cluster
    cluster.create_namespace("probe")
    cluster.kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted")
    before, installed = users(cluster), ours(cluster)
    assert {kind for kind, *_ in before} >= {"Model", "InferenceService", "Deployment", "Pod"}
    assert state(cluster) == (VERSION, False)
    served(cluster)

    newer = next_release(release)
    release.helm(UPGRADE, "--set", "replicas=3", "--set", "monitoring.enabled=true", chart=newer)
    assert len(cluster.get("servicemonitors,prometheusrules", "-n", SYSTEM)["items"]) == 2
    assert state(cluster) == (NEXT, True)
    assert cluster.get("deployment", "modelhooks", "-n", SYSTEM)["spec"]["replicas"] == 3
    served(cluster)

    release.helm(ROLL_BACK)
    assert state(cluster) == (VERSION, False)
    assert cluster.get("deployment", "modelhooks", "-n", SYSTEM)["spec"]["replicas"] == 2
    served(cluster)

    release.helm(UPGRADE, "--set", "image.tag=other", chart=newer)
    release.helm(GO_BACK)
    assert state(cluster) == (VERSION, True)
    served(cluster)
    assert users(cluster) == before

    release.remove()
    remaining = cluster.kubectl("get", "crds,priorityclasses", "-o", "name").stdout
    assert all(crd_name(resource) in remaining for resource in RESOURCES)
    assert remaining.count("priorityclass.scheduling.k8s.io/llmkube-") == 5
    assert users(cluster) == before

    release.helm(INSTALL)
    release._make_certificates()
    assert ours(cluster) == installed
    release.stop_service()
    release.start_service()
    served(cluster)
    ready(cluster)
    assert users(cluster) == before


def test_what_kustomize_installed_is_taken_over(release: Release) -> None:
    cluster = release.cluster
    before = users(cluster)
    release.remove()
    Installation._apply(release)
    release._make_certificates()
    assert ours(cluster) == []
    release.helm(TAKE_OVER)
    assert ours(cluster)
    release.stop_service()
    release.start_service()
    wait_until(lambda: users(cluster) == before, "the same objects")
    ready(cluster)
