"""The kustomize manifests: values that must agree between files, and hardening that must not be lost."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app import cli, installation
from app.families import DECORATORS, RESOURCES
from app.installation import controller_name, crd_name, webhook_names
from app.kserve import constants as kserve
from app.kserve.names import component_labels, workload_selector
from app.kserve.operator import AUTOSCALING_KEY
from app.kserve.workload.scaling import METRIC as WVA_METRIC
from app.kube.base import Json
from app.limits import QUIET_WITHIN_SECONDS
from app.llmaz.names import CONFIG_KEY, CONFIG_MAP, INFERENCE_SERVICE, MODEL_FAMILY, MODEL_NAME
from app.llmkube import names as llmkube
from app.llmkube.runtimes.registry import RUNTIMES
from app.settings import DEFAULT_PORT, Settings, variable_name
from app.workload.engines.grammar import RELEASES
from tests import kustomize
from tools import registration

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
COMPONENTS = sorted(MANIFESTS.glob("components/*"))
CHART = MANIFESTS / "chart"
FILES = sorted(
    path for path in MANIFESTS.rglob("*.yaml") if path.name != "kustomization.yaml" and not path.is_relative_to(CHART)
)


def objects(path: Path) -> list[Json]:
    return list(yaml.load_all(path.read_text(), yaml.CSafeLoader))


def find(path: str, kind: str, name: str) -> Json:
    return next(o for o in objects(MANIFESTS / path) if (o["kind"], o["metadata"]["name"]) == (kind, name))


def pod_specs() -> Iterator[tuple[str, Json]]:
    for path in (MANIFESTS / "base" / "deployment.yaml", MANIFESTS / "overlays" / "quickstart" / "certs.yaml"):
        for manifest in objects(path):
            if manifest["kind"] in ("Deployment", "Job"):
                yield manifest["kind"], manifest["spec"]["template"]["spec"]
            elif manifest["kind"] == "CronJob":
                yield manifest["kind"], manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]


PODS = dict(pod_specs())


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS.keys())
def test_pods_satisfy_the_restricted_pod_security_standard(pod: Json) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in container["resources"]["limits"]
        assert "cpu" not in container["resources"]["limits"]


def test_the_server_holds_no_token_and_no_service_links() -> None:
    server = PODS["Deployment"]

    assert server["automountServiceAccountToken"] is False
    assert all(pod["enableServiceLinks"] is False for pod in PODS.values())


def test_job_and_cronjob_run_the_same_pod() -> None:
    assert PODS["Job"] == PODS["CronJob"]


def test_every_pod_runs_the_release_of_this_tree() -> None:
    images = {container["image"] for pod in PODS.values() for container in pod["containers"]}

    assert images == {f"modelhooks:{_version()}"}


def _lameduck_seconds() -> float:
    environment = PODS["Deployment"]["containers"][0]["env"]
    return float(next(v["value"] for v in environment if v["name"] == variable_name("lameduck_seconds")))


def test_a_stopping_pod_is_given_the_time_it_takes() -> None:
    grace = PODS["Deployment"]["terminationGracePeriodSeconds"]

    assert grace >= _lameduck_seconds() + Settings().graceful_shutdown_seconds + 15
    assert grace > _lameduck_seconds() + QUIET_WITHIN_SECONDS + Settings().graceful_shutdown_seconds


def test_metacontroller_may_read_the_secret_that_hooks_refer_to() -> None:
    """With the small role alone, every controller would fail to start without the CA."""
    (kustomization,) = objects(MANIFESTS / "overlays" / "cert-manager" / "kustomization.yaml")
    role = find("overlays/cert-manager/rbac.yaml", "ClusterRole", "modelhooks-metacontroller-cert-manager")

    assert "secretRef" in str(kustomization["patches"])
    assert "rbac.yaml" in kustomization["resources"]
    assert registration.AGGREGATE.items() <= role["metadata"]["labels"].items()
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]


def test_the_lame_duck_outlasts_the_readiness_probe() -> None:
    probe = PODS["Deployment"]["containers"][0]["readinessProbe"]

    assert _lameduck_seconds() > probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]


def test_the_network_policy_admits_the_api_server_on_every_cluster() -> None:
    """No peers match an API server on the host network. Metacontroller has a separate rule, so that this one can go."""
    (policy,) = objects(ROOT / "manifests" / "base" / "networkpolicy.yaml")
    port = [{"protocol": "TCP", "port": "https"}]
    metacontroller = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "metacontroller"}}}
    assert policy["spec"]["ingress"] == [{"from": [metacontroller], "ports": port}, {"ports": port}]
    assert policy["spec"]["egress"] == []


def test_the_notes_of_the_chart_begin_with_what_is_open() -> None:
    first, _, _ = (ROOT / "manifests" / "chart" / "templates" / "NOTES.txt").read_text().partition("{{- end }}\n\n")
    assert "{{- else -}}\nOPEN: every pod of the cluster may connect" in first
    assert "Close it\nwith networkPolicy.podCIDRs" in first


def test_environment_variables_are_settings() -> None:
    known = {variable_name(name) for name in Settings.model_fields}
    used = {v["name"] for path in FILES if "components" not in path.parts for o in objects(path) for v in _env(o)}

    assert used
    assert used <= known


def test_ports_agree() -> None:
    service = find("base/service.yaml", "Service", installation.NAME)
    container = PODS["Deployment"]["containers"][0]

    assert [(p["port"], p["targetPort"]) for p in service["spec"]["ports"]] == [(443, "https")]
    assert container["ports"] == [{"name": "https", "containerPort": DEFAULT_PORT}]


def test_the_certificates_account_may_touch_our_objects_by_name_and_no_others() -> None:
    (secrets,) = find("overlays/quickstart/certs.yaml", "Role", "modelhooks-certs")["rules"]
    webhooks, definitions, controllers = find("overlays/quickstart/certs.yaml", "ClusterRole", "modelhooks-certs")[
        "rules"
    ]

    assert secrets["resourceNames"] == ["modelhooks-tls"]
    assert webhooks["resourceNames"] == [installation.NAME]
    assert definitions["resourceNames"] == [installation.crd_name(r) for r in RESOURCES if r.older]
    assert {*map(installation.controller_name, RESOURCES), *(d.component for d in DECORATORS)} <= set(
        controllers["resourceNames"]
    )
    assert controllers["resources"] == ["compositecontrollers", "decoratorcontrollers"]
    assert all(rule["verbs"] == ["get", "patch"] for rule in (secrets, webhooks, definitions, controllers))


def test_cert_manager_makes_the_names_that_are_verified_and_where_the_hooks_are() -> None:
    from app.certs.authority import service_names

    leaf = find("overlays/cert-manager/certificates.yaml", "Certificate", "modelhooks-tls")["spec"]
    assert leaf["dnsNames"] == service_names(installation.NAME, installation.NAMESPACE, "cluster.local")
    assert f"host: {installation.HOOK_HOST}" in (MANIFESTS / "overlays/cert-manager/kustomization.yaml").read_text()


def test_the_gateway_is_the_one_that_routes_name() -> None:
    gateway = find("components/envoy-ai-gateway/gateway.yaml", "Gateway", "models")["metadata"]

    assert Settings().llmaz_gateway == f"{gateway['namespace']}/{gateway['name']}"


def test_the_chat_page_asks_the_gateways_proxy() -> None:
    proxy = find("components/envoy-ai-gateway/gateway.yaml", "EnvoyProxy", "models")["spec"]["provider"]["kubernetes"]
    page = find("components/open-webui/open-webui.yaml", "Deployment", "open-webui")
    (address,) = [v["value"] for v in _env(page) if v["name"] == "OPENAI_API_BASE_URLS"]

    assert address == f"http://{proxy['envoyService']['name']}.envoy-gateway-system.svc.cluster.local/v1"


def test_the_scheduler_is_the_one_that_llmazs_pods_name() -> None:
    settings = find("components/inftyai-scheduler/scheduler.yaml", "ConfigMap", CONFIG_MAP)
    (profiles,) = (
        o["profiles"] for o in objects(MANIFESTS / "components" / "inftyai-scheduler" / "scheduler-config.yaml")
    )

    assert settings["metadata"]["namespace"] == Settings().llmaz_system_namespace
    assert yaml.safe_load(settings["data"][CONFIG_KEY]) == {"scheduler-name": profiles[0]["schedulerName"]}


OF_SERVICES = (INFERENCE_SERVICE, "leaderworkerset.sigs.k8s.io/name")
"""Labels of llmaz' pods with the name of their Playground or Service, of which LeaderWorkerSets set the second."""


