"""Convert objects between ``serving.kserve.io/v1alpha1`` and ``v1alpha2``.

The versions differ in two places. ``criticality`` of the model and of adapters is a field in v1alpha1, and in v1alpha2
an annotation of KServe. ``router.scheduler.pool.spec`` has one target port in v1alpha1, and up to eight in v1alpha2.
Fields that v1alpha1 lacks are kept in annotations of the v1alpha1 object and come back (KS-1.7).
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
import orjson
from msgspec import Meta, Raw

from app.conversion import ConversionError
from app.hooks.protocol import Parent
from app.kserve.constants import GROUP
from app.kserve.llminferenceservice import types, v1alpha1
from app.kube.base import Json, KubeModel
from app.kube.modelfields import fields
from app.kube.reading.rawchecks import depth_exceeds

V1ALPHA1, V1ALPHA2 = f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2"

MODEL_CRITICALITY = "internal.serving.kserve.io/model-criticality"
LORA_CRITICALITIES = "internal.serving.kserve.io/lora-criticalities"
"""KServe's annotations of v1alpha2. The second is a JSON object by the position of the adapter."""
PRESERVED_LORA_CRITICALITIES = "modelhooks.dev/lora-criticalities"
"""Annotation of v1alpha1: the value of :data:`LORA_CRITICALITIES` if the adapters cannot hold all of it."""
PRESERVED_PORTS = "modelhooks.dev/target-ports"
"""Annotation of v1alpha1: the target ports of the pool except the first, as a JSON list."""
PRESERVED_PROTOCOL = "modelhooks.dev/app-protocol"
"""Annotation of v1alpha1: ``appProtocol`` of the pool."""
OBSOLETE = "modelhooks.dev/converted-from"
"""Annotation of earlier releases. It held any part of a spec, so it could hold what no schema admits; it is removed."""

_VERSIONS = (V1ALPHA1, V1ALPHA2)
_KINDS = frozenset({"LLMInferenceService", "LLMInferenceServiceConfig"})
_CRITICALITIES = msgspec.json.Decoder(dict[str, str])


def convert(document: Json, api_version: str) -> Json:
    """Return the object in an API version; the object itself if it has that version already. The input is not changed.

    Raises :class:`ConversionError` for another kind or API version, and for fields of the wrong type.
    """
    version, kind = str(document.get("apiVersion")), str(document.get("kind"))
    if kind not in _KINDS or version not in _VERSIONS or api_version not in _VERSIONS:
        raise ConversionError(f"cannot convert {kind} of {version} to {api_version}")
    if version == api_version:
        return document
    metadata = _object(document.get("metadata"), "metadata")
    before = _object(metadata.get("annotations"), "metadata.annotations")
    annotations = _without(before, OBSOLETE)
    if document.get("spec") is not None:
        translate = _to_v1alpha1 if api_version == V1ALPHA1 else _to_v1alpha2
        document = {**document, "spec": translate(_object(document["spec"], "spec"), annotations)}
    if annotations != before:
        metadata = _without(metadata, "annotations") | ({"annotations": annotations} if annotations else {})
        document = {**document, "metadata": metadata}
    return {**document, "apiVersion": api_version}


def _to_v1alpha1(spec: Json, annotations: Json) -> Json:
    """Convert a spec of v1alpha2; like the reverse, this adds and removes annotations in place."""
    spec = _replace(spec, "model", lambda model: _older_model(model, annotations))
    spec = _replace(spec, _POOL, lambda pool: _older_pool(pool, annotations))
    spec = _normalize(spec, v1alpha1.LLMInferenceServiceSpecV1Alpha1, fill=False)
    return _without(spec, "model") if spec.get("model") == {"uri": ""} else spec


def _to_v1alpha2(spec: Json, annotations: Json) -> Json:
    criticalities = annotations.pop(PRESERVED_LORA_CRITICALITIES, "")
    ports, protocol = _ports(annotations.pop(PRESERVED_PORTS, "")), annotations.pop(PRESERVED_PROTOCOL, "")
    spec = {**spec, "model": {"uri": "", **_object(spec.get("model"), "spec.model")}}
    spec = _replace(spec, "model", lambda model: _newer_model(model, criticalities, annotations))
    spec = _replace(spec, _POOL, lambda pool: _newer_pool(pool, ports, protocol))
    return _normalize(spec, types.LLMInferenceServiceSpec, fill=True)


