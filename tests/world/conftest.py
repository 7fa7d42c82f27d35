"""Fixtures of the tests beside real controllers, and the rules for skipping them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import installation, namespace
from tests.e2e.controlplane import ControlPlane
from tests.world import programs

__all__ = ["installation", "namespace"]

_HERE = Path(__file__).parent
_PODS = "127.32.0.1/16"
"""Loopback addresses for kwok's pods, so that stand-in servers can listen on a pod's address."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a program that is not built, unless the programs are required."""
    for item in items:
        marker = item.get_closest_marker("world")
        if marker and item.path.is_relative_to(_HERE) and (reason := programs.missing(*marker.args)) is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def presets() -> Iterator[None]:
    """Use KServe's presets of v0.17, because the endpoint picker of newer ones is not available as a Go module."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MODELHOOKS_KSERVE_PRESETS", "v0.17")
        yield


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One complete control plane for all tests of the session."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), pods=_PODS) as cluster:
        yield cluster
        cluster.check()
