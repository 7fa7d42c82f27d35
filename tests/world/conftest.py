"""Fixtures of the tests beside real controllers, and when one is skipped."""

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
"""Addresses of this machine: servers that stand in for those of kwok's pods can listen there."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a program that is not built, by its name, unless it must be."""
    for item in items:
        marker = item.get_closest_marker("world")
        if marker and item.path.is_relative_to(_HERE) and (reason := programs.missing(*marker.args)) is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def presets() -> Iterator[None]:
    """KServe's presets of v0.17: the endpoint picker of newer ones is in no Go module."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MODELHOOKS_KSERVE_PRESETS", "v0.17")
        yield


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One complete control plane for all tests of the session."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), pods=_PODS) as cluster:
        yield cluster
        cluster.check()
