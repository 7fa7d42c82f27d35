"""Fixtures of the end-to-end suite, and when it is skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the control plane where it cannot be had, unless `MODELHOOKS_E2E=required` wants a failure."""
    if os.environ.get("MODELHOOKS_E2E") == "required" or (reason := binaries.missing()) is None:
        return
    for item in items:
        # The hook is called for the whole session, other directories' tests included.
        if item.path.is_relative_to(_HERE) and item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One complete control plane for all tests of the session: each works in a namespace of its own."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as cluster:
        yield cluster
        cluster.check()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace on the shared control plane."""
    name = control_plane.create_namespace()
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")
