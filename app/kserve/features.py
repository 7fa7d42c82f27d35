"""Features of KServe v0.20 without effect here, reported by admission and the condition ``FeaturesApplied``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.kserve.names import MAIN
from app.kube.base import Json
from app.kube.objects import ObjectMeta

TLS_SETTING = "enableLLMInferenceServiceTLS"
NO_TLS = f"{TLS_SETTING} of the operator's settings has no effect: requests inside the cluster are not encrypted"
NO_CLAIM = "no ResourceClaimTemplate is made; claim devices in template.resourceClaims"

_DEVICES = "serving.kserve.io/exp-dra-"


def device_annotations(metadata: ObjectMeta) -> list[str]:
    """Return the annotations that ask for devices by dynamic resource allocation."""
    return sorted(key for key in metadata.annotations or {} if key.startswith(_DEVICES))


_SIDECARS = {
    "precise-prefix-cache-scorer": "tokenizer",
    "token-producer": "tokenizer",
    "predicted-latency-producer": "latency predictor",
}
"""Plugins of the endpoint picker that ask another server, by their type, and what they ask."""


def plugins_without_server(inline: Any, pod: Json | None) -> Iterator[tuple[int, str]]:
    """Yield position and problem of each plugin whose server is not a container of the endpoint picker's pod.

    A configuration that is written as a string is not parsed: deep nesting would make that cost seconds.
    """
    plugins = inline.get("plugins") if isinstance(inline, dict) else None
    if any(container.get("name") != MAIN for container in (pod or {}).get("containers") or ()):
        return
    for position, plugin in enumerate(plugins if isinstance(plugins, list) else ()):
        kind = plugin.get("type") if isinstance(plugin, dict) else None
        if isinstance(kind, str) and kind in _SIDECARS:
            yield (
                position,
                f"{kind} needs a {_SIDECARS[kind]}, which is not added here; add it to scheduler.template",
            )
