"""Devices that annotations ask for, by dynamic resource allocation, as in KServe v0.20. Source: KS-3.17."""

from collections.abc import Iterable, Iterator

from app.kserve import celselector
from app.kserve.constants import CLAIM_TEMPLATES, MAIN, MODEL_SERVERS
from app.kserve.names import Names
from app.kube import field, merge, podspec
from app.kube.base import Json
from app.kube.child import metadata as child_metadata
from app.kube.names import is_dns1123_label, is_dns1123_subdomain
from app.kube.objects import ObservedMeta
from app.kube.quantity import integer

_PREFIX = "serving.kserve.io/exp-dra-"
_CLASS, _COUNT, _SELECTOR = f"{_PREFIX}device-class", f"{_PREFIX}device-count", f"{_PREFIX}cel-selector"
_CONTAINER = f"{_PREFIX}container-name"
_SUPPORTED = (_CLASS, _COUNT, _SELECTOR, _CONTAINER)
WHOLE_GPUS = ("gpu.nvidia.com",)
"""DeviceClasses of drivers whose devices are GPUs, and not parts of one."""
MAX_DEVICES = 32
"""``AllocationResultsMaxSize`` of the API."""
MAX_SELECTORS = 32
"""``DeviceSelectorsMaxSize`` of the API."""
_ANNOTATIONS = field.METADATA.child("annotations")
CLAIM = "managed-device"
"""Name of the claim in pods."""
_REQUEST = "device"
"""Name of the request in the template."""
_COMPONENT = CLAIM_TEMPLATES.component
NO_CLAIM = (
    f"annotations {_PREFIX}… have no effect, because ResourceClaimTemplates are not declared to Metacontroller: "
    f"install the component {_COMPONENT}, with Kubernetes 1.34 or newer, or claim devices in template.resourceClaims"
)
SOURCE = str(_ANNOTATIONS.key(_CLASS))
COUNT = _ANNOTATIONS.key(_COUNT)


def check(metadata: ObservedMeta) -> Iterator[field.Error]:
    """Require annotations with a DeviceClass, a possible count and the name of a container (KS-3.17)."""
    if not _annotation_keys(metadata):
        return
    device_class, count = _value(metadata, _CLASS), _count(metadata)
    if not device_class:
        yield field.required(_ANNOTATIONS.key(_CLASS), "name the DeviceClass that devices are claimed of")
    elif not is_dns1123_subdomain(device_class):
        yield field.invalid(_ANNOTATIONS.key(_CLASS), device_class, "must be the name of a DeviceClass")
    if count < 1:
        yield field.invalid(_ANNOTATIONS.key(_COUNT), _value(metadata, _COUNT), "must be a positive number")
    elif count > MAX_DEVICES:
        yield field.invalid(_ANNOTATIONS.key(_COUNT), str(count), f"a claim has at most {MAX_DEVICES} devices")
    if _SELECTOR in (metadata.annotations or {}):
        yield from _check_selectors(metadata)
    container = _value(metadata, _CONTAINER)
    if container is not None and not is_dns1123_label(container):
        yield field.invalid(_ANNOTATIONS.key(_CONTAINER), container, "must be the name of a container")


def _check_selectors(metadata: ObservedMeta) -> Iterator[field.Error]:
    """Require selectors to be CEL that the API server accepts, one on each line."""
    path, selectors = _ANNOTATIONS.key(_SELECTOR), _selectors(metadata)
    if not selectors:
        yield field.invalid(path, _value(metadata, _SELECTOR), "must be CEL expressions, one in each line")
    elif len(selectors) > MAX_SELECTORS:
        yield field.invalid(path, f"{len(selectors)} lines", f"a request has at most {MAX_SELECTORS} selectors")
    for selector in selectors[:MAX_SELECTORS]:
        if len(selector.encode(errors="replace")) > celselector.MAX_BYTES:
            yield field.too_long(path, celselector.MAX_BYTES)
        elif problem := celselector.problem(selector):
            several = "; each line is an expression of its own" if len(selectors) > 1 else ""
            yield field.invalid(path, selector, f"{problem}{several}")


def _value(metadata: ObservedMeta, key: str) -> str | None:
    """Return an annotation without white space around it; ``None`` if it is not set."""
    text = (metadata.annotations or {}).get(key)
    return None if text is None else text.strip()


def _count(metadata: ObservedMeta) -> int:
    """Return the number of devices: 1 if it is not set or empty, 0 if it is not a number."""
    return integer(_value(metadata, _COUNT) or "1") or 0


