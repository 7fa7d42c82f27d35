"""Decisions about single fields of the pod: what the user says, what we say otherwise. Source: llmkube spec 3.

All that users embed is cleaned before it is sent: what the API server would not store would look like a change to
Metacontroller at every sync.
"""

from __future__ import annotations

from typing import Any

from app.kube.podspec import each_name_once, normalised
from app.kube.quantity import canonical, canonical_value, is_quantity
from app.kube.stored import clean
from app.llmkube.download import default_pod_security
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.runtimes.runtime import Runtime
from app.settings import Settings
from app.workload.parts import GPURequest, Probes, http_get, probes, tcp_socket, toleration

Json = dict[str, Any]

_CONTAINER_SECURITY: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def requests(spec: InferenceServiceSpec, model: ModelSpec) -> dict[str, str]:
    """CPU and memory; what the service does not say the Model may (appendix B-03)."""
    own, fallback = spec.resources, model.resources
    cpu = (own.cpu if own else "") or (fallback.cpu if fallback else "")
    memory = (own.host_memory or own.memory if own else "") or (fallback.memory if fallback else "")
    # A Model's text is checked by its own hook, which may not have been asked yet.
    return {name: canonical(text) for name, text in (("cpu", cpu), ("memory", memory)) if text and is_quantity(text)}


def environment(variables: list[Json]) -> list[Json]:
    """Each name once; an empty value is left out, because the API server does not store it either."""
    return [_stored(clean(variable)) for variable in each_name_once(variables, moved=True)]


def _stored(variable: Json) -> Json:
    """A variable as the API server writes it, its divisor in canonical text."""
    reference = (variable.get("valueFrom") or {}).get("resourceFieldRef")
    if reference and "divisor" in reference:
        reference["divisor"] = canonical_value(reference["divisor"])
    return _without_empty(variable)


def _without_empty(item: Json) -> Json:
    return {key: value for key, value in item.items() if value != ""}


def by_name(references: list[Json]) -> list[Json]:
    """References to objects by name, each name once."""
    return [clean(reference) for reference in each_name_once(references)]


def tolerations(spec: InferenceServiceSpec, gpus: GPURequest) -> list[Json]:
    """The GPU's first, then the user's, with or without a GPU (T-03)."""
    own = [toleration(gpus)] if gpus.count else []
    return own + [_without_empty(clean(item)) for item in spec.tolerations]


def container_probes(spec: InferenceServiceSpec, runtime: Runtime, port: int) -> Probes:
    """The runtime's probes; those of the user replace them one by one, each as a whole."""
    generated = probes(http_get(runtime.health, port) if runtime.health else tcp_socket(port))
    own = spec.probe_overrides
    if own is None:
        return generated
    return Probes(
        startup=_probe(own.startup) or generated.startup,
        liveness=_probe(own.liveness) or generated.liveness,
        readiness=_probe(own.readiness) or generated.readiness,
    )


def _probe(own: Json | None) -> Json | None:
    """A probe as it is stored: 0 means the API server's default, an empty host or path means none."""
    if own is None:
        return None
    fields = {key: value for key, value in clean(own).items() if value != 0}
    return {key: _handler(value) if key in ("httpGet", "tcpSocket") else value for key, value in fields.items()}


def _handler(value: Any) -> Any:
    return _without_empty(value) if isinstance(value, dict) else value


def security(spec: InferenceServiceSpec, settings: Settings) -> Json:
    """Of the pod: what the user wrote, as a whole, so without our ``fsGroup``."""
    if spec.pod_security_context is None:
        return default_pod_security(settings)
    return normalised(clean(spec.pod_security_context))


def container_security(spec: InferenceServiceSpec) -> Json:
    """Of the server's container: what the user wrote, as a whole, even when that is empty."""
    if spec.security_context is None:
        return _CONTAINER_SECURITY
    return normalised(clean(spec.security_context))