def test_prometheus_asks_the_engines_that_have_metrics() -> None:
    """They are selected by the labels of the families' pods."""
    monitors = {o["metadata"]["name"]: o["spec"] for o in objects(MANIFESTS / "components/prometheus/podmonitors.yaml")}
    (runtimes,) = monitors["llmkube"]["selector"]["matchExpressions"]
    picker = monitors["kserve-endpoint-picker"]["selector"]["matchLabels"]

    assert runtimes["key"] == llmkube.LABEL_RUNTIME
    assert runtimes["values"] == sorted(name for name, runtime in RUNTIMES.items() if runtime.scraped)
    assert monitors["llmaz"]["selector"]["matchExpressions"] == [{"key": MODEL_NAME, "operator": "Exists"}]
    assert monitors["llmaz"]["podTargetLabels"] == [MODEL_NAME, MODEL_FAMILY, *OF_SERVICES]
    assert monitors["kserve"]["selector"]["matchLabels"].items() <= workload_selector("chat").items()
    assert picker.items() <= component_labels("chat", kserve.COMPONENT_SCHEDULER).items()


def _pods(child: Json) -> Iterator[Json]:
    spec = child.get("spec", {})
    if child["kind"] == "Deployment":
        yield spec["template"]
    elif child["kind"] == "LeaderWorkerSet":
        group = spec["leaderWorkerTemplate"]
        yield from (group[name] for name in ("leaderTemplate", "workerTemplate") if name in group)