def _selectors(metadata: ObservedMeta) -> list[str]:
    """Return the expressions of which a device has to match each: one in a line."""
    lines = (_value(metadata, _SELECTOR) or "").split("\n")
    return [line.strip() for line in lines if line.strip()]


def device_advice(metadata: ObservedMeta) -> Iterator[field.Advice]:
    """Warn of what the annotations need in the cluster, and of those without a meaning."""
    if device_request(metadata) is not None:
        text = f"needs Kubernetes 1.34 or newer and the component {_COMPONENT}; without them no devices are claimed"
        yield field.advice(_ANNOTATIONS.key(_CLASS), text)
        doubts = (celselector.doubt(selector, _value(metadata, _CLASS) or "") for selector in _selectors(metadata))
        yield from (field.advice(_ANNOTATIONS.key(_SELECTOR), doubt) for doubt in doubts if doubt)
    for key in _annotation_keys(metadata):
        if key not in _SUPPORTED:
            yield field.no_effect(_ANNOTATIONS.key(key), f"use {', '.join(_SUPPORTED)}")


def container_advice(metadata: ObservedMeta, pods: Iterable[Json]) -> Iterator[field.Advice]:
    """Warn of a container that is not in each of the pods as they are written: presets have ``main`` alone."""
    name, pods = _value(metadata, _CONTAINER), [*pods]
    written = [any(container.get("name") == name for container in pod.get("containers") or ()) for pod in pods]
    if name and name != MAIN and not (written and all(written)) and device_request(metadata) is not None:
        yield field.advice(_ANNOTATIONS.key(_CONTAINER), f"a pod without a container {name} does not use its devices")


def _annotation_keys(metadata: ObservedMeta) -> list[str]:
    return sorted(key for key in metadata.annotations or {} if key.startswith(_PREFIX))


def device_request(metadata: ObservedMeta) -> Json | None:
    """Return the request of a ResourceClaimTemplate for valid annotations."""
    if not _annotation_keys(metadata) or any(check(metadata)):
        return None
    exactly: Json = {"deviceClassName": _value(metadata, _CLASS), "count": _count(metadata)}
    if selectors := _selectors(metadata):
        exactly["selectors"] = [{"cel": {"expression": selector}} for selector in selectors]
    return {"name": _REQUEST, "exactly": exactly}


def claimed(metadata: ObservedMeta) -> int:
    """Return the number of devices that annotations claim for each pod; 0 without a claim."""
    request = device_request(metadata)
    return int(request["exactly"]["count"]) if request is not None else 0


def claimed_gpus(metadata: ObservedMeta) -> int:
    """Return the number of claimed devices that are whole GPUs; 0 for classes of which that is not known."""
    return claimed(metadata) if _value(metadata, _CLASS) in WHOLE_GPUS else 0


def with_claims(document: Json, metadata: ObservedMeta, names: Names) -> Json:
    """Claim the devices for the model servers of a spec. A claim of the same name in a pod is the user's own.

    The named container gets them, else the first one of the pod.
    """
    claim = {"name": CLAIM, "resourceClaimTemplateName": names.claim_template}
    for path in MODEL_SERVERS:
        if (pod := merge.find(document, path)) is not None:
            pod = {**pod, "resourceClaims": _extended(pod.get("resourceClaims"), claim)}
            containers: list[Json] = pod.get("containers") or [{}]
            container = _value(metadata, _CONTAINER) or containers[0].get("name", "")
            document = merge.replaced(document, path, podspec.with_container(pod, container, _with_claim))
    return document


def _with_claim(container: Json) -> Json:
    resources = container.get("resources") or {}
    return {**container, "resources": {**resources, "claims": _extended(resources.get("claims"), {"name": CLAIM})}}


def _extended(claims: list[Json] | None, claim: Json) -> list[Json]:
    present = claims or []
    return present if any(item.get("name") == CLAIM for item in present) else [*present, claim]


def claim_template(request: Json, names: Names, namespace: str) -> Json:
    spec = {"spec": {"devices": {"requests": [request]}}}
    return CLAIM_TEMPLATES.build(child_metadata(names.claim_template, namespace, {}), spec=spec)


def asks_for(template: Json, request: Json) -> bool:
    """Report whether a template claims the devices of a request, under any name: earlier releases had another."""
    requests = merge.find(template, ("spec", "spec", "devices", "requests"))
    present = requests[0].get("exactly") if isinstance(requests, list) and len(requests) == 1 else None
    default = {"allocationMode": "ExactCount"}
    return present is not None and {**default, **present} == {**default, **request["exactly"]}
