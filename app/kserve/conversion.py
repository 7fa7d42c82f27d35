"""``serving.kserve.io/v1alpha1`` and ``v1alpha2``: the same object in the other version.

The two differ in two places. ``criticality`` of models and adapters is a field of v1alpha1 only; v1alpha2 has it in the
annotations that KServe's own conversion uses. ``router.scheduler.pool.spec`` has the form of the InferencePool of its
time: v1alpha2's, with one target port, or v1's, with up to eight. What v1alpha1 has no field for stays with it in an
annotation of ours, so that nothing is lost on the way there and back: see docs/reference/kserve.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import orjson
from msgspec import Raw

from app.conversion import ConversionError
from app.hooks.protocol import Parent
from app.kserve.llminferenceservice import types, v1alpha1
from app.kserve.names import GROUP
from app.kube.base import Json, KubeModel
from app.kube.limits import depth_exceeds
from app.kube.modelfields import fields

V1ALPHA1, V1ALPHA2 = f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2"

MODEL_CRITICALITY = "internal.serving.kserve.io/model-criticality"
LORA_CRITICALITIES = "internal.serving.kserve.io/lora-criticalities"
"""KServe's annotations on objects of v1alpha2; the latter is a JSON object by the adapter's position."""
KEPT_LORA_CRITICALITIES = "modelhooks.dev/lora-criticalities"
"""On objects of v1alpha1: KServe's annotation, where it says more than the adapters could be given."""
KEPT_PORTS = "modelhooks.dev/target-ports"
"""On objects of v1alpha1: JSON of the pool's target ports after the first, a list as in v1alpha2."""
KEPT_SPELLING = "modelhooks.dev/converted-from"
"""On either: JSON of the parts of the spec that the other version spells differently, such as an empty list that is
absent there, as pairs of path and value (``null``: absent). They come back unless somebody filled them in meanwhile."""


_VERSIONS = (V1ALPHA1, V1ALPHA2)
_KINDS = frozenset({"LLMInferenceService", "LLMInferenceServiceConfig"})


def convert(document: Json, api_version: str) -> Json:
    """The object in the other version, or itself when it is of that version already. The input is left as it is.

    Raises :class:`ConversionError` for another kind or API version, and for parts that are not of the type that they
    have to be.
    """
    version, kind = str(document.get("apiVersion")), str(document.get("kind"))
    if kind not in _KINDS or version not in _VERSIONS or api_version not in _VERSIONS:
        raise ConversionError(f"{kind} of {version} is not converted to {api_version}")
    if version == api_version:
        return document
    metadata = _object(document.get("metadata"), "metadata")
    before = _object(metadata.get("annotations"), "metadata.annotations")
    if document.get("spec") is None:
        return {**document, "apiVersion": api_version}
    original = _object(document["spec"], "spec")
    after = _without(before, KEPT_SPELLING)
    spec = _translated(original, after, api_version)
    back = _translated(spec, dict(after), version)
    if (text := before.get(KEPT_SPELLING)) is not None:
        restored = _respelled(spec, text)
        if _is_same(restored, back, after, version):
            spec = restored
            back = _translated(spec, dict(after), version)
    if spelling := list(_spelling(original, back, ())):
        after[KEPT_SPELLING] = orjson.dumps(spelling).decode()
    if after != before:
        metadata = _without(metadata, "annotations") | ({"annotations": after} if after else {})
        document = {**document, "metadata": metadata}
    return {**document, "apiVersion": api_version, "spec": spec}


def _translated(spec: Json, annotations: Json, api_version: str) -> Json:
    """The spec in the form of the other version, as KServe writes it; ``annotations`` change with it."""
    if api_version == V1ALPHA1:
        spec = _at(spec, "model", lambda model: _older_model(model, annotations))
        spec = _at(spec, _POOL, lambda pool: _older_pool(pool, annotations))
        spec = _written(spec, v1alpha1.LLMInferenceServiceSpec, fill=False)
        return _without(spec, "model") if spec.get("model") == {"uri": ""} else spec
    criticalities, ports = (annotations.pop(key, "") for key in (KEPT_LORA_CRITICALITIES, KEPT_PORTS))
    spec = {**spec, "model": {"uri": "", **_object(spec.get("model"), "spec.model")}}
    spec = _at(spec, "model", lambda model: _newer_model(model, criticalities, annotations))
    spec = _at(spec, _POOL, lambda pool: _newer_pool(pool, _ports(ports)))
    return _written(spec, types.LLMInferenceServiceSpec, fill=True)


def upgrade(parent: Parent) -> Parent:
    """A parent of v1alpha1 in v1alpha2. One that cannot be converted keeps its spec, which is judged as it is."""
    unchanged = msgspec.structs.replace(parent, api_version=V1ALPHA2)
    if depth_exceeds(parent.spec):
        return unchanged
    document: Json = {"apiVersion": parent.api_version, "kind": parent.kind}
    try:
        document |= {
            "spec": orjson.loads(memoryview(parent.spec)),
            "metadata": {"annotations": parent.metadata.annotations},
        }
        converted = convert(document, V1ALPHA2)
    except (ConversionError, orjson.JSONDecodeError):
        return unchanged
    metadata = msgspec.structs.replace(parent.metadata, annotations=converted["metadata"].get("annotations"))
    spec = Raw(orjson.dumps(converted["spec"]))
    return msgspec.structs.replace(unchanged, metadata=metadata, spec=spec)