def _selected(selector: Json, labels: dict[str, str]) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        expression["key"] in labels
        and labels[expression["key"]] in expression.get("values", [labels[expression["key"]]])
        for expression in selector.get("matchExpressions", [])
    )


BY_HAND = {"phi-by-hand"}
"""llmaz Services of the examples with the user's own pods, whose port must be called ``http``."""


@pytest.mark.no_cover
def test_prometheus_finds_a_port_and_its_labels_on_every_pod(capsys: pytest.CaptureFixture[str]) -> None:
    """A PodMonitor silently skips a pod without its port. All examples are tested."""
    cli.main(["render", str(ROOT / "examples"), str(MANIFESTS / "llmaz-runtimes")])
    rendered = [child for child in yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader) if child]
    pods = [(child["metadata"]["name"], pod) for child in rendered for pod in _pods(child)]
    for monitor in objects(MANIFESTS / "components/prometheus/podmonitors.yaml"):
        spec = monitor["spec"]
        chosen = [
            (name, pod) for name, pod in pods if _selected(spec["selector"], pod.get("metadata", {}).get("labels", {}))
        ]
        assert len(chosen) > 5
        for name, pod in chosen:
            ports = [port for container in pod["spec"]["containers"] for port in container.get("ports", [])]
            names_and_numbers = {port.get("name") for port in ports} | {port["containerPort"] for port in ports}
            wanted = {endpoint.get("port", endpoint.get("portNumber")) for endpoint in spec["podMetricsEndpoints"]}
            assert (wanted & names_and_numbers != set()) == (name not in BY_HAND), name
            labels = set(spec["podTargetLabels"]) - {*OF_SERVICES}
            assert labels <= pod["metadata"]["labels"].keys(), name


