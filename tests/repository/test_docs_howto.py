"""What manifests of how-to pages lead to is what the pages say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app import cli
from app.kube.base import Json
from app.workload.engines.grammar import RELEASES
from tests.repository.test_readme import ROOT

HOWTO = ROOT / "docs" / "howto"


def manifests(page: str, text: str) -> list[str]:
    """Return the blocks of a page that contain ``text``."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (HOWTO / page).read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if text in block]


def pods(documents: list[Json]) -> Iterator[Json]:
    for document in documents:
        if document["kind"] in ("Deployment", "Job"):
            yield document["spec"]["template"]["spec"]
        elif document["kind"] == "LeaderWorkerSet":
            template = document["spec"]["leaderWorkerTemplate"]
            yield from (template[part]["spec"] for part in ("leaderTemplate", "workerTemplate") if part in template)


def containers(pod: Json) -> list[Json]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


@pytest.fixture
def rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Renderer:
    return Renderer(tmp_path / "manifest.yaml", capsys)


class Renderer:
    """Prints the children of a manifest, as ``modelhooks render`` does, with objects of the examples at hand."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._path, self._capsys = path, capsys

    def __call__(self, manifest: str, *examples: str) -> list[Json]:
        self._path.write_text(manifest)
        related = [word for name in examples for word in ("--with", str(ROOT / "examples" / name))]
        assert cli.main(["render", str(self._path), *related]) == 0, self._capsys.readouterr().err
        return [child for child in yaml.load_all(self._capsys.readouterr().out, yaml.CSafeLoader) if child]

    def validate(self) -> str:
        """Return the findings about the manifest that was rendered last."""
        cli.main(["validate", str(self._path)])
        return self._capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "examples", "downloads"),
    [
        ("InferenceService", ["llmkube/vllm.yaml"], {"vllm"}),
        ("Playground", ["llmaz/elastic.yaml"], {"model-loader", "model-runner"}),
        ("LLMInferenceService", [], {"storage-initializer"}),
    ],
)
def test_a_mirror_of_the_hub_reaches_what_downloads(
    kind: str, examples: list[str], downloads: set[str], rendered: Renderer
) -> None:
    """``docs/howto/sources.md`` names the container of each family."""
    (manifest,) = (block for block in manifests("sources.md", "HF_ENDPOINT") if f"kind: {kind}\n" in block)
    (pod,) = pods([child for child in rendered(manifest, *examples) if "mirrored" in child["metadata"]["name"]])
    mirrored = {c["name"] for c in containers(pod) if any(e["name"] == "HF_ENDPOINT" for e in c.get("env", ()))}
    assert mirrored == downloads


def resources(*, namespaced: bool) -> set[tuple[str, str]]:
    """Return group and name of all resources, with the subresource ``scale``."""
    crds = (yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted((ROOT / "crds").glob("*.*.yaml")))
    names = set()
    for spec in (crd["spec"] for crd in crds if (crd["spec"]["scope"] == "Namespaced") is namespaced):
        scales = any("scale" in version.get("subresources", {}) for version in spec["versions"])
        plural = spec["names"]["plural"]
        names |= {(spec["group"], name) for name in (plural, *([f"{plural}/scale"] if scales else []))}
    return names


def test_the_roles_of_teams_cover_every_resource() -> None:
    """Each role has the kinds of its scope; a RoleBinding gives no right on kinds without a namespace."""
    (block,) = manifests("teams.md", "kind: ClusterRole")
    roles = {role["metadata"]["name"]: role["rules"] for role in yaml.safe_load_all(block)}
    covered = {
        name: {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
        for name, rules in roles.items()
    }
    in_namespaces = resources(namespaced=True)
    assert covered == {
        "models-edit": in_namespaces,
        "models-view": in_namespaces,
        "models-shared-view": resources(namespaced=False),
    }


def refusals(pod: Json) -> set[str]:
    """Return fields that Pod Security refuses in a namespace with the level ``restricted``."""
    context = pod.get("securityContext") or {}
    refused = {"hostPath" for volume in pod.get("volumes", ()) if "hostPath" in volume}
    for container in containers(pod):
        mine = container.get("securityContext") or {}
        capabilities = mine.get("capabilities") or {}
        secured = {
            "runAsNonRoot": mine.get("runAsNonRoot", context.get("runAsNonRoot")) is True,
            "allowPrivilegeEscalation": mine.get("allowPrivilegeEscalation") is False,
            "capabilities.drop": capabilities.get("drop") == ["ALL"],
            "capabilities.add": not capabilities.get("add"),
            "seccompProfile": bool(mine.get("seccompProfile") or context.get("seccompProfile")),
        }
        refused |= {field for field, holds in secured.items() if not holds}
    return refused


@pytest.mark.parametrize(("kind", "examples"), [("InferenceService", ["quickstart.yaml"]), ("LLMInferenceService", [])])
def test_the_pods_of_the_teams_page_are_restricted(kind: str, examples: list[str], rendered: Renderer) -> None:
    manifest = next(block for block in manifests("teams.md", "runAsNonRoot") if f"kind: {kind}\n" in block)
    all_pods = list(pods(rendered(manifest, *(f"llmkube/{name}" for name in examples))))
    assert all_pods
    assert [refusals(pod) for pod in all_pods] == [set()] * len(all_pods)


BELOW_RESTRICTED = {"runAsNonRoot", "allowPrivilegeEscalation", "capabilities.drop", "seccompProfile"}


@pytest.mark.parametrize(
    ("example", "refused"),
    [
        ("llmkube/quickstart.yaml", {"runAsNonRoot"}),
        ("llmaz/cpu.yaml", BELOW_RESTRICTED),
        ("kserve/gated.yaml", BELOW_RESTRICTED),
        ("kserve/pipeline.yaml", {"capabilities.add"}),
    ],
)
def test_pods_are_refused_by_pod_security_as_the_page_says(example: str, refused: set[str], rendered: Renderer) -> None:
    """Without a security context of the user; ``baseline`` refuses only what is added and ``hostPath``."""
    all_pods = pods(rendered((ROOT / "examples" / example).read_text()))
    assert {field for pod in all_pods for field in refusals(pod)} == refused


@pytest.mark.parametrize(
    ("text", "resources", "tensor"),
    [
        ("vendor: amd}", {"amd.com/gpu": "2"}, "2"),
        ("backendName: vllm-rocm", {"amd.com/gpu": "2"}, "2"),
        ("image: vllm/vllm-openai-rocm:", {"amd.com/gpu": "2"}, "2"),
        ("name: llama-arc", {"gpu.intel.com/i915": "1"}, ""),
        ("resourceName: habana.ai/gaudi", {"habana.ai/gaudi": "2"}, "2"),
        ('limits: {habana.ai/gaudi: "2"}', {"habana.ai/gaudi": "2"}, "2"),
        ("gke-tpu-accelerator", {"google.com/tpu": "8"}, "8"),
        ("mode: partitioned", {"nvidia.com/mig-3g.40gb": "1"}, ""),
        ("limits: {nvidia.com/mig-3g.40gb:", {"nvidia.com/mig-3g.40gb": "1"}, ""),
        ("tensorParallelSize: 2", {}, "2"),
        ("resources: {claims:", {}, "2"),
    ],
)
def test_a_server_has_the_hardware_of_the_page(text: str, resources: Json, tensor: str, rendered: Renderer) -> None:
    """Its container has the devices, and an engine that divides a model gets their number; ``validate`` is content."""
    (manifest,) = manifests("hardware.md", text)
    (pod,) = pods([child for child in rendered(manifest) if child["kind"] == "Deployment"])
    server = pod["containers"][0]
    limits = {name: amount for name, amount in server["resources"].get("limits", {}).items() if "/" in name}
    claims = [claim["name"] for claim in server["resources"].get("claims", ())]
    following = dict(zip(server["args"], [*server["args"][1:], ""], strict=True))
    assert (limits, claims) == (resources, [] if resources else ["gpus"])
    assert following.get("--tensor-parallel-size", "") == tensor
    assert rendered.validate() == ""


@pytest.mark.parametrize(
    ("kind", "examples"), [("InferenceService", ["llmkube/quickstart.yaml"]), ("LLMInferenceService", [])]
)
def test_kueues_label_reaches_pods(kind: str, examples: list[str], rendered: Renderer) -> None:
    """``docs/howto/teams.md`` says where it is written."""
    (manifest,) = (
        block for block in manifests("teams.md", "kueue.x-k8s.io/queue-name: team-a") if f"kind: {kind}\n" in block
    )
    (deployment,) = (child for child in rendered(manifest, *examples) if child["kind"] == "Deployment")
    assert deployment["spec"]["template"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"


def test_both_nodes_have_the_network_devices_of_the_page(rendered: Renderer) -> None:
    (manifest,) = manifests("several-gpus.md", "k8s.v1.cni.cncf.io/networks")
    (workload,) = (child for child in rendered(manifest) if child["kind"] == "LeaderWorkerSet")
    template = workload["spec"]["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        assert template[part]["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "roce-0, roce-1"
        assert template[part]["spec"]["containers"][0]["resources"]["limits"]["rdma/roce_gdr"] == "8"
        memory = [volume["emptyDir"] for volume in template[part]["spec"]["volumes"] if volume["name"] == "dshm"]
        assert memory == [{"medium": "Memory", "sizeLimit": "32Gi"}]


def test_the_latency_alerts_use_metrics_of_the_engines() -> None:
    (rule,) = (yaml.safe_load(block) for block in manifests("alerts.md", "kind: PrometheusRule"))
    expressions = " ".join(alert["expr"] for group in rule["spec"]["groups"] for alert in group["rules"])
    for engine, names in re.findall(r"(vllm|sglang):([a-z_]+)", expressions.replace("(vllm|sglang)", "vllm")):
        metrics = {
            name.partition(":")[2] for release in RELEASES if release.engine == engine for name in release.metrics
        }
        assert names.removesuffix("_bucket") in metrics


@pytest.mark.parametrize(
    ("text", "examples", "container", "argument"),
    [
        ("name: coder\n", ["llmkube/vllm.yaml"], "vllm", ""),
        ("name: coder-sglang\n", ["llmkube/vllm.yaml"], "sglang", "--api-key=$(API_KEY)"),
        ("name: opt-public\n", ["llmaz/gateway.yaml"], "model-runner", ""),
        ("name: chat\n", [], "main", ""),
    ],
)
def test_a_key_reaches_the_server(
    text: str, examples: list[str], container: str, argument: str, rendered: Renderer
) -> None:
    """``docs/howto/keys.md``: the server has the variable from the Secret, and no probe needs a key."""
    (manifest,) = (block for block in manifests("keys.md", "server-key") if text in block)
    name = yaml.safe_load(manifest)["metadata"]["name"]
    (pod,) = pods(
        [child for child in rendered(manifest, *examples) if child["metadata"]["name"].removesuffix("-kserve") == name]
    )
    (server,) = (c for c in containers(pod) if c["name"] == container)
    secret = {"name": "server-key", "key": "key"}
    (key,) = (variable["name"] for variable in server["env"] if variable.get("valueFrom") == {"secretKeyRef": secret})
    assert key == ("API_KEY" if argument else "VLLM_API_KEY")
    assert not argument or argument in server["args"]
    probes = [server[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert all(path.startswith("/health") for path in probes)


def test_the_client_of_the_load_is_restricted_and_asks_the_services_of_each_family(rendered: Renderer) -> None:
    """``docs/howto/load.md``: the targets are Services that modelhooks makes, with their ports."""
    page = (HOWTO / "load.md").read_text()
    (job,) = (yaml.safe_load(block) for block in manifests("load.md", "kind: Job"))
    assert refusals(job["spec"]["template"]["spec"]) == set()
    targets = set(re.findall(r"target=(\S+)", page)) | set(re.findall(r"\| `(http://chat\S+)`", page))
    addresses = set()
    for family in ("llmkube", "llmaz", "kserve"):
        text = (ROOT / "examples" / family / "by-clock.yaml").read_text()
        name = [document["metadata"]["name"] for document in yaml.safe_load_all(text)][-1]
        for child in rendered(text):
            if (child["kind"], child["apiVersion"]) == ("Service", "v1"):
                host = child["metadata"]["name"].replace(name, "chat", 1)
                addresses |= {f"http://{host}:{port['port']}" for port in child["spec"]["ports"]}
    assert targets <= addresses
    assert len(targets) == 3


def test_both_sides_of_the_page_move_caches_by_rdma(rendered: Renderer) -> None:
    """``docs/howto/prefill-decode.md``: connector, address, adapters and capability; the server finds the adapters."""
    (manifest,) = manifests("prefill-decode.md", "kind: LLMInferenceService")
    deployments = {child["metadata"]["name"]: child for child in rendered(manifest) if child["kind"] == "Deployment"}
    for name in ("split-rdma-kserve", "split-rdma-kserve-prefill"):
        (pod,) = pods([deployments[name]])
        (server,) = (container for container in containers(pod) if container["name"] == "main")
        variables = {variable["name"]: variable for variable in server["env"]}
        assert variables["VLLM_NIXL_SIDE_CHANNEL_HOST"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
        assert variables["KSERVE_INFER_ROCE"]["value"] == "true"
        text = " ".join([*server.get("command", ()), *server["args"]])
        assert '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' in text
        assert 'export UCX_NET_DEVICES="${UCX_NET_DEVICES:-' in text
        assert server["resources"]["limits"]["rdma/roce_gdr"] == "1"
        assert "IPC_LOCK" in server["securityContext"]["capabilities"]["add"]
    assert rendered.validate() == ""
