"""The generated files: what is in them, that they are up to date, and that kustomize takes them."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import Field

from app.families import RESOURCES
from app.hooks.labels import Decorator, Label
from app.kube.base import KubeModel
from app.kube.resource import ChildKind
from tests import kustomize
from tests.kube.widget import Part, widget
from tools import generate, registration


class NotStructural(KubeModel):
    parts: list[Part] = Field(default=[], description="Parts.", json_schema_extra={"x-kubernetes-list-type": "set"})


FILES = generate.manifests([widget()], "1.2.3")
everything = functools.cache(generate.everything)


def read(name: str) -> Any:
    return yaml.load(FILES[name], yaml.CSafeLoader)


def rules(role: Any) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def granted(group: str, resource: str, verbs: str) -> set[tuple[str, str, str]]:
    return {(group, resource, verb) for verb in verbs.split()}


def test_the_files_of_one_kind() -> None:
    assert sorted(FILES) == [
        "crds/kustomization.yaml",
        "crds/widgets.toys.example.dev.yaml",
        "manifests/base/webhooks.yaml",
        "manifests/gitops/argocd-cm.yaml",
        "manifests/gitops/flux.yaml",
        "metacontroller/components/routes/kustomization.yaml",
        "metacontroller/components/routes/rbac.yaml",
        "metacontroller/kustomization.yaml",
        "metacontroller/rbac/kustomization.yaml",
        "metacontroller/rbac/metacontroller.yaml",
        "metacontroller/rbac/toys.yaml",
        "metacontroller/toys-widgets.yaml",
    ]


def test_every_file_says_that_it_is_generated() -> None:
    assert all(text.startswith(generate.HEADER) for text in FILES.values())


def test_the_composite_controller() -> None:
    controller = read("metacontroller/toys-widgets.yaml")
    assert controller["metadata"]["name"] == "toys-widgets"
    assert controller["spec"] == {
        "generateSelector": True,
        "parentResource": {
            "apiVersion": "toys.example.dev/v1alpha1",
            "resource": "widgets",
            "ignoreStatusChanges": True,
        },
        "childResources": [
            {"apiVersion": "apps/v1", "resource": "deployments", "updateStrategy": {"method": "InPlace"}},
            {"apiVersion": "v1", "resource": "services", "updateStrategy": {"method": "InPlace"}},
            {"apiVersion": "batch/v1", "resource": "jobs", "updateStrategy": {"method": "OnDelete"}},
        ],
        "hooks": {
            "sync": {
                "version": "v2",
                "webhook": {
                    "url": "https://modelhooks.modelhooks-system:443/toys/widgets/sync?rev=1.2.3",
                    "timeout": "10s",
                },
            },
            "customize": {
                "version": "v2",
                "webhook": {
                    "url": "https://modelhooks.modelhooks-system:443/toys/widgets/customize?rev=1.2.3",
                    "timeout": "5s",
                },
            },
        },
    }


def test_a_kind_that_reads_nothing_has_no_customize_hook() -> None:
    controller = registration.composite_controller(widget(related=()), "1")
    assert list(controller["spec"]["hooks"]) == ["sync"]


def test_a_kind_that_asks_in_its_own_namespace_has_version_v1_of_customize() -> None:
    hooks = registration.composite_controller(widget(related_elsewhere=False), "1")["spec"]["hooks"]
    assert {name: hook["version"] for name, hook in hooks.items()} == {"sync": "v2", "customize": "v1"}


def test_a_kind_without_children_has_a_list_that_components_can_add_to() -> None:
    controller = registration.composite_controller(widget(children=()), "1")
    assert controller["spec"]["childResources"] == []


def test_metacontrollers_rights_are_those_it_needs() -> None:
    base = rules(read("metacontroller/rbac/toys.yaml"))
    children = "get list watch create update patch delete"
    assert base == (
        granted("toys.example.dev", "widgets", "get list watch update")
        | granted("toys.example.dev", "widgets/status", "update")
        | granted("toys.example.dev", "widgets/finalizers", "update")
        | granted("apps", "deployments", children)
        | granted("", "services", children)
        | granted("batch", "jobs", children)
        | granted("", "configmaps", "list watch")
    )


def test_a_component_brings_its_own_rights() -> None:
    assert rules(read("metacontroller/components/routes/rbac.yaml")) == (
        granted("routes.example.dev", "routes", "get list watch create update patch delete")
        | granted("routes.example.dev", "gateways", "list watch")
    )


def test_no_role_has_a_wildcard() -> None:
    roles = [document for name in FILES if "/rbac" in name for document in yaml.load_all(FILES[name], yaml.CSafeLoader)]
    found = {text for role in roles for rule in role.get("rules") or () for texts in rule.values() for text in texts}
    assert "*" not in found


def test_the_admission_webhook() -> None:
    (webhook,) = read("manifests/base/webhooks.yaml")["webhooks"]
    assert webhook["name"] == "validate.widgets.toys.example.dev"
    assert webhook["clientConfig"] == {
        "service": {
            "name": "modelhooks",
            "namespace": "modelhooks-system",
            "path": "/validate-toys-example-dev-v1alpha1-widget",
            "port": 443,
        }
    }
    assert webhook["rules"] == [
        {
            "apiGroups": ["toys.example.dev"],
            "apiVersions": ["v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["widgets"],
            "scope": "Namespaced",
        }
    ]
    assert (webhook["failurePolicy"], webhook["sideEffects"], webhook["timeoutSeconds"]) == ("Fail", "None", 5)


def test_a_kind_that_is_not_structural_is_refused() -> None:
    with pytest.raises(SystemExit, match="a set has scalar items"):
        generate.crd(widget(spec=NotStructural))


def test_a_definition_that_is_too_large_is_refused() -> None:
    with pytest.raises(SystemExit, match="the limit is 262144"):
        generate.crd(widget(description="x" * 300_000))


def test_write_then_check_finds_no_difference_and_removes_what_is_left_over(tmp_path: Path) -> None:
    leftover = tmp_path / "metacontroller" / "gone.yaml"
    leftover.parent.mkdir()
    leftover.write_text("")
    changed = generate.drift(FILES, tmp_path)
    assert changed == sorted([*FILES, "metacontroller/gone.yaml"])
    generate.write(FILES, changed, tmp_path)
    assert generate.drift(FILES, tmp_path) == []
    (tmp_path / "crds" / "kustomization.yaml").write_text("edited by hand")
    assert generate.drift(FILES, tmp_path) == ["crds/kustomization.yaml"]


@pytest.mark.no_cover
def test_check_lists_the_files_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "everything", everything)
    assert generate.main(["--check", "--root", str(tmp_path)]) == 1
    assert "differs: manifests/base/webhooks.yaml" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert generate.main(["--check", "--root", str(tmp_path)]) == 0


def test_the_generated_files_are_up_to_date() -> None:
    assert generate.drift(everything(), generate.ROOT) == [], "run `make generate`"


def test_every_kind_has_a_field_table() -> None:
    """The pages of the documentation have a section for each kind."""
    text = "\n".join(text for name, text in everything().items() if name.startswith("docs/fields/"))
    sections = re.findall(r"^## (\w+) \(`([^`]+)`\)$", text, re.MULTILINE)
    assert sections == [(resource.kind, resource.api_version) for resource in RESOURCES]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    resources = [
        widget(),
        widget(kind="Gadget", children=(ROUTE, GATEWAY)),
        widget(kind="Gizmo", children=()),
    ]
    files = generate.manifests(resources, "1.2.3")
    generate.write(files, list(files), tmp_path)
    overlay = {"resources": ["../metacontroller"], "components": ["../metacontroller/components/routes"]}
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return tmp_path


ROUTE = ChildKind("routes.example.dev/v1", "Route", "routes", component="routes")
GATEWAY = ChildKind("routes.example.dev/v1", "Gateway", "gateways", component="routes")


def test_kustomize_builds_the_base(tree: Path) -> None:
    kinds = [document["kind"] for document in kustomize.built(tree / "metacontroller")]
    assert kinds.count("CompositeController") == 3
    assert kinds.count("ClusterRole") == 3
    assert [document["kind"] for document in kustomize.built(tree / "crds")] == ["CustomResourceDefinition"] * 3


def test_a_component_adds_its_kinds_to_the_controllers_that_own_them(tree: Path) -> None:
    controllers = {
        document["metadata"]["name"]: [child["resource"] for child in document["spec"]["childResources"]]
        for document in kustomize.built(tree / "overlay")
        if document["kind"] == "CompositeController"
    }
    assert controllers == {
        "toys-widgets": ["deployments", "services", "jobs", "routes"],
        "toys-gadgets": ["routes", "gateways"],
        "toys-gizmos": [],
    }


def test_a_decorator_is_a_separate_component() -> None:
    """With all that Metacontroller needs, but for the rights on parents, which it has."""
    label = Label(widget(), "toys.example.dev/model", lambda spec: str(spec.model_ref))
    files = generate.decorators([Decorator("toys", "models", (label,))], "1.2.3")
    folder = "metacontroller/components/toys-models"
    assert sorted(files) == [f"{folder}/decoratorcontroller.yaml", f"{folder}/kustomization.yaml"]
    controller = yaml.load(files[f"{folder}/decoratorcontroller.yaml"], yaml.CSafeLoader)
    url = "https://modelhooks.modelhooks-system:443/toys/models/sync?rev=1.2.3"
    assert (controller["kind"], controller["metadata"]["name"]) == ("DecoratorController", "toys-models")
    assert controller["spec"] == {
        "resources": [{"apiVersion": "toys.example.dev/v1alpha1", "resource": "widgets"}],
        "hooks": {"sync": {"version": "v2", "webhook": {"url": url, "timeout": "10s"}}},
    }