ADAPTER = "components/prometheus-adapter"


def adapter_rules() -> tuple[list[set[str]], list[set[str]]]:
    """Return the series names of each rule of the metrics adapter: for pods' metrics, and for external ones."""
    data = find(f"{ADAPTER}/rules.yaml", "ConfigMap", "prometheus-adapter")["data"]
    config = yaml.safe_load(data["config.yaml"])
    names = re.compile(r'__name__=~?"([^"]*)"')
    chosen = [
        [set(match[1].split("|")) for rule in config[kind] if (match := names.search(rule["seriesQuery"]))]
        for kind in ("rules", "externalRules")
    ]
    return chosen[0], chosen[1]


def test_the_adapter_serves_metrics_that_engines_have() -> None:
    """The metrics are in the catalogues; one rule with a pattern serves all counters."""
    exported = {metric for release in RELEASES for metric in release.metrics}
    (requests, shares, counters), _ = adapter_rules()
    assert requests | shares <= exported
    assert len(counters) > 1
    assert {re.split("[:_]", name)[0] for name in requests} == {"llamacpp", "sglang", "tgi", "vllm"}


def test_the_adapter_serves_what_autoscalers_ask_for_without_metrics_of_the_users() -> None:
    (requests, *_), (external,) = adapter_rules()
    assert {runtime.metric for runtime in RUNTIMES.values() if runtime.metric} <= requests
    assert external == {WVA_METRIC}


def test_the_adapter_asks_the_prometheus_of_the_components() -> None:
    prometheus = find("components/prometheus/prometheus.yaml", "Prometheus", "models")["metadata"]
    (container,) = find(f"{ADAPTER}/adapter.yaml", "Deployment", "prometheus-adapter")["spec"]["template"]["spec"][
        "containers"
    ]
    url = f"http://prometheus-operated.{prometheus['namespace']}.svc:9090"
    assert f"--prometheus-url={url}/" in container["args"]
    settings = find("components/keda/settings.yaml", "ConfigMap", "inferenceservice-config")
    assert json.loads(settings["data"][AUTOSCALING_KEY]) == {"prometheus": {"url": url}}
    assert settings["metadata"]["name"] == kserve.OPERATOR_CONFIG


def test_the_how_to_page_names_metrics_that_are_served() -> None:
    page = (ROOT / "docs/howto/autoscale.md").read_text().partition("## The metrics of each release")[0]
    (requests, shares, _), (external,) = adapter_rules()
    named = set(re.findall(r"\b((?:llamacpp|vllm|sglang):\w+|tgi_\w+|wva_\w+)", page))
    assert {name for name in named if "tokens" not in name} <= requests | shares | external
    assert len(named) >= 12


def test_llmkubes_priority_classes() -> None:
    classes = {
        o["metadata"]["name"]: (o["value"], o.get("preemptionPolicy"))
        for o in objects(MANIFESTS / "base" / "priorityclasses.yaml")
        if o["metadata"]["name"].startswith("llmkube-")
    }

    assert classes == {
        "llmkube-critical": (1_000_000, None),
        "llmkube-high": (100_000, None),
        "llmkube-normal": (10_000, None),
        "llmkube-low": (1_000, None),
        "llmkube-batch": (100, "Never"),
    }


@pytest.mark.parametrize("path", sorted(MANIFESTS.rglob("kustomization.yaml")), ids=lambda p: p.parent.name)
def test_kustomizations_name_what_is_there(path: Path) -> None:
    kustomization = yaml.safe_load(path.read_text())
    patches = [patch["path"] for patch in kustomization.get("patches", []) if "path" in patch]

    files = [name for generator in kustomization.get("configMapGenerator", []) for name in generator.get("files", [])]

    local = [name for name in [*kustomization["resources"], *patches, *files] if not name.startswith("https://")]
    for name in local:
        target = (path.parent / name).resolve()
        assert target.is_file() or (target / "kustomization.yaml").is_file(), name
    listed = {(path.parent / name).resolve() for name in local}
    assert {p.resolve() for p in path.parent.glob("*.yaml") if p != path} <= listed


