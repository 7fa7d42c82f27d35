"""KEDA's webhook for ScaledObjects as a process beside the control plane. Nothing here scales."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane, answers
from tests.e2e.processes import Process, free_ports
from tests.world import programs, webhooks

CONFIGURATION = "keda-admission"
_MODULE = "github.com/kedacore/keda/v2"
_RESOURCES = ["scaledobjects"]


def start(cluster: ControlPlane, workdir: Path) -> Process:
    """Start it. Unlike in KEDA's own installation, the API server refuses what it cannot ask the webhook about."""
    webhooks.copy_certificate(cluster, workdir)
    port, health = free_ports(2)
    process = Process(
        "keda",
        [
            programs.program("keda"),
            f"--cert-dir={workdir}",
            f"--port={port}",
            f"--health-probe-bind-address=127.0.0.1:{health}",
        ],
        workdir / "keda.log",
        os.environ | {"KUBECONFIG": str(cluster.kubeconfig)},
    )
    process.wait_ready(lambda: answers(f"http://127.0.0.1:{health}/readyz"))
    file = binaries.module_directory("keda", _MODULE) / "config" / "webhooks" / "validation_webhooks.yaml"
    (configuration,) = webhooks.at_loopback(file, cluster, port)
    served = [webhook for webhook in configuration["webhooks"] if webhook["rules"][0]["resources"] == _RESOURCES]
    configuration["webhooks"] = [{**webhook, "failurePolicy": "Fail"} for webhook in served]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(configuration))
    return process