def with_criticality(spec: Json, annotations: Mapping[str, str] | None) -> Json:
    """A spec with the criticalities of models and adapters that its object has in annotations, as v1alpha1 has them."""
    kept = {key: text for key, text in (annotations or {}).items() if key in (MODEL_CRITICALITY, LORA_CRITICALITIES)}
    if not kept:
        return spec
    model = spec.get("model")
    return {**spec, "model": _older_model(model if isinstance(model, dict) else {}, kept)}


def adapter_criticalities(annotations: Mapping[str, str], adapters: Any) -> dict[str, str]:
    """What an object of v1alpha2 says of its adapters, by their position."""
    count = len(adapters) if isinstance(adapters, list) else 0
    return _applicable(annotations.get(LORA_CRITICALITIES, ""), count)


# Spelling: what Go's types write for a field that is absent or empty.

_NOT_WRITTEN_EMPTY = frozenset(
    {"labels", "annotations", "variantCost", "formula", "target", "activationTarget", "expert"}
    | {"restoreToOriginalReplicaCount"}
)


def _written(value: Json, model: type[KubeModel], *, fill: bool) -> Json:
    """What Go's types write of an object of that type: no empty lists, no fields that they lack.

    With ``fill`` also what they write for two fields that are absent, which is left out again otherwise.
    """
    known = fields(model)
    written: Json = {"scalingModifiers": {}} if fill and model is types.KEDAAdvanced else {}
    for key, item in value.items():
        if key not in known or item == [] or (key in _NOT_WRITTEN_EMPTY and not item):
            continue
        shape = known[key][1]
        if shape.embedded == "PodSpec" and isinstance(item, dict):
            written[key] = _written_pod(item, fill=fill)
        elif shape.model is not None and isinstance(item, dict):
            written[key] = _written(item, shape.model, fill=fill)
        elif shape.model is not None and isinstance(item, list):
            written[key] = [_written(i, shape.model, fill=fill) if isinstance(i, dict) else i for i in item]
        else:
            written[key] = item
    if not fill and written.get("scalingModifiers") == {}:
        del written["scalingModifiers"]
    return written


def _written_pod(pod: Json, *, fill: bool) -> Json:
    if fill:
        return {"containers": None, **pod}
    return pod if pod.get("containers", 0) is not None else _without(pod, "containers")


