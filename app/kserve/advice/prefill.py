"""Warnings about prefill servers whose key-value caches do not reach the decode servers: both compute each prompt."""

import json
from collections.abc import Iterator

from app.kserve import arguments
from app.kserve.constants import MAIN, ROUTING_SIDECAR
from app.kserve.kvcache import FLAG
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec
from app.kube.base import Json
from app.kube.field import SPEC, Advice, Path, advice
from app.kube.podspec import container_named
from app.workload.engines.commandline import options
from app.workload.engines.engine import engine_named

_HOST = "VLLM_NIXL_SIDE_CHANNEL_HOST"
_PRESET = "nixlv2"
"""The connector of the routing sidecar in every preset."""
_CONNECTORS = {
    "nixlv2": ("Nixl",),
    "nixl": ("Nixl",),
    "lmcache": ("LMCache",),
    "mooncake": ("Mooncake",),
    "shared-storage": ("SharedStorage", "Example"),
}
"""Beginnings of the names of vLLM's connectors, by the sidecar's word for them."""
_SIDECAR_OPTIONS = ("--kv-connector", "--connector")
_EXAMPLE = '\'{"kv_connector":"NixlConnector","kv_role":"kv_both"}\''
_UNKNOWN = "?"
"""Stands for a connector that is set by text which cannot be read here."""


def prefill_advice(spec: LLMInferenceServiceSpec, based: bool) -> Iterator[Advice]:
    """Warn of each side without a connector, or with another than the sidecar's; a base may have what is missing."""
    if spec.prefill is None or spec.scheduler is None:
        return
    sidecar = _sidecar(spec.template or {})
    for workload, path in spec.workloads():
        for pod, pod_path in workload.pods(path):
            if pod is not None or pod_path == path.child("template"):
                yield from _side(container_named(pod, MAIN) or {}, pod_path, sidecar, based)


def _side(container: Json, path: Path, sidecar: str, based: bool) -> Iterator[Advice]:
    """Warn of a server whose caches are not moved: without a connector, with another one, or without an address."""
    engine = engine_named(container.get("image") or "")
    if engine is not None and engine.name != "vllm":
        return
    configured = connectors(container)
    if not configured:
        if not based:
            message = f"the server has no KV connector, so each prompt is computed twice: add {FLAG} {_EXAMPLE} to args"
            yield advice(path, message)
        return
    expected = _CONNECTORS.get(sidecar, ())
    named = [name for name in configured if name != _UNKNOWN]
    if expected and named and _UNKNOWN not in configured and not any(name.startswith(expected) for name in named):
        yield advice(path, f"the connector {named[0]} is not the routing sidecar's, {sidecar}, so no cache is moved")
    elif any(name.startswith("Nixl") for name in named) and not based and not _has_host(container):
        message = f"env has no {_HOST}, so other pods do not find the server's caches: set it to status.podIP"
        yield advice(path, message)


def _has_host(container: Json) -> bool:
    named = any(variable.get("name") == _HOST for variable in container.get("env") or ())
    return named or bool(container.get("envFrom")) or _HOST in str(container.get("command") or "")


def _sidecar(pod: Json) -> str:
    """Return the routing sidecar's connector: the last of its options, or the presets'."""
    sidecar = next((c for c in pod.get("initContainers") or () if (c or {}).get("name") == ROUTING_SIDECAR), None) or {}
    texts = [str(part) for part in (*(sidecar.get("command") or ()), *(sidecar.get("args") or ()))]
    values = [value for _, option, value in options(texts, SPEC) if option in _SIDECAR_OPTIONS]
    return values[-1] if values else _PRESET


def connectors(container: Json) -> list[str]:
    """Return the KV connectors that a server is started with; :data:`_UNKNOWN` for those that cannot be read."""
    names: list[str] = []
    written = arguments.options(container).all(FLAG)
    for occurrence in written:
        if not occurrence.keys:
            names += _named(occurrence.value)
        elif occurrence.keys[0].replace("-", "_") == "kv_connector":
            names.append(occurrence.value)
    return names or ([_UNKNOWN] if arguments.may_hide(container, FLAG) else [])


def _named(config: str) -> list[str]:
    """Return the connector of a configuration, and those that it is made of."""
    try:
        settings = json.loads(config)
    except ValueError:
        return [_UNKNOWN]
    if not isinstance(settings, dict) or not isinstance(settings.get("kv_connector"), str):
        return [_UNKNOWN]
    extra = settings.get("kv_connector_extra_config")
    parts = extra.get("connectors") if isinstance(extra, dict) else None
    names = [part.get("kv_connector") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    connector = settings["kv_connector"]
    return [str(name) for name in names] or [_UNKNOWN if connector == "MultiConnector" else connector]
