"""The overlay for running the service on a developer's machine (docs/howto/local.md)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.families import RESOURCES
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, SYSTEM
from tests.e2e.metacontroller import CRDS, Metacontroller
from tests.e2e.processes import Process, free_port, wait_until
from tests.e2e.test_status import modelhooks

pytestmark = pytest.mark.e2e

MODEL = "models.inference.llmkube.dev"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a service that runs with plain HTTP on this machine."""
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    service = Process("modelhooks", command, tmp_path / "modelhooks.log", {**os.environ, "PYTHONPATH": str(ROOT)})
    service.wait_ready(lambda: _is_ready(f"http://127.0.0.1:{port}/readyz"))
    yield f"127.0.0.1:{port}"
    service.stop()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _tree(folder: Path, address: str) -> Path:
    """Copy the manifests and insert the address as documented; return the overlay."""
    for name in ("crds", "manifests", "metacontroller"):
        shutil.copytree(ROOT / name, folder / name)
    overlay = folder / "manifests" / "overlays" / "local"
    file = overlay / "address.yaml"
    file.write_text(file.read_text().replace("172.18.0.1:8080", address))
    return overlay


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane without any of our kinds; no pods run."""
    with ControlPlane(tmp_path / "control-plane", controllers=False, scheduler=False, kwok=False) as cluster:
        yield cluster


def test_metacontroller_calls_the_service_on_this_machine(tmp_path: Path, cluster: ControlPlane, address: str) -> None:
    """Metacontroller calls hooks at the overlay's address, and the cluster runs no copy of the service.

    ``modelhooks status`` reports first that no kind is installed, and then that nothing calls the hooks.
    """
    status, out = modelhooks(cluster, "status")
    assert status == 2
    assert "none of the eight kinds is installed" in out
    overlay = _tree(tmp_path / "tree", address)
    cluster.install_crds(CRDS)
    cluster.kubectl("apply", "--server-side", "-k", str(overlay))
    cluster.wait_established(f"crd/{MODEL}")
    cluster.kubectl("apply", "-f", str(ROOT / "examples/llmkube/quickstart.yaml"))
    for resource in RESOURCES:  # a kind's storage may still be starting, and the API server then returns an error
        path = f"/apis/{resource.api_version}/{resource.plural}"
        wait_until(lambda path=path: cluster.client.get(path).is_success, path)  # type: ignore[misc]  # a default
    status, out = modelhooks(cluster, "status")
    assert status == 1
    assert "discovery-interval" in out
    with Metacontroller(cluster, tmp_path / "metacontroller"):
        wait_until(lambda: _has_condition(cluster), "a condition of the Model")
    (deployment,) = cluster.get("deployments", "-n", SYSTEM)["items"]
    assert deployment["spec"]["replicas"] == 0


def _has_condition(cluster: ControlPlane) -> bool:
    (model,) = cluster.get(MODEL, "-n", "default")["items"]
    return bool(model.get("status", {}).get("conditions"))
