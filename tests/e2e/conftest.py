"""Fixtures of the end-to-end suite, and the rules for skipping it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it has no types

from app.families import DECORATORS, RESOURCES
from app.settings import minor_release
from tests.collected import below
from tests.e2e import binaries, takeover
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation, checked, clear
from tests.e2e.processes import GO, wait_until

_HERE = Path(__file__).parent
READER = "reader"
HAS_CLAIMS = int(minor_release(binaries.release()).partition(".")[2]) >= 34
"""Whether the tested release of Kubernetes serves ``resource.k8s.io/v1``."""
os.environ.update(GO)


def optional_components() -> list[str]:
    """Return every optional component: child kinds in the order of the registry, finalize hooks, and decorators.

    One whose kind the tested release of Kubernetes lacks is left out, as its page says.
    """
    kinds = dict.fromkeys(child.component for r in RESOURCES for child in r.children if child.component)
    hooks = [r.finalize_component for r in RESOURCES if r.finalize_component]
    components = [*kinds, *hooks, *(decorator.component for decorator in DECORATORS)]
    return [component for component in components if component != "resource-claims" or HAS_CLAIMS]


_GROUPS = {
    "session": (
        *("test_llmkube", "test_llmkube_changes", "test_llmaz", "test_surroundings", "test_docs", "test_rights"),
        *("test_status", "test_operations", "test_studio", "test_studio_live", "test_kube_state_metrics"),
        *("test_late_volumes", "test_own_deployment", "test_helm_wait", "test_restore", "test_kustomize"),
    ),
    "kserve": (
        *("test_kserve", "test_kserve_scaling", "test_kserve_rules", "test_kserve_pods", "test_kserve_configs"),
        *("test_kserve_page", "test_controlplane", "test_broken_update", "test_ready", "test_release"),
    ),
    "bare": ("test_fleet", "test_optional_kinds", "test_conversion", "test_migration"),
    "chart": ("test_chart",),
    "generated": ("test_generated",),
}
"""Modules of one cluster, in order; the longest groups come first, so that no long one runs alone at the end.

Every other module is a group.
"""
_PLACES = {
    module: (number, place) for number, modules in enumerate(_GROUPS.values()) for place, module in enumerate(modules)
}


class ByCluster(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Runs the modules of a group in one process."""

    def _split_scope(self, nodeid: str) -> str:
        module = Path(nodeid.partition("::")[0]).stem
        return next((group for group, modules in _GROUPS.items() if module in modules), module)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster:
    """Distribute the tests by group, whatever ``--dist`` is."""
    return ByCluster(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules in the order of `_GROUPS`.

    Skip tests that need a control plane where none is available, unless `MODELHOOKS_E2E=required` is set.
    """
    items.sort(key=lambda item: _PLACES.get(item.path.stem, (len(_GROUPS), 0)))
    if os.environ.get("MODELHOOKS_E2E") == "required" or (reason := binaries.missing()) is None:
        return
    for item in below(_HERE, items):
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One complete control plane for all tests of the session; each test uses a separate namespace."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as cluster:
        yield cluster
        cluster.check()


@pytest.fixture(scope="session")
def installation(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """modelhooks installed as users install it, with every optional child kind and every decorator."""
    with checked(control_plane, tmp_path_factory.mktemp("installation"), optional_components()) as installed:
        yield installed


@pytest.fixture(scope="session")
def autoscaled(installation: Installation) -> Iterator[str]:
    """The namespace of a service that serves and lacks a metric, so that it is `Ready` for a minute at most."""
    cluster = installation.cluster
    namespace = cluster.create_namespace()
    cluster.kubectl("apply", "-n", namespace, "-f", ROOT / "examples/llmkube/gpu-autoscaled.yaml")
    service = "inferenceservice.inference.llmkube.dev/assistant"
    cluster.kubectl("wait", "-n", namespace, "--for=jsonpath={.status.phase}=Ready", service, TIMEOUT)
    yield namespace
    clear(cluster, namespace)


@pytest.fixture(scope="session")
def bare_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """modelhooks on a separate cluster without optional kinds, in which KServe's CRD and an object of it were before.

    Its API server writes an audit log.
    """
    workdir = tmp_path_factory.mktemp("bare")
    with ControlPlane(workdir / "control-plane", audit=True) as cluster:
        takeover.leave_behind(cluster, workdir)
        with Installation(cluster, workdir / "installation") as installed:
            yield installed


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A new namespace on the shared control plane; what runs in it is deleted afterwards."""
    name = control_plane.create_namespace()
    yield name
    clear(control_plane, name)


@pytest.fixture
def reading(installation: Installation, namespace: str, tmp_path: Path) -> Path:
    """The kubeconfig of an account with read-only access to the namespace and its kinds."""
    cluster = installation.cluster
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{READER}-{namespace}"},
        "rules": rules,
    }
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(role))
    cluster.kubectl("create", "serviceaccount", READER, "-n", namespace)
    binding = f"{READER}-{namespace}"
    account = f"{namespace}:{READER}"
    cluster.kubectl("create", "clusterrolebinding", binding, f"--clusterrole={binding}", f"--serviceaccount={account}")
    may_list = ("auth", "can-i", "list", "pods", "-n", namespace, "--as", f"system:serviceaccount:{account}")
    wait_until(lambda: cluster.kubectl(*may_list, check=False).returncode == 0, "the account's rights")
    return cluster.write_kubeconfig_of_account(namespace, READER, tmp_path / "kubeconfig")