def upgrade(parent: Parent) -> Parent:
    """Convert a parent of v1alpha1 to v1alpha2. If that fails, the spec stays, and its errors are found later."""
    unchanged = msgspec.structs.replace(parent, api_version=V1ALPHA2)
    if depth_exceeds(parent.spec):
        return unchanged
    metadata = {"annotations": parent.metadata.annotations}
    document: Json = {"apiVersion": parent.api_version, "kind": parent.kind, "metadata": metadata}
    try:
        converted = convert({**document, "spec": orjson.loads(memoryview(parent.spec))}, V1ALPHA2)
    except (ConversionError, orjson.JSONDecodeError):
        return unchanged
    changed = msgspec.structs.replace(parent.metadata, annotations=converted["metadata"].get("annotations"))
    return msgspec.structs.replace(unchanged, metadata=changed, spec=Raw(orjson.dumps(converted["spec"])))


def with_criticality(spec: Json, annotations: Mapping[str, str] | None) -> Json:
    """Return a spec of v1alpha2 whose model and adapters have the criticalities of the annotations as fields."""
    model = spec.get("model")
    older = _older_model(model if isinstance(model, dict) else {}, dict(annotations or {}))
    return {**spec, "model": older} if older else spec


def adapter_criticalities(annotations: Mapping[str, str], adapters: Any) -> dict[str, str]:
    """Return the criticalities of the adapters of a v1alpha2 object, by position."""
    count = len(adapters) if isinstance(adapters, list) else 0
    return _applicable(annotations.get(LORA_CRITICALITIES, ""), count)


# Normalization: absent and empty are the same value to Go's types, which write one of them.

_OMITTED_IF_EMPTY = frozenset(
    {"labels", "annotations", "variantCost", "formula", "target", "activationTarget", "expert"}
    | {"restoreToOriginalReplicaCount"}
)


def _normalize(value: Json, model: type[KubeModel], *, fill: bool) -> Json:
    """Return an object as Go's types write it: without empty lists and unknown fields.

    ``fill``: with the two fields that they write although they are absent. Otherwise these are removed.
    """
    known_fields = fields(model)
    result: Json = {"scalingModifiers": {}} if fill and model is types.KEDAAdvanced else {}
    for key, item in value.items():
        if key not in known_fields or item == [] or (key in _OMITTED_IF_EMPTY and not item):
            continue
        shape = known_fields[key][1]
        if shape.embedded == "PodSpec" and isinstance(item, dict):
            result[key] = _normalize_pod(item, fill=fill)
        elif shape.model is not None and isinstance(item, dict):
            result[key] = _normalize(item, shape.model, fill=fill)
        elif shape.model is not None and isinstance(item, list):
            result[key] = [_normalize(i, shape.model, fill=fill) if isinstance(i, dict) else i for i in item]
        else:
            result[key] = item
    if not fill and result.get("scalingModifiers") == {}:
        del result["scalingModifiers"]
    return result


def _normalize_pod(pod: Json, *, fill: bool) -> Json:
    if fill:
        return {"containers": None, **pod}
    return pod if pod.get("containers", 0) is not None else _without(pod, "containers")


def _newer_model(model: Json, preserved: str, annotations: Json) -> Json:
    if criticality := model.get("criticality"):
        annotations[MODEL_CRITICALITY] = criticality
    adapters = _adapters(model)
    values = {str(n): value for n, adapter in enumerate(adapters) if (value := _criticality(adapter))}
    if preserved and values == _applicable(preserved, len(adapters)):
        annotations[LORA_CRITICALITIES] = preserved
    elif values:
        annotations[LORA_CRITICALITIES] = _encode(values)
    rest = [_without(a, "criticality") if _criticality(a) is not None else a for a in adapters]
    return _with_adapters(_without(model, "criticality"), rest)


def _criticality(adapter: Any) -> str | None:
    """Return the criticality of an adapter. The schema admits any value as an adapter."""
    value = adapter.get("criticality") if isinstance(adapter, dict) else None
    return value if isinstance(value, str) else None


def _older_model(model: Json, annotations: Json) -> Json:
    if criticality := annotations.get(MODEL_CRITICALITY):
        del annotations[MODEL_CRITICALITY]
        model = {**model, "criticality": criticality}
    annotation = annotations.get(LORA_CRITICALITIES)
    if not annotation:
        return model
    del annotations[LORA_CRITICALITIES]
    adapters = _adapters(model)
    values = {
        key: value
        for key, value in _applicable(annotation, len(adapters)).items()
        if isinstance(adapters[int(key)], dict)
    }
    if not values or annotation != _encode(values):
        annotations[PRESERVED_LORA_CRITICALITIES] = annotation
    result = [{**a, "criticality": values[str(n)]} if str(n) in values else a for n, a in enumerate(adapters)]
    return _with_adapters(model, result)


