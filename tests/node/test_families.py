"""Models on the node or on a volume: llmaz' `host://` and KServe's `pvc://`."""

from __future__ import annotations

import pytest

from tests.node import samples
from tests.node.world import World, restricted

pytestmark = pytest.mark.node


def test_llmaz_serves_a_file_of_the_node(installed: World, namespace: str) -> None:
    installed.apply(namespace, samples.runtime("mini"), samples.open_model("hosted", installed.host_model))
    installed.apply(namespace, samples.playground("hosted", "hosted", "mini"))
    installed.wait_true("playgrounds", "hosted", namespace, "Available")
    assert installed.ask(f"http://hosted-lb.{namespace}:8080")["choices"]


def test_kserve_serves_a_folder_of_a_volume(installed: World, namespace: str) -> None:
    """The container runs with the presets' security context: the image's user, and no capabilities."""
    folder = installed.host_model.parent
    installed.apply(namespace, samples.volume("weights", folder.parent), samples.claim("weights", "weights"))
    installed.apply(namespace, samples.llm_service("mounted", f"pvc://weights/{folder.name}"))
    installed.wait_true("llminferenceservices", "mounted", namespace)
    answer = installed.ask(f"http://mounted-kserve-workload-svc.{namespace}:8000", model="mounted")
    assert answer["model"] == "mounted"
    (pod,) = installed.pods(namespace, "app.kubernetes.io/name=mounted")
    (process,) = installed.processes(pod, "llama-server")
    restricted(process, 1000)
