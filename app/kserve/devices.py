"""Devices that annotations ask for, by dynamic resource allocation, as in KServe v0.20. Source: KS-3.17."""

from collections.abc import Iterator

from app.kserve import celselector
from app.kserve.constants import CLAIM_TEMPLATES, MAIN, MODEL_SERVERS
from app.kserve.names import Names
from app.kube import field, merge, podspec
from app.kube.base import Json
from app.kube.child import metadata as child_metadata
from app.kube.names import is_dns1123_subdomain
from app.kube.objects import ObservedMeta
from app.kube.quantity import integer

_PREFIX = "serving.kserve.io/exp-dra-"
_CLASS, _COUNT, _SELECTOR = f"{_PREFIX}device-class", f"{_PREFIX}device-count", f"{_PREFIX}cel-selector"
WHOLE_GPUS = ("gpu.nvidia.com",)
"""DeviceClasses of drivers whose devices are GPUs, and not parts of one."""
MAX_DEVICES = 32
"""``AllocationResultsMaxSize`` of the API."""
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
    annotations = metadata.annotations or {}
    if not _annotation_keys(metadata):
        return
    device_class, count = annotations.get(_CLASS, ""), annotations.get(_COUNT)
    if not device_class:
        yield field.required(_ANNOTATIONS.key(_CLASS), "name the DeviceClass that devices are claimed of")
    elif not is_dns1123_subdomain(device_class):
        yield field.invalid(_ANNOTATIONS.key(_CLASS), device_class, "must be the name of a DeviceClass")
    if count is not None and (integer(count) or 0) < 1:
        yield field.invalid(_ANNOTATIONS.key(_COUNT), count, "must be a positive number")
    elif count is not None and (integer(count) or 0) > MAX_DEVICES:
        yield field.invalid(_ANNOTATIONS.key(_COUNT), count, f"a claim has at most {MAX_DEVICES} devices")
    if (selector := annotations.get(_SELECTOR)) is not None:
        yield from _check_selector(selector)


def _check_selector(selector: str) -> Iterator[field.Error]:
    path = _ANNOTATIONS.key(_SELECTOR)
    if not selector.strip():
        yield field.invalid(path, selector, "must be a CEL expression")
    elif len(selector.encode(errors="replace")) > celselector.MAX_BYTES:
        yield field.too_long(path, celselector.MAX_BYTES)
    elif problem := celselector.problem(selector):
        yield field.invalid(path, selector, problem)


def device_advice(metadata: ObservedMeta) -> Iterator[field.Advice]:
    """Say what the annotations need in the cluster, and which have no meaning."""
    if device_request(metadata) is not None:
        text = f"needs Kubernetes 1.34 or newer and the component {_COMPONENT}; without them no devices are claimed"
        yield field.advice(_ANNOTATIONS.key(_CLASS), text)
        annotations = metadata.annotations or {}
        selector = annotations.get(_SELECTOR)
        if selector and (doubt := celselector.doubt(selector, annotations[_CLASS])):
            yield field.advice(_ANNOTATIONS.key(_SELECTOR), doubt)
    supported = (_CLASS, _COUNT, _SELECTOR)
    for key in _annotation_keys(metadata):
        if key not in supported:
            yield field.no_effect(_ANNOTATIONS.key(key), f"use {', '.join(supported)}")


def _annotation_keys(metadata: ObservedMeta) -> list[str]:
    return sorted(key for key in metadata.annotations or {} if key.startswith(_PREFIX))


def device_request(metadata: ObservedMeta) -> Json | None:
    """Return the request of a ResourceClaimTemplate for valid annotations."""
    if not _annotation_keys(metadata) or any(check(metadata)):
        return None
    annotations = metadata.annotations or {}
    exactly: Json = {"deviceClassName": annotations[_CLASS], "count": integer(annotations.get(_COUNT, "1"))}
    if selector := annotations.get(_SELECTOR):
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": _REQUEST, "exactly": exactly}


def claimed(metadata: ObservedMeta) -> int:
    """Return the number of devices that annotations claim for each pod; 0 without a claim."""
    request = device_request(metadata)
    return int(request["exactly"]["count"]) if request is not None else 0


def claimed_gpus(metadata: ObservedMeta) -> int:
    """Return the number of claimed devices that are whole GPUs; 0 for classes of which that is not known."""
    return claimed(metadata) if (metadata.annotations or {}).get(_CLASS) in WHOLE_GPUS else 0


def with_claims(document: Json, names: Names) -> Json:
    """Claim the devices for the model servers of a spec. A claim of the same name in a pod is the user's own."""
    claim = {"name": CLAIM, "resourceClaimTemplateName": names.claim_template}
    for path in MODEL_SERVERS:
        if (pod := merge.find(document, path)) is not None:
            pod = {**pod, "resourceClaims": _extended(pod.get("resourceClaims"), claim)}
            document = merge.replaced(document, path, podspec.with_container(pod, MAIN, _with_claim))
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
    """Report whether a template claims the devices of a request, by whatever name: earlier releases had another."""
    requests = merge.find(template, ("spec", "spec", "devices", "requests"))
    present = requests[0].get("exactly") if isinstance(requests, list) and len(requests) == 1 else None
    default = {"allocationMode": "ExactCount"}
    return present is not None and {**default, **present} == {**default, **request["exactly"]}