def _spelling(original: Any, back: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Path and value of what came back otherwise: ``null`` for what was absent, which is what ``null`` means."""
    if original is back:
        return
    if isinstance(original, dict) and isinstance(back, dict):
        for key in original.keys() | back.keys():
            yield from _spelling(original.get(key), back.get(key), (*path, key))
    elif isinstance(original, list) and isinstance(back, list) and len(original) == len(back):
        for position, (one, other) in enumerate(zip(original, back, strict=True)):
            yield from _spelling(one, other, (*path, position))
    elif original != back:
        yield path, original


def _respelled(spec: Json, text: str) -> Json:
    """The spec with what :func:`_spelling` found."""
    for entry in _list_of(text):
        match entry:
            case [[*path], value] if path:
                spec = _with(spec, path, value)
    return spec


def _is_same(spec: Json, back: Json, annotations: Json, version: str) -> bool:
    """Whether the spec says what ``back`` says in the other version: anybody may have written the annotation."""
    try:
        return _translated(spec, dict(annotations), version) == back
    except ConversionError:
        return False


def _with(value: Any, path: list[Any], item: Any) -> Any:
    key, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_with(one, rest, item) if rest and n == key else one for n, one in enumerate(value)]
    if not isinstance(value, dict) or not isinstance(key, str):
        return value
    if rest:
        return {**value, key: _with(value[key], rest, item)} if key in value else value
    return _without(value, key) if item is None else {**value, key: item}


# Criticality.


def _newer_model(model: Json, kept: str, annotations: Json) -> Json:
    if criticality := model.get("criticality"):
        annotations[MODEL_CRITICALITY] = criticality
    adapters = _adapters(model)
    found = {str(n): text for n, adapter in enumerate(adapters) if (text := _criticality(adapter))}
    if kept and found == _applicable(kept, len(adapters)):
        annotations[LORA_CRITICALITIES] = kept
    elif found:
        annotations[LORA_CRITICALITIES] = _text(found)
    rest = [_without(a, "criticality") if _criticality(a) is not None else a for a in adapters]
    return _with_adapters(_without(model, "criticality"), rest)


def _criticality(adapter: Any) -> str | None:
    """The schema leaves adapters open, so anything may stand there."""
    value = adapter.get("criticality") if isinstance(adapter, dict) else None
    return value if isinstance(value, str) else None


def _older_model(model: Json, annotations: Json) -> Json:
    if criticality := annotations.get(MODEL_CRITICALITY):
        del annotations[MODEL_CRITICALITY]
        model = {**model, "criticality": criticality}
    text = annotations.get(LORA_CRITICALITIES)
    if not text:
        return model
    del annotations[LORA_CRITICALITIES]
    adapters = _adapters(model)
    found = {
        key: value for key, value in _applicable(text, len(adapters)).items() if isinstance(adapters[int(key)], dict)
    }
    if not found or text != _text(found):
        annotations[KEPT_LORA_CRITICALITIES] = text
    given = [{**a, "criticality": found[str(n)]} if str(n) in found else a for n, a in enumerate(adapters)]
    return _with_adapters(model, given)


def _text(criticalities: dict[str, str]) -> str:
    return orjson.dumps(criticalities, option=orjson.OPT_SORT_KEYS).decode()


def _applicable(text: str, adapters: int) -> dict[str, str]:
    """The criticalities that the annotation has for so many adapters; none when it is not of its form."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return {}
    positions = {str(position) for position in range(adapters)}
    return {key: value for key, value in found.items() if value and key in positions}


def _adapters(model: Json) -> list[Any]:
    lora = _object(model.get("lora"), "spec.model.lora")
    adapters = lora.get("adapters")
    return adapters if isinstance(adapters, list) else []


def _with_adapters(model: Json, adapters: list[Any]) -> Json:
    return {**model, "lora": {**model["lora"], "adapters": adapters}} if adapters else model


# The pool.


def _newer_pool(pool: Json, others: list[Json]) -> Json:
    result = _without(pool, "selector", "targetPortNumber", "extensionRef")
    if "selector" in pool:
        selector = _object(pool["selector"], f"spec.{_POOL}.selector")
        result["selector"] = {"matchLabels": selector} if selector else {}
    if (number := pool.get("targetPortNumber")) is not None:
        result["targetPorts"] = [{"number": number}, *(port for port in others if port["number"] != number)]
    picker = _picker(pool, "extensionRef")
    if (number := picker.pop("portNumber", None)) is not None:
        picker["port"] = {"number": number}
    return {**result, "endpointPickerRef": picker} if picker else result


def _older_pool(pool: Json, annotations: Json) -> Json:
    result = _without(pool, "selector", "targetPorts", "endpointPickerRef")
    selector = _object(pool.get("selector"), f"spec.{_POOL}.selector")
    result["selector"] = _object(selector.get("matchLabels"), f"spec.{_POOL}.selector.matchLabels")
    ports = pool.get("targetPorts") or []
    if not isinstance(ports, list):
        raise ConversionError(f"spec.{_POOL}.targetPorts must be a list")
    numbers = [_object(port, f"spec.{_POOL}.targetPorts[{n}]").get("number") for n, port in enumerate(ports)]
    if numbers:
        result["targetPortNumber"] = numbers[0]
    if numbers[1:]:
        annotations[KEPT_PORTS] = orjson.dumps(ports[1:]).decode()
    picker = _picker(pool, "endpointPickerRef")
    if port := _object(picker.pop("port", None), f"spec.{_POOL}.endpointPickerRef.port"):
        picker["portNumber"] = port.get("number")
    return {**result, "extensionRef": {"name": "", "failureMode": None, **picker}}


def _ports(text: Any) -> list[Json]:
    """The ports of the annotation; anybody may write to it, so nothing else counts."""
    found = _list_of(text)
    sound = all(isinstance(port, dict) and isinstance(port.get("number"), int) for port in found)
    return found if sound and len(found) < _MOST_PORTS else []


_MOST_PORTS = 8
_POOL = "router.scheduler.pool.spec"


def _picker(pool: Json, key: str) -> Json:
    return {
        k: v
        for k, v in _object(pool.get(key), f"spec.{_POOL}.{key}").items()
        if v is not None and (k, v) != ("name", "")
    }


# Plain JSON.


def _at(document: Json, path: str, change: Callable[[Json], Json], *, at: str = "spec") -> Json:
    """A copy of the document with the object at ``path`` changed, where there is one."""
    key, _, rest = path.partition(".")
    if document.get(key) is None:
        return document
    here = f"{at}.{key}"
    part = _object(document[key], here)
    return {**document, key: _at(part, rest, change, at=here) if rest else change(part)}


def _object(value: Any, path: str) -> Json:
    """The value, empty where it is absent. The API server sends nothing else: it has checked the schema."""
    if not isinstance(value, dict | None):
        raise ConversionError(f"{path} must be an object")
    return value or {}


def _list_of(text: Any) -> list[Any]:
    """The list that an annotation of ours holds; an empty one where it is no JSON or no list."""
    try:
        found = orjson.loads(text)
    except (orjson.JSONDecodeError, TypeError):
        return []
    return found if isinstance(found, list) else []


def _without(value: Json, *keys: str) -> Json:
    return {key: item for key, item in value.items() if key not in keys}
