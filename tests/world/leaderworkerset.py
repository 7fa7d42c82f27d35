"""Start the LeaderWorkerSet controller, with its webhooks, as a process beside the control plane."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml

from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane, answers
from tests.e2e.processes import Process, free_ports, wait_until
from tests.world import programs, webhooks

_MODULE = "sigs.k8s.io/lws"
POD_LABEL = "leaderworkerset.sigs.k8s.io/name"
"""Label of the controller's pods. Upstream's installation restricts the pod webhooks to them, by a patch."""


def start(cluster: ControlPlane, workdir: Path) -> Process:
    """Start the controller, and wait until its webhook sets the defaults of a LeaderWorkerSet."""
    webhooks.copy_certificate(cluster, workdir)
    port, health = free_ports(2)
    config = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(workdir)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    (workdir / "config.yaml").write_text(json.dumps(config))
    addresses = ("--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{health}")
    process = Process(
        "lws",
        [programs.program("lws"), f"--config={workdir / 'config.yaml'}", *addresses],
        workdir / "lws.log",
        os.environ | {"KUBECONFIG": str(cluster.kubeconfig)},
    )
    process.wait_ready(lambda: answers(f"http://127.0.0.1:{health}/readyz"))
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(_configurations(cluster, port)))
    wait_until(lambda: _defaults(cluster), "the webhook of LeaderWorkerSets answers")
    return process


def _configurations(cluster: ControlPlane, port: int) -> list[dict[str, Any]]:
    """Return the module's webhook configurations, for labelled pods only."""
    file = binaries.module_directory("lws", _MODULE) / "config" / "webhook" / "manifests.yaml"
    configurations = webhooks.at_loopback(file, cluster, port)
    for webhook in (webhook for configuration in configurations for webhook in configuration["webhooks"]):
        if webhook["rules"][0]["resources"] == ["pods"]:
            webhook["objectSelector"] = {"matchExpressions": [{"key": POD_LABEL, "operator": "Exists"}]}
    return configurations


def _defaults(cluster: ControlPlane) -> bool:
    template = {"spec": {"containers": [{"name": "main", "image": "example.com/server:1"}]}}
    probe = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "probe"},
        "spec": {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template}},
    }
    dry = ("create", "--dry-run=server", "-n", "default", "-o", "json", "-f", "-")
    done = cluster.kubectl(*dry, input=json.dumps(probe), check=False)
    return done.returncode == 0 and "networkConfig" in json.loads(done.stdout)["spec"]
