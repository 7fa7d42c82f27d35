"""Admission webhooks of other projects, served by processes beside the control plane."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.controlplane import ControlPlane


def copy_certificate(cluster: ControlPlane, target: Path) -> None:
    """Write ``tls.crt`` and ``tls.key`` for the loopback address into a new directory."""
    pki = cluster.ca_file.parent
    target.mkdir(parents=True)
    shutil.copy(pki / "server.crt", target / "tls.crt")
    shutil.copy(pki / "server.key", target / "tls.key")


def at_loopback(file: Path, cluster: ControlPlane, port: int) -> list[dict[str, Any]]:
    """Return a module's webhook configurations with a port of this machine instead of a Service."""
    configurations = list(yaml.safe_load_all(file.read_text()))
    ca = base64.b64encode(cluster.ca_file.read_bytes()).decode()
    for webhook in (webhook for configuration in configurations for webhook in configuration["webhooks"]):
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": ca}
    return configurations
