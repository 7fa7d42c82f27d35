"""The example on KServe's page about LLMInferenceService, unchanged: each field has its documented effect."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.installation import Installation
from tests.e2e.test_kserve import SERVICES, wait_ready

pytestmark = pytest.mark.e2e

EXAMPLE = """\
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata:
  name: llama-3-70b
spec:
  model:
    uri: gs://models/llama-3-70b
    name: llama-3-70b
    criticality: Critical
  parallelism:
    tensor: 8
    pipeline: 1
"""


def container(containers: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(container for container in containers if container["name"] == name)


def test_the_pages_example(installation: Installation, namespace: str) -> None:
    """The service is ready at its URL, its server has eight GPUs, and its initializer reads from Google Storage."""
    cluster = installation.cluster
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=EXAMPLE)
    wait_ready(cluster, namespace, "llama-3-70b")
    service = cluster.get(SERVICES, "llama-3-70b", "-n", namespace)
    assert service["status"]["url"] == f"http://llama-3-70b-kserve-workload-svc.{namespace}.svc.cluster.local:8000"
    shown = cluster.kubectl("get", "llmisvc", "llama-3-70b", "-n", namespace, "--no-headers").stdout.split()
    assert shown[1:3] == [service["status"]["url"], "True"]
    pod = cluster.get("deployment", "llama-3-70b-kserve", "-n", namespace)["spec"]["template"]["spec"]
    server = container(pod["containers"], "main")
    assert server["args"][:2] == ["--tensor-parallel-size", "8"]
    assert server["resources"] == {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}
    initializer = container(pod["initContainers"], "storage-initializer")
    assert initializer["args"] == ["gs://models/llama-3-70b", "/mnt/models"]
