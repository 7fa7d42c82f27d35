"""Manifests of how-to pages for other projects' kinds: the API server accepts them with these projects' CRDs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from tests.e2e.installation import ROOT, Installation

pytestmark = pytest.mark.e2e

HOWTO = ROOT / "docs" / "howto"
PAGES = {
    "keys.md": {"Secret", "SecurityPolicy", "GatewayConfig", "BackendTrafficPolicy", "AIServiceBackend"},
    "alerts.md": {"PrometheusRule", "PodMonitor"},
    "load.md": {"Job", "InferenceService"},
}
"""Pages, and kinds that each has."""


def blocks(page: str) -> list[Json]:
    text = (HOWTO / page).read_text()
    texts = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [document for block in texts for document in yaml.safe_load_all(block)]


@pytest.mark.parametrize("page", PAGES)
def test_the_manifests_of_a_page_are_accepted(installation: Installation, namespace: str, page: str) -> None:
    """A strict dry run refuses unknown fields and what the rules of the CRDs forbid."""
    objects = [document for document in blocks(page) if "kind" in document and document["kind"] != "Kustomization"]
    assert {document["kind"] for document in objects} >= PAGES[page]
    for document in objects:
        document["metadata"]["namespace"] = namespace
        done = installation.cluster.kubectl(
            "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", input=yaml.safe_dump(document)
        )
        assert "Warning" not in done.stderr


def test_the_gateway_of_the_component_gets_the_counting_of_tokens(installation: Installation, tmp_path: Path) -> None:
    """By the patch of the page on keys; the GatewayConfig is in the Gateway's namespace, as it has to be."""
    (overlay,) = (document for document in blocks("keys.md") if "patches" in document)
    component = ROOT / "manifests" / "components" / "envoy-ai-gateway"
    overlay["components"] = [os.path.relpath(component, tmp_path)]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    built = yaml.safe_load_all(installation.cluster.kubectl("kustomize", tmp_path).stdout)
    (gateway,) = (item for item in built if item["kind"] == "Gateway")
    (config,) = (document for document in blocks("keys.md") if document.get("kind") == "GatewayConfig")
    assert gateway["metadata"]["annotations"] == {"aigateway.envoyproxy.io/gateway-config": config["metadata"]["name"]}
    assert gateway["metadata"]["namespace"] == config["metadata"]["namespace"]
    metadata = [cost["metadataKey"] for cost in config["spec"]["globalLLMRequestCosts"]]
    (limits,) = (document for document in blocks("keys.md") if document.get("kind") == "BackendTrafficPolicy")
    (charged, _) = limits["spec"]["rateLimit"]["global"]["rules"]
    assert charged["cost"]["response"]["metadata"]["key"] in metadata
