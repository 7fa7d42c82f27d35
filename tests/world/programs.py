"""The programs of other projects, built from their Go modules and cached beside those of the control plane.

`python -m tests.world.programs` builds what is missing.
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

from tests.e2e import binaries
from tests.e2e.binaries import Package
from tests.node.programs import ADAPTER
from tests.world import kedascaling, traefik

_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_PACKAGES: dict[str, dict[str, Package]] = {
    "adapter": ADAPTER,
    "argocd": {"argocd": ("argocd", ".")},
    "envoygateway": {"egctl": ("envoygateway", "github.com/envoyproxy/gateway/cmd/egctl")},
    "istio": {"istioroutes": ("istio", ".")},
    "keda": {"keda": ("keda", ".")},
    "keda-scaling": {"keda-operator": ("keda", "./cmd/operator"), "keda-adapter": ("keda", "./cmd/adapter")},
    "lws": {"lws": ("lws", "sigs.k8s.io/lws/cmd")},
    "picker": {"epp": ("picker", "."), "extproc": ("picker", "./extproc")},
    "prometheus": {"prometheus": ("prometheus", "github.com/prometheus/prometheus/cmd/prometheus")},
    "prometheus-operator": {"prometheus-operator": ("prometheus-operator", f"{_OPERATOR}/cmd/operator")},
    "traefik": {"traefik": ("traefik", "./cmd/traefik")},
}
"""Packages by the cache directory that holds their programs."""
_PATCHES = {"keda-scaling": kedascaling.patch, "traefik": traefik.patch}
_DIRECTORIES = {program: name for name, packages in _PACKAGES.items() for program in packages}
PROGRAMS = tuple(_DIRECTORIES)
REQUIRED = os.environ.get("MODELHOOKS_WORLD") == "required"
"""Build missing programs instead of skipping their tests."""


def program(name: str) -> Path:
    """Return the path of one of `PROGRAMS`; build it if the cache does not have it."""
    directory = _DIRECTORIES[name]
    return binaries.built(directory, _PACKAGES[directory], _PATCHES.get(directory)) / name


def missing(*names: str) -> str | None:
    """Return why tests that need these programs cannot run here, or None."""
    if REQUIRED:
        return None
    if (reason := binaries.missing()) is not None or shutil.which("go") is None:
        return reason or "there is no Go toolchain to build it"
    absent = [name for name in names if not _is_built(name)]
    return f"not built: {', '.join(absent)} (make world-test)" if absent else None


@functools.cache
def _is_built(name: str) -> bool:
    return binaries.build_directory(_DIRECTORIES[name], _PACKAGES[_DIRECTORIES[name]]).is_dir()


if __name__ == "__main__":
    for each in PROGRAMS:
        print(program(each))