def _encode(criticalities: dict[str, str]) -> str:
    return orjson.dumps(criticalities, option=orjson.OPT_SORT_KEYS).decode()


def _applicable(annotation: str, adapters: int) -> dict[str, str]:
    """Return the criticalities that an annotation has for so many adapters; empty if it is malformed."""
    try:
        values = _CRITICALITIES.decode(annotation)
    except (msgspec.DecodeError, TypeError):
        return {}
    return {key: value for key in map(str, range(adapters)) if (value := values.get(key))}


def _adapters(model: Json) -> list[Any]:
    lora = _object(model.get("lora"), "spec.model.lora")
    adapters = lora.get("adapters")
    return adapters if isinstance(adapters, list) else []


def _with_adapters(model: Json, adapters: list[Any]) -> Json:
    return {**model, "lora": {**model["lora"], "adapters": adapters}} if adapters else model


_POOL = "router.scheduler.pool.spec"
_SELECTOR, _PORTS = f"spec.{_POOL}.selector", f"spec.{_POOL}.targetPorts"


def _newer_pool(pool: Json, other_ports: list[int], protocol: str) -> Json:
    result: Json = {}
    if "selector" in pool:
        selector = _object(pool["selector"], _SELECTOR)
        result["selector"] = {"matchLabels": selector} if selector else {}
    if (number := pool.get("targetPortNumber")) is not None:
        result["targetPorts"] = [{"number": n} for n in (number, *(n for n in other_ports if n != number))]
    if protocol:
        result["appProtocol"] = protocol
    picker = _picker(pool, "extensionRef", v1alpha1.ExtensionReference)
    if (number := picker.pop("portNumber", None)) is not None:
        picker["port"] = {"number": number}
    return {**result, "endpointPickerRef": picker} if picker else result


def _older_pool(pool: Json, annotations: Json) -> Json:
    selector = _object(pool.get("selector"), _SELECTOR)
    result: Json = {"selector": _object(selector.get("matchLabels"), f"{_SELECTOR}.matchLabels")}
    ports = pool.get("targetPorts") or []
    if not isinstance(ports, list):
        raise ConversionError(f"{_PORTS} must be a list")
    numbers = [_object(port, f"{_PORTS}[{n}]").get("number") for n, port in enumerate(ports)]
    if numbers:
        result["targetPortNumber"] = numbers[0]
    if numbers[1:]:
        annotations[PRESERVED_PORTS] = orjson.dumps(ports[1:]).decode()
    if isinstance(protocol := pool.get("appProtocol"), str):
        annotations[PRESERVED_PROTOCOL] = protocol
    picker = _picker(pool, "endpointPickerRef", types.EndpointPickerReference)
    if port := _object(picker.pop("port", None), f"spec.{_POOL}.endpointPickerRef.port"):
        picker["portNumber"] = port.get("number")
    return {**result, "extensionRef": {"name": "", "failureMode": None, **picker}}


class _Port(msgspec.Struct):
    number: Annotated[int, Meta(ge=1, le=65535)]


_OTHER_PORTS = msgspec.json.Decoder(Annotated[list[_Port], Meta(max_length=7)])


def _ports(annotation: str) -> list[int]:
    """Return the ports of an annotation; empty unless v1alpha2 admits all of them, since clients can write it."""
    try:
        return list(dict.fromkeys(port.number for port in _OTHER_PORTS.decode(annotation)))
    except (msgspec.DecodeError, TypeError):
        return []


def _picker(pool: Json, key: str, model: type[KubeModel]) -> Json:
    picker = _object(pool.get(key), f"spec.{_POOL}.{key}")
    return {
        key: value
        for key, value in picker.items()
        if key in fields(model) and value is not None and (key, value) != ("name", "")
    }


def _replace(document: Json, path: str, change: Callable[[Json], Json], *, parent: str = "spec") -> Json:
    """Return a copy of the document with a changed object at ``path``; the same document without such an object."""
    key, _, rest = path.partition(".")
    if document.get(key) is None:
        return document
    location = f"{parent}.{key}"
    child = _object(document[key], location)
    return {**document, key: _replace(child, rest, change, parent=location) if rest else change(child)}


def _object(value: Any, path: str) -> Json:
    """Return the value, or an empty object if it is absent. Raises :class:`ConversionError` for another type."""
    if not isinstance(value, dict | None):
        raise ConversionError(f"{path} must be an object")
    return value or {}


def _without(value: Json, *keys: str) -> Json:
    return {key: item for key, item in value.items() if key not in keys}