@pytest.mark.parametrize("path", [*sorted(MANIFESTS.glob("overlays/*")), *COMPONENTS], ids=lambda p: p.name)
def test_kustomize_builds_each_overlay_and_component(path: Path) -> None:
    built = kustomize.built_once(path)
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in built]
    assert len(names) == len(set(names))
    urls = [
        h["webhook"]["url"] for o in built if o["kind"] == "CompositeController" for h in o["spec"]["hooks"].values()
    ]
    assert {url.partition(":")[0] for url in urls} <= ({"http"} if path.name in ("development", "local") else {"https"})


@pytest.mark.parametrize(("overlay", "scheme"), [("development", "http"), ("quickstart", "https")])
def test_a_components_hook_has_the_scheme_of_the_others(tmp_path: Path, overlay: str, scheme: str) -> None:
    places = {
        "resources": [MANIFESTS / "overlays" / overlay],
        "components": [ROOT / "metacontroller" / "components" / "config-protection"],
    }
    below = {key: [os.path.relpath(path, tmp_path) for path in paths] for key, paths in places.items()}
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({**head, **below}))
    controllers = (o for o in kustomize.built(tmp_path) if o["kind"] == "CompositeController")
    hooks = [hook["webhook"]["url"] for o in controllers for hook in o["spec"]["hooks"].values()]
    assert any("/finalize?" in url for url in hooks)
    assert {url.partition(":")[0] for url in hooks} == {scheme}


OVERLAY = re.compile(r"```yaml\n(# kustomization.yaml\nresources:.*?)```", re.DOTALL)
OVERLAYS: dict[str, str] = {
    f"{page.stem}-{number}": block
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for number, block in enumerate(OVERLAY.findall(page.read_text()))
}


def built_from_page(block: str, folder: Path, tree: Path = ROOT) -> list[Json]:
    """Build an overlay of the documentation, with a tree in place of the repository at a release."""
    remote = r"https://github.com/modelhooks/modelhooks/([\w/-]+)\?ref=v[\d.]+"
    local = re.sub(remote, lambda match: os.path.relpath(tree / match[1], folder), block)
    (folder / "kustomization.yaml").write_text(local)
    return kustomize.built(folder)


@pytest.mark.parametrize("block", OVERLAYS.values(), ids=OVERLAYS.keys())
def test_kustomize_builds_the_overlays_of_the_pages(tmp_path: Path, block: str) -> None:
    kinds = {o["kind"] for o in built_from_page(block, tmp_path)}
    assert {"CustomResourceDefinition", "CompositeController", "Deployment"} <= kinds


