"""Fixtures of the tests beside real controllers, and the rules for skipping them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collected import below
from tests.e2e.conftest import namespace, optional_components
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation, checked
from tests.world import programs

__all__ = ["namespace"]

_HERE = Path(__file__).parent
_PODS = "127.32.0.1/16"
"""Loopback addresses for kwok's pods, so that stand-in servers can listen on a pod's address."""
_AUTOSCALERS = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=1s",
)
"""So that autoscalers follow a change at once, in place of 15 seconds and five minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a program that is not built, unless the programs are required."""
    for item in below(_HERE, items):
        marker = item.get_closest_marker("world")
        if marker and (reason := programs.missing(*marker.args)) is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


# All three end with this package's last test, because other tests may follow in the same process.


@pytest.fixture(scope="package", autouse=True)
def presets() -> Iterator[None]:
    """Use KServe's presets of v0.17, because the endpoint picker of newer ones is not available as a Go module."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MODELHOOKS_KSERVE_PRESETS", "v0.17")
        yield


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One complete control plane for all tests of the package."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), pods=_PODS, controller_flags=_AUTOSCALERS) as cluster:
        yield cluster
        cluster.check()


@pytest.fixture(scope="package")
def installation(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """modelhooks on it, with every optional child kind and every decorator."""
    with checked(control_plane, tmp_path_factory.mktemp("installation"), optional_components()) as installed:
        yield installed
