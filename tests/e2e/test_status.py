"""``modelhooks status`` and ``modelhooks explain --live`` on a real API server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import wait_until
from tests.e2e.test_llmkube import QUICKSTART, apply, condition, wait_ready

pytestmark = pytest.mark.e2e


def modelhooks(cluster: ControlPlane, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, str]:
    """Return exit status and output of the command, run with the kubeconfig."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig or cluster.kubeconfig), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_what_is_ready_and_what_is_not(installation: Installation, namespace: str, reading: Path) -> None:
    """The command lists a ready service, and one whose Model is missing with the cause; read rights are sufficient."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "model/smollm", "inferenceservice/smollm-chat")
    status, out = modelhooks(cluster, "status", "--namespace", namespace, kubeconfig=reading)
    assert status in (0, 1), out  # cluster-scoped objects of other tests may exist
    line = next(line for line in out.splitlines() if "inferenceservice.inference.llmkube.dev/smollm-chat" in line)
    assert line.split() == [namespace, "inferenceservice.inference.llmkube.dev/smollm-chat", "True"]

    lonely = {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "lonely", "namespace": namespace},
        "spec": {"modelRef": "nowhere"},
    }
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(lonely))
    where = ("inferenceservice.inference.llmkube.dev", "lonely", "-n", namespace)
    wait_until(lambda: bool(condition(cluster.get(*where), "Ready")), "an answer for the lonely service")
    status, out = modelhooks(cluster, "status", "--namespace", namespace, kubeconfig=reading)
    assert status == 1
    line = next(line for line in out.splitlines() if line.split()[1].endswith("/lonely"))
    assert "False" in line
    assert "nowhere" in line


def test_an_object_is_explained_from_the_cluster(installation: Installation, namespace: str, reading: Path) -> None:
    """The output also has its pods and the next command."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "model/smollm", "inferenceservice/smollm-chat")
    live = ("explain", "--live", "inferenceservices", "smollm-chat", "--namespace", namespace)
    status, out = modelhooks(cluster, *live, kubeconfig=reading)
    assert status == 0, out
    assert f"InferenceService/smollm-chat in namespace {namespace}: ready (InferenceReady)" in out
    assert "(not among the files)" not in out
    (pod,) = [line for line in out.splitlines() if line.strip().startswith("smollm-chat-")]
    assert pod.endswith(": Running, ready")
    assert "  next: kubectl describe inferenceservice.inference.llmkube.dev/smollm-chat" in out