def test_the_overlay_of_metacontroller_sets_flags_and_leaves_the_smaller_role(tmp_path: Path) -> None:
    """Metacontroller's manifests are fetched from GitHub; here the StatefulSet of the node test plays them."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metacontroller"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metacontroller"},
    }
    base = tmp_path / "manifests" / "metacontroller"
    base.mkdir(parents=True)
    (base / "binding.yaml").write_text(yaml.safe_dump(binding))
    (base / "metacontroller.yaml").write_text((ROOT / "tests" / "node" / "metacontroller.yaml").read_text())
    kustomization = yaml.safe_load((MANIFESTS / "metacontroller" / "kustomization.yaml").read_text())
    files = {"resources": ["metacontroller.yaml", "binding.yaml"]}
    (base / "kustomization.yaml").write_text(yaml.safe_dump({**kustomization, **files}))
    page = (ROOT / "docs" / "install.md").read_text()
    (block,) = re.findall(r"```yaml\n# metacontroller/kustomization.yaml\n(.*?)```", page, re.DOTALL)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    built = built_from_page(block, overlay, tmp_path)
    assert {o["kind"] for o in built} == {"Namespace", "StatefulSet"}
    (container,) = next(o for o in built if o["kind"] == "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert "--client-go-qps=500" in container["args"]
    assert container["resources"] == {"limits": {"memory": "2Gi"}}


def test_an_installation_by_gitops_keeps_definitions_and_the_job(tmp_path: Path) -> None:
    """Neither tool deletes a definition, and the Job is not missing after its end."""
    built = built_from_page(OVERLAYS["gitops-0"], tmp_path)
    definitions = [o["metadata"]["annotations"] for o in built if o["kind"] == "CustomResourceDefinition"]
    assert len(definitions) == len(RESOURCES)
    for annotations in definitions:
        assert annotations["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
        assert annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
    (job,) = (o for o in built if o["kind"] == "Job")
    assert "ttlSecondsAfterFinished" not in job["spec"]


def test_the_page_about_a_certificate_authority_leaves_one_issuer(tmp_path: Path) -> None:
    built = [o for o in built_from_page(OVERLAYS["own-ca-0"], tmp_path) if o["apiVersion"] == "cert-manager.io/v1"]
    (certificate,) = built
    assert certificate["metadata"]["name"] == "modelhooks-tls"
    assert certificate["spec"]["issuerRef"] == {"kind": "ClusterIssuer", "name": "company"}


@pytest.mark.parametrize("family", ["llmkube", "llmaz", "kserve"])
def test_a_familys_overlay_has_its_kinds_alone(family: str) -> None:
    """It equals the quickstart without definitions, hooks, webhooks, rights and PriorityClasses of other families."""
    built = kustomize.built_once(MANIFESTS / "overlays" / family)
    names = {kind: {o["metadata"]["name"] for o in built if o["kind"] == kind} for kind in {o["kind"] for o in built}}
    of_family = [resource for resource in RESOURCES if resource.family == family]
    assert names["CustomResourceDefinition"] == {crd_name(resource) for resource in of_family}
    assert names["CompositeController"] == {controller_name(resource) for resource in of_family}
    (configuration,) = (o for o in built if o["kind"] == "ValidatingWebhookConfiguration")
    assert {webhook["name"] for webhook in configuration["webhooks"]} == {
        name for resource in of_family for name in webhook_names(resource)
    }
    assert ("llmkube-normal" in names["PriorityClass"]) == (family == "llmkube")
    role = next(o for o in built if o["metadata"]["name"] == f"modelhooks-metacontroller-{family}")
    children = {child.plural for resource in of_family for child in resource.children if not child.component}
    assert children <= {plural for rule in role["rules"] for plural in rule["resources"]}
    assert _metacontroller_groups(built).isdisjoint(
        {resource.group for resource in RESOURCES} - {r.group for r in of_family}
    )
    assert "Deployment" in names
    short_names = [
        name
        for o in built
        if o["kind"] == "CustomResourceDefinition"
        for name in o["spec"]["names"].get("shortNames", [])
    ]
    assert len(short_names) == len(set(short_names))


def _metacontroller_groups(manifests: list[Json]) -> set[str]:
    """Return the API groups on which Metacontroller has rights."""
    label = "rbac.modelhooks.dev/aggregate-to-metacontroller"
    roles = [manifest for manifest in manifests if label in manifest["metadata"].get("labels", {})]
    return {group for role in roles for rule in role["rules"] for group in rule["apiGroups"]}


def test_the_chart_links_to_what_kustomize_has() -> None:
    """Decision 18. A checkout without symbolic links has text files instead."""
    links = {path.name: path.resolve() for path in (CHART / "files").iterdir()}
    there = {"base": MANIFESTS / "base", "overlays": MANIFESTS / "overlays"}
    assert links == {**there, "crds": ROOT / "crds", "metacontroller": ROOT / "metacontroller"}


def _env(manifest: Json) -> list[Json]:
    spec = manifest.get("spec", {}).get("template", {}).get("spec", {})
    return [v for container in spec.get("containers", []) for v in container.get("env", [])]


def _version() -> str:
    import tomllib

    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
